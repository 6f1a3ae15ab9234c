"""Former module paths and names, for programs that were written before modules stood in folders by subject.

An import of one gives what it stands for at its present place, with a `DeprecationWarning` that names it.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PACKAGE = __name__.rpartition(".")[0]
MOVED = {
    "chat_history": "integrations.legacy.chat_history",
    "classic": "integrations.legacy.classic",
    "condensers.engine": "summaries.engine.engine",
    "condensers.jobs": "summaries.writers.jobs",
    "condensers.ranking": "summaries.writers.ranking",
    "contexts": "types.contexts",
    "decisions.counting": "models.message_counting",
    "decisions.sentences": "text.sentences",
    "decisions.validity_rules": "messages.validity.rules",
    "embeddings": "models.embeddings",
    "histories": "integrations.histories",
    "middleware": "integrations.middleware",
    "nodes": "integrations.nodes",
    "outcomes": "types.outcomes",
    "records": "types.records",
    "retriever": "integrations.retriever",
    "state": "integrations.state",
    "token_counters": "models.token_counters",
    "tools": "integrations.tools",
}
"""Where what stood at a path stands now."""
FORMER_NAMES = {
    "errors": (
        "CheckpointError ClosedError DatabaseReplacedError EmbedderMismatchError ForkedError "
        "IndexUnavailableError LockTimeoutError MixedOwnersError NewerSchemaError NotOurDatabaseError "
        "OlderSchemaError OutcomeUnknownError ReadOnlyError ReducedFunctionWarning StatementTimeoutError "
        "StorageBusyError StorageConflictError StorageFullError StorageUnreachableError "
        "TooManyConnectionsError UnknownMessageError"
    ),
    "extensions": (
        "CondensationContext CondensationHook CondensationPlugin CondensationValidator PromptGenerator "
        "TelemetryCollector ThresholdQuestion ThresholdResolver TruncationQuestion TruncationSelector Verdict"
    ),
    "integrations.histories": "afrom_langgraph ato_openai",
    "integrations.nodes": "MemoryNode",
    "reports": "DoctorReport FlushReport LevelMetrics MemoryStatus Problem SessionMetrics",
    "settings": (
        "CheckpointSettings CondensationSettings ContextSettings FileSettings GuardSettings LevelSettings "
        "MaskSettings MonitoringSettings PriceSettings RecallSettings SectionShares StrategySettings "
        "ThresholdSettings ValidationSettings ViewSettings"
    ),
    "types": (
        "Alert CostLedger CostRow GuardReport LedgerRow ThresholdAdvice ViewDiff Window Fact Group LeftOut "
        "Spent SummaryState CheckpointInfo Difference FileAccess RestoreReport RunState"
    ),
}
"""Names that stood at the root of the package, by their address now."""
RENAMED = {
    "bring_in": "import_history",
    "take_out": "export_history",
    "abring_in": "aimport_history",
    "atake_out": "aexport_history",
}
"""Functions of `integrations.histories` under their former names: nothing was taken out by `take_out`."""
_FOLDERS = {old.rpartition(".")[0] for old in MOVED if "." in old}
_ADDRESS_OF = {name: (home, name) for home, names in FORMER_NAMES.items() for name in names.split()} | {
    name: ("integrations.histories", now) for name, now in RENAMED.items()
}


class FormerPaths(MetaPathFinder, Loader):
    """Finds former modules, after everybody else has looked: a module that exists is never hidden."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system passes it
        target: ModuleType | None = None,  # noqa: ARG002 - the import system passes it
    ) -> ModuleSpec | None:
        """What to load for a former path, or for a folder that held one."""
        package, _, old = fullname.partition(".")
        if package != PACKAGE or (old not in MOVED and old not in _FOLDERS):
            return None
        return ModuleSpec(fullname, self, is_package=old in _FOLDERS)

    def exec_module(self, module: ModuleType) -> None:
        """Give the former module all that the present one has: the same objects, not copies of them."""
        old = module.__name__.removeprefix(f"{PACKAGE}.")
        if old not in MOVED:
            return
        now = f"{PACKAGE}.{MOVED[old]}"
        warnings.warn(f"{module.__name__} is {now} now", DeprecationWarning, stacklevel=2)
        found = vars(importlib.import_module(now))
        vars(module).update({name: value for name, value in found.items() if not name.startswith("__")})


def install() -> None:
    """Let former paths be imported, from now on."""
    if not any(isinstance(finder, FormerPaths) for finder in sys.meta_path):
        sys.meta_path.append(FormerPaths())


def former_name(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """What stood at the root of the package under `name`.

    Raises:
        AttributeError: when nothing ever did.
    """
    home, now = _ADDRESS_OF.get(name, (None, name))
    if home is None:
        msg = f"module {PACKAGE!r} has no attribute {name!r}"
        raise AttributeError(msg)
    warnings.warn(f"{PACKAGE}.{name} is {PACKAGE}.{home}.{now} now", DeprecationWarning, stacklevel=3)
    return getattr(importlib.import_module(f"{PACKAGE}.{home}"), now)
