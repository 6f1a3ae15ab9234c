"""What the verbs take and give, as frozen values."""

from langchain_tiered_memory.types.contexts import Context, Section
from langchain_tiered_memory.types.outcomes import (
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
from langchain_tiered_memory.types.records import Entry, Fact, Group, Hit, LeftOut, Spent, Summary, SummaryState
from langchain_tiered_memory.types.runs import (
    CheckpointInfo,
    Difference,
    FileAccess,
    MemoryCheckpoint,
    RestoreReport,
    RunState,
    Task,
)

__all__ = [
    "Alert",
    "CheckpointInfo",
    "Context",
    "CostLedger",
    "CostRow",
    "Difference",
    "Entry",
    "Fact",
    "FailureReason",
    "FileAccess",
    "Group",
    "GuardReport",
    "Hit",
    "LedgerRow",
    "LeftOut",
    "MemoryCheckpoint",
    "Outcome",
    "OutcomeKind",
    "RestoreReport",
    "RunState",
    "Section",
    "Spent",
    "Summary",
    "SummaryState",
    "Task",
    "ThresholdAdvice",
    "ViewDiff",
    "Window",
    "Zone",
]
