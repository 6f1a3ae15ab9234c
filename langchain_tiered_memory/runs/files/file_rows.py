"""Rows of kept files, their contents and dictionaries: in the caller's transaction, with the session locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from langchain_tiered_memory.errors import DamagedFileError, DamagedRowError
from langchain_tiered_memory.runs.files.compression import Packed, checksum_of, packed, raw, unpacked
from langchain_tiered_memory.runs.files.policy import Placed, Tiers
from langchain_tiered_memory.sql import rows, schema
from langchain_tiered_memory.sql.column_forms import check, damage_in
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.schema import digest_of, file_contents, file_dictionaries, kept_files
from langchain_tiered_memory.sql.session_rows import insert_if_absent
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.files import KeptFile, TierMove

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import ColumnElement, RowMapping

    from langchain_tiered_memory.sql.column_forms import Columns

_UPPER = ("hot", "warm")


def kept_file(row: Columns) -> KeptFile:
    """A row of `ltm_kept_files`.

    Raises:
        DamagedRowError: when a column cannot be read.
    """
    check(kept_files, {name: value for name, value in row.items() if name != "path"})
    return KeptFile(
        path=schema.unpacked(row["path"]),
        tier=row["tier"],
        kind=row["kind"],
        size=row["size"],
        modified_ns=row["modified_ns"],
        accessed_at=row["accessed_at"],
        changed_at=row["changed_at"],
        accesses=row["accesses"],
        checksum=row["checksum"],
        dependencies=rows.names_in(kept_files, row, "dependencies"),
        pinned=bool(row["pinned"]),
        deleted=bool(row["deleted"]),
    )


_PLACED = (
    kept_files.c.session_key,
    kept_files.c.path_digest,
    kept_files.c.path,
    kept_files.c.tier,
    kept_files.c.pinned,
    kept_files.c.size,
    kept_files.c.checksum,
    kept_files.c.changed_at,
    kept_files.c.accessed_at,
    kept_files.c.access_order,
    kept_files.c.accesses,
    kept_files.c.modified_ns,
    kept_files.c.dependencies,
    kept_files.c.deleted,
)
"""What the rules ask of a file: fifty rows are read at each access, so no more than that."""
_UPPER_ROWS = select(*_PLACED).where(kept_files.c.session_key == bindparam("session"), kept_files.c.tier.in_(_UPPER))


def read_rows(connection: Connection, key: int, paths: Iterable[str] = ()) -> dict[str, RowMapping]:
    """The files of hot and warm, and the named ones, by path; damaged rows are left out and noted."""
    found = list(connection.execute(_UPPER_ROWS, {"session": key}).mappings())
    wanted = [digest_of(path) for path in dict.fromkeys(paths)]
    there = {row["path_digest"] for row in found}
    mine = and_(kept_files.c.session_key == key, kept_files.c.tier == "cold")
    for part in chunks([digest for digest in wanted if digest not in there]):
        named = select(*_PLACED).where(mine, kept_files.c.path_digest.in_(part))
        found += connection.execute(named).mappings()
    return dict(readable(connection, found, _path_and_row))


def read_place(connection: Connection, key: int, path: str) -> RowMapping | None:
    """One file, as `read_rows` reads it; `None` where it is not kept, or its row is damaged."""
    mine = and_(kept_files.c.session_key == key, kept_files.c.path_digest == digest_of(path))
    row = connection.execute(select(*_PLACED).where(mine)).mappings().one_or_none()
    return row if row is not None and not any(damage_in(kept_files, row)) else None


def _path_and_row(row: RowMapping) -> tuple[str, RowMapping]:
    check(kept_files, row)
    return schema.unpacked(row["path"]), row


def tiers_of(found: Mapping[str, Columns]) -> Tiers:
    """Rows as the state of the rules."""
    return Tiers(
        {
            path: Placed(
                path=path,
                tier=row["tier"],
                accessed_at=row["accessed_at"],
                order=row["access_order"],
                accesses=row["accesses"],
                size=row["size"],
                pinned=bool(row["pinned"]),
            )
            for path, row in found.items()
        }
    )


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
        if row is None:
            continue
        values = {
            "tier": one.tier,
            "pinned": one.pinned,
            "accessed_at": one.accessed_at,
            "access_order": one.order,
            "accesses": one.accesses,
        }
        if changed := {name: value for name, value in values.items() if row[name] != value}:
            connection.execute(update(kept_files).where(_this(key, path)).values(changed))


def _this(key: int, path: str) -> ColumnElement[bool]:
    return and_(kept_files.c.session_key == key, kept_files.c.path_digest == digest_of(path))


def insert_content(connection: Connection, key: int, checksum: str, kept: Packed) -> None:
    """Keep a content, once however many files have it."""
    values = {"session_key": key, "checksum": checksum, **_columns(kept)}
    connection.execute(insert_if_absent(connection, file_contents).values(values))


def read_content(connection: Connection, key: int, checksum: str) -> bytes:
    """A content as it was.

    Raises:
        DamagedFileError: when it is not there, or is not what was kept.
    """
    return unpack_row(connection, key, content_row(connection, key, checksum))


def content_row(connection: Connection, key: int, checksum: str) -> RowMapping:
    """A content as it is kept.

    Raises:
        DamagedFileError: when it is not there.
    """
    mine = and_(file_contents.c.session_key == key, file_contents.c.checksum == checksum)
    row = connection.execute(select(file_contents).where(mine)).mappings().one_or_none()
    if row is None:
        msg = "a kept content is gone; doctor() drops its file, which is read again when it is opened"
        raise DamagedFileError(msg)
    return row


def unpack_row(connection: Connection, key: int, row: Columns) -> bytes:
    """The content of a row, compared with its checksum.

    Raises:
        DamagedFileError: when it is not what was kept.
    """
    try:
        check(file_contents, row)
    except DamagedRowError as error:
        raise DamagedFileError(str(error)) from error
    kept = Packed(bytes(row["payload"]), row["form"], row["size"], row["dictionary"])
    dictionary = None if kept.dictionary is None else read_dictionary(connection, key, kept.dictionary)
    return unpacked(kept, row["checksum"], dictionary=dictionary)


def read_dictionary(connection: Connection, key: int, number: int) -> bytes:
    """A dictionary.

    Raises:
        DamagedFileError: when it is not there, or is not what was kept.
    """
    mine = and_(file_dictionaries.c.session_key == key, file_dictionaries.c.number == number)
    row = connection.execute(select(file_dictionaries).where(mine)).mappings().one_or_none()
    is_sound = row is not None and not any(damage_in(file_dictionaries, row))
    if row is None or not is_sound or checksum_of(bytes(row["payload"])) != row["digest"]:
        msg = "a dictionary of kept contents is gone or damaged; doctor() drops the contents that need it"
        raise DamagedFileError(msg)
    return bytes(row["payload"])


def repack(connection: Connection, key: int, moves: Sequence[TierMove], found: Mapping[str, Columns]) -> None:
    """Give contents the form of their tier: as they are in hot, compressed below; what hot has too stays as it is."""
    for move in moves:
        if "hot" not in (move.before, move.after) or move.path not in found:
            continue
        checksum = found[move.path]["checksum"]
        try:
            row = content_row(connection, key, checksum)
            if move.after == "hot" and row["form"] != "raw":
                replace_content(connection, key, checksum, raw(unpack_row(connection, key, row)))
            elif move.after != "hot" and row["form"] == "raw" and not _is_in_hot(connection, key, checksum):
                replace_content(connection, key, checksum, packed(unpack_row(connection, key, row)))
        except DamagedFileError:
            continue  # whoever opens it is told; `verify` names it


def replace_content(connection: Connection, key: int, checksum: str, kept: Packed) -> None:
    """Keep a content in another form."""
    mine = and_(file_contents.c.session_key == key, file_contents.c.checksum == checksum)
    connection.execute(update(file_contents).where(mine).values(_columns(kept)))


def _columns(kept: Packed) -> dict[str, Any]:
    return {"size": kept.size, "form": kept.form, "dictionary": kept.dictionary, "payload": kept.payload}


def _is_in_hot(connection: Connection, key: int, checksum: str) -> bool:
    mine = and_(kept_files.c.session_key == key, kept_files.c.checksum == checksum, kept_files.c.tier == "hot")
    return connection.scalar(select(kept_files.c.path_digest).where(mine).limit(1)) is not None


def drop_unused(connection: Connection, key: int, checksums: Iterable[str] | None = None) -> int:
    """Remove contents that no file has, of these or of all, and dictionaries that no content needs.

    Returns:
        How many contents and dictionaries went.
    """
    mine = and_(kept_files.c.session_key == key, kept_files.c.checksum == file_contents.c.checksum)
    unused = and_(file_contents.c.session_key == key, ~select(kept_files.c.checksum).where(mine).exists())
    gone = 0
    if checksums is None:
        gone += connection.execute(delete(file_contents).where(unused)).rowcount
    else:
        for part in chunks(list(dict.fromkeys(checksums))):
            gone += connection.execute(delete(file_contents).where(unused, file_contents.c.checksum.in_(part))).rowcount
    needed = and_(file_contents.c.session_key == key, file_contents.c.dictionary == file_dictionaries.c.number)
    without = and_(file_dictionaries.c.session_key == key, ~select(file_contents.c.checksum).where(needed).exists())
    return gone + connection.execute(delete(file_dictionaries).where(without)).rowcount


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
    return len(meant)


_PATHS = select(kept_files.c.path).where(kept_files.c.session_key == bindparam("session"))


def drop_dictionaries(connection: Connection, key: int) -> None:
    """Keep every content without a dictionary; one that cannot be read goes, with the files that have it."""
    mine = file_contents.c.session_key == key
    needing = select(file_contents.c.checksum).where(mine, file_contents.c.dictionary.is_not(None))
    for checksum in connection.scalars(needing).all():
        try:
            content = read_content(connection, key, checksum)
        except DamagedFileError:
            connection.execute(delete(file_contents).where(mine, file_contents.c.checksum == checksum))
            lost = and_(kept_files.c.session_key == key, kept_files.c.checksum == checksum)
            connection.execute(delete(kept_files).where(lost))
        else:
            replace_content(connection, key, checksum, packed(content, dense=True))
    connection.execute(delete(file_dictionaries).where(file_dictionaries.c.session_key == key))


def insert_file(connection: Connection, key: int, file: Placed, values: Mapping[str, Any]) -> None:
    """A row for a file that was not kept."""
    connection.execute(
        insert(kept_files).values(
            session_key=key,
            path_digest=digest_of(file.path),
            path=schema.packed(file.path),
            tier=file.tier,
            pinned=file.pinned,
            accessed_at=file.accessed_at,
            access_order=file.order,
            accesses=file.accesses,
            **values,
        )
    )


def update_file(connection: Connection, key: int, path: str, values: Mapping[str, Any]) -> None:
    """What was seen of a file that is kept."""
    connection.execute(update(kept_files).where(_this(key, path)).values(dict(values)))


def obsolete_paths(connection: Connection, key: int) -> list[str]:
    """Cold files that are gone from the disk; pinned ones are kept."""
    mine = and_(kept_files.c.session_key == key, kept_files.c.deleted.is_(True), kept_files.c.pinned.is_(False))
    gone = select(kept_files.c.path).where(mine, kept_files.c.tier == "cold")
    return [schema.unpacked(path) for path in connection.scalars(gone)]
