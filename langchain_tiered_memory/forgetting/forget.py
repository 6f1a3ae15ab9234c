"""`forget()`: rows, summaries above them, vectors and bytes, in order, with a receipt that can be checked.

What is about to go is written down first, as numbers. A removal that was broken off anywhere is carried to its end by
the next open, forget or doctor; until then `verify` names it.

LangGraph's checkpointer and store keep what was said too: what can be deleted there is, and what cannot is named.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.driver import MethodCall
from langchain_tiered_memory.errors import (
    EmbedderMismatchError,
    IndexUnavailableError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TieredMemoryError,
)
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.recall.indexing import drop_forgotten, usable_index
from langchain_tiered_memory.reports import Problem, Receipt
from langchain_tiered_memory.text.readings import let_go_of_readings
from langchain_tiered_memory.text.terms import let_go_of_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry

K = TypeVar("K")
_IN_MEMORY = ("InMemorySaver", "InMemoryStore")
"""Those of LangGraph's checkpointers and stores that have no files."""
_FREE_SPACE = "free space of its database, until it is overwritten"
_PAGE_OF_ITEMS = 100


def forget_messages(
    runtime: Runtime,
    session_id: str,
    message_ids: Sequence[str],
    *,
    track: str,
    alone: bool = False,
    checkpointer: Any = None,  # noqa: ANN401 - LangGraph's own
) -> Receipt:
    """Remove messages of a track. What their summaries covered besides is summarised again.

    An id that the track does not have is that of the one other track that has it; with `alone` no other is looked at.

    What was forgotten before is no error: traces that were left of it are looked for again.
    """
    transcript, tombstones = runtime.store.transcript, runtime.store.tombstones
    ref = transcript.find(session_id)
    copies = transcript.by_id(ref, message_ids, track=track if alone else None) if ref is not None else []
    found = {one.id: one for one in copies}
    if ref is not None and not alone:
        found = transcript.named(ref, message_ids, track=track)
    missing = set(message_ids) - set(found)
    missing -= tombstones.named(session_id, missing)
    if missing or (ref is None and not message_ids):
        msg = f"the session {session_id!r} has no message {', '.join(map(repr, sorted(missing))) or 'at all'}"
        raise NotFoundError(msg)
    seen = type(checkpointer).__name__ if checkpointer is not None else None
    if seen is None:
        gone = tombstones.checkpointer_of(session_id)
        seen = ref.checkpointer if ref is not None else gone
    going = {entry.seq for entry in found.values()}
    return _removed(
        runtime,
        {ref.key: sorted(going)} if ref is not None and going else {},
        session_ids=(session_id,),
        remains=_left_in_threads({session_id: seen}, whole=False)
        + _on_other_tracks(session_id, [entry for entry in copies if entry.seq not in going]),
    )


def _on_other_tracks(session_id: str, copies: Sequence[Entry]) -> tuple[str, ...]:
    """Where messages of the same ids still stand: a sub-graph may have been handed them too."""
    tracks: dict[str, list[str]] = {}
    for entry in copies:
        tracks.setdefault(entry.track, []).append(entry.id)
    return tuple(
        f"The track {track!r} of the session {session_id!r}: {len(there)} messages of the same ids; "
        f"session(..., track={track!r}).forget(message_ids=...) removes them"
        for track, there in tracks.items()
    )


def forget_sessions(
    runtime: Runtime,
    *,
    session_id: str | None = None,
    user: str | None = None,
    checkpointer: Any = None,  # noqa: ANN401 - LangGraph's own
    store: Any = None,  # noqa: ANN401 - as above
    namespaces: Sequence[Sequence[str]] = (),
) -> Flow[Receipt]:
    """Remove a session whole, or every session of a user with their items. What is not there any more is no error.

    The arguments, and what it refuses, are those of `TieredMemory.forget`. Where the database cannot remove them
    now, it raises `StorageError`, and the removal is finished later.
    """
    if session_id is not None and store is not None:
        msg = "items of a store belong to users, not to sessions: forget(user=...) takes a store"
        raise InvalidInputError(msg)
    _refuse_what_is_no_store(store, namespaces)
    if (session_id is None) == (user is None):
        msg = "name either a session_id or a user to forget"
        raise InvalidInputError(msg)
    _refuse_what_is_no_checkpointer(checkpointer)
    if session_id is not None:
        ref = runtime.store.transcript.find(session_id)
        refs = [ref] if ref is not None else []
    else:
        refs = runtime.store.transcript.sessions(user=user)
    there = {one.session_id: one.checkpointer for one in refs}
    threads = dict(there)
    if session_id is not None and not refs:
        threads[session_id] = runtime.store.tombstones.checkpointer_of(session_id)
    deleted: dict[str, int] = {}
    items: dict[tuple[str, ...], int] = {}
    if checkpointer is None:
        remains = _left_in_threads(threads, whole=True)
    else:
        # It comes before anything of ours is removed: killed in between, the same call finds the sessions again.
        each = {one: _without_thread(checkpointer, one) for one in threads}
        deleted, remains = yield from _deleted_there("checkpointer", checkpointer, "the thread", each)
        if deleted:
            runtime.store.tombstones.threads_deleted(list(deleted))
    if store is not None:
        of_namespaces = {one: _emptied(store, one) for one in map(tuple, namespaces)}
        items, left = yield from _deleted_there("store", store, "items of the namespace", of_namespaces)
        remains += left
    targets = {one.key: () for one in refs}
    receipt = _removed(runtime, targets, session_ids=tuple(there), remains=remains, user=user)
    return replace(receipt, threads=len(deleted), items=receipt.items + sum(items.values()))


