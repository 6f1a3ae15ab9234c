"""Finds the chat model inside LangChain's wrappers, and tells how much it may write in one answer.

A wrapper tells neither window nor name: what a context must fit is the model that is called in the end. A limit of its
answers, with which a model was made or bound, is an attribute or an argument that each package names in its own way;
what it could write at most stands in its profile, and why an answer ended in the answer's metadata. `profile_of` puts
together what is known of a model before it is called; what it has in its prompt cache is told by its answers.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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

from langchain_tiered_memory.models.window_budget import ModelProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.settings import Settings

CalledModel: TypeAlias = str | Runnable[Any, Any]
"""A chat model, what LangChain wraps around one, or a model's name."""

_DEEPEST = 32
"""Wrappers within wrappers that are looked into: one that chooses its model may make a new one at each look."""
_CONFIGURABLE = "_ConfigurableModel"
"""What `init_chat_model(configurable_fields=...)` makes: it stands in langchain, which need not be there."""
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict")
"""OpenAI, Anthropic, Mistral and most others; OpenAI's newer name; Google; Hugging Face; Ollama."""
_REASONS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_AT_LIMIT: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)

_FILTERED: Final = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "prohibited_content", "guardrail_intervened"}
)
"""OpenAI; Anthropic; Google, three; Bedrock."""


def models_in(model: object, *, above: frozenset[int] = frozenset()) -> tuple[BaseLanguageModel[Any], ...]:
    """The models that a call of `model` may reach, the first choice first; none where that cannot be told.

    What a config chooses is chosen as the running config says, and by default outside of a run. `above` are the
    identities of the wrappers around it.
    """
    if isinstance(model, BaseLanguageModel):
        return (model,)
    if id(model) in above or len(above) >= _DEEPEST:
        return ()
    above |= {id(model)}
    if isinstance(model, RunnableSequence):  # the first model of a chain is the one that reads the messages
        return next((found for step in model.steps if (found := models_in(step, above=above))), ())
    return tuple(itertools.chain.from_iterable(models_in(one, above=above) for one in _wrapped(model)))


def narrowest(models: Iterable[object]) -> object | None:
    """The one with the smallest window; the first where none tells its window, `None` where there is none."""
    return min(models, key=lambda one: window_of(one) or float("inf"), default=None)


def bound_name(model: object) -> str | None:
    """The name of another model that was bound to the call: `model.bind(model="...")`."""
    for bound in bindings_of(model)[1]:
        named = bound.get("model") or bound.get("model_name")
        if isinstance(named, str):
            return named
    return None


def window_of(model: object) -> int | None:
    """Tokens that a chat model reads, as its profile says."""
    return _tokens(model, "max_input_tokens")


def _tokens(model: object, key: str) -> int | None:
    """Read on each call: a profile may be missing, empty or changed."""
    profile = getattr(model, "profile", None)
    return _as_limit(profile.get(key)) if isinstance(profile, dict) else None


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


def answer_limit(model: object) -> int | None:
    """Tokens that one answer of `model` may have; the least of those that a call may reach, `None` where none tells."""
    for bound in bindings_of(model)[1]:  # `model.bind(max_tokens=500)`
        named = [value for name in _LIMITS if (value := _as_limit(bound.get(name))) is not None]
        if named:
            return min(named)
    told = [limit for one in models_in(model) if (limit := _own_limit(one)) is not None]
    return min(told, default=None)


def is_cut_off(answer: BaseMessage) -> bool:
    """Whether an answer ended because it had as many tokens as it may have."""
    return not _AT_LIMIT.isdisjoint(_reasons_of(answer))


def is_filtered(answer: BaseMessage) -> bool:
    """Whether a provider ended an answer because of what it says."""
    return not _FILTERED.isdisjoint(_reasons_of(answer))


def _reasons_of(answer: BaseMessage) -> frozenset[str]:
    """Why an answer ended."""
    metadata = answer.response_metadata
    details = metadata.get("incomplete_details")  # OpenAI's Responses API
    given = (*(metadata.get(key) for key in _REASONS), details.get("reason") if isinstance(details, dict) else None)
    return frozenset(str(reason).casefold() for reason in given if reason is not None)


