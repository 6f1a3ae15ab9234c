"""Everything a user can set, each with its default and where the default comes from. Validated once, then frozen."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - pydantic resolves it at run time
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LevelSettings(_Frozen):
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


class TreeSettings(_Frozen):
    """The summary tree. The figures are those of the hierarchical-compression design this package grew from."""

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
    facts_tokens: int = Field(default=300, ge=0)
    """Cap of the list of durable facts beside each summary. What overflows stays searchable."""
    semantic_deduplication: bool = True
    """Near-duplicate messages are summarised once."""
    regenerate_on_edit: bool = False
    """Make stale summaries anew. Off: they are marked, and still used."""
    embed_summaries: bool = True
    """Put summaries into the vector index, beside the messages."""

    def level(self, number: int) -> LevelSettings:
        """The settings of level `number` (1 and up)."""
        return self.levels[number - 1] if number <= len(self.levels) else self.higher


class SectionShares(_Frozen):
    """Caps, as shares of `max_tokens`, on what a section shows for its own sake. Unused room is passed on."""

    user_queries: float = Field(default=0.05, ge=0, le=1)
    """Earlier user messages that the recent part no longer shows."""
    recent_turns: float = Field(default=0.05, ge=0, le=1)
    """The recent part never gets less than this."""
    code_results: float = Field(default=0.10, ge=0, le=1)
    """Recalled entries that are code or tool output."""
    level_1_summaries: float = Field(default=0.10, ge=0, le=1)
    """Recalled level-1 summaries."""


class ContextSettings(_Frozen):
    """How a context is put together."""

    max_tokens: int = Field(default=8000, ge=1)
    """Budget of one context where the call names none; less for a model whose window is smaller."""
    reserved_output_tokens: int = Field(default=4096, ge=0)
    """Kept free in a model's window for its answer, where the model does not tell its own maximum."""
    keep_recent_tokens: int = Field(default=2000, ge=0)
    """What remains of the recent messages after a condensation of the view; they grow from there to the hard limit.
    At most a quarter of the budget."""
    keep_user_messages: int = Field(default=3, ge=1)
    """Latest user messages that are always shown."""
    recall_share: float = Field(default=0.5, ge=0, lt=1)
    """Share of the budget set aside for recall when there is a query (default view)."""
    cover_share: float = Field(default=0.2, ge=0, lt=1)
    """The most that summaries of what is older may take; without a query a quarter of recall's share besides."""
    older: Literal["cover", "selection"] = "cover"
    """What stands for older history: the cover (no gap), or the original selection by level and recency."""
    selection_threshold_tokens: int = Field(default=2000, ge=0)
    """`selection`: with less room than this, the top level alone."""
    selection_share: float = Field(default=0.6, gt=0, le=1)
    """`selection`: share of the room for recent level-2 summaries."""
    shares: SectionShares = Field(default_factory=SectionShares)
    unanswered: str = "[no result was recorded for this call]"
    """Stands for a tool result that never came, where a provider needs one."""


class RecallSettings(_Frozen):
    """Search and recall."""

    quota_messages: int = Field(default=10, ge=0)
    """Most messages that `search` returns before ranking across levels."""
    quota_level_1: int = Field(default=5, ge=0)
    quota_level_2: int = Field(default=3, ge=0)
    quota_higher: int = Field(default=1, ge=0)
    """For each level from 3 on."""
    candidates: int = Field(default=300, ge=10)
    """Passages taken from each index before ranking."""
    neighbours: int = Field(default=2, ge=0)
    """Entries on each side of a candidate that are looked at too."""
    catch_up: int = Field(default=64, ge=0)
    """Passages that a query embeds itself when the vector index lags; more are left to the background."""
    passage_words: int = Field(default=100, ge=10)
    """Longest passage of a message, in words."""
    sitting_gap_seconds: float = Field(default=14400.0, gt=0)
    """A pause of this length, or another day, starts a new dated sitting."""
    chroma_documents: bool = False
    """Keep the texts in Chroma too. Off, so that what is forgotten leaves no text there."""


class PriceSettings(_Frozen):
    """Money per million tokens, in any one currency."""

    input_per_million: float = Field(ge=0)
    output_per_million: float = Field(ge=0)


class Settings(_Frozen):
    """All settings. Pass one to `TieredMemory.open(settings=...)`."""

    tree: TreeSettings = Field(default_factory=TreeSettings)
    context: ContextSettings = Field(default_factory=ContextSettings)
    recall: RecallSettings = Field(default_factory=RecallSettings)
    redact: Callable[[str], str] | None = Field(default=None, exclude=True)
    """Rewrites every text of a message before anything is counted, indexed or written."""
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    """By model name, for the cost figures of `metrics()`."""
    busy_seconds: float = Field(default=30.0, gt=0)
    """How long a write waits for a locked database."""
    default_window: int = Field(default=8192, ge=512)
    """Window assumed for a condensing model that does not tell its own; said once in a warning."""
