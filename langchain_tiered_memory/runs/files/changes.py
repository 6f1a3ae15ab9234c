"""Changes of kept files: the session locked, accesses that waited written down; contents packed, and dropped."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, delete, func, select, update

from langchain_tiered_memory.errors import DamagedFileError, NotFoundError
from langchain_tiered_memory.runs.files.content_rows import (
    Kept,
    checksum_of,
    drop_unused,
    read_content,
    replace_content,
)
from langchain_tiered_memory.runs.files.file_rows import drop_files, obsolete_paths, update_accesses
from langchain_tiered_memory.runs.files.reads import KeptFileReads, figures_of
from langchain_tiered_memory.runs.run_rows import locked_session
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.rows import insert_if_absent
from langchain_tiered_memory.sql.schema import file_contents, file_dictionaries, file_tiers, kept_files
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.files import TierMove

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.types.records import SessionRef


_AT_ONCE = float("-inf")
"""What could not be written is tried again at the next occasion."""
_same_content = kept_files.c.checksum == file_contents.c.checksum


class KeptFileChanges(KeptFileReads):
    """Begins changes of kept files. Each method is one transaction."""

    def settle(self, ref: SessionRef) -> None:
        """Write down accesses that wait, where any do."""
        if not self.cache.waits(ref.key):
            return
        with self._changing(ref):
            pass

    @contextmanager
    def _changing(self, ref: SessionRef) -> Iterator[tuple[Connection, RowMapping]]:
        """A transaction with the session locked, and the row of its tiers.

        Accesses that waited are written first; where the transaction is rolled back, they wait again.
        """
        taken = self.cache.take(ref.key)
        try:
            with self.database.write() as connection:
                row = _locked(connection, ref)
                if taken:
                    update_accesses(connection, ref.key, taken, first_order=row["next_order"])
                    counts = {"opened_hot": sum(one.count for one in taken.values())}
                    write_run(connection, ref, row, {"next_order": row["next_order"] + len(taken)}, counts)
                    row = _locked(connection, ref)
                yield connection, row
        except NotFoundError:
            raise  # its files went with it
        except BaseException:
            self.cache.put_back(ref, taken, moment=_AT_ONCE)
            raise


def _locked(connection: Connection, ref: SessionRef) -> RowMapping:
    """The row of a session's tiers, made where there is none; the session is locked by it."""
    locked_session(connection, ref)
    known = select(file_tiers).where(file_tiers.c.session_key == ref.key)
    row = connection.execute(known).mappings().one_or_none()
    if row is None:
        connection.execute(insert_if_absent(connection, file_tiers).values(session_key=ref.key))
        row = connection.execute(known).mappings().one()
    check(file_tiers, {"session_key": row["session_key"], "next_order": row["next_order"]})
    return row


def write_run(
    connection: Connection,
    ref: SessionRef,
    row: RowMapping,
    values: Mapping[str, Any],
    counts: Mapping[str, int],
) -> None:
    """Set columns of a session's tiers, and raise counts."""
    figures = figures_of(connection, row)
    for name, count in counts.items():
        figures[name] = figures.get(name, 0) + count
    changed = {**values, "figures": json.dumps(figures, sort_keys=True)}
    connection.execute(update(file_tiers).where(file_tiers.c.session_key == ref.key).values(changed))


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

    def write_packed(self, ref: SessionRef, better: Mapping[str, Kept], dictionary: tuple[bytes, int] | None) -> int:
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
        return sum(sizes[checksum] - len(kept["payload"]) for checksum, kept in changed.items())

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
