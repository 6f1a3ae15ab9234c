"""Kept files of a session: which tier each is in, what it holds, and what happened to them.

Whoever changes a place locks the session's row first, reads hot and warm, asks the rules (`policy.py`) and writes what
they say, in one transaction. So no reader, in whatever process, ever sees a tier with more files than it may hold.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, func, select, update

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.accesses import Returns, WaitingAccesses
from langchain_tiered_memory.runs.files.file_rows import (
    drop_files,
    drop_unused,
    insert_file,
    keep_content,
    kept_file,
    moves_between,
    read_content,
    read_rows,
    tiers_of,
    update_file,
    write_changes,
)
from langchain_tiered_memory.runs.store import locked_session
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check, damage_in
from langchain_tiered_memory.sql.damage import damage_of, readable_or
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import insert_if_absent
from langchain_tiered_memory.sql.schema import (
    digest_of,
    file_contents,
    file_dictionaries,
    file_tiers,
    kept_files,
    unpacked,
)
from langchain_tiered_memory.types.files import KeptFile, OpenedFile, TierMove, TierSizes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, RowMapping

    from langchain_tiered_memory.runs.files.policy import Tiers
    from langchain_tiered_memory.settings.runs import TierSettings
    from langchain_tiered_memory.sql.database import Database
    from langchain_tiered_memory.types.files import FileState, Tier
    from langchain_tiered_memory.types.records import SessionRef

UNDER_WAY, ENDED = "under_way", "ended"
"""Of the column `report`: what is known of the run that goes on, and the report of the last one that ended."""
TIERS: tuple[Tier, ...] = ("hot", "warm", "cold")
_SEEN = ("kind", "size", "modified_ns", "checksum", "deleted")
"""What a row has of a file as it was found, besides the names in it."""
_MAY_CHANGE = ("modified_ns", "deleted", "dependencies")
"""Of a file whose content is the same."""
_OPENED_SINCE = (
    select(func.count())
    .select_from(kept_files)
    .where(
        kept_files.c.session_key == bindparam("session"),
        kept_files.c.tier.in_(("hot", "warm", "cold")),  # the index has the tier before the order
        kept_files.c.access_order > bindparam("order"),
    )
)
"""How many files were opened since an access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    """A file as it was found, on the disk or in somebody's hands."""

    path: str
    kind: str
    size: int
    modified_ns: int | None
    checksum: str
    content: bytes | None = None
    """`None` where it is what is kept already."""
    dependencies: tuple[str, ...] = ()
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """When something was done for a session's files last, and what happened to them so far."""

    collected_at: float | None = None
    optimised_at: float | None = None
    crowded_at: float | None = None
    """Since when the tiers are fuller than `alert_share`; `None` while they are not."""
    figures: Mapping[str, int] = field(default_factory=dict)
    """Counts by name, such as `opened_hot`, `promotions`, `collections`."""


