"""Flows that keep a transcript and the message list of a graph's state in sync.

The list is the truth about its branch: forks, steps back in time, edits and deletions all show in it. The transcript
has everything that was ever said. Only the newest part is compared each time. The whole is compared only if something
else happened to the session, because that takes longer the longer the session is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, RemoveMessage

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.graph.client_resends import (
    SAID_PREFIX,
    forgotten_in,
    ids_of,
    stored_of,
)
from langchain_tiered_memory.integrations.graph.tracks import handed_down_from
from langchain_tiered_memory.integrations.state import BranchRecord, digests_at, digests_of
from langchain_tiered_memory.messages.codec import coerce, encode
from langchain_tiered_memory.types.drafts import Follows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.integrations.state import ArchivedPart
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.transcript.store import TrackHead
    from langchain_tiered_memory.types.drafts import Appended
    from langchain_tiered_memory.types.records import Entry, SessionRef


def named(values: Iterable[object]) -> list[BaseMessage]:
    """A state's messages, each with an id of its own.

    A missing id is made from the words. One that stands in the list before is numbered: where a reducer only appends,
    each answer from a cache has the id of the first.
    """
    found: list[BaseMessage] = []
    times: dict[str, int] = {}
    taken: set[str] = set()
    for value in values:
        if isinstance(value, RemoveMessage):
            continue  # a reducer that keeps commands is none that removes
        message = value if isinstance(value, BaseMessage) else coerce(value)
        known = message.id or f"{SAID_PREFIX}{encode(message).digest[:32]}"
        own = message.id or ""
        times.setdefault(known, 1 if own else 0)
        while not own or own in taken:  # one that was made before may have been sent back
            times[known] += 1
            own = f"{known}-{times[known]}"
        taken.add(own)
        found.append(message if own == message.id else message.model_copy(update={"id": own}))
    return found


def keep_branch(
    session: Session,
    messages: Sequence[BaseMessage],
    *,
    record: BranchRecord | None,
    is_truth: bool,
    kind: str | None = None,
    task: str | None = None,
    forgotten: frozenset[str] = frozenset(),
) -> BranchRecord:
    """Write what the transcript lacks of a state's list, as `named` returned it, and return the list's new record.

    Without a checkpointer, the list is not the truth about its branch: the graph was given only the newest part of a
    conversation that only the transcript has in full. `record` is the list's last record. `forgotten` are ids in the
    list that are known to be forgotten. If a message or the database refuses, nothing was written.
    """
    known = record if record is not None and record.track == session.track else None
    (ids, said), present = digests_at(messages, known.count if known is not None else 0)
    archived = known.archived if known is not None else None
    has_old = known is not None and len(messages) >= known.count and ids == known.ids
    seq = known.seq if known is not None else 0
    new = messages[known.count :] if known is not None and has_old and said == known.said else []
    if known is not None and known.count and new and not (forgotten or known.forgotten):
        # Mostly nobody else wrote anything: then all that is asked is asked by the write.
        follows = Follows(str(messages[known.count - 1].id), seq, known.epoch)
        wrote = session.core.add(new, kind=kind, task=task, as_given=False, follows=follows)[1]
        if wrote is not None and not wrote.is_taken:
            newest = _newest_if_ours(session, known, new, head=None, wrote=wrote)
            if newest is not None:
                return replace(known, count=len(messages), ids=present[0], said=present[1], seq=newest)
    head = session.core.runtime.store.transcript.head(session.session_id, track=session.track, seq=seq)
    ref = head.ref if head is not None else None
    given, forgotten = forgotten, forgotten | frozenset(known.forgotten if known is not None else ())
    if known is not None and has_old and _is_same(head, known, messages):
        new = messages[known.count :]
        if said == known.said and (ref is None or ref.epoch == known.epoch):
            forgotten |= forgotten_in(session, ref, messages, forgotten, remembered=known.count)
            left = [one for one in new if one.id not in forgotten]
            wrote = session.core.add(left, kind=kind, task=task, as_given=False)[1] if left else None
            newest = _newest_if_ours(session, known, new, head=head, wrote=wrote)
            if newest is not None:
                after = replace(known, count=len(messages), ids=present[0], said=present[1], seq=newest)
                return replace(after, forgotten=tuple(str(one.id) for one in messages if one.id in forgotten))
        # Remembered once and not there now: forgotten since. A state that still has them does not bring them back.
        there = stored_of(session, messages[: known.count])
        forgotten = given | {str(one.id) for one in messages[: known.count] if one.id not in there}
    remembered = known.count if known is not None and has_old else 0
    forgotten |= forgotten_in(session, ref, messages, forgotten, remembered=remembered)
    left = [one for one in messages if one.id not in forgotten]
    if left:
        session.core.add(left, kind=kind, task=task, as_given=False)
    compared = _compared(session, messages, is_truth=is_truth, archived=archived)
    return replace(compared, forgotten=tuple(str(one.id) for one in messages if one.id in forgotten))


def off_branch(session: Session, messages: Sequence[BaseMessage], record: BranchRecord) -> frozenset[int] | None:
    """Numbers of the track's messages that are not on this branch. `None` if all are."""
    return None if record.whole else _off_seqs(session, messages, record.archived)


