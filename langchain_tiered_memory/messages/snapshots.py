"""What of a view goes into a checkpoint, and how its messages are read back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import message_to_dict

from langchain_tiered_memory.text.tagged_json import Losses, to_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.outcomes import Window, Zone

MAX_MESSAGES = 400
"""Of one snapshot. A view of a usual window has fewer; of a larger one its first and its newest are kept."""
_FIRST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSnapshot:
    """A view as a model was, or would have been, given it."""

    name: str
    """Of the view's plan."""
    messages: Sequence[BaseMessage]
    zone: Zone
    used_tokens: int
    """Of the whole request, before anything is pruned."""
    window: Window
    summary_ids: Sequence[str] = ()
    pruning: Sequence[tuple[int, str]] = ()
    """First `seq`s of the groups that would leave it next, and why: the plan of the danger zone."""


def bounded(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], int]:
    """At most `MAX_MESSAGES`: the first few, with system prompt and goal, and the newest; and how many are not."""
    left_out = max(len(messages) - MAX_MESSAGES, 0)
    if not left_out:
        return list(messages), 0
    return [*messages[:_FIRST], *messages[_FIRST - MAX_MESSAGES :]], left_out


def conversation_of(messages: Sequence[BaseMessage]) -> tuple[dict[str, Any], ...]:
    """Messages as LangChain's dicts, in nothing but JSON: what JSON lacks is tagged, as in the transcript."""
    losses = Losses()
    return tuple(to_plain(message_to_dict(message), "checkpoint", losses) for message in messages)
