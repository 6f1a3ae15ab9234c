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
    from langchain_tiered_memory.records import Entry

_Said: TypeAlias = tuple[str, str, tuple[str, ...], str | None]


def recognised(session: Session, messages: Sequence[BaseMessage]) -> Flow[list[BaseMessage]]:
    """The list with what the transcript ends with, where the list begins so, as the transcript has it.

    What stands behind the last answer of the transcript may be missing from the list: a turn that failed.

    Args:
        session: On the track of the list.
        messages: A list whose ids may be new each time, each message with one.
    """
    house = session._house  # noqa: SLF001 - one face in several modules
    ref = yield from do(house.store.transcript.find, session.session_id)
    if ref is None or not messages or (yield from stored_of(session, messages[:1])):
        return list(messages)
    newest = yield from do(
        house.store.transcript.entries, ref, track=session.track, newest_first=True, limit=len(messages)
    )
    entries = list(reversed(newest))
    redact = house.settings.redact
    said = [_said_by(one if redact is None else redacted(one, redact)) for one in messages]
    answered = max((at for at, entry in enumerate(entries, start=1) if entry.role == "assistant"), default=0)
    for ending in (entries, entries[:answered]):
        count = _overlap(said, [_said_in(entry) for entry in ending])
        if count:
            return [*(decode(entry.payload) for entry in ending[len(ending) - count :]), *messages[count:]]
    return list(messages)


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
