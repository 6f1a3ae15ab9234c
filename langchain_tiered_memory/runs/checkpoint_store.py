"""Checkpoints: a run's state as compressed JSON with a checksum, written whole or not at all, a few of each kind kept.

The checksum is SHA-256 over the JSON before compression: what zlib takes for sound and what is sound are two things.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import uuid
import zlib
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import zstandard
from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from langchain_tiered_memory.errors import CheckpointError, DamagedRowError
from langchain_tiered_memory.runs.store import change_run, locked_session
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check, read_json
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.schema import checkpoints, packed, runs, unpacked
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.outbox import write_down
from langchain_tiered_memory.types.outcomes import Zone
from langchain_tiered_memory.types.runs import CheckpointInfo, MemoryCheckpoint, RunState, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from sqlalchemy import ColumnElement, RowMapping

    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.records import SessionRef

_Form: TypeAlias = "dict[str, tuple[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]]"
_VERSION = 1
_ARCHIVE_LEVEL = 19
"""Of zstandard: the densest that needs no more memory to read. It takes a second for 5 MB, and nobody waits."""
_MOST_ARCHIVED = 100
"""Checkpoints that are packed at a time, the oldest first."""
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
"""How its frames begin; zlib's begin with another byte."""
RUN_END = "run_end"
"""The end of a run."""
_KINDS = {
    "task_milestone": "milestone",
    "phase_transition": "milestone",
    "risky_operation": "danger",
    Zone.DANGER.value: "danger",
    Zone.CRITICAL.value: "danger",
    "context_size": "routine",
    "time_interval": "routine",
    RUN_END: "routine",
}
"""Of each reason that is ours, what it stands for; any other is somebody's own name for a checkpoint."""


def kinds_of(reasons: Iterable[str]) -> frozenset[str]:
    """What a checkpoint stands for: each kind is kept by itself, so that none pushes another out."""
    return frozenset(_KINDS.get(reason, "named") for reason in reasons) or frozenset({"named"})


class Checkpoints(Room):
    """Reads and writes checkpoints. Each method is one transaction."""

    def write(
        self,
        ref: SessionRef,
        checkpoint: MemoryCheckpoint,
        *,
        keep: int,
        event: Event | None = None,
        epoch: int | None = None,
    ) -> MemoryCheckpoint | None:
        """Keep a checkpoint, and of its session's the `keep` newest of each kind. Returns it with its id and digest.

        Those of a track alone are counted by themselves: they neither displace the session's nor stand for them.

        `event` is written down with it. Where the session has another `epoch` by now, something that it shows may have
        been forgotten: nothing is written then, and `None` returned.
        """
        named = dataclasses.replace(checkpoint, id=checkpoint.id or uuid.uuid4().hex)
        stored = {"v": _VERSION} | _written(named, _FORM)
        said = json.dumps(stored, separators=(",", ":"), sort_keys=True).encode("ascii")
        digest = hashlib.sha256(said).hexdigest()
        payload = zlib.compress(said)
        with self.database.write() as connection:
            session = locked_session(connection, ref)
            if epoch is not None and session["epoch"] != epoch:
                return None
            connection.execute(
                insert(checkpoints).values(session_key=ref.key, payload=payload, **_copied(named, digest))
            )
            mine = and_(checkpoints.c.session_key == ref.key, checkpoints.c.alone.is_(named.alone))
            _drop_old(
                connection, and_(mine, checkpoints.c.track == packed(named.track)) if named.alone else mine, keep=keep
            )
            if not named.alone:
                last_seq = named.state.last_seq
                change_run(connection, session, named.at, checkpoint_at=named.at, checkpoint_seq=last_seq)
            write_down(connection, event, ref.key)
        return dataclasses.replace(named, digest=digest)

    def infos(self, ref: SessionRef) -> list[CheckpointInfo]:
        """A session's checkpoints without their contents, newest first."""
        columns = [column for column in checkpoints.c if column.name not in ("payload", "digest")]
        size = func.length(checkpoints.c.payload).label("stored_bytes")
        query = select(*columns, size).where(checkpoints.c.session_key == ref.key).order_by(checkpoints.c.key.desc())
        return self._records(query, _info)

    def read(self, ref: SessionRef, checkpoint_id: str | None = None) -> MemoryCheckpoint:
        """A checkpoint of the session; with `None` its newest."""
        query = select(checkpoints).where(checkpoints.c.session_key == ref.key)
        if checkpoint_id is not None:
            query = query.where(checkpoints.c.id == packed(checkpoint_id))
        with self.database.read() as connection:
            row = connection.execute(query.order_by(checkpoints.c.key.desc()).limit(1)).mappings().one_or_none()
        if row is None:
            raise CheckpointError(no_checkpoint(ref.session_id, checkpoint_id))
        return _from_row(row)

    def archive(self, ref: SessionRef, *, before: float) -> tuple[int, int]:
        """Keep checkpoints that were made before a moment more densely; what they hold stays as it is.

        Returns:
            How many were archived, and the bytes that it saved.
        """
        mine = and_(checkpoints.c.session_key == ref.key, checkpoints.c.at <= before, checkpoints.c.archived.is_(False))
        saved = 0
        with self.database.write() as connection:
            locked_session(connection, ref)
            old = (
                select(checkpoints.c.key, checkpoints.c.payload)
                .where(mine)
                .order_by(checkpoints.c.key)
                .limit(_MOST_ARCHIVED)
            )
            there = connection.execute(old).all()
            for key, payload in there:
                try:
                    denser = zstandard.ZstdCompressor(level=_ARCHIVE_LEVEL).compress(_unpacked(payload))
                except (zlib.error, zstandard.ZstdError, TypeError):
                    denser = payload  # damaged: `verify` names it
                kept = min((bytes(payload), denser), key=len)
                saved += len(payload) - len(kept)
                values = {"payload": kept, "archived": True}
                connection.execute(update(checkpoints).where(checkpoints.c.key == key).values(values))
        return len(there), saved


