"""Both colours of a verb behind one call, so that each scenario is written once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Colour: TypeAlias = Literal["sync", "async"]
COLOURS: tuple[Colour, ...] = ("sync", "async")


def told(colour: Colour, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a bound method, or its `a` twin on an event loop of its own.

    Args:
        colour: Which of the two.
        verb: The sync method, such as `session.add_messages`.
        *args: Its arguments.
        **options: Its keyword arguments.
    """
    if colour == "sync":
        return verb(*args, **options)
    owner = verb.__self__  # type: ignore[attr-defined]
    twin = getattr(owner, f"a{verb.__name__}")
    return asyncio.run(twin(*args, **options))
