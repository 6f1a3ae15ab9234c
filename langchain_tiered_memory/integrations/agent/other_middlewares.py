"""Other middlewares that do the memory's work a second time: noticed by what they leave in a request or a state."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.events import EventName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.runtime import Runtime

_EVENT_KEY = "_summarization_event"
"""Where deepagents keeps what it summarised: in the state, while the request alone has the summary."""
_WARNING = (
    "a SummarizationMiddleware works beside TieredMemoryMiddleware: what it takes out of a request, or out of the "
    "state, is not the memory's to show any more, and every summary is paid for twice. Leave it out of create_agent; "
    "with create_deep_agent, which has one of its own, pass TieredMemoryMiddleware(memory, "
    "name='SummarizationMiddleware'): it takes its place"
)


def is_summary(message: BaseMessage) -> bool:
    """Whether LangChain's or deepagents' `SummarizationMiddleware` wrote this message."""
    return message.additional_kwargs.get("lc_source") == "summarization"


def is_summarised(state: Mapping[str, Any], *messages: Iterable[BaseMessage]) -> bool:
    """Whether another middleware put summaries in the place of messages, in the state or in a request alone."""
    return bool(state.get(_EVENT_KEY)) or any(is_summary(one) for some in messages for one in some)


def warn_of_summaries(runtime: Runtime, session_id: str) -> None:
    """Say once, as a Python warning and as an event, that two summarise."""
    if runtime.view_cache.first_time("second_summarizer"):
        warnings.warn(_WARNING, UserWarning, stacklevel=2)
        runtime.report(EventName.SECOND_SUMMARIZER, _WARNING, session_id=session_id)