def _drop_old(connection: Connection, mine: ColumnElement[bool], *, keep: int) -> None:
    """Let go of what no kind keeps: one that is of several kinds stays as long as any of them has it."""
    found = select(checkpoints.c.key, checkpoints.c.reasons).where(mine)
    seen, old = Counter[str](), []
    for row in connection.execute(found.order_by(checkpoints.c.key.desc())).mappings():
        try:
            kinds = kinds_of(rows.names_in(checkpoints, row, "reasons"))
        except DamagedRowError:
            kinds = kinds_of(())
        if all(seen[kind] >= keep for kind in kinds):
            old.append(row["key"])
        seen.update(kinds)
    for part in chunks(old):
        connection.execute(delete(checkpoints).where(checkpoints.c.key.in_(part)))


def no_checkpoint(session_id: str, checkpoint_id: str | None) -> str:
    """Why one cannot be read that is not there, or not for who asks."""
    wanted = "any checkpoint" if checkpoint_id is None else f"a checkpoint {checkpoint_id!r}"
    return f"the session {session_id!r} does not have {wanted}: none was made, or newer ones replaced it"


def drop_checkpoints_since(connection: Connection, key: int, seq: int, *, tracks: Collection[str]) -> None:
    """Forget the checkpoints that were made when the message `seq` was there: their contents may hold its words.

    Those of other tracks alone than `tracks`, as they are stored, do not.
    """
    mine = checkpoints.c.session_key == key
    may_hold = or_(checkpoints.c.alone.is_(False), checkpoints.c.track.in_(tracks))
    connection.execute(delete(checkpoints).where(mine, checkpoints.c.last_seq >= seq, may_hold))
    whole = and_(mine, checkpoints.c.alone.is_(False))
    newest = select(checkpoints.c.at, checkpoints.c.last_seq).where(whole).order_by(checkpoints.c.key.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    values = {"checkpoint_at": row.at if row else None, "checkpoint_seq": row.last_seq if row else None}
    connection.execute(update(runs).where(runs.c.session_key == key).values(values))


def _info(row: RowMapping) -> CheckpointInfo:
    check(checkpoints, {name: row[name] for name in ("at", "last_seq")})
    return CheckpointInfo(
        id=row["id"],
        at=row["at"],
        track=unpacked(row["track"]),
        reasons=rows.names_in(checkpoints, row, "reasons"),
        last_seq=row["last_seq"],
        stored_bytes=row["stored_bytes"],
        archived=bool(row["archived"]),
        alone=bool(row["alone"]),
        langgraph_checkpoint_id=rows.unpacked_or_none(row["langgraph_id"]),
    )


def _from_row(row: Columns) -> MemoryCheckpoint:
    try:
        said = _unpacked(row["payload"])
    except (zlib.error, zstandard.ZstdError, TypeError) as error:
        msg = f"the checkpoint {row['id']} is damaged: {error}; restore an older one"
        raise CheckpointError(msg) from error
    if hashlib.sha256(said).hexdigest() != row["digest"]:
        msg = f"the checkpoint {row['id']} is damaged: it does not match its checksum; restore an older one"
        raise CheckpointError(msg)
    try:
        stored = json.loads(said)
        if stored.get("v") == _VERSION:
            return MemoryCheckpoint(**_read(stored, _FORM), digest=row["digest"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        msg = f"the checkpoint {row['id']} cannot be read: {error!r}; restore an older one"
        raise CheckpointError(msg) from error
    msg = f"the checkpoint {row['id']} was written by another version of this package: restore it with that one"
    raise CheckpointError(msg)


def _unpacked(payload: bytes) -> bytes:
    """What a checkpoint says, archived or not."""
    kept = bytes(payload)
    if kept.startswith(_ZSTANDARD):
        return zstandard.ZstdDecompressor().decompress(kept)
    return zlib.decompress(kept)


def copies_of(row: RowMapping) -> dict[str, Any]:
    """What the columns of a checkpoint's row should be by its contents; its session's packed name under `session`.

    A checkpoint whose contents are whole by their own checksum, and are this one's, has a damaged `digest`.

    Raises:
        CheckpointError: when its contents are damaged.
    """
    digest = row["digest"]
    with suppress(zlib.error, zstandard.ZstdError, TypeError):  # `_from_row` names them
        digest = hashlib.sha256(_unpacked(row["payload"])).hexdigest()
    found = _from_row({**row, "digest": digest})
    return {"session": packed(found.session_id), **_copied(found, digest)}


def _copied(checkpoint: MemoryCheckpoint, digest: str) -> dict[str, Any]:
    """The columns that a checkpoint has copies of."""
    return {
        "id": checkpoint.id,
        "track": packed(checkpoint.track),
        "at": checkpoint.at,
        "reasons": rows.names_to_json(checkpoint.reasons),
        "last_seq": checkpoint.state.last_seq,
        "langgraph_id": rows.packed_or_none(checkpoint.langgraph_checkpoint_id),
        "alone": checkpoint.alone,
        "digest": digest,
    }


_AS_IS = (lambda value: value, lambda value: value)
_LIST = (list, tuple)
_NAME = (packed, unpacked)
_NAME_OR_NONE = (rows.packed_or_none, rows.unpacked_or_none)
_NAMES = (rows.names_to_json, lambda stored: tuple(map(unpacked, read_json(stored, list[str]))))
_PATHS = (
    lambda sums: {packed(path): digest for path, digest in sums.items()},
    lambda stored: {unpacked(path): digest for path, digest in stored.items()},
)
_TASK: _Form = {one.name: (one.name, _AS_IS) for one in dataclasses.fields(Task)} | {
    "id": ("id", _NAME),
    "track": ("track", _NAME),
    "depends_on": ("depends_on", _NAMES),
}
_TASKS = (
    lambda tasks: [_written(task, _TASK) for task in tasks],
    lambda stored: tuple(Task(**_read(task, _TASK)) for task in stored),
)
_STATE: _Form = {
    "phase": ("phase", _NAME_OR_NONE),
    "tasks": ("tasks", _TASKS),
    "finished_tasks": ("finished_tasks", _AS_IS),
    "pinned": ("pinned_ids", _NAMES),
    "pinned_seqs": ("pinned_seqs", _LIST),
    "last_seq": ("last_seq", _AS_IS),
    "last_id": ("last_message_id", _NAME_OR_NONE),
}
_FORM: _Form = {
    "id": ("id", _AS_IS),
    "session": ("session_id", _NAME),
    "track": ("track", _NAME),
    "at": ("at", _AS_IS),
    "reasons": ("reasons", _NAMES),
    "context": ("context_state", _AS_IS),
    "project": ("project_state", _AS_IS),
    "tasks": ("tasks", _TASKS),
    "metrics": ("metrics", _AS_IS),
    "conversation": ("conversation", _LIST),
    "files": ("file_checksums", _PATHS),
    "state": ("state", (lambda state: _written(state, _STATE), lambda stored: RunState(**_read(stored, _STATE)))),
    "langgraph": ("langgraph_checkpoint_id", _NAME_OR_NONE),
    "alone": ("alone", _AS_IS),
}
"""By the key in the JSON: the field, what writes it and what reads it.

Names that came from outside are packed: JSON would join the halves of a surrogate pair.
"""


def _written(record: object, form: _Form) -> dict[str, Any]:
    return {key: write(getattr(record, field)) for key, (field, (write, _)) in form.items()}


def _read(stored: dict[str, Any], form: _Form) -> dict[str, Any]:
    """What a record is made from; older checkpoints lack what has a default since."""
    return {field: read(stored[key]) for key, (field, (_, read)) in form.items() if key in stored}
