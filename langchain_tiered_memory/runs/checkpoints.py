"""Saves a run's state as a checkpoint; never removes or changes a message. `restore` puts it back."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import CheckpointError, InvalidInputError, NotFoundError, UnknownMessageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import MAX_MESSAGES, bounded, conversation_of, decode
from langchain_tiered_memory.runs.checkpoint_store import no_checkpoint
from langchain_tiered_memory.text.tagged_json import from_plain
from langchain_tiered_memory.transcript.outbox import deliver
from langchain_tiered_memory.types.runs import MemoryCheckpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.codec import ViewSnapshot
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, SessionRef
    from langchain_tiered_memory.types.runs import CheckpointInfo, FileAccess

FINISHED_TASKS = 50
"""Finished tasks that a checkpoint names: the pruning rules ask for the last 5."""
_NEWEST_TOKENS = 50_000
"""Of the newest messages, where no view is at hand."""
_PAGE = 50
_EMERGENCY = "critical"
_ROOTS = 400
_WITH_CONTENT = ("read", "write")


def checkpoint(
    runtime: Runtime,
    session_id: str,
    *,
    ref: SessionRef | None = None,
    track: str,
    reasons: Sequence[str],
    view: ViewSnapshot | None = None,
    project: dict[str, Any] | None = None,
    langgraph_checkpoint_id: str | None = None,
    alone: bool = False,
    figures: dict[str, Any] | None = None,
) -> MemoryCheckpoint:
    """Save how a run stands.

    Args:
        runtime: The memory.
        session_id: Which session.
        ref: The session, where it was looked up already.
        track: Which line of it.
        reasons: Why; each a word of `MemoryCheckpoint.reasons`, or the caller's own.
        view: What the model was given last. `None`: the newest messages, and the summaries that stand for the rest.
        project: Whatever the caller wants back, in plain JSON. `None`: what the newest checkpoint has of it, so that
            those that are made in passing carry it too.
        langgraph_checkpoint_id: The LangGraph checkpoint that belongs to it.
        alone: Whether to save of the track alone: nothing of another is in it, nor what is the whole run's.
        figures: What its metrics have besides those of the session.
    """
    only = track if alone else None
    given = _as_json(project)
    ref = runtime.store.transcript.find(session_id) if ref is None else ref
    if ref is None:
        msg = f"the session {session_id!r} has nothing to save yet: add a message or start a task first"
        raise NotFoundError(msg)
    if project is None:
        given = _given_before(runtime, ref, only)
    runtime.store.kept_files.settle(ref)
    state = runtime.store.runs.state(ref, newest_finished=FINISHED_TASKS, track=only)
    context_state = _context_state(runtime, ref, track, view, alone=alone)
    messages = bounded(view.messages)[0] if view is not None else []
    if view is None:
        messages, context_state["messages"], context_state["summaries"] = _newest(runtime, ref, track, alone=alone)
    touched = runtime.store.files.latest(ref, track=only, limit=runtime.settings.checkpoints.max_files)
    sums, unread = file_checksums(runtime, [one.path for one in touched if one.operation in _WITH_CONTENT])
    project_state: dict[str, Any] = {
        "phase": state.phase,
        "given": given,
        "files": [_access_to_json(one) for one in touched],
        "unread_files": unread,
        "tiers": {"hot": [], "warm": [], "pinned": []} if alone else runtime.store.kept_files.placed(ref),
    }
    made = MemoryCheckpoint(
        id=uuid.uuid4().hex,
        session_id=session_id,
        track=track,
        at=runtime.now(),
        reasons=tuple(reasons),
        context_state=context_state,
        project_state=project_state,
        tasks=state.tasks,
        metrics=_metrics(runtime, ref, only) | (figures or {}),
        conversation=conversation_of(messages),
        file_checksums=sums,
        state=state,
        langgraph_checkpoint_id=langgraph_checkpoint_id,
        alone=alone,
    )
    event = runtime.event(
        EventName.CHECKPOINT_MADE,
        ", ".join(reasons) or "asked for",
        session_id=session_id,
        event_id=made.id,
        checkpoint_id=made.id,
        reasons=list(reasons),
        last_seq=state.last_seq,
    )
    keep = runtime.settings.checkpoints.keep
    kept = runtime.store.checkpoints.write(ref, made, keep=keep, event=event)
    deliver(runtime, event)
    runtime.view_cache.keep_recalled(ref.key, f"given:{only}", made.id, json.dumps(given))
    return kept


def checkpoint_infos(runtime: Runtime, ref: SessionRef | None, *, track: str | None = None) -> list[CheckpointInfo]:
    """A session's checkpoints without their contents, newest first; with a `track` those of that track alone."""
    infos: list[CheckpointInfo] = runtime.store.checkpoints.infos(ref) if ref is not None else []
    return infos if track is None else [one for one in infos if one.alone and one.track == track]