class KeptFiles(Room):
    """Reads kept files, and changes their places. Each method is one transaction."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.accesses = WaitingAccesses()
        """Accesses to hot files that are not written down yet."""
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
        return self._files(ref, *([] if tier is None else [kept_files.c.tier == tier]), limit=limit)

    def _files(self, ref: SessionRef, *which: ColumnElement[bool], limit: int | None = None) -> list[KeptFile]:
        query = select(kept_files).where(kept_files.c.session_key == ref.key, *which)
        query = query.order_by(kept_files.c.access_order.desc(), kept_files.c.path_digest).limit(limit)
        return self._records(query, kept_file)

    def on_disk(self, ref: SessionRef) -> list[str]:
        """Paths of files that were read from the disk and are not known to be gone."""
        there = and_(
            kept_files.c.session_key == ref.key,
            kept_files.c.deleted.is_(False),
            kept_files.c.modified_ns.is_not(None),  # what somebody gave need not be on this disk
        )
        with self.database.read() as connection:
            return [unpacked(path) for path in connection.scalars(select(kept_files.c.path).where(there))]

    def placed(self, ref: SessionRef) -> dict[str, list[str]]:
        """Paths in `hot` and `warm`, the last opened first, and of the `pinned` ones: what a checkpoint has of them."""
        there = self._files(ref, kept_files.c.tier.in_(TIERS[:2]))
        hot, warm = ([file for file in there if file.tier == tier] for tier in TIERS[:2])
        named = {"hot": hot, "warm": warm, "pinned": [file for file in (*hot, *warm) if file.pinned]}
        return {name: [file.path for file in files] for name, files in named.items()}

    def content(self, ref: SessionRef, path: str, *, checksum: str | None = None) -> bytes | None:
        """A kept content, without an access; `None` where the file is not kept, or not with this `checksum`."""
        mine = and_(kept_files.c.session_key == ref.key, kept_files.c.path_digest == digest_of(path))
        with self.database.read() as connection:
            kept = connection.scalar(select(kept_files.c.checksum).where(mine))
            return None if kept is None or checksum not in {None, kept} else read_content(connection, ref.key, kept)

    def times(self, ref: SessionRef) -> RunTimes:
        """When what was done last, and the counts."""
        with self.database.read() as connection:
            query = select(file_tiers).where(file_tiers.c.session_key == ref.key)
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                return RunTimes()
            known: dict[str, float | None] = {
                name: row[name] for name in ("collected_at", "optimised_at", "crowded_at")
            }
            for error in damage_in(file_tiers, known):
                damage_of(connection).note(error)
                known[error.column] = None
            return RunTimes(**known, figures=_figures_of(connection, row))

    def saved_of_run(self, ref: SessionRef, what: str) -> dict[str, Any]:
        """What was saved of a run: of one that is `UNDER_WAY`, or of the last that `ENDED`; nothing where none is."""
        query = select(file_tiers).where(file_tiers.c.session_key == ref.key, file_tiers.c.report.is_not(None))
        with self.database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
            found = {} if row is None else _reports_in(connection, row).get(what)
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
        sizes = select(func.sum(file_contents.c.size), func.sum(func.length(file_contents.c.payload)))
        taught = func.sum(func.length(file_dictionaries.c.payload))
        with self.database.read() as connection:
            tiers = {
                row[0]: (row[1], int(row[2] or 0)) for row in connection.execute(by_tier.group_by(kept_files.c.tier))
            }
            size, stored = connection.execute(sizes.where(file_contents.c.session_key == ref.key)).one()
            dictionaries = int(connection.scalar(select(taught).where(file_dictionaries.c.session_key == ref.key)) or 0)
            pins = select(func.count()).where(mine, kept_files.c.pinned.is_(True))
            pinned = int(connection.scalar(pins) or 0)
        held = {tier: tiers.get(tier, (0, 0))[0] for tier in TIERS}
        stored_bytes = int(stored or 0) + dictionaries
        return TierSizes(
            files=held,
            bytes={tier: tiers.get(tier, (0, 0))[1] for tier in TIERS},
            stored_bytes=stored_bytes,
            packed_bytes=int(size or 0),
            packed_stored_bytes=stored_bytes,
            pinned=pinned,
            utilisation=(held["hot"] + held["warm"]) / (rules.hot.files + rules.warm.files),
            shares={"hot": held["hot"] / rules.hot.files, "warm": held["warm"] / rules.warm.files},
        )

    def settle(self, ref: SessionRef) -> None:
        """Write down accesses that wait, where any do."""
        if ref.key in {one.key for one in self.accesses.sessions()}:
            with self._changing(ref):
                pass

    @contextmanager
    def _changing(self, ref: SessionRef) -> Iterator[tuple[Connection, RowMapping]]:
        """A transaction with the session locked, and the row of its tiers.

        Accesses that waited are written first; where the transaction is rolled back, they wait again.
        """
        taken = self.accesses.take(ref.key)
        try:
            with self.database.write() as connection:
                row = _locked(connection, ref)
                if taken:
                    for order, (path, one) in enumerate(taken.items(), row["next_order"]):
                        count = kept_files.c.accesses + one.count
                        seen = {"accessed_at": one.at, "access_order": order, "accesses": count}
                        update_file(connection, ref.key, path, seen)
                    counts = {"opened_hot": sum(one.count for one in taken.values())}
                    _write_run(connection, ref, row, {"next_order": row["next_order"] + len(taken)}, counts)
                    row = _locked(connection, ref)
                yield connection, row
        except NotFoundError:
            raise  # its files went with it
        except BaseException:
            self.accesses.put_back(ref, taken)
            raise

    def open(
        self, ref: SessionRef, seen: SeenFile, *, now: float, rules: TierSettings, pinned: bool = False
    ) -> OpenedFile | None:
        """Take a file into hot and give its content; `None` where that is not kept and `seen` does not bring it."""
        came_back: int | None = None
        with self._changing(ref) as (connection, row):
            found = read_rows(connection, ref.key, [seen.path])
            before = found.get(seen.path)
            if seen.content is None and (before is None or before["checksum"] != seen.checksum):
                return None
            order = row["next_order"]
            # Its content comes first: what cannot be read leaves no trace of having been opened.
            content = seen.content if seen.content is not None else read_content(connection, ref.key, seen.checksum)
            if before is not None and now - before["accessed_at"] < rules.warm.seconds:
                asked = {"session": ref.key, "order": before["access_order"]}
                came_back = connection.scalar(_OPENED_SINCE, asked) if before["tier"] != "hot" else 0
            tiers = policy.fit(tiers_of(found), rules)
            tiers = policy.access(tiers, seen.path, now=now, order=order, size=seen.size, rules=rules)
            if pinned:
                tiers = policy.pin(tiers, seen.path, rules)
            moves = moves_between(found, tiers)
            write_changes(connection, ref.key, found, tiers)
            _take_in(connection, ref.key, before, seen=seen, file=tiers.files[seen.path])
            from_tier: Tier | None = before["tier"] if before is not None else None
            counts = {f"opened_{from_tier or 'new'}": 1, **_counts(moves)}
            _write_run(connection, ref, row, {"next_order": order + 1}, counts)
        if came_back is not None:
            self.returns.note(ref.key, at=now, distance=came_back)
        file = _as_kept(seen, tiers.files[seen.path], before)
        state: FileState = "new" if before is None else "deleted" if seen.deleted else "unchanged"
        if before is not None and before["checksum"] != seen.checksum:
            state = "changed"
        return OpenedFile(file=file, content=content, state=state, from_tier=from_tier, moves=moves)

    def change(
        self,
        ref: SessionRef,
        rule: Callable[[Tiers], Tiers] = lambda tiers: tiers,
        *,
        rules: TierSettings,
        paths: Iterable[str] = (),
        times: Mapping[str, float | None] | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> tuple[TierMove, ...]:
        """Apply a rule of `policy` to the tiers as they are within the limits, and write down its time and its count.

        The rule sees hot, warm and the cold files of `paths`; `times` are columns of `RunTimes` to be set, `counts` to
        be raised.
        """
        with self._changing(ref) as (connection, row):
            found = read_rows(connection, ref.key, paths)
            after = rule(policy.fit(tiers_of(found), rules))
            moves = moves_between(found, after)
            write_changes(connection, ref.key, found, after)
            _write_run(connection, ref, row, dict(times or {}), {**_counts(moves), **(counts or {})})
        return moves

    def save_of_run(self, ref: SessionRef, what: str, state: Mapping[str, Any]) -> None:
        """Keep what is known of a run for the process that ends it, or of one that ended: of earlier ones nothing."""
        with self._changing(ref) as (connection, row):
            before = {} if what == ENDED else _reports_in(connection, row)
            _write_run(connection, ref, row, {"report": json.dumps({**before, what: state})}, {})

    def mark_deleted(self, ref: SessionRef, paths: Sequence[str]) -> None:
        """Note that files are gone from the disk."""
        with self._changing(ref) as (connection, _):
            for path in paths:
                update_file(connection, ref.key, path, {"deleted": True})

    def drop(self, ref: SessionRef, paths: Sequence[str]) -> int:
        """No longer keep these files; returns how many went."""
        with self._changing(ref) as (connection, _):
            return drop_files(connection, ref.key, paths)

    def clear_obsolete(self, ref: SessionRef) -> tuple[TierMove, ...]:
        """Drop cold files that are gone from the disk, and contents and dictionaries that nobody needs."""
        with self._changing(ref) as (connection, _):
            mine = and_(kept_files.c.session_key == ref.key, kept_files.c.tier == "cold")
            obsolete = and_(mine, kept_files.c.deleted.is_(True), kept_files.c.pinned.is_(False))
            gone = [unpacked(path) for path in connection.scalars(select(kept_files.c.path).where(obsolete))]
            drop_files(connection, ref.key, gone)
            drop_unused(connection, ref.key)
        return tuple(TierMove(path=path, before="cold", after=None, reason="deleted") for path in gone)


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


def _write_run(
    connection: Connection,
    ref: SessionRef,
    row: RowMapping,
    values: Mapping[str, Any],
    counts: Mapping[str, int],
) -> None:
    """Set columns of a session's tiers, and raise counts."""
    figures = _figures_of(connection, row)
    for name, count in counts.items():
        figures[name] = figures.get(name, 0) + count
    changed = {**values, "figures": json.dumps(figures, sort_keys=True)}
    connection.execute(update(file_tiers).where(file_tiers.c.session_key == ref.key).values(changed))


