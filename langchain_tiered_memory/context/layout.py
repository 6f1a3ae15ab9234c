"""The order of the messages of one request.

[system] [first user message, or the provider's own compaction] [pins] [history] [facts] [parts of files] [files]
[last user message, if older than what follows] [recent messages], with recall before the last user message, or at the
end when the next word is the user's. `view/rendered_view.py` says what stands in the part that goes before the recent
messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.context.pieces import MARK, Piece
from langchain_tiered_memory.messages.content_blocks import compacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.context.request import Inputs


def with_quotes(
    pieces: Sequence[Piece], *, earlier: Mapping[int, Piece], now: Sequence[Piece]
) -> tuple[list[Piece], int]:
    """A view's messages with what was recalled, and where that of `now` stands.

    What was recalled for `earlier` questions, by their `seq`, stands before each of them.
    """
    laid: list[Piece] = []
    before = dict(earlier)
    for piece in pieces:
        if piece.entry is not None and piece.entry.seq in before:
            laid.append(before.pop(piece.entry.seq))
        laid.append(piece)
    place = recall_position(laid)
    return [*laid[:place], *now, *laid[place:]], place


def in_request_order(inputs: Inputs, head: Sequence[Piece], recent: Sequence[Piece]) -> list[Piece]:
    """What stands before the recent messages, and these: what bridges a gap stands behind the first message.

    So it does where that is one of the `recent` ones, because the window slid and nothing was condensed. The model's
    provider reads its own compaction.
    """
    opening, reader = {entry.seq for entry in inputs.required.opening}, inputs.request.model.provider
    compacted = max((at for at, piece in enumerate(recent) if compacts(piece.message, reader=reader)), default=None)
    if compacted is not None:  # it passes over all that is in front of it
        entry = recent[compacted].entry
        group = entry.group if entry is not None else None
        first = [piece for piece in recent[compacted:] if piece.entry is not None and piece.entry.group == group]
        prompts = [piece for piece in head if piece.entry is not None and piece.entry.role == "system"]
        placed = {id(piece) for piece in (*first, *prompts)}
        return [*prompts, *first, *(piece for piece in (*head, *recent) if id(piece) not in placed)]
    count = 0
    while count < len(recent) and (entry := recent[count].entry) is not None and entry.seq in opening:
        count += 1
    first = [piece for piece in head if piece.part == "goal"] + list(recent[:count])
    first.sort(key=lambda piece: piece.entry.seq if piece.entry is not None else 0)
    return [*first, *(piece for piece in head if piece.part != "goal"), *recent[count:]]


def recall_position(pieces: Sequence[Piece]) -> int:
    """Where recall stands: before the last user message, or at the end where the assistant has finished."""
    last = pieces[-1].message if pieces else None
    if isinstance(last, AIMessage) and not last.tool_calls:
        return len(pieces)
    for place in range(len(pieces) - 1, -1, -1):
        message = pieces[place].message
        if isinstance(message, HumanMessage) and MARK not in message.additional_kwargs:
            return place
    return len(pieces)
