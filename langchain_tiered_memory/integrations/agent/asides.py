"""Learns what middlewares behind the memory's add to a request, from the request that the model really got.

They are seen where the model is called, in the request itself; what the provider counts besides is learnt from its
refusals. Both are set aside from the next request on, by session, track and model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.budget.asides import Aside
from langchain_tiered_memory.events import EventName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.integrations.agent.called_models import Call
    from langchain_tiered_memory.integrations.agent.context import Prepared
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A request as it was sent."""

    raw_tokens: int
    """Of all of it, as we count."""
    behind: int
    """Tokens of it that others added to what they were handed, as the provider bills them."""


def aside_of(runtime: Runtime, session: Session, model: str | None) -> Aside:
    """What is known of earlier requests of this track to that model."""
    known: Aside | None = runtime.view_cache.aside((session.session_id, session.track, model))
    return known if known is not None else Aside()


def keep_aside(runtime: Runtime, session: Session, model: str | None, aside: Aside, *, before: Aside) -> None:
    """Remember it for the next request; say so where it leaves more room than before."""
    runtime.view_cache.keep_aside((session.session_id, session.track, model), aside)
    if aside.tokens > before.tokens:
        runtime.report(
            EventName.ROOM_SET_ASIDE,
            f"others add to what this agent sends {model or 'its model'}: {aside.tokens:,} tokens are left free for "
            "it from now on",
            session_id=session.session_id,
            track=session.track,
            tokens=aside.tokens,
        )


def measured(runtime: Runtime, prepared: Prepared, handed: Sequence[BaseMessage], tools: Sequence[Any]) -> Measured:
    """What the model was sent; what was handed on, where its call was not seen.

    Args:
        runtime: Counts.
        prepared: The context of the request.
        handed: What the memory handed on, system prompt included.
        tools: The schemas that it counted.
    """
    context = prepared.context
    ratio = context.tokens / context.raw_tokens if context.raw_tokens else 1.0
    count = runtime.counter.count_message
    own = _beyond(context.messages, handed, count)
    call = _of(prepared.asked.called.calls, handed)
    if call is None:
        return Measured(raw_tokens=context.raw_tokens + own, behind=0)
    added = _beyond(handed, call.messages, count)
    if call.tools is not None and len(call.tools) > len(tools):
        added += runtime.counter.count_tools(call.tools) - runtime.counter.count_tools(tools)
    raw = max(context.raw_tokens + own + added, 1)
    return Measured(raw_tokens=raw, behind=max(round(added * ratio), 0))


def _beyond(before: Sequence[BaseMessage], after: Sequence[BaseMessage], count: Callable[[BaseMessage], int]) -> int:
    """Tokens that `after` has more than `before`; messages that stand in both are not counted anew."""
    first, second = {id(one) for one in before}, {id(one) for one in after}
    return sum(count(one) for one in after if id(one) not in first) - sum(
        count(one) for one in before if id(one) not in second
    )


def _of(calls: Sequence[Call], handed: Sequence[BaseMessage]) -> Call | None:
    """The call that was made for this request: middlewares behind may ask other models of other things besides."""
    own = {id(one) for one in handed}
    return max(
        enumerate(calls), key=lambda one: (sum(id(said) in own for said in one[1].messages), one[0]), default=(0, None)
    )[1]
