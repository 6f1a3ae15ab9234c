"""Files that tool calls touched: a row for each message and path, so that what goes with a message goes alone."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import RowMapping, Select, and_, bindparam, func, select

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.schema import entries, files, packed, unpacked
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.runs import FileAccess

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_tiered_memory.types.records import SessionRef

_LOOKED_AT = 2000
"""Newest accesses among which the latest files are found: the cost does not grow with a run."""

_SHOWN = (files.c.path_digest, files.c.path, files.c.seq, files.c.operation, files.c.tool, files.c.at)
WORKED_ON = (
    select(files.c.seq)
    .where(
        files.c.session_key == bindparam("session"),
        files.c.track == bindparam("track"),
        files.c.operation.in_(("read", "write")),
    )
    .group_by(files.c.seq)
    .order_by(files.c.seq.desc())
)
"""Numbers of a track's messages whose calls read or wrote a file, newest first."""
_WORKED_ON_BEFORE = WORKED_ON.where(files.c.seq < bindparam("before")).limit(bindparam("limit"))


def _access(row: RowMapping, *, was_written: bool) -> FileAccess:
    check(files, {name: row[name] for name in ("seq", "operation", "at")})
    return FileAccess(
        path=unpacked(row["path"]),
        operation="write" if was_written else row["operation"],
        tool=unpacked(row["tool"]),
        seq=row["seq"],
        at=row["at"],
    )


@cache
def _statements(*, of_track: bool) -> tuple[Select[Any], Select[Any]]:
    """The newest accesses, and which of some files was ever written: of a session, or of a track."""
    mine = [files.c.session_key == bindparam("session")]
    if of_track:
        mine.append(files.c.track == bindparam("track"))
    some = files.c.path_digest.in_(bindparam("digests", expanding=True))
    walk = select(*_SHOWN).where(*mine).order_by(files.c.seq.desc()).limit(_LOOKED_AT)
    return walk, select(files.c.path_digest).where(*mine, files.c.operation == "write", some).distinct()


class Files(Room):
    """Reads which files were touched."""

    def latest(self, ref: SessionRef, *, track: str | None, limit: int) -> list[FileAccess]:
        """One access for each path, the latest first, of a track or of all.

        A file that was not touched within the last 2,000 accesses is not among them; whether one was ever
        written is known however long ago that was.
        """
        walk, once_written = _statements(of_track=track is not None)
        asked: dict[str, Any] = {"session": ref.key} | ({} if track is None else {"track": packed(track)})
        newest: dict[str, RowMapping] = {}
        written: set[str] = set()
        walked, has_older = 0, True
        with self.database.read() as connection:
            for row in connection.execute(walk, asked):
                if row.path_digest not in newest:
                    if len(newest) == limit:
                        break
                    newest[row.path_digest] = row._mapping  # noqa: SLF001 - public, whatever its name says
                if row.operation == "write":
                    written.add(row.path_digest)
                walked += 1
            else:
                has_older = walked == _LOOKED_AT
            if has_older:
                for part in chunks([one for one in newest if isinstance(one, str) and one not in written]):
                    written |= set(connection.scalars(once_written, asked | {"digests": part}))
            found = readable(connection, newest.items(), lambda one: _access(one[1], was_written=one[0] in written))
        return sorted(found, key=lambda one: (-one.seq, one.path))

    def turns(self, ref: SessionRef, seqs: Collection[int], *, track: str) -> dict[int, int]:
        """For each of these messages how many of the user's there were up to it on a track."""
        if not seqs:
            return {}
        said = and_(entries.c.session_key == ref.key, entries.c.track == packed(track), entries.c.role == "user")
        first = min(seqs)
        before = select(func.count()).select_from(entries).where(said, entries.c.seq <= first)
        since = select(entries.c.seq).where(said, entries.c.seq > first, entries.c.seq <= max(seqs))
        with self.database.read() as connection:
            earlier = int(connection.scalar(before) or 0)
            later = list(connection.scalars(since.order_by(entries.c.seq)))
        return {seq: earlier + bisect_right(later, seq) for seq in seqs}

    def worked_on(self, ref: SessionRef, *, track: str, before: int, limit: int) -> list[int]:
        """`seq`s of the latest messages before a number whose calls read or wrote a file, newest first."""
        named = {"session": ref.key, "track": packed(track), "before": before, "limit": limit}
        with self.database.read() as connection:
            return [seq for seq in connection.scalars(_WORKED_ON_BEFORE, named) if isinstance(seq, int)]
