"""Vectors of passages in Chroma. A derived index: it may lag, be down or be rebuilt, the transcript is elsewhere.

Each embedder has a collection of its own, so another embedder starts an empty one beside the old, which stays usable
until it is dropped. Texts are embedded here; Chroma gets vectors, ids and filters, and never a model of its own.
"""

from __future__ import annotations

import heapq
import importlib
import shutil
import uuid
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.errors import ClosedError, IndexUnavailableError
from langchain_tiered_memory.models.embeddings import fingerprint_of
from langchain_tiered_memory.recall.chroma.clients import client_source
from langchain_tiered_memory.recall.chroma.collections import Collections, nearest_rows, of_sessions, speakable, stored
from langchain_tiered_memory.recall.chroma.directory import EmbeddedDirectory
from langchain_tiered_memory.sql.private_files import PRIVATE

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from chromadb.api import ClientAPI
    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.recall.vector_queue import VectorRow

T = TypeVar("T")

_BATCH_ROWS = 1000
_PAGE_ROWS = 50_000
_AXES = 2


class ChromaIndex:
    """Vectors of passages in Chroma, by passage id. Safe for threads; nothing slow happens before the first use.

    With a directory, several processes may write and search: each sees what the others wrote. Everything that Chroma,
    its server or the embedder raises becomes `IndexUnavailableError`; the next call tries anew. After `close()` each
    call raises `ClosedError`.

    Args:
        embeddings: Makes the vectors.
        where: `None`: this process's memory, shared with nobody. A path: a directory. `http://` or `https://`: a
            server. Or a `chromadb` client; one of a directory is opened again as that directory.
        namespace: Whose rows these are: the identity of the SQL database. Others in the same Chroma are never seen.
        documents: Also store the texts in Chroma, for other tools to read. Forgetting them takes `compact()`.
        timeout_seconds: For a server, the longest wait for one answer.
        bare: Whether to store nothing beside ids and vectors but the numbers of session and level.
        disposable: Whether a directory is this memory's alone: what cannot be read in it is deleted by `discard`, in
            others it is moved aside.
        file_mode: Of files in a directory that is made here; `None`: as the umask has it.

    Raises:
        SettingsError: when `where` is none of these.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        where: str | os.PathLike[str] | ClientAPI | None = None,
        *,
        namespace: str,
        documents: bool = False,
        bare: bool = False,
        timeout_seconds: float = 30.0,
        disposable: bool = False,
        file_mode: int | None = PRIVATE,
    ) -> None:
        self._embeddings = embeddings
        self._source = client_source(where, timeout_seconds=timeout_seconds, file_mode=file_mode)
        # Every client in memory of one process sees the same rows, so there the name must be unique.
        self._owned = where is None
        self._collections = Collections(namespace + (uuid.uuid4().hex if self._owned else ""))
        self._documents = documents
        self._bare = bare
        self._disposable = disposable
        self._fingerprint: str | None = None
        self._closed = False

    @property
    def reads_alone(self) -> bool:
        """Whether a search writes nothing anywhere."""
        return not isinstance(self._source, EmbeddedDirectory)

    @property
    def fingerprint(self) -> str:
        """Of the embedder: class, model and dimension; asked once."""
        if self._fingerprint is None:
            with self._reporting("the embedder could not be asked for its dimension"):
                self._fingerprint = fingerprint_of(self._embeddings)
        return self._fingerprint

    def add(self, rows: Sequence[VectorRow]) -> None:
        """Embed and store; an id that exists is replaced, of one that comes twice the last counts.

        Where that fails, some of the rows may be stored.
        """
        latest = list({row.id: row for row in rows}.values())
        for start in range(0, len(latest), _BATCH_ROWS):
            batch = latest[start : start + _BATCH_ROWS]
            vectors = self._vectors(self._embeddings.embed_documents, [row.text for row in batch])
            self._again(partial(self._store, batch, vectors))

    def search(self, query: str, *, session_keys: Sequence[int], limit: int, level: int = 0) -> list[tuple[int, float]]:
        """The `limit` nearest passages of a level of these sessions, as (passage id, cosine similarity), best first."""
        if limit < 1 or not session_keys:
            return []
        vector = self._vectors(lambda texts: [self._embeddings.embed_query(text) for text in texts], [query])[0]
        return self._again(partial(self._nearest, vector, of_sessions(session_keys, level), limit))

    def vectors(self, ids: Sequence[int]) -> dict[int, Any]:
        """The vectors of these passages, by id; of one that is not in the index, none."""
        return self._again(partial(self._stored_vectors, [str(row_id) for row_id in dict.fromkeys(ids)]))

    def _stored_vectors(self, named: Sequence[str]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        with self._working("reading vectors"), self._source.reading(self._name) as client:
            collection = self._collections.existing(client, self._name)
            for start in range(0, len(named) if collection is not None else 0, _BATCH_ROWS):
                rows = collection.get(ids=list(named[start : start + _BATCH_ROWS]), include=["embeddings"])
                found.update(zip(map(int, rows["ids"]), rows["embeddings"], strict=True))
        return found

    def _store(self, batch: Sequence[VectorRow], vectors: Any) -> None:  # noqa: ANN401 - numpy is loaded lazily
        with self._working("storing vectors"), self._source.writing() as client:
            collection = self._collections.made(client, self.fingerprint)
            most = client.get_max_batch_size()
            for first in range(0, len(batch), most):
                part = batch[first : first + most]
                collection.upsert(
                    ids=[str(row.id) for row in part],
                    embeddings=vectors[first : first + most],
                    metadatas=[stored(row.metadata, bare=self._bare) for row in part],
                    documents=[speakable(row.text) for row in part] if self._documents else None,
                )

    def _again(self, call: Callable[[], T]) -> T:
        """Call once more where the place was fine and what was known of it was not; all was looked up anew by then.

        Chroma stumbles over rows that another process removes while it searches a directory, and does not know a
        collection any more whose server was started without its files.
        """
        try:
            return call()
        except IndexUnavailableError as error:
            stumbled = isinstance(self._source, EmbeddedDirectory) and error.__cause__ is not None
            if not stumbled and type(error.__cause__).__name__ != "NotFoundError":
                raise
            return call()

    def _nearest(self, vector: Sequence[float], condition: Mapping[str, Any], limit: int) -> list[tuple[int, float]]:
        with self._working("searching vectors"), self._source.reading(self._name) as client:
            collection = self._collections.existing(client, self._name)
            found = nearest_rows(collection, vector, condition=condition, limit=limit) if collection is not None else []
        return heapq.nsmallest(limit, found, key=lambda hit: (-hit[1], hit[0]))

    def remove(self, ids: Sequence[int]) -> int:
        """Remove passages, from the collections of other embedders too. Returns how many were in this one's."""
        named = [str(row_id) for row_id in dict.fromkeys(ids)]
        removed = 0
        if not named:
            return 0
        with self._working("removing vectors"), self._source.writing() as client:
            for collection in self._collections.all(client):
                for start in range(0, len(named), _BATCH_ROWS):
                    there = collection.get(ids=named[start : start + _BATCH_ROWS], include=[])["ids"]
                    if there:
                        collection.delete(ids=there)
                    removed += len(there) if collection.name == self._name else 0
        return removed

    def ids(self) -> set[int]:
        """Every passage id in the index."""
        there: set[int] = set()
        with self._working("listing vectors"), self._source.reading(None) as client:
            collection = self._collections.existing(client, self._name)
            while collection is not None:
                page = collection.get(include=[], limit=_PAGE_ROWS, offset=len(there))["ids"]
                there.update(map(int, page))
                if len(page) < _PAGE_ROWS:
                    break
        return there

    def count(self) -> int:
        """How many passages of this embedder are in the index; 0 where nothing was added yet."""
        return self._again(self._counted)

    def _counted(self) -> int:
        with self._working("counting vectors"), self._source.reading(None) as client:
            collection = self._collections.existing(client, self._name)
            return 0 if collection is None else int(collection.count())

    def discard(self) -> str | None:
        """Start over with nothing where what is there cannot be read; says what became of it.

        Returns:
            `None` where it is out of reach: a server's, or the caller's own client's.
        """
        with self._working("starting over"):
            self._collections.forget()
            return self._source.discard(disposable=self._disposable)

    def clear(self) -> None:
        """Remove everything of this memory, whichever embedder made it."""
        with self._working("deleting collections"), self._source.writing() as client:
            going = self._collections.all(client)
            folders = self._source.folders_of([str(collection.id) for collection in going])
            for collection in going:
                client.delete_collection(collection.name)
            self._collections.forget()
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)

    def compact(self) -> tuple[str, ...]:
        """Make removed rows leave no trace in files; returns the places where that cannot be promised.

        Embedded Chroma keeps the vectors of removed rows until it saves its index; texts and filters go now.
        """
        with self._working("compacting the files"):
            return self._source.compact()

    def close(self) -> None:
        """Let go of files and connections. An index in memory is gone."""
        if self._closed:
            return
        # Nothing is stored before the embedder is known; an index that was never used need not load Chroma to end.
        if self._owned and self._fingerprint is not None:
            with suppress(IndexUnavailableError):  # in a forked child there is nothing to clear
                self.clear()
        self._closed = True
        self._source.close()

    @property
    def _name(self) -> str:
        return self._collections.name_for(self.fingerprint)

    def _vectors(self, embed: Callable[[list[str]], list[list[float]]], texts: list[str]) -> Any:  # noqa: ANN401 - numpy is loaded lazily
        numpy = importlib.import_module("numpy")
        with self._reporting("the embedder failed"):
            made = numpy.asarray(embed(texts), dtype=numpy.float32)
        expected = self.fingerprint.rpartition("/")[2]
        if made.ndim != _AXES or len(made) != len(texts) or (expected.isdigit() and made.shape[1] != int(expected)):
            msg = (
                f"the embedder returned vectors of the shape {made.shape} for {len(texts)} texts, not of {expected} "
                "dimensions; if its model changed, open the memory again and call rebuild_index()"
            )
            raise IndexUnavailableError(msg)
        if not numpy.isfinite(made).all():
            msg = "the embedder returned vectors that are not finite numbers; check its model"
            raise IndexUnavailableError(msg)
        return made

    @contextmanager
    def _working(self, doing: str) -> Iterator[None]:
        if self._closed:
            msg = "the vector index was closed; open the memory again"
            raise ClosedError(msg)
        try:
            with self._reporting(f"{doing} failed at {self._source.place}", self._source.remedy):
                yield
        except IndexUnavailableError:
            self._collections.forget()
            self._source.forget_client()
            raise

    @contextmanager
    def _reporting(self, what: str, remedy: str = "check it; the text index still answers") -> Iterator[None]:
        """The seam where Chroma's, a server's and an embedder's code runs."""
        try:
            yield
        except IndexUnavailableError:
            raise
        except BaseException as error:
            # Chroma's native part panics with a private type that is no `Exception`.
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            msg = f"{what} ({type(error).__name__}: {error}); the transcript is fine: {remedy}"
            raise IndexUnavailableError(msg) from error
