"""An agent with tools: `create_agent` and the memory's middleware, which decides what each model call is shown."""

from __future__ import annotations

import functools
from typing import Any

from langchain.agents import create_agent
from langchain_core.runnables.config import run_in_executor
from parts import MAX_TOKENS, SYSTEM, chat_model, look_up, memory

from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware


@functools.cache
def build() -> Any:  # noqa: ANN401 - a compiled graph
    """The agent. It needs the memory itself, which is opened here."""
    middleware = TieredMemoryMiddleware(memory(), max_tokens=MAX_TOKENS, tools=True)
    return create_agent(chat_model(), [look_up], system_prompt=SYSTEM, middleware=[middleware])


async def make_agent() -> Any:  # noqa: ANN401 - a compiled graph
    """The agent, built off the event loop when it is first asked for: LangGraph's server calls this."""
    return await run_in_executor(None, build)