def resume_removals(runtime: Runtime) -> None:
    """Carry removals to their end that were broken off; one that cannot be ended now is reported, and waits."""
    if not runtime.store.removal.begun():
        return
    try:
        _, remains = _carried_out(runtime)
    except TieredMemoryError as error:
        remains = (str(error),)
    left = runtime.store.removal.begun()
    if left:
        runtime.report(
            EventName.REMOVAL_UNFINISHED,
            f"{len(left)} removals were begun and cannot be finished now: {'; '.join(remains)}",
            removals=[one.key for one in left],
        )


def unfinished_removals(runtime: Runtime) -> list[Problem]:
    """Removals that were begun and are not finished; `resume_removals` finishes them."""
    return [
        Problem(
            kind="unfinished_removal",
            what=f"removal {one.key}",
            detail=(
                f"{len(one.targets)} sessions still have messages that were to be forgotten; doctor() removes them"
                if one.targets
                else "traces of forgotten text may remain in files; doctor() tries again to erase them"
            ),
        )
        for one in runtime.store.removal.begun()
    ]


def _removed(
    runtime: Runtime,
    targets: Mapping[int, Sequence[int]],
    *,
    session_ids: tuple[str, ...],
    remains: tuple[str, ...],
    user: str | None = None,
) -> Receipt:
    """Write down what is to go, have it go, and tell what did."""
    removal = runtime.store.removal
    about = {telemetry.CONVERSATION: session_ids[0] if len(session_ids) == 1 else None}
    with telemetry.operation("delete_memory", about) as note:
        key = removal.begin(targets, now=runtime.now(), user=user)
        vectors, left = _carried_out(runtime, first=key)
        removed = removal.removed(key)
        note({telemetry.RECORDS: removed["entries"]})
    runtime.report(
        EventName.FORGOTTEN,
        f"{removed['entries']} messages, {removed['summaries']} summaries",
        sessions=len(session_ids),
        entries=removed["entries"],
    )
    return Receipt(session_ids=session_ids, vectors=vectors, may_remain=remains + left, at=runtime.now(), **removed)


def _carried_out(runtime: Runtime, *, first: int | None = None) -> tuple[int, tuple[str, ...]]:
    """Carry out every removal that was begun, `first` before the others, and erase the traces of all.

    Returns:
        How many vectors went, and the places where bytes may remain.
    """
    removal = runtime.store.removal
    begun = removal.begun()
    for one in sorted(begun, key=lambda one: (one.key != first, one.key)):
        for target in one.targets:
            removal.carry_out(one.key, target)
    let_go_of_readings()
    let_go_of_words()
    runtime.view_cache.clear()
    runtime.last_requests.clear()
    runtime.counter.clear()
    vectors, remains, waits = _without_vectors(runtime)
    left: tuple[str, ...] = ()
    # Erasing rewrites the database: not at each open while Chroma is away.
    if not begun or any(one.targets or not one.is_erased for one in begun):
        left = removal.erase_traces()
    # What PostgreSQL keeps is in its nature, and not to be waited for.
    if not (left and runtime.store.database.dialect == "sqlite"):
        removal.mark([one.key for one in begun], now=runtime.now(), is_done=not waits)
    return vectors, remains + left


