"""The summary tree: its levels, their triggers and sizes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from langchain_tiered_memory.settings.base import Frozen, constant


class LevelSettings(Frozen):
    """When one level of the tree is made, and how large it may be. Any trigger that is set and reached fires."""

    sources: int | None = Field(default=None, ge=2)
    """Number of finished summaries of the level below. Not used at level 1."""
    messages: int | None = Field(default=None, ge=1)
    """Number of messages; above level 1, of messages under the waiting summaries."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens of the messages; above level 1, of the waiting summaries."""
    seconds: float | None = Field(default=None, gt=0)
    """Seconds that the messages span. Level 1 only."""
    strategy: Literal["detailed", "concise", "thematic", "chronological", "executive", "technical", "handoff"]
    """Which prompt is used, and which sections the text has."""
    target_ratio: float = Field(gt=0, le=1)
    """Largest size of a summary, as a share of its sources' tokens. The model is asked for a little less."""
    max_tokens: int = Field(ge=16)
    """Largest size of a summary of this level, in tokens. It never has more than its source."""
    min_tokens: int = Field(default=0, ge=0)
    """Tokens that a summary may have whatever the ratio says, unless its source is shorter."""

    @model_validator(mode="after")
    def _has_a_trigger(self) -> LevelSettings:
        if self.sources is None and self.messages is None and self.tokens is None and self.seconds is None:
            msg = "a level needs at least one trigger: set sources, messages, tokens or seconds"
            raise ValueError(msg)
        return self


def _level_1() -> LevelSettings:
    return LevelSettings(
        messages=10, tokens=2000, seconds=3600.0, strategy="detailed", target_ratio=0.5, max_tokens=1000
    )


def _level_2() -> LevelSettings:
    return LevelSettings(sources=5, tokens=4000, messages=100, strategy="thematic", target_ratio=0.3, max_tokens=1500)


def _level_3() -> LevelSettings:
    return LevelSettings(
        sources=3, tokens=6000, messages=500, strategy="executive", target_ratio=0.2, max_tokens=400, min_tokens=200
    )


def _higher_levels() -> LevelSettings:
    return LevelSettings(sources=3, tokens=6000, strategy="executive", target_ratio=0.2, max_tokens=400, min_tokens=200)


class TreeSettings(Frozen):
    """The summary tree: when each level is made, how large its summaries may be, and what happens to failures."""

    former = dict.fromkeys(
        ("facts_tokens", "facts_growth", "max_facts_tokens"),
        "facts are kept in a store of their own, and a summary has no list of them any more",
    ) | constant("max_backoff_seconds", "on_finished_task", "embed_summaries")

    enabled: bool = True
    """Make summaries at all. Off: the transcript, search and recent messages still work."""
    background: bool = True
    """Make summaries and vectors in a background thread as their triggers fire. Off: only `flush()` does."""
    levels: tuple[LevelSettings, ...] = Field(
        default_factory=lambda: (_level_1(), _level_2(), _level_3()), min_length=1
    )
    """Level 1, 2, 3, and as many more as you want."""
    higher: LevelSettings = Field(default_factory=_higher_levels)
    """Every level above those in `levels`; there is no top."""
    temperature: float | None = Field(default=0.3, ge=0, le=2)
    """Temperature of the condensing model. `None` leaves the model as it is."""
    deadline_seconds: float | None = Field(default=120.0, gt=0)
    """Seconds to wait for one answer of the condensing model. `None` leaves it to the model's own timeout."""
    attempts: int = Field(default=3, ge=1)
    """Failed attempts before the extractive condenser writes a degraded summary instead."""
    backoff_seconds: float = Field(default=5.0, ge=0)
    """Seconds to wait after the first failed attempt. The wait doubles with each further one, up to an hour."""
    lease_seconds: float = Field(default=300.0, gt=0)
    """Seconds that a worker may take over one summary before another worker picks it up."""
    idle_seconds: float | None = Field(default=None, gt=0)
    """A pause of so many seconds ends a level-1 chunk of two or more messages, whatever the triggers say. `None`: no
    pause does. So does the end of a task (`Session.finish_task`)."""
    semantic_deduplication: bool = True
    """Summarise near-duplicate messages once."""
    regenerate_on_edit: bool = False
    """Make summaries anew when a message under them is edited. Off: they are marked as stale, and still used."""

    def level(self, number: int) -> LevelSettings:
        """The settings of level `number` (1 and up)."""
        return self.levels[number - 1] if number <= len(self.levels) else self.higher
