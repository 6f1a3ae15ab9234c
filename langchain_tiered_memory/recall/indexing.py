"""Brings the vector index up to date with SQL: embeds new passages, takes removed ones out.

The index may be down, or belong to another embedder: then the text index answers alone, the queue waits in SQL, and
that is reported once.

A silent vector index is left alone, and asked again behind the questions.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import stop_point
from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError, TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.models.circuit_breaker import CircuitBreaker

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.models.circuit_breaker import Pass
    from langchain_tiered_memory.recall.chroma.index import ChromaIndex
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_FIRST_PAUSE_SECONDS = 1.0
"""A server that was stopped for a moment is back in use soon after."""
_LONGEST_PAUSE_SECONDS = 60.0
"""One that is away for long costs a request a minute, and is missed a minute at most."""


def index_breaker() -> CircuitBreaker:
    """What leaves a vector index alone that stays silent."""
    return CircuitBreaker(failures=1, seconds=_FIRST_PAUSE_SECONDS, max_seconds=_LONGEST_PAUSE_SECONDS)


def is_left_alone(runtime: Runtime) -> bool:
    """Whether a question is not to wait for the index; where it is time to, it is asked again in the background."""
    breaker = runtime.index_breaker
    if not breaker.is_open:
        return False
    given = breaker.enter(runtime.monotonic())
    if given is not None:
        threading.Thread(target=_ask, args=(runtime, given), name="tiered-memory-index", daemon=True).start()
    return True


def answered(runtime: Runtime) -> None:
    """The index gave an answer: questions go to it again."""
    if runtime.index_breaker.succeeded():
        runtime.report(EventName.VECTORS_BACK, "the vector index answers again: search uses it from now on")


def _ask(runtime: Runtime, given: Pass) -> None:
    try:
        index = runtime.open_index()
        if index is not None:
            index.count()
    except TieredMemoryError:  # still silent, or the memory was closed meanwhile
        runtime.index_breaker.failed(given, runtime.monotonic())
        return
    answered(runtime)


_BATCH = 256
"""Passages embedded before their rows are settled."""


def usable_index(runtime: Runtime) -> ChromaIndex | None:
    """The vector index, if there is one and it holds vectors of this embedder.

    Raises:
        IndexUnavailableError: when it cannot be opened.
    """
    index = runtime.open_index()
    if index is None:
        return None
    fingerprint = index.fingerprint
    known = runtime.store.vector_queue.embedder()
    if known is None:
        if not runtime.store.database.read_only:
            runtime.store.vector_queue.set_embedder(fingerprint)
    elif known != fingerprint:
        msg = (
            f"the vector index was built with {known}, this memory embeds with {fingerprint}: search is lexical until "
            "rebuild_index() embeds everything again, or the memory is opened with the former embeddings"
        )
        raise EmbedderMismatchError(msg)
    return index


def index_all(
    runtime: Runtime, *, ref: SessionRef | None = None, is_over: Callable[[], bool] = lambda: False
) -> Flow[int]:
    """`brought_up` in batches, with a stop point behind each; `is_over` is asked there whether to end."""
    done = 0
    while some := brought_up(runtime, ref=ref, limit=_BATCH)[0]:
        done += some
        yield from stop_point()
        if is_over():
            break
    return done


def brought_up(
    runtime: Runtime,
    *,
    ref: SessionRef | None = None,
    limit: int | None = None,
    newest_first: bool = False,
    before: int | None = None,
    embedded: Callable[[int], None] | None = None,
) -> tuple[int, ChromaIndex | None]:
    """Embed what waits, the whole memory's or one session's, oldest first, and drop what was forgotten.

    With `before`, of the messages only those before that `seq`.

    Returns:
        How many passages were embedded, and the index where it can be asked now: `None` spares another wait for one
        that is down. An outage ends the work, is reported, and leaves the rest in the queue.
    """
    done = 0
    try:
        index = usable_index(runtime)
        if index is None:
            return 0, None
        drop_forgotten(runtime, index)
        while limit is None or done < limit:
            size = _BATCH if limit is None else min(_BATCH, limit - done)
            rows = runtime.store.vector_queue.pending(limit=size, ref=ref, newest_first=newest_first, before=before)
            if not rows:
                break
            runtime.store.database.end_snapshot()  # embedding takes its time
            index.add(rows)
            runtime.store.vector_queue.settle([row.id for row in rows], fingerprint=index.fingerprint)
            drop_forgotten(runtime, index)  # passages may be edited or forgotten while they are embedded
            done += len(rows)
            if embedded is not None:
                embedded(len(rows))
            answered(runtime)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        report_outage(runtime, error)
        return done, None
    return done, index


def report_outage(runtime: Runtime, error: Exception, session_id: str | None = None) -> None:
    """Say why search goes on by words; once, of an index that stays silent, which is left alone."""
    reason = str(error)
    if isinstance(error, IndexUnavailableError) and error.is_silent:
        breaker, now = runtime.index_breaker, runtime.monotonic()
        given = breaker.enter(now) if not breaker.is_open else None
        seconds = breaker.failed(given, now) if given is not None else None
        if seconds is None:
            return
        reason += f"; search continues by words at once, and asks again in the background, first in {seconds:g} s"
    of_another = isinstance(error, EmbedderMismatchError)
    name = EventName.VECTORS_OF_ANOTHER_EMBEDDER if of_another else EventName.VECTORS_UNAVAILABLE
    runtime.report(name, reason, session_id=session_id)


def queue_lost(runtime: Runtime) -> bool:
    """Queue again what SQL takes for embedded and the index does not hold: a server may come back without its files.

    Returns:
        Whether the index can be used. Where it cannot, that was reported.
    """
    try:
        index = usable_index(runtime)
        if index is None:
            return False
        # SQL first: what is embedded meanwhile makes the index larger, not smaller.
        settled = runtime.store.vector_queue.count_settled(fingerprint=index.fingerprint)
        if settled:
            there = index.count()
            answered(runtime)
            if there < settled:
                _queue_missing(runtime, index)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        report_outage(runtime, error)
        return False
    return True


def _queue_missing(runtime: Runtime, index: ChromaIndex) -> None:
    settled = runtime.store.vector_queue.settled(fingerprint=index.fingerprint)
    there = index.ids()
    missing = [one for one in settled if one not in there]
    if missing:
        runtime.store.vector_queue.unsettle(missing)
        runtime.report(
            EventName.VECTORS_LOST,
            f"the vector index held {len(there)} passages where {len(settled)} had been embedded, as happens if a "
            f"server is started without its files: {len(missing)} are embedded again",
            missing=len(missing),
            settled=len(settled),
        )


def drop_forgotten(runtime: Runtime, index: ChromaIndex) -> int:
    """Take vectors of removed passages out of the index. Returns how many were there."""
    dropped = 0
    while True:
        ids = runtime.store.vector_queue.forgotten(limit=_BATCH)
        if not ids:
            return dropped
        dropped += index.remove(ids)
        runtime.store.vector_queue.settle_forgotten(ids)
