"""Foresees which summaries a view will need in a model's words, from the growth of its last turns.

Asked at each request: where the view is about to be condensed, what will stand before its border then. A history that
is not near the end of its room needs nothing, so nothing is asked of a model for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.tree.condense import Wish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.context.compaction.proposals import Proposal
    from langchain_tiered_memory.types.records import Entry

LEAD_REQUESTS = 2
"""Requests that a model has for writing before the view is condensed, at the growth of the last ones."""
_LOOKED_BACK = 8
"""Requests whose growth is looked at."""
LATEST_SHARE = 0.2
"""Of the view's limit, that may be left at most: a history that ends before that is never condensed by a model,
however large its turns are."""


def needed(proposal: Proposal) -> Wish | None:
    """What a view needs in a model's words now or soon; `None` where that is nothing."""
    inputs, shown = proposal.inputs, proposal.rendered
    up_to = shown.plan.border
    if proposal.due_at is None:
        return Wish(track=inputs.track, up_to=up_to) if up_to else None
    left = min(proposal.due_at - proposal.tokens, round((inputs.room - shown.tokens) * inputs.ratio))
    if left <= _soon(shown.tail, inputs.ratio, limit=proposal.due_at):
        up_to = max(up_to, standing_before(inputs, shown.tail, grows_by=max(round(left / inputs.ratio), 0)))
    return Wish(track=inputs.track, up_to=up_to) if up_to else None


def standing_before(inputs: AssemblyInputs, tail: Sequence[Entry], *, grows_by: int = 0) -> int:
    """The last of the recent messages that will stand before the border after the view's next condensation; or 0.

    Args:
        inputs: Of the view.
        tail: Its recent messages, in order.
        grows_by: Raw tokens that come until then.
    """
    if inputs.look is not None:
        last = len(tail) - inputs.look.last_messages
        return tail[last - 1].seq if last > 0 else 0
    stays = max(inputs.allocation.keep, inputs.allocation.recent_least) - grows_by
    for entry in reversed(tail):
        stays -= entry.tokens
        if stays < 0:
            return entry.seq
    return 0


def _soon(tail: Sequence[Entry], ratio: float, *, limit: int) -> int:
    """How many billed tokens before its limit a view is about to be condensed."""
    grown = growth(tail)[-_LOOKED_BACK:]
    if not grown:
        return 0
    expected = LEAD_REQUESTS * sum(grown) / len(grown) + max(grown)
    return round(min(expected * ratio, LATEST_SHARE * limit))


def growth(tail: Sequence[Entry]) -> list[int]:
    """Raw tokens that came between one request and the next: an answer, its results, and what was said to it."""
    found: list[int] = []
    for entry in tail:
        if entry.role == "assistant" or not found:
            found.append(0)
        found[-1] += entry.tokens
    return found
