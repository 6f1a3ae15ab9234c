"""Search over items: by meaning with the memory's embedder, by words without one; filters, and labels of namespaces.

Vectors stand in SQL beside their items and every one within reach is compared: nothing lags behind what was put, a
removed item leaves no vector anywhere, and no other user's or namespace's items weigh in a score.
"""

from __future__ import annotations

import importlib
import math
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_tiered_memory.errors import IndexUnavailableError, InvalidInputError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.items.store import ItemDraft, Namespace, Place, Reach, StoredItem, as_json
from langchain_tiered_memory.recall.fusion import bm25
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE
from langchain_tiered_memory.sql.schema import digest_of
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.runtime import Runtime

Scored: TypeAlias = "tuple[StoredItem, float | None]"
_CAUGHT_UP = 512
"""Items without vectors, as of another embedder, that one search has read: the newest."""
_BATCH = 128
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_ANY_LABEL = "*"


def put_items(runtime: Runtime, reach: Reach, drafts: Sequence[ItemDraft]) -> None:
    """Write items with their vectors. Where no embedder answers they are written all the same, and read later.

    Raises:
        InvalidInputError: when a value is no JSON.
        StorageError: when they cannot be written; none was.
    """
    embeddings = runtime.embeddings()
    vectors: dict[Place, list[bytes]] | None = None
    read = [one for one in drafts if one.value is not None]
    for one in read:
        as_json(one)  # nothing is embedded of what cannot be written
    if embeddings is not None:
        made = _vectors_of(runtime, embeddings, [(one.value or {}, one.fields) for one in read])
        if made is not None:
            vectors = {(one.namespace, one.name): own for one, own in zip(read, made, strict=True)}
    embedder = digest_of(runtime.embedder()) if vectors is not None else None
    runtime.store.items.write(reach, drafts, vectors=vectors, embedder=embedder, now=runtime.now())


def search_items(
    runtime: Runtime,
    reach: Reach,
    namespace: Namespace,
    *,
    query: str | None,
    wanted: Mapping[str, Any] | None,
    limit: int,
    offset: int,
) -> list[Scored]:
    """A page of the items below a namespace, with their scores where something is asked.

    Without a question the last written come first. Behind those that have a score come those that have nothing to be
    searched by.

    Raises:
        InvalidInputError: for a filter that has an operator that nobody knows.
    """
    items, now = runtime.store.items, runtime.now()
    if not query and not wanted:
        return [(one, None) for one in items.below(reach, namespace, now=now, limit=limit, offset=offset)]
    scores = _by_meaning(runtime, reach, namespace, query) if query else None
    if scores is None:
        there = [one for one in items.below(reach, namespace, now=now) if is_meant(one.value, wanted or {})]
        if not query:
            return [(one, None) for one in there[offset : offset + limit]]
        scores, wanted = _by_words(there, query), None
    # Behind all that have a score stand those that have none, the last written first.
    ordered = sorted(scores, key=lambda key: (math.inf, -key) if (score := scores[key]) is None else (-score, key))
    if not wanted:  # then a page is read, and nothing else
        ordered, offset = ordered[offset : offset + limit], 0
    page: list[Scored] = []
    for start in range(0, len(ordered), ROWS_AT_ONCE):
        keys = ordered[start : start + ROWS_AT_ONCE]
        found = {one.key: one for one in items.below(reach, namespace, now=now, keys=keys)}
        there = [found[key] for key in keys if key in found]
        page += [(one, scores[one.key]) for one in there if is_meant(one.value, wanted or {})]
        if len(page) >= offset + limit:
            break
    return page[offset : offset + limit]


def embed_items(
    runtime: Runtime, reach: Reach | None = None, namespace: Namespace = (), *, limit: int | None = None
) -> int:
    """Have items read that the embedder has yet to read; returns how many. Everybody's where `reach` is `None`."""
    embeddings, done = runtime.embeddings(), 0
    if embeddings is None or runtime.store.database.read_only:
        return 0
    embedder = digest_of(runtime.embedder())
    while limit is None or done < limit:
        waiting = runtime.store.items.without_vectors(
            reach, namespace, embedder=embedder, now=runtime.now(), limit=_BATCH
        )
        runtime.store.database.end_snapshot()  # embedding takes its time
        made = _vectors_of(runtime, embeddings, [(one.value, fields) for one, fields in waiting])
        if not waiting or made is None:
            break
        kept = {one.key: (one.updated_at, own) for (one, _), own in zip(waiting, made, strict=True)}
        runtime.store.items.settle(kept, embedder=embedder)
        done += len(waiting)
    return done


def _by_meaning(runtime: Runtime, reach: Reach, namespace: Namespace, query: str) -> dict[int, float | None] | None:
    """The cosine of each item's nearest text, by its key; `None` where no embedder answers."""
    embeddings = runtime.embeddings()
    if embeddings is None:
        return None
    try:
        embed_items(runtime, reach, namespace, limit=_CAUGHT_UP)
        asked = _unit(embeddings.embed_query(query))
    except Exception as error:  # noqa: BLE001 - somebody else's embedder
        _report(runtime, error)
        return None
    scores: dict[int, float | None] = {}
    numpy = importlib.import_module("numpy")
    pages = runtime.store.items.vectors(reach, namespace, embedder=digest_of(runtime.embedder()), now=runtime.now())
    for page in pages:
        scores |= {key: None for key, vector in page if vector is None}
        whole = [(key, vector) for key, vector in page if vector is not None]
        if not whole:
            continue
        stacked = numpy.frombuffer(b"".join(bytes(vector) for _, vector in whole), dtype=numpy.float32)
        for (key, _), score in zip(whole, (stacked.reshape(len(whole), -1) @ asked).tolist(), strict=True):
            before = scores.get(key)
            scores[key] = score if before is None else max(before, score)
    return scores


