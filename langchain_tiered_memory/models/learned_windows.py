"""Learns a model's window from requests that were refused or answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.events import EventName

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime


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


def set_window(runtime: Runtime, model: str | None, tokens: int) -> None:
    """Remember that a model's window is `tokens`, whatever was learnt.

    Raises:
        InvalidInputError: as `learn_window`.
    """
    learn_window(runtime, model, tokens)
    runtime.store.windows.confirm(str(model), tokens)


def confirm_window(runtime: Runtime, model: str, tokens: int) -> None:
    """Remember that a model answered a request of `tokens`, by its own count: a window learnt to be smaller was wrong.

    It was misread from an error, say, or there is a larger model behind the name by now. Nobody tries on purpose: what
    is larger than a learnt window goes out only where our own count was too low.
    """
    runtime.store.windows.confirm(model, tokens)
    runtime.report(EventName.WINDOW_LEARNED, f"{model} took {tokens:,} tokens", model=model, tokens=tokens)
