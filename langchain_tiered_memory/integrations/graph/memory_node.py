"""The runnable that every node of the memory is: sync and async, with stream events of what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import ensure_config

from langchain_tiered_memory.driver import Flow, arun, run
from langchain_tiered_memory.integrations.graph.stream_events import EVENT_NAME, unstreamed

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.integrations.graph.node_journeys import Done


class MemoryNode(Runnable[Any, dict[str, Any]]):
    """A node, sync and async, made by one of the functions here; `StateGraph.add_node` takes it as it is.

    It has no trace of its own: the graph traces the node, and a second one would hold the state once more.

    Args:
        name: The node's, where `add_node` gets none.
        journey: From a state and a config to the update.
    """

    def __init__(self, name: str, journey: Callable[[Any, RunnableConfig], Flow[Done]]) -> None:
        self.name = name
        self._journey = journey

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's names
        """The state update of this node.

        Raises:
            InvalidInputError: when the config has no `thread_id`, or the state is not what the node was made for.
            TieredMemoryError: when the memory cannot do it; the state is as it was.
        """
        config = ensure_config(config)
        with unstreamed(config):
            done = run(self._journey(input, config))
        for notice in done.notices:
            if _write(notice):
                dispatch_custom_event(EVENT_NAME, notice, config=config)
        return done.update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's names
        """See `invoke`."""
        config = ensure_config(config)
        with unstreamed(config):
            done = await arun(self._journey(input, config))
        for notice in done.notices:
            if _write(notice):
                await adispatch_custom_event(EVENT_NAME, notice, config=config)
        return done.update


def at_once(journey: Callable[[Any, RunnableConfig], Done]) -> Callable[[Any, RunnableConfig], Flow[Done]]:
    """A journey that waits for nobody, as `MemoryNode` takes it."""

    def flow(state: Any, config: RunnableConfig) -> Flow[Done]:  # noqa: ANN401 - any state
        done = journey(state, config)
        yield from ()
        return done

    return flow


def _write(notice: dict[str, Any]) -> bool:
    """Put a notice on the graph's custom stream. False where no graph is running: the node was called by itself."""
    from langgraph.config import get_stream_writer  # noqa: PLC0415 - the engine works without LangGraph

    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):
        return False
    writer(notice)
    return True