def _by_words(there: Sequence[StoredItem], query: str) -> dict[int, float | None]:
    """BM25 of each item's words among these items, by its key."""
    said = [list(analyse(" ".join(_words_of(one.value)))) for one in there]
    terms = frozenset(analyse(query))
    holders = Counter(term for words in said for term in terms.intersection(words))
    scores, *_ = bm25(
        terms,
        said,
        passage_count=max(len(said), 1),
        average_terms=sum(map(len, said)) / max(len(said), 1),
        document_frequency=holders,
    )
    return {one.key: float(score) or None for one, score in zip(there, scores, strict=True)}


def _words_of(value: object) -> Iterator[str]:
    """Every text and figure in a value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _words_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words_of(inner)
    elif value is not None:
        yield str(value)


def _vectors_of(
    runtime: Runtime, embeddings: Embeddings, values: Sequence[tuple[Mapping[str, Any], Sequence[str]]]
) -> list[list[bytes]] | None:
    """Vectors of the texts at these paths of each value; `None` where the embedder fails, which is reported."""
    texts = [[text for field in fields for text in _texts_at(value, field)] for value, fields in values]
    distinct = list(dict.fromkeys(text for own in texts for text in own))
    try:
        made = embeddings.embed_documents(distinct) if distinct else []
        vectors = {text: _unit(vector).tobytes() for text, vector in zip(distinct, made, strict=True)}
        runtime.embedder()
    except Exception as error:  # noqa: BLE001 - somebody else's embedder
        _report(runtime, error)
        return None
    return [[vectors[text] for text in own] for own in texts]


def _texts_at(value: Mapping[str, Any], field: str) -> list[str]:
    from langgraph.store.base import get_text_at_path  # noqa: PLC0415 - only where there is a store

    return [text for text in get_text_at_path(value, field) if text]


def _unit(vector: Sequence[float]) -> Any:  # noqa: ANN401 - numpy is loaded lazily
    """A vector of length 1, as the database keeps it."""
    numpy = importlib.import_module("numpy")
    made = numpy.asarray(vector, dtype=numpy.float32)
    if made.ndim != 1 or not numpy.isfinite(made).all():
        msg = "the embedder did not return a list of finite numbers; check its model"
        raise IndexUnavailableError(msg)
    return made / max(float(numpy.linalg.norm(made)), 1e-12)


def _report(runtime: Runtime, error: Exception) -> None:
    reason = f"items are searched by words until the embedder answers again ({type(error).__name__}: {error})"
    runtime.report(EventName.VECTORS_UNAVAILABLE, reason)


def is_meant(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value has what a filter asks for; `a.b` is the `b` of its `a`, where it has no `a.b`.

    Raises:
        InvalidInputError: for an operator that nobody knows.
    """
    return all(_holds(_at(value, key), condition) for key, condition in wanted.items())


def _at(value: object, key: str) -> Any:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict) or key in value:
        return value.get(key) if isinstance(value, dict) else None
    first, dot, rest = key.partition(".")
    return _at(value.get(first), rest) if dot else None


def _holds(value: Any, condition: Any) -> bool:  # noqa: ANN401 - any JSON
    if isinstance(condition, dict):
        if any(str(key).startswith("$") for key in condition):
            return all(_compares(value, how, other) for how, other in condition.items())
        return isinstance(value, dict) and all(_holds(value.get(key), inner) for key, inner in condition.items())
    if isinstance(condition, list | tuple):
        if not isinstance(value, list) or len(value) != len(condition):
            return False
        return all(_holds(one, inner) for one, inner in zip(value, condition, strict=True))
    return bool(value == condition)


def _compares(value: Any, how: str, other: Any) -> bool:  # noqa: ANN401 - any JSON
    if how == "$eq":
        return bool(value == other)
    if how == "$ne":
        return bool(value != other)
    if how not in _ORDERS:
        msg = f"a filter has the unknown operator {how!r}: use one of $eq, $ne, {', '.join(_ORDERS)}"
        raise InvalidInputError(msg)
    for kind in (float, str):  # what no order is known for is not meant
        try:
            return _ORDERS[how](kind(value), kind(other)) if value is not None else False
        except (TypeError, ValueError):
            continue
    return False


def has_labels(namespace: Namespace, labels: Sequence[str], *, at_end: bool) -> bool:
    """Whether a namespace begins, or ends, with these labels; `*` stands for any one."""
    if len(labels) > len(namespace):
        return False
    there = namespace[len(namespace) - len(labels) :] if at_end else namespace[: len(labels)]
    return all(wanted in (_ANY_LABEL, label) for wanted, label in zip(labels, there, strict=True))
