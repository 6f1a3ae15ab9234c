"""Tiered conversation memory for LangChain and LangGraph: nothing is lost, every context stays inside the window.

Names are imported when they are first used, so that importing the package stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory._version import __version__

if TYPE_CHECKING:
    from langchain_tiered_memory.embeddings import MiniLMEmbeddings
    from langchain_tiered_memory.errors import (
        BudgetError,
        ClosedError,
        CondensationError,
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
    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.records import (
        Context,
        DoctorReport,
        Entry,
        Event,
        Fact,
        FlushReport,
        Hit,
        LeftOut,
        LevelMetrics,
        Problem,
        Receipt,
        Section,
        SessionMetrics,
        Spent,
        Summary,
        SummaryState,
        VerifyReport,
    )
    from langchain_tiered_memory.settings import (
        ContextSettings,
        LevelSettings,
        PriceSettings,
        RecallSettings,
        SectionShares,
        Settings,
        TreeSettings,
    )

_HOMES: dict[str, tuple[str, ...]] = {
    "embeddings": ("MiniLMEmbeddings",),
    "errors": (
        "BudgetError",
        "ClosedError",
        "CondensationError",
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
    "memory": ("Session", "TieredMemory"),
    "records": (
        "Context",
        "DoctorReport",
        "Entry",
        "Event",
        "Fact",
        "FlushReport",
        "Hit",
        "LeftOut",
        "LevelMetrics",
        "Problem",
        "Receipt",
        "Section",
        "SessionMetrics",
        "Spent",
        "Summary",
        "SummaryState",
        "VerifyReport",
    ),
    "settings": (
        "ContextSettings",
        "LevelSettings",
        "PriceSettings",
        "RecallSettings",
        "SectionShares",
        "Settings",
        "TreeSettings",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BudgetError",
    "ClosedError",
    "CondensationError",
    "Context",
    "ContextSettings",
    "DoctorReport",
    "EmbedderMismatchError",
    "Entry",
    "Event",
    "Fact",
    "FlushReport",
    "Hit",
    "IndexUnavailableError",
    "InvalidInputError",
    "LeftOut",
    "LevelMetrics",
    "LevelSettings",
    "MiniLMEmbeddings",
    "MixedOwnersError",
    "NewerSchemaError",
    "NotFoundError",
    "NotOurDatabaseError",
    "PriceSettings",
    "Problem",
    "RecallSettings",
    "Receipt",
    "Section",
    "SectionShares",
    "Session",
    "SessionMetrics",
    "Settings",
    "SettingsError",
    "Spent",
    "StorageBusyError",
    "StorageError",
    "Summary",
    "SummaryState",
    "TieredMemory",
    "TieredMemoryError",
    "TreeSettings",
    "UnknownMessageError",
    "VerifyReport",
    "__version__",
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


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
