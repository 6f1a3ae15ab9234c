"""Zones, pruning, checkpoints and touched files."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from langchain_tiered_memory.settings.base import Frozen, Paths


class MaskSettings(Frozen):
    """Tool outputs that leave a view before anything else does; their calls stay."""

    enabled: bool = True
    """Whether any is masked."""
    giant_tokens: int = Field(default=2000, ge=32)
    """A tool output larger than this, and than `giant_share`, is masked when room is needed, oldest first, unless the
    model has not seen it."""
    giant_share: float = Field(default=0.5, ge=0, le=1)
    """Of the limit: less than that is no giant, however many tokens it has."""
    giant_keep_share: float = Field(default=0.25, ge=0, le=1)
    """Of the limit, that stays of a giant's beginning and end around the pointer."""
    keep_tokens: int = Field(default=60, ge=0)
    """The same of an output that was repeated or replaced."""
    repeated: bool = True
    """Mask an output that a later one repeats word for word, or that a later call of the same file or arguments
    replaced."""
    batch_share: float = Field(default=0.1, ge=0, le=1)
    """Of the limit, that a batch of masks must free to be worth a broken prompt cache."""


class GuardSettings(Frozen):
    """How full a window may get before something is done, and what is pruned then.

    `warning`, `danger` and `critical` are where the zones begin, as shares of the limit.
    """

    warning: float = Field(default=0.70, gt=0, le=1)
    """Share of the limit from which the zone is `warning`."""
    danger: float = Field(default=0.85, gt=0, le=1)
    """Share of the limit from which it is `danger`."""
    critical: float = Field(default=0.95, gt=0, le=1)
    """Share of the limit from which it is `critical`."""
    prune_to: float = Field(default=0.70, gt=0, le=1)
    """Of the limit, that a pruned context may take."""
    score_threshold: int = Field(default=30, ge=0)
    """An undecided item stays while its score exceeds this."""
    score_step: int = Field(default=5, ge=1)
    """By which the threshold is raised while the context is over its target."""
    newest_share: float = Field(default=0.35, ge=0, le=1)
    """Of a pruned view, for its newest groups, whatever their scores: what an agent needs next is there more often than
    a score can tell (`benchmarks/transcript_probes.py`)."""
    masks: MaskSettings = Field(default_factory=MaskSettings)
    """Tool outputs that leave a view first."""
    window: int | None = Field(default=None, ge=64)
    """The model's window, where its profile does not tell it, or tells it wrongly."""

    @model_validator(mode="after")
    def _rising(self) -> GuardSettings:
        if not self.warning < self.danger < self.critical:
            msg = "the zones must rise: warning < danger < critical"
            raise ValueError(msg)
        return self


class CheckpointSettings(Frozen):
    """When a run's state is saved by itself, and how long it is kept."""

    enabled: bool = True
    """Whether checkpoints are saved by themselves."""
    window_share: float = Field(default=0.80, gt=0, le=1)
    """Of the window: once a view takes more."""
    tasks: int | None = Field(default=5, ge=1)
    """Every so many finished tasks."""
    seconds: float | None = Field(default=1800.0, gt=0)
    """Since the last checkpoint, noticed at the next request."""
    operations: tuple[str, ...] = ("major_refactor", "large_merge")
    """Operations that `Session.before()` takes for risky."""
    keep: int = Field(default=20, ge=1)
    """Newest checkpoints kept of a session, of each kind: those that somebody named, milestones (a phase, every so many
    tasks), danger (zones, risky operations), and what is saved by the clock, by size and at the end of runs."""
    roots: Paths = ()
    """Folders whose files may be read for their checksums; none by default."""
    max_files: int = Field(default=200, ge=0)
    """Touched files whose checksums are kept, the latest first."""


_COMMON_FILE_TOOLS: dict[str, Literal["read", "write", "search", "list"]] = {
    "read": "read",
    "read_file": "read",
    "view": "read",
    "cat": "read",
    "open": "read",
    "open_file": "read",
    "notebookread": "read",
    "write": "write",
    "write_file": "write",
    "create": "write",
    "create_file": "write",
    "edit": "write",
    "edit_file": "write",
    "multiedit": "write",
    "str_replace": "write",
    "str_replace_editor": "write",
    "str_replace_based_edit_tool": "write",
    "apply_patch": "write",
    "insert": "write",
    "notebookedit": "write",
    "grep": "search",
    "grep_files": "search",
    "brain_search": "search",
    "search": "search",
    "search_files": "search",
    "search_file": "search",
    "search_dir": "search",
    "glob": "search",
    "find": "search",
    "find_file": "search",
    "glob_files": "list",
    "ls": "list",
    "list": "list",
    "list_dir": "list",
    "list_files": "list",
    "list_directory": "list",
}


class FileSettings(Frozen):
    """Which files a run touched: taken from its tool calls."""

    enabled: bool = True
    """Whether tool calls are read for files."""
    tools: dict[str, Literal["read", "write", "search", "list"]] = Field(
        default_factory=lambda: dict(_COMMON_FILE_TOOLS)
    )
    """Operation by a tool's name, in lower case."""
    path_keys: tuple[str, ...] = (
        "file_path",
        "path",
        "filename",
        "file",
        "filepath",
        "target_file",
        "notebook_path",
        "abs_path",
        "files",
        "paths",
        "directory",
        "dir",
    )
    """Arguments of such a tool that name files."""
    recall_share: float = Field(default=0.1, ge=0, le=1)
    """Of the budget, set aside for recall in a run that touched files, where `context.recall_share` is more: an agent
    needs its room for what it works on, and has tools to ask for more."""
    share: float = Field(default=0.05, ge=0, le=1)
    """Of the budget, for the list of files that the recent messages do not show."""
    busy_messages: int = Field(default=3, ge=1)
    """So many messages with file work ..."""
    busy_among: int = Field(default=60, ge=1)
    """... among the newest so many: an agent is at work on files. One of them is enough for a condensation to keep
    parts of files in the room that it leaves."""
    facts_share: float = Field(default=0.04, ge=0, le=1)
    """Of the budget, for facts of what is older while an agent works on files, with a question or without."""
    cover_share: float = Field(default=0.06, ge=0, le=1)
    """Of the budget, for summaries of what is older while an agent works on files: what they take is lost to the files'
    own words."""
    least_cover_tokens: int = Field(default=800, ge=0)
    """What `cover_share` leaves to summaries at least ..."""
    least_cover_share: float = Field(default=0.12, ge=0, le=1)
    """... up to this share of the budget."""
    filled_share: float = Field(default=0.85, gt=0, le=1)
    """Of a view's room, that is filled with file work word for word after a condensation: with less too little stays,
    with more it would be condensed again too soon."""
    ignore: tuple[str, ...] = (
        "*.pyc",
        "*/__pycache__/*",
        "*/node_modules/*",
        "*/.git/*",
        "/tmp/*",  # noqa: S108 - a pattern, no place to write
        "*.tmp",
        "*.swp",
        "*.lock",
        "*/dist/*",
        "*/.venv/*",
    )
    """Temporary and generated files, as shell patterns: never listed."""
