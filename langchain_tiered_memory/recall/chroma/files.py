"""What embedded Chroma leaves in its files, and how to take it out. Knows the layout of Chroma 1.x on disk.

Found by reading the files after writing and deleting marked rows (Chroma 1.5.9):

- `chroma.sqlite3` keeps deleted rows in free pages and in the trigram index's segments, and its write-ahead table
  `embeddings_queue` keeps the metadata (and documents) of the last thousand or so changes, deletions included.
- A vector folder's `data_level0.bin` is written from memory that nobody has cleared: past the last element it holds
  whatever the process had on its heap. Metadata was found there that way; message text could be.
- Deleting a collection leaves its vector folder on disk.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import closing
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import IndexUnavailableError
from langchain_tiered_memory.sql.private_files import PRIVATE, create_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

DATABASE = "chroma.sqlite3"

_HEADER = struct.Struct("<i4Q")
"""hnswlib's `header.bin` as Chroma writes it: version, offset, capacity, elements in use, bytes per element."""
_LENGTH_BYTES = 4
_ZEROS = bytes(1 << 20)


def put_away(place: Path, going: Sequence[Path], aside: Path | None) -> str:
    """Delete what is in (or at) a place, or move it into the folder `aside`; says which.

    Raises:
        OSError: when a file cannot be deleted or moved.
    """
    if aside is not None and going:
        create_folder(aside, PRIVATE)
    for path in going:
        if aside is not None:
            path.rename(aside / path.name)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    became = "deleted" if aside is None else f"moved to {aside}"
    return f"what was at {place} ({len(going)} files and folders) was {became}"


def require_readable(directory: Path) -> None:
    """Refuse a directory that Chroma would stumble over at once, again with each attempt.

    Raises:
        IndexUnavailableError: when the database in it is damaged.
    """
    path = directory / DATABASE
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            return  # busy, or not to be opened by us: Chroma may do better
        msg = f"{path} is damaged ({error}): call rebuild_index(), which starts over in an empty directory"
        raise IndexUnavailableError(msg) from error


def blank_unused(directory: Path) -> None:
    """Overwrite what stands past the last element of every vector folder with zeros.

    Raises:
        OSError: when a file cannot be written.
    """
    for header in directory.glob("*/header.bin"):
        head = header.read_bytes()[: _HEADER.size]
        if len(head) < _HEADER.size:
            continue
        _, _, _, elements, element_bytes = _HEADER.unpack(head)
        _blank_from(header.with_name("data_level0.bin"), elements * element_bytes)
        _blank_from(header.with_name("length.bin"), elements * _LENGTH_BYTES)


def scrub_database(directory: Path, *, busy_seconds: float) -> None:
    """Take what is no longer in any collection out of `chroma.sqlite3`, free pages included.

    Nothing that Chroma still has to read is touched: of the write-ahead rows only the metadata that its metadata
    index has already taken in goes, the vectors stay for the vector index.

    Raises:
        sqlite3.Error: when the file is locked, damaged or laid out otherwise.
    """
    path = directory / DATABASE
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute(
            """
            UPDATE embeddings_queue SET metadata = NULL WHERE metadata IS NOT NULL AND EXISTS (
                SELECT 1 FROM segments JOIN max_seq_id ON max_seq_id.segment_id = segments.id
                WHERE segments.scope = 'METADATA' AND max_seq_id.seq_id >= embeddings_queue.seq_id
                AND embeddings_queue.topic LIKE '%/' || segments.collection
            )
            """
        )
        database.execute("INSERT INTO embedding_fulltext_search (embedding_fulltext_search) VALUES ('optimize')")
        database.execute("VACUUM")
        if (database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() or (0,))[0]:
            msg = f"it and {DATABASE}-wal have their old content, because another process or connection reads it"
            raise sqlite3.OperationalError(msg)


def vector_folders(directory: Path, collection_ids: Iterable[str]) -> list[Path]:
    """The folders that hold these collections' vectors; asked before the collections are deleted.

    Raises:
        sqlite3.Error: when the database cannot be read.
    """
    path = directory / DATABASE
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        rows = [
            row
            for collection_id in collection_ids
            for row in database.execute("SELECT id FROM segments WHERE collection = ?", (collection_id,))
        ]
    return [folder for (name,) in rows if (folder := directory / name).is_dir()]


def _blank_from(path: Path, start: int) -> None:
    if not path.exists():
        return
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(start)
        while (left := size - file.tell()) > 0:
            file.write(_ZEROS[:left])
