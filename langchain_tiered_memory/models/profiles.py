"""Profile of a chat model: its name, its context window, its output limit, found through wrappers; its prompt cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_core.runnables import Runnable

from langchain_tiered_memory.models.chat_models import answer_of, bound_name, models_in, narrowest, window_of
from langchain_tiered_memory.models.window_budget import ModelProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.settings import Settings

    CalledModel: TypeAlias = "str | Runnable[Any, Any]"
    """A chat model, what LangChain wraps around one, or a model's name."""

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
    return ModelProfile(name=name, window=window_of(called), answer=answer_of(called), provider=_provider_of(found))


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
