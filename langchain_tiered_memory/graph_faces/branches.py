"""Journeys that keep a transcript and the message list of a graph's state in step.

The list is the truth of its branch: forks, steps back in time, edits and deletions all show in it. The transcript has
everything that was ever said. What is compared each time is the newest part; the whole only where something else
happened to the session, for that takes time that grows with it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, RemoveMessage

from langchain_tiered_memory.decisions.messages import coerce, encode
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.state import ArchivedPart, BranchRecord, digests_at, digests_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.records import Entry, SessionRef


def named(values: Iterable[object]) -> list[BaseMessage]:
    """A state's messages, each with an id: one without gets it from what it says, and how often that was said before.

    Raises:
        UnknownMessageError: for a value that is no message.
    """
    found: list[BaseMessage] = []
    said: dict[str, int] = {}
    for value in values:
        if isinstance(value, RemoveMessage):
            continue  # a reducer that keeps commands is none that removes
        message = value if isinstance(value, BaseMessage) else coerce(value)
        if not message.id:
            digest = encode(message).digest[:32]
            said[digest] = said.get(digest, 0) + 1
            message = message.model_copy(update={"id": f"said-{digest}-{said[digest]}"})
        found.append(message)
    return found


def copy_id(message_id: str, track: str) -> str:
    """Under which id a track keeps a message whose own id stands on another one: ids are unique per session."""
    return f"{message_id}@{hashlib.blake2b(track.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"


def both_ids(messages: Sequence[BaseMessage], track: str) -> list[str]:
    """The ids under which a track may have these messages."""
    return [one for message in messages for one in (str(message.id), copy_id(str(message.id), track))]


def keep_branch(
    session: Session,
    messages: Sequence[BaseMessage],
    *,
    record: BranchRecord | None,
    is_truth: bool,
    kind: str | None = None,
    task: str | None = None,
) -> Flow[BranchRecord]:
    """Write what of a state's list the transcript does not have, and say how the list stands to it.

    Args:
        session: On the track of the list.
        messages: The list, as `named` gave it.
        record: How it stood last time.
        is_truth: Whether the list is all of its branch. Without a checkpointer it is not: what a graph was handed
            then is only the newest part of a conversation that the transcript alone has.
        kind: What new messages are, such as `acceptance_criteria`.
        task: The task that they belong to.

    Raises:
        InvalidInputError: for a message that cannot be taken; nothing was written.
        StorageError: when the database cannot take them; nothing was written.
    """
    known = record if record is not None and record.track == session.track else None
    (ids, said), present = digests_at(messages, known.count if known is not None else 0)
    archived = known.archived if known is not None else None
    ref = yield from _ref(session)
    has_old = known is not None and len(messages) >= known.count and ids == known.ids
    forgotten = frozenset(known.forgotten if known is not None else ())
    if known is not None and has_old and (yield from _is_same(session, ref, known, messages)):
        new = messages[known.count :]
        if said == known.said and (ref is None or ref.epoch == known.epoch):
            yield from _write(session, new, kind=kind, task=task)
            newest = yield from _newest_if_ours(session, known, new)
            if newest is not None:
                return replace(known, count=len(messages), ids=present[0], said=present[1], seq=newest)
        # Remembered once and not there now: forgotten since. A state that still has them does not bring them back.
        forgotten = yield from _not_there(session, messages[: known.count])
    elif known is not None and known.count and ref is not None and ref.epoch > known.epoch:
        forgotten |= yield from _forgotten_before(session, messages)
    yield from _write(session, [one for one in messages if one.id not in forgotten], kind=kind, task=task)
    compared = yield from _compared(session, messages, is_truth=is_truth, archived=archived)
    return replace(compared, forgotten=tuple(str(one.id) for one in messages if one.id in forgotten))


def off_branch(session: Session, messages: Sequence[BaseMessage], record: BranchRecord) -> Flow[frozenset[int] | None]:
    """Numbers of the track's messages that are not on this branch; `None` where all are."""
    return None if record.whole else (yield from off_seqs(session, messages, record.archived))


def adopted(session: Session) -> Flow[BranchRecord | None]:
    """A record for a new, empty list that goes on where the track stands; `None` where the track has nothing."""
    ref = yield from _ref(session)
    if ref is None:
        return None
    store = session._house.store  # noqa: SLF001
    found: list[Entry] = yield from do(store.transcript.entries, ref, track=session.track)
    if not found:
        return None
    return _recorded(session, [], seq=found[-1].seq, epoch=ref.epoch, whole=True, archived=archived_of(found))


def archived_of(entries: Sequence[Entry]) -> ArchivedPart:
    """Messages of a track, from its first one on, as if they had been moved out of a state."""
    last = entries[-1]
    return ArchivedPart(
        seq=last.seq, last_id=last.id, count=len(entries), digest=chained("", [one.id for one in entries])
    )


