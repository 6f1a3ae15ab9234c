"""How far a request travels through the code, and what the code looks like from outside: figures for a checkout.

Which files and functions run for one request, how many transactions, statements and milliseconds of the processor it
takes, and what the source itself tells: flows, folders, classes, public names, settings. With `--before` the same of
an older checkout, side by side; each checkout runs in a process of its own, by its public names alone.

    python -m benchmarks.hops TRANSCRIPTS --before ../older-checkout
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import messages_to_dict

from benchmarks.agent_runs import choose_runs
from benchmarks.hops_rows import rows_of
from benchmarks.hops_source import PACKAGE, Source, named_in_documents, read_source, settings_set
from benchmarks.reporting import Grid, Report, arguments, finish, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

MESSAGES = 500
AGENT_MESSAGES = 200
_HERE = Path(__file__).parent.parent
_START = """
import sys, langchain_tiered_memory  # of the checkout that PYTHONPATH names
sys.path.insert(0, sys.argv[1])  # the probe itself is always this one
from benchmarks.hops_probe import main
main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """All that was measured of one checkout."""

    source: Source
    probe: dict[str, Any] | None
    """What `hops_probe` said; `None` where only the source was read."""
    documented: int = 0
    """Public names that stand in a document."""
    settings_used: int = 0
    """Settings that a test, a benchmark or a document sets."""


def measure(root: Path, runs: Sequence[Sequence[BaseMessage]], *, agent_messages: int) -> Hops:
    """Measure one checkout; without `runs` read its source alone."""
    source = read_source(root)
    if not runs:
        return Hops(source=source, probe=None)
    found = _probe(root, runs, agent_messages)
    return Hops(
        source=source,
        probe=found,
        documented=len(named_in_documents(root, found["public_names"])),
        settings_used=len(settings_set(root, found["settings"])),
    )


def _probe(root: Path, runs: Sequence[Sequence[BaseMessage]], agent_messages: int) -> dict[str, Any]:
    """Run the probe in a process that finds the package in `root`.

    Raises:
        RuntimeError: when it failed, or found the package elsewhere.
    """
    task = json.dumps({"runs": [messages_to_dict(run) for run in runs], "agent_messages": agent_messages})
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-P", "-c", _START, str(_HERE)]  # -P: the current folder is not on the path
    done = subprocess.run(  # noqa: S603 - our own code
        command, input=task, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        msg = f"{root}: {done.stderr[-2000:]}"
        raise RuntimeError(msg)
    found: dict[str, Any] = json.loads(done.stdout)
    if Path(found["package"]) != root / PACKAGE:
        msg = f"{root}: the package was found in {found['package']}"
        raise RuntimeError(msg)
    return found


def report_of(measured: dict[str, Hops], runs: dict[str, list[BaseMessage]]) -> Report:
    """A column for each checkout."""
    columns = [rows_of(one.source, one.probe, one.documented, one.settings_used) for one in measured.values()]
    rows = tuple(
        (first.name, *(column[place].shown for column in columns), first.wanted)
        for place, first in enumerate(columns[0])
    )
    return Report(
        benchmark="hops",
        about="what runs for one request, what that costs, and what the source looks like",
        settings={"runs": ", ".join(f"{name} ({len(run)} messages)" for name, run in runs.items()) or "none"},
        grids=(Grid(title="a checkout in figures", columns=("", *measured, "wanted"), rows=rows),),
        figures={
            label: {
                "source": asdict(one.source),
                "rows": {row.name: row.figures for row in column},
            }
            for (label, one), column in zip(measured.items(), columns, strict=True)
        },
        remarks=(
            f"load average at the end: {os.getloadavg()[0]:.1f}; times are those of the processor",
            "SQLite on a file, search by words, no background; what falls due is condensed between requests",
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="transcripts of agents' runs; a made-up run if not given")
    parser.add_argument("--root", type=Path, default=_HERE, help="the checkout to measure")
    parser.add_argument("--before", type=Path, help="an older checkout, to be printed beside it")
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of each run")
    parser.add_argument("--agent-messages", type=int, default=AGENT_MESSAGES, help="of the run that an agent plays")
    parser.add_argument("--transcripts", type=int, default=2, help="how many of the folder, at most")
    parser.add_argument("--static", action="store_true", help="read the source alone, run nothing")
    asked = parser.parse_args(arguments_given)
    runs = {} if asked.static else choose_runs(asked.folder, messages=asked.messages, most=asked.transcripts)
    roots = {"before": asked.before, "now": asked.root} if asked.before else {"now": asked.root}
    measured = {
        label: measure(root.resolve(), list(runs.values()), agent_messages=asked.agent_messages)
        for label, root in roots.items()
    }
    reports = [report_of(measured, runs)]
    show(reports[0])
    finish(reports, asked.json)
    return reports


if __name__ == "__main__":
    main()
