"""How well the tiers of a run hold what it opens: this memory's, and the source's own algorithm on the same openings.

A file that is opened again from cold has to be unpacked and checked, one from warm too, one from hot is there; a tier
that is full of what nobody asks for is room for nothing else. Openings come from transcripts of agents, and are made
up: a scan, loops, a set of files at work that drifts, long runs with tasks.

    python -m benchmarks.tier_workloads transcripts/ --json found.json
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.agent_transcripts import read_transcripts
from benchmarks.reporting import Grid, Report, Target, arguments, finish, median, p95, show
from benchmarks.tier_rules import SourceTiers, files_in_use, made_up, moments, real
from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.reporting import Cell
    from benchmarks.tier_rules import Workload

_LOOK_SECONDS = 300.0
"""Between two looks where nothing is opened."""
_SHARE = 0.70
_MILLISECONDS = 2.0
_LATER = 60.0
"""Seconds between the time of the files and the first opening: a file that was just written is read twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of one workload."""

    openings: Counter[str]
    """By the tier that the file was in, or `new`."""
    cleanups: int
    in_use: int
    """Times that one of the five files opened last left hot."""
    above: float
    """Share of the looks, one before each opening, at which hot and warm were more than 70 % full."""
    processor_ms: tuple[float, ...] = ()


def play_source(workload: Workload) -> Played:
    """By the source's algorithm."""
    tiers, looks, above = SourceTiers(), 0, 0
    for at, path in moments(workload, every=_LOOK_SECONDS):
        tiers.tend(at)
        looks, above = looks + 1, above + (tiers.utilisation > _SHARE)
        if path is not None:
            tiers.open(path, at)
    return Played(
        openings=Counter({name: tiers.counts[name] for name in ("new", "hot", "warm", "cold")}),
        cleanups=tiers.counts["cleanups"],
        in_use=tiers.counts["in_use"],
        above=above / max(looks, 1),
    )


def play_memory(workload: Workload, folder: Path) -> Played:
    """By this memory: files on the disk, a database beside them, a run that is tended as agents tend theirs."""
    paths = _written(workload, folder / "project")
    begin = time.time() + _LATER
    clock, openings, demoted = FrozenClock(begin), Counter[str](), Counter[str]()
    latest: list[str] = []
    taken: list[float] = []
    in_use = looks = above = 0
    with TieredMemory.open(folder / "memory.db", embeddings=None, clock=clock) as memory:
        memory.subscribe(lambda event: demoted.update(_left_hot(event)))
        run = memory.run("run", roots=[str(folder / "project")], background=False).start()
        kept, ref = memory.core.runtime.store.kept_files, memory.core.runtime.store.transcript.find("run")
        for at, path in moments(workload, every=_LOOK_SECONDS):
            clock.advance(at - (clock() - begin))
            run.tend()
            share = kept.utilisation(ref, memory.core.runtime.settings.tiers)
            looks, above = looks + 1, above + (share > _SHARE)
            if path is not None:
                begun = time.process_time()
                opened = run.open(paths[path])
                taken.append((time.process_time() - begun) * 1000)
                openings[opened.from_tier or "new"] += 1
                latest.append(opened.path)
            in_use += files_in_use(latest, demoted)
            demoted.clear()
        cleanups = run.end().counts.get("cleanups", 0)
    return Played(
        openings=openings, cleanups=cleanups, in_use=in_use, above=above / max(looks, 1), processor_ms=tuple(taken)
    )


def _left_hot(event: Any) -> list[str]:  # noqa: ANN401 - an event of any kind
    if event.name != "file_demoted" or event.details["before"] != "hot" or event.details["cause"] == "unused":
        return []
    return [event.details["path"]]


def _written(workload: Workload, folder: Path) -> dict[str, str]:
    """The files on the disk, of a module's size, each importing the one before it; their paths by name."""
    folder.mkdir(parents=True)
    names: dict[str, str] = {}
    before = "os"
    for place, name in enumerate(dict.fromkeys(path for _, path in workload)):
        stem = f"m{place}"
        body = "".join(f"def f{line}(x):\n    return x + {place * line}\n" for line in range(120))
        (folder / f"{stem}.py").write_text(f"import sys\nimport {before}\n\n{body}")
        names[name], before = str(folder / f"{stem}.py"), stem
    return names


def _row(name: str, workload: Workload, source: Played, ours: Played) -> tuple[Cell, ...]:
    return (
        name, len(workload), len({path for _, path in workload}),
        source.openings["cold"], ours.openings["cold"], source.openings["warm"], ours.openings["warm"],
        source.cleanups, ours.cleanups, source.in_use, ours.in_use,
        round(100 * source.above), round(100 * ours.above), median(ours.processor_ms), p95(ours.processor_ms),
    )  # fmt: skip


_HEADS = (
    "workload", "openings", "files", "cold: source", "cold", "warm: source", "warm", "cleanups: source", "cleanups",
    "in use left: source", "in use left", "% above 70 %: source", "% above 70 %", "CPU ms", "CPU ms p95",
)  # fmt: skip


def _targets(rows: Sequence[tuple[Cell, ...]]) -> tuple[Target, ...]:
    found = [dict(zip(_HEADS, row, strict=True)) for row in rows]

    def behind(what: str) -> list[str]:
        return [
            f"{one['workload']} {one[what]} > {one[f'{what}: source']}"
            for one in found
            if one[what] > one[f"{what}: source"]
        ]  # type: ignore[operator]

    aims = {
        "cold": "re-opens from cold: on no workload more than by the source's algorithm",
        "cleanups": "aggressive cleanups: on no workload more",
        "in use left": "files in use that leave hot: on no workload more",
        "% above 70 %": "looks at tiers above 70 %: on no workload more",
    }
    slowest = max(float(one["CPU ms"] or 0) for one in found)
    return (
        *(
            Target(
                aim=aim,
                measured="; ".join(behind(what))
                or f"{sum(one[what] for one in found)} beside {sum(one[f'{what}: source'] for one in found)}",  # type: ignore[misc]
                met=not behind(what),
            )
            for what, aim in aims.items()
        ),
        Target(
            aim=f"an opening takes {_MILLISECONDS:g} ms of processor at the median of each workload",
            measured=f"at most {slowest:.1f} ms",
            met=slowest <= _MILLISECONDS,
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("transcripts", nargs="?", type=Path, help="folder of agents' transcripts with their files")
    parser.add_argument("--names", default="", help="workloads, with commas between; all if not given")
    parser.add_argument("--quick", action="store_true", help="two small workloads, too small to tell anything")
    asked = parser.parse_args(arguments_given)
    workloads = made_up(is_small=asked.quick)
    if asked.transcripts is not None:
        workloads = real(read_transcripts(asked.transcripts)) | workloads
    wanted = [name for name in asked.names.split(",") if name] or list(workloads)
    rows: list[tuple[Cell, ...]] = []
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            ours = play_memory(workloads[name], Path(folder))
        rows.append(_row(name, workloads[name], play_source(workloads[name]), ours))
        print(*rows[-1], sep="; ", file=sys.stderr, flush=True)
    report = Report(
        benchmark="tier_workloads",
        about="Files of a run opened again: from which tier, and what it took, beside the source's own algorithm.",
        settings={"workloads": len(rows)},
        grids=(Grid(title="openings by the tier that the file was in", columns=_HEADS, rows=tuple(rows)),),
        figures={str(row[0]): dict(zip(_HEADS[1:], row[1:], strict=True)) for row in rows},
        targets=_targets(rows),
    )
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
