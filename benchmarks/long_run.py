"""Six hours and more of an agent's work, in minutes: transcripts chained under a stepped clock, with kills on the way.

Every message is added, a context is asked for before the agent's calls, what its tools read and wrote whole is kept in
the tiers, tasks begin and end, collections, optimisations and checkpoints come when the clock says so, and the process
is killed in the middle of a statement several times; the next one restores the newest checkpoint and goes on.

    python -m benchmarks.long_run FOLDER --picture long_run.png
    python -m benchmarks.long_run --quick

`agent_transcripts` says what a folder holds; none comes with this repository. `--quick` makes one up.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.agent_transcripts import read_transcripts
from benchmarks.long_run_figures import dearer_of, growth_of, p99, seconds_of, slope_of
from benchmarks.long_run_picture import draw
from benchmarks.long_run_play import Plan, chained, play
from benchmarks.made_up_run import made_up_run
from benchmarks.reporting import Grid, Report, Target, arguments, finish, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.agent_transcripts import Transcript

HOURS = 6.5
MESSAGES = 20_000
WINDOW_SHARE = 0.70
"""Where the safe zone of the window ends: the setting `context.window_share` of the run."""
_TIERS = ("hot", "warm", "cold")
_MILLISECONDS = {"hot": 10.0, "warm": 100.0, "cold": 500.0}
"""What the tiers may take at the 99th percentile."""
_MOST_SHARE = 0.70
_LEAST_COMPRESSION = 3.0
_MOST_GROWTH = 1.25
_MOST_SLOPE = 1.0
"""Megabytes that a process may grow by in 1,000 messages, over the second half of its messages."""
_MOST_DEARER = 1.5
"""Transcripts differ in what their messages cost: the same work costs up to half more or less."""
_LONG_HOURS = 6.0


def simulate(
    transcripts: Sequence[Transcript],
    *,
    messages: int,
    hours: float,
    window: int,
    window_share: float = WINDOW_SHARE,
    context_every: int = 1,
    kills: int = 4,
    picture: Path | None = None,
) -> Report:
    """Play a run and say what was measured."""
    said = chained(transcripts, messages)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(
            where=str(Path(folder) / "memory.db"),
            log=str(Path(folder) / "log.jsonl"),
            messages=messages,
            seconds_between=hours * 3600 / messages,
            window=window,
            window_share=window_share,
            context_every=context_every,
        )
        killed = _processes(plan, said, kills)
        rows = [json.loads(line) for line in Path(plan.log).read_text(encoding="utf-8").splitlines()]
    seconds = time.perf_counter() - began
    drawn = draw(rows, picture) if picture is not None else None
    settings = {"transcripts": len(transcripts), **{k: v for k, v in asdict(plan).items() if k not in ("where", "log")}}
    return _report(
        rows, settings=settings, hours=hours, killed=killed, seconds=seconds, remarks=[drawn] if drawn else []
    )


def _processes(plan: Plan, said: Sequence[Any], kills: int) -> int:
    """Run one process after the other, each from where the last one was killed; returns how many were."""
    context = multiprocessing.get_context("forkserver")
    killed = 0
    for number in range(kills + 1):
        kill_at = round(len(said) * (number + 1) / (kills + 1)) if number < kills else None
        child = context.Process(target=play, args=(plan, said, kill_at, 3 + 4 * number))
        child.start()
        child.join()
        if child.exitcode not in (0, -9):
            msg = f"the process ended with {child.exitcode}: see what it printed"
            raise RuntimeError(msg)
        killed += child.exitcode != 0
    return killed


def _report(
    rows: Sequence[dict[str, Any]],
    *,
    settings: dict[str, Any],
    hours: float,
    killed: int,
    seconds: float,
    remarks: Sequence[str],
) -> Report:
    of = {kind: [row for row in rows if row["kind"] == kind] for kind in {row["kind"] for row in rows}}
    contexts, files, sizes = of.get("context", []), of.get("file", []), of.get("sizes", [])
    shares = [row["share"] for row in contexts if "share" in row]
    faults = [fault for row in contexts for fault in row.get("faults", ())]
    refused = [row["refused"] for row in contexts if "refused" in row]
    (end,) = of["end"]
    times = {tier: p99([row["seconds"] for row in files if row["tier"] == tier]) for tier in (*_TIERS, "new")}
    first = [row for row in files if row["turn"] == 0]
    rereads = [row for row in first if row["reread"]]
    figures: dict[str, Any] = {
        "real_seconds": round(seconds, 1),
        "hours": hours,
        "contexts": len(contexts),
        "largest_share": max(shares, default=0.0),
        "mean_share": sum(shares) / len(shares) if shares else 0.0,
        "share_of_turns_under_70_percent": sum(one < _MOST_SHARE for one in shares) / len(shares) if shares else 0.0,
        "context_p99_ms": p99([row["seconds"] for row in contexts if "seconds" in row]),
        "faults": faults[:20],
        "refused": refused[:20],
        "access_p99_ms": times,
        "access_p99_processor_ms": {
            tier: p99([row["processor_seconds"] for row in files if row["tier"] == tier]) for tier in (*_TIERS, "new")
        },
        "accesses": {tier: sum(row["tier"] == tier for row in files) for tier in (*_TIERS, "new")},
        "compression": end["compression"],
        "files": end["files"],
        "counts": end["counts"],
        "problems": end["problems"],
        "contents_lost": len(of.get("lost", [])),
        "killed": killed,
        "restored": [row.get("restored") or row.get("error") for row in of.get("restored", [])],
        "largest_tiers": {tier: max((row["files"][tier] for row in sizes), default=0) for tier in _TIERS},
        "whole_reads": sum(row["tier"] == "new" or row["reread"] > 0 for row in first),
        "needless_rereads": len(rereads),
        "needless_tokens": sum(row["reread"] for row in rereads),
        "of_these_in_view": sum(row["in_view"] for row in rereads),
        "tokens_that_pointing_saves": sum(row["reread"] for row in rereads if row["in_view"]),
        "process_growth": growth_of(sizes),
        "process_megabytes_per_1000_messages": slope_of(sizes),
        "processor_seconds_per_1000_messages": seconds_of(sizes),
        "process_megabytes": [round(row["process_bytes"] / 1e6) for row in sizes[:: max(len(sizes) // 8, 1)]],
    }
    return Report(
        benchmark="long_run",
        about="An agent's run of hours: window, tiers, memory, and what a kill leaves.",
        settings=settings,
        grids=_grids(figures),
        figures=figures,
        targets=_targets(figures, hours),
        remarks=tuple(remarks),
    )


def _grids(found: dict[str, Any]) -> tuple[Grid, ...]:
    tiers = tuple(
        (
            tier,
            found["accesses"][tier],
            found["access_p99_ms"][tier],
            found["access_p99_processor_ms"][tier],
            found["largest_tiers"].get(tier),
        )
        for tier in (*_TIERS, "new")
    )
    plain = [name for name, value in found.items() if isinstance(value, int | float) and not isinstance(value, bool)]
    return (
        Grid(title="tiers", columns=("tier", "accesses", "p99, ms", "of the processor", "most files"), rows=tiers),
        Grid(title="the run", columns=("figure", "value"), rows=tuple((name, found[name]) for name in plain)),
    )


def _targets(found: dict[str, Any], hours: float) -> tuple[Target, ...]:
    long = hours >= _LONG_HOURS
    slow = [
        f"{tier} {found['access_p99_ms'][tier]:.1f} ms"
        for tier in _TIERS
        if (found["access_p99_ms"][tier] or 0) > _MILLISECONDS[tier]
    ]
    compression = found["compression"]
    growth, slope = found["process_growth"], found["process_megabytes_per_1000_messages"]
    dearer = dearer_of(found["processor_seconds_per_1000_messages"])
    broken = len(found["faults"]) + len(found["refused"])
    lost = found["contents_lost"] + len(found["problems"])
    return (
        Target(
            aim="the window under 70 % at every turn",
            measured=f"at most {found['largest_share']:.2%}",
            met=found["largest_share"] < _MOST_SHARE if long else None,
        ),
        Target(aim="every context valid", measured=f"{broken} of {found['contexts']} not", met=broken == 0),
        Target(
            aim="nothing lost, nothing damaged", measured=f"{lost} problems, {found['killed']} kills", met=lost == 0
        ),
        Target(
            aim="hot under 10, warm under 100, cold under 500 ms (p99)",
            measured=", ".join(slow) or "all under",
            met=not slow if long else None,
        ),
        Target(
            aim="compressed better than 3 to 1",
            measured="nothing compressed" if compression is None else f"{compression:.2f} to 1",
            met=compression > _LEAST_COMPRESSION if compression is not None and long else None,
        ),
        Target(
            aim="process memory flat",
            measured="not told here"
            if slope is None
            else f"{slope:+.2f} MB in 1,000 messages; {growth or 0:.2f} times",
            met=slope < _MOST_SLOPE and (growth or 0) < _MOST_GROWTH if slope is not None and long else None,
        ),
        Target(
            aim="no message dearer for the length of the run",
            measured=f"{dearer:.2f} times the processor's time of the first quarter in the last"
            if dearer
            else "too short",
            met=dearer < _MOST_DEARER if dearer and long else None,
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="of transcripts; without it, `--quick` is meant")
    parser.add_argument("--transcripts", default="", help="names, with commas between; all if not given")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--hours", type=float, default=HOURS, help="simulated")
    parser.add_argument("--window", type=int, default=32_000, help="of the model")
    parser.add_argument(
        "--window-share", type=float, default=WINDOW_SHARE, help="of the window, that contexts stay below"
    )
    parser.add_argument("--context-every", type=int, default=1, help="messages: a context before the calls among them")
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="where matplotlib is installed")
    parser.add_argument("--quick", action="store_true", help="one made-up run of some minutes")
    asked = parser.parse_args(arguments_given)
    quick = asked.quick or asked.folder is None
    names = [name for name in asked.transcripts.split(",") if name]
    report = simulate(
        [made_up_run(turns=60)] if quick else read_transcripts(asked.folder, names=names),
        messages=240 if quick else asked.messages,
        hours=0.5 if quick else asked.hours,
        window=8000 if quick else asked.window,
        window_share=asked.window_share,
        context_every=asked.context_every,
        kills=1 if quick else asked.kills,
        picture=asked.picture,
    )
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
