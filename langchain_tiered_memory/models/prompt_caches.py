"""Whether a provider has a request in its prompt cache, and what it takes for a token of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import Settings

LEAST_CACHED_TOKENS: Final = 1024
"""Providers cache a prefix from so many tokens on, and some only a longer one."""
LIFETIME_SECONDS: Final = 300.0
"""The shortest time without a use after which Anthropic and OpenAI say that they let go of a prefix."""
_BY_ITSELF: Final = frozenset({"openai-chat", "azure-openai-chat"})
"""Models, by `_llm_type`, whose providers cache every prefix without being told."""


def is_cached(model: object, usage: Any, *, tokens: int) -> bool:  # noqa: ANN401 - a `UsageMetadata`, or `None`
    """Whether the provider has a request that it just answered.

    Args:
        model: The chat model, without what LangChain wraps around it.
        usage: What the answer reports.
        tokens: Of the request.
    """
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