def _off_seqs(session: Session, messages: Sequence[BaseMessage], archived: ArchivedPart | None) -> frozenset[int]:
    """Numbers of the track's messages that are on other branches. Reads every number of the track."""
    ref = session.core.ref
    if ref is None:
        return frozenset()
    store = session.core.runtime.store
    off = store.transcript.off_branch(ref, ids_of(messages), track=session.track)
    return off if archived is None else frozenset(seq for seq in off if not archived.holds(seq))


def _compared(
    session: Session, messages: Sequence[BaseMessage], *, is_truth: bool, archived: ArchivedPart | None
) -> BranchRecord:
    """Compare the whole list with the whole track."""
    store = session.core.runtime.store
    off = _off_seqs(session, messages, archived) if is_truth else frozenset()
    ref = session.core.ref
    newest: list[Entry] = []
    if ref is not None:
        newest = store.transcript.entries(ref, track=session.track, newest_first=True, limit=1)
    if ref is not None and archived is not None:
        archived = _looked_for(session, ref, archived)
    ids, said = digests_of(messages)
    return BranchRecord(
        track=session.track,
        count=len(messages),
        ids=ids,
        said=said,
        seq=newest[0].seq if newest else 0,
        epoch=ref.epoch if ref is not None else 0,
        whole=not off,
        archived=archived,
    )


def _looked_for(session: Session, ref: SessionRef, archived: ArchivedPart) -> ArchivedPart:
    """Report if the transcript lacks archived messages: they were forgotten since, or this is another database.

    Returns:
        `archived`, with an empty `last_id` if that message was forgotten, so that no state keeps it.
    """
    if not archived.last_id:
        return archived
    runtime = session.core.runtime
    found = runtime.store.transcript.by_id(ref, [archived.last_id], track=session.track)
    if not found or found[0].seq != archived.seq:
        runtime.report(
            EventName.ARCHIVE_CHANGED,
            f"{archived.count} messages were moved out of graph state up to {archived.last_id!r}, which this memory "
            "does not have (any more): it was forgotten, or this is another database",
            session_id=session.session_id,
            message_id=archived.last_id,
        )
        tracks = handed_down_from(session.track)
        if runtime.store.tombstones.named(session.session_id, [archived.last_id], tracks=tracks):
            return replace(archived, last_id="")
    return archived


def _is_same(head: TrackHead | None, known: BranchRecord, messages: Sequence[BaseMessage]) -> bool:
    """Whether this is the transcript that `known` is about, and not another database, an older copy or a fresh start.

    What another transcript lacks was lost, not forgotten, so it gets everything that the state still has.
    """
    if known.seq == 0:
        return True
    if head is None or head.ref.epoch < known.epoch:
        return False
    if head.ref.epoch > known.epoch:
        return True  # the newest of that time may have been forgotten
    if head.named is None:
        return False
    if not known.whole or (known.archived is not None and known.archived.last_id == head.named):
        return True
    return any(head.named == one.id for one in reversed(messages[: known.count]))


def _newest_if_ours(
    session: Session,
    known: BranchRecord,
    new: Sequence[BaseMessage],
    *,
    head: TrackHead | None,
    wrote: Appended | None,
) -> int | None:
    """Number of the track's newest message, if only this branch wrote or changed anything since `known`.

    If `known` has the session's newest message, everything after it is ours and is not read again.
    """
    if wrote is None and head is not None and head.last_seq == known.seq:
        return known.seq
    if wrote is not None and wrote.behind == known.seq and (wrote.ref.epoch, wrote.revised) == (known.epoch, ()):
        return known.seq + wrote.new
    ref = session.core.ref
    if ref is None:
        return 0 if not new and known.seq == 0 else None
    if ref.epoch != known.epoch:
        return None
    store = session.core.runtime.store
    since = store.transcript.entries(ref, track=session.track, after=known.seq, limit=len(new) + 1)
    ours = set(ids_of(new))
    if any(entry.id not in ours for entry in since):
        return None
    return since[-1].seq if since else known.seq
