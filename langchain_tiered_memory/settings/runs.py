"""Zones, checkpoints, touched files, and the tiers of a run's files: what each holds, and for how long."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from langchain_tiered_memory.settings.base import Frozen, Paths
from langchain_tiered_memory.types.runs import FileOperation  # noqa: TC001 - pydantic resolves it at run time

Eviction: TypeAlias = Literal["least_recently_used", "least_often_used", "largest"]
Strategy: TypeAlias = Literal["demote_unused", "archive_checkpoints", "clear_obsolete"]


class GuardSettings(Frozen):
    """How full a window may get before the memory acts, and what it prunes then.

    `warning`, `danger` and `critical` are where the zones begin, as shares of the limit.
    """

    warning: float = Field(default=0.70, gt=0, le=1)
    """Where the zone warning begins, as a share of the limit: a pruned context is no larger."""
    danger: float = Field(default=0.85, gt=0, le=1)
    """Where the zone danger begins, as a share of the limit."""
    critical: float = Field(default=0.95, gt=0, le=1)
    """Where the zone critical begins, as a share of the limit."""
    window: int | None = Field(default=None, ge=64)
    """The model's window in tokens, if its profile lacks it or has it wrong."""

    @model_validator(mode="after")
    def _rising(self) -> GuardSettings:
        if not self.warning < self.danger < self.critical:
            msg = "the zones must rise: warning < danger < critical"
            raise ValueError(msg)
        return self


class CheckpointSettings(Frozen):
    """When a run's state is saved automatically, and how long it is kept."""

    enabled: bool = True
    """Save checkpoints automatically."""
    window_share: float = Field(default=0.80, gt=0, le=1)
    """Save when a view takes more than this share of the window."""
    tasks: int | None = Field(default=5, ge=1)
    """Save after this many finished tasks."""
    seconds: float | None = Field(default=1800.0, gt=0)
    """Save when the last checkpoint is older than this many seconds. The memory checks this at the next request."""
    operations: tuple[str, ...] = ("major_refactor", "large_merge")
    """Operations that `Session.before()` treats as risky."""
    keep: int = Field(default=20, ge=1)
    """How many of the newest checkpoints of each kind a session keeps: named ones, milestones (a phase, so many tasks),
    danger (zones, risky operations), and those by the clock, by size and at the end of runs."""


_COMMON_FILE_TOOLS: dict[FileOperation, tuple[str, ...]] = {
    "read": (
        "read", "read_file", "read_text_file", "read_multiple_files", "read_many_files", "view", "cat", "open",
        "open_file", "notebookread",
    ),
    "write": (
        "write", "write_file", "create", "create_file", "edit", "edit_file", "multiedit", "str_replace",
        "str_replace_editor", "str_replace_based_edit_tool", "apply_patch", "insert", "notebookedit", "replace",
        "write_to_file", "delete", "delete_file", "file_delete", "move_file", "rename_file",
    ),
    "search": (
        "grep", "grep_files", "brain_search", "search", "search_files", "search_file", "search_dir", "glob", "find",
        "find_file",
    ),
    "list": ("glob_files", "ls", "list", "list_dir", "list_files", "list_directory"),
}  # fmt: skip


class FileSettings(Frozen):
    """Which files a run touched, as read from its tool calls."""

    tools: dict[str, FileOperation] = Field(
        default_factory=lambda: {tool: what for what, tools in _COMMON_FILE_TOOLS.items() for tool in tools}
    )
    """What each tool does, by its name in lower case. With none, no file counts as touched."""
    path_keys: tuple[str, ...] = (
        "file_path", "path", "filename", "file", "filepath", "target_file", "notebook_path", "abs_path", "files",
        "paths", "directory", "dir",
    )  # fmt: skip
    """Arguments of such a tool that name files."""
    roots: Paths = ()
    """Folders whose files may be read: for the checksums of checkpoints, and by a run without its own roots. Links are
    followed first."""
    share: float = Field(default=0.05, ge=0, le=1)
    """Share of the budget for the list of files that the recent messages do not show."""
    ignore: tuple[str, ...] = (  # `/tmp/*` is a pattern, no place to write
        "*.pyc", "*/__pycache__/*", "*/node_modules/*", "*/.git/*", "/tmp/*", "*.tmp", "*.swp", "*.lock",  # noqa: S108
        "*/dist/*", "*/.venv/*",
    )  # fmt: skip
    """Temporary and generated files, as shell patterns. They are never listed."""


class TierRule(Frozen):
    """What one tier may hold."""

    files: int = Field(ge=1)
    """The most files that the tier ever holds."""
    seconds: float = Field(gt=0)
    """Seconds without an access after which a file goes to the next tier."""
    files_after_cleanup: int = Field(ge=0)
    """How many files the aggressive cleanup leaves."""

    @model_validator(mode="after")
    def _shrinks(self) -> TierRule:
        if self.files_after_cleanup > self.files:
            msg = "a cleanup cannot leave more files in a tier than it may hold"
            raise ValueError(msg)
        return self


class TierSettings(Frozen):
    """How the files of a run are kept: limits, times, the order of eviction, and what is done when."""

    hot: TierRule = Field(default_factory=lambda: TierRule(files=20, seconds=600.0, files_after_cleanup=10))
    """The tier of files that are at work."""
    warm: TierRule = Field(default_factory=lambda: TierRule(files=30, seconds=3600.0, files_after_cleanup=15))
    """The tier of files that were used in the last hour."""
    eviction: Eviction = "least_recently_used"
    """Which file leaves a full tier first. A pinned file never leaves."""
    strategies: tuple[Strategy, ...] = ("demote_unused", "archive_checkpoints", "clear_obsolete")
    """What an optimisation tries, in this order, until the tiers are below `optimise_share`."""
    collect_seconds: float = Field(default=300.0, gt=0)
    """Seconds between two moves of unused files to the next tier."""
    optimise_seconds: float = Field(default=900.0, gt=0)
    """Seconds between two optimisations of the tiers."""
    optimise_share: float = Field(default=0.75, gt=0, le=1)
    """Share of the capacity of hot and warm together above which an optimisation starts to work."""
    alert_share: float = Field(default=0.80, gt=0, le=1)
    """Share of the same capacity above which there is an alert and an early collection."""
    cleanup_share: float = Field(default=0.90, gt=0, le=1)
    """Share of the same capacity above which the aggressive cleanup runs, if no strategy helped."""
    archive_seconds: float = Field(default=3600.0, gt=0)
    """Age in seconds after which a checkpoint is compressed further."""
    log_seconds: float = Field(default=600.0, gt=0)
    """Seconds between two lines of a run's figures in the log."""
    largest_bytes: int = Field(default=2_000_000, ge=1)
    """Bytes above which a file is refused, because it would fill a model's window many times."""
    critical: Paths = ()
    """Files that a run loads and pins when it starts."""

    @field_validator("strategies")
    @classmethod
    def _each_once(cls, names: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        if len(set(names)) != len(names):
            msg = "name each strategy once"
            raise ValueError(msg)
        return names
