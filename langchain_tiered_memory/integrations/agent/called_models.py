"""Which models an agent really calls, and with what: later middlewares may change the model and the request.

What they add is seen in the request that the model got. From the next request on, room is reserved for it, by session,
track and model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import merge_configs

from langchain_tiered_memory.integrations.graph.memory_node import under

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.integrations.agent.model_call import Prepared
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.session import Session

STEP_TOKENS = 512
"""Room for others' additions is reserved in steps, because a budget that changes at each call would rebuild each
view."""
_REMEMBERED = 8
"""How many past requests count; the largest addition among them is reserved. So an occasional addition, such as a skill
that was read, rarely moves the budget, and one that is gone for good is dropped."""


def stepped(tokens: int) -> int:
    """`tokens`, rounded up to whole steps."""
    return math.ceil(max(tokens, 0) / STEP_TOKENS) * STEP_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a model, as it was made."""

    model: str | None
    messages: Sequence[BaseMessage]
    tools: Sequence[Any] | None
    """Schemas in the provider's own style. `None` if they are not known."""


class CalledModels(BaseCallbackHandler):
    """Records the model calls made for one request, in order."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        metadata: dict[str, Any] | None = None,
        **about: Any,  # noqa: ANN401 - as the base class has it
    ) -> None:
        """A call begins."""
        del serialized
        tools = (about.get("invocation_params") or {}).get("tools") or ()
        self.calls.append(
            Call(
                model=(metadata or {}).get("ls_model_name"),
                messages=messages[0] if messages else (),
                tools=tools if isinstance(tools, list | tuple) else None,
            )
        )

    def last(self, own: str | None) -> str | None:
        """The name of the model that was called last.

        Not all providers report a model under its own name, `own`. If only one model was called, that name is returned.
        """
        names = [call.model for call in self.calls]
        return own if len(set(names)) < 2 else names[-1]  # noqa: PLR2004 - one model, or more


def watched(config: RunnableConfig, called: CalledModels) -> AbstractContextManager[None]:
    """Model calls in the block get the caller's callbacks and are recorded."""
    called.calls.clear()
    return under(merge_configs(config, {"callbacks": [called]}))


def aside_of(runtime: Runtime, session: Session, model: str | None) -> int:
    """Tokens that the next request of this track to that model leaves free for others' additions."""
    return stepped(max(runtime.view_cache.asides.get((session.session_id, session.track, model)) or (0,)))


def note_behind(runtime: Runtime, session: Session, model: str | None, tokens: int) -> None:
    """Remember how much was added to a request, whether it was refused or answered."""
    kept, key = runtime.view_cache.asides, (session.session_id, session.track, model)
    kept.put(key, (*(kept.get(key) or ()), tokens)[-_REMEMBERED:])


def measured(prepared: Prepared, handed: Sequence[BaseMessage]) -> tuple[int, int]:
    """Tokens of what the model was sent, by our count, and those that others added, as the provider bills them.

    If the call was not seen, these are the tokens of the request that was passed on.
    """
    context, tools, counter = prepared.context, prepared.asked.tools, prepared.session.core.runtime.counter
    ratio = context.tokens / context.raw_tokens if context.raw_tokens else 1.0
    count = counter.count_message
    own = _beyond(context.messages, handed, count)
    calls, known = prepared.asked.called.calls, {id(one) for one in handed}
    if not calls:
        return context.raw_tokens + own, 0
    # Middlewares behind may ask other models of other things besides: the latest of those with the most of these.
    call = max(reversed(calls), key=lambda one: sum(id(said) in known for said in one.messages))
    added = _beyond(handed, call.messages, count)
    if call.tools is not None and len(call.tools) > len(tools):
        added += counter.count_tools(call.tools) - counter.count_tools(tools)
    raw = max(context.raw_tokens + own + added, 1)
    return raw, max(round(added * ratio), 0)


def _beyond(before: Sequence[BaseMessage], after: Sequence[BaseMessage], count: Callable[[BaseMessage], int]) -> int:
    """How many tokens `after` has more than `before`. Messages in both are not counted again."""
    first, second = {id(one) for one in before}, {id(one) for one in after}
    return sum(count(one) for one in after if id(one) not in first) - sum(
        count(one) for one in before if id(one) not in second
    )
