"""Saves a run's state as a checkpoint, and says when that is due; puts it back, and names what differs.

Neither removes or changes a message. The reasons of automatic ones are those of the context-strategy design: over 80
percent of the window, another phase, every fifth finished task, a risky operation ahead, half an hour gone by; and the
two zones that ask for it, danger and critical.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import (
    CheckpointError,
    InvalidInputError,
    NotFoundError,
    StorageConflictError,
    UnknownMessageError,
)
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import MAX_MESSAGES, bounded, conversation_of, decode
from langchain_tiered_memory.runs.checkpoint_store import no_checkpoint
from langchain_tiered_memory.runs.file_list import latest_touches
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.disk import MISSING
from langchain_tiered_memory.runs.files.opening import change_tiers
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE
from langchain_tiered_memory.text.tagged_json import from_plain
from langchain_tiered_memory.transcript.outbox import deliver
from langchain_tiered_memory.types.outcomes import ZONES, Zone
from langchain_tiered_memory.types.runs import Difference, MemoryCheckpoint, RestoreReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.codec import ViewSnapshot
    from langchain_tiered_memory.runs.store import RunRow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import CheckpointSettings
    from langchain_tiered_memory.types.records import Entry, SessionRef
    from langchain_tiered_memory.types.runs import CheckpointInfo

FINISHED_TASKS = 50
"""Finished tasks that a checkpoint names: the pruning rules ask for the last 5."""
_ATTEMPTS = 8
"""To save a run while messages of it are edited or forgotten: an attempt takes milliseconds, a removal longer."""
_NEWEST_TOKENS = 50_000
"""Of the newest messages, where no view is at hand."""
_PAGE = 50
_SUMMED_FILES = 200
"""Touched files whose checksums are kept, the latest first: reading more would hold up the run."""
_EMERGENCY = "critical"
_SAVING_ZONES = (Zone.DANGER, Zone.CRITICAL)
_WITH_CONTENT = ("read", "write")
_OF_ACCESS = ("path", "operation", "tool", "seq", "at")


def checkpoint(
    runtime: Runtime,
    session_id: str,
    *,
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
        track: Of which track.
        reasons: Why; each a word of `MemoryCheckpoint.reasons`, or the caller's own.
        view: What the model was given last. `None`: the newest messages, and the summaries that stand for the rest.
        project: Whatever the caller wants back, in plain JSON. `None`: what the newest checkpoint has of it, so that
            those that are made in passing carry it too.
        langgraph_checkpoint_id: The LangGraph checkpoint that belongs to it.
        alone: Whether to save of the track alone: nothing of another is in it, nor what is the whole run's.
        figures: What its metrics have besides those of the session.

    Raises:
        StorageConflictError: when messages are edited or forgotten each time before it is written.
    """
    given = _as_json(project) if project is not None else None
    about: dict[str, Any] = {"track": track, "reasons": reasons, "alone": alone}
    about |= {"langgraph_checkpoint_id": langgraph_checkpoint_id, "figures": figures or {}}
    for _ in range(_ATTEMPTS):
        ref = view.ref if view is not None else runtime.store.transcript.find(session_id)
        if ref is None:
            msg = f"the session {session_id!r} has nothing to save yet: add a message or start a task first"
            raise NotFoundError(msg)
        kept = _written(runtime, ref, view=view, given=given, **about)
        if kept is not None:
            return kept
        view = None  # what there is now is saved, not what a model was given
    msg = (
        f"no checkpoint of the session {session_id!r} was written: {_ATTEMPTS} times, messages were edited or "
        "forgotten meanwhile; try again later"
    )
    raise StorageConflictError(msg)


