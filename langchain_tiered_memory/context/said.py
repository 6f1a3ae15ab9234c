"""How much room recall is given beside what the user said last, in a conversation that goes on.

Room that is set aside for recall and not used makes a view smaller for nothing: it is condensed sooner, and each
condensation sends it uncached. So what the message brings back is looked up before the view is decided, and recall is
given what that takes, at most its share of the budget: nothing beside small talk. A brief message is often a question,
which the history answers. A long one says itself what it is about: quotes beside it are worth less than the messages
that would make way for them at every turn. So they are beside one that goes on with the assistant's last answer, which
stands in the view: what is older answers it less well than that does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.recall.recall import Found, asked, find, goes_on, search_terms, wanted_tokens
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from langchain_tiered_memory.context.required_messages import RequiredMessages
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_BRIEF_AND_LONG = (32, 56)
"""Distinct terms of a message that is brief, and of one that is long."""
_LONG_SHARE = 0.1
"""Of the budget, for recall beside a long message: a few quotes. On a chat of 112 requests at 8,000 tokens 50 % of what
is sent was a prefix then; with 6 % it was 52."""
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
    share, leaves = _most(last.text, min(settings.recall_share, settings.talk_recall_share))
    filters = SearchFilters(tracks=(track,)) if track is not None else None
    found = find(runtime, ref, last.text, filters=filters)
    if goes_on(found, said_at=last.seq, shown_from=required.recent.guard):
        share, leaves = min(share, _LONG_SHARE), True
    # In a tool loop the newest messages stand behind what the user said, which is shown itself.
    shown_from = min(required.recent.guard, last.seq)
    wanted = wanted_tokens(found, last.text, said_at=last.seq, shown_from=shown_from)
    if wanted:  # summaries that answer it stand beside the quotes, and each day has a line of its own
        wanted = round(_FRAMED * wanted + settings.shares.level_1_summaries * total)
    share = min(share, math.ceil(_STEPS * wanted / max(total, 1)) / _STEPS)
    runtime.view_cache.keep_recalled(ref.key, place, key, (share, leaves))
    return Said(share=share, leaves_what_stands=leaves, found=found)


def _most(text: str, whole: float) -> tuple[float, bool]:
    """The share of a message by its length, and whether it is more than a brief one."""
    brief, long = _BRIEF_AND_LONG
    terms = len(search_terms(asked(text)))
    if terms <= brief:
        return whole, False
    return whole - max(whole - _LONG_SHARE, 0.0) * min((terms - brief) / (long - brief), 1.0), True
