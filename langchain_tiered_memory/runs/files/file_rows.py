"""Rows of kept files: in the caller's transaction, with the session locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, update

from langchain_tiered_memory.runs.files.content_rows import drop_dictionaries, drop_unused
from langchain_tiered_memory.runs.files.policy import Placed, Tiers
from langchain_tiered_memory.sql import rows, schema
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.schema import digest_of, file_tiers, kept_files
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.files import KeptFile, TierMove

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.runs.files.accesses import Waiting
    from langchain_tiered_memory.sql.column_forms import Columns

_UPPER = ("hot", "warm")
_AS_STORED = ("tier", "kind", "size", "modified_ns", "accessed_at", "changed_at", "accesses", "checksum")
"""Columns that `KeptFile` has as they are."""


def kept_file(row: Columns) -> KeptFile:
    """A row of `ltm_kept_files`."""
    check(kept_files, {name: value for name, value in row.items() if name != "path"})
    return KeptFile(
        path=schema.unpacked(row["path"]),
        dependencies=rows.names_in(kept_files, row, "dependencies"),
        pinned=bool(row["pinned"]),
        deleted=bool(row["deleted"]),
        **{name: row[name] for name in _AS_STORED},
    )


_OF_PLACED = ("tier", "accessed_at", "accesses")
"""Columns that `Placed` has as they are."""
_UPPER_ROWS = select(kept_files).where(kept_files.c.session_key == bindparam("session"), kept_files.c.tier.in_(_UPPER))


def read_rows(connection: Connection, key: int, paths: Iterable[str] = ()) -> dict[str, RowMapping]:
    """The files of hot and warm, and the named ones, by path; damaged rows are left out and noted."""
    found = list(connection.execute(_UPPER_ROWS, {"session": key}).mappings())
    wanted = [digest_of(path) for path in dict.fromkeys(paths)]
    there = {row["path_digest"] for row in found} if wanted else ()
    mine = and_(kept_files.c.session_key == key, kept_files.c.tier == "cold")
    for part in chunks([digest for digest in wanted if digest not in there]):
        named = select(kept_files).where(mine, kept_files.c.path_digest.in_(part))
        found += connection.execute(named).mappings()
    return dict(readable(connection, found, _path_and_row))


def opened_since(connection: Connection, key: int, order: int) -> int:
    """How many files were opened since an access."""
    return int(connection.scalar(_OPENED_SINCE, {"session": key, "order": order}) or 0)


_OPENED_SINCE = (
    select(func.count())
    .select_from(kept_files)
    .where(
        kept_files.c.session_key == bindparam("session"),
        kept_files.c.tier.in_(("hot", "warm", "cold")),  # the index has the tier before the order
        kept_files.c.access_order > bindparam("order"),
    )
)


_MOST_SOUND = 10_000
_sound: set[int] = set()
"""Hashes of rows that were found sound: of the fifty that each access reads, all but a few are as they were before."""


def _path_and_row(row: RowMapping) -> tuple[str, RowMapping]:
    number = hash(repr(tuple(row.values())))
    if number not in _sound:
        check(kept_files, row)
        if len(_sound) >= _MOST_SOUND:
            _sound.clear()
        _sound.add(number)
    return schema.unpacked(row["path"]), row


def tiers_of(found: Mapping[str, Columns]) -> Tiers:
    """Rows as the state of the rules."""
    return Tiers({path: Placed(path=path, order=row["access_order"], **_placed(row)) for path, row in found.items()})


def _placed(row: Columns) -> dict[str, Any]:
    return {name: row[name] for name in _OF_PLACED} | {"pinned": bool(row["pinned"]), "size": row["size"]}


def moves_between(found: Mapping[str, Columns], after: Tiers) -> tuple[TierMove, ...]:
    """Files whose tier is another one, those that go down first."""
    moves = [
        TierMove(path=path, before=before, after=one.tier, reason=after.reasons.get(path, "opened"))
        for path, one in after.files.items()
        if one.tier != (before := found[path]["tier"] if path in found else None)
    ]
    return tuple(sorted(moves, key=lambda one: (one.is_promotion, one.path)))


def write_changes(connection: Connection, key: int, found: Mapping[str, Columns], after: Tiers) -> None:
    """Write places of files that have a row and changed; nothing of contents."""
    for path, one in after.files.items():
        row = found.get(path)
        if row is None or (row["tier"], row["access_order"], bool(row["pinned"])) == (one.tier, one.order, one.pinned):
            continue
        if changed := {name: value for name, value in _columns(one).items() if row[name] != value}:
            update_file(connection, key, path, changed)


def drop_files(connection: Connection, key: int, paths: Sequence[str]) -> int:
    """No longer keep these files, nor contents that none of the others has. Returns how many went."""
    mine = kept_files.c.session_key == key
    gone, freed = 0, set[str]()
    for part in chunks([digest_of(path) for path in paths]):
        these = and_(mine, kept_files.c.path_digest.in_(part))
        freed |= set(connection.scalars(select(kept_files.c.checksum).where(these)))
        gone += connection.execute(delete(kept_files).where(these)).rowcount
    if freed:
        drop_unused(connection, key, freed)
    return gone


def forget_files(connection: Connection, key: int, touched: Iterable[str]) -> int:
    """Remove kept files that forgotten messages touched, whatever form their path has there; returns how many.

    A dictionary holds pieces of what it was trained on: what it compressed is kept without one from then on.
    """
    names = {one.removeprefix("./").rstrip("/") for one in touched}
    if not names:
        return 0
    paths = [schema.unpacked(path) for path in connection.scalars(_PATHS, {"session": key})]
    meant = [path for path in paths if any(path == one or path.endswith(f"/{one.lstrip('/')}") for one in names)]
    if not drop_files(connection, key, meant):
        return 0
    drop_dictionaries(connection, key)
    # The alerts of a report may name them.
    connection.execute(update(file_tiers).where(file_tiers.c.session_key == key).values(report=None))
    return len(meant)


_PATHS = select(kept_files.c.path).where(kept_files.c.session_key == bindparam("session"))


def insert_file(connection: Connection, key: int, file: Placed, values: Mapping[str, Any]) -> None:
    """A row for a file that was not kept."""
    connection.execute(
        insert(kept_files).values(
            session_key=key,
            path_digest=digest_of(file.path),
            path=schema.packed(file.path),
            **_columns(file),
            **values,
        )
    )


def _columns(file: Placed) -> dict[str, Any]:
    return {"access_order": file.order, "pinned": file.pinned} | {name: getattr(file, name) for name in _OF_PLACED}


_THIS = update(kept_files).where(
    kept_files.c.session_key == bindparam("session"), kept_files.c.path_digest == bindparam("digest")
)


def update_file(connection: Connection, key: int, path: str, values: Mapping[str, Any]) -> None:
    """What was seen of a file that is kept."""
    connection.execute(_THIS.values(dict(values)), {"session": key, "digest": digest_of(path)})


def update_accesses(connection: Connection, key: int, waiting: Mapping[str, Waiting], *, first_order: int) -> None:
    """Write accesses down that waited, in their order; a file that is not kept any more is left out."""
    for order, (path, one) in enumerate(waiting.items(), first_order):
        seen = {
            "accessed_at": one.at,
            "access_order": order,
            "accesses": kept_files.c.accesses + one.count,
        }
        update_file(connection, key, path, seen)


def obsolete_paths(connection: Connection, key: int) -> list[str]:
    """Cold files that are gone from the disk; pinned ones are kept."""
    mine = and_(kept_files.c.session_key == key, kept_files.c.deleted.is_(True), kept_files.c.pinned.is_(False))
    gone = select(kept_files.c.path).where(mine, kept_files.c.tier == "cold")
    return [schema.unpacked(path) for path in connection.scalars(gone)]