def _written(
    runtime: Runtime,
    ref: SessionRef,
    *,
    track: str,
    reasons: Sequence[str],
    view: ViewSnapshot | None,
    given: dict[str, Any] | None,
    langgraph_checkpoint_id: str | None,
    alone: bool,
    figures: dict[str, Any],
) -> MemoryCheckpoint | None:
    """Save how a run stands; `None` where somebody edited or forgot something since its session was looked up."""
    only = track if alone else None
    runtime.store.kept_files.settle(ref)
    state, run = runtime.store.runs.state(ref, newest_finished=FINISHED_TASKS, track=only)
    given = given if given is not None else _given_before(runtime, ref, only, newest=run.newest)
    context_state: dict[str, Any] = {
        "track": track,
        "epoch": ref.epoch,
        "plans": [] if alone else runtime.store.plans.kept(ref),
        "zones": {} if alone else run.zones,
    }
    if view is not None:
        context_state |= _of_view(view)
    messages = bounded(view.messages)[0] if view is not None else []
    if view is None:
        messages, context_state["messages"], context_state["summaries"] = _newest(runtime, ref, track, alone=alone)
    touched = latest_touches(runtime, ref, track=only, limit=_SUMMED_FILES)
    sums, unread = file_checksums(runtime, [one.path for one in touched if one.operation in _WITH_CONTENT])
    project_state: dict[str, Any] = {
        "phase": state.phase,
        "given": given,
        "files": [{name: getattr(one, name) for name in _OF_ACCESS} for one in touched],
        "unread_files": unread,
        "tiers": {"hot": [], "warm": [], "pinned": []} if alone else runtime.store.kept_files.placed(ref),
    }
    made = MemoryCheckpoint(
        id=uuid.uuid4().hex,
        session_id=ref.session_id,
        track=track,
        at=runtime.now(),
        reasons=tuple(reasons),
        context_state=context_state,
        project_state=project_state,
        tasks=state.tasks,
        metrics=_metrics(runtime, ref, run, only) | figures,
        conversation=conversation_of(messages),
        file_checksums=sums,
        state=state,
        langgraph_checkpoint_id=langgraph_checkpoint_id,
        alone=alone,
    )
    event = runtime.event(
        EventName.CHECKPOINT_MADE,
        ", ".join(reasons) or "asked for",
        session_id=ref.session_id,
        event_id=made.id,
        checkpoint_id=made.id,
        reasons=list(reasons),
        last_seq=state.last_seq,
    )
    keep, owed = runtime.settings.checkpoints.keep, runtime.owed(event)
    kept = runtime.store.checkpoints.write(ref, made, keep=keep, event=owed, epoch=ref.epoch)
    if kept is None:
        return None
    deliver(runtime, event, owed)
    runtime.view_cache.keep_recalled(ref.key, f"given:{only}", made.id, json.dumps(given))
    return kept


def checkpoint_infos(runtime: Runtime, ref: SessionRef | None, *, track: str | None = None) -> list[CheckpointInfo]:
    """A session's checkpoints without their contents, newest first; with a `track` those of that track alone."""
    infos: list[CheckpointInfo] = runtime.store.checkpoints.infos(ref) if ref is not None else []
    return infos if track is None else _of(infos, track)


def _of(infos: Sequence[CheckpointInfo], track: str | None) -> list[CheckpointInfo]:
    """Those of a track alone; with `None` those of the whole run."""
    return [one for one in infos if one.alone == (track is not None) and track in (None, one.track)]


def read_checkpoint(
    runtime: Runtime, session_id: str, checkpoint_id: str | None, *, track: str | None = None
) -> MemoryCheckpoint:
    """What a checkpoint holds; with `None` the newest that is whole. What JSON lacks is read back in its messages.

    With a `track` it is one of that track alone.
    """
    found = _chosen(runtime, session_id, checkpoint_id, track=track, lack=" to read")[2]
    return replace(found, conversation=tuple(from_plain(one) for one in found.conversation))


def _chosen(
    runtime: Runtime, session_id: str, checkpoint_id: str | None, *, track: str | None = None, lack: str
) -> tuple[SessionRef, list[CheckpointInfo], MemoryCheckpoint, tuple[str, ...]]:
    """The session, its checkpoints, the one that is meant, and the ids of newer ones that are damaged."""
    ref = runtime.store.transcript.find(session_id)
    infos = checkpoint_infos(runtime, ref, track=track)
    ids = [one.id for one in _of(infos, track)]
    if ref is None or not (infos if checkpoint_id is not None else ids):
        msg = f"the session {session_id!r} has no checkpoint{lack}"
        raise CheckpointError(msg)
    if checkpoint_id is None:
        return ref, infos, *sound_checkpoint(runtime, ref, ids)
    if track is not None and checkpoint_id not in ids:
        raise CheckpointError(no_checkpoint(session_id, checkpoint_id))
    return ref, infos, runtime.store.checkpoints.read(ref, checkpoint_id), ()


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
    msg = f"none of the {len(ids)} checkpoints of the session {ref.session_id!r} is undamaged: nothing was put back"
    raise CheckpointError(msg)


