"""How a budget is split before anything is fetched: it depends on `max_tokens` and on whether there is a question.

All figures are raw counts of our counter: a budget in a model's own tokens is divided by what calibration learnt first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.errors import BudgetError

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import ContextSettings

View: TypeAlias = Literal["default", "recall"]

_MARGIN_TOKENS = 8
"""Framing of a message and rounding, kept free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetAllocation:
    """The rooms of one context, in raw tokens."""

    total: int
    """Everything, system prompt and tools included."""
    fixed: int
    """System prompt and tool schemas."""
    goal: int
    """Cap of the first user message where it stands apart from the recent ones."""
    pins: int
    queries: int
    """Cap of earlier user messages quoted behind the cover."""
    cover: int
    """Cap of what stands for older history."""
    facts: int
    """Cap of the list of what older history stated and still holds."""
    keep: int
    """What remains of the recent messages after a condensation of the view."""
    recent_least: int
    recall: int
    """Set aside for recall and the registered sections beside it; recall also gets what nobody else used."""
    sections: int = 0
    """Of that, for registered sections."""
    spared: int = 0
    """What recall was not given of its share beside file work: a view grows into it, and is filled as if it were taken.

    Filled too, it would be sent anew at each condensation: on five agents' runs at 8,000 tokens that billed 4 % more
    and had as much in view.
    """
    code: int
    summaries: int
    files: int
    """Cap of the list of files that what is not shown touched."""
    quotes_queries: bool = True
    """Whether earlier user messages are quoted behind the cover: not where a registered section is in their place."""

    @property
    def hard(self) -> int:
        """The most that everything but recall may take, system prompt and tools included."""
        return self.total - self.recall

    @property
    def is_full(self) -> bool:
        """Whether system prompt and tools alone leave no room for a message."""
        return self.fixed > self.total - _MARGIN_TOKENS


def no_room_beside(fixed: int, max_tokens: int, *, ratio: float) -> str:
    """What to say where system prompt and tools fill a budget."""
    return (
        f"the system prompt and the tool schemas take {math.ceil(fixed * ratio)} of {max_tokens} tokens and leave "
        "no room for a conversation: raise max_tokens, or shorten them"
    )


def split(
    max_tokens: int,
    *,
    fixed: int,
    ratio: float,
    has_query: bool,
    own_query: bool = False,
    view: View,
    settings: ContextSettings,
    files_share: float = 0.0,
    recall_share: float | None = None,
    recall_most: float | None = None,
    facts_share: float | None = None,
    sections_share: float = 0.0,
    replaced: frozenset[str] = frozenset(),
) -> BudgetAllocation:
    """Split a budget.

    Args:
        max_tokens: The budget, in the model's tokens.
        fixed: Raw tokens of the system prompt and the tool schemas.
        ratio: Billed tokens per raw token, from calibration.
        has_query: Whether something is looked up.
        own_query: Whether the caller names what is looked up, in the place of the last user message.
        view: `default` for a conversation that goes on, `recall` for a question over a history.
        settings: Shares and caps.
        files_share: Of the budget, for the list of touched files.
        recall_share: In the place of the settings' one: an agent at work needs its room for what it works on.
        recall_most: What `recall_share` could have been at most; what is less is spared. `None`: none of it is.
        facts_share: In the place of the settings' one, with a question or without, for the same reason.
        sections_share: Of the budget, for registered sections; they stand with recall.
        replaced: Names of built-in sections that are not shown, for registered ones are in their place.

    Raises:
        BudgetError: when the budget is below 1. A fixed part that fills it is for the guard to see: `is_full`.
    """
    if max_tokens < 1:
        msg = f"max_tokens is {max_tokens}: a context needs a budget of at least 1 token"
        raise BudgetError(msg)
    total = math.floor(max_tokens / ratio)
    shares, spared = settings.shares, 0
    if view == "recall":
        recall, cover, facts, keep = max(total - fixed, 0), 0, 0, 0
    else:
        share = settings.recall_share if recall_share is None else min(recall_share, settings.recall_share)
        recall = max(round(share * (total - fixed)), 0) if has_query else 0
        # Whatever the last message says, the record has the same room: a plan outlives the message it was made beside.
        # Only a caller's own query gives recall what facts and summaries would take of its share.
        spare = 0.0 if own_query else settings.recall_share * total
        cover = round(settings.cover_share * total + settings.spare_for_cover * spare)
        facts = round(settings.facts_share * total + settings.spare_for_facts * spare)
        if facts_share is not None:
            facts = min(facts, round(facts_share * total))
        if "semantic_results" in replaced:
            recall = 0
        elif has_query and recall_most is not None:
            spared = max(round(min(recall_most, settings.recall_share) * (total - fixed)) - recall, 0)
        keep = min(settings.keep_recent_tokens, round(settings.keep_recent_share * total))
    sections = min(round(sections_share * total), max(total - fixed, 0))
    if view != "recall":
        recall = min(recall + sections, max(total - fixed, 0))
    return BudgetAllocation(
        total=total,
        fixed=fixed,
        goal=round(settings.goal_share * total),
        pins=round(settings.pins_share * total),
        queries=round(shares.user_queries * total),
        cover=cover,
        facts=facts,
        keep=keep,
        recent_least=round(shares.recent_turns * total),
        recall=recall,
        sections=sections,
        spared=spared,
        code=0 if "code_results" in replaced else round(shares.code_results * total),
        summaries=0 if "level_1_summaries" in replaced else round(shares.level_1_summaries * total),
        files=0 if "files" in replaced else round(files_share * total),
        quotes_queries="user_queries" not in replaced,
    )
