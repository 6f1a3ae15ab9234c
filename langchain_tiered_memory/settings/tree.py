"""The summary tree: its levels, their triggers and sizes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from langchain_tiered_memory.settings.base import Frozen


class LevelSettings(Frozen):
    """When one level of the tree is made, and how large it may be. Any trigger that is set and reached fires."""

    sources: int | None = Field(default=None, ge=2)
    """Number of finished summaries of the level below. Not used at level 1."""
    messages: int | None = Field(default=None, ge=1)
    """Number of messages (level 1), or of messages under the waiting summaries (above)."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens of the messages (level 1) or of the waiting summaries (above)."""
    seconds: float | None = Field(default=None, gt=0)
    """Span of the messages' own times. Level 1 only."""
    strategy: Literal["detailed", "concise", "thematic", "chronological", "executive", "technical", "handoff"]
    """Which prompt, and which sections the text has."""
    target_ratio: float = Field(gt=0, le=1)
    """Aimed-at share of the sources' tokens."""
    max_tokens: int = Field(ge=16)
    """The most a summary of this level may have; it never has more than its source."""
    min_tokens: int = Field(default=0, ge=0)
    """Do not aim below this, unless the source itself is shorter."""

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

    enabled: bool = True
    """Make summaries at all. Off: the transcript, search and recent messages still work."""
    background: bool = True
    """Make summaries and vectors in a background thread as their triggers fire. Off: only `flush()` does."""
    levels: tuple[LevelSettings, ...] = Field(
        default_factory=lambda: (_level_1(), _level_2(), _level_3()), min_length=1
    )
    """Level 1, 2, 3 and as many more as wanted."""
    higher: LevelSettings = Field(default_factory=_higher_levels)
    """Every level above those named in `levels`: there is no fixed top."""
    temperature: float | None = Field(default=0.3, ge=0, le=2)
    """For the condensing model; `None` leaves the model as it is."""
    deadline_seconds: float | None = Field(default=120.0, gt=0)
    """How long to wait for one answer of the condensing model; `None` leaves that to the model's own timeout."""
    attempts: int = Field(default=3, ge=1)
    """Failed attempts before the extractive condenser writes a degraded summary in the model's stead."""
    backoff_seconds: float = Field(default=5.0, ge=0)
    """Wait after the first failed attempt; doubles with each further one."""
    max_backoff_seconds: float = Field(default=3600.0, gt=0)
    """The longest wait between attempts, and between remakes of a degraded summary."""
    lease_seconds: float = Field(default=300.0, gt=0)
    """How long a worker may take over one summary before another picks it up."""
    idle_seconds: float | None = Field(default=None, gt=0)
    """A pause of this length ends a level-1 chunk of two messages or more, whether or not a trigger holds."""
    on_finished_task: bool = True
    """So does the end of a task (`Session.finish_task`)."""
    facts_tokens: int = Field(default=300, ge=0)
    """Cap of the list of durable facts beside a summary of level 1. What overflows stays searchable."""
    facts_growth: float = Field(default=2.0, ge=1, le=10)
    """The cap grows by this factor with each level, for a higher one stands for more; 1 keeps it as it is."""
    max_facts_tokens: int = Field(default=4800, ge=0)
    """The cap never grows beyond this. A view shows as many of them as it has room for."""
    semantic_deduplication: bool = True
    """Near-duplicate messages are summarised once."""
    regenerate_on_edit: bool = False
    """Make stale summaries anew. Off: they are marked, and still used."""
    embed_summaries: bool = True
    """Put summaries into the vector index, beside the messages."""

    def level(self, number: int) -> LevelSettings:
        """The settings of level `number` (1 and up)."""
        return self.levels[number - 1] if number <= len(self.levels) else self.higher

    def facts_cap(self, number: int) -> int:
        """The most tokens of facts beside a summary of level `number` (1 and up)."""
        grown = self.facts_tokens * self.facts_growth ** min(number - 1, 64)  # from there on it is past any cap
        return round(min(grown, max(self.max_facts_tokens, self.facts_tokens)))
