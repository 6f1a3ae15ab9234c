"""The work of `tiered-memory inspect`, `verify` and `reindex`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from langchain_tiered_memory.cli.opening import existing_session, open_memory, session_ids
from langchain_tiered_memory.cli.replay_report import level_table
from langchain_tiered_memory.cli.screen import out, plural, print_json
from langchain_tiered_memory.records import Entry, utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.records import SessionMetrics, Summary, VerifyReport


def inspect_database(db: str, session_id: str | None, node: str | None, *, to_json: bool) -> None:
    """Print the sessions of a database, one session, or one summary of it.

    Raises:
        NotFoundError: when there is no such database, session or summary.
    """
    with open_memory(db, no_embeddings=True, must_exist=True) as memory:
        if session_id is None:
            metrics = [memory.session(known).metrics() for known in session_ids(memory)]
            if to_json:
                print_json(metrics)
            else:
                _show_sessions(metrics)
            return
        session = existing_session(memory, session_id)
        if node is not None:
            _inspect_node(session, node, to_json=to_json)
        elif to_json:
            print_json(session.metrics())
        else:
            _show_session(session.metrics())


def verify_database(db: str, *, no_embeddings: bool, to_json: bool) -> bool:
    """Print what `verify()` found; whether all is well.

    Raises:
        NotFoundError: when there is no such database.
    """
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True) as memory:
        report = memory.verify()
    if to_json:
        print_json(report)
    else:
        _show_report(report)
    return report.healthy


def reindex_database(db: str, *, no_embeddings: bool, to_json: bool) -> None:
    """Build the indexes anew and print what is in them then.

    Raises:
        NotFoundError: when there is no such database.
    """
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True) as memory:
        memory.rebuild_index()
        _finish(memory)
        report = memory.verify()
    if to_json:
        print_json(report)
    else:
        _show_report(report)


def _finish(memory: TieredMemory) -> None:
    """Wait for vectors that are still to be embedded."""
    for known in session_ids(memory):
        memory.session(known).flush()


def _show_report(report: VerifyReport) -> None:
    console = out()
    checked = ", ".join(
        (
            plural(report.sessions, "session"),
            plural(report.entries, "message"),
            plural(report.summaries, "summary"),
            plural(report.passages, "passage"),
            plural(report.vectors, "vector"),
        )
    )
    if report.healthy:
        console.print(Text.assemble(("all is well: ", "green"), checked))
        return
    table = Table(title=f"{plural(len(report.problems), 'problem')} in {checked}", title_justify="left", pad_edge=False)
    for name in ("kind", "where", "what"):
        table.add_column(name, overflow="fold")
    for problem in report.problems:
        table.add_row(Text(problem.kind), Text(problem.what), Text(problem.detail))
    console.print(table)


def _show_sessions(metrics: Sequence[SessionMetrics]) -> None:
    table = Table(title=plural(len(metrics), "session"), title_justify="left", pad_edge=False)
    table.add_column("session", overflow="fold")
    for name in ("messages", "tokens", "summaries", "cover saves", "to mend"):
        table.add_column(name, justify="right")
    for one in metrics:
        by_level = " + ".join(str(level.summaries) for level in one.levels) or "0"
        to_mend = one.failed + one.degraded + one.stale
        table.add_row(
            Text(one.session_id),
            f"{one.messages:,}",
            f"{one.tokens:,}",
            by_level,
            f"{one.overall_ratio:.0%}",
            f"{to_mend}",
        )
    out().print(table)


def _show_session(metrics: SessionMetrics) -> None:
    console = out()
    console.print(f"{plural(metrics.messages, 'message')}, {metrics.tokens:,} tokens")
    console.print(level_table(metrics))
    if metrics.kept_identifiers is not None:
        console.print(f"identifiers kept by the summaries: {metrics.kept_identifiers:.0%}")
    for count, name in ((metrics.failed, "failed"), (metrics.degraded, "degraded"), (metrics.stale, "stale")):
        if count:
            console.print(f"{plural(count, 'summary')} {name}", style="yellow")


def _inspect_node(session: Session, node: str, *, to_json: bool) -> None:
    below = session.expand(node)
    if to_json:
        print_json(below)
        return
    console = out()
    for item in below:
        console.print(Rule(Text(_title(item), style="bold"), align="left", style="dim"))
        console.print(Padding(Text(item.text), (0, 0, 0, 2)))


def _title(item: Summary | Entry) -> str:
    if isinstance(item, Entry):
        return f"{item.id}  {item.name or item.role}  {utc(item.at):%Y-%m-%d %H:%M}"
    span = f"{utc(item.first_at):%Y-%m-%d %H:%M} to {utc(item.last_at):%Y-%m-%d %H:%M}"
    return f"{item.id}  level {item.level}, {plural(item.entry_count, 'message')}, {span}"
