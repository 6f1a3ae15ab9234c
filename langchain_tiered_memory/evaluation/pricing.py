"""What it costs to show a turn, and a basket that is filled within a budget. The same prices for every method.

A turn costs the tokens of its line "speaker: text"; the first turn shown of a dated sitting also costs the line
"[date]". Turns are whole or absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from langchain_tiered_memory.conversations import Conversation

_USERS = ("user", "human")


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedTurns:
    """A conversation as the methods see it: lines with prices, by index."""

    conversation: str
    ids: tuple[str, ...]
    lines: tuple[str, ...]
    """`speaker: text`."""
    costs: tuple[int, ...]
    """Tokens of each line."""
    sittings: tuple[int, ...]
    """Of each turn, the index of its sitting."""
    header_costs: tuple[int, ...]
    """Tokens of each sitting's date line."""
    spans: tuple[tuple[int, int], ...]
    """Of each sitting, its first turn and the one after its last."""
    by_user: tuple[bool, ...]
    """Whether a turn is by the user of an assistant (roles `user` and `human`)."""

    @property
    def tokens(self) -> int:
        """The whole conversation's price."""
        return sum(self.costs) + sum(self.header_costs)

    def price(self, indexes: Collection[int]) -> int:
        """What showing exactly these turns costs, with their date lines."""
        return sum(self.costs[i] for i in indexes) + sum(
            self.header_costs[s] for s in {self.sittings[i] for i in indexes}
        )

    def price_of(self, turn_ids: Collection[str]) -> int:
        """What showing exactly the turns of these ids costs; ids of other things are free."""
        return self.price([index for index, turn_id in enumerate(self.ids) if turn_id in turn_ids])


def priced(conversation: Conversation, count_text: Callable[[str], int]) -> PricedTurns:
    """`conversation` with prices by `count_text`."""
    lines = tuple(f"{turn.speaker}: {turn.text}" for turn in conversation.turns)
    sittings = tuple(turn.sitting for turn in conversation.turns)
    starts = [0, *(index for index in range(1, len(sittings)) if sittings[index] != sittings[index - 1])]
    bounds = dict(
        zip((sittings[start] for start in starts), zip(starts, [*starts[1:], len(lines)], strict=True), strict=True)
    )
    return PricedTurns(
        conversation=conversation.id,
        ids=tuple(turn.id for turn in conversation.turns),
        lines=lines,
        costs=tuple(count_text(f"{line}\n") for line in lines),
        sittings=sittings,
        header_costs=tuple(count_text(f"[{sitting.date}]\n") for sitting in conversation.sittings),
        spans=tuple(bounds.get(number, (0, 0)) for number in range(len(conversation.sittings))),
        by_user=tuple(turn.speaker in _USERS for turn in conversation.turns),
    )


class Basket:
    """Takes turns while they fit the budget."""

    def __init__(self, turns: PricedTurns, max_tokens: int) -> None:
        self._turns = turns
        self._dated: set[int] = set()
        self.taken: set[int] = set()
        """Indexes of the turns in it."""
        self.left = max_tokens
        """Tokens still to spend."""

    def offer(self, indexes: Iterable[int]) -> bool:
        """Take all of these turns if they fit together, else none; says whether they fitted."""
        new = {index for index in indexes if index not in self.taken}
        sittings = {self._turns.sittings[index] for index in new}
        cost = sum(self._turns.costs[index] for index in new)
        cost += sum(self._turns.header_costs[sitting] for sitting in sittings - self._dated)
        if cost > self.left:
            return False
        self.left -= cost
        self.taken.update(new)
        self._dated |= sittings
        return True
