"""Says what media are there, where there is no room for the media themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.messages.content_blocks import MEDIA, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import BaseMessage


def with_described_media(message: BaseMessage, *, fits: Callable[[BaseMessage], bool]) -> BaseMessage:
    """`message` with a line in the place of as many of its media as it takes to fit, from the first one on.

    A message whose media are all described and that still does not fit is given back so.

    Args:
        message: Any message; it is not changed.
        fits: Whether a message is small enough.
    """
    content = message.content
    if not isinstance(content, list):
        return message
    blocks: list[str | dict[Any, Any]] = list(content)
    described = message
    for at, block in enumerate(content):
        if fits(described):
            break
        parts = list(parts_of(block))
        if any(part.kind in MEDIA for part in parts):
            blocks[at] = {"type": "text", "text": " ".join(part.text for part in parts)}
            described = message.model_copy(update={"content": list(blocks)})
    return described
