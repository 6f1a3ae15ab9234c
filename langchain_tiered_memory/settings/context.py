"""Contexts, views and recall: shares, caps and budgets; how full a condensation leaves a view."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from langchain_tiered_memory.settings.base import Frozen


class ViewSettings(Frozen):
    """A view of your own: what an agent sees besides goal, pins and the newest group."""

    last_messages: int = Field(default=10, ge=1)
    """Recent messages that remain after a condensation of the view; they grow from there to the hard limit."""
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
    """Caps, as shares of `max_tokens`, on what a section shows for its own sake. Unused room is passed on."""

    user_queries: float = Field(default=0.05, ge=0, le=1)
    """Share of the budget for earlier user messages that the recent part no longer shows."""
    recent_turns: float = Field(default=0.05, ge=0, le=1)
    """The least share of the budget for the recent part."""
    code_results: float = Field(default=0.10, ge=0, le=1)
    """Share of the budget for recalled entries that are code or tool output."""
    level_1_summaries: float = Field(default=0.10, ge=0, le=1)
    """Share of the budget for recalled level-1 summaries."""


class ContextSettings(Frozen):
    """How a context is put together."""

    max_tokens: int = Field(default=8000, ge=1)
    """Token budget of one context if the call names none. A model with a smaller window gets less."""
    window_share: float | None = Field(default=None, gt=0, le=1)
    """Each context stays below this share of a known window less its answer, whatever budget is named; its zone is
    measured by the same. 0.7 keeps every request in the zone safe. `None`: all that leaves room for the answer."""
    reserved_output_tokens: int = Field(default=4096, ge=0)
    """Tokens kept free in a model's window for its answer, if the model does not tell its own maximum."""
    keep_recent_tokens: int = Field(default=2000, ge=0)
    """Tokens of recent messages that remain after a condensation, up to a quarter of the budget. They grow from there
    to the hard limit."""
    keep_user_messages: int = Field(default=3, ge=1)
    """How many of the latest user messages are always shown; earlier ones for what tells nothing alone ("yes")."""
    recall_share: float = Field(default=0.5, ge=0, lt=1)
    """Share of the budget that recall may take beside a `query` of the caller (default view)."""
    talk_recall_share: float = Field(default=0.25, ge=0, le=1)
    """Share of the budget that recall may take beside the user's last message: what it brings back is sent uncached at
    every turn. A brief question that matches much may take twice that, within `recall_share`; small talk and long
    messages take a twentieth."""
    cover_share: float = Field(default=0.17, ge=0, lt=1)
    """The largest share of the budget for summaries of what is older; beside a `query` of the caller, or beside work on
    files, 12 %."""
    facts_share: float = Field(default=0.4, ge=0, lt=1)
    """The largest share of the budget for the list of facts; beside a `query` of the caller 8 %, for recall brings the
    others, and beside work on files 4 %. With more, views are condensed more often."""
    older: Literal["cover", "selection"] = "cover"
    """What stands for older history: the cover (no gap), or the original selection by level and recency."""
    selection_threshold_tokens: int = Field(default=2000, ge=0)
    """With `older="selection"`: with fewer tokens left than this, the top level alone."""
    selection_share: float = Field(default=0.6, gt=0, le=1)
    """With `older="selection"`: share of the room for recent level-2 summaries."""
    shares: SectionShares = Field(default_factory=SectionShares)
    """Of the budget, the most that each section takes."""
    views: dict[str, ViewSettings] = Field(default_factory=_views)
    """Your views by name, beside `default`, `recall` and `minimal`."""


class RecallSettings(Frozen):
    """Search and recall."""

    quotas: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(10, 5, 3, 1), min_length=1)
    """Most hits that `search` takes into the ranking across levels: messages, summaries of level 1, of level 2 and so
    on. The last counts for every level above."""
    chroma_seconds: float = Field(default=5.0, gt=0)
    """Longest wait, in seconds, for one answer of a Chroma server. A silent server costs it once. Until it answers
    again, words answer at once and the server is asked in the background; `flush()` and `verify()` wait half a
    second."""
    chroma_documents: bool = False
    """Keep the texts in Chroma too. Off, what is forgotten leaves no text there."""

    def quota(self, level: int) -> int:
        """The quota of messages (level 0) or of summaries of a level."""
        return self.quotas[min(level, len(self.quotas) - 1)]


class RoomSettings(Frozen):
    """What a view is filled to when it is condensed, and when that pays (`context/compaction/need.py`).

    The fuller a view is left, the more is in it, the more tokens are read from the cache at each turn, and the sooner
    the whole of it has to be sent uncached again.
    """

    cached_price: float = Field(default=0.1, gt=0, le=1)
    """Price of a cached token as a share of an uncached one. A tenth is what Anthropic and OpenAI's newest models take.
    A model in `prices` that names its own is weighed by that."""
    working_tokens: int = Field(default=5000, ge=0)
    """Tokens that file work may fill beside a share of the room: what an agent has at hand is smaller in a small window
    only where `extra_share` asks for it."""
    extra_share: float = Field(default=0.25, ge=0)
    """How much dearer a turn may be than the cheapest, as a share of its price, for what is kept besides, until the
    next condensation. 0 keeps no more than the least."""
    grows_to: Literal["limit", "cheapest"] = "cheapest"
    """`limit`: a view grows as far as it may. `cheapest`: it grows only until turns cost `extra_share` more than at the
    cheapest size; a history that would fit may then be condensed."""
