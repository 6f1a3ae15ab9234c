"""Finds the chat model inside LangChain's wrappers: retries, fallbacks, bound arguments, parsers, choices.

A wrapper tells neither window nor name. What a context must fit is the model that is called in the end.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import (
    Runnable,
    RunnableAssign,
    RunnableBranch,
    RunnableParallel,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase, RunnableEachBase
from langchain_core.runnables.configurable import DynamicRunnable

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEEPEST = 32
"""Wrappers within wrappers that are looked into: one that chooses its model may make a new one at each look."""
_CONFIGURABLE = "_ConfigurableModel"
"""What `init_chat_model(configurable_fields=...)` makes: it stands in langchain, which need not be there."""


def models_in(model: object) -> tuple[BaseLanguageModel[Any], ...]:
    """The models that a call of `model` may reach, the first choice first; none where that cannot be told.

    What a config chooses is chosen as the running config says, and by default outside of a run.
    """
    return tuple(_inside(model, frozenset()))


def narrowest(models: Iterable[object]) -> object | None:
    """The one with the smallest window; the first where none tells its window, `None` where there is none."""
    return min(models, key=lambda one: window_of(one) or float("inf"), default=None)


def bound_name(model: object) -> str | None:
    """The name of another model that was bound to the call: `model.bind(model="...")`."""
    for _ in range(_DEEPEST):
        if not isinstance(model, RunnableBindingBase):
            return None
        named = model.kwargs.get("model") or model.kwargs.get("model_name")
        if isinstance(named, str):
            return named
        model = model.bound
    return None


def window_of(model: object) -> int | None:
    """Tokens that a chat model reads, as its profile says."""
    return _tokens(model, "max_input_tokens")


def answer_of(model: object) -> int | None:
    """Tokens that a chat model writes at most, as its profile says."""
    return _tokens(model, "max_output_tokens")


def _tokens(model: object, key: str) -> int | None:
    """Read on each call: a profile may be missing, empty or changed."""
    profile = getattr(model, "profile", None)
    value = profile.get(key) if isinstance(profile, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _inside(model: object, above: frozenset[int]) -> list[BaseLanguageModel[Any]]:
    if isinstance(model, BaseLanguageModel):
        return [model]
    if id(model) in above or len(above) >= _DEEPEST:
        return []
    above |= {id(model)}
    if isinstance(model, RunnableSequence):  # the first model of a chain is the one that reads the messages
        return next((found for step in model.steps if (found := _inside(step, above))), [])
    return list(itertools.chain.from_iterable(_inside(one, above) for one in _wrapped(model)))


def _wrapped(model: object) -> Iterable[object]:
    if isinstance(model, RunnableBindingBase | RunnableEachBase):
        return (model.bound,)
    if isinstance(model, RunnableWithFallbacks):
        return (model.runnable, *model.fallbacks)
    if isinstance(model, RunnableParallel):
        return model.steps__.values()
    if isinstance(model, RunnableAssign):
        return (model.mapper,)
    if isinstance(model, RunnableBranch):
        return (*(chosen for _, chosen in model.branches), model.default)
    return _chosen(model)


def _chosen(model: object) -> Iterable[object]:
    """What a config chooses; nothing where it chooses nothing that can be made: the call will say why."""
    if not isinstance(model, Runnable):
        return ()
    try:
        if isinstance(model, DynamicRunnable):
            return (model.prepare()[0],)
        if type(model).__name__ == _CONFIGURABLE:
            return (model._model(),)  # type: ignore[attr-defined] # noqa: SLF001 - it has no public way to ask
    except Exception:  # noqa: BLE001 - a provider's constructor: no key, no such model, no such package
        return ()
    return ()
