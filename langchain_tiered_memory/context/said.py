"""How much room recall is given beside what the user said last, in a conversation that goes on.

Room that is set aside for recall and not used makes a view smaller for nothing: it is condensed sooner, and each
condensation sends it uncached. So what the message brings back is looked up before the view is decided, and recall is
given what that takes, at most a share of the budget that follows from how much the message asks for: nothing beside
small talk, a few quotes beside what asks for nothing, most beside a brief question. The more of the history shares the
words of such a question, the further down its answer may stand, and the more room it has. A long message says itself
what it is about: quotes beside it are worth less than the messages that would make way for them at every turn. So they
are beside one that goes on with the assistant's last answer, which stands in the view: what is older answers it less
well than that does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.recall.finding import Found, asked, find, search_terms
from langchain_tiered_memory.recall.worth import asks_back, goes_on, wanted_tokens
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from langchain_tiered_memory.context.required_messages import RequiredMessages
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import ContextSettings
    from langchain_tiered_memory.types.records import SessionRef

_BRIEF_AND_LONG = (16, 32)
"""Distinct terms of a question that is brief, and of one that is long."""
_SMALL_SHARE = 0.05
"""Of the budget, for recall beside what asks nothing, or asks at length: a few quotes. On a chat of 112 requests at
8,000 tokens the talk before its questions was billed 242,000 by these rules, and 267,000 with a quarter beside all that
is brief and a tenth beside what is long."""
_ASKED_TIMES = 2.0
"""What recall may take beside a brief question, in times of the settings' share, where much matches it."""
_LOOKED_THROUGH = 25
"""Of what matches a question, the part that it is given room for, beyond the least: where a subject was talked of for
100,000 tokens its words stand everywhere, and the answer is further down."""
_FRAMED = 1.15
"""Of what quotes take, with the lines around them."""
_STEPS = 16
"""Of the budget: a share is rounded up to whole ones, for what was looked up is not priced to the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What recall may take beside what the user said last."""

    share: float | None = None
    """Of the budget, at most, though more room may be left: what is said next needs it. `None`: nothing was said."""
    leaves_what_stands: bool = False
    """Whether what was recalled for earlier messages gives way to nothing that is recalled for this one."""
    found: Found | None = None
    """What was found for it; `None` where nobody looked."""


def said_last(
    runtime: Runtime, ref: SessionRef, name: str, required: RequiredMessages, *, total: int, track: str | None
) -> Said:
    """What recall may take beside the last user message. In a tool loop as it was when the user spoke.

    Args:
        runtime: The memory.
        ref: The session.
        name: Of the view's plan.
        required: The last user message.
        total: Tokens of the context.
        track: The only one whose messages may be found; `None` for all.
    """
    last = required.last_user
    if last is None or not last.text.strip():
        return Said()
    key = (ref.epoch, last.seq, total)
    place = f"said:{name}"
    kept: tuple[float, bool] | None = runtime.view_cache.recalled(ref.key, place, key)
    if kept is not None:
        return Said(share=kept[0], leaves_what_stands=kept[1])
    settings = runtime.settings.context
    filters = SearchFilters(tracks=(track,)) if track is not None else None
    found = find(runtime, ref, last.text, filters=filters)
    # In a tool loop the newest messages stand behind what the user said, which is shown itself.
    place_of = {"said_at": last.seq, "shown_from": min(required.recent.guard, last.seq)}
    wanted = wanted_tokens(found, last.text, **place_of)
    share, leaves = min(settings.recall_share, settings.talk_recall_share, _SMALL_SHARE), True
    if asks_back(found, last.text, **place_of) and not goes_on(found, **place_of):
        share, leaves = _most(last.text, settings, matching=wanted / max(total, 1))
    if wanted:  # summaries that answer it stand beside the quotes, and each day has a line of its own
        wanted = round(_FRAMED * wanted + settings.shares.level_1_summaries * total)
    share = min(share, math.ceil(_STEPS * wanted / max(total, 1)) / _STEPS)
    runtime.view_cache.keep_recalled(ref.key, place, key, (share, leaves))
    return Said(share=share, leaves_what_stands=leaves, found=found)


def _most(text: str, settings: ContextSettings, *, matching: float) -> tuple[float, bool]:
    """The share of a question, and whether it is more than a brief one; `matching` is what matches it, in budgets."""
    whole = min(settings.recall_share, settings.talk_recall_share)
    brief, long = _BRIEF_AND_LONG
    terms = len(search_terms(asked(text)))
    if terms <= brief:
        return max(whole, min(matching / _LOOKED_THROUGH, _ASKED_TIMES * whole, settings.recall_share)), False
    return whole - max(whole - _SMALL_SHARE, 0.0) * min((terms - brief) / (long - brief), 1.0), True
