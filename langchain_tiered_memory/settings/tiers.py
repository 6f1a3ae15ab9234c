"""Tiers of the files of a run: what each holds, for how long, and what is done when they fill up."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from langchain_tiered_memory.settings.base import Frozen

Eviction: TypeAlias = Literal["least_recently_used", "least_often_used", "largest"]
Strategy: TypeAlias = Literal["compress_warm", "demote_unused", "archive_checkpoints", "clear_obsolete"]


class TierRule(Frozen):
    """What one tier may hold."""

    files: int = Field(ge=1)
    """At most so many, at any moment and for whoever looks."""
    seconds: float = Field(gt=0)
    """Without an access, after which a file goes to the next tier."""
    files_after_cleanup: int = Field(ge=0)
    """What the aggressive cleanup leaves there."""

    @model_validator(mode="after")
    def _shrinks(self) -> TierRule:
        if self.files_after_cleanup > self.files:
            msg = "a cleanup cannot leave more files in a tier than it may hold"
            raise ValueError(msg)
        return self


class TierSettings(Frozen):
    """The table by which the files of a run are kept: limits, times, order of eviction, what is done and when."""

    hot: TierRule = Field(default_factory=lambda: TierRule(files=20, seconds=600.0, files_after_cleanup=10))
    warm: TierRule = Field(default_factory=lambda: TierRule(files=30, seconds=3600.0, files_after_cleanup=15))
    eviction: Eviction = "least_recently_used"
    """Which file leaves a full tier first; never a pinned one."""
    strategies: tuple[Strategy, ...] = ("compress_warm", "demote_unused", "archive_checkpoints", "clear_obsolete")
    """What an optimisation tries, in this order, until the tiers are below `optimise_share`."""
    collect_seconds: float = Field(default=300.0, gt=0)
    """How often unused files go to the next tier."""
    optimise_seconds: float = Field(default=900.0, gt=0)
    optimise_share: float = Field(default=0.75, gt=0, le=1)
    """Of what hot and warm may hold together: from there on an optimisation has something to do."""
    alert_share: float = Field(default=0.80, gt=0, le=1)
    """Of the same: above it somebody is told, and a collection comes early."""
    cleanup_share: float = Field(default=0.90, gt=0, le=1)
    """Of the same: above it, when no strategy helped, the aggressive cleanup comes."""
    archive_seconds: float = Field(default=3600.0, gt=0)
    """Age after which a checkpoint is kept more densely."""
    log_seconds: float = Field(default=600.0, gt=0)
    """How often a run's figures are logged."""
    roots: tuple[str, ...] = ()
    """Folders whose files a run may open, links followed; `checkpoints.roots` where none is named."""
    largest_bytes: int = Field(default=2_000_000, ge=1)
    """A larger file is refused: it would fill a model's window many times."""
    dictionary_bytes: int = Field(default=32_768, ge=0)
    """Of a dictionary that is trained on a session's files for compressing them; 0: none is trained."""
    critical: tuple[str, ...] = ()
    """Files that a run loads and pins when it starts."""
    companions: int = Field(default=6, ge=0)
    """Files that come in with one that is opened (what it imports, its tests, what was opened next before), where there
    is room for them without sending others away."""

    recent_tasks: int = Field(default=5, ge=0)
    """Latest tasks, the one in hand among them, whose files stay in warm whatever their time, and come back to it from
    cold while there is room; pressure sends them down as any other."""

    @field_validator("strategies")
    @classmethod
    def _each_once(cls, names: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        if len(set(names)) != len(names):
            msg = "name each strategy once"
            raise ValueError(msg)
        return names
