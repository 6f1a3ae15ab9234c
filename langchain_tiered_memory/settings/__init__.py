"""Everything a user can set, each with its default and where the default comes from. Validated once, then frozen.

Whoever deploys a program without changing it sets them in the environment. A setting is `TIERED_MEMORY_` and its name
in capitals; that of a group stands behind the group and two underscores:

    TIERED_MEMORY_BUSY_SECONDS=60
    TIERED_MEMORY_CONTEXT__MAX_TOKENS=16000
    TIERED_MEMORY_CONDENSATION__STRATEGIES__FALLBACK=error
    TIERED_MEMORY_PRICES='{"gpt-5-mini": {"input_per_million": 0.25, "output_per_million": 2}}'

Lists and mappings are JSON. `TieredMemory.open` reads them where it is given no `settings`; settings that are passed
count alone. `TIERED_MEMORY_DOWNLOAD` and `TIERED_MEMORY_MINILM_DIR` are no settings: they say where MiniLM is.
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
"""By name, what differs from the defaults, group by group.

Chosen by what is billed for what is in view (`benchmarks/cost_curve.py`); the figures stand in `docs/benchmarks.md`.
`economy` in chats is facts and little else: quotes beside what is said cost most there. It leaves to rules the levels
that it shows least of, and its file work grows more slowly than the window.
"""


__all__ = [
    "CheckpointSettings",
    "CondensationSettings",
    "ContextSettings",
    "FileSettings",
    "GuardSettings",
    "LevelSettings",
    "MonitoringSettings",
    "PriceSettings",
    "RecallSettings",
    "RoomSettings",
    "SectionShares",
    "Settings",
    "SettingsName",
    "StrategySettings",
    "ThresholdSettings",
    "TierRule",
    "TierSettings",
    "TreeSettings",
    "ValidationSettings",
    "ViewSettings",
]


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
    """Permissions of new files, as for `chmod`. By default only the owner can read and write them. Whoever may read the
    files may enter their folders. `None`: the process's umask decides. Existing files keep their permissions."""
    traces: bool = True
    """Whether assembling, recall and condensing by a model appear as runs in LangSmith, Studio and other LangChain
    tracers, with inputs, outputs and token counts. They never appear in a caller's streams."""
    default_window: int = Field(default=8192, ge=512)
    """Window, in tokens, that is assumed for a condensing model whose own window is not known. One warning says so."""

    @classmethod
    @checked(SettingsError)
    def named(cls, name: SettingsName) -> Settings:
        """Settings for how much is to be paid for how much in view; change them with `model_copy`.

        Args:
            name: `balanced` is the default: the cheapest that loses nothing; `economy` bills less, and keeps less.

        Raises:
            SettingsError: for another name.
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
"""Between a group and its setting."""
_ALIKE, _MISSPELT = 0.6, 0.8
"""How like a setting the name of a variable must be to be taken for one: with a group, as `difflib` has it; without
one, more than any variable here that is no setting, such as the key file's (0.6)."""


def settings_from_environment() -> Settings:
    """The defaults, with what the environment says in their place.

    Raises:
        SettingsError: for a variable that no setting is named by, or whose value cannot be used. It is named.
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
        near = difflib.get_close_matches(top, Settings.model_fields, n=1, cutoff=_ALIKE if is_grouped else _MISSPELT)
        if is_grouped or near:
            meant = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(Settings.model_fields)}"
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


def _read(names: Iterable[str]) -> Settings:
    from pydantic_settings import BaseSettings, EnvSettingsSource  # noqa: PLC0415 - only where a variable is set
    from pydantic_settings.exceptions import SettingsError as UnreadableError  # noqa: PLC0415 - as above

    class Variables(Settings, BaseSettings):  # type: ignore[misc]
        """Where the names and types of variables are read from; nothing is made of it."""

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