def of_the_run(infos: Sequence[CheckpointInfo]) -> list[CheckpointInfo]:
    """Those that are of the whole run."""
    return [one for one in infos if not one.alone]


def read_checkpoint(
    runtime: Runtime, session_id: str, checkpoint_id: str | None, *, track: str | None = None
) -> MemoryCheckpoint:
    """What a checkpoint holds; with `None` the newest that is whole. What JSON lacks is read back in its messages.

    With a `track` it is one of that track alone.
    """
    ref = runtime.store.transcript.find(session_id)
    infos = checkpoint_infos(runtime, ref, track=track)
    ids = [one.id for one in (of_the_run(infos) if track is None else infos)]
    if ref is None or not (ids if checkpoint_id is None or track is not None else infos):
        msg = f"the session {session_id!r} has no checkpoint to read"
        raise CheckpointError(msg)
    if checkpoint_id is None:
        found = sound_checkpoint(runtime, ref, ids)[0]
    elif track is not None and checkpoint_id not in ids:
        raise CheckpointError(no_checkpoint(session_id, checkpoint_id))
    else:
        found = runtime.store.checkpoints.read(ref, checkpoint_id)
    return replace(found, conversation=tuple(from_plain(one) for one in found.conversation))


def sound_checkpoint(runtime: Runtime, ref: SessionRef, ids: Sequence[str]) -> tuple[MemoryCheckpoint, tuple[str, ...]]:
    """The first of these checkpoints that is whole, and the ids of those before it that are not."""
    damaged: list[str] = []
    for one in ids:
        try:
            found = runtime.store.checkpoints.read(ref, one)
        except CheckpointError as error:
            runtime.report(EventName.CHECKPOINT_DAMAGED, str(error), session_id=ref.session_id, checkpoint_id=one)
            damaged.append(one)
        else:
            return found, tuple(damaged)
    msg = f"none of the {len(ids)} checkpoints of the session {ref.session_id!r} is whole: nothing was put back"
    raise CheckpointError(msg)


def last_sound(runtime: Runtime, ref: SessionRef, *, besides: str | None = None) -> MemoryCheckpoint | None:
    """A session's last good checkpoint, the one named `besides` not counted; `None` where none was made.

    Good is one that is whole; of these rather one that was not made in an emergency (`critical`), which says how a run
    stood when it was in trouble already.

    Raises:
        CheckpointError: when all are damaged.
    """
    infos = [info for info in of_the_run(runtime.store.checkpoints.infos(ref)) if info.id != besides]
    if not infos:
        return None
    calm_first = sorted(infos, key=lambda info: _EMERGENCY in info.reasons)
    return sound_checkpoint(runtime, ref, [info.id for info in calm_first])[0]


