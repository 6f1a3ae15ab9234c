"""LangGraph's checkpointer and store keep what was said too: what can be deleted there is, and what cannot is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.driver import Flow, HostCall, off_loop
from langchain_tiered_memory.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.runtime import Runtime

_NAMED = 5
"""Threads that a receipt names, of many: `session_ids` has all."""
_IN_MEMORY = "InMemorySaver"
"""The one of LangGraph's checkpointers that has no files."""
_STORE_IN_MEMORY = "InMemoryStore"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteThread(HostCall):
    """Delete a thread from LangGraph's checkpointer."""

    saver: Any
    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteItems(HostCall):
    """Delete the items of a namespace, and of those below it, from a store of LangGraph; answers how many went."""

    store: Any
    namespace: tuple[str, ...]


_PAGE_OF_ITEMS = 100


def take_out(call: DeleteThread | DeleteItems) -> int:
    """Delete a thread, or the items of a namespace; says how many."""
    if isinstance(call, DeleteThread):
        call.saver.delete_thread(call.thread_id)
        return 1
    deleted = 0
    while found := call.store.search(call.namespace, limit=_PAGE_OF_ITEMS):
        for item in found:
            call.store.delete(item.namespace, item.key)
        _require_gone(found, call.store.get(found[0].namespace, found[0].key))
        deleted += len(found)
    return deleted


async def atake_out(call: DeleteThread | DeleteItems) -> int:
    """As `take_out`, without blocking the event loop; a checkpointer without async runs in an executor."""
    if isinstance(call, DeleteThread):
        try:
            await call.saver.adelete_thread(call.thread_id)
        except NotImplementedError:
            await off_loop(call.saver.delete_thread, call.thread_id)
        return 1
    deleted = 0
    while found := await call.store.asearch(call.namespace, limit=_PAGE_OF_ITEMS):
        for item in found:
            await call.store.adelete(item.namespace, item.key)
        _require_gone(found, await call.store.aget(found[0].namespace, found[0].key))
        deleted += len(found)
    return deleted


def _require_gone(deleted: Sequence[Any], left: object) -> None:
    """Go on where a store deletes: one that does not would be asked for the same items for ever."""
    if left is not None:
        msg = f"the item {deleted[0].key!r} was deleted and is still there"
        raise StorageError(msg)


def refuse_what_is_no_store(store: object, namespaces: Sequence[Sequence[str]]) -> None:
    """Refuse what cannot delete items, and a deletion that names nothing, before anything is removed."""
    if store is None and not namespaces:
        return
    if not (callable(getattr(store, "search", None)) and callable(getattr(store, "delete", None))):
        msg = f"a {type(store).__name__} is not a LangGraph store: hand in the one that the graph was compiled with"
        raise InvalidInputError(msg)
    if not namespaces or not all(namespaces):
        msg = (
            "it is not said which items of the store are the user's: name their namespaces, such as "
            'namespaces=[("memories", "zoe")]'
        )
        raise InvalidInputError(msg)


def delete_items(store: Any, namespaces: Sequence[Sequence[str]]) -> Flow[tuple[int, tuple[str, ...]]]:  # noqa: ANN401 - LangGraph's own
    """Delete the items of these namespaces. Returns how many went, and what may remain there all the same."""
    name, deleted, remains = type(store).__name__, 0, list[str]()
    for labels in namespaces:
        namespace = tuple(labels)
        try:
            deleted += yield DeleteItems(store=store, namespace=namespace)
        except Exception as error:  # noqa: BLE001 - somebody else's code, and the rest is to be forgotten all the same
            remains.append(
                f"LangGraph's store ({name}): items of the namespace {namespace!r} could not be deleted "
                f"({type(error).__name__}: {error})"
            )
    if deleted and name != _STORE_IN_MEMORY:
        remains.append(f"LangGraph's store ({name}): free space of its database, until it is overwritten")
    return deleted, tuple(remains)


def refuse_what_is_no_checkpointer(saver: object) -> None:
    """Refuse what cannot delete a thread, before anything is removed."""
    if saver is not None and not callable(getattr(saver, "delete_thread", None)):
        msg = (
            f"a {type(saver).__name__} is not a LangGraph checkpointer that can delete a thread: hand in the one that "
            "the graph was compiled with"
        )
        raise InvalidInputError(msg)


def delete_threads(runtime: Runtime, saver: Any, session_ids: Sequence[str]) -> Flow[tuple[int, tuple[str, ...]]]:  # noqa: ANN401 - LangGraph's own
    """Delete threads in LangGraph's checkpointer. Returns how many went, and what may remain there all the same.

    It comes before anything of ours is removed: killed in between, the same call finds the sessions again.
    """
    name = type(saver).__name__
    remains: list[str] = []
    deleted: list[str] = []
    for session_id in session_ids:
        try:
            yield DeleteThread(saver=saver, thread_id=session_id)
        except Exception as error:  # noqa: BLE001 - somebody else's code, and the rest is to be forgotten all the same
            remains.append(
                f"LangGraph's checkpointer ({name}): the thread {session_id!r} could not be deleted "
                f"({type(error).__name__}: {error})"
            )
        else:
            deleted.append(session_id)
    if deleted:
        runtime.store.tombstones.threads_deleted(deleted)
        if name != _IN_MEMORY:
            remains.append(f"LangGraph's checkpointer ({name}): free space of its database, until it is overwritten")
    return len(deleted), tuple(remains)


def left_in_threads(found: Mapping[str, str | None], *, whole: bool) -> tuple[str, ...]:
    """What the LangGraph checkpointers that were seen with these sessions keep of what was forgotten here."""
    by_name: dict[str, list[str]] = {}
    for session_id, name in found.items():
        if name is not None:
            by_name.setdefault(name, []).append(session_id)
    remedy = (
        "forget with checkpointer=... deletes a thread there too"
        if whole
        else "take them out of the state with RemoveMessage; its earlier checkpoints go with the thread alone"
    )
    return tuple(
        f"LangGraph's checkpointer ({name}): the messages in {_threads(ids)}; {remedy}" for name, ids in by_name.items()
    )


def _threads(ids: Sequence[str]) -> str:
    shown = ", ".join(map(repr, ids[:_NAMED])) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
    return f"the thread {shown}" if len(ids) == 1 else f"the threads {shown}"
