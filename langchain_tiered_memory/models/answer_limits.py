"""How much a chat model may write in one answer, and whether an answer ended because of that.

A model that was made or bound with a limit tells it by an attribute or an argument, each package by its own name; what
the model could write at most stands in its profile. Why an answer ended stands in its metadata, in its provider's
words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_core.runnables.base import RunnableBindingBase

from langchain_tiered_memory.models.chat_models import answer_of, models_in

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict")
"""OpenAI, Anthropic, Mistral and most others; OpenAI's newer name; Google; Hugging Face; Ollama."""
_REASONS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_AT_LIMIT: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
_DEEPEST: Final = 32


def answer_limit(model: object) -> int | None:
    """Tokens that one answer of `model` may have; the least of those that a call may reach, `None` where none tells."""
    bound = _bound_limit(model)
    if bound is not None:
        return bound
    told = [limit for one in models_in(model) if (limit := _own_limit(one)) is not None]
    return min(told, default=None)


def is_cut_off(answer: BaseMessage) -> bool:
    """Whether an answer ended because it had as many tokens as it may have."""
    metadata = answer.response_metadata
    reasons = [metadata.get(key) for key in _REASONS]
    details = metadata.get("incomplete_details")
    if isinstance(details, dict):  # OpenAI's Responses API
        reasons.append(details.get("reason"))
    return any(str(reason).casefold() in _AT_LIMIT for reason in reasons if reason is not None)


def _own_limit(model: object) -> int | None:
    set_limits = [value for name in _LIMITS if (value := _as_limit(getattr(model, name, None))) is not None]
    able = answer_of(model)
    return min([*set_limits, *([able] if able is not None else [])], default=None)


def _bound_limit(model: object) -> int | None:
    """What was bound to the call: `model.bind(max_tokens=500)`."""
    for _ in range(_DEEPEST):
        if not isinstance(model, RunnableBindingBase):
            return None
        named = [value for name in _LIMITS if (value := _as_limit(model.kwargs.get(name))) is not None]
        if named:
            return min(named)
        model = model.bound
    return None


def _as_limit(value: Any) -> int | None:  # noqa: ANN401 - an attribute of any model
    """Ollama says -1 and -2 for no limit."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
