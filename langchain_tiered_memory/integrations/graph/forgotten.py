"""Which messages of a graph's list were forgotten: LangGraph's checkpoints and clients still have them, and send them.

Ids alone do not tell: a new conversation may count its messages from one again. Words alone do not either: people say
the same things again. But what is new stands behind what is old.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import encode
from langchain_tiered_memory.messages.ingest import redacted
from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.memory import Session

SAID_PREFIX = "said-"
"""Begins ids that are made from what a message says, and from how often that was said before."""


def handed_down_from(track: str) -> list[str]:
    """The tracks whose forgotten messages a list on this one may still have: its own, and those above it.

    A list is handed down from graph to sub-graph. What a sub-graph forgot says nothing of the graph's own messages.
    """
    return [DEFAULT_TRACK, *(above for above in accumulate(track.split("|"), "{}|{}".format) if above != DEFAULT_TRACK)]


def just_said(messages: Sequence[BaseMessage]) -> int:
    """The place from which on a list is of the present turn: its last user messages, and what came of them.

    All of a list without a user message is.
    """
    last = max((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), default=0)
    while last and isinstance(messages[last - 1], HumanMessage):
        last -= 1
    return last


def forgotten_in(
    session: Session,
    messages: Sequence[BaseMessage],
    buried: frozenset[str],
    there: frozenset[str],
    *,
    remembered: int,
) -> frozenset[str]:
    """Ids of the list's messages that were forgotten.

    A message was, when its id was forgotten with the words that it has, or stands in front of another old one. Ids that
    are made from words are no names: what was said after all that was remembered is said anew under them.

    Args:
        session: On the track of the list.
        messages: The list, each with its id.
        buried: Ids under which messages of the session were forgotten, of all that these may have.
        there: Ids of the list's messages that stand in the transcript.
        remembered: How many of the list were remembered before, from its beginning; 0 where that is not known.
    """
    runtime, track = session.core.runtime, session.track
    names = [str(one.id) for one in messages]
    suspects = [place for place, name in enumerate(names) if name not in there and name in buried]
    if not suspects:
        return frozenset()
    pairs = [(names[place], said) for place in suspects for said in _digests(session, messages[place])]
    worded = runtime.store.tombstones.worded(session.session_id, pairs, tracks=handed_down_from(track))
    new_from = remembered or just_said(messages)
    by_words = {place for place in suspects if names[place].startswith(SAID_PREFIX)}
    exact = {place for place in suspects if names[place] in worded} - by_words
    gone = exact | {place for place in by_words if place < new_from}
    stored = {place for place, name in enumerate(names) if name in there}
    border = max(remembered, *(place + 1 for place in gone | stored), 0)
    gone |= {place for place in suspects if place < border} - by_words
    last = runtime.store.tombstones.last_named(session.session_id, [names[place] for place in gone])
    ended = max((place for place in gone if names[place] in last), default=len(messages))
    # An answer that the session was forgotten before: it stands in the state, and was never stored.
    gone |= {place for place in range(ended + 1, just_said(messages)) if place not in stored}
    anew = [names[place] for place in by_words - gone]
    if anew:
        runtime.store.tombstones.lift(session.session_id, anew, track=track)
    unexpected = [names[place] for place in sorted(exact) if place >= new_from]
    if unexpected:
        runtime.report(
            EventName.FORGOTTEN_NOT_STORED,
            f"{len(unexpected)} messages at the end of the list were forgotten under the same id with the same words, "
            "and are not stored again; to say them anew, give them new ids",
            session_id=session.session_id,
            message_ids=unexpected[:20],
        )
    return frozenset(names[place] for place in gone)


def _digests(session: Session, message: BaseMessage) -> list[str]:
    """What the message says, as it is and as it is kept: redaction may have been switched on or off since."""
    redact = session.core.runtime.settings.redact
    whole = encode(message).digest
    return [whole] if redact is None else [whole, encode(redacted(message, redact)).digest]
