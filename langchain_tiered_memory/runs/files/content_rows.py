"""Rows of kept contents and their dictionaries: in the caller's transaction, with the session locked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, delete, select, update

from langchain_tiered_memory.errors import DamagedFileError, DamagedRowError
from langchain_tiered_memory.runs.files.compression import Packed, checksum_of, packed, raw, unpacked
from langchain_tiered_memory.sql.column_forms import check, damage_in
from langchain_tiered_memory.sql.schema import file_contents, file_dictionaries, kept_files
from langchain_tiered_memory.sql.session_rows import insert_if_absent
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.files import TierMove


_MINE = and_(file_contents.c.session_key == bindparam("session"), file_contents.c.checksum == bindparam("named"))
_CONTENT = select(file_contents).where(_MINE)
_FORM: dict[str, Any] = {name: bindparam(name) for name in ("size", "form", "dictionary", "payload")}
_REPLACE = update(file_contents).where(_MINE).values(_FORM)
_IN_HOT = (
    select(kept_files.c.path_digest)
    .where(
        kept_files.c.session_key == bindparam("session"),
        kept_files.c.checksum == bindparam("named"),
        kept_files.c.tier == "hot",
    )
    .limit(1)
)
"""Statements of every opening: each is put together once."""


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
    named = {"session": key, "named": checksum}
    row = connection.execute(_CONTENT, named).mappings().one_or_none()
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
    connection.execute(_REPLACE, {"session": key, "named": checksum, **_columns(kept)})


def _columns(kept: Packed) -> dict[str, Any]:
    return {"size": kept.size, "form": kept.form, "dictionary": kept.dictionary, "payload": kept.payload}


def _is_in_hot(connection: Connection, key: int, checksum: str) -> bool:
    return connection.scalar(_IN_HOT, {"session": key, "named": checksum}) is not None


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
