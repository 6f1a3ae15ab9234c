"""Reads kept files, what they hold, and figures of their tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, func, select

from langchain_tiered_memory.runs.files.accesses import HotCache, Returns
from langchain_tiered_memory.runs.files.content_rows import read_content
from langchain_tiered_memory.runs.files.file_rows import kept_file
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import damage_in
from langchain_tiered_memory.sql.damage import damage_of, readable_or
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.schema import (
    digest_of,
    file_contents,
    file_dictionaries,
    file_tiers,
    kept_files,
    unpacked,
)
from langchain_tiered_memory.types.files import KeptFile, TierSizes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.settings.runs import TierSettings
    from langchain_tiered_memory.sql.database import Database
    from langchain_tiered_memory.types.files import Tier
    from langchain_tiered_memory.types.records import SessionRef

UNDER_WAY, ENDED = "under_way", "ended"
"""Of the column `report`: what is known of the run that goes on, and the report of the last one that ended."""
TIERS: tuple[Tier, ...] = ("hot", "warm", "cold")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """When something was done for a session's files last, and what happened to them so far."""

    collected_at: float | None = None
    optimised_at: float | None = None
    crowded_at: float | None = None
    """Since when the tiers are fuller than `alert_share`; `None` while they are not."""
    figures: Mapping[str, int] | None = None
    """Counts by name, such as `opened_hot`, `promotions`, `collections`."""


