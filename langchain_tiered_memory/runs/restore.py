"""A checkpoint is put back: its checksum verified first, then what differs named, then the state written at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CheckpointError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.checkpoints import checkpoint_infos, file_checksums, of_the_run, sound_checkpoint
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.disk import MISSING
from langchain_tiered_memory.runs.files.opening import change_tiers
from langchain_tiered_memory.types.runs import Difference, MemoryCheckpoint, RestoreReport

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef


def restore(runtime: Runtime, session_id: str, checkpoint_id: str | None = None) -> RestoreReport:
    """Put tasks, phase, pins and, where they still hold, the plans of the views back as a checkpoint has them.

    Of one that is of its track alone only that track's. Messages stay: what was said since is named in the report, and
    remains in the transcript.
    """
    ref = runtime.store.transcript.find(session_id)
    infos = checkpoint_infos(runtime, ref)
    whole = of_the_run(infos)
    if ref is None or not (whole if checkpoint_id is None else infos):
        msg = f"the session {session_id!r} has no checkpoint: nothing was put back"
        raise CheckpointError(msg)
    skipped: tuple[str, ...] = ()
    if checkpoint_id is not None:
        found = runtime.store.checkpoints.read(ref, checkpoint_id)
    else:
        found, skipped = sound_checkpoint(runtime, ref, [info.id for info in whole])
    differences = [Difference(kind="checkpoint_damaged", what=one, detail="it was passed over") for one in skipped]
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
        differences.append(Difference(kind="message_forgotten", what=one, detail="it was pinned, and is gone"))
    if found.context_state["plans"] and not has_plans:
        detail = "messages, pins or summaries changed since: the next request plans its view anew"
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
                differences.append(Difference(kind="file_changed", what=path, detail="its content is another"))
        elif unread.get(path) == MISSING:
            differences.append(Difference(kind="file_missing", what=path, detail="it is not there"))
        else:
            why = unread.get(path, "no folder is allowed to be read any more")
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
            detail = f"it says something else since its revision {entry.revision}"
            differences.append(Difference(kind="message_edited", what=one["id"], detail=detail))
    return differences
