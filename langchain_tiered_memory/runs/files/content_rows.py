"""Kept contents and their dictionaries: compressed with zstandard, and as rows.

A dictionary that was trained on a session's own files pays on many small ones, and costs its own size once. What comes
back is compared with its checksum: a frame that zstandard takes for sound, and what was put in, are two things. Rows
are read and written in the caller's transaction, with the session locked.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypeAlias

import zstandard
from sqlalchemy import Connection, and_, bindparam, delete, select, update

from langchain_tiered_memory.errors import DamagedFileError, DamagedRowError
from langchain_tiered_memory.sql.column_forms import check, damage_in
from langchain_tiered_memory.sql.rows import insert_if_absent
from langchain_tiered_memory.sql.schema import file_contents, file_dictionaries, kept_files
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.files import TierMove


Kept: TypeAlias = dict[str, Any]
"""A content as it is kept: its `payload`, in which `form`, the `size` of it as it is, the `dictionary` it needs."""
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


def insert_content(connection: Connection, key: int, checksum: str, kept: Kept) -> None:
    """Keep a content, once however many files have it."""
    values = {"session_key": key, "checksum": checksum, **kept}
    connection.execute(insert_if_absent(connection, file_contents).values(values))


def read_content(connection: Connection, key: int, checksum: str) -> bytes:
    """A content as it was."""
    return unpack_row(connection, key, content_row(connection, key, checksum))


def content_row(connection: Connection, key: int, checksum: str) -> RowMapping:
    """A content as it is kept."""
    named = {"session": key, "named": checksum}
    row = connection.execute(_CONTENT, named).mappings().one_or_none()
    if row is None:
        msg = "a kept content is gone; doctor() drops its file, which is read again when it is opened"
        raise DamagedFileError(msg)
    return row


def unpack_row(connection: Connection, key: int, row: Columns) -> bytes:
    """The content of a row, compared with its checksum."""
    try:
        check(file_contents, row)
    except DamagedRowError as error:
        raise DamagedFileError(str(error)) from error
    content = bytes(row["payload"])
    if row["form"] != "raw":
        number = row["dictionary"]
        try:
            taught = None if number is None else zstandard.ZstdCompressionDict(read_dictionary(connection, key, number))
            content = zstandard.ZstdDecompressor(dict_data=taught).decompress(content, max_output_size=row["size"])
        except (zstandard.ZstdError, MemoryError, ValueError, OverflowError) as error:
            msg = f"a kept content cannot be unpacked: {error}; doctor() drops it, and its file is read again"
            raise DamagedFileError(msg) from error
    if len(content) != row["size"] or checksum_of(content) != row["checksum"]:
        msg = "a kept content is not what its checksum says; doctor() drops it, and its file is read again"
        raise DamagedFileError(msg)
    return content


def read_dictionary(connection: Connection, key: int, number: int) -> bytes:
    """A dictionary."""
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


def replace_content(connection: Connection, key: int, checksum: str, kept: Kept) -> None:
    """Keep a content in another form."""
    connection.execute(_REPLACE, {"session": key, "named": checksum, **kept})


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


QUICK_LEVEL = 3
"""For a file that leaves hot while somebody waits: zstandard's own default, some 100 MB a second."""
DENSE_LEVEL = 12
"""For what the collector packs: a tenth denser than the quick level; the levels above take ten times as long for a
percent or two."""
LEAST_SAMPLES = 16
"""Fewer files than this teach a dictionary nothing."""
_SAMPLES_PER_DICTIONARY_BYTE = 4
"""A dictionary is at most this part of what it was trained on, or it would be a copy of it."""
_LEAST_DICTIONARY_BYTES = 1024
_LEAST_GAIN = 0.95
"""Of the size without a dictionary: with one it must be less, its own size included, to be worth being kept."""


def checksum_of(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def raw(content: bytes) -> Kept:
    """A content as it is, for a file in hot."""
    return {"payload": content, "form": "raw", "size": len(content), "dictionary": None}


def packed(content: bytes, *, dense: bool = False, dictionary: tuple[bytes, int] | None = None) -> Kept:
    """A content compressed: `dense` where nobody waits for it, with a dictionary and its number where one is given."""
    level = DENSE_LEVEL if dense else QUICK_LEVEL
    taught = zstandard.ZstdCompressionDict(dictionary[0]) if dictionary is not None else None
    payload = zstandard.ZstdCompressor(level=level, dict_data=taught).compress(content)
    form, number = "dense" if dense else "zstd", dictionary[1] if dictionary is not None else None
    return {"payload": payload, "form": form, "size": len(content), "dictionary": number}


def train(contents: Sequence[bytes], *, most_bytes: int) -> tuple[bytes, int] | None:
    """A dictionary for contents like these, with its number; `None` where none can be made of them."""
    size = min(most_bytes, sum(map(len, contents)) // _SAMPLES_PER_DICTIONARY_BYTE)
    if len(contents) < LEAST_SAMPLES or size < _LEAST_DICTIONARY_BYTES:
        return None
    try:
        trained = zstandard.train_dictionary(size, list(contents))
    except zstandard.ZstdError:  # samples that have nothing in common, or are too few for its taste
        return None
    return trained.as_bytes(), trained.dict_id()


def densely(
    contents: Mapping[str, bytes], *, most_dictionary_bytes: int
) -> tuple[dict[str, Kept], tuple[bytes, int] | None]:
    """Contents packed as densely as they go, by their checksums, and the dictionary that they need where one paid."""
    plain = {name: packed(content, dense=True) for name, content in contents.items()}
    made = train(list(contents.values()), most_bytes=most_dictionary_bytes) if most_dictionary_bytes else None
    if made is None:
        return plain, None
    with_it = {name: packed(content, dense=True, dictionary=made) for name, content in contents.items()}
    taken = len(made[0]) + sum(len(one["payload"]) for one in with_it.values())
    if taken >= _LEAST_GAIN * sum(len(one["payload"]) for one in plain.values()):
        return plain, None
    return with_it, made
