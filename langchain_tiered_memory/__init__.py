"""Tiered conversation memory for LangChain and LangGraph: nothing is lost, every context stays inside the window.

Names are imported when they are first used, so that importing the package stays light.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory._version import __version__

if TYPE_CHECKING:
    from langchain_tiered_memory.chain_faces.history_runs import with_tiered_history
    from langchain_tiered_memory.chat_history import TieredChatMessageHistory
    from langchain_tiered_memory.classic import ConversationTieredMemory
    from langchain_tiered_memory.condensers.engine import CondensationEngine
    from langchain_tiered_memory.condensers.jobs import Condensed, CondenseJob
    from langchain_tiered_memory.contexts import Context, Section
    from langchain_tiered_memory.embeddings import MiniLMEmbeddings
    from langchain_tiered_memory.errors import (
        BudgetError,
        CheckpointError,
        ClosedError,
        CondensationError,
        ContextOverflowError,
        EmbedderMismatchError,
        IndexUnavailableError,
        InvalidInputError,
        MixedOwnersError,
        NewerSchemaError,
        NotFoundError,
        NotOurDatabaseError,
        SettingsError,
        StorageBusyError,
        StorageError,
        TieredMemoryError,
        UnknownMessageError,
    )
    from langchain_tiered_memory.extensions import (
        CondensationContext,
        CondensationHook,
        CondensationPlugin,
        CondensationValidator,
        PromptGenerator,
        TelemetryCollector,
        ThresholdQuestion,
        ThresholdResolver,
        TruncationQuestion,
        TruncationSelector,
        Verdict,
    )
    from langchain_tiered_memory.histories import (
        abring_in,
        afrom_langgraph,
        atake_out,
        ato_openai,
        bring_in,
        from_langgraph,
        take_out,
        to_openai,
    )
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.middleware import TieredMemoryMiddleware
    from langchain_tiered_memory.nodes import (
        MemoryNode,
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
    from langchain_tiered_memory.outcomes import (
        Alert,
        CostLedger,
        CostRow,
        FailureReason,
        GuardReport,
        LedgerRow,
        Outcome,
        OutcomeKind,
        ThresholdAdvice,
        ViewDiff,
        Window,
        Zone,
    )
    from langchain_tiered_memory.records import Entry, Fact, Group, Hit, LeftOut, Spent, Summary, SummaryState
    from langchain_tiered_memory.reports import (
        DoctorReport,
        Event,
        FlushReport,
        LevelMetrics,
        Problem,
        Receipt,
        SessionMetrics,
        VerifyReport,
    )
    from langchain_tiered_memory.retriever import TieredMemoryRetriever
    from langchain_tiered_memory.runs import (
        CheckpointInfo,
        Difference,
        FileAccess,
        MemoryCheckpoint,
        RestoreReport,
        RunState,
        Task,
    )
    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.settings import (
        CheckpointSettings,
        CondensationSettings,
        ContextSettings,
        FileSettings,
        GuardSettings,
        LevelSettings,
        MaskSettings,
        MonitoringSettings,
        PriceSettings,
        RecallSettings,
        SectionShares,
        Settings,
        StrategySettings,
        ThresholdSettings,
        TreeSettings,
        ValidationSettings,
        ViewSettings,
    )
    from langchain_tiered_memory.state import TieredState, zone_in
    from langchain_tiered_memory.tools import memory_tools

_HOMES: dict[str, tuple[str, ...]] = {
    "chat_history": ("TieredChatMessageHistory",),
    "classic": ("ConversationTieredMemory",),
    "condensers.engine": ("CondensationEngine",),
    "condensers.jobs": ("CondenseJob", "Condensed"),
    "contexts": (
        "Context",
        "Section",
    ),
    "embeddings": ("MiniLMEmbeddings",),
    "errors": (
        "BudgetError",
        "CheckpointError",
        "ClosedError",
        "CondensationError",
        "ContextOverflowError",
        "EmbedderMismatchError",
        "IndexUnavailableError",
        "InvalidInputError",
        "MixedOwnersError",
        "NewerSchemaError",
        "NotFoundError",
        "NotOurDatabaseError",
        "SettingsError",
        "StorageBusyError",
        "StorageError",
        "TieredMemoryError",
        "UnknownMessageError",
    ),
    "extensions": (
        "CondensationContext",
        "CondensationHook",
        "CondensationPlugin",
        "CondensationValidator",
        "PromptGenerator",
        "TelemetryCollector",
        "ThresholdQuestion",
        "ThresholdResolver",
        "TruncationQuestion",
        "TruncationSelector",
        "Verdict",
    ),
    "histories": (
        "abring_in",
        "afrom_langgraph",
        "atake_out",
        "ato_openai",
        "bring_in",
        "from_langgraph",
        "take_out",
        "to_openai",
    ),
    "chain_faces.history_runs": ("with_tiered_history",),
    "memory": ("TieredMemory",),
    "middleware": ("TieredMemoryMiddleware",),
    "nodes": (
        "MemoryNode",
        "acheckpoint_run",
        "amodel_input",
        "checkpoint_run",
        "condense_node",
        "context_node",
        "evict_node",
        "guard_node",
        "model_input",
        "remember_node",
    ),
    "outcomes": (
        "Alert",
        "CostLedger",
        "CostRow",
        "FailureReason",
        "GuardReport",
        "LedgerRow",
        "Outcome",
        "OutcomeKind",
        "ThresholdAdvice",
        "ViewDiff",
        "Window",
        "Zone",
    ),
    "records": (
        "Entry",
        "Fact",
        "Group",
        "Hit",
        "LeftOut",
        "Spent",
        "Summary",
        "SummaryState",
    ),
    "reports": (
        "DoctorReport",
        "Event",
        "FlushReport",
        "LevelMetrics",
        "Problem",
        "Receipt",
        "SessionMetrics",
        "VerifyReport",
    ),
    "retriever": ("TieredMemoryRetriever",),
    "runs": ("CheckpointInfo", "Difference", "FileAccess", "MemoryCheckpoint", "RestoreReport", "RunState", "Task"),
    "session": ("Session",),
    "settings": (
        "CheckpointSettings",
        "CondensationSettings",
        "ContextSettings",
        "FileSettings",
        "GuardSettings",
        "LevelSettings",
        "MaskSettings",
        "MonitoringSettings",
        "PriceSettings",
        "RecallSettings",
        "SectionShares",
        "Settings",
        "StrategySettings",
        "ThresholdSettings",
        "TreeSettings",
        "ValidationSettings",
        "ViewSettings",
    ),
    "state": ("TieredState", "zone_in"),
    "tools": ("memory_tools",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Alert",
    "BudgetError",
    "CheckpointError",
    "CheckpointInfo",
    "CheckpointSettings",
    "ClosedError",
    "CondensationContext",
    "CondensationEngine",
    "CondensationError",
    "CondensationHook",
    "CondensationPlugin",
    "CondensationSettings",
    "CondensationValidator",
    "CondenseJob",
    "Condensed",
    "Context",
    "ContextOverflowError",
    "ContextSettings",
    "ConversationTieredMemory",
    "CostLedger",
    "CostRow",
    "Difference",
    "DoctorReport",
    "EmbedderMismatchError",
    "Entry",
    "Event",
    "Fact",
    "FailureReason",
    "FileAccess",
    "FileSettings",
    "FlushReport",
    "Group",
    "GuardReport",
    "GuardSettings",
    "Hit",
    "IndexUnavailableError",
    "InvalidInputError",
    "LedgerRow",
    "LeftOut",
    "LevelMetrics",
    "LevelSettings",
    "MaskSettings",
    "MemoryCheckpoint",
    "MemoryNode",
    "MiniLMEmbeddings",
    "MixedOwnersError",
    "MonitoringSettings",
    "NewerSchemaError",
    "NotFoundError",
    "NotOurDatabaseError",
    "Outcome",
    "OutcomeKind",
    "PriceSettings",
    "Problem",
    "PromptGenerator",
    "RecallSettings",
    "Receipt",
    "RestoreReport",
    "RunState",
    "Section",
    "SectionShares",
    "Session",
    "SessionMetrics",
    "Settings",
    "SettingsError",
    "Spent",
    "StorageBusyError",
    "StorageError",
    "StrategySettings",
    "Summary",
    "SummaryState",
    "Task",
    "TelemetryCollector",
    "ThresholdAdvice",
    "ThresholdQuestion",
    "ThresholdResolver",
    "ThresholdSettings",
    "TieredChatMessageHistory",
    "TieredMemory",
    "TieredMemoryError",
    "TieredMemoryMiddleware",
    "TieredMemoryRetriever",
    "TieredState",
    "TreeSettings",
    "TruncationQuestion",
    "TruncationSelector",
    "UnknownMessageError",
    "ValidationSettings",
    "Verdict",
    "VerifyReport",
    "ViewDiff",
    "ViewSettings",
    "Window",
    "Zone",
    "__version__",
    "abring_in",
    "acheckpoint_run",
    "afrom_langgraph",
    "amodel_input",
    "atake_out",
    "ato_openai",
    "bring_in",
    "checkpoint_run",
    "condense_node",
    "context_node",
    "evict_node",
    "from_langgraph",
    "guard_node",
    "memory_tools",
    "model_input",
    "remember_node",
    "take_out",
    "to_openai",
    "with_tiered_history",
    "zone_in",
]


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
