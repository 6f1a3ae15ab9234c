"""Fills a budget with ranked entries: what is shown whole, what by its passages, what not at all.

An entry competes with its score over a power of its tokens: for one long answer a budget holds ten short statements,
and they answer more. Below 60 tokens the price is flat, as else "Wow!" would be the best buy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_tiered_memory.types.records import Entry

POINTER_TOKENS = 16
"""Of the line that says how to get at the whole of what is shown in parts."""
_FRAMING_BEYOND_A_QUOTE = 1
_NAME_BEYOND_A_QUOTE = 2
"""What an entry's count has over its quote (`speaker: text` and a line break), as messages and names are framed."""
_PRICE_EXPONENT = 0.5
"""How much price counts: 0 not at all, 1 fills for score per token."""
_FREE_TOKENS = 60
"""Up to this size entries cost the same in the comparison: a usual chat message."""
_PASSAGE_SHARE = 0.1
"""Of the budget, for passages of long entries; what they do not use goes back to whole entries."""
LONG_SHARE = 0.5
"""An entry above this part of the budget may be shown by its passages; a shorter one is shown whole or not at all."""
_PASSAGES_OF_ENTRY = 2
"""How many passages of one entry are shown at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageOffer:
    """A passage that may be shown in place of its entry."""

    score: float
    """Its `RankedEntry.passage_scores`."""
    tokens: int
    """What showing it alone costs, speaker and pointer to the whole included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A ranked entry with its price."""

    sequence: int
    """Its place in the conversation."""
    score: float
    """Its `RankedEntry.score`."""
    tokens: int
    """What showing it whole costs, speaker included, the header of its sitting not."""
    sitting: int
    """Which sitting it belongs to."""
    passages: tuple[PassageOffer, ...] = ()
    """All its passages in their order; may be left empty for an entry that is short enough, or must not be cut."""
    place: int | None = None
    """Its place among what is shown before all else, whatever it costs; `None`: it competes with the others."""
    only_passages: bool = False
    """Whether it is not shown whole."""


Chosen: TypeAlias = "dict[int, tuple[int, ...] | None]"
"""Entries that are in, in the order of the conversation: which of their passages, `None` for all of it."""


def price(entry: Entry) -> int:
    """Tokens of an entry as one quote, from the count that was made when it came in."""
    return max(entry.tokens - _FRAMING_BEYOND_A_QUOTE - (_NAME_BEYOND_A_QUOTE if entry.name else 0), 1)


def fill(offers: Sequence[Offer], *, max_tokens: int, header_tokens: Mapping[int, int] | None = None) -> Chosen:
    """Choose among `offers`, never above `max_tokens`.

    `header_tokens` is what the first entry shown of a sitting costs in addition (its date); a missing sitting costs
    nothing. What has a place comes first, whole or, where it is long, by its best passages. Then the best buy is taken
    first; one that does not fit is passed over. What is kept for passages is not kept from the entry that scores best:
    nothing that they show is worth more.
    """
    budget = _Budget(max_tokens, header_tokens or {})
    shown: Chosen = {}
    for offer in sorted((one for one in offers if one.place is not None), key=lambda one: (one.place, one.sequence)):
        _place(offer, budget, shown, max_tokens=max_tokens)
    offers = [one for one in offers if one.sequence not in shown and not one.only_passages]
    wholes = sorted(offers, key=lambda one: (-_worth(one.score, one.tokens), one.sequence))
    long = [one for one in wholes if one.tokens > max_tokens * LONG_SHARE]
    pieces = sorted(_pieces(long))
    kept = int(max_tokens * _PASSAGE_SHARE) if pieces else 0
    best = max((offer.score for offer in offers), default=0.0)
    for offer in wholes:
        keeping = kept if offer.score < best else 0
        if budget.buys(offer.tokens, sitting=offer.sitting, keeping=keeping):
            shown[offer.sequence] = None
    for _, sequence, index, tokens, sitting in pieces:
        taken = shown.get(sequence, ())
        if taken is not None and len(taken) < _PASSAGES_OF_ENTRY and budget.buys(tokens, sitting=sitting):
            shown[sequence] = (*taken, index)
    for offer in wholes:
        if offer.sequence not in shown and budget.buys(offer.tokens, sitting=offer.sitting):
            shown[offer.sequence] = None
    return {sequence: taken if taken is None else tuple(sorted(taken)) for sequence, taken in sorted(shown.items())}


def _place(offer: Offer, budget: _Budget, shown: Chosen, *, max_tokens: int) -> None:
    """Show an entry before all else: whole where it is short enough, or by passages where it has some."""
    short = not offer.passages or offer.tokens <= max_tokens * LONG_SHARE
    if short and not offer.only_passages and budget.buys(offer.tokens, sitting=offer.sitting):
        shown[offer.sequence] = None
        return
    for _, sequence, index, tokens, sitting in sorted(_pieces([offer]))[:_PASSAGES_OF_ENTRY]:
        if budget.buys(tokens, sitting=sitting):
            shown[sequence] = (*(shown.get(sequence) or ()), index)


class _Budget:
    """The budget while it is being spent."""

    def __init__(self, max_tokens: int, header_tokens: Mapping[int, int]) -> None:
        self.left = max(max_tokens, 0)
        self._header_tokens = header_tokens
        self._headed: set[int] = set()

    def buys(self, tokens: int, *, sitting: int, keeping: int = 0) -> bool:
        """Pay for an entry (and its header, if the first of its sitting), unless that leaves less than `keeping`."""
        price = tokens + (0 if sitting in self._headed else self._header_tokens.get(sitting, 0))
        if price > self.left - keeping:
            return False
        self.left -= price
        self._headed.add(sitting)
        return True


def _worth(score: float, tokens: int) -> float:
    price: float = max(tokens, _FREE_TOKENS, 1) ** _PRICE_EXPONENT
    return score / price


def _pieces(offers: Sequence[Offer]) -> Iterator[tuple[float, int, int, int, int]]:
    """The passages on offer, as (minus worth, sequence, index, tokens, sitting): sorted, the best buy stands first.

    An entry's score is shared out by how well each passage does beside the best one.
    """
    for offer in offers:
        best = max((passage.score for passage in offer.passages), default=0.0)
        for index, passage in enumerate(offer.passages):
            if passage.score > 0 and passage.tokens < offer.tokens:
                worth = _worth(offer.score * passage.score / best, passage.tokens)
                yield -worth, offer.sequence, index, passage.tokens, offer.sitting
