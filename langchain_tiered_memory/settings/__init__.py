"""Everything a user can set, each with its default and where the default comes from. Validated once, then frozen.

Environment variables set them without a change to the program. A variable is `TIERED_MEMORY_` and the setting's name in
capitals. A setting in a group is preceded by the group's name and two underscores:

    TIERED_MEMORY_BUSY_SECONDS=60
    TIERED_MEMORY_CONTEXT__MAX_TOKENS=16000
    TIERED_MEMORY_CONDENSATION__STRATEGIES__FALLBACK=error
    TIERED_MEMORY_PRICES='{"gpt-5-mini": {"input_per_million": 0.25, "output_per_million": 2}}'

Lists and mappings are JSON. `TieredMemory.open` reads the variables only if it is given no `settings`.
`TIERED_MEMORY_DOWNLOAD` and `TIERED_MEMORY_MINILM_DIR` are not settings: they say whether MiniLM may be downloaded, and
where it is.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable  # noqa: TC003 - pydantic resolves it at run time
from typing import Any, Literal, TypeAlias

from pydantic import Field, field_validator

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.settings.base import Frozen
from langchain_tiered_memory.settings.condensation import (
    CondensationSettings,
    LevelSettings,
    MonitoringSettings,
    StrategySettings,
    ThresholdSettings,
    TreeSettings,
    ValidationSettings,
)
from langchain_tiered_memory.settings.context import (
    ContextSettings,
    RecallSettings,
    RoomSettings,
    SectionShares,
    ViewSettings,
)
from langchain_tiered_memory.settings.runs import (
    CheckpointSettings,
    FileSettings,
    GuardSettings,
    TierRule,
    TierSettings,
)

SettingsName: TypeAlias = Literal["economy", "balanced"]

NAMED: dict[SettingsName, dict[str, dict[str, Any]]] = {
    "economy": {
        "room": {"working_tokens": 1_500, "extra_share": 0.05},
        "context": {
            "keep_recent_tokens": 1000,
            "talk_recall_share": 0.02,
            "cover_share": 0.06,
            "facts_share": 0.14,
            "shares": {"level_1_summaries": 0.0},
        },
        "condensation": {"model_from_level": 3},
    },
    "balanced": {},
}
"""How each named set of settings differs from the defaults, group by group.

The values come from measuring cost against what is in view (`benchmarks/cost_curve.py`); the figures are in
`docs/benchmarks.md`. In chats, `economy` shows facts and little else, because quotes cost most there. It leaves the
levels that it shows least to rules, and its room for file work grows more slowly than the window.
"""


__all__ = [
    "CheckpointSettings", "CondensationSettings", "ContextSettings", "FileSettings", "GuardSettings", "LevelSettings",
    "MonitoringSettings", "PriceSettings", "RecallSettings", "RoomSettings", "SectionShares", "Settings",
    "SettingsName", "StrategySettings", "ThresholdSettings", "TierRule", "TierSettings", "TreeSettings",
    "ValidationSettings", "ViewSettings",
]  # fmt: skip


PRIVATE_FILE_MODE = 0o600
_OWNER = 0o600


class PriceSettings(Frozen):
    """Money per million tokens, in any one currency."""

    input_per_million: float = Field(ge=0)
    """Price per million input tokens that are not cached."""
    output_per_million: float = Field(ge=0)
    """Price per million output tokens."""
    cached_input_per_million: float | None = Field(default=None, ge=0)
    """Price per million input tokens that the provider reads from its cache. `None`: `room.cached_price` decides."""


class Settings(Frozen):
    """All settings. Pass one to `TieredMemory.open(settings=...)`."""

    tree: TreeSettings = Field(default_factory=TreeSettings)
    """When summaries are written, and how large they may be."""
    context: ContextSettings = Field(default_factory=ContextSettings)
    """The budget of a request, and how its sections share it."""
    recall: RecallSettings = Field(default_factory=RecallSettings)
    """How messages and summaries are found."""
    condensation: CondensationSettings = Field(default_factory=CondensationSettings)
    """When and how a view is condensed, and how summaries are judged."""
    guard: GuardSettings = Field(default_factory=GuardSettings)
    """The zones of the window, and what leaves a view that is too full."""
    room: RoomSettings = Field(default_factory=RoomSettings)
    """How full a condensation leaves a view."""
    checkpoints: CheckpointSettings = Field(default_factory=CheckpointSettings)
    """When a run's state is saved automatically."""
    files: FileSettings = Field(default_factory=FileSettings)
    """Which tool calls touch files."""
    tiers: TierSettings = Field(default_factory=TierSettings)
    """How the files of a run are kept."""
    redact: Callable[[str], str] | None = Field(default=None, exclude=True)
    """Rewrites every text of a message before the memory counts, indexes or stores anything."""
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    """Prices by model name, for the cost figures of `metrics()`."""
    busy_seconds: float = Field(default=30.0, gt=0)
    """Seconds that a write waits for a locked database, and that the memory retries an interrupted call to
    PostgreSQL."""
    file_mode: int | None = Field(default=PRIVATE_FILE_MODE, ge=0, le=0o777)
    """Permissions of new files, as for `chmod`. By default only the owner can read and write them. Users who may read
    the files may also enter their folders. `None`: the process's umask decides. Existing files keep their
    permissions."""
    traces: bool = True
    """Whether assembling, recall and condensing by a model appear as runs in LangSmith, Studio and other LangChain
    tracers, with inputs, outputs and token counts. They never appear in a caller's streams."""
    default_window: int = Field(default=8192, ge=512)
    """Window, in tokens, that is assumed for a condensing model whose window is not known. One warning says so."""

    @classmethod
    @checked(SettingsError)
    def named(cls, name: SettingsName) -> Settings:
        """Return settings that weigh cost against how much is in view. Change them with `model_copy`.

        Args:
            name: `balanced` is the default and the cheapest that loses nothing. `economy` costs less and keeps less.

        Raises:
            SettingsError: for any other name.
        """
        return cls.model_validate(NAMED[name])

    @field_validator("file_mode")
    @classmethod
    def _readable(cls, mode: int | None) -> int | None:
        if mode is not None and mode & _OWNER != _OWNER:
            msg = f"{mode:#o} keeps the owner out: a memory reads and writes its own files, so give 0o600 or more"
            raise ValueError(msg)
        return mode


