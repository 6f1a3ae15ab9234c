"""What a turn costs in a session of 1,000, 10,000 and 100,000 messages, side by side.

A turn adds two messages and assembles a context without a query; no model, no vectors. The sessions take their turns
one after the other, so that whatever else the machine does falls on all of them alike: the ratios are what to read.
Beside them, what the same turn costs with the whole list of messages in memory and `trim_messages` or langmem's
`summarize_messages` over it (which is how they are used: each reads the list anew for every call).

    python -m benchmarks.turn_cost --sizes 1000,10000,100000
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langmem.short_term import RunningSummary, summarize_messages

from benchmarks.conversations import turns
from benchmarks.reporting import Grid, Report, Target, arguments, finish, median, numbers, p95, show
from benchmarks.sessions import SESSION, Built, Resident, alone, build, hold, one_turn, open_memory
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.memory import Session

BUDGET = 8000
SIZES = (1000, 10_000, 100_000)
_WARM_UP = 4
_FLUSH_EACH = 5  # turns; a background thread would do it
_QUERY_EACH = 5
_PEER_TURNS = 5
_MOST_GROWTH = 1.5
_MOST_MILLISECONDS = 10.0
_MOST_MEGABYTES = 32.0
_LARGEST_TARGET = 100_000
_STEPS = ("turn", "add", "context", "query", "processor")
_QUERIES = (
    "who looks after the ferry ledger?",
    "what did we decide about the panels for the greenhouse?",
    "where are the notes about the archive?",
    "how much was the budget for the boiler again?",
)


@dataclass(slots=True)
class _Times:
    """Milliseconds of each step of one session."""

    add: list[float] = field(default_factory=list)
    context: list[float] = field(default_factory=list)
    query: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Of a whole turn, in this process: what a busy machine does not stretch much."""

    @property
    def turn(self) -> list[float]:
        return [one + other for one, other in zip(self.add, self.context, strict=True)]


