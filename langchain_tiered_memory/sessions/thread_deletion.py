"""Deletes threads from LangGraph's checkpointers, as a flow asks for it: sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.runnables.config import run_in_executor

if TYPE_CHECKING:
    from langchain_tiered_memory.forgetting.langgraph_threads import DeleteThread


def delete_thread(call: DeleteThread) -> None:
    """Delete a thread."""
    call.saver.delete_thread(call.thread_id)


async def adelete_thread(call: DeleteThread) -> None:
    """Delete a thread without blocking the event loop; a checkpointer without async runs in an executor."""
    try:
        await call.saver.adelete_thread(call.thread_id)
    except NotImplementedError:
        await run_in_executor(None, call.saver.delete_thread, call.thread_id)