class KeptFileReads(Room):
    """Reads kept files. Each method is one transaction."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.cache = HotCache()
        """Contents of hot files, and accesses to them that are not written down yet."""
        self.returns = Returns()
        """What was opened again, which tells how many files hot and warm are to hold."""

    def find(self, ref: SessionRef, path: str) -> KeptFile | None:
        """What is known of a file."""
        mine = and_(kept_files.c.session_key == ref.key, kept_files.c.path_digest == digest_of(path))
        with self.database.read() as connection:
            row = connection.execute(select(kept_files).where(mine)).mappings().one_or_none()
            return None if row is None else readable_or(connection, lambda: kept_file(row), otherwise=None)

    def files(self, ref: SessionRef, *, tier: Tier | None = None, limit: int | None = None) -> list[KeptFile]:
        """Kept files, the last opened first."""
        query = select(kept_files).where(kept_files.c.session_key == ref.key)
        if tier is not None:
            query = query.where(kept_files.c.tier == tier)
        query = query.order_by(kept_files.c.access_order.desc(), kept_files.c.path_digest).limit(limit)
        return self._records(query, kept_file)

    def on_disk(self, ref: SessionRef, *, turn: int, most: int) -> list[str]:
        """Paths of files that were read from the disk and are not known to be gone: hot, warm, some of the cold ones.

        Args:
            ref: The session.
            turn: The next number gives the next cold ones, and after the last the first again.
            most: Of them at once.
        """
        there = and_(
            kept_files.c.session_key == ref.key,
            kept_files.c.deleted.is_(False),
            kept_files.c.modified_ns.is_not(None),  # what somebody gave need not be on this disk
        )
        in_cold = and_(there, kept_files.c.tier == "cold")
        paths = select(kept_files.c.path)
        with self.database.read() as connection:
            found = list(connection.scalars(paths.where(there, kept_files.c.tier != "cold")))
            pages = -(-int(connection.scalar(select(func.count()).where(in_cold)) or 0) // most)
            if pages:
                page = paths.where(in_cold).order_by(kept_files.c.path_digest).limit(most)
                found += connection.scalars(page.offset(turn % pages * most))
        return [unpacked(path) for path in found]

    def placed(self, ref: SessionRef) -> dict[str, list[str]]:
        """Paths in `hot` and `warm`, the last opened first, and of the `pinned` ones: what a checkpoint has of them."""
        upper = [file for tier in TIERS[:2] for file in self.files(ref, tier=tier)]
        return {
            "hot": [file.path for file in upper if file.tier == "hot"],
            "warm": [file.path for file in upper if file.tier == "warm"],
            "pinned": [file.path for file in upper if file.pinned],
        }

    def content(self, ref: SessionRef, path: str) -> bytes | None:
        """A kept content, without an access; `None` where the file is not kept."""
        mine = and_(kept_files.c.session_key == ref.key, kept_files.c.path_digest == digest_of(path))
        with self.database.read() as connection:
            checksum = connection.scalar(select(kept_files.c.checksum).where(mine))
            return None if checksum is None else read_content(connection, ref.key, checksum)

    def times(self, ref: SessionRef) -> RunTimes:
        """When what was done last, and the counts."""
        with self.database.read() as connection:
            query = select(file_tiers).where(file_tiers.c.session_key == ref.key)
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                return RunTimes(figures={})
            known: dict[str, float | None] = {
                name: row[name] for name in ("collected_at", "optimised_at", "crowded_at")
            }
            for error in damage_in(file_tiers, known):
                damage_of(connection).note(error)
                known[error.column] = None
            return RunTimes(**known, figures=figures_of(connection, row))

    def saved_of_run(self, ref: SessionRef, what: str) -> dict[str, Any]:
        """What was saved of a run: of one that is `UNDER_WAY`, or of the last that `ENDED`; nothing where none is."""
        query = select(file_tiers).where(file_tiers.c.session_key == ref.key, file_tiers.c.report.is_not(None))
        with self.database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
            found = {} if row is None else reports_in(connection, row).get(what)
        return found if isinstance(found, dict) else {}

    def utilisation(self, ref: SessionRef, rules: TierSettings) -> float:
        """Hot and warm files, as a share of what the two may hold; the cold ones are not looked at."""
        upper = kept_files.c.tier.in_(("hot", "warm"))
        query = select(func.count()).select_from(kept_files).where(kept_files.c.session_key == ref.key, upper)
        return self._count(query) / (rules.hot.files + rules.warm.files)

    def sizes(self, ref: SessionRef, rules: TierSettings) -> TierSizes:
        """How much the tiers hold."""
        mine = kept_files.c.session_key == ref.key
        by_tier = select(kept_files.c.tier, func.count(), func.sum(kept_files.c.size)).where(mine)
        kept = file_contents.c.session_key == ref.key
        stored = func.sum(func.length(file_contents.c.payload))
        by_form = select(file_contents.c.form, func.sum(file_contents.c.size), stored).where(kept)
        taught = func.sum(func.length(file_dictionaries.c.payload))
        with self.database.read() as connection:
            tiers = {
                row[0]: (row[1], int(row[2] or 0)) for row in connection.execute(by_tier.group_by(kept_files.c.tier))
            }
            forms = {
                row[0]: (int(row[1] or 0), int(row[2] or 0))
                for row in connection.execute(by_form.group_by(file_contents.c.form))
            }
            dictionaries = int(connection.scalar(select(taught).where(file_dictionaries.c.session_key == ref.key)) or 0)
            pins = select(func.count()).where(mine, kept_files.c.pinned.is_(True))
            pinned = int(connection.scalar(pins) or 0)
        held = {tier: tiers.get(tier, (0, 0))[0] for tier in TIERS}
        squeezed = [sizes for form, sizes in forms.items() if form != "raw"]
        return TierSizes(
            files=held,
            bytes={tier: tiers.get(tier, (0, 0))[1] for tier in TIERS},
            stored_bytes=dictionaries + sum(stored for _, stored in forms.values()),
            packed_bytes=sum(size for size, _ in squeezed),
            packed_stored_bytes=sum(stored for _, stored in squeezed) + (dictionaries if squeezed else 0),
            pinned=pinned,
            utilisation=(held["hot"] + held["warm"]) / (rules.hot.files + rules.warm.files),
            shares={"hot": held["hot"] / rules.hot.files, "warm": held["warm"] / rules.warm.files},
        )


def reports_in(connection: Connection, row: RowMapping) -> dict[str, Any]:
    """What the column `report` has of runs; nothing where it is empty, or damaged, which is noted."""
    if row["report"] is None:
        return {}
    found: dict[str, Any] = readable_or(
        connection, lambda: rows.from_json(file_tiers, row, "report", dict[str, Any]), otherwise={}
    )
    return found if UNDER_WAY in found or ENDED in found else {ENDED: found}  # a release wrote it bare


def figures_of(connection: Connection, row: RowMapping) -> dict[str, int]:
    """The counts of a session's tiers; none where they are damaged, which is noted."""
    found: dict[str, int] = readable_or(
        connection, lambda: rows.from_json(file_tiers, row, "figures", dict[str, int]), otherwise={}
    )
    return found