def last_sound(runtime: Runtime, ref: SessionRef, *, besides: str | None = None) -> MemoryCheckpoint | None:
    """A session's last good checkpoint, the one named `besides` not counted; `None` where none was made.

    Good is one that is whole; of these rather one that was not made in an emergency (`critical`), which says how a run
    stood when it was in trouble already.

    Raises:
        CheckpointError: when all are damaged.
    """
    infos = [info for info in _of(runtime.store.checkpoints.infos(ref), None) if info.id != besides]
    if not infos:
        return None
    calm_first = sorted(infos, key=lambda info: _EMERGENCY in info.reasons)
    return sound_checkpoint(runtime, ref, [info.id for info in calm_first])[0]


def file_checksums(runtime: Runtime, paths: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Checksums of files within the allowed roots, and why others have none; nothing at all without a root."""
    roots = runtime.settings.files.roots
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


def _given_before(runtime: Runtime, ref: SessionRef, track: str | None, *, newest: str | None) -> dict[str, Any]:
    """What the caller gave last, with a `track` for that alone: what the newest checkpoint that is whole has of it."""
    known: str | None = runtime.view_cache.recalled(ref.key, f"given:{track}", newest) if newest is not None else None
    if known is not None or newest is None:
        return dict(json.loads(known or "{}"))
    for info in _of(runtime.store.checkpoints.infos(ref), track):
        with suppress(CheckpointError):  # a damaged one is told of by whoever restores it, and by `verify`
            given = runtime.store.checkpoints.read(ref, info.id).project_state.get("given")
            return dict(given) if isinstance(given, dict) else {}
    return {}


def _of_view(view: ViewSnapshot) -> dict[str, Any]:
    messages, left_out = bounded(view.messages)
    ids = {one.id for one in messages if one.id}
    there = {entry.seq: entry for entry in view.entries if entry.id in ids}
    return {
        "view": view.name,
        "zone": str(view.zone),
        "used_tokens": view.used_tokens,
        "limit_tokens": view.window.limit,
        "window_tokens": view.window.tokens,
        "messages": [_identity(there[seq]) for seq in sorted(there)],
        "summaries": list(view.summary_ids),
        "left_out": left_out,
        "pruning": [{"first_seq": key, "reason": reason} for key, reason in view.pruning],
    }


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
    roots = [one for one in runtime.store.tree.roots(ref, limit=ROWS_AT_ONCE) if not alone or one.track == track]
    before = newest[0].seq if newest else 0
    return messages, [_identity(entry) for entry in newest], [one.id for one in roots if one.first_seq < before]


def _identity(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, "seq": entry.seq, "digest": entry.digest}


def _metrics(runtime: Runtime, ref: SessionRef, run: RunRow, track: str | None) -> dict[str, Any]:
    """Running figures: nothing here reads through the session, only, where it is asked for, through one track."""
    totals = run.figures if track is None else runtime.store.transcript.totals(ref, track=track)
    return {
        "messages": int(totals.get("entries", 0)),
        "tokens": int(totals.get("tokens", 0)),
        "passages": int(totals.get("passages", 0)),
        "unfinished_summaries": runtime.store.tree.unfinished(ref, track=track),
    }


def restore(runtime: Runtime, session_id: str, checkpoint_id: str | None = None) -> RestoreReport:
    """Put tasks, phase, pins and, where they still hold, the plans of the views back as a checkpoint has them.

    Of one that is of its track alone only that track's. Messages stay: what was said since is named in the report, and
    remains in the transcript.
    """
    ref, infos, found, skipped = _chosen(runtime, session_id, checkpoint_id, lack=": nothing was put back")
    differences = [Difference(kind="checkpoint_damaged", what=one, detail="it was skipped") for one in skipped]
    differences += _file_differences(runtime, found)
    differences += _message_differences(runtime, ref, found)
    gone_pins, has_plans = runtime.store.runs.restore(
        ref,
        found.state,
        runtime.now(),
        plans=found.context_state["plans"],
        epoch=found.context_state["epoch"],
        track=found.track if found.alone else None,
    )
    for one in gone_pins:
        differences.append(Difference(kind="message_forgotten", what=one, detail="it was pinned and is gone"))
    if found.context_state["plans"] and not has_plans:
        detail = "messages, pins or summaries changed since: the next request rebuilds its view"
        differences.append(Difference(kind="plan_outdated", what=found.id, detail=detail))
    files = _restore_tiers(runtime, ref, found)
    report = RestoreReport(
        checkpoint=next(info for info in infos if info.id == found.id),
        restored=("tasks", *(() if found.alone else ("phase",)), "pins", *(("views",) if has_plans else ()), *files),
        differences=tuple(differences),
        skipped=skipped,
    )
    runtime.report(
        EventName.CHECKPOINT_RESTORED,
        f"{len(differences)} differences",
        session_id=session_id,
        checkpoint_id=found.id,
        differences=sorted({one.kind for one in differences}),
    )
    return report


def _restore_tiers(runtime: Runtime, ref: SessionRef, found: MemoryCheckpoint) -> tuple[str, ...]:
    """Put the files that are still kept into the tiers that the checkpoint has them in."""
    placed = found.project_state.get("tiers") or {}
    hot, warm, pinned = (placed.get(name, []) for name in ("hot", "warm", "pinned"))
    if not hot and not warm:
        return ()
    rules = runtime.settings.tiers
    change_tiers(
        runtime,
        ref,
        lambda tiers: policy.restore(tiers, hot=hot, warm=warm, pinned=pinned, rules=rules),
        paths=[*hot, *warm, *pinned],
    )
    return ("files",)


def _file_differences(runtime: Runtime, found: MemoryCheckpoint) -> list[Difference]:
    present, unread = file_checksums(runtime, list(found.file_checksums))
    differences: list[Difference] = []
    for path, digest in found.file_checksums.items():
        if path in present:
            if present[path] != digest:
                differences.append(Difference(kind="file_changed", what=path, detail="its content has changed"))
        elif unread.get(path) == MISSING:
            differences.append(Difference(kind="file_missing", what=path, detail="it does not exist"))
        else:
            why = unread.get(path, "no folder may be read any more")
            differences.append(Difference(kind="file_unreadable", what=path, detail=why))
    return differences


def _message_differences(runtime: Runtime, ref: SessionRef, found: MemoryCheckpoint) -> list[Difference]:
    differences: list[Difference] = []
    count, first, last = runtime.store.runs.said_since(ref, found.state.last_seq)
    if count:
        said = f"{count} message{'s' if count > 1 else ''} said since; they stay"
        differences.append(Difference(kind="messages_since", what=f"{first}-{last}", detail=said))
    shown = {one["seq"]: one for one in found.context_state.get("messages", ())}
    there = {entry.seq: entry for entry in runtime.store.transcript.by_seq(ref, list(shown))}
    for seq, one in shown.items():
        entry = there.get(seq)
        if entry is None:
            differences.append(Difference(kind="message_forgotten", what=one["id"], detail="it is gone"))
        elif entry.digest != one["digest"]:
            detail = f"its words have changed since, in revision {entry.revision}"
            differences.append(Difference(kind="message_edited", what=one["id"], detail=detail))
    return differences


def is_over_share(used_tokens: int, window_tokens: int, *, settings: CheckpointSettings) -> bool:
    """Whether a request takes more of the window than `CheckpointSettings.window_share`."""
    return used_tokens > settings.window_share * window_tokens


def reasons_to_save(
    *,
    settings: CheckpointSettings,
    used_tokens: int = 0,
    window_tokens: int = 1,
    zone: Zone = Zone.SAFE,
    zone_before: Zone = Zone.SAFE,
    was_over_share: bool | None = None,
    phase_changed: bool = False,
    finished_task: int | None = None,
    operation: str | None = None,
    seconds_since_last: float | None = None,
) -> tuple[str, ...]:
    """Why a checkpoint is to be saved now; empty where none is.

    Args:
        settings: Shares, numbers and names; with `enabled` off none ever is.
        used_tokens: Of the whole request, before anything is pruned.
        window_tokens: Of the model's window.
        zone: What the request's zone is.
        zone_before: What the zone of the view's last request was.
        was_over_share: `is_over_share` of the view's last request: a crossing counts once, until a request is under the
            share again. `None`, where that is not known: then a fuller zone has to be entered besides.
        phase_changed: Whether the run just entered another phase.
        finished_task: The number of the task that was finished just now; `None` where none was.
        operation: What is about to be done.
        seconds_since_last: Since the newest checkpoint, else since the run's start. A clock that was set back makes it
            negative: no time has passed then.
    """
    if not settings.enabled:
        return ()
    is_fuller = ZONES.index(zone) > ZONES.index(zone_before)
    crossed = is_fuller if was_over_share is None else not was_over_share
    every, seconds = settings.tasks, settings.seconds
    found = {
        "context_size": crossed and is_over_share(used_tokens, window_tokens, settings=settings),
        "phase_transition": phase_changed,
        "task_milestone": every is not None and bool(finished_task) and (finished_task or 0) % every == 0,
        "risky_operation": operation is not None and operation in settings.operations,
        "time_interval": seconds is not None and seconds_since_last is not None and seconds_since_last > seconds,
        zone.value: is_fuller and zone in _SAVING_ZONES,
    }
    return tuple(reason for reason, fires in found.items() if fires)
