"""Which messages of a graph's list the transcript already has, perhaps under other ids, and which were forgotten.

Without a checkpointer, the client keeps the conversation, and many clients send all of it each time. LangGraph then
gives messages without ids new ones, so matching by id alone would store the conversation again at each call.

LangGraph's checkpoints and clients still have forgotten messages, and send them. Ids alone do not identify them,
because a new conversation may number its messages from one again. Words alone do not either, because people repeat
themselves. But new messages come after old ones.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.graph.tracks import handed_down_from
from langchain_tiered_memory.messages.codec import encode
from langchain_tiered_memory.messages.groups import just_said, overlap
from langchain_tiered_memory.messages.ingest import redacted
from langchain_tiered_memory.messages.message_text import answers_of, calls_of, role_of, text_of
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.sql.schema import WORKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.transcript.tombstones import Tombstone
    from langchain_tiered_memory.types.records import Entry, SessionRef

_Said: TypeAlias = tuple[str, str, tuple[str, ...], str | None]
"""Role, text, ids of calls, and id of the answered call."""
SAID_PREFIX = "said-"
"""Prefix of ids that are made from a message's words and how often they were said before."""
_MOST_READ = 4096
"""The least number of a transcript's newest messages that are searched for a list's beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A message of the track, or what is left of a forgotten one."""

    seq: int
    said: _Said
    """For a forgotten message, the key of the list's message with the same words, else a key that no message has."""
    role: str
    entry: Entry | None = None


def recognised(
    session: Session, messages: Sequence[BaseMessage], *, sent: int | None = None
) -> tuple[list[BaseMessage], frozenset[str]]:
    """The list, in which messages that the transcript ends with are as the transcript has them.

    The ids of forgotten messages are returned with it. A run that has stored the first `sent` messages of the list said
    the others itself: they are new, whatever their words.

    The list may lack what follows the transcript's last answer (failed turns), and all tool work, which many clients
    never see. A system message is matched by itself: clients put it before the newest part of a conversation, and
    reword it with the time of day.

    A client that asks its last question again, or another in its place, sends a list that the transcript has in its
    middle. It is recognised up to that question.

    A forgotten message keeps its place among the others, so that they are recognised. It is named as forgotten unless
    the current turn says it: then it is new.
    """
    runtime = session.core.runtime
    ref = session.core.ref
    tombstones = runtime.store.tombstones
    has_forgotten = bool(tombstones.newest(session.session_id, track=session.track, limit=1))
    if ref is None and not has_forgotten:
        return list(messages), frozenset()
    redact = runtime.settings.redact
    plain = messages if redact is None else [redacted(one, redact) for one in messages]
    said = [(role_of(one), text_of(one), calls_of(one), answers_of(one)) for one in plain]
    digests = [
        tombstones.digest_of_said(session.session_id, role=role, text=text, calls=calls, answers=answers)
        for role, text, calls, answers in (said if has_forgotten else ())
    ]
    words = dict(zip(digests, said, strict=False))
    earlier = range(just_said(messages))
    lines: dict[int, _Line] = {}
    resent = said[:sent]
    for find in (partial(_talked, session, ref, resent, words), partial(_within, session, ref, resent, words, earlier)):
        lines = lines or find(is_work_aside=False) or find(is_work_aside=True)
    known = {place: line.entry for place, line in lines.items() if line.entry is not None}
    known |= _prompts(session, ref, said)
    own = stored_of(session, messages)
    gone: frozenset[bytes] = frozenset()
    if has_forgotten:
        gone = tombstones.said(session.session_id, digests, tracks=handed_down_from(session.track))
    found = [
        message_or_stand_in(known[place])[0] if place in known and one.id not in own else one
        for place, one in enumerate(messages)
    ]
    forgotten = frozenset(
        str(one.id)
        for place, one in enumerate(messages[: just_said(messages)] if gone else ())
        if digests[place] in gone and place not in known and one.id not in own and said[place][0] != "system"
    )
    if len(found) > 1 and found[-1] is messages[-1]:
        before = known.get(len(found) - 2) or own.get(str(found[-2].id))
        found[-1] = _new_answer(found[-1], found[-2], own.get(str(found[-1].id)), before)
    return found, forgotten


