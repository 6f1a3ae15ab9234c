"""Calls that take more room than a view has for them.

A provider must be sent every call that may yet be answered. A message with more calls than fit shows some of them and
names the others.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import Piece, ours, shortened
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.content_blocks import CALL_TYPES, kind_of, requested_calls
from langchain_tiered_memory.messages.message_repairs import blocks_of, without_reasoning
from langchain_tiered_memory.messages.showing import pointer_to, with_shorter_calls
from langchain_tiered_memory.models.message_counting import CALL_TOKENS
from langchain_tiered_memory.summaries.rendering import notice_block
from langchain_tiered_memory.text.fencing import plain_name
from langchain_tiered_memory.text.truncation import most_fitting, shorten_message, water_level

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.types.records import Entry


_NAMED_TOOLS = 4


def folding_head(entries: Sequence[Entry]) -> Entry | None:
    """The message that makes the most calls, where it makes several: the one to fold."""
    most = max(entries, key=lambda entry: len(entry.calls), default=None)
    return most if most is not None and len(most.calls) > 1 else None


def folded_calls(
    head: Entry, results: Sequence[Entry], *, room: int, counter: TokenCounter, expands: bool
) -> list[Piece] | None:
    """`head` with as many of its calls as fit, newest results first, those results, and a note on the others before.

    `results` are those of its calls that are there, in order; `room` is for all of it. `None` where not one call fits,
    or the message cannot be read as one that calls.
    """
    message = decode(head.payload)
    calls = {call.id: call for call in requested_calls(message) if call.id is not None}
    if not isinstance(message, AIMessage) or not calls:
        return None
    pointer = pointer_to(head, expands=expands)
    said = shorten_message(
        _with_calls(message, ()),
        max_tokens=round(NUMBERS.folded_said_share * room),
        count=counter.count_text,
        pointer=pointer,
    )
    answered = {entry.answers: entry for entry in results if entry.answers in calls}
    order = [one for one in calls if one not in answered] + list(answered)  # those without a result go first
    short: dict[str, dict[str, Any]] = {}

    def folded(number: int) -> list[Piece] | None:
        """With its newest `number` calls; `None` where these do not fit beside results that can be read."""
        newest = set(order[len(order) - number :])
        short.update({one: _short_call(calls[one], pointer=pointer, counter=counter) for one in newest - short.keys()})
        whole = said.model_copy(update={"tool_calls": [short[one] for one in calls if one in newest]})
        asked = Piece(part="recent", message=whole, tokens=counter.count_message(whole), entry=head, passages=(head,))
        note = _noted(pointer, [call for one, call in calls.items() if one not in newest], counter)
        there = sorted((answered[one] for one in newest if one in answered), key=lambda one: one.seq)
        sizes, least = [entry.tokens for entry in there], NUMBERS.least_readable_tokens
        coming = least * (len(newest) - len(there))
        level = water_level(sizes, max(room - coming - sum(piece.tokens for piece in (*note, asked)), 0))
        pieces = [*note, asked, *(shortened(one, max_tokens=level, counter=counter, expands=expands) for one in there)]
        is_readable = level >= min(least, max(sizes, default=0))
        return pieces if is_readable and sum(piece.tokens for piece in pieces) + coming <= room else None

    most = most_fitting(min(len(order), room // CALL_TOKENS), lambda number: folded(number) is not None)
    return folded(most) if most else None


def _with_calls(message: AIMessage, calls: Collection[dict[str, Any]]) -> AIMessage:
    """`message` with `calls` in the place of its own, also where its content repeats them.

    Reasoning goes: a provider ties it to the calls that came behind it.
    """
    bare = without_reasoning(message)
    content = bare.content
    if isinstance(content, list):
        content = [block for block in blocks_of(content) if kind_of(block) not in CALL_TYPES]
    kwargs = {key: value for key, value in bare.additional_kwargs.items() if key not in {"tool_calls", "function_call"}}
    update = {"content": content or "", "tool_calls": list(calls), "invalid_tool_calls": []}
    return message.model_copy(update=update | {"additional_kwargs": kwargs})


def _short_call(call: RequestedCall, *, pointer: str, counter: TokenCounter) -> dict[str, Any]:
    """A call with its long arguments cut."""
    args = call.args if call.raw is None else {"invalid_arguments": call.raw}
    alone: BaseMessage = AIMessage("", tool_calls=[{"name": call.name, "args": args, "id": call.id}])
    excess = counter.count_message(alone) - counter.count_message(AIMessage("")) - NUMBERS.least_readable_tokens
    alone = with_shorter_calls(alone, excess_tokens=excess, count=counter.count_text, pointer=pointer)
    return dict(alone.tool_calls[0]) if isinstance(alone, AIMessage) else {}


def _noted(pointer: str, folded: Collection[RequestedCall], counter: TokenCounter) -> list[Piece]:
    """The line that says what is not shown; none where all is."""
    if not folded:
        return []
    tools = Counter(plain_name(call.name) or "a tool" for call in folded).most_common()
    named = ", ".join(f"{name} {count:,} times" for name, count in tools[:_NAMED_TOOLS])
    more = ", and other tools" if len(tools) > _NAMED_TOOLS else ""
    note = notice_block(
        f"[{len(folded):,} more calls of the next message are not shown for want of room, nor are their results:"
        f" {named}{more}{f'; {pointer}' if pointer else ''}]"
    )
    return [ours(note, part="history", counter=counter)]
