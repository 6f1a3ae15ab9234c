"""An agent that works on files for hours: a middleware gives it `open_file`, and keeps what it opened in tiers.

Ask it to "open parts.py", and again: an unchanged file that stands in the conversation is pointed to, not shown twice.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables.config import run_in_executor
from parts import HERE, MAX_TOKENS, SYSTEM, StandIn, chat_model, look_up, memory

from langchain_tiered_memory.context.sections.kept_files import KeptFiles
from langchain_tiered_memory.integrations.file_runs import FileRunMiddleware
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

_PAGE_TOKENS = 600
"""Of a file, in one result: a third of what a request may take here."""


class FileStandIn(StandIn):
    """Answers without a key: opens the file that it is asked to open."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> FileStandIn:  # noqa: ANN401 - options of any provider
        """It knows how to use `open_file`, besides what the stand-in of all graphs does."""
        answers: Any = super().bind_tools(tools).answers

        def reply(messages: Sequence[BaseMessage]) -> AIMessage:
            last = messages[-1]
            if isinstance(last, ToolMessage) and last.name == "open_file":
                return AIMessage(f"It says: {last.text[:200]}")
            asked = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
            verb, _, path = asked.strip().partition(" ")
            if verb.lower() != "open" or not tools:
                answer: AIMessage = answers(messages)
                return answer
            call = {"name": "open_file", "args": {"path": path.strip(" .")}, "id": f"open_{last.id}"}
            return AIMessage("", tool_calls=[call])

        return FileStandIn(answers=reply)


@functools.cache
def build() -> Any:  # noqa: ANN401 - a compiled graph
    """The agent. It may open the files of this folder."""
    model = chat_model()
    if isinstance(model, StandIn):
        model = FileStandIn(answers=model.answers)
    memory().sections.register(KeptFiles())
    files = FileRunMiddleware(memory(), roots=[str(HERE)], max_tokens=_PAGE_TOKENS)
    context = TieredMemoryMiddleware(memory(), max_tokens=MAX_TOKENS)
    return create_agent(model, [look_up], system_prompt=SYSTEM, middleware=[files, context])


async def make_agent() -> Any:  # noqa: ANN401 - a compiled graph
    """The agent, built off the event loop when it is first asked for: LangGraph's server calls this."""
    return await run_in_executor(None, build)