def _reports_in(connection: Connection, row: RowMapping) -> dict[str, Any]:
    """What the column `report` has of runs; nothing where it is empty, or damaged, which is noted."""
    found = {} if row["report"] is None else _object_in(connection, row, "report", dict[str, Any])
    return found if not found or UNDER_WAY in found or ENDED in found else {ENDED: found}  # a release wrote it bare


def _figures_of(connection: Connection, row: RowMapping) -> dict[str, int]:
    """The counts of a session's tiers; none where they are damaged, which is noted."""
    return _object_in(connection, row, "figures", dict[str, int])


def _object_in(connection: Connection, row: RowMapping, column: str, kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    found: dict[str, Any] = readable_or(connection, lambda: rows.from_json(file_tiers, row, column, kind), otherwise={})
    return found


def _as_kept(seen: SeenFile, file: policy.Placed, before: RowMapping | None) -> KeptFile:
    """What is known of a file from now on."""
    is_same = before is not None and before["checksum"] == seen.checksum
    return KeptFile(
        tier=file.tier,
        changed_at=before["changed_at"] if before is not None and is_same else file.accessed_at,
        accessed_at=file.accessed_at,
        accesses=file.accesses,
        pinned=file.pinned,
        **{name: getattr(seen, name) for name in ("path", "dependencies", *_SEEN)},
    )


def _take_in(
    connection: Connection, key: int, before: RowMapping | None, *, seen: SeenFile, file: policy.Placed
) -> None:
    """Write what was seen of a file, and its content where that is brought along.

    A file that is new may have a row all the same, which is damaged: what was seen takes its place.
    """
    values: dict[str, Any] = {name: getattr(seen, name) for name in _SEEN}
    values["dependencies"] = rows.names_to_json(seen.dependencies)
    is_other = before is None or before["checksum"] != seen.checksum
    if is_other:
        values["changed_at"] = file.accessed_at
    if before is None:
        drop_files(connection, key, [seen.path])
    if seen.content is not None:
        keep_content(connection, key, seen.checksum, seen.content)
    if before is None:
        insert_file(connection, key, file, values)
        return
    if is_other or any(before[name] != values[name] for name in _MAY_CHANGE):
        update_file(connection, key, seen.path, values)
    if is_other:
        drop_unused(connection, key, [before["checksum"]])


def _counts(moves: Sequence[TierMove]) -> dict[str, int]:
    up = sum(one.is_promotion for one in moves)
    found = {"promotions": up, "demotions": len(moves) - up}
    return {name: count for name, count in found.items() if count}
