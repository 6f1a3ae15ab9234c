"""Kept contents in another form, and without what nobody needs: what collections and optimisations do to them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, func, select

from langchain_tiered_memory.errors import DamagedFileError
from langchain_tiered_memory.runs.files.changes import KeptFileChanges
from langchain_tiered_memory.runs.files.compression import Packed, checksum_of
from langchain_tiered_memory.runs.files.content_rows import drop_unused, read_content, replace_content
from langchain_tiered_memory.runs.files.file_rows import drop_files, obsolete_paths
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.schema import file_contents, file_dictionaries, kept_files
from langchain_tiered_memory.sql.session_rows import insert_if_absent
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.files import TierMove

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_tiered_memory.types.records import SessionRef

_same_content = kept_files.c.checksum == file_contents.c.checksum


@retried
@dataclass(frozen=True, slots=True)
class KeptFilePacking(KeptFileChanges):
    """Packs and drops kept contents. Each method is one transaction."""

    def loosely_packed(self, ref: SessionRef, *, most: int) -> dict[str, bytes]:
        """Contents that no hot file has, the newest `most`, where one of them is not packed densely yet; else none."""
        mine = file_contents.c.session_key == ref.key
        in_hot = select(kept_files.c.checksum).where(kept_files.c.session_key == ref.key, kept_files.c.tier == "hot")
        below = and_(mine, file_contents.c.checksum.not_in(in_hot))
        newest = (
            select(file_contents.c.checksum, file_contents.c.form)
            .join(kept_files, and_(kept_files.c.session_key == ref.key, _same_content))
            .where(below)
            .group_by(file_contents.c.checksum, file_contents.c.form)
            .order_by(func.max(kept_files.c.access_order).desc())
            .limit(most)
        )
        found: dict[str, bytes] = {}
        with self.database.read() as connection:
            there = connection.execute(newest).all()
            if all(form == "dense" for _, form in there):
                return {}
            for checksum, _ in there:
                with suppress(DamagedFileError):  # `verify` names it
                    found[checksum] = read_content(connection, ref.key, checksum)
        return found

    def write_packed(self, ref: SessionRef, better: Mapping[str, Packed], dictionary: tuple[bytes, int] | None) -> int:
        """Keep contents in another form; returns the bytes saved.

        A content that went to hot meanwhile stays as it is. Where one is gone, nothing is written: the dictionary may
        hold words that were forgotten.
        """
        with self._changing(ref) as (connection, _):
            mine = file_contents.c.session_key == ref.key
            sizes: dict[str, int] = {}
            for part in chunks(list(better)):
                query = select(file_contents.c.checksum, func.length(file_contents.c.payload), kept_files.c.tier)
                joined = query.join(kept_files, and_(kept_files.c.session_key == ref.key, _same_content))
                for checksum, size, tier in connection.execute(joined.where(mine, file_contents.c.checksum.in_(part))):
                    sizes[checksum] = 0 if tier == "hot" else sizes.get(checksum, size)
            if sizes.keys() != better.keys():
                return 0
            if dictionary is not None:
                payload, number = dictionary
                values = {"session_key": ref.key, "number": number, "digest": checksum_of(payload), "payload": payload}
                connection.execute(insert_if_absent(connection, file_dictionaries).values(values))
            changed = {checksum: kept for checksum, kept in better.items() if sizes[checksum]}
            for checksum, kept in changed.items():
                replace_content(connection, ref.key, checksum, kept)
            drop_unused(connection, ref.key, ())
        return sum(sizes[checksum] - len(kept.payload) for checksum, kept in changed.items())

    def drop_content(self, ref: SessionRef, checksum: str) -> None:
        """Let a damaged content go: its files get it again when they are read."""
        mine = and_(file_contents.c.session_key == ref.key, file_contents.c.checksum == checksum)
        with self._changing(ref) as (connection, _):
            connection.execute(delete(file_contents).where(mine))

    def clear_obsolete(self, ref: SessionRef) -> tuple[TierMove, ...]:
        """Drop cold files that are gone from the disk, and contents and dictionaries that nobody needs."""
        with self._changing(ref) as (connection, _):
            gone = obsolete_paths(connection, ref.key)
            drop_files(connection, ref.key, gone)
            drop_unused(connection, ref.key)
        return tuple(TierMove(path=path, before="cold", after=None, reason="deleted") for path in gone)
