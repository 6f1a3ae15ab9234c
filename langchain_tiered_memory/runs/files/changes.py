"""What every change of kept files begins with: the session locked, and accesses that waited written down."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select, update

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.runs.files.file_rows import update_accesses
from langchain_tiered_memory.runs.files.reads import KeptFileReads, figures_of
from langchain_tiered_memory.runs.run_rows import locked_session
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.schema import file_tiers
from langchain_tiered_memory.sql.session_rows import insert_if_absent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.types.records import SessionRef

_AT_ONCE = float("-inf")
"""What could not be written is tried again at the next occasion."""


@retried
@dataclass(frozen=True, slots=True)
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

        Raises:
            DamagedRowError: when the row cannot be read.
            NotFoundError: when the session was removed.
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
    """The row of a session's tiers, made where there is none; the session is locked by it.

    Raises:
        DamagedRowError: when it cannot be read.
        NotFoundError: when the session was removed.
    """
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
