"""A cache around an embedder: a measurement embeds each text once, for the memory and for the baselines together."""

from __future__ import annotations

import array
import hashlib
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.models.embeddings import fingerprint_of

if TYPE_CHECKING:
    from pathlib import Path

_BATCH = 256
"""Texts embedded between two writes to the file: what an interrupted run can lose."""


class CachedEmbeddings(Embeddings):
    """Remembers vectors by embedder and text, in memory and in a file if one is given. Counts as the embedder itself.

    Args:
        underlying: The embedder.
        path: An SQLite file, made if it is not there. `None`: forgotten with this object.
    """

    def __init__(self, underlying: Embeddings, *, path: Path | None = None) -> None:
        self.underlying_embeddings = underlying
        self._path = path
        self._name = fingerprint_of(underlying)
        self._known = self._read(path) if path is not None else {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text; only unknown texts are embedded.

        Raises:
            StorageError: when the file cannot be written.
        """
        keys = [self._key(text) for text in texts]
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        todo = sorted(unknown.items(), key=lambda item: len(item[1]))  # like lengths together: little padding
        for start in range(0, len(todo), _BATCH):
            batch = todo[start : start + _BATCH]
            vectors = self.underlying_embeddings.embed_documents([text for _, text in batch])
            added = dict(zip((key for key, _ in batch), vectors, strict=True))
            self._known |= added
            if self._path is not None:
                self._write(self._path, added)
        return [self._known[key] for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """The vector of one question."""
        key = self._key(f"query\0{text}")
        if key not in self._known:
            self._known[key] = self.underlying_embeddings.embed_query(text)
        return self._known[key]

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._name}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()

    @staticmethod
    def _read(path: Path) -> dict[str, list[float]]:
        try:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("create table if not exists vectors (key text primary key, vector blob not null)")
                rows = connection.execute("select key, vector from vectors").fetchall()
        except sqlite3.Error as error:
            msg = f"{path} cannot be used as a cache of vectors ({error}): name another file"
            raise StorageError(msg) from error
        return {key: array.array("f", vector).tolist() for key, vector in rows}

    @staticmethod
    def _write(path: Path, vectors: dict[str, list[float]]) -> None:
        rows = [(key, array.array("f", vector).tobytes()) for key, vector in vectors.items()]
        try:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.executemany("insert or replace into vectors values (?, ?)", rows)
        except sqlite3.Error as error:
            msg = f"{path} cannot be written ({error}): free some room, or run without the cache"
            raise StorageError(msg) from error