def chained(digest: str, ids: Sequence[str]) -> str:
    """The digest of an archived part, with further ids behind it."""
    for one in ids:
        digest = hashlib.blake2b(f"{digest}\0{one}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return digest


def stored_of(session: Session, messages: Sequence[BaseMessage]) -> Flow[dict[str, Entry]]:
    """The entries of these messages on this track, by the id that the state knows."""
    ref = yield from _ref(session)
    if ref is None:
        return {}
    track, store = session.track, session._house.store  # noqa: SLF001
    entries = yield from do(store.transcript.by_id, ref, both_ids(messages, track))
    mine = {entry.id: entry for entry in entries if entry.track == track}
    pairs = ((str(one.id), mine.get(str(one.id)) or mine.get(copy_id(str(one.id), track))) for one in messages)
    return {message_id: entry for message_id, entry in pairs if entry is not None}


def off_seqs(session: Session, messages: Sequence[BaseMessage], archived: ArchivedPart | None) -> Flow[frozenset[int]]:
    """Numbers of the track's messages that are on other branches. Reads every number of the track."""
    ref = yield from _ref(session)
    if ref is None:
        return frozenset()
    store = session._house.store  # noqa: SLF001
    off = yield from do(store.transcript.off_branch, ref, both_ids(messages, session.track), track=session.track)
    return off if archived is None else frozenset(seq for seq in off if not archived.holds(seq))


def _compared(
    session: Session, messages: Sequence[BaseMessage], *, is_truth: bool, archived: ArchivedPart | None
) -> Flow[BranchRecord]:
    """Compare the whole list with the whole track."""
    store = session._house.store  # noqa: SLF001
    off = (yield from off_seqs(session, messages, archived)) if is_truth else frozenset()
    ref = yield from _ref(session)
    newest: list[Entry] = []
    if ref is not None:
        newest = yield from do(store.transcript.entries, ref, track=session.track, newest_first=True, limit=1)
    if ref is not None and archived is not None:
        yield from _look_for(session, ref, archived)
    return _recorded(
        session,
        messages,
        seq=newest[0].seq if newest else 0,
        epoch=ref.epoch if ref is not None else 0,
        whole=not off,
        archived=archived,
    )


def _look_for(session: Session, ref: SessionRef, archived: ArchivedPart) -> Flow[None]:
    """Say so when what was moved out of state is not there: forgotten since, or this is another database."""
    house = session._house  # noqa: SLF001
    found = yield from do(house.store.transcript.by_id, ref, [archived.last_id])
    if not found or found[0].seq != archived.seq:
        house.report(
            "archive_changed",
            f"{archived.count} messages were moved out of graph state up to {archived.last_id!r}, which this memory "
            "does not have (any more): it was forgotten, or this is another database",
            session_id=session.session_id,
            message_id=archived.last_id,
        )


def _is_same(
    session: Session, ref: SessionRef | None, known: BranchRecord, messages: Sequence[BaseMessage]
) -> Flow[bool]:
    """Whether this is the transcript that `known` is about: not another database, an older copy, or a new beginning.

    What such a one does not have was lost rather than forgotten, so it gets all that the state still has.
    """
    if known.seq == 0:
        return True
    if ref is None or ref.epoch < known.epoch:
        return False
    if ref.epoch > known.epoch:
        return True  # the newest of that time may have been forgotten
    store = session._house.store  # noqa: SLF001
    last = yield from do(store.transcript.entries, ref, track=session.track, after=known.seq - 1, up_to=known.seq)
    if not last:
        return False
    if not known.whole or (known.archived is not None and known.archived.last_id == last[0].id):
        return True
    return any(last[0].id in both_ids([one], session.track) for one in reversed(messages[: known.count]))


def _newest_if_ours(session: Session, known: BranchRecord, new: Sequence[BaseMessage]) -> Flow[int | None]:
    """Number of the track's newest message, where nobody but this branch wrote or changed anything since `known`."""
    ref = yield from _ref(session)
    if ref is None:
        return 0 if not new and known.seq == 0 else None
    if ref.epoch != known.epoch:
        return None
    store = session._house.store  # noqa: SLF001
    since = yield from do(store.transcript.entries, ref, track=session.track, after=known.seq, limit=len(new) + 1)
    ours = set(both_ids(new, session.track))
    if any(entry.id not in ours for entry in since):
        return None
    return since[-1].seq if since else known.seq


def _recorded(
    session: Session,
    messages: Sequence[BaseMessage],
    *,
    seq: int,
    epoch: int,
    whole: bool,
    archived: ArchivedPart | None,
) -> BranchRecord:
    ids, said = digests_of(messages)
    return BranchRecord(
        track=session.track,
        count=len(messages),
        ids=ids,
        said=said,
        seq=seq,
        epoch=epoch,
        whole=whole,
        archived=archived,
    )


def _not_there(session: Session, messages: Sequence[BaseMessage]) -> Flow[frozenset[str]]:
    there = yield from stored_of(session, messages)
    return frozenset(str(one.id) for one in messages if one.id not in there)


def _forgotten_before(session: Session, messages: Sequence[BaseMessage]) -> Flow[frozenset[str]]:
    """What is missing before the last message that is there, where the list changed and something was forgotten.

    New messages come behind the others, so what stands between those was remembered once.
    """
    there = yield from stored_of(session, messages)
    last = max((place for place, one in enumerate(messages) if one.id in there), default=0)
    return frozenset(str(one.id) for one in messages[:last] if one.id not in there)


def _write(session: Session, messages: Sequence[BaseMessage], *, kind: str | None, task: str | None) -> Flow[None]:
    """Write messages to the session's track; one whose id stands on another track is written as its copy."""
    if not messages:
        return
    ref = yield from _ref(session)
    elsewhere: set[str] = set()
    if ref is not None:
        store = session._house.store  # noqa: SLF001
        found = yield from do(store.transcript.by_id, ref, [str(one.id) for one in messages])
        elsewhere = {entry.id for entry in found if entry.track != session.track}
    batch = [
        one if one.id not in elsewhere else one.model_copy(update={"id": copy_id(str(one.id), session.track)})
        for one in messages
    ]
    yield from session._add(batch, at=None, kind=kind, task=task, wait=False)  # noqa: SLF001


def _ref(session: Session) -> Flow[SessionRef | None]:
    return (yield from do(session._house.store.transcript.find, session.session_id))  # noqa: SLF001
