"""Tiered conversation memory for LangChain and LangGraph: nothing is lost, every context stays inside the window.

This module has the names that most programs need. The others are in `.settings`, `.errors`, `.types`, `.reports`,
`.extensions` and `.integrations.histories`. Names are imported when first used, so importing the package is cheap.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory._version import __version__

if TYPE_CHECKING:
    from langchain_tiered_memory.context.sections.other_sessions import OtherSessions
    from langchain_tiered_memory.conversations.importing import aimport_conversations, import_conversations
    from langchain_tiered_memory.errors import (
        BudgetError,
        CondensationError,
        ContextOverflowError,
        InvalidInputError,
        NotFoundError,
        SettingsError,
        StorageError,
        TieredMemoryError,
    )
    from langchain_tiered_memory.integrations.frames import to_frame
    from langchain_tiered_memory.integrations.histories import export_history, from_langgraph, import_history, to_openai
    from langchain_tiered_memory.integrations.legacy.chat_history import TieredChatMessageHistory
    from langchain_tiered_memory.integrations.legacy.classic import ConversationTieredMemory
    from langchain_tiered_memory.integrations.legacy.runnable_history import with_tiered_history
    from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
    from langchain_tiered_memory.integrations.nodes import (
        acheckpoint_run,
        amodel_input,
        checkpoint_run,
        condense_node,
        context_node,
        evict_node,
        guard_node,
        model_input,
        remember_node,
    )
    from langchain_tiered_memory.integrations.retriever import TieredMemoryRetriever
    from langchain_tiered_memory.integrations.state import TieredState, zone_in
    from langchain_tiered_memory.integrations.store import TieredStore
    from langchain_tiered_memory.integrations.tools import memory_tools
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.models.embeddings import MiniLMEmbeddings
    from langchain_tiered_memory.reports import Event, Receipt, VerifyReport
    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.settings import Settings, TreeSettings
    from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
    from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
    from langchain_tiered_memory.types.contexts import Context, Section
    from langchain_tiered_memory.types.outcomes import FailureReason, Outcome, OutcomeKind, Zone
    from langchain_tiered_memory.types.records import Entry, Hit, Summary
    from langchain_tiered_memory.types.runs import MemoryCheckpoint, Task

_HOMES = {
    "context.sections.other_sessions": "OtherSessions",
    "conversations.importing": "aimport_conversations import_conversations",
    "errors": (
        "BudgetError CondensationError ContextOverflowError InvalidInputError NotFoundError SettingsError "
        "StorageError TieredMemoryError"
    ),
    "integrations.frames": "to_frame",
    "integrations.histories": "export_history from_langgraph import_history to_openai",
    "integrations.legacy.chat_history": "TieredChatMessageHistory",
    "integrations.legacy.classic": "ConversationTieredMemory",
    "integrations.legacy.runnable_history": "with_tiered_history",
    "integrations.middleware": "TieredMemoryMiddleware",
    "integrations.nodes": (
        "acheckpoint_run amodel_input checkpoint_run condense_node context_node evict_node guard_node "
        "model_input remember_node"
    ),
    "integrations.retriever": "TieredMemoryRetriever",
    "integrations.state": "TieredState zone_in",
    "integrations.store": "TieredStore",
    "integrations.tools": "memory_tools",
    "memory": "TieredMemory",
    "models.embeddings": "MiniLMEmbeddings",
    "reports": "Event Receipt VerifyReport",
    "session": "Session",
    "settings": "Settings TreeSettings",
    "summaries.engine.engine": "CondensationEngine",
    "summaries.writers.jobs": "CondenseJob Condensed",
    "types.contexts": "Context Section",
    "types.outcomes": "FailureReason Outcome OutcomeKind Zone",
    "types.records": "Entry Hit Summary",
    "types.runs": "MemoryCheckpoint Task",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "BudgetError", "CondensationEngine", "CondensationError", "CondenseJob", "Condensed", "Context",
    "ContextOverflowError", "ConversationTieredMemory", "Entry", "Event", "FailureReason", "Hit",
    "InvalidInputError", "MemoryCheckpoint", "MiniLMEmbeddings", "NotFoundError", "OtherSessions", "Outcome",
    "OutcomeKind", "Receipt", "Section", "Session", "Settings", "SettingsError", "StorageError", "Summary", "Task",
    "TieredChatMessageHistory", "TieredMemory", "TieredMemoryError", "TieredMemoryMiddleware",
    "TieredMemoryRetriever", "TieredState", "TieredStore", "TreeSettings", "VerifyReport", "Zone", "__version__",
    "acheckpoint_run", "aimport_conversations", "amodel_input", "checkpoint_run", "condense_node", "context_node",
    "evict_node", "export_history", "from_langgraph", "guard_node", "import_conversations", "import_history",
    "memory_tools", "model_input", "remember_node", "to_frame", "to_openai", "with_tiered_history", "zone_in",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Import a public name when it is first used (PEP 562)."""
    home = _HOME_OF.get(name)
    if home is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


if importlib.util.find_spec("langchain") is None:
    # `import *` and `help()` ask for every name, and one that needs an extra would make them fail. Type checkers, which
    # would understand a plain `__all__.remove`, are to know it all the same.
    list.remove(__all__, "TieredMemoryMiddleware")


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