def _own_limit(model: object) -> int | None:
    set_limits = [value for name in _LIMITS if (value := _as_limit(getattr(model, name, None))) is not None]
    able = _tokens(model, "max_output_tokens")
    return min([*set_limits, *([able] if able is not None else [])], default=None)


def bindings_of(model: object) -> tuple[object, list[Mapping[str, Any]]]:
    """What a model is without the arguments that were bound to its call, and these, the outermost first."""
    found: list[Mapping[str, Any]] = []
    while isinstance(model, RunnableBindingBase) and len(found) < _DEEPEST:
        found.append(model.kwargs)
        model = model.bound
    return model, found


def _as_limit(value: Any) -> int | None:  # noqa: ANN401 - an attribute of any model
    """Ollama says -1 and -2 for no limit."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


_COMPACTING = ("anthropic", "openai")
"""Providers that compact, as the names of their models' classes in LangChain have them."""
LEAST_CACHED_TOKENS: Final = 1024
"""Providers cache a prefix from so many tokens on, and some only a longer one."""
LIFETIME_SECONDS: Final = 300.0
"""The shortest time without a use after which Anthropic and OpenAI say that they let go of a prefix."""
_BY_ITSELF: Final = frozenset({"openai-chat", "azure-openai-chat"})
"""Models, by `_llm_type`, whose providers cache every prefix without being told."""


def name_of(model: object) -> str | None:
    """What a model calls itself, as providers report it with their usage; `None` where a wrapper holds none yet."""
    return bound_name(model) or _own_name(next(iter(_called(model)), None))


def profile_of(model: CalledModel | ModelProfile | None) -> ModelProfile:
    """What a model tells of itself: its name, its window, the most that it writes. Of fallbacks the smallest window."""
    if isinstance(model, ModelProfile):
        return model
    if model is None or isinstance(model, str):
        return ModelProfile(name=model)
    found, bound = _called(model), bound_name(model)
    name = _own_name(next(iter(found), None))
    if bound is not None and bound != name:
        return ModelProfile(name=bound)  # what stands inside is not what is called: its window says nothing
    called = narrowest(found)
    return ModelProfile(
        name=name, window=window_of(called), answer=_tokens(called, "max_output_tokens"), provider=_provider_of(found)
    )


def _provider_of(found: Sequence[object]) -> str | None:
    """The provider of all these models; `None` where one does not say. Fallbacks of two providers share none."""
    names = [str(getattr(one, "_llm_type", "")) for one in found]
    providers = {next((one for one in _COMPACTING if one in name), name) for name in names}
    if not all(names) or not providers:
        return None
    return providers.pop() if len(providers) == 1 else " or ".join(sorted(providers))


def _called(model: object) -> tuple[object, ...]:
    """The models inside; what is no part of LangChain is taken for a model itself."""
    return models_in(model) if isinstance(model, Runnable) else (model,)


def _own_name(model: object | None) -> str | None:
    for attribute in ("model_name", "model"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__name__ if model is not None else None


def is_cached(model: object, usage: Any, *, tokens: int) -> bool:  # noqa: ANN401 - a `UsageMetadata`, or `None`
    """Whether the provider has a request that it just answered."""
    if tokens < LEAST_CACHED_TOKENS:
        return False
    details = (usage or {}).get("input_token_details") or {}
    reported = (details.get(key) for key in ("cache_read", "cache_creation"))
    if any(isinstance(one, int) and one > 0 for one in reported):
        return True
    return str(getattr(model, "_llm_type", "")) in _BY_ITSELF


def cached_tokens(usage: Any) -> int | None:  # noqa: ANN401 - as above
    """Tokens of a request that its provider read from its cache; `None` where it does not say."""
    found = ((usage or {}).get("input_token_details") or {}).get("cache_read")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def cached_price(settings: Settings, model: str | None) -> float:
    """What a token from the cache costs, in the price of one that is not."""
    price = settings.prices.get(model or "")
    if price is not None and price.cached_input_per_million is not None and price.input_per_million:
        return min(price.cached_input_per_million / price.input_per_million, 1.0)
    return settings.room.cached_price
