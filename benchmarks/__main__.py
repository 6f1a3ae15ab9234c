"""Runs every benchmark at a small size; name one to run it alone with its own options.

python -m benchmarks --json all.json
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import (
    across_threads,
    condensing,
    cost_curve,
    cover_facts,
    cover_shares,
    direct,
    embedding,
    encryption,
    fact_depth,
    faults,
    file_readings,
    hops,
    integration_replay,
    long_run,
    mixed_parts,
    prefix,
    recall,
    recorded_reader,
    session_page,
    tier_workloads,
    transcript_probes,
    turn_cost,
    unsound,
    workers,
)
from benchmarks.reporting import Report, arguments, finish
from langchain_tiered_memory.models.embeddings import find_minilm

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--tiny", action="store_true", help="just large enough that every table is filled")
    asked = parser.parse_args(arguments_given)
    few, some, many = ("40", "60", "80,120") if asked.tiny else ("400", "600", "1000,4000")
    reports = turn_cost.main(
        ["--sizes", many, "--turns", "3", "--agent-messages", "12", "--no-postgres"]
        if asked.tiny
        else ["--sizes", many, "--turns", "30", "--agent-messages", "80"]
    )
    if find_minilm() is None:
        print("embedder: left out, the MiniLM files are not at hand")
    else:
        reports += embedding.main(["--texts", "4" if asked.tiny else "64", "--rounds", "1" if asked.tiny else "3"])
    reports += condensing.main(["--messages", few, "--budget", "800" if asked.tiny else "2000"])
    reports += prefix.main(["--messages", few, "--budget", "700" if asked.tiny else "3000"])
    reports += cover_facts.main(["--messages", some])
    reports += cover_shares.main(
        ["--every", "200" if asked.tiny else "40", "--budgets", "1000" if asked.tiny else "2000,4000"]
    )
    reports += unsound.main(["--messages", few])
    reports += mixed_parts.main([])
    reports += fact_depth.main(["--turns", few, "--seeds", "0", "--budget", "800" if asked.tiny else "2000"])
    reports += recorded_reader.main([])
    reports += transcript_probes.main(["--quick"])
    reports += file_readings.main(["--turns", "6", "--budgets", "16000"] if asked.tiny else [])
    reports += cost_curve.main(["--quick"])
    reports += long_run.main(["--quick"])
    reports += tier_workloads.main(["--quick"])
    few_workers = ["--workers", "1,2", "--seconds", "0.2", "--processes", "2"]
    reports += workers.main(few_workers if asked.tiny else [])
    reports += integration_replay.main(["--quick"])
    reports += hops.main(
        ["--messages", "30" if asked.tiny else "120", "--agent-messages", "20" if asked.tiny else "80"]
    )
    tiny = ["--kills", "2", "--writers", "2", "--messages", "12", "--characters", "400", "--columns", "40"]
    reports += faults.main(tiny if asked.tiny else ["--kills", "10"])
    reports += direct.main(
        ["--turns", "20", "--facts", "1", "--forms", "bare,order", "--budgets", "1000"]
        if asked.tiny
        else ["--turns", "60", "--facts", "2", "--budgets", "1000,4000"]
    )
    reports += session_page.main(["--messages", few, "--rounds", "1"])
    reports += encryption.main(["--turns", "5" if asked.tiny else "100", "--rounds", "1" if asked.tiny else "3"])
    reports += across_threads.main(["--budgets", "1000"])
    reports += recall.main(["--budgets", "500" if asked.tiny else "500,1000", *(["--no-embeddings"] * asked.tiny)])
    finish(reports, asked.json)
    return reports


if __name__ == "__main__":
    main()
