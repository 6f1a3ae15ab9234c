"""What the graphs here share: a memory that is opened when it is first needed, a model, and a tool.

Two environment variables change them:

- `TIERED_MEMORY_MODEL`: a real model, such as `openai:gpt-5-mini` (its package and key must be there). Without it a
  stand-in answers, which needs neither.
- `TIERED_MEMORY_PATH`: the file or database URL to keep the memory in. Without it, `memory.db` beside this file: the
  server keeps its threads across a restart, and a memory that did not would lose what `chat.py` moves out of them.
"""

from __future__ import annotations

import functools
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

HERE = Path(__file__).parent
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
    # `embeddings="auto"` would also search by meaning, where the model's files are at hand.
    return TieredMemory.open(os.environ.get("TIERED_MEMORY_PATH") or HERE / "memory.db", embeddings=None)


@tool
def look_up(item: str) -> str:
    """How many of an item are in stock."""
    return f"{item}: {_STOCK.get(item.lower(), 0)} in stock"


class StandIn(ScriptedModel):
    """Answers without a key: looks up or opens what it is asked to, else says how much of the conversation it got."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> StandIn:  # noqa: ANN401 - options of any provider
        """It knows how to use two tools."""
        names = frozenset(getattr(one, "name", "") for one in tools)
        return StandIn(answers=functools.partial(_reply, tools=names))


def _reply(messages: Sequence[BaseMessage], tools: frozenset[str] = frozenset()) -> AIMessage:
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return AIMessage(f"It says: {last.text[:200]}" if last.name == "open_file" else f"The books say: {last.text}.")
    asked = next((one.text for one in reversed(messages) if isinstance(one, HumanMessage)), "")
    verb, _, path = asked.strip().partition(" ")
    if "open_file" in tools and verb.lower() == "open":
        call = {"name": "open_file", "args": {"path": path.strip(" .")}, "id": f"open_{last.id}"}
        return AIMessage("", tool_calls=[call])
    item = next((one for one in _STOCK if one in asked.lower()), None)
    if "look_up" in tools and item is not None and "stock" in asked.lower():
        number = sum(isinstance(one, ToolMessage) for one in messages)
        call = {"name": "look_up", "args": {"item": item}, "id": f"look_{item}_{len(asked)}_{number}"}
        return AIMessage("", tool_calls=[call])
    return AIMessage(f"Noted: {asked[:80]} (I was shown {len(messages)} messages.)")


def chat_model() -> BaseChatModel:
    """The model that `TIERED_MEMORY_MODEL` names, or the stand-in."""
    named = os.environ.get("TIERED_MEMORY_MODEL")
    if not named:
        return StandIn(answers=_reply)
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - only with a real model

    return init_chat_model(named)