def _without_vectors(runtime: Runtime) -> tuple[int, tuple[str, ...], bool]:
    """Take the vectors of what was forgotten out of Chroma.

    Returns:
        How many went, where they or their traces may remain, and whether it is to be tried again.
    """
    vectors = 0
    try:
        index = usable_index(runtime)
        if index is not None:
            vectors = drop_forgotten(runtime, index)
            return vectors, index.compact(), False
    except EmbedderMismatchError as error:
        return 0, (f"Chroma: the vectors of forgotten text, in an index of another embedder ({error})",), False
    except IndexUnavailableError as error:
        remains = f"Chroma: the vectors of forgotten text, until Chroma can be reached again ({error})"
        return vectors, (remains,), True
    known = runtime.store.vector_queue.embedder()
    if known is None:
        return 0, (), False
    return 0, (f"Chroma: the vectors of forgotten text, because this memory was opened without {known}",), False


def _refuse_what_is_no_store(store: object, namespaces: Sequence[Sequence[str]]) -> None:
    """Refuse what cannot delete items, and a deletion that names nothing, before anything is removed."""
    if store is None and not namespaces:
        return
    if not (callable(getattr(store, "search", None)) and callable(getattr(store, "delete", None))):
        msg = f"a {type(store).__name__} is not a LangGraph store: pass the one that your graph was compiled with"
        raise InvalidInputError(msg)
    if not namespaces or not all(namespaces):
        msg = (
            "say which items of the store are the user's: name their namespaces, such as "
            'namespaces=[("memories", "zoe")]'
        )
        raise InvalidInputError(msg)


def _deleted_there(
    where: str, keeper: object, what: str, each: Mapping[K, Flow[int]]
) -> Flow[tuple[dict[K, int], tuple[str, ...]]]:
    """How many each deletion in a part of LangGraph took, and what may remain there all the same.

    One that fails is named, for the rest is to be forgotten all the same.
    """
    of, took, remains = f"LangGraph's {where} ({type(keeper).__name__})", dict[K, int](), list[str]()
    for key, deletion in each.items():
        try:
            took[key] = yield from deletion
        except Exception as error:  # noqa: BLE001 - somebody else's code
            remains.append(f"{of}: {what} {key!r} could not be deleted ({type(error).__name__}: {error})")
    if any(took.values()) and type(keeper).__name__ not in _IN_MEMORY:
        remains.append(f"{of}: {_FREE_SPACE}")
    return took, tuple(remains)


def _emptied(store: Any, namespace: tuple[str, ...]) -> Flow[int]:  # noqa: ANN401 - as above
    """Delete the items of a namespace, and of those below it; returns how many went."""
    deleted = 0
    while found := (yield MethodCall(of=store, name="search", args=(namespace,), options={"limit": _PAGE_OF_ITEMS})):
        for item in found:
            yield MethodCall(of=store, name="delete", args=(item.namespace, item.key))
        first = found[0]
        # A store that deletes nothing would be asked for the same items for ever.
        if (yield MethodCall(of=store, name="get", args=(first.namespace, first.key))) is not None:
            msg = f"the item {first.key!r} was deleted and is still there"
            raise StorageError(msg)
        deleted += len(found)
    return deleted


def _refuse_what_is_no_checkpointer(saver: object) -> None:
    """Refuse what cannot delete a thread, before anything is removed."""
    if saver is not None and not callable(getattr(saver, "delete_thread", None)):
        msg = (
            f"a {type(saver).__name__} is not a LangGraph checkpointer that can delete a thread: pass the one that the "
            "graph was compiled with"
        )
        raise InvalidInputError(msg)


def _without_thread(saver: Any, session_id: str) -> Flow[int]:  # noqa: ANN401 - as above
    yield MethodCall(of=saver, name="delete_thread", args=(session_id,))
    return 1


def _left_in_threads(found: Mapping[str, str | None], *, whole: bool) -> tuple[str, ...]:
    """What the LangGraph checkpointers that were seen with these sessions keep of what was forgotten here."""
    by_name: dict[str, list[str]] = {}
    for session_id, name in found.items():
        if name is not None:
            by_name.setdefault(name, []).append(session_id)
    remedy = (
        "forget with checkpointer=... deletes a thread there too"
        if whole
        else "remove them from the state with RemoveMessage; its earlier checkpoints go only with the whole thread"
    )
    return tuple(
        f"LangGraph's checkpointer ({name}): the messages in "
        f"{f'the thread {ids[0]!r}' if len(ids) == 1 else f'{len(ids)} threads'}; {remedy}"
        for name, ids in by_name.items()
    )
