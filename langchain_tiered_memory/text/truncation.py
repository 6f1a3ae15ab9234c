"""Shows what is too long by its head and its tail, and shares a room that is too small for several things whole."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

_HEAD_SHARE = 0.6  # what opens a message says what it is about; its end has the result or the question
_CHARS_PER_TOKEN = 8  # no text that people write has more; bounds how much is looked at
_SEARCH_SHARE = 0.25  # how much of a piece may be given up for a nicer border
_BORDERS = (re.compile(r"\n"), re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])"), re.compile(r"\s"))
CUT = "\u2026"
"""Stands where hardly anything is missing, and ends a text of which there is no room to say how much is: what just ends
reads as if it were all."""
GAP = "[..."
"""Begins what stands in a text for what is left out of it."""


def head_and_tail(
    text: str,
    *,
    max_tokens: int,
    count: Callable[[str], int],
    pointer: str = "",
    line: str | None = None,
) -> str:
    """`text` itself where it fits, else its head and tail around a line that says how much is missing, or an ellipsis.

    Looks at no more than about eight characters a token of the budget from each end, so a text of 10 MB costs no more
    than a short one. Cuts at line breaks, else sentence ends, else spaces, where one is near.

    Args:
        text: Any text.
        max_tokens: The result never has more, by `count`. A budget too small for the pointer line gives the first
            characters of the text that fit, and a mark that they were cut; 0 or less gives an empty text.
        count: Tokens of a text; called on at most a few times the budget, save once for the whole text.
        pointer: How to get at the whole, such as `expand "412" for the whole`; empty where nothing does.
        line: What stands between head and tail, in the place of one that says how much is missing.
    """
    if max_tokens <= 0 or not text:
        return ""
    reach = max_tokens * _CHARS_PER_TOKEN
    if len(text) <= reach and count(text) <= max_tokens:
        return text
    # Beyond reach the count is a projection: counting 10 MB to say what is missing would cost more than it tells.
    total = count(text) if len(text) <= 2 * reach else round(len(text) * count(text[:reach]) / reach)
    if len(text) > reach and total <= 2 * max_tokens:
        total = count(text)
        if total <= max_tokens:
            return text
    how = f"; {pointer}" if pointer else ""
    said = f"{GAP} about {max(1, total - max_tokens):,} tokens left out{how} ...]" if line is None else line
    if line is None and count(said) > total - max_tokens:
        said = CUT  # a line that is longer than what is missing would itself be what pushes more out
    chars = most_fitting(min(len(text), reach), lambda chars: count(_around(text, chars, said)) <= max_tokens)
    return _around(text, chars, said) if chars else _first_that_fit(text, max_tokens, count)


def shorten_message(
    message: BaseMessage, *, max_tokens: int, count: Callable[[str], int], pointer: str = ""
) -> BaseMessage:
    """`message` with its text within `max_tokens`; calls, ids, media and reasoning stay whole, and the input unchanged.

    Several text blocks share the budget: short ones stay as they are, and the longest give way first.
    """
    content = message.content
    if isinstance(content, str):
        shown = head_and_tail(content, max_tokens=max_tokens, count=count, pointer=pointer)
        return message if shown == content else message.model_copy(update={"content": shown})
    counts = {at: count(text) for at, block in enumerate(content) if (text := text_in(block))}
    if sum(counts.values()) <= max_tokens:
        return message
    blocks: list[str | dict[Any, Any]] = list(content)
    room = max(0, max_tokens)
    for left, (at, tokens) in enumerate(sorted(counts.items(), key=lambda item: item[1])):
        share = room // (len(counts) - left)
        block = content[at]
        text = text_in(block)
        shown = text if tokens <= share else head_and_tail(text, max_tokens=share, count=count, pointer=pointer)
        blocks[at] = shown if isinstance(block, str) else {**block, "text": shown}
        room -= min(tokens, share)
    kept = [block for at, block in enumerate(blocks) if at not in counts or text_in(block)]
    return message.model_copy(update={"content": kept})


def text_in(block: str | dict[Any, Any]) -> str:
    """The text of a content block that is nothing but a text; else an empty one."""
    if isinstance(block, str):
        return block
    text = block.get("text") if str(block.get("type") or "text") in {"text", "text-plain"} else None
    return text if isinstance(text, str) else ""


def _around(text: str, chars: int, line: str) -> str:
    head_chars = int(chars * _HEAD_SHARE)
    head = _ending_well(text[:head_chars])
    tail_chars = chars - head_chars
    tail = _starting_well(text[len(text) - tail_chars :]) if tail_chars else ""
    return "\n".join(piece for piece in (head.rstrip(), line, tail.lstrip()) if piece)


def _ending_well(piece: str) -> str:
    """`piece` up to its last border, where that gives up little."""
    earliest = int(len(piece) * (1 - _SEARCH_SHARE))
    for border in _BORDERS:
        stops = [found.start() for found in border.finditer(piece, earliest) if found.start() > earliest]
        if stops:
            return piece[: stops[-1]]
    return piece


def _starting_well(piece: str) -> str:
    """`piece` from its first border on, where that gives up little."""
    latest = int(len(piece) * _SEARCH_SHARE)
    for border in _BORDERS:
        found = border.search(piece)
        if found and found.end() < latest:
            return piece[found.end() :]
    return piece


def _first_that_fit(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    most = min(len(text), max_tokens * _CHARS_PER_TOKEN)
    chars = most_fitting(most, lambda chars: count(text[:chars] + CUT) <= max_tokens)
    # Where not even the mark fits, what does says nothing anyway.
    return text[:chars] + CUT if count(CUT) <= max_tokens else ""


def first_chars(text: str, most: int) -> str:
    """`text`, or its first characters and a mark that they were cut."""
    return text if len(text) <= most else f"{text[:most]}{CUT}"


def ends_of(text: str, most: int) -> str:
    """`text`, or so many characters of its beginning and of its end: of a long one, where it says what it is."""
    return text if len(text) <= 2 * most else f"{text[:most]}\n{text[-most:]}"


def most_fitting(most: int, fits: Callable[[int], bool], *, least: int = 0) -> int:
    """The largest number up to `most` that fits, where all below it do; `least` is taken to fit."""
    low, high = least, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def water_level(sizes: Sequence[int], room: int) -> int:
    """The highest cap on each of `sizes` with which together they fit `room`; 0 when nothing does."""
    left, level = room, 0
    for position, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - position)
        if size > share:
            return max(share, 0)
        left -= size
        level = size
    return level


def whole_again(cut: Sequence[int], whole: Sequence[int], room: int) -> frozenset[int]:
    """Places of the things that can be whole after all, the last first: what cannot be cut finely leaves room over."""
    free = room - sum(cut)
    places: set[int] = set()
    for at in reversed(range(len(cut))):
        if 0 < whole[at] - cut[at] <= free:
            free -= whole[at] - cut[at]
            places.add(at)
    return frozenset(places)