def _new_answer(message: BaseMessage, previous: BaseMessage, there: Entry | None, before: Entry | None) -> BaseMessage:
    """The list's last message. It gets its own id if it answers something newer than the message that has its id.

    Cached answers carry the id of their first use. The same list gives the same id again.
    """
    if there is None or there.role != "assistant" or (before is not None and before.seq < there.seq):
        return message
    place = hashlib.blake2b(str(previous.id).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return message.model_copy(update={"id": f"{message.id}-{place}"})


def _talked(
    session: Session,
    ref: SessionRef | None,
    said: Sequence[_Said],
    words: Mapping[bytes, _Said],
    *,
    is_work_aside: bool,
) -> dict[int, _Line]:
    """The list's beginning as the transcript has it, by place in the list.

    It is matched with the end of the transcript, and with the transcript up to its last answer, over as many messages
    as the list has if there are that many.
    """
    places = [place for place, one in enumerate(said) if _counts(_role_in(one), is_work_aside=is_work_aside)]
    limit = max(len(places), 1)
    while True:
        newest, is_all = _newest(session, ref, words, limit)
        lines = [one for one in newest if _counts(one.role, is_work_aside=is_work_aside)]
        answered = max((at for at, one in enumerate(lines, start=1) if one.role in {"assistant", WORKS}), default=0)
        if answered >= len(places) or is_all or limit >= _MOST_READ:
            break
        limit *= 4
    for ending in (lines, lines[:answered]):
        count = overlap([said[place] for place in places], [line.said for line in ending])
        if count:
            return dict(zip(places, ending[len(ending) - count :], strict=False))
    return {}


def _within(
    session: Session,
    ref: SessionRef | None,
    said: Sequence[_Said],
    words: Mapping[bytes, _Said],
    earlier: Sequence[int],
    *,
    is_work_aside: bool,
) -> dict[int, _Line]:
    """The list's `earlier` messages as the transcript last has all of them, by place in the list."""
    places = [place for place in earlier[: len(said)] if _counts(_role_in(said[place]), is_work_aside=is_work_aside)]
    wanted, limit, is_all = [said[place] for place in places], len(places), not places
    while not is_all and limit < _MOST_READ:
        limit *= 4
        newest, is_all = _newest(session, ref, words, limit)
        lines = [one for one in newest if _counts(one.role, is_work_aside=is_work_aside)]
        for start in range(len(lines) - len(places), -1, -1):
            there = lines[start : start + len(places)]
            if [line.said for line in there] == wanted:
                return dict(zip(places, there, strict=True))
    return {}


def _newest(
    session: Session, ref: SessionRef | None, words: Mapping[bytes, _Said], limit: int
) -> tuple[list[_Line], bool]:
    """The end of the track with forgotten messages in their places, oldest first, and whether it is the whole track."""
    store = session.core.runtime.store
    entries: list[Entry] = []
    if ref is not None:
        entries = store.transcript.entries(ref, track=session.track, newest_first=True, limit=limit)
    gone: list[Tombstone] = []
    if words:
        gone = store.tombstones.newest(session.session_id, track=session.track, limit=limit)
    lines = [_Line(seq=one.seq, said=_said_in(one), role=_role_in(_said_in(one)), entry=one) for one in entries]
    for one in gone:
        said_by_nobody: _Said = ("forgotten", str(one.seq), (), None)
        lines.append(_Line(seq=one.seq, said=words.get(one.said, said_by_nobody), role=one.role))
    since = max((found[-1].seq for found in (entries, gone) if len(found) == limit), default=0)
    return sorted((one for one in lines if one.seq >= since), key=lambda one: one.seq), not since


def _prompts(session: Session, ref: SessionRef | None, said: Sequence[_Said]) -> dict[int, Entry]:
    """The list's system messages that are among the transcript's first or newest messages, by place."""
    places = [place for place, one in enumerate(said) if one[0] == "system"]
    if not places or ref is None:
        return {}
    transcript = session.core.runtime.store.transcript
    first = transcript.entries(ref, track=session.track, limit=len(said))
    newest = transcript.entries(ref, track=session.track, newest_first=True, limit=len(said))
    prompts = {entry.seq: entry for entry in (*first, *newest) if entry.role == "system"}
    left: dict[_Said, list[Entry]] = {}
    for _, entry in sorted(prompts.items()):
        left.setdefault(_said_in(entry), []).append(entry)
    return {place: left[said[place]].pop(0) for place in places if left.get(said[place])}


def _role_in(said: _Said) -> str:
    """The role in a tombstone's words."""
    return WORKS if said[2] else said[0]


def _counts(role: str, *, is_work_aside: bool) -> bool:
    return role != "system" and not (is_work_aside and role in {WORKS, "tool"})


def _said_in(entry: Entry) -> _Said:
    return entry.role, entry.text, entry.calls, entry.answers


def ids_of(messages: Sequence[BaseMessage]) -> list[str]:
    """The ids of a state's messages, as `named` returned them."""
    return [str(one.id) for one in messages]


def stored_of(session: Session, messages: Sequence[BaseMessage]) -> dict[str, Entry]:
    """The entries of these messages on this track, by their id in the state."""
    ref = session.core.ref
    if ref is None:
        return {}
    entries = session.core.runtime.store.transcript.by_id(ref, ids_of(messages), track=session.track)
    mine = {entry.id: entry for entry in entries}
    return {one: mine[one] for one in ids_of(messages) if one in mine}


def forgotten_in(
    session: Session,
    ref: SessionRef | None,
    messages: Sequence[BaseMessage],
    known: frozenset[str],
    *,
    remembered: int,
) -> frozenset[str]:
    """Ids of the list's messages that were forgotten, besides those that are `known`.

    A message was forgotten if its id was forgotten with the same words, or if it comes before another old message. Ids
    made from words do not identify a message: after everything that was stored, the same words are new. `remembered` is
    how many messages of the list, from its beginning, were stored before. It is 0 if that is not known.
    """
    left = [one for one in messages if one.id not in known]
    if not left or (ref is not None and not ref.has_forgotten):
        return frozenset()
    runtime, track, tracks = session.core.runtime, session.track, handed_down_from(session.track)
    names, buried = ids_of(messages), runtime.store.tombstones.named(session.session_id, ids_of(left), tracks=tracks)
    there = stored_of(session, messages) if buried else {}
    suspects = [place for place, name in enumerate(names) if name not in there and name in buried]
    if not suspects:
        return frozenset()
    pairs = [(names[place], said) for place in suspects for said in _digests(session, messages[place])]
    worded = runtime.store.tombstones.worded(session.session_id, pairs, tracks=tracks)
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
            "and are not stored again; to store them again, give them new ids",
            session_id=session.session_id,
            message_ids=unexpected[:20],
        )
    return frozenset(names[place] for place in gone)


def _digests(session: Session, message: BaseMessage) -> list[str]:
    """The message's words, plain and redacted: redaction may have been switched on or off since."""
    redact = session.core.runtime.settings.redact
    whole = encode(message).digest
    return [whole] if redact is None else [whole, encode(redacted(message, redact)).digest]
