"""How full a condensation leaves a view: what is billed for it, weighed against what stays in view."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from langchain_tiered_memory.settings.base import Frozen


class RoomSettings(Frozen):
    """What a view is filled to when it is condensed, and when that pays (`context/budget/room_to_grow.py`).

    The fuller a view is left, the more is in it, the more tokens are read from the cache at each turn, and the sooner
    the whole of it has to be sent uncached again.
    """

    cached_price: float = Field(default=0.1, gt=0, le=1)
    """Of a token that the provider has in its cache, in the price of one that it has not. A tenth is what Anthropic and
    OpenAI's newest models take; a model in `prices` that names its own is weighed by that."""
    least_share: float = Field(default=0.85, gt=0, le=1)
    """Of a view's room, that file work may fill in any case ..."""
    least_tokens: int = Field(default=8000, ge=0)
    """... up to so many tokens."""
    working_tokens: int = Field(default=0, ge=0)
    """Tokens that it may fill beside that share: what an agent has at hand is not smaller in a small window."""
    extra_share: float = Field(default=0.5, ge=0)
    """How much more than with the least a turn may cost for what is kept besides, on average until the next
    condensation: 0 keeps no more than the least."""
    grows_to: Literal["limit", "cheapest"] = "limit"
    """`limit`: a view grows as far as it may. `cheapest`: no further than turns cost `extra_share` more than at the
    size that is cheapest; a history that would fit may be condensed then."""
