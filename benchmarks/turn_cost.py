"""What a turn costs in sessions of 1,000 to 1,000,000 messages, and what a request costs in an agent's run.

A turn adds two messages and assembles a context, without a question and with one; no model, no vectors. The sessions,
on SQLite and on PostgreSQL, take their turns one after the other, so that whatever else the machine does falls on all
of them alike: the ratios are what to read. Beside them, what other ways to bound a context cost over the same messages,
as a list in memory (`turn_lists`) and in an agent that plays the same transcript (`turn_agents`).

    python -m benchmarks.turn_cost TRANSCRIPTS --sizes 1000,10000,100000,1000000 --build-seconds 14400
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agent_runs import choose_runs
from benchmarks.reporting import Report, arguments, finish, numbers, show
from benchmarks.sessions import Built, TooSlow, alone, build, hold
from benchmarks.turn_agents import empty_files, play_memory, play_peers
from benchmarks.turn_lists import MOST_LISTED, measure_lists
from benchmarks.turn_report import TurnCosts, report_of
from benchmarks.turn_steps import hold_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from benchmarks.turn_steps import Place

SIZES = (1000, 10_000, 100_000)
BUILD_SECONDS = 1200.0
AGENT_MESSAGES = 200


def measure(
    sizes: Sequence[int],
    run: Sequence[BaseMessage],
    *,
    turns: int,
    directory: Path | None,
    most_seconds: float,
    postgres: bool,
) -> TurnCosts:
    """Build the sessions, hold `turns` turns in each, play the agent's `run`, and time the other ways.

    Args:
        sizes: Messages in the sessions, ascending.
        run: A transcript of an agent.
        turns: Measured in each session.
        directory: Where SQLite's files are kept, and found again; they are temporary without one.
        most_seconds: That building one session may take; a session that takes longer is left out, and larger ones.
        postgres: Whether to measure PostgreSQL as well, where it can be started.
    """
    left_out: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        databases = {"SQLite": empty_files(folder)}
        server = stack.enter_context(_postgres(left_out)) if postgres else None
        if server is not None:
            databases["PostgreSQL"] = server
        wheres = {(name, size): make() for name, make in databases.items() for size in sizes}
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            wheres |= {("SQLite", size): str(directory / f"session-{size}.db") for size in sizes}
        built = _build_all(wheres, most_seconds, left_out)
        wheres = {place: wheres[place] for place in built}
        resident = {place: alone(hold, where, turns) for place, where in wheres.items() if place[0] == "SQLite"}
        steps = hold_turns(wheres, turns)
        agents, remarks = play_peers(run, folder)
        agents |= play_memory(run, databases)
    left_out += [*remarks, *(f"lists of {size:,} messages: too large" for size in sizes if size > MOST_LISTED)]
    return TurnCosts(
        turns=turns,
        built=built,
        resident=resident,
        steps=steps,
        lists={size: measure_lists(size) for size in sizes if size <= MOST_LISTED},
        agents=agents,
        agent_messages=len(run),
        left_out=tuple(left_out),
    )


def _build_all(wheres: Mapping[Place, str], most_seconds: float, left_out: list[str]) -> dict[Place, Built]:
    """Build each session in a process of its own; of a database's sessions the smallest is always built.

    One that would take too long at the pace of the one before it is not begun.
    """
    built: dict[Place, Built] = {}
    for place, where in wheres.items():
        database, size = place
        before = max((one.messages for (name, _), one in built.items() if name == database), default=0)
        expected = built[database, before].seconds / before * size if before else 0.0
        if expected > most_seconds:
            found: Built | TooSlow = TooSlow(reason=f"building would take about {expected:,.0f} s")
        else:
            found = alone(build, where, size, most_seconds if before else None)
        if isinstance(found, Built):
            built[place] = found
        else:
            left_out.append(f"{database}, {size:,} messages: left out, {found.reason} (--build-seconds)")
    return built


@contextmanager
def _postgres(left_out: list[str]) -> Iterator[Callable[[], str] | None]:
    """What makes an empty database on a server that the tests' helper starts or finds; `None` without one."""
    try:
        from tests.servers import NoServerError, postgres_server  # noqa: PLC0415 - a checkout has it, a wheel has not
    except ImportError:
        left_out.append("PostgreSQL: left out, what starts a server is in the tests, which are not here")
        yield None
        return
    try:
        server = postgres_server()
    except NoServerError as error:
        left_out.append(f"PostgreSQL: left out, {error}")
        yield None
        return
    try:
        yield server.new_database
    finally:
        server.remove()


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="transcripts of agents' runs; a made-up run if not given")
    parser.add_argument("--sizes", type=numbers, default=list(SIZES), help="messages in the sessions")
    parser.add_argument("--turns", type=int, default=60, help="measured in each session")
    parser.add_argument("--agent-messages", type=int, default=AGENT_MESSAGES, help="of the run that agents play")
    parser.add_argument("--directory", type=Path, help="keep SQLite's sessions there, and use those that are there")
    parser.add_argument("--build-seconds", type=float, default=BUILD_SECONDS, help="for one session, at most")
    parser.add_argument("--no-postgres", action="store_true", help="SQLite alone")
    asked = parser.parse_args(arguments_given)
    (run,) = choose_runs(asked.folder, messages=asked.agent_messages, most=1).values()
    found = measure(
        asked.sizes,
        run,
        turns=asked.turns,
        directory=asked.directory,
        most_seconds=asked.build_seconds,
        postgres=not asked.no_postgres,
    )
    report = report_of(found)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