def measure(sizes: Sequence[int] = SIZES, *, count: int = 60, directory: Path | None = None) -> Report:
    """Build (or find in `directory`) a session of each size, and hold `count` turns in each."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = directory or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {size: folder / f"session-{size}.db" for size in sizes}
        built = {size: alone(build, path, size) for size, path in paths.items()}
        resident = {size: alone(hold, path, count) for size, path in paths.items()}
        times = _alternating(paths, count)
    peers = {size: _peers(size) for size in sizes}
    return _report(sizes, count, built, resident, times, peers)


def _alternating(paths: dict[int, Path], count: int) -> dict[int, _Times]:
    """A turn of each session, then the next of each."""
    times = {size: _Times() for size in paths}
    source = turns(seed=3)
    with ExitStack() as opened:
        sessions = {size: opened.enter_context(open_memory(path)).session(SESSION) for size, path in paths.items()}
        for number in range(_WARM_UP):
            for session in sessions.values():
                one_turn(session, number)
        for number in range(count):
            pair = [turn.message for turn in islice(source, 2)]
            order = list(sessions) if number % 2 else list(reversed(sessions))
            for size in order:
                _timed_turn(sessions[size], [one.model_copy(update={"id": None}) for one in pair], times[size], number)
    return times


def _timed_turn(session: Session, pair: list[BaseMessage], times: _Times, number: int) -> None:
    began = time.process_time()
    times.add.append(_milliseconds(lambda: session.add_messages(pair)))
    times.context.append(_milliseconds(lambda: session.context("", max_tokens=BUDGET)))
    times.processor.append(1000 * (time.process_time() - began))
    if number % _QUERY_EACH == 0:
        query = _QUERIES[number // _QUERY_EACH % len(_QUERIES)]
        times.query.append(_milliseconds(lambda: session.context(query, max_tokens=BUDGET)))
    if number % _FLUSH_EACH == _FLUSH_EACH - 1:
        session.flush()


def _milliseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def _peers(size: int) -> dict[str, list[float]]:
    """The other ways to bound a context, over a list of `size` messages that is in memory already."""
    messages = [turn.message for turn in islice(turns(), size)]
    summarised = messages[: max(0, size - 60)]
    running = RunningSummary(
        summary="A summary of what was said.",
        summarized_message_ids={str(one.id) for one in summarised},
        last_summarized_message_id=summarised[-1].id if summarised else None,
    )
    model = ScriptedModel()

    def trimmed() -> object:
        return trim_messages(
            messages, max_tokens=BUDGET, token_counter=count_tokens_approximately, strategy="last", start_on="human"
        )

    def langmem() -> object:
        return summarize_messages(messages, running_summary=running, model=model, max_tokens=BUDGET)

    return {
        "trim_messages": [_milliseconds(trimmed) for _ in range(_PEER_TURNS)],
        "langmem summarize_messages": [_milliseconds(langmem) for _ in range(_PEER_TURNS)],
    }


def _report(  # noqa: PLR0917 - what was measured, each once
    sizes: Sequence[int],
    count: int,
    built: dict[int, Built],
    resident: dict[int, Resident],
    times: dict[int, _Times],
    peers: dict[int, dict[str, list[float]]],
) -> Report:
    rows = [(f"{size:,} messages", *_row(times[size], times[sizes[0]])) for size in sizes]
    columns = (
        "",
        *("turn ms", "p95", "ratio"),
        *("add ms", "p95", "ratio"),
        *("context ms", "p95", "ratio"),
        *("query ms", "ratio"),
        "turn, processor ms",
    )
    peer_rows = tuple(
        (name, *(f"{median(peers[size][name]):,.2f} ({_ratio(peers, name, size, sizes[0]):,.1f}x)" for size in sizes))
        for name in peers[sizes[0]]
    )
    figures = {
        str(size): {
            "built": asdict(built[size]),
            "resident": asdict(resident[size]),
            **{f"{step}_ms": _spread(getattr(times[size], step)) for step in _STEPS},
            **{f"{step}_ratio": _growth(getattr(times[size], step), getattr(times[sizes[0]], step)) for step in _STEPS},
            "peers_ms": {name: _spread(found) for name, found in peers[size].items()},
        }
        for size in sizes
    }
    return Report(
        benchmark="turn cost",
        about="add two messages, assemble a context without a query; sessions take turns, SQLite, words only",
        settings={"turns": count, "budget": BUDGET},
        grids=(
            Grid(
                title="a turn, and its parts (medians; ratio to the smallest session)",
                columns=columns,
                rows=tuple(rows),
            ),
            _space_grid(sizes, built, resident),
            Grid(
                title="peers, ms for one call over the list of messages (ratio)",
                columns=("", *(f"{size:,}" for size in sizes)),
                rows=peer_rows,
            ),
        ),
        figures=figures,
        targets=_targets(sizes, times, resident),
        remarks=(f"load average at the start of the table: {os.getloadavg()[0]:.1f}",),
    )


def _space_grid(sizes: Sequence[int], built: dict[int, Built], resident: dict[int, Resident]) -> Grid:
    rows = []
    for size in sizes:
        made, held = built[size], resident[size]
        rows.append(
            (
                f"{size:,} messages",
                made.adding_seconds,
                made.condensing_seconds,
                made.summaries,
                made.file_megabytes,
                made.peak_megabytes,
                held.before_megabytes,
                held.peak_megabytes,
            )
        )
    return Grid(
        title="building (in batches, then condensed), and memory of a process that holds the turns, MB",
        columns=("", "adding s", "condensing s", "summaries", "file", "peak of building", "opened", "peak of turns"),
        rows=tuple(rows),
    )


def _row(mine: _Times, first: _Times) -> tuple[float, ...]:
    cells: list[float] = []
    for step in ("turn", "add", "context"):
        values = getattr(mine, step)
        cells += [median(values), p95(values), _growth(values, getattr(first, step))]
    return (*cells, median(mine.query), _growth(mine.query, first.query), median(mine.processor))


def _growth(values: Sequence[float], first: Sequence[float]) -> float:
    return median(values) / median(first)


def _ratio(peers: dict[int, dict[str, list[float]]], name: str, size: int, first: int) -> float:
    return _growth(peers[size][name], peers[first][name])


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": median(values), "p95": p95(values), "least": min(values), "count": len(values)}


def _targets(sizes: Sequence[int], times: dict[int, _Times], resident: dict[int, Resident]) -> tuple[Target, ...]:
    first, last = sizes[0], sizes[-1]
    told = last >= _LARGEST_TARGET
    growth = _growth(times[last].turn, times[first].turn)
    milliseconds = median(times[last].turn)
    more = resident[last].peak_megabytes - resident[first].peak_megabytes
    return (
        Target(
            aim=f"a turn at 100,000 messages costs at most {_MOST_GROWTH} times one at 1,000",
            measured=f"{growth:.2f} at {last:,}",
            met=growth <= _MOST_GROWTH if told else None,
        ),
        Target(
            aim=f"such a turn stays under {_MOST_MILLISECONDS:.0f} ms at the median, on two quiet cores",
            measured=f"{milliseconds:.1f} ms at {last:,}, of which {median(times[last].processor):.1f} ms of processor",
            met=milliseconds < _MOST_MILLISECONDS if told else None,
        ),
        Target(
            aim=f"peak memory of turns does not grow with the session (within {_MOST_MEGABYTES:.0f} MB)",
            measured=f"{more:+.1f} MB from {first:,} to {last:,}",
            met=more <= _MOST_MEGABYTES if told else None,
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=numbers, default=list(SIZES), help="messages in the sessions")
    parser.add_argument("--turns", type=int, default=60, help="measured in each session")
    parser.add_argument("--directory", type=Path, help="keep the sessions there, and use those that are there")
    asked = parser.parse_args(arguments_given)
    report = measure(asked.sizes, count=asked.turns, directory=asked.directory)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
