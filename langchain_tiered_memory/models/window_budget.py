"""Token budget of a request, from what a caller names and what is known of the model's window; windows are learnt."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.types.outcomes import Window

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.types.outcomes import WindowSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """What is known of the model of a request."""

    name: str | None = None
    window: int | None = None
    """Tokens that it reads, as its profile says."""
    answer: int | None = None
    """Tokens that it writes at most, as its profile says."""
    learned: int | None = None
    """Tokens of a request that it refused as too long taught this."""
    ratio: float = 1.0
    """Tokens that it is billed for each that we count, as its answers taught."""
    is_looked_up: bool = False
    """Whether what was learnt of it is what the memory knows now."""
    provider: str | None = None
    """Whose compactions it reads: `anthropic`, `openai`, or some other class of models; `None` where not known."""


_ANSWER_SHARE = 0.5
"""The most of a window that is kept free for its answer: a model may tell a maximum as large as its window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What bounds one context."""

    max_tokens: int
    window: Window


def budget_of(asked: int | None, told: ModelProfile, *, settings: Settings) -> Budget:
    """The budget of a request.

    The caller's `asked` (else `context.max_tokens`) is what the request may take, and never more than the model's
    window allows. Where the window is not known, or is far larger than the budget, the budget is taken for what is
    allowed, and the window for what would allow it: zones and thresholds then speak of the budget. With a
    `window_share`, zones speak of the model's window, whose share it is.

    Args:
        asked: `max_tokens` of the call.
        told: What is known of the model.
        settings: `context`, also its `window_share`; `condensation.buffer_share`, `guard.window`.
    """
    buffer = settings.condensation.buffer_share
    known, source = _known(told, settings)
    wished = asked if asked is not None else settings.context.max_tokens
    if known is None:
        return Budget(max_tokens=wished, window=_allowing(wished, buffer))
    reserved = told.answer or settings.context.reserved_output_tokens
    window = Window(
        tokens=known,
        reserved_tokens=min(reserved, round(known * _ANSWER_SHARE)),
        buffer_share=buffer,
        source=source,
    )
    if settings.context.window_share is not None:
        # Share and zones have one base: what the model's window holds beside its answer.
        most = max(min(wished, math.ceil(window.limit * settings.context.window_share) - 1), 1)
        window = replace(window, most=most, source="budget" if most < window.allowed else source)
    if wished >= window.allowed:
        return Budget(max_tokens=window.allowed, window=window)
    return Budget(max_tokens=wished, window=_allowing(wished, buffer))


def _known(told: ModelProfile, settings: Settings) -> tuple[int | None, WindowSource]:
    known: int | None = settings.guard.window or told.window
    source: WindowSource = "setting" if settings.guard.window else "model"
    if told.learned is not None and (known is None or told.learned < known):
        return told.learned, "learned"
    return known, source


def _allowing(max_tokens: int, buffer: float) -> Window:
    """The window that allows exactly `max_tokens`: whoever names a budget has left room for the answer."""
    tokens = max(math.ceil(max_tokens / (1 - buffer) - 1e-9), 1)
    return Window(tokens=tokens, reserved_tokens=0, buffer_share=buffer, source="budget")


def learn_window(runtime: Runtime, model: str | None, tokens: int) -> None:
    """Remember that a model's window is at most `tokens`.

    Raises:
        InvalidInputError: without a model's name, or for fewer than 1 token.
    """
    if not model or isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        msg = f"a window needs a model's name and a number of tokens from 1 up, not {model!r} and {tokens!r}"
        raise InvalidInputError(msg)
    runtime.store.windows.learn(model, tokens, runtime.now())
    runtime.report(EventName.WINDOW_LEARNED, f"{model} takes {tokens:,} tokens", model=model, tokens=tokens)


def confirm_window(runtime: Runtime, model: str, tokens: int) -> None:
    """Remember that a model answered a request of `tokens`, by its own count: a window learnt to be smaller was wrong.

    It was misread from an error, say, or there is a larger model behind the name by now. Nobody tries on purpose: what
    is larger than a learnt window goes out only where our own count was too low.
    """
    runtime.store.windows.confirm(model, tokens)
    runtime.report(EventName.WINDOW_LEARNED, f"{model} took {tokens:,} tokens", model=model, tokens=tokens)
