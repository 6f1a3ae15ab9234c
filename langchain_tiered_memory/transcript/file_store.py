"""Files that tool calls touched: a row for each message and path, so that what goes with a message goes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, and_, bindparam, select

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.schema import files, packed, unpacked
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.runs import FileAccess

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, RowMapping

    from langchain_tiered_memory.sql.database import Database
    from langchain_tiered_memory.types.records import SessionRef

_LOOKED_AT = 2000
"""Newest accesses among which the latest files are found: the cost does not grow with a run."""

_SHOWN = (files.c.path_digest, files.c.path, files.c.seq, files.c.operation, files.c.tool, files.c.at)
_WORKED_ON = (
    select(files.c.seq)
    .where(
        files.c.session_key == bindparam("session"),
        files.c.track == bindparam("track"),
        files.c.seq < bindparam("before"),
        files.c.operation.in_(("read", "write")),
    )
    .group_by(files.c.seq)
    .order_by(files.c.seq.desc())
    .limit(bindparam("limit"))
)


def _access(_digest: str, row: RowMapping, *, was_written: bool) -> FileAccess:
    check(files, {name: row[name] for name in ("seq", "operation", "at")})
    return FileAccess(
        path=unpacked(row["path"]),
        operation="write" if was_written else row["operation"],
        tool=unpacked(row["tool"]),
        seq=row["seq"],
        at=row["at"],
    )


@retried
@dataclass(frozen=True, slots=True)
class Files:
    """Reads which files were touched."""

    database: Database

    def latest(self, ref: SessionRef, *, track: str | None, before: int | None = None, limit: int) -> list[FileAccess]:
        """One access for each path, the latest first.

        A file that was not touched within the last 2,000 accesses is not among them; whether one was ever written is
        known however long ago that was.

        Args:
            ref: The session.
            track: Only of this track; `None` for all.
            before: Only by messages before this number.
            limit: How many at most.
        """
        mine = files.c.session_key == ref.key
        if track is not None:
            mine = and_(mine, files.c.track == packed(track))
        if before is not None:
            mine = and_(mine, files.c.seq < before)
        walk = select(*_SHOWN).where(mine).order_by(files.c.seq.desc()).limit(_LOOKED_AT)
        newest: dict[str, RowMapping] = {}
        written: set[str] = set()
        walked, has_older = 0, True
        with self.database.read() as connection:
            for row in connection.execute(walk):
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
                written |= self._written(connection, [one for one in newest if one not in written], mine)
            found = readable(connection, newest.items(), lambda one: _access(*one, was_written=one[0] in written))
        return sorted(found, key=lambda one: (-one.seq, one.path))

    def latest_accesses(self, ref: SessionRef, *, limit: int) -> list[FileAccess]:
        """The latest accesses that read or wrote a file, oldest first: one path may come often."""
        mine = and_(files.c.session_key == ref.key, files.c.operation.in_(("read", "write")))
        newest = select(files).where(mine).order_by(files.c.seq.desc(), files.c.path_digest).limit(limit)
        with self.database.read() as connection:
            found = readable(
                connection, connection.execute(newest).mappings(), lambda row: _access("", row, was_written=False)
            )
        return found[::-1]

    def worked_on(self, ref: SessionRef, *, track: str, before: int, limit: int) -> list[int]:
        """`seq`s of the latest messages before a number whose calls read or wrote a file, newest first."""
        named = {"session": ref.key, "track": packed(track), "before": before, "limit": limit}
        with self.database.read() as connection:
            return [seq for seq in connection.scalars(_WORKED_ON, named) if isinstance(seq, int)]

    def _written(self, connection: Connection, digests: list[str], mine: ColumnElement[bool]) -> set[str]:
        found: set[str] = set()
        for part in chunks([one for one in digests if isinstance(one, str)]):
            written = and_(mine, files.c.operation == "write", files.c.path_digest.in_(part))
            found |= set(connection.scalars(select(files.c.path_digest).where(written).distinct()))
        return found
