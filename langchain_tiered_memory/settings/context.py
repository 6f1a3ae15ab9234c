"""Contexts, views and recall: shares, caps and budgets, and how full a condensation leaves a view."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from langchain_tiered_memory.settings.base import Frozen


class ViewSettings(Frozen):
    """Your own view: what an agent sees besides the goal, the pins and the newest group."""

    last_messages: int = Field(default=10, ge=1)
    """How many recent messages a condensation of the view leaves. They grow from there to the hard limit."""
    levels: tuple[int, ...] | None = None
    """Summary levels that may stand for older history; `None` for all."""

    @model_validator(mode="after")
    def _has_levels(self) -> ViewSettings:
        if self.levels is not None and (not self.levels or min(self.levels) < 1):
            msg = "levels names the summary levels a view may show, from 1 up; None stands for all"
            raise ValueError(msg)
        return self


def _views() -> dict[str, ViewSettings]:
    return {
        "detailed": ViewSettings(last_messages=10, levels=(1,)),
        "compact": ViewSettings(last_messages=5, levels=(2, 3)),
    }


class SectionShares(Frozen):
    """Limits, as shares of `max_tokens`, on what each section shows. Unused room is passed on."""

    user_queries: float = Field(default=0.05, ge=0, le=1)
    """Share of the budget for earlier user messages that the recent part no longer shows."""
    recent_turns: float = Field(default=0.05, ge=0, le=1)
    """The least share of the budget for the recent part."""
    code_results: float = Field(default=0.10, ge=0, le=1)
    """Share of the budget for recalled entries that are code or tool output."""
    level_1_summaries: float = Field(default=0.10, ge=0, le=1)
    """Share of the budget for recalled level-1 summaries."""


class ContextSettings(Frozen):
    """How a context is assembled."""

    max_tokens: int = Field(default=8000, ge=1)
    """Token budget of a context, if the call gives none. A model with a smaller window gets less."""
    window_share: float | None = Field(default=None, gt=0, le=1)
    """Each context stays below this share of a known window minus room for the answer, whatever the budget. Zones are
    measured by the same limit. 0.7 keeps every request in the safe zone. `None`: the whole window minus room for the
    answer."""
    reserved_output_tokens: int = Field(default=4096, ge=0)
    """Tokens kept free in a model's window for its answer, if the model's own maximum is not known."""
    keep_recent_tokens: int = Field(default=2000, ge=0)
    """Tokens of recent messages that a condensation leaves, up to a quarter of the budget. They grow from there to the
    hard limit."""
    recall_share: float = Field(default=0.5, ge=0, lt=1)
    """Share of the budget that recall may take if the caller passes a `query` (default view)."""
    talk_recall_share: float = Field(default=0.25, ge=0, le=1)
    """Share of the budget that recall may take for the user's last message. What it brings back is sent uncached at
    every turn. A brief question with many matches may take twice that, within `recall_share`. Small talk and long
    messages take a twentieth."""
    cover_share: float = Field(default=0.17, ge=0, lt=1)
    """The largest share of the budget for summaries of older messages. With a caller's `query`, and during work on
    files, it is 12 %."""
    facts_share: float = Field(default=0.4, ge=0, lt=1)
    """The largest share of the budget for the list of facts. With a caller's `query` it is 8 %, because recall brings
    the others, and during work on files 4 %. If it is larger, views are condensed more often."""
    older: Literal["cover", "selection"] = "cover"
    """What stands for older history: the cover (no gap), or the original selection by level and recency."""
    shares: SectionShares = Field(default_factory=SectionShares)
    """The largest share of the budget for each section."""
    views: dict[str, ViewSettings] = Field(default_factory=_views)
    """Your own views by name, in addition to `default`, `recall` and `minimal`."""


class RecallSettings(Frozen):
    """Search and recall."""

    quotas: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(10, 5, 3, 1), min_length=1)
    """The most hits of each level that `search` ranks together: messages, summaries of level 1, of level 2 and so on.
    The last number applies to every level above."""
    chroma_seconds: float = Field(default=5.0, gt=0)
    """Longest wait, in seconds, for one answer of a Chroma server. A silent server costs this time once. Until it
    answers again, search uses only words, without waiting, and the memory asks the server in the background. `flush()`
    and `verify()` wait half a second."""
    chroma_documents: bool = False
    """Keep the texts in Chroma too. Off: forgotten messages leave no text there."""

    def quota(self, level: int) -> int:
        """The quota of messages (level 0) or of summaries of a level."""
        return self.quotas[min(level, len(self.quotas) - 1)]


class RoomSettings(Frozen):
    """How full a condensation leaves a view, and when condensing pays (`context/compaction/need.py`).

    A fuller view shows more. But each turn then reads more tokens from the cache, and the whole view has to be sent
    uncached again sooner.
    """

    cached_price: float = Field(default=0.1, gt=0, le=1)
    """Price of a cached token as a share of an uncached one. Anthropic's models and OpenAI's newest charge a tenth. A
    model in `prices` that states its own price overrides this."""
    working_tokens: int = Field(default=5000, ge=0)
    """Tokens that work on files may use in addition to a share of the room. In a small window, an agent's working set
    shrinks only if `extra_share` demands it."""
    extra_share: float = Field(default=0.25, ge=0)
    """How much more a turn may cost than the cheapest one, as a share of its price, so that more stays in view until
    the next condensation. 0 keeps only the minimum."""
    grows_to: Literal["limit", "cheapest"] = "cheapest"
    """`limit`: a view grows as far as it can. `cheapest`: it grows only until turns cost `extra_share` more than at the
    cheapest size, so a history that fits may still be condensed."""
