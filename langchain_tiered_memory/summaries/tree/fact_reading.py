"""Reads the facts of summaries that wait for it: their messages are read again, and no model is asked.

A summary waits whose facts were never read (it was made before facts were rows) or of which a message was edited. Such
a database's summaries of every level carry a list of facts, which goes at the same time: what counts from then on is
their text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import stop_point
from langchain_tiered_memory.summaries.facts.reading import read_facts
from langchain_tiered_memory.summaries.facts.signs import SURE
from langchain_tiered_memory.summaries.facts.values import announces_change
from langchain_tiered_memory.summaries.facts.written import facts_written, has_statements, stated_in
from langchain_tiered_memory.summaries.marks import RULES, is_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import Written
    from langchain_tiered_memory.types.records import Entry, Fact, SessionRef, Summary

_AT_ONCE = 4
"""Summaries looked up together: enough that one which cannot be read now does not hold up the next."""
_READ_ON_DEMAND = 1000
"""Messages. What waits for its summary is mostly far less: the rest of one chunk on each track."""


def read_what_waits(runtime: Runtime, ref: SessionRef, *, is_over: Callable[[], bool] = lambda: False) -> Flow[None]:
    """Read the facts of every summary of a session that waits for it, until `is_over` says so behind one of them."""
    seen = set[str]()
    while _read_next(runtime, ref, seen):
        yield from stop_point()
        if is_over():
            break


def _read_next(runtime: Runtime, ref: SessionRef, seen: set[str]) -> bool:
    """Read the facts of the oldest summary that waits, each once; `False` where none does, or none can be read now."""
    with runtime.store.database.snapshot():
        # Looked up each time: what is written between reading and writing is seen by the session's epoch.
        now = runtime.store.transcript.find(ref.session_id)
        waiting = runtime.store.facts.unread(now, _AT_ONCE) if now is not None else []
    summary = next((one for one in waiting if one.id not in seen), None)
    if now is None or summary is None:
        return False
    seen.add(summary.id)  # one whose session was written to meanwhile waits for the next time
    runtime.store.facts.replace(now, summary, facts_of_summary_again(runtime, now, summary))
    return True


def facts_not_kept_yet(runtime: Runtime, ref: SessionRef) -> list[Fact]:
    """What rules read now in the newest messages that no summary stands for: it is kept when they are summarised."""
    tracks: dict[str, list[Entry]] = {}
    for entry in reversed(runtime.store.transcript.not_summarised(ref, limit=_READ_ON_DEMAND)):
        tracks.setdefault(entry.track, []).append(entry)
    return [fact for entries in tracks.values() for fact in facts_of_chunk(entries)]


def facts_of_summary_again(runtime: Runtime, ref: SessionRef, summary: Summary) -> tuple[Fact, ...]:
    """The facts of a finished summary, from its messages and its text; none above level 1."""
    if summary.level > 1:
        return ()
    entries = runtime.store.transcript.by_id(ref, summary.sources, track=summary.track)
    facts = tuple(facts_of_chunk(entries))
    # The text of a stale one says what a message said before it was edited.
    return facts if summary.stale else facts_from(summary.text, entries, facts, by_rules=is_read_by_rules(summary))


def facts_of_chunk(entries: Sequence[Entry]) -> list[Fact]:
    """The facts of the messages of one summary; the first ask of a conversation that begins with them is its goal."""
    first_user = next((entry.seq for entry in entries if entry.role == "user"), None)
    is_beginning = bool(entries) and entries[0].seq <= 2  # noqa: PLR2004 - a system prompt may stand before it
    return read_facts(entries, goal_seq=first_user if is_beginning else None)


def is_read_by_rules(one: Summary | Written) -> bool:
    """Whether the messages of a summary are read, and not its statements: rules wrote it, it stands in, or is prose."""
    return one.degraded or one.model == RULES or not has_statements(one.text)


def facts_from(text: str, entries: Sequence[Entry], known: Sequence[Fact], *, by_rules: bool) -> tuple[Fact, ...]:
    """The facts of a level-1 summary, from its text, its messages and what rules read in these.

    Where it is read `by_rules`, what they read counts, and what the text states counts once more. Else the text's own
    statements do, and of `known` the goal and a person's corrections. Where nothing is marked, as not every model
    follows its instructions, what rules are sure of, and what tells of a change, stands before a statement that says
    the same: it tells what it ends.
    """
    written: tuple[Fact, ...] = ()
    if not by_rules:
        written = facts_written(text, entries)
        if is_kept(text):
            return (*filter(_stays, known), *written)
        known = [one for one in known if _stays(one) or one.weight >= SURE or announces_change(one.text)]
        told = stated_in("\n".join(one.text for one in known), written)
        written = tuple(one for one, is_told in zip(written, told, strict=True) if not is_told)
    again = stated_in(text, known)
    counted = (replace(one, mentions=one.mentions + is_told) for one, is_told in zip(known, again, strict=True))
    return (*counted, *written)


def _stays(fact: Fact) -> bool:
    """Whether a fact counts whatever a model writes: the goal, and what a person said in the place of another."""
    return fact.kind == "goal" or bool(fact.instead_of)
