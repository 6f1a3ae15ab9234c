"""An agent that works on files for hours: a middleware gives it `open_file`, and keeps what it opened in tiers.

Ask it to "open parts.py", and again: an unchanged file that stands in the conversation is pointed to, not shown twice.
"""

from __future__ import annotations

import functools
from typing import Any

from langchain.agents import create_agent
from langchain_core.runnables.config import run_in_executor
from parts import HERE, MAX_TOKENS, SYSTEM, chat_model, look_up, memory

from langchain_tiered_memory.context.sections.kept_files import KeptFiles
from langchain_tiered_memory.integrations.file_runs import FileRunMiddleware
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware

_PAGE_TOKENS = 600
"""Of a file, in one result: a third of what a request may take here."""


@functools.cache
def build() -> Any:  # noqa: ANN401 - a compiled graph
    """The agent. It may open the files of this folder."""
    memory().sections.register(KeptFiles())
    files = FileRunMiddleware(memory(), roots=[str(HERE)], max_tokens=_PAGE_TOKENS)
    context = TieredMemoryMiddleware(memory(), max_tokens=MAX_TOKENS)
    return create_agent(chat_model(), [look_up], system_prompt=SYSTEM, middleware=[files, context])


async def make_agent() -> Any:  # noqa: ANN401 - a compiled graph
    """The agent, built off the event loop when it is first asked for: LangGraph's server calls this."""
    return await run_in_executor(None, build)
