"""A run's state is saved, and put back: `checkpoint` and `restore`. Neither ever removes or changes a message."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.messages import decode
from langchain_tiered_memory.decisions.snapshots import MAX_MESSAGES, ViewSnapshot, bounded, conversation_of
from langchain_tiered_memory.errors import CheckpointError, InvalidInputError, NotFoundError, UnknownMessageError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.runs import MemoryCheckpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import Entry, SessionRef
    from langchain_tiered_memory.runs import FileAccess

__all__ = ["ViewSnapshot", "checkpoint", "file_checksums", "last_sound", "sound_checkpoint"]

_FINISHED_TASKS = 50
"""Finished tasks that a checkpoint names: the pruning rules ask for the last 5."""
_NEWEST_TOKENS = 50_000
"""Of the newest messages, where no view is at hand."""
_PAGE = 50
_ROOTS = 400
_WITH_CONTENT = ("read", "write")


def checkpoint(
    house: House,
    session_id: str,
    *,
    track: str,
    reasons: Sequence[str],
    view: ViewSnapshot | None = None,
    project: dict[str, Any] | None = None,
    langgraph_checkpoint_id: str | None = None,
) -> Flow[MemoryCheckpoint]:
    """Save how a run stands.

    Args:
        house: The memory.
        session_id: Which session.
        track: Which line of it.
        reasons: Why; each a word of `MemoryCheckpoint.reasons`, or the caller's own.
        view: What the model was given last. `None`: the newest messages, and the summaries that stand for the rest.
        project: Whatever the caller wants back, in plain JSON.
        langgraph_checkpoint_id: The LangGraph checkpoint that belongs to it.

    Raises:
        InvalidInputError: when `project` is no JSON.
        NotFoundError: when the session has nothing to save yet.
        StorageError: when the database cannot take it; nothing was written then.
    """
    given = _as_json(project)
    ref = yield from do(house.store.transcript.find, session_id)
    if ref is None:
        msg = f"the session {session_id!r} has nothing to save yet: add a message or start a task first"
        raise NotFoundError(msg)
    state = yield from do(house.store.runs.state, ref, newest_finished=_FINISHED_TASKS)
    context_state = yield from _context_state(house, ref, track, view)
    messages = bounded(view.messages)[0] if view is not None else []
    if view is None:
        messages, context_state["messages"], context_state["summaries"] = yield from _newest(house, ref, track)
    touched = yield from do(house.store.files.latest, ref, track=None, limit=house.settings.checkpoints.max_files)
    sums, unread = yield from file_checksums(house, [one.path for one in touched if one.operation in _WITH_CONTENT])
    project_state = {
        "phase": state.phase,
        "given": given,
        "files": [_access_to_json(one) for one in touched],
        "unread_files": unread,
    }
    made = MemoryCheckpoint(
        id=uuid.uuid4().hex,
        session_id=session_id,
        track=track,
        at=house.now(),
        reasons=tuple(reasons),
        context_state=context_state,
        project_state=project_state,
        tasks=state.tasks,
        metrics=(yield from _metrics(house, ref)),
        conversation=conversation_of(messages),
        file_checksums=sums,
        state=state,
        langgraph_checkpoint_id=langgraph_checkpoint_id,
    )
    kept = yield from do(house.store.checkpoints.write, ref, made, keep=house.settings.checkpoints.keep)
    house.report(
        "checkpoint_made",
        ", ".join(reasons) or "asked for",
        session_id=session_id,
        checkpoint_id=kept.id,
        reasons=list(reasons),
        last_seq=state.last_seq,
    )
    return kept


def sound_checkpoint(
    house: House, ref: SessionRef, ids: Sequence[str]
) -> Flow[tuple[MemoryCheckpoint, tuple[str, ...]]]:
    """The first of these checkpoints that is whole, and the ids of those before it that are not.

    Raises:
        CheckpointError: when none is.
    """
    damaged: list[str] = []
    for one in ids:
        try:
            found = yield from do(house.store.checkpoints.read, ref, one)
        except CheckpointError as error:
            house.report("checkpoint_damaged", str(error), session_id=ref.session_id, checkpoint_id=one)
            damaged.append(one)
        else:
            return found, tuple(damaged)
    msg = f"none of the {len(ids)} checkpoints of the session {ref.session_id!r} is whole: nothing was put back"
    raise CheckpointError(msg)


def last_sound(house: House, ref: SessionRef) -> Flow[str | None]:
    """The id of a session's newest checkpoint that is whole; `None` where none was made.

    Raises:
        CheckpointError: when all are damaged.
    """
    infos = yield from do(house.store.checkpoints.infos, ref)
    if not infos:
        return None
    found, _ = yield from sound_checkpoint(house, ref, [info.id for info in infos])
    return found.id


def file_checksums(house: House, paths: Sequence[str]) -> Flow[tuple[dict[str, str], dict[str, str]]]:
    """Checksums of files within the allowed roots, and why others have none; nothing at all without a root."""
    roots = house.settings.checkpoints.roots
    if not roots:
        return {}, {}
    return (yield from do(house.store.checksums.of, paths, roots=roots))


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


def _context_state(house: House, ref: SessionRef, track: str, view: ViewSnapshot | None) -> Flow[dict[str, Any]]:
    run = yield from do(house.store.runs.read, ref)
    found: dict[str, Any] = {
        "track": track,
        "epoch": ref.epoch,
        "plans": (yield from do(house.store.plans.kept, ref)),
        "zones": run.zones,
    }
    if view is not None:
        messages, left_out = bounded(view.messages)
        shown = yield from do(house.store.transcript.by_id, ref, [one.id for one in messages if one.id])
        found |= {
            "view": view.name,
            "zone": str(view.zone),
            "used_tokens": view.used_tokens,
            "limit_tokens": view.window.limit,
            "window_tokens": view.window.tokens,
            "messages": [_identity(entry) for entry in shown],
            "summaries": list(view.summary_ids),
            "left_out": left_out,
        }
    return found


def _newest(
    house: House, ref: SessionRef, track: str
) -> Flow[tuple[list[BaseMessage], list[dict[str, Any]], list[str]]]:
    """The newest messages of a track, what they are, and the summaries that stand for what is before them."""
    newest: list[Entry] = []
    left, up_to = _NEWEST_TOKENS, None
    while left > 0 and len(newest) < MAX_MESSAGES:
        page = yield from do(
            house.store.transcript.entries, ref, track=track, up_to=up_to, newest_first=True, limit=_PAGE
        )
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
            house.report("checkpoint_incomplete", str(error), session_id=ref.session_id, message_id=entry.id)
    roots = yield from do(house.store.tree.roots, ref, limit=_ROOTS)
    before = newest[0].seq if newest else 0
    return messages, [_identity(entry) for entry in newest], [one.id for one in roots if one.first_seq < before]


def _identity(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, "seq": entry.seq, "digest": entry.digest}


def _access_to_json(access: FileAccess) -> dict[str, Any]:
    return {"path": access.path, "operation": access.operation, "tool": access.tool, "seq": access.seq, "at": access.at}


def _metrics(house: House, ref: SessionRef) -> Flow[dict[str, Any]]:
    """Running figures: nothing here reads through the session."""
    totals = yield from do(house.store.transcript.totals, ref)
    return {
        "messages": int(totals.get("entries", 0)),
        "tokens": int(totals.get("tokens", 0)),
        "passages": int(totals.get("passages", 0)),
        "unfinished_summaries": (yield from do(house.store.tree.unfinished, ref)),
    }
