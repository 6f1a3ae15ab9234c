"""Builders of graphs from the nodes, and of LangGraph's checkpointers under strict msgpack, sync and async."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from blockbuster import blockbuster_ctx
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.integrations.nodes import (
    amodel_input,
    context_node,
    evict_node,
    guard_node,
    model_input,
    remember_node,
)
from langchain_tiered_memory.integrations.state import TieredState
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import TieredMemory
    from tests.call_styles import CallStyle

SaverKind = Literal["memory", "sqlite", "postgres"]


class ChatState(MessagesState, TieredState):
    """What a chat keeps."""


STATES: list[type] = [ChatState]
"""A chat under each reducer of messages that this LangGraph has."""
try:
    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph.message import _messages_delta_reducer
except ImportError:  # older than LangGraph 1.2
    pass
else:

    class DeltaState(TieredState):
        """A chat whose messages are kept as what was added."""

        messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer)]

    STATES.append(DeltaState)


def thread(thread_id: str = "t", **more: Any) -> dict[str, Any]:
    """A config for a thread."""
    return {"configurable": {"thread_id": thread_id, **more}}


_MORE = "The yard has asked for it again, and wants to hear of every delay before the week is over."
"""Makes a dozen turns more than the small budgets here hold."""


def ask(number: int, text: str = "") -> dict[str, Any]:
    """The input of a turn."""
    said = text or f"Question {number}: what do we know about the crane of order {1000 + number}? {_MORE}"
    return {"messages": [HumanMessage(said, id=f"q{number}")]}


def plain(number: int) -> AIMessage:
    """An answer with an id and something of its own."""
    return AIMessage(f"Order {1000 + number} needs {number * 3 + 1} bolts, invoice F-{number:04d}.", id=f"a{number}")


def answering() -> ScriptedModel:
    """A model that answers the last question it sees, and raises when a request is not valid for every provider."""

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        faults = check_valid(messages, complete=True)
        assert faults == [], faults
        last = next(one for one in reversed(messages) if isinstance(one, HumanMessage) and one.id)
        return plain(int(str(last.id).split("@")[0].removeprefix("q")))

    return ScriptedModel(answers=reply)


def chat_graph(  # noqa: ANN201 - a builder of LangGraph's
    memory: TieredMemory,
    model: ScriptedModel,
    *,
    max_tokens: int = 900,
    evict: dict[str, int] | None = None,
    state: type = ChatState,
):
    """Remember, guard, context, answer, remember again (and move old messages out of the state)."""

    def answer(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [model.invoke(model_input(memory, state, config))]}

    async def aanswer(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(await amodel_input(memory, state, config))]}

    builder = StateGraph(state)
    builder.add_node(remember_node(memory))
    builder.add_node(guard_node(memory, model=model, max_tokens=max_tokens, system="Be brief."))
    builder.add_node(context_node(memory, model=model, max_tokens=max_tokens, system="Be brief."))
    builder.add_node("answer", RunnableLambda(answer, aanswer))
    builder.add_node("keep", remember_node(memory))
    builder.add_edge(START, "remember")
    builder.add_edge("remember", "guard")
    builder.add_edge("guard", "context")
    builder.add_edge("context", "answer")
    builder.add_edge("answer", "keep")
    if evict is not None:
        builder.add_node(evict_node(memory, **evict))
        builder.add_edge("keep", "evict")
        builder.add_edge("evict", END)
    return builder


@dataclass
class Runner:
    """Runs a graph sync or async; when async every blocking call on the loop raises."""

    call_style: CallStyle
    inputs: list[Any] = field(default_factory=list)

    async def invoke(self, graph: Any, given: Any, config: Any) -> Any:
        if self.call_style == "sync":
            return graph.invoke(given, config)
        with blockbuster_ctx():
            return await graph.ainvoke(given, config)

    async def state(self, graph: Any, config: Any) -> Any:
        return graph.get_state(config) if self.call_style == "sync" else await graph.aget_state(config)

    async def update(self, graph: Any, config: Any, values: Any, **more: Any) -> Any:
        if self.call_style == "sync":
            return graph.update_state(config, values, **more)
        return await graph.aupdate_state(config, values, **more)

    async def history(self, graph: Any, config: Any) -> list[Any]:
        if self.call_style == "sync":
            return list(graph.get_state_history(config))
        return [one async for one in graph.aget_state_history(config)]


@contextlib.asynccontextmanager
async def open_saver(
    kind: SaverKind, call_style: CallStyle, *, folder: Path, url: str | None = None
) -> AsyncIterator[Any]:
    """One of LangGraph's checkpointers, which gives back only what strict msgpack allows."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    if kind == "memory":
        yield InMemorySaver(serde=serde)
    elif kind == "sqlite" and call_style == "sync":
        from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - a dependency of this test alone

        with contextlib.closing(sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)) as connection:
            yield SqliteSaver(connection, serde=serde)
    elif kind == "sqlite":
        import aiosqlite  # noqa: PLC0415
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: PLC0415

        async with aiosqlite.connect(folder / "checkpoints.db") as connection:
            yield AsyncSqliteSaver(connection, serde=serde)
    elif call_style == "sync":
        from langgraph.checkpoint.postgres import PostgresSaver  # noqa: PLC0415

        with PostgresSaver.from_conn_string(str(url).replace("+psycopg", "")) as saver:
            saver.serde = serde
            saver.setup()
            yield saver
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415

        async with AsyncPostgresSaver.from_conn_string(str(url).replace("+psycopg", "")) as saver:
            saver.serde = serde
            await saver.setup()
            yield saver
