"""The work of `tiered-memory inspect`, `verify`, `reindex` and `doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from langchain_tiered_memory.cli.context_view import level_lines
from langchain_tiered_memory.cli.opening import cover_of, existing_session, open_memory, summary_of
from langchain_tiered_memory.cli.screen import far, grid, out, plural, print_json, waiting
from langchain_tiered_memory.types.records import Entry, utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.reports import Problem, SessionMetrics, VerifyReport
    from langchain_tiered_memory.types.records import Summary

_SHORT_ID = 8
"""As contexts name summaries; any longer beginning of an id is understood too."""
_UUID_CHARACTERS = 36
"""Most session ids are at most this long, and are of no use broken in two; the table then fits 80 columns."""


def inspect_database(db: str, session_id: str | None, node: str | None, *, to_json: bool) -> None:
    """Print the sessions of a database, one session, or one summary of it.

    Raises:
        NotFoundError: when there is no such database, session or summary.
    """
    with open_memory(db, must_exist=True, read_only=True) as memory:
        if session_id is None:
            metrics = [memory.session(known).metrics() for known in memory.sessions()]
            if to_json:
                print_json(metrics)
            else:
                _show_sessions(metrics)
            return
        session_id = existing_session(memory, session_id).session_id
        if node is not None:
            _inspect_node(memory, session_id, node, to_json=to_json)
        else:
            _inspect_session(memory, session_id, to_json=to_json)


def verify_database(db: str, *, no_embeddings: bool, read_only: bool, to_json: bool) -> bool:
    """Print what `verify()` found; whether all is well.

    Raises:
        NotFoundError: when there is no such database.
    """
    with (
        open_memory(db, no_embeddings=no_embeddings, must_exist=True, read_only=read_only) as memory,
        far("verify") as how,
    ):
        report = memory.verify(progress=how)
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
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True) as memory, far("reindex") as how:
        report = memory.rebuild_index(progress=how)
    if to_json:
        print_json(report)
    else:
        _show_report(report)


def doctor_database(db: str, *, no_embeddings: bool, to_json: bool) -> bool:
    """Mend what is wrong and print what became of it; whether nothing is left.

    Raises:
        NotFoundError: when there is no such database.
    """
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True) as memory, waiting("doctor"):
        report = memory.doctor()
    if to_json:
        print_json(report)
        return report.healthy
    console = out()
    if not report.found:
        console.print("nothing is wrong", style="green")
    for problems, what, style in ((report.mended, "mended", "green"), (report.left, "left", "yellow")):
        if problems:
            console.print(_problem_table(problems, Text(f"{plural(len(problems), 'problem')} {what}", style=style)))
    _show_notes(report.notes)
    return report.healthy


def _show_notes(notes: Sequence[str]) -> None:
    for note in notes:
        out().print(Text(f"note: {note}", style="yellow"))


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
    else:
        console.print(_problem_table(report.problems, f"{plural(len(report.problems), 'problem')} in {checked}"))
    _show_notes(report.notes)


def _problem_table(problems: Sequence[Problem], title: str | Text) -> Table:
    table = grid(title, "kind")
    for name in ("where", "what"):
        table.add_column(name, overflow="fold")
    for problem in problems:
        table.add_row(Text(problem.kind), Text(problem.what), Text(problem.detail))
    return table


def _show_sessions(metrics: Sequence[SessionMetrics]) -> None:
    to_mend = [one.failed + one.degraded + one.stale for one in metrics]
    numbers = ("messages", "tokens", "summaries", "cover\nsaves", *(("to\nmend",) if any(to_mend) else ()))
    table = grid(plural(len(metrics), "session"), "session", numbers=numbers)
    longest = max((len(one.session_id) for one in metrics), default=0)
    table.columns[0].min_width = min(longest, _UUID_CHARACTERS)
    for one, faulty in zip(metrics, to_mend, strict=True):
        table.add_row(
            Text(one.session_id),
            f"{one.messages:,}",
            f"{one.tokens:,}",
            "+".join(str(level.summaries) for level in one.levels) or "0",
            f"{one.overall_ratio:.0%}",
            *([f"{faulty}"] if any(to_mend) else []),
        )
    out().print(table)


def _inspect_session(memory: TieredMemory, session_id: str, *, to_json: bool) -> None:
    metrics, cover = memory.session(session_id).metrics(), cover_of(memory, session_id)
    if to_json:
        print_json({"metrics": metrics, "cover": cover})
        return
    console = out()
    console.print(f"{plural(metrics.messages, 'message')}, {metrics.tokens:,} tokens\n")
    for part in level_lines(metrics):
        console.print(part)
    if metrics.kept_identifiers is not None:
        console.print(f"Identifiers kept by the summaries: {metrics.kept_identifiers:.0%}")
    for count, state in ((metrics.failed, "failed"), (metrics.degraded, "degraded"), (metrics.stale, "stale")):
        if count:
            console.print(f"{plural(count, 'summary')} {state}", style="yellow")
    table = grid("what stands for the history", "summary", numbers=("level", "messages", "tokens"))
    for name in ("from", "to"):
        table.add_column(name)
    for summary in cover:
        span = (f"{utc(moment):%Y-%m-%d %H:%M}" for moment in (summary.first_at, summary.last_at))
        table.add_row(
            summary.id[:_SHORT_ID], str(summary.level), f"{summary.entry_count:,}", f"{summary.tokens:,}", *span
        )
    console.print(table)


def _inspect_node(memory: TieredMemory, session_id: str, node: str, *, to_json: bool) -> None:
    summary = summary_of(memory, session_id, node)
    sources = memory.session(session_id).expand(summary.id)
    if to_json:
        print_json({"summary": summary, "sources": sources})
        return
    console = out()
    for item in (summary, *sources):
        console.print(Rule(Text(_title(item), style="bold"), align="left", style="dim"))
        console.print(Padding(Text(item.text), (0, 0, 0, 2)))


def _title(item: Summary | Entry) -> str:
    if isinstance(item, Entry):
        return f"{item.id}  {item.name or item.role}  {utc(item.at):%Y-%m-%d %H:%M}"
    span = f"{utc(item.first_at):%Y-%m-%d %H:%M} to {utc(item.last_at):%Y-%m-%d %H:%M}"
    messages = plural(item.entry_count, "message")
    return f"{item.id[:_SHORT_ID]}  level {item.level}, {item.strategy}, {messages}, {span}"
