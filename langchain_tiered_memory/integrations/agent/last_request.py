"""Keeps an agent's last request as it was sent, for condensing behind it where its model condenses, too.

Middlewares behind this one may change a request, or call another model. What was really sent is seen by a callback; a
request that is not the one handed on is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.integrations.agent.cache_hints import with_tool_breakpoint
from langchain_tiered_memory.models.chat_models import models_in
from langchain_tiered_memory.sessions.last_request import bound, handed_out, keep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from langchain_tiered_memory.integrations.agent.called_models import CalledModels
    from langchain_tiered_memory.integrations.agent.context import Prepared
    from langchain_tiered_memory.integrations.agent.reply import Outgoing
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """What a request calls, and how."""

    model: Any
    tools: Sequence[Any]
    tool_choice: Any
    settings: Mapping[str, Any]

    def bound(self, outgoing: Outgoing, runtime: Runtime, session_id: str) -> Runnable[Any, Any] | None:
        """The model as `create_agent` binds it for what is handed on; `None` where it could not answer with a text."""
        tools = with_tool_breakpoint(self.tools) if outgoing.marks_tools else list(self.tools)
        settings = {**self.settings, **outgoing.settings}
        return bound(runtime, session_id, self.model, tools=tools, tool_choice=self.tool_choice, settings=settings)


def called_by(request: Any) -> ModelCalled | None:  # noqa: ANN401 - a `ModelRequest`
    """What a request calls; `None` where its answer has to be structured."""
    if request.response_format is not None:
        return None
    return ModelCalled(
        model=request.model,
        tools=tuple(request.tools),
        tool_choice=request.tool_choice,
        settings=dict(request.model_settings or {}),
    )


def keep_request(memory: TieredMemory, prepared: Prepared, answer: Sequence[BaseMessage], outgoing: Outgoing) -> None:
    """Keep a request that was answered, where it was sent as it was handed on.

    Args:
        memory: Where everything is kept.
        prepared: What was answered.
        answer: The messages of the answer.
        outgoing: What was handed on.
    """
    asked, epoch = prepared.asked, prepared.epoch
    if asked.calls is None or epoch is None:
        return
    runtime, session_id = memory.core.runtime, prepared.session.session_id
    model = asked.calls.bound(outgoing, runtime, session_id)
    if model is None or not _was_sent(asked.called, model, outgoing.all, own=asked.model.name):
        return
    usage = next((getattr(one, "usage_metadata", None) for one in reversed(answer)), None)
    request = handed_out(model, outgoing.all, tokens=prepared.context.tokens + prepared.room, epoch=epoch)
    keep(runtime, session_id, request, usage, was_seen=True)


def _was_sent(
    called: CalledModels, model: Runnable[Any, Any], messages: Sequence[BaseMessage], *, own: str | None
) -> bool:
    """Whether the last call had these messages and tools, and was of this model."""
    if not called.calls or called.last(own) != own:
        return False
    call = called.calls[-1]
    tools = list(getattr(model, "kwargs", {}).get("tools") or ())
    if call.tools is None or list(call.tools) != tools:
        return False
    # Not what is said alone: a filter may have masked the arguments of a call.
    return bool(models_in(model)) and list(call.messages) == list(messages)
