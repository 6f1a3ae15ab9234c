"""Knows messages again that a client sends once more under other ids.

Without a checkpointer it is the client that keeps the conversation, and many send all of it each time. Messages without
ids get new ones from LangGraph then, so ids alone would store the conversation again at each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from langchain_tiered_memory.decisions.drafting import redacted
from langchain_tiered_memory.decisions.message_text import answers_of, calls_of, role_of, text_of
from langchain_tiered_memory.decisions.messages import decode
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.graph_faces.branches import stored_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.records import Entry, SessionRef

_Said: TypeAlias = tuple[str, str, tuple[str, ...], str | None]
"""Role, text, ids of calls, id of the call that is answered."""
_MOST_READ = 4096
"""Newest messages of a transcript among which a list's beginning is looked for, at least."""


def recognised(session: Session, messages: Sequence[BaseMessage]) -> Flow[list[BaseMessage]]:
    """The list with what the transcript ends with, where the list begins so, as the transcript has it.

    What stands behind the last answer of the transcript may be missing from the list: turns that failed. So may all
    tool work, which many clients never see. A system message counts for itself: clients put it before the newest part
    of a conversation, and word it anew with the time of day.

    Args:
        session: On the track of the list.
        messages: A list whose ids may be new each time, each message with one. Clients may keep the ids of some alone.
    """
    house = session._house  # noqa: SLF001 - one face in several modules
    ref = yield from do(house.store.transcript.find, session.session_id)
    if ref is None:
        return list(messages)
    redact = house.settings.redact
    said = [_said_by(one if redact is None else redacted(one, redact)) for one in messages]
    known = yield from _talked(session, ref, said, is_work_aside=False)
    if not known:
        known = yield from _talked(session, ref, said, is_work_aside=True)
    known |= yield from _prompts(session, ref, said)
    own = yield from stored_of(session, messages)
    return [
        decode(known[place].payload) if place in known and one.id not in own else one
        for place, one in enumerate(messages)
    ]


def _talked(session: Session, ref: SessionRef, said: Sequence[_Said], *, is_work_aside: bool) -> Flow[dict[int, Entry]]:
    """The list's beginning as the transcript has it, by the place in the list."""
    places = [place for place, one in enumerate(said) if _counts(one, is_work_aside=is_work_aside)]
    for ending in (yield from _endings(session, ref, len(places), is_work_aside=is_work_aside)):
        count = _overlap([said[place] for place in places], [_said_in(entry) for entry in ending])
        if count:
            return dict(zip(places, ending[len(ending) - count :], strict=False))
    return {}


def _endings(session: Session, ref: SessionRef, wanted: int, *, is_work_aside: bool) -> Flow[list[list[Entry]]]:
    """What the transcript ends with, and the same up to its last answer: as many as are `wanted`, where there are."""
    transcript = session._house.store.transcript  # noqa: SLF001
    limit = max(wanted, 1)
    while True:
        newest = yield from do(transcript.entries, ref, track=session.track, newest_first=True, limit=limit)
        entries = [one for one in reversed(newest) if _counts(_said_in(one), is_work_aside=is_work_aside)]
        answered = max((at for at, entry in enumerate(entries, start=1) if entry.role == "assistant"), default=0)
        if answered >= wanted or len(newest) < limit or limit >= _MOST_READ:
            return [entries, entries[:answered]]
        limit *= 4


def _prompts(session: Session, ref: SessionRef, said: Sequence[_Said]) -> Flow[dict[int, Entry]]:
    """The list's system messages that the transcript has among its first or its newest, by their place."""
    places = [place for place, one in enumerate(said) if one[0] == "system"]
    if not places:
        return {}
    transcript = session._house.store.transcript  # noqa: SLF001
    first = yield from do(transcript.entries, ref, track=session.track, limit=len(said))
    newest = yield from do(transcript.entries, ref, track=session.track, newest_first=True, limit=len(said))
    there = {_said_in(entry): entry for entry in (*newest, *first) if entry.role == "system"}
    return {place: there.pop(said[place]) for place in places if said[place] in there}


def _counts(said: _Said, *, is_work_aside: bool) -> bool:
    role, _, calls, _ = said
    return role != "system" and not (is_work_aside and (calls or role == "tool"))


def _said_by(message: BaseMessage) -> _Said:
    return role_of(message), text_of(message), calls_of(message), answers_of(message)


def _said_in(entry: Entry) -> _Said:
    return entry.role, entry.text, entry.calls, entry.answers


def _overlap(first: Sequence[_Said], last: Sequence[_Said]) -> int:
    """Length of the longest beginning of `first` that `last` ends with, in linear time (Knuth, Morris and Pratt)."""
    fallback = [0] * len(first)
    count = 0
    for at in range(1, len(first)):
        while count and first[at] != first[count]:
            count = fallback[count - 1]
        count += first[at] == first[count]
        fallback[at] = count
    count = 0
    for one in last if first else ():
        if count == len(first):
            count = fallback[count - 1]
        while count and one != first[count]:
            count = fallback[count - 1]
        count += one == first[count]
    return count
