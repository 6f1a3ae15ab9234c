"""Takes messages in: read, counted and cut once, then written in one transaction. Durable when it returns.

An answer's id is no name: one from a cache carries the id of the call that filled it, and some models give every answer
the same. In a conversation that is written turn by turn (`as_turn`) an answer with a known id is therefore neither the
old one nor its edit. A question with a known id is new if something else was said since (`asked_anew`).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from itertools import takewhile
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import coerce, encode
from langchain_tiered_memory.messages.groups import just_said, overlap
from langchain_tiered_memory.messages.ingest import draft_of, redacted, redacted_as_kept
from langchain_tiered_memory.messages.message_text import role_of
from langchain_tiered_memory.models.message_counting import Calibration
from langchain_tiered_memory.transcript.outbox import write_if_possible
from langchain_tiered_memory.types.records import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import Appended, Follows, Incoming
    from langchain_tiered_memory.types.records import Entry, SessionRef


When = dt.datetime | float
"""A moment: a `datetime` (naive ones are taken as UTC) or seconds since the epoch."""


_IDS_NAMED = 20
"""Ids that an event names, at most."""


def remember(
    runtime: Runtime,
    session_id: str,
    messages: Sequence[object],
    *,
    user: str | None,
    title: str | None,
    track: str,
    at: When | Sequence[When] | None,
    kind: str | None,
    task: str | None,
    sent_tokens: int | None,
    begun_by: str | None = None,
    new_ids: frozenset[str] = frozenset(),
    checkpointer: str | None = None,
    as_given: bool = True,
    follows: Follows | None = None,
) -> tuple[list[str], Appended | None]:
    """Write messages and give the ids of those that stand in the transcript now: what was forgotten stays out.

    The session is made where it does not exist; `session_id` to `task` are as for `Session.add_messages`, and a task
    that is not given is the one started last on this track. `sent_tokens` are the raw tokens of the request that
    the last message answers, which teach the calibration. `begun_by` is the place in a graph whose sub-agent begins
    the session with it, and `checkpointer` what of LangGraph keeps the conversation too. Where one of `new_ids` is
    there already, or what they follow (`follows`) is not there as it was, nothing is written. What nests too deeply is
    refused where the messages are `as_given`; in an answer that was paid for it is kept as a text of JSON instead, and
    reported.
    """
    incoming: list[Incoming] = []
    for value, moment in zip(messages, _moments(at, len(messages), runtime.now()), strict=True):
        message, lost = coerce(value), tuple[str, ...]()
        if runtime.settings.redact is not None:
            message, lost = redacted_as_kept(message, runtime.settings.redact, as_given=as_given)
        item, problems = draft_of(
            message,
            counter=runtime.counter,
            message_id=message.id or uuid.uuid4().hex,
            at=moment,
            track=track,
            kind=kind,
            task=task,
            files=runtime.settings.files,
            as_given=as_given,
        )
        for problem in dict.fromkeys((*lost, *problems)):
            runtime.report(EventName.ARTIFACT_NOT_KEPT, problem, session_id=session_id, message_id=item.draft.id)
        incoming.append(item)
    if not incoming:
        return [], None
    appended = runtime.store.transcript.append(
        session_id,
        incoming,
        user=user,
        title=title,
        now=runtime.now(),
        begun_by=begun_by,
        new_ids=new_ids,
        checkpointer=checkpointer,
        joins_task=task is None,
        follows=follows,
    )
    if appended.is_taken:
        return [], appended
    if appended.left_out:
        left_out = [incoming[place].draft.id for place in sorted(appended.left_out)]
        runtime.report(
            EventName.FORGOTTEN_NOT_STORED,
            f"{len(left_out)} of {len(incoming)} messages were forgotten under the same id with the same words, and "
            "are not stored again; to store them again, give them new ids",
            session_id=session_id,
            message_ids=left_out[:_IDS_NAMED],
        )
    _calibrate(runtime, session_id, incoming, sent_tokens)
    return [item.draft.id for place, item in enumerate(incoming) if place not in appended.left_out], appended


def _moments(at: When | Sequence[When] | None, count: int, now: float) -> list[float]:
    if at is None:
        return [now] * count
    if isinstance(at, dt.datetime | float | int | str):
        return [_seconds(at)] * count
    moments = [_seconds(one) for one in at]
    if len(moments) != count:
        msg = f"{len(moments)} times were given for {count} messages: give one for all, or one for each"
        raise InvalidInputError(msg)
    return moments


def _seconds(moment: object) -> float:
    if isinstance(moment, dt.datetime):
        moment = (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()
    if isinstance(moment, float | int) and not isinstance(moment, bool) and EARLIEST <= moment <= LATEST:
        return float(moment)
    msg = f"{moment!r} is not a time: give a datetime, or seconds since the epoch"
    raise InvalidInputError(msg)


def _calibrate(runtime: Runtime, session_id: str, incoming: Sequence[Incoming], sent_tokens: int | None) -> None:
    reported = incoming[-1].draft.reported
    if sent_tokens is None or reported is None:
        return
    model, billed = reported
    counter = runtime.counter.fingerprint
    known = runtime.store.plans.calibration(model, counter)
    before = Calibration(ratio=known[0], samples=known[1]) if known is not None else Calibration()
    after = before.observe(sent_tokens, billed)
    if after != before:
        # The messages are written by now, and acknowledged: the next answer teaches the same.
        keep = runtime.store.plans.set_calibration
        write_if_possible(runtime, session_id, keep, model, counter, ratio=after.ratio, samples=after.samples)


_AGAIN = "-again-"
"""Between the id of a question and what it is asked again behind."""


def asked_behind(name: str, previous: str) -> str:
    """The id of a question that has the id `name` when it is asked again behind the message `previous`."""
    return f"{name}{_AGAIN}{hashlib.blake2b(previous.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def asked_anew(
    runtime: Runtime,
    ref: SessionRef | None,
    track: str,
    messages: Sequence[BaseMessage],
) -> list[BaseMessage]:
    """The list, in which messages of its current turn are new if something else was said since they were stored.

    A client asks a question again or edits it, or numbers its messages from one in each request. Under the old id, the
    new words would take the place of the old ones, before their answer, and the model would not be asked. The same
    list gives the same new id again while its turn goes on.
    """
    turn = takewhile(lambda one: role_of(one) == "user", messages[just_said(messages) :])
    names = [str(one.id) for one in turn]
    if ref is None or not names:
        return list(messages)
    transcript = runtime.store.transcript
    there = {entry.id: entry.seq for entry in transcript.by_id(ref, names, track=track)}
    if not there:
        return list(messages)
    newest = transcript.entries(ref, track=track, newest_first=True, limit=2 * len(messages) + 1)
    ids, again = {str(one.id) for one in messages}, tuple(f"{one}{_AGAIN}" for one in there)
    since = next((one for one in newest if one.id not in ids and not one.id.startswith(again)), None)
    if since is None:
        return list(messages)
    anew = {one: asked_behind(one, since.id) for one, seq in there.items() if seq < since.seq}
    return [one.model_copy(update={"id": anew[one.id]}) if one.id in anew else one for one in messages]


def said_beside(
    runtime: Runtime, ref: SessionRef | None, track: str, messages: Sequence[BaseMessage]
) -> dict[str, int]:
    """What other turns said since the current one of a list began: ids and numbers.

    A request that shows them would end with another question than its own, or with another answer.
    """
    turn = messages[just_said(messages) :]
    if ref is None or not turn:
        return {}
    transcript, first, own = runtime.store.transcript, str(turn[0].id), {str(one.id) for one in messages}
    newest = transcript.entries(ref, track=track, newest_first=True, limit=len(turn) + 1)
    if not any(entry.id == first for entry in newest):
        began = transcript.by_id(ref, [first], track=track)
        newest = transcript.entries(ref, track=track, newest_first=True, after=began[0].seq) if began else []
    beside = [entry for entry in takewhile(lambda entry: entry.id != first, newest) if entry.id not in own]
    if not all(role_of(one) == "user" for one in turn) and not any(_is_a_turns(entry) for entry in beside):
        return {}
    return {entry.id: entry.seq for entry in beside}


def _is_a_turns(entry: Entry) -> bool:
    """Whether a turn begins or ends with an entry. Its work may be that of a list from which somebody removed it."""
    return entry.role == "user" or (entry.role == "assistant" and not entry.calls)


def as_turn(
    runtime: Runtime,
    session_id: str,
    track: str,
    messages: Sequence[BaseMessage],
    *,
    settled: frozenset[str] = frozenset(),
    may_be_again: bool = True,
) -> tuple[list[BaseMessage], frozenset[str]]:
    """The messages of a turn, with answers under ids that the track does not have yet, but for those written again.

    Its questions are as `asked_anew` gives them, unless the turn is `settled`: those are the ids that it has given its
    messages before. Gives with them the ids that the track must not have yet. A beginning that the track ends with, the
    same ids and words, is a write tried once more where it `may_be_again`.
    """
    transcript = runtime.store.transcript
    ref = transcript.find(session_id)
    known: set[str] = set()
    again = 0
    if ref is not None and messages:
        found = transcript.by_id(ref, [str(one.id) for one in messages], track=track)
        known = {entry.id for entry in found}
        if known and not settled:
            messages = asked_anew(runtime, ref, track, messages)
        if known and may_be_again:
            newest = transcript.entries(ref, track=track, newest_first=True, limit=len(messages))
            redact = runtime.settings.redact
            plain = messages if redact is None else [redacted(one, redact) for one in messages]
            said = [(str(one.id), encode(kept).digest) for one, kept in zip(messages, plain, strict=True)]
            again = overlap(said, [(entry.id, entry.digest) for entry in reversed(newest)])
    named: list[BaseMessage] = []
    new_ids: set[str] = set()
    for place, message in enumerate(messages):
        message_id, kept = str(message.id), message
        is_new = place >= again and message_id not in settled and role_of(message) == "assistant"
        if is_new and message_id in known:
            message_id = f"{message_id}-{uuid.uuid4().hex}"
            kept = message.model_copy(update={"id": message_id})
        if is_new:
            new_ids.add(message_id)
        known.add(message_id)
        named.append(kept)
    return named, frozenset(new_ids)
