"""Fills a budget with ranked entries: what is shown whole, what by its passages, what not at all.

Score is weighed against price: for one long answer of an assistant a budget holds ten short statements, and they answer
more. So an entry competes with its score over a power of its tokens. Being shorter than usual gains nothing: below
`free_tokens` the price is flat, as else "Wow!" would be the best buy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_tiered_memory.types.records import Entry

POINTER_TOKENS = 16
"""Of the line that says how to get at the whole of what is shown in parts."""
_FRAMING_BEYOND_A_QUOTE = 1
_NAME_BEYOND_A_QUOTE = 2
"""What an entry's count has over its quote (`speaker: text` and a line break), as messages and names are framed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingWeights:
    """The parameters of the filling."""

    price_exponent: float = 0.5
    """How much price counts: 0 not at all, 1 fills for score per token."""

    free_tokens: int = 60
    """Up to this size entries cost the same in the comparison: a usual chat message."""

    passage_share: float = 0.1
    """The part of the budget kept for passages of long entries; what they do not use goes back to whole entries."""

    long_share: float = 0.5
    """An entry above this part of the budget may be shown by its passages; a shorter one is shown whole or not at
    all."""

    passages_of_entry: int = 2
    """How many passages of one entry are shown at most."""


DEFAULT_FILLING = FillingWeights()
"""What the defaults of `FillingWeights` say."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An entry that is in."""

    sequence: int
    passages: tuple[int, ...] | None = None
    """Which of its passages are shown, in their order; `None` for the whole entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """Entries chosen for a budget."""

    shown: tuple[Shown, ...]
    """In the order of the conversation."""

    tokens: int
    """What they cost, headers included."""


def price(entry: Entry) -> int:
    """Tokens of an entry as one quote, from the count that was made when it came in."""
    return max(entry.tokens - _FRAMING_BEYOND_A_QUOTE - (_NAME_BEYOND_A_QUOTE if entry.name else 0), 1)


def fill(
    offers: Sequence[Offer],
    *,
    max_tokens: int,
    header_tokens: Mapping[int, int] | None = None,
    weights: FillingWeights = DEFAULT_FILLING,
) -> Filling:
    """Choose among `offers`, never above `max_tokens`.

    `header_tokens` is what the first entry shown of a sitting costs in addition (its date); a missing sitting costs
    nothing. What has a place comes first, whole or, where it is long, by its best passages. Then the best buy is taken
    first; one that does not fit is passed over. What is kept for passages is not kept from the entry that scores best:
    nothing that they show is worth more.
    """
    budget = _Budget(max_tokens, header_tokens or {})
    shown: dict[int, tuple[int, ...] | None] = {}
    for offer in sorted((one for one in offers if one.place is not None), key=lambda one: (one.place, one.sequence)):
        _place(offer, budget, shown, max_tokens=max_tokens, weights=weights)
    offers = [one for one in offers if one.sequence not in shown and not one.only_passages]
    wholes = sorted(offers, key=lambda one: (-_worth(one.score, one.tokens, weights), one.sequence))
    long = [one for one in wholes if one.tokens > max_tokens * weights.long_share]
    pieces = sorted(_pieces(long, weights))
    kept = int(max_tokens * weights.passage_share) if pieces else 0
    best = max((offer.score for offer in offers), default=0.0)
    for offer in wholes:
        keeping = kept if offer.score < best else 0
        if budget.buys(offer.tokens, sitting=offer.sitting, keeping=keeping):
            shown[offer.sequence] = None
    for _, sequence, index, tokens, sitting in pieces:
        taken = shown.get(sequence, ())
        if taken is not None and len(taken) < weights.passages_of_entry and budget.buys(tokens, sitting=sitting):
            shown[sequence] = (*taken, index)
    for offer in wholes:
        if offer.sequence not in shown and budget.buys(offer.tokens, sitting=offer.sitting):
            shown[offer.sequence] = None
    return Filling(
        shown=tuple(
            Shown(sequence=sequence, passages=taken if taken is None else tuple(sorted(taken)))
            for sequence, taken in sorted(shown.items())
        ),
        tokens=max(max_tokens, 0) - budget.left,
    )


def _place(
    offer: Offer,
    budget: _Budget,
    shown: dict[int, tuple[int, ...] | None],
    *,
    max_tokens: int,
    weights: FillingWeights,
) -> None:
    """Show an entry before all else: whole where it is short enough, or by passages where it has some."""
    short = not offer.passages or offer.tokens <= max_tokens * weights.long_share
    if short and not offer.only_passages and budget.buys(offer.tokens, sitting=offer.sitting):
        shown[offer.sequence] = None
        return
    for _, sequence, index, tokens, sitting in sorted(_pieces([offer], weights))[: weights.passages_of_entry]:
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


def _worth(score: float, tokens: int, weights: FillingWeights) -> float:
    price: float = max(tokens, weights.free_tokens, 1) ** weights.price_exponent
    return score / price


def _pieces(offers: Sequence[Offer], weights: FillingWeights) -> Iterator[tuple[float, int, int, int, int]]:
    """The passages on offer, as (minus worth, sequence, index, tokens, sitting): sorted, the best buy stands first.

    An entry's score is shared out by how well each passage does beside the best one.
    """
    for offer in offers:
        best = max((passage.score for passage in offer.passages), default=0.0)
        for index, passage in enumerate(offer.passages):
            if passage.score > 0 and passage.tokens < offer.tokens:
                worth = _worth(offer.score * passage.score / best, passage.tokens, weights)
                yield -worth, offer.sequence, index, passage.tokens, offer.sitting