def file_checksums(runtime: Runtime, paths: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Checksums of files within the allowed roots, and why others have none; nothing at all without a root."""
    roots = runtime.settings.checkpoints.roots
    if not roots:
        return {}, {}
    return runtime.store.disk.checksums(paths, roots=roots)


def _as_json(project: dict[str, Any] | None) -> dict[str, Any]:
    try:
        given = json.loads(json.dumps(project or {}, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"project must be plain JSON, to be kept in a checkpoint: {error}"
        raise InvalidInputError(msg) from error
    if not isinstance(given, dict):
        msg = f"project must be a dict, not {type(project).__name__}"
        raise InvalidInputError(msg)
    return given


def _given_before(runtime: Runtime, ref: SessionRef, track: str | None) -> dict[str, Any]:
    """What the caller gave last, with a `track` for that alone: what the newest checkpoint that is whole has of it."""
    infos = checkpoint_infos(runtime, ref, track=track)
    for info in of_the_run(infos) if track is None else infos:
        known: str | None = runtime.view_cache.recalled(ref.key, f"given:{track}", info.id)
        if known is not None:
            return dict(json.loads(known))
        with suppress(CheckpointError):  # a damaged one is told of by whoever restores it, and by `verify`
            given = runtime.store.checkpoints.read(ref, info.id).project_state.get("given")
            return dict(given) if isinstance(given, dict) else {}
    return {}


def _context_state(
    runtime: Runtime, ref: SessionRef, track: str, view: ViewSnapshot | None, *, alone: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "track": track,
        "epoch": ref.epoch,
        "plans": [] if alone else runtime.store.plans.kept(ref),
        "zones": {} if alone else runtime.store.runs.read(ref).zones,
    }
    if view is not None:
        messages, left_out = bounded(view.messages)
        ids = {one.id for one in messages if one.id}
        there = {entry.seq: entry for entry in view.entries if entry.id in ids}
        shown = [there[seq] for seq in sorted(there)]
        found |= {
            "view": view.name,
            "zone": str(view.zone),
            "used_tokens": view.used_tokens,
            "limit_tokens": view.window.limit,
            "window_tokens": view.window.tokens,
            "messages": [_identity(entry) for entry in shown],
            "summaries": list(view.summary_ids),
            "left_out": left_out,
            "pruning": [{"first_seq": key, "reason": reason} for key, reason in view.pruning],
        }
    return found


def _newest(
    runtime: Runtime, ref: SessionRef, track: str, *, alone: bool
) -> tuple[list[BaseMessage], list[dict[str, Any]], list[str]]:
    """The newest messages of a track, what they are, and the summaries that stand for what is before them."""
    newest: list[Entry] = []
    left, up_to = _NEWEST_TOKENS, None
    while left > 0 and len(newest) < MAX_MESSAGES:
        page = runtime.store.transcript.entries(ref, track=track, up_to=up_to, newest_first=True, limit=_PAGE)
        for entry in page:
            left -= entry.tokens
            if left >= 0 or not newest:
                newest.append(entry)
        if len(page) < _PAGE:
            break
        up_to = page[-1].seq - 1
    newest.reverse()
    messages: list[BaseMessage] = []
    for entry in newest:
        try:
            messages.append(decode(entry.payload))
        except UnknownMessageError as error:
            runtime.report(EventName.CHECKPOINT_INCOMPLETE, str(error), session_id=ref.session_id, message_id=entry.id)
    roots = [one for one in runtime.store.tree.roots(ref, limit=_ROOTS) if not alone or one.track == track]
    before = newest[0].seq if newest else 0
    return messages, [_identity(entry) for entry in newest], [one.id for one in roots if one.first_seq < before]


def _identity(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, "seq": entry.seq, "digest": entry.digest}


def _access_to_json(access: FileAccess) -> dict[str, Any]:
    return {"path": access.path, "operation": access.operation, "tool": access.tool, "seq": access.seq, "at": access.at}


def _metrics(runtime: Runtime, ref: SessionRef, track: str | None) -> dict[str, Any]:
    """Running figures: nothing here reads through the session, only, where it is asked for, through one track."""
    totals = runtime.store.transcript.totals(ref, track=track)
    return {
        "messages": int(totals.get("entries", 0)),
        "tokens": int(totals.get("tokens", 0)),
        "passages": int(totals.get("passages", 0)),
        "unfinished_summaries": runtime.store.tree.unfinished(ref, track=track),
    }
