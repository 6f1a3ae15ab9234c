"""The sync and the async form of a verb behind one call, so that each scenario is written once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

CallStyle: TypeAlias = Literal["sync", "async"]
CALL_STYLES: tuple[CallStyle, ...] = ("sync", "async")


def told(call_style: CallStyle, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a bound method, or its `a` twin on an event loop of its own.

    Args:
        call_style: Which of the two.
        verb: The sync method, such as `session.add_messages`.
        *args: Its arguments.
        **options: Its keyword arguments.
    """
    if call_style == "sync":
        return verb(*args, **options)
    owner = verb.__self__  # type: ignore[attr-defined]
    twin = getattr(owner, f"a{verb.__name__}")
    return asyncio.run(twin(*args, **options))
