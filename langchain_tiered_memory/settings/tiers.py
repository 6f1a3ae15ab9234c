"""Tiers of the files of a run: what each holds, for how long, and what is done when they fill up."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic resolves it at run time
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from langchain_tiered_memory.settings.base import Frozen, Paths

Eviction: TypeAlias = Literal["least_recently_used", "least_often_used", "largest"]
Strategy: TypeAlias = Literal["compress_warm", "demote_unused", "archive_checkpoints", "clear_obsolete"]


class TierRule(Frozen):
    """What one tier may hold."""

    files: int = Field(ge=1)
    """Most files in the tier, at any moment."""
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
    """The table by which the files of a run are kept: limits, times, order of eviction, what is done and when."""

    former: ClassVar[Mapping[str, str]] = {
        "companions": "a run takes in what is opened, and nothing beside it",
        "recent_tasks": "warm keeps a file for its time, whichever task worked on it",
    }

    hot: TierRule = Field(default_factory=lambda: TierRule(files=20, seconds=600.0, files_after_cleanup=10))
    """The tier of files as text."""
    warm: TierRule = Field(default_factory=lambda: TierRule(files=30, seconds=3600.0, files_after_cleanup=15))
    """The tier of compressed files that were used in the last hour."""
    eviction: Eviction = "least_recently_used"
    """Which file leaves a full tier first. A pinned one never does."""
    strategies: tuple[Strategy, ...] = ("compress_warm", "demote_unused", "archive_checkpoints", "clear_obsolete")
    """What an optimisation tries, in this order, until the tiers are below `optimise_share`."""
    collect_seconds: float = Field(default=300.0, gt=0)
    """Seconds between two moves of unused files to the next tier."""
    optimise_seconds: float = Field(default=900.0, gt=0)
    """Seconds between two optimisations of the tiers."""
    optimise_share: float = Field(default=0.75, gt=0, le=1)
    """Share of what hot and warm may hold together, from which an optimisation has something to do."""
    alert_share: float = Field(default=0.80, gt=0, le=1)
    """Share of the same, above which there is an alert and an early collection."""
    cleanup_share: float = Field(default=0.90, gt=0, le=1)
    """Share of the same, above which the aggressive cleanup comes, if no strategy helped."""
    archive_seconds: float = Field(default=3600.0, gt=0)
    """Age in seconds after which a checkpoint is packed more densely."""
    log_seconds: float = Field(default=600.0, gt=0)
    """Seconds between two lines of a run's figures in the log."""
    roots: Paths = ()
    """Folders whose files a run may open; links are followed first. If empty: `checkpoints.roots`."""
    largest_bytes: int = Field(default=2_000_000, ge=1)
    """Bytes above which a file is refused: it would fill a model's window many times."""
    dictionary_bytes: int = Field(default=32_768, ge=0)
    """Bytes of a dictionary that is trained on a session's files to compress them. 0: none is trained."""
    critical: Paths = ()
    """Files that a run loads and pins when it starts."""

    @field_validator("strategies")
    @classmethod
    def _each_once(cls, names: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        if len(set(names)) != len(names):
            msg = "name each strategy once"
            raise ValueError(msg)
        return names
