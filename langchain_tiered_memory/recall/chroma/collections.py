"""The collections of one memory, and the search in one of them."""

from __future__ import annotations

import hashlib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chromadb.api import ClientAPI

_SCOPE = "scope"
"""Session and level in one field: Chroma evaluates each field over the whole collection before it combines them."""


def stored(metadata: Mapping[str, str | int | float], *, bare: bool = False) -> dict[str, Any]:
    """A row's metadata as it is kept: text that Chroma would refuse made speakable, session and level joined.

    With `bare` these two alone.
    """
    names = ("session", "level") if bare else tuple(metadata)
    kept = {name: speakable(metadata[name]) for name in names if metadata[name] is not None}
    return {**kept, _SCOPE: _scope(metadata["session"], metadata["level"])}


def of_sessions(keys: Sequence[int], level: int) -> dict[str, Any]:
    """The filter of the rows of a level of these sessions: Chroma binds each as a variable of SQLite."""
    return {_SCOPE: {"$in": [_scope(key, level) for key in sorted(set(keys))]}}


def _scope(session: object, level: object) -> str:
    return f"{session}/{level}"


def speakable(value: Any) -> Any:  # noqa: ANN401 - whatever Chroma takes
    """The value with lone surrogates written out: alike when stored and when asked for."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


_HNSW: Any = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200}
"""Twice Chroma's defaults, by which equal vectors, as chats have them, crowd each other's links."""
_COMPARED_ROWS = 1000
"""Up to so many rows each is compared: exact, and in a large collection faster than the graph."""
_LISTED = 1000
_DIGEST_CHARACTERS = 24


class Collections:
    """Finds and makes the collections of one namespace.

    Args:
        namespace: Whose they are; any text.
    """

    def __init__(self, namespace: str) -> None:
        self._prefix = f"tm-{_digest(namespace)}-"
        self._found: tuple[ClientAPI, Any] | None = None

    def name_for(self, fingerprint: str) -> str:
        """The collection's name for an embedder: digests, for Chroma takes neither slashes nor long names."""
        return self._prefix + _digest(fingerprint)

    def made(self, client: ClientAPI, fingerprint: str) -> Any:  # noqa: ANN401 - Chroma is loaded lazily
        """This embedder's collection, made where it is missing."""
        found = self._found
        if found is None or found[0] is not client:
            # No embedding function: Chroma must neither fetch a model nor embed.
            collection = client.get_or_create_collection(
                self.name_for(fingerprint),
                embedding_function=None,
                configuration={"hnsw": _HNSW},
                metadata={"fingerprint": fingerprint},
            )
            found = self._found = (client, collection)
        return found[1]

    def existing(self, client: ClientAPI, name: str) -> Any:  # noqa: ANN401 - Chroma is loaded lazily
        """The collection of that name, or `None` where nothing was added yet."""
        found = self._found
        if found is not None and found[0] is client:
            return found[1]
        named = next((collection for collection in self.all(client) if collection.name == name), None)
        if named is not None:
            self._found = (client, named)
        return named

    def all(self, client: ClientAPI) -> list[Any]:
        """Every collection of the namespace."""
        listed: list[Any] = []
        while True:
            page = client.list_collections(limit=_LISTED, offset=len(listed))
            listed += page
            if len(page) < _LISTED:
                break
        names = [collection.name for collection in listed if collection.name.startswith(self._prefix)]
        return [client.get_collection(name, embedding_function=None) for name in names]

    def forget(self) -> None:
        """Look anew next time."""
        self._found = None


def nearest_rows(
    collection: Any,  # noqa: ANN401 - Chroma is loaded lazily
    vector: Any,  # noqa: ANN401 - numpy is loaded lazily
    *,
    condition: Mapping[str, Any],
    limit: int,
) -> list[tuple[int, float]]:
    """The rows nearest to `vector` among those that meet `condition`, with their cosine similarity.

    They come in no order, and there may be more of them than `limit`.
    """
    meeting = collection.get(where=condition, include=[], limit=_COMPARED_ROWS + 1)["ids"]
    if len(meeting) <= _COMPARED_ROWS:
        return _compared(collection, vector, meeting)
    found = collection.query(query_embeddings=[vector], n_results=limit, where=condition, include=["distances"])
    distances = (found["distances"] or [[]])[0]
    nearest = [(int(row_id), 1.0 - distance) for row_id, distance in zip(found["ids"][0], distances, strict=True)]
    if len(nearest) >= limit:
        return nearest
    # Fewer than asked for: either there are no more, or the graph has lost its way to them.
    meeting = collection.get(where=condition, include=[])["ids"]
    return nearest if len(meeting) <= len(nearest) else _compared(collection, vector, meeting)


def _compared(collection: Any, vector: Any, row_ids: list[str]) -> list[tuple[int, float]]:  # noqa: ANN401
    """Exact search: cosine with every row, without HNSW graph."""
    numpy = importlib.import_module("numpy")
    nearest: list[tuple[int, float]] = []
    for start in range(0, len(row_ids), _COMPARED_ROWS):
        rows = collection.get(ids=row_ids[start : start + _COMPARED_ROWS], include=["embeddings"])
        vectors = numpy.asarray(rows["embeddings"], dtype=numpy.float32)
        if not len(vectors):
            continue
        lengths = numpy.linalg.norm(vectors, axis=1) * numpy.linalg.norm(vector)
        similarities = vectors @ vector / numpy.maximum(lengths, 1e-12)
        nearest += zip(map(int, rows["ids"]), map(float, similarities), strict=True)
    return nearest


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
