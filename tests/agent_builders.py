"""Agents for tests: a memory, a model behind the loopback server, and sync and async forms of a run behind one call."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence  # noqa: TC003 - pydantic reads the annotations of a model's methods
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.settings import Settings, TreeSettings
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.language_models import BaseChatModel

    from tests.call_styles import CallStyle
    from tests.openai_server import OpenAIServer

_RUNNER = asyncio.Runner()
"""One event loop for all turns: an HTTP client's pool belongs to the loop that it was first used on."""

THREAD = {"configurable": {"thread_id": "alice"}}
SUMMARY_SECRET = "summary-only-zanzibar"
"""Stands in every summary that `telling_model` writes, and in no message."""


@tool
def look_up(order: int) -> str:
    """Look up an order in the register."""
    return f"Order {order} is due on Monday. " + f"It needs {order + 3} bolts of the usual kind. " * 20


class ToolModel(ScriptedModel):
    """A scripted model that takes tools."""

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.bind(tools=list(tools), **options)


@contextlib.contextmanager
def open_memory(where: Any = None, **choices: Any) -> Iterator[TieredMemory]:
    """A memory that does everything in the foreground, by words alone."""
    settings = choices.pop("settings", Settings(tree=TreeSettings(background=False)))
    counter = choices.pop("token_counter", EstimatingCounter())
    with TieredMemory.open(where, embeddings=None, settings=settings, token_counter=counter, **choices) as memory:
        yield memory


def openai_model(server: OpenAIServer, **choices: Any) -> ChatOpenAI:
    """`ChatOpenAI` that talks to the loopback server, never tries again by itself, and reports usage."""
    chosen = {"model": "loopback", "max_retries": 0, "timeout": 20, "stream_usage": True} | choices
    return ChatOpenAI(base_url=server.base_url, api_key="none", **chosen)


def strict_saver() -> InMemorySaver:
    """A checkpointer that brings nothing back but plain values and LangChain's own messages."""
    return InMemorySaver(serde=JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None))


def built(
    memory: TieredMemory,
    model: BaseChatModel,
    *,
    tools: Sequence[Any] = (look_up,),
    before: Sequence[Any] = (),
    behind: Sequence[Any] = (),
    agent: dict[str, Any] | None = None,
    tools_of_memory: bool = False,
    **choices: Any,
) -> Any:
    """An agent with the memory's middleware; `before` and `behind` are other middlewares around it and within."""
    options = {"checkpointer": strict_saver(), "system_prompt": "You keep the register."} | (agent or {})
    middleware = [*before, TieredMemoryMiddleware(memory, tools=tools_of_memory, **choices), *behind]
    return create_agent(model, list(tools), middleware=middleware, **options)


def said(call_style: CallStyle, agent: Any, text: str | Any, config: Any = None) -> dict[str, Any]:
    """One turn of the user; what the state is afterwards. A `Command` is handed on as it is."""
    given = {"messages": [("user", text)]} if isinstance(text, str) else text
    found: dict[str, Any]
    if call_style == "sync":
        found = agent.invoke(given, config or THREAD)
    else:
        found = _RUNNER.run(agent.ainvoke(given, config or THREAD))
    return found


def streamed(
    call_style: CallStyle, agent: Any, text: str, modes: Sequence[str], config: Any = None
) -> list[tuple[str, Any]]:
    """One turn, streamed: (mode, chunk) pairs."""
    given, chosen = {"messages": [("user", text)]}, config or THREAD

    async def gathered() -> list[tuple[str, Any]]:
        return [one async for one in agent.astream(given, chosen, stream_mode=list(modes))]

    return (
        list(agent.stream(given, chosen, stream_mode=list(modes))) if call_style == "sync" else _RUNNER.run(gathered())
    )


def texts(request_messages: Sequence[dict[str, Any]], role: str) -> list[str]:
    """What one role says in a recorded request."""
    return [json.dumps(one.get("content"), ensure_ascii=False) for one in request_messages if one["role"] == role]
