"""Runs every benchmark at a small size; name one to run it alone with its own options.

python -m benchmarks --json all.json
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import (
    condensing,
    cover_facts,
    embedding,
    face_replay,
    fact_depth,
    prefix,
    recall,
    transcript_probes,
    turn_cost,
)
from benchmarks.reporting import Report, arguments, finish
from langchain_tiered_memory.embeddings import find_minilm

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--tiny", action="store_true", help="just large enough that every table is filled")
    asked = parser.parse_args(arguments_given)
    few, some, many = ("40", "60", "80,120") if asked.tiny else ("400", "600", "1000,4000")
    reports = turn_cost.main(["--sizes", many, "--turns", "3" if asked.tiny else "30"])
    if find_minilm() is None:
        print("embedder: left out, the MiniLM files are not at hand")
    else:
        reports += embedding.main(["--texts", "4" if asked.tiny else "64", "--rounds", "1" if asked.tiny else "3"])
    reports += condensing.main(["--messages", few, "--budget", "800" if asked.tiny else "2000"])
    reports += prefix.main(["--messages", few, "--budget", "700" if asked.tiny else "3000"])
    reports += cover_facts.main(["--messages", some])
    reports += fact_depth.main(["--turns", few, "--seeds", "1", "--budget", "800" if asked.tiny else "2000"])
    reports += transcript_probes.main(["--quick"])
    reports += face_replay.main(["--quick"])
    reports += recall.main(["--budgets", "500" if asked.tiny else "500,1000", *(["--no-embeddings"] * asked.tiny)])
    finish(reports, asked.json)
    return reports


if __name__ == "__main__":
    main()
