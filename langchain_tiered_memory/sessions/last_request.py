"""Keeps the last request that an agent's model answered, if that model also condenses.

A request can only be kept as it will be sent again: with the same model settings and the same messages. A call that
must use a tool or answer by a schema cannot answer with summaries, so its request is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables.base import RunnableBindingBase

from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.models.chat_models import bindings_of, is_cached, models_in
from langchain_tiered_memory.summaries.writers.behind import LastRequest

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from langchain_tiered_memory.runtime import Runtime

_FREE = (None, "auto", "none")
"""Tool choices that still allow a text answer."""
_FORMS = ("response_format", "text_format", "format", "json_schema", "response_schema", "functions", "function_call")
"""Settings that force a form of answer, by provider."""
_MISCOUNTED = 0.3
"""The share by which the provider's count of a request may differ from ours before calibration. If it differs more, the
provider was sent another request."""


def epoch_of(runtime: Runtime, session_id: str, model: object) -> int | None:
    """The session's epoch, for a request that is assembled now. `None` if the request need not be kept."""
    settings = runtime.settings.condensation
    if settings.on_last_request == "never" or not runtime.condenser.writes_later:
        return None
    if not runtime.condenser.asks(model, by_name=settings.on_last_request == "always"):
        return None
    ref = runtime.store.transcript.find(session_id)
    return ref.epoch if ref is not None else None


def bound(
    runtime: Runtime,
    session_id: str,
    model: object,
    *,
    tools: Sequence[Any] = (),
    tool_choice: Any = None,  # noqa: ANN401 - each provider has its own
    settings: Mapping[str, Any] | None = None,
) -> Runnable[Any, Any] | None:
    """A model as an agent calls it. `None` if it could not answer with a text, or is wrapped in something else.

    Tools or settings may already be bound to the chat model. `tools` and `tool_choice` are bound in addition;
    `settings` are those of the call.
    """
    told = {**(settings or {}), **({"tool_choice": tool_choice} if tool_choice is not None else {})}
    inner, bindings = bindings_of(model)
    for one in bindings:
        told = {**one, **told}
    if not isinstance(inner, BaseChatModel) or any(told.get(form) for form in _FORMS):
        return None
    choice = told.get("tool_choice")
    if (choice.get("type") if isinstance(choice, Mapping) else choice) not in _FREE:  # Anthropic's is a dict
        return None
    if isinstance(model, RunnableBindingBase):
        return model.bind(**settings) if settings else model
    if not tools:
        return inner.bind(**settings) if settings else inner
    try:
        return inner.bind_tools(list(tools), tool_choice=tool_choice, **(settings or {}))
    except Exception as error:  # noqa: BLE001 - a provider's package: what it cannot bind, it was not called with
        _tell(runtime, session_id, "the model does not bind the request's tools", error)
        return None


def keep(
    runtime: Runtime,
    session_id: str,
    request: LastRequest,
    usage: Any = None,  # noqa: ANN401 - a `UsageMetadata`
    *,
    was_seen: bool,
) -> None:
    """Keep a request that was answered, unless the session has changed since it was assembled.

    `usage` is what the answer reports. Unless a callback saw exactly this request (`was_seen`), the provider's count
    must be close to our count of the request.
    """
    try:
        ref = runtime.store.transcript.find(session_id)
    except StorageError as error:  # the answer is there, and paid for
        _tell(runtime, session_id, "the session cannot be read", error)
        return
    if ref is None or ref.epoch != request.epoch:
        return
    told = (usage or {}).get("input_tokens")
    reported = told if isinstance(told, int) and told > 0 else request.tokens
    if not was_seen and abs(reported - request.tokens) > _MISCOUNTED * request.tokens:
        return
    tokens = max(reported, request.tokens)
    called = next(iter(models_in(request.model)), None)
    is_there = is_cached(called, usage, tokens=tokens)
    runtime.last_requests.note(session_id, replace(request, tokens=tokens, at=runtime.now(), is_cached=is_there))


def handed_out(model: Runnable[Any, Any], messages: Sequence[BaseMessage], *, tokens: int, epoch: int) -> LastRequest:
    """A request that has no answer yet."""
    return LastRequest(model=model, messages=tuple(messages), tokens=tokens, at=0.0, epoch=epoch, is_cached=False)


def _tell(runtime: Runtime, session_id: str, why: str, error: Exception) -> None:
    runtime.report(EventName.REQUEST_NOT_KEPT, f"{why}: {type(error).__name__}: {error}", session_id=session_id)
