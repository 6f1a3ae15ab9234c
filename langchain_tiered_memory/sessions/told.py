"""What a chat model tells of itself: its name, its window, the most that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.budget import Told

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def name_of(model: BaseChatModel) -> str:
    """What a model calls itself, as providers report it with their usage."""
    for attribute in ("model_name", "model"):
        found = getattr(model, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(model).__name__


def told_of(model: str | BaseChatModel | None) -> Told:
    """What a model tells of itself: its name, its window, the most that it writes."""
    if model is None or isinstance(model, str):
        return Told(name=model)
    profile = getattr(model, "profile", None) or {}
    return Told(
        name=name_of(model),
        window=_positive(profile.get("max_input_tokens")),
        answer=_positive(profile.get("max_output_tokens")),
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
