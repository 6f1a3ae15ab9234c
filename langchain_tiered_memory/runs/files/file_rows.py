"""Kept files, their contents and their dictionaries as rows: in the caller's transaction, with the session locked.

What comes back is compared with its checksum: a frame that zstandard takes for sound, and what was put in, are two
things. Earlier releases kept contents of hot files as they are, and trained dictionaries: both are read.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import zstandard
from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from langchain_tiered_memory.errors import DamagedFileError, DamagedRowError
from langchain_tiered_memory.runs.files.policy import Placed, Tiers
from langchain_tiered_memory.sql import rows, schema
from langchain_tiered_memory.sql.column_forms import check, damage_in
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.rows import upsert
from langchain_tiered_memory.sql.schema import digest_of, file_contents, file_dictionaries, file_tiers, kept_files
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.files import KeptFile, TierMove

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.sql.column_forms import Columns


def keep_content(connection: Connection, key: int, checksum: str, content: bytes) -> None:
    """Keep a content, compressed, once however many files have it; it takes the place of one that is damaged."""
    values = {"session_key": key, "checksum": checksum, **_packed(content)}
    connection.execute(upsert(connection, file_contents, key=("session_key", "checksum"), values=values))


def read_content(connection: Connection, key: int, checksum: str) -> bytes:
    """A content as it was."""
    mine = and_(file_contents.c.session_key == key, file_contents.c.checksum == checksum)
    row = connection.execute(select(file_contents).where(mine)).mappings().one_or_none()
    if row is None:
        msg = "a kept content is gone; doctor() drops its file, which is read again when it is opened"
        raise DamagedFileError(msg)
    return unpack_row(connection, key, row)


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
            taught = None if number is None else _dictionary(connection, key, number)
            content = zstandard.ZstdDecompressor(dict_data=taught).decompress(content, max_output_size=row["size"])
        except (zstandard.ZstdError, MemoryError, ValueError, OverflowError) as error:
            msg = f"a kept content cannot be unpacked: {error}; doctor() drops it, and its file is read again"
            raise DamagedFileError(msg) from error
    if len(content) != row["size"] or checksum_of(content) != row["checksum"]:
        msg = "a kept content does not match its checksum; doctor() drops it, and its file is read again"
        raise DamagedFileError(msg)
    return content


def _dictionary(connection: Connection, key: int, number: int) -> zstandard.ZstdCompressionDict:
    mine = and_(file_dictionaries.c.session_key == key, file_dictionaries.c.number == number)
    row = connection.execute(select(file_dictionaries).where(mine)).mappings().one_or_none()
    is_sound = row is not None and not any(damage_in(file_dictionaries, row))
    if row is None or not is_sound or checksum_of(bytes(row["payload"])) != row["digest"]:
        msg = "a dictionary of kept contents is gone or damaged; doctor() drops the contents that need it"
        raise DamagedFileError(msg)
    return zstandard.ZstdCompressionDict(bytes(row["payload"]))


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
            this = update(file_contents).where(mine, file_contents.c.checksum == checksum)
            connection.execute(this.values(_packed(content)))
    connection.execute(delete(file_dictionaries).where(file_dictionaries.c.session_key == key))


_LEVEL = 15
"""Of zstandard: two milliseconds for a module of source code, and a percent larger than the levels above, which are
twice as slow."""
_LARGE_BYTES = 100_000
_LEVEL_OF_LARGE = 9
"""Of a large file: 2 MB take a tenth of a second, at 5 % more bytes, and not a whole one with the database locked."""


def checksum_of(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _packed(content: bytes) -> dict[str, Any]:
    """The columns of a content."""
    level = _LEVEL if len(content) <= _LARGE_BYTES else _LEVEL_OF_LARGE
    payload = zstandard.ZstdCompressor(level=level).compress(content)
    return {"payload": payload, "form": "zstd", "size": len(content), "dictionary": None}


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
_UPPER_ROWS = select(kept_files).where(
    kept_files.c.session_key == bindparam("session"), kept_files.c.tier.in_(("hot", "warm"))
)


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


def _path_and_row(row: RowMapping) -> tuple[str, RowMapping]:
    check(kept_files, row)
    return schema.unpacked(row["path"]), row


def tiers_of(found: Mapping[str, Columns]) -> Tiers:
    """Rows as the state of the rules."""
    return Tiers(
        {
            path: Placed(
                path=path,
                order=row["access_order"],
                pinned=bool(row["pinned"]),
                size=row["size"],
                **{name: row[name] for name in _OF_PLACED},
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
    mine = select(kept_files.c.path).where(kept_files.c.session_key == key)
    paths = [schema.unpacked(path) for path in connection.scalars(mine)]
    meant = [path for path in paths if any(path == one or path.endswith(f"/{one.lstrip('/')}") for one in names)]
    if not drop_files(connection, key, meant):
        return 0
    drop_dictionaries(connection, key)
    # The alerts of a report may name them.
    connection.execute(update(file_tiers).where(file_tiers.c.session_key == key).values(report=None))
    return len(meant)


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
