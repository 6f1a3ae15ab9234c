"""Rows of touched files are written with their message and go with it: in the caller's transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, select

from langchain_tiered_memory.sql.schema import digest_of, files, packed, unpacked
from langchain_tiered_memory.sql.session_rows import insert_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.drafts import FileTouch


def touch_values(key: int, *, track: str, seq: int, at: float, touches: Sequence[FileTouch]) -> list[dict[str, Any]]:
    """Rows for one message: one for each path, as it was touched last, but as written where it was written at all."""
    by_path: dict[str, FileTouch] = {}
    for touch in touches:
        known = by_path.get(touch.path)
        if known is None or known.operation != "write":
            by_path[touch.path] = touch
    return [
        {
            "session_key": key,
            "seq": seq,
            "path_digest": digest_of(path),
            "track": packed(track),
            "path": packed(path),
            "operation": touch.operation,
            "tool": packed(touch.tool),
            "at": at,
        }
        for path, touch in by_path.items()
    ]


def write_touches(
    connection: Connection, key: int, *, track: str, seq: int, at: float, touches: Sequence[FileTouch]
) -> None:
    """What an edited message touches takes the place of what it touched before."""
    drop_touches(connection, key, [seq])
    insert_all(connection, files, touch_values(key, track=track, seq=seq, at=at, touches=touches))


def drop_touches(connection: Connection, key: int, seqs: Sequence[int]) -> None:
    """Forget what messages touched; at most as many as fit one `IN (...)`."""
    connection.execute(delete(files).where(files.c.session_key == key, files.c.seq.in_(list(seqs))))


def touched_by(connection: Connection, key: int, seqs: Sequence[int]) -> list[str]:
    """Paths of files that messages read or wrote, as they stand there; at most as many as fit one `IN (...)`."""
    mine = (files.c.session_key == key, files.c.seq.in_(list(seqs)), files.c.operation.in_(("read", "write")))
    return [unpacked(path) for path in dict.fromkeys(connection.scalars(select(files.c.path).where(*mine)))]