PREFIX = "TIERED_MEMORY_"
_INSIDE = "__"
"""Separates a group from its setting."""
_ALIKE, _MISSPELT = 0.6, 0.8
"""How similar to a setting a variable's name must be to count as misspelt. With a group it is the default of `difflib`.
Without one it is higher than for any variable of ours that is not a setting, such as the key file's (0.6)."""


def settings_from_environment() -> Settings:
    """The defaults, overridden by the environment.

    Raises:
        SettingsError: if a variable names no setting, or its value cannot be used. The message names it.
    """
    tops = {
        name: name.upper().removeprefix(PREFIX).partition(_INSIDE)[0].lower()
        for name in sorted(os.environ)
        if name.upper().startswith(PREFIX)
    }
    for name, top in tops.items():
        if top in Settings.model_fields:
            continue
        is_grouped = _INSIDE in name.upper().removeprefix(PREFIX)
        known = {one: one for one in Settings.model_fields} if is_grouped else _joined()
        near = difflib.get_close_matches(top, known, n=1, cutoff=_ALIKE if is_grouped else _MISSPELT)
        if is_grouped or near:
            meant = f"did you mean {known[near[0]]!r}?" if near else f"known are {', '.join(Settings.model_fields)}"
            msg = f"{name}: there is no {'group of settings' if is_grouped else 'setting'} {top!r}: {meant}"
            raise SettingsError(msg)
    names = [name for name, top in tops.items() if top in Settings.model_fields]
    if not names:
        return Settings()
    try:
        return _read(names)
    except SettingsError:
        for name in names:
            _read([name])
        raise


def _joined(kind: type[Frozen] = Settings) -> dict[str, str]:
    """All settings and groups, by their names as they are mistaken: a group separated by one underscore."""
    found: dict[str, str] = {}
    for name, field in kind.model_fields.items():
        found[name] = name
        if isinstance(field.annotation, type) and issubclass(field.annotation, Frozen):
            found |= {f"{name}_{one}": f"{name}{_INSIDE}{inner}" for one, inner in _joined(field.annotation).items()}
    return found


def _read(names: Iterable[str]) -> Settings:
    from pydantic_settings import BaseSettings, EnvSettingsSource  # noqa: PLC0415 - only where a variable is set
    from pydantic_settings.exceptions import SettingsError as UnreadableError  # noqa: PLC0415 - as above

    class Variables(Settings, BaseSettings):  # type: ignore[misc]
        """Gives pydantic the names and types of variables. It is never instantiated."""

    source = EnvSettingsSource(Variables, env_prefix=PREFIX, env_nested_delimiter=_INSIDE, env_parse_none_str="none")
    meant = {name.lower() for name in names}
    source.env_vars = {name: value for name, value in source.env_vars.items() if name in meant}
    try:
        return Settings(**source())
    except UnreadableError as error:
        msg = f"{', '.join(names)}: {error.__cause__ or error}; lists and mappings are written as JSON"
        raise SettingsError(msg) from None
    except SettingsError as error:
        msg = f"{', '.join(names)}: {str(error).rpartition('Settings: ')[2]}"
        raise SettingsError(msg) from None
