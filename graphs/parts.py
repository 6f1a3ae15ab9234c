"""What the graphs here share: a memory that is opened when it is first needed, a model, and a tool.

Without any key a stand-in answers. `TIERED_MEMORY_MODEL` names a real model (such as `openai:gpt-5-mini`),
`TIERED_MEMORY_PATH` the file or URL to keep the memory in; without it, it ends with the process.
"""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

SYSTEM = "You keep the books of a small harbour. Answer in one or two sentences."
MAX_TOKENS = 2000
"""Small on purpose: a short chat shows how it condenses."""

_lock = threading.Lock()
_STOCK = {"rope": 40, "anchor": 3, "lamp": 12}


def memory() -> TieredMemory:
    """The one memory of this process. Opening touches files, so the nodes call this off the event loop."""
    with _lock:
        return _opened()


@functools.cache
def _opened() -> TieredMemory:
    return TieredMemory.open(os.environ.get("TIERED_MEMORY_PATH"), embeddings=None)


@tool
def look_up(item: str) -> str:
    """How many of an item are in stock."""
    return f"{item}: {_STOCK.get(item.lower(), 0)} in stock"


class StandIn(ScriptedModel):
    """Answers without a key: looks up what is asked for, else says how much of the conversation it was shown."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> StandIn:  # noqa: ANN401 - options of any provider
        """It knows how to use one tool."""
        return StandIn(answers=_reply_with_tool) if tools else self


def _reply_with_tool(messages: Sequence[BaseMessage]) -> AIMessage:
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return AIMessage(f"The books say: {last.text}.")
    asked = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
    for item in _STOCK:
        if item in asked.lower() and "stock" in asked.lower():
            number = sum(isinstance(one, ToolMessage) for one in messages)
            call = {"name": "look_up", "args": {"item": item}, "id": f"look_{item}_{len(asked)}_{number}"}
            return AIMessage("", tool_calls=[call])
    return _reply(messages)


def _reply(messages: Sequence[BaseMessage]) -> AIMessage:
    asked = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
    return AIMessage(f"Noted: {asked[:80]} (I was shown {len(messages)} messages.)")


def chat_model() -> BaseChatModel:
    """The model that `TIERED_MEMORY_MODEL` names, or the stand-in."""
    named = os.environ.get("TIERED_MEMORY_MODEL")
    if not named:
        return StandIn(answers=_reply)
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - only with a real model

    return init_chat_model(named)
