"""The vector index is brought up to date with SQL: new passages embedded, removed ones taken out.

The index may be down, or belong to another embedder: then the text index answers alone, the queue waits in SQL, and
that is reported once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError
from langchain_tiered_memory.flows.asking import Flow, do

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.protocols import VectorIndex
    from langchain_tiered_memory.records import SessionRef

_BATCH = 256
"""Passages embedded before their rows are settled."""


def usable_index(house: House) -> Flow[VectorIndex | None]:
    """The vector index, if there is one and it holds vectors of this embedder.

    Raises:
        IndexUnavailableError: when it cannot be opened.
    """
    index = yield from do(house.open_index)
    if index is None:
        return None
    fingerprint = yield from do(lambda: index.fingerprint)
    known = yield from do(house.store.vector_queue.embedder)
    if known is None:
        yield from do(house.store.vector_queue.set_embedder, fingerprint)
    elif known != fingerprint:
        msg = (
            f"the vector index was built with {known}, this memory embeds with {fingerprint}: search is lexical until "
            "rebuild_index() embeds everything again, or the memory is opened with the former embeddings"
        )
        raise EmbedderMismatchError(msg)
    return index


def index_pending(house: House, *, ref: SessionRef | None = None, limit: int | None = None) -> Flow[int]:
    """Embed what waits, the whole memory's or one session's, and drop what was forgotten.

    Returns:
        How many passages were embedded. An outage ends the work, is reported, and leaves the rest in the queue.
    """
    done = 0
    try:
        index = yield from usable_index(house)
        if index is None:
            return 0
        yield from drop_forgotten(house, index)
        while limit is None or done < limit:
            size = _BATCH if limit is None else min(_BATCH, limit - done)
            rows = yield from do(
                house.store.vector_queue.pending,
                limit=size,
                levels_above_0=house.settings.tree.embed_summaries,
                ref=ref,
                newest_first=limit is not None,
            )
            if not rows:
                break
            yield from do(index.add, rows)
            yield from do(house.store.vector_queue.settle, [row.id for row in rows], fingerprint=index.fingerprint)
            yield from _drop_overtaken(house, index, [row.id for row in rows])
            done += len(rows)
    except IndexUnavailableError as error:
        house.report("vectors_unavailable", str(error))
    except EmbedderMismatchError as error:
        house.report("vectors_of_another_embedder", str(error))
    return done


def _drop_overtaken(house: House, index: VectorIndex, ids: list[int]) -> Flow[None]:
    """Passages may be edited or forgotten while they are embedded: what is no more must not stay."""
    alive = {passage.id for passage in (yield from do(house.store.text_index.by_id, None, ids))}
    gone = [one for one in ids if one not in alive]
    if gone:
        yield from do(index.remove, gone)


def drop_forgotten(house: House, index: VectorIndex) -> Flow[int]:
    """Take vectors of removed passages out of the index. Returns how many were there."""
    dropped = 0
    while True:
        ids = yield from do(house.store.vector_queue.forgotten, limit=_BATCH)
        if not ids:
            return dropped
        dropped += yield from do(index.remove, ids)
        yield from do(house.store.vector_queue.settle_forgotten, ids)
