"""The work of `tiered-memory ask`, `facts`, `correct` and `rate`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from langchain_tiered_memory.cli.context_view import account, content
from langchain_tiered_memory.cli.opening import existing_session, open_memory
from langchain_tiered_memory.cli.screen import grid, out, print_json, say, short
from langchain_tiered_memory.cli.surroundings import say_gaps
from langchain_tiered_memory.settings import Settings, TreeSettings
from langchain_tiered_memory.summaries.marks import RULES
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Fact, Verdict


def print_context(
    db: str,
    session_id: str,
    question: str,
    *,
    max_tokens: int,
    view: Literal["recall", "default"],
    brief: bool,
    no_embeddings: bool,
    read_only: bool,
    as_json: bool,
) -> None:
    """Print the context for `question`; no model is called.

    Raises:
        NotFoundError: when there is no such database or session.
        BudgetError: when the budget cannot hold what must be shown.
    """
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True, read_only=read_only) as memory:
        if not no_embeddings:
            say_gaps(memory.status())
        context = existing_session(memory, session_id).context(question, max_tokens=max_tokens, view=view)
    if as_json:
        print_json(context)
        return
    console = out()
    console.print(account(context))
    for part in content(context, brief=brief):
        console.print(part)


def print_facts(db: str, session_id: str, question: str | None, *, k: int, superseded: bool, to_json: bool) -> None:
    """Print a session's facts.

    Raises:
        NotFoundError: when there is no such database or session.
    """
    with open_memory(db, no_embeddings=True, must_exist=True, read_only=True) as memory:
        found = existing_session(memory, session_id).facts(question, k=k, superseded=superseded)
    if to_json:
        print_json(found)
        return
    table = grid("what is stated", "id")
    for name in ("fact", "by", "since", "messages"):
        table.add_column(name)
    for fact in found:
        table.add_row(
            short(fact.id),
            Text(_said(fact)),
            Text(fact.speaker or fact.by),
            f"{utc(fact.at):%Y-%m-%d}",
            Text(", ".join(map(short, fact.message_ids))),
        )
    out().print(table)


def _said(fact: Fact) -> str:
    return fact.text if fact.status == "active" else f"{fact.text} (superseded)"


def correct_fact(db: str, session_id: str, fact_id: str, statement: str, *, to_json: bool) -> None:
    """Correct a fact, and print the new one.

    Raises:
        NotFoundError: when there is no such database, session or fact.
        InvalidInputError: when the statement cannot take its place.
    """
    with open_memory(db, must_exist=True) as memory:
        session = existing_session(memory, session_id)
        new = session.correct(fact_id, statement)
        session.flush()
    if to_json:
        print_json(new)
        return
    say(f"{short(new.id)}: {new.text}", where=out())
    undo = f"tiered-memory forget {shlex.quote(db)} {shlex.quote(session.session_id)} -m {short(new.message_ids[0])}"
    say(f"To undo it: {undo}", style="dim")


def rate_summary(
    db: str, session_id: str, summary_id: str, verdict: Verdict, *, note: str | None, to_json: bool
) -> None:
    """Rate a summary, have rules write theirs again, and print it; what a model wrote waits for its program.

    Raises:
        NotFoundError: when there is no such database, session or summary.
        InvalidInputError: when the summary is not one, or not written yet, or is good and has a note.
    """
    quiet = Settings(tree=TreeSettings(background=False))
    with open_memory(db, must_exist=True, settings=quiet) as memory:
        session = existing_session(memory, session_id)
        rated = session.rate(summary_id, verdict, note=note)
        if rated.stale and rated.model == RULES and not rated.by_rules:
            session.flush()
            rated = next(one for one in session.tree().summaries if one.id == rated.id)
    if to_json:
        print_json(rated)
        return
    say(f"{short(rated.id)}: called {verdict}", where=out())
    if rated.stale:
        say(f"{rated.model} makes it again the next time that its program has the session.", style="dim")
    elif verdict != "good":
        say(rated.text, where=out())
