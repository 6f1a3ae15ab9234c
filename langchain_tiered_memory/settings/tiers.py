"""Tiers of the files of a run: what each holds, for how long."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic resolves it at run time
from typing import ClassVar

from pydantic import Field, model_validator

from langchain_tiered_memory.settings.base import Frozen, Paths, constant


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
    """How the files of a run are kept: limits, times and folders. When they are tended: `runs/files/collecting.py`."""

    former: ClassVar[Mapping[str, str]] = {
        "companions": "a run takes in what is opened, and nothing beside it",
        "recent_tasks": "warm keeps a file for its time, whichever task worked on it",
        **constant(
            "eviction",
            "strategies",
            "collect_seconds",
            "optimise_seconds",
            "optimise_share",
            "alert_share",
            "cleanup_share",
            "archive_seconds",
            "log_seconds",
            "dictionary_bytes",
        ),
    }

    hot: TierRule = Field(default_factory=lambda: TierRule(files=20, seconds=600.0, files_after_cleanup=10))
    """The tier of files as text."""
    warm: TierRule = Field(default_factory=lambda: TierRule(files=30, seconds=3600.0, files_after_cleanup=15))
    """The tier of compressed files that were used in the last hour."""
    roots: Paths = ()
    """Folders whose files a run may open; links are followed first. If empty: `checkpoints.roots`."""
    largest_bytes: int = Field(default=2_000_000, ge=1)
    """Bytes above which a file is refused: it would fill a model's window many times."""
    critical: Paths = ()
    """Files that a run loads and pins when it starts."""
