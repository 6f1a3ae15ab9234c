"""Deletes in LangGraph's checkpointer and store what a removal asks for, sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.forgetting.langgraph_threads import PAGE_OF_ITEMS, DeleteItems, DeleteThread

if TYPE_CHECKING:
    from collections.abc import Sequence


def take_out(call: DeleteThread | DeleteItems) -> int:
    """Delete a thread, or the items of a namespace; says how many."""
    if isinstance(call, DeleteThread):
        call.saver.delete_thread(call.thread_id)
        return 1
    deleted = 0
    while found := call.store.search(call.namespace, limit=PAGE_OF_ITEMS):
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
    while found := await call.store.asearch(call.namespace, limit=PAGE_OF_ITEMS):
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
