"""What the verbs take and return, as frozen values."""

from langchain_tiered_memory.types.arguments import Scope
from langchain_tiered_memory.types.contexts import Context, Detail, Section
from langchain_tiered_memory.types.files import (
    CollectionReport,
    ContextSize,
    KeptFile,
    OpenedFile,
    RunAlert,
    RunReport,
    TierMove,
    TierSizes,
    Timing,
    WindowUse,
)
from langchain_tiered_memory.types.outcomes import (
    Alert,
    CostLedger,
    CostRow,
    FailureReason,
    GuardReport,
    LedgerRow,
    Outcome,
    OutcomeKind,
    ShownView,
    Stretch,
    ThresholdAdvice,
    ViewDiff,
    Window,
    Zone,
)
from langchain_tiered_memory.types.records import (
    Entry,
    Fact,
    Group,
    Hit,
    LeftOut,
    Spent,
    Summary,
    SummaryState,
    SummaryTree,
)
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
    "Alert", "CheckpointInfo", "CollectionReport", "Context", "ContextSize", "CostLedger", "CostRow", "Detail",
    "Difference", "Entry", "Fact", "FailureReason", "FileAccess", "Group", "GuardReport", "Hit", "KeptFile",
    "LedgerRow", "LeftOut", "MemoryCheckpoint", "OpenedFile", "Outcome", "OutcomeKind", "RestoreReport", "RunAlert",
    "RunReport", "RunState", "Scope", "Section", "ShownView", "Spent", "Stretch", "Summary", "SummaryState",
    "SummaryTree", "Task", "ThresholdAdvice", "TierMove", "TierSizes", "Timing", "ViewDiff", "Window", "WindowUse",
    "Zone",
]  # fmt: skip
