"""What a refused request teaches of a model's window, and an answered one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.flows.asking import Flow, do

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House


def learn_window(house: House, model: str | None, tokens: int) -> Flow[None]:
    """Remember that a model's window is at most `tokens`.

    Raises:
        InvalidInputError: without a model's name, or for fewer than 1 token.
    """
    if not model or isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1:
        msg = f"a window needs a model's name and a number of tokens from 1 up, not {model!r} and {tokens!r}"
        raise InvalidInputError(msg)
    yield from do(house.store.windows.learn, model, tokens, house.now())
    house.report("window_learned", f"{model} takes {tokens:,} tokens", model=model, tokens=tokens)


def set_window(house: House, model: str | None, tokens: int) -> Flow[None]:
    """Remember that a model's window is `tokens`, whatever was learnt.

    Raises:
        InvalidInputError: as `learn_window`.
    """
    yield from learn_window(house, model, tokens)
    yield from do(house.store.windows.confirm, str(model), tokens)


def confirm_window(house: House, model: str, tokens: int) -> Flow[None]:
    """Remember that a model answered a request of `tokens`, by its own count: a window learnt to be smaller was wrong.

    It was misread from an error, say, or there is a larger model behind the name by now. Nobody tries on purpose: what
    is larger than a learnt window goes out only where our own count was too low.
    """
    yield from do(house.store.windows.confirm, model, tokens)
    house.report("window_learned", f"{model} took {tokens:,} tokens", model=model, tokens=tokens)
