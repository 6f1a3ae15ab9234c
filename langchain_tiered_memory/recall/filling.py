"""Fills a budget with ranked entries: what is offered at which price, what is shown whole, by passages, or not at all.

An entry competes with its score over a power of its tokens: for one long answer a budget holds ten short statements,
and they answer more. Below 60 tokens the price is flat, as else "Wow!" would be the best buy.

A quote is read far from where it was said. So a short reply takes the question that it answers along, and a question
its reply; and who only greets, thanks or agrees is not quoted, however well the name of the speaker matches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from langchain_tiered_memory.models.message_counting import MESSAGE_TOKENS
from langchain_tiered_memory.recall.fusion import side_by_side
from langchain_tiered_memory.recall.questions import repeats
from langchain_tiered_memory.text.sentences import Span, asks, pieces, split_passages
from langchain_tiered_memory.text.similarity import wording
from langchain_tiered_memory.text.small_talk import is_small_talk
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from langchain_tiered_memory.recall.finding import Found
    from langchain_tiered_memory.recall.ranking import RankedEntry
    from langchain_tiered_memory.types.records import Entry, Passage

POINTER_TOKENS = 16
"""Of the line that says how to get at the whole of what is shown in parts."""
_FRAMING_BEYOND_A_QUOTE = 1
_NAME_BEYOND_A_QUOTE = 2
"""What an entry's count has over its quote (`speaker: text` and a line break), as messages and names are framed."""
_PRICE_EXPONENT = 0.5
"""How much price counts: 0 not at all, 1 fills for score per token."""
_FREE_TOKENS = 60
"""Up to this size entries cost the same in the comparison: a usual chat message."""
LONG_SHARE = 0.5
"""An entry above this part of the budget may be shown by its passages; a shorter one is shown whole or not at all."""
_PASSAGES_OF_ENTRY = 2
"""How many passages of one entry are shown at most."""
_LINE_WORDS = 12
"""Of a part of what is not shown whole: about a line of a listing."""
_OF_OTHER_HALF = 0.5
"""Of its score, what one half of an exchange lends the other: before what scores clearly less, behind what answers."""
_BRIEF_TOKENS = 40
"""Of a reply that may need its question: about two sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageOffer:
    """A passage that may be shown in place of its entry."""

    score: float
    """Its `RankedEntry.passage_scores`."""
    tokens: int
    """What showing it alone costs, speaker and pointer to the whole included."""
    span: Span
    """Where it stands in the text of its entry."""
    told: float = 0.0
    """How much of the question it shares, in nats; 0 in an entry without a place."""
    lines: Callable[[], tuple[PassageOffer, ...]] = tuple
    """Those of it and of the passages beside it, for a passage may end amid what matches. Made when asked for."""


class Offer(NamedTuple):
    """A ranked entry with its price."""

    sequence: int
    """Its place in the conversation."""
    score: float
    """Its `RankedEntry.score`."""
    tokens: int
    """What showing it whole costs, speaker included, the header of its sitting not."""
    sitting: int
    """Which sitting it belongs to."""
    passages: Callable[[], tuple[PassageOffer, ...]] = tuple
    """All its passages in their order, made when asked for: only of what is too long to be shown whole."""
    place: int | None = None
    """Its place among what is shown before all else, whatever it costs; `None`: it competes with the others."""


Chosen: TypeAlias = "dict[int, tuple[Span, ...] | None]"
"""Entries that are in, in the order of the conversation: where what is shown of them stands, `None` for all of it."""


def price(entry: Entry) -> int:
    """Tokens of an entry as one quote, from the count that was made when it came in.

    Pictures and thoughts count with a message and are not quoted, and no text has more tokens than bytes.
    """
    framing = _FRAMING_BEYOND_A_QUOTE + (_NAME_BEYOND_A_QUOTE if entry.name else 0)
    return max(min(entry.tokens, len(entry.text.encode()) + MESSAGE_TOKENS) - framing, 1)


def fill(offers: Sequence[Offer], *, max_tokens: int, header_tokens: Mapping[int, int] | None = None) -> Chosen:
    """Choose among `offers`, never above `max_tokens`.

    `header_tokens` is what the first entry shown of a sitting costs in addition (its date); a missing sitting costs
    nothing. What has a place comes first, whole or, where it is long, by the lines around its best matches: what
    answers less is never shown in its stead for being shorter. Then the best buy is taken first; one that
    does not fit is passed over. Passages of long ones come last.
    """
    budget = _Budget(max_tokens, header_tokens or {})
    shown: Chosen = {}
    for offer in sorted((one for one in offers if one.place is not None), key=lambda one: (one.place, one.sequence)):
        _place(offer, budget, shown, max_tokens=max_tokens)
    offers = [one for one in offers if one.sequence not in shown]
    wholes = sorted(offers, key=lambda one: (-_worth(one.score, one.tokens), one.sequence))
    for offer in wholes:
        if budget.buys(offer.tokens, sitting=offer.sitting):
            shown[offer.sequence] = None
    long = [one for one in wholes if one.tokens > max_tokens * LONG_SHARE]
    for _, sequence, span, tokens, sitting in sorted(_pieces(long)):
        taken = shown.get(sequence, ())
        if taken is not None and len(taken) < _PASSAGES_OF_ENTRY and budget.buys(tokens, sitting=sitting):
            shown[sequence] = (*taken, span)
    return {sequence: taken if taken is None else _joined(taken) for sequence, taken in sorted(shown.items())}


def _joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """In their order, those that overlap as one."""
    joined: list[Span] = []
    for one in sorted(spans):
        if joined and one.start < joined[-1].stop:
            joined[-1] = Span(joined[-1].start, max(one.stop, joined[-1].stop))
        else:
            joined.append(one)
    return tuple(joined)


def _place(offer: Offer, budget: _Budget, shown: Chosen, *, max_tokens: int) -> None:
    """Show an entry before all else: whole where it is short enough, or no dearer than its best passages.

    Else as much as these would cost, or as there is room for, around the line of each that matches best.
    """
    told = sorted((one for one in offer.passages() if one.told), key=lambda one: (-one.told, one.span))
    told = told[:_PASSAGES_OF_ENTRY]
    short = offer.tokens <= max(max_tokens * LONG_SHARE, sum(one.tokens for one in told))
    if (short or not told) and budget.buys(offer.tokens, sitting=offer.sitting):
        shown[offer.sequence] = None
        return
    for one in told:
        lines = _around_the_best(one, max_tokens=min(one.tokens, budget.left_for(offer.sitting)))
        if budget.buys(POINTER_TOKENS + sum(line.tokens for line in lines), sitting=offer.sitting):
            shown[offer.sequence] = (
                *(shown.get(offer.sequence) or ()),
                Span(lines[0].span.start, lines[-1].span.stop),
            )


def _around_the_best(passage: PassageOffer, *, max_tokens: float) -> tuple[PassageOffer, ...]:
    """The line of a passage that matches best, with those around it that there is room for: they tell what it is of."""
    lines = passage.lines()
    within = [
        at
        for at, one in enumerate(lines)
        if max(one.span.start, passage.span.start) < min(one.span.stop, passage.span.stop)
    ]
    best = max(within, key=lambda at: lines[at].told)
    first, after, left = best, best + 1, max_tokens - POINTER_TOKENS - lines[best].tokens
    while True:
        beside = [at for at in (after, first - 1) if 0 <= at < len(lines) and lines[at].tokens <= left]
        if not beside:
            return lines[first:after]
        at = max(beside, key=lambda at: (lines[at].told, -abs(at - best)))
        first, after, left = min(first, at), max(after, at + 1), left - lines[at].tokens


class _Budget:
    """The budget while it is being spent."""

    def __init__(self, max_tokens: int, header_tokens: Mapping[int, int]) -> None:
        self.left = max(max_tokens, 0)
        self._header_tokens = header_tokens
        self._headed: set[int] = set()

    def left_for(self, sitting: int) -> int:
        """What is left for entries of a sitting, its header paid."""
        return self.left - (0 if sitting in self._headed else self._header_tokens.get(sitting, 0))

    def buys(self, tokens: int, *, sitting: int) -> bool:
        """Pay for an entry, and its header if it is the first of its sitting, unless there is too little for that."""
        if tokens > self.left_for(sitting):
            return False
        self.left = self.left_for(sitting) - tokens
        self._headed.add(sitting)
        return True


def _worth(score: float, tokens: int) -> float:
    price: float = max(tokens, _FREE_TOKENS, 1) ** _PRICE_EXPONENT
    return score / price


def _pieces(offers: Sequence[Offer]) -> Iterator[tuple[float, int, Span, int, int]]:
    """The passages on offer, as (minus worth, sequence, span, tokens, sitting): sorted, the best buy stands first.

    An entry's score is shared out by how well each passage does beside the best one.
    """
    for offer in offers:
        passages = offer.passages()
        best = max((passage.score for passage in passages), default=0.0)
        for passage in passages:
            if passage.score > 0 and passage.tokens < offer.tokens:
                worth = _worth(offer.score * passage.score / best, passage.tokens)
                yield -worth, offer.sequence, passage.span, passage.tokens, offer.sitting


def mended(
    found: Found, offers: list[Offer], shown: Collection[int], *, hidden: Mapping[int, RankedEntry]
) -> list[Offer]:
    """`offers` without what of `shown` is small talk, and with the other half of an exchange not far behind.

    `hidden` is all that is out of sight, by number.
    """
    by_seq = {one.sequence: one for one in offers}
    talk = {seq for seq in shown if is_small_talk(found.entries[seq].text) and not _is_code(found.entries[seq])}
    for seq in sorted(shown):
        other = None if seq in talk else _other_half(found, seq, hidden)
        if other is None:
            continue
        talk.discard(other)
        score = _OF_OTHER_HALF * by_seq[seq].score
        beside = by_seq.get(other) or next(iter(offers_of(found, [hidden[other]], (), code_room=0)), None)
        if beside is not None and beside.place is None and (other not in by_seq or beside.score < score):
            by_seq[other] = beside._replace(score=max(beside.score, score))
    return [one for one in by_seq.values() if one.place is not None or one.sequence not in talk]


def _other_half(found: Found, seq: int, hidden: Collection[int]) -> int | None:
    """The question before a brief reply, or the reply to a question, where it is out of sight."""
    entry, waits = found.entries[seq], asks(found.entries[seq].text)
    beside = seq + 1 if waits else seq - 1
    if beside not in hidden or (not waits and price(entry) > _BRIEF_TOKENS):
        return None
    other = found.entries[beside]
    if other.track != entry.track or (other.role, other.name) == (entry.role, entry.name):
        return None
    return beside if waits or asks(other.text) else None


def wording_of(entry: Entry) -> str:
    """By what two messages say the same: of code and tool output each character counts."""
    return entry.text if _is_code(entry) else wording(entry.text)


def only_asks(text: str) -> bool:
    """Whether all sentences of a passage ask: "Would you like more on this?" says nothing of what it is about."""
    said = pieces(text)
    return bool(said) and all(asks(piece.text) for piece in said)


def asks_again(entry: Entry, terms: frozenset[str]) -> bool:
    """Whether a message asks what has these `terms`, or only asks otherwise, as a user does: no answer either way."""
    return repeats(entry.text, terms) or (entry.role == "user" and only_asks(entry.text))


def _is_code(entry: Entry) -> bool:
    """Whether an entry is code or tool output, which has a room of its own."""
    return entry.role == "tool" or entry.kind in ("code", "tool_output") or "```" in entry.text


def offers_of(found: Found, ranked: Sequence[RankedEntry], first: Sequence[int], *, code_room: int) -> list[Offer]:
    """What is ranked, `first` before all else, in the room of code too: what else that does not hold is left out."""
    offers: list[Offer] = []
    places = {seq: place for place, seq in enumerate(dict.fromkeys(first))}
    code = 0
    for one in sorted(ranked, key=lambda one: places.get(one.sequence, len(places))):
        entry = found.entries[one.sequence]
        tokens = price(entry)
        if _is_code(entry) and entry.role != "user":
            if code + tokens > code_room and one.sequence not in places:
                continue
            code += tokens
        offers.append(
            Offer(
                sequence=one.sequence,
                score=one.score,
                tokens=tokens,
                sitting=found.sittings[one.sequence],
                passages=cache(partial(_passages, found, one, tokens=tokens, is_first=one.sequence in places)),
                place=places.get(one.sequence),
            )
        )
    return offers


def _passages(found: Found, one: RankedEntry, *, tokens: int, is_first: bool) -> tuple[PassageOffer, ...]:
    entry, passages = found.entries[one.sequence], found.passages[one.sequence]
    per_character = 1.2 * tokens / max(len(entry.text), 1)
    told = [nats_of(found, terms) for terms in told_by(found, one.sequence)] if is_first else [0.0] * len(passages)
    offered: list[PassageOffer] = []
    for at, (passage, score) in enumerate(zip(passages, one.passage_scores, strict=True)):
        asks = entry.role == "assistant" and only_asks(entry.text[passage.start : passage.stop])
        offered.append(
            PassageOffer(
                score=0.0 if asks else score,
                tokens=POINTER_TOKENS + math.ceil(per_character * (passage.stop - passage.start)),
                span=Span(passage.start, passage.stop),
                told=0.0 if asks else told[at],
                lines=partial(_lines, found, entry.text, passages[max(at - 1, 0) : at + 2], per_character),
            )
        )
    return tuple(offered)


def told_by(found: Found, seq: int) -> list[frozenset[str]]:
    """What of the question each passage of an entry tells.

    With each counts the first line of a long one: a title, or what columns hold, tells of all that is below it.
    """
    passages = found.passages[seq]
    line, _, below = found.entries[seq].text[: passages[0].stop].partition("\n")
    head = known_in(found, analyse(line)) if below and len(passages) > 1 else frozenset[str]()
    return [head | known_in(found, passage.terms.split()) for passage in passages]


def known_in(found: Found, terms: Sequence[str]) -> frozenset[str]:
    """What of the question stands in a text of these terms: terms, and two side by side."""
    there = found.nats.keys() & terms
    return frozenset(there | (found.nats.keys() & side_by_side(terms, there)))


def nats_of(found: Found, terms: Collection[str]) -> float:
    """How much of the question these terms tell, in nats."""
    return math.fsum(found.nats.get(term, 0.0) for term in frozenset(terms))


def _lines(found: Found, text: str, passages: Sequence[Passage], per_character: float) -> tuple[PassageOffer, ...]:
    """Passages that stand side by side, in parts of about a line."""
    start = passages[0].start
    inside = text[start : passages[-1].stop]
    return tuple(
        PassageOffer(
            score=0.0,
            tokens=math.ceil(per_character * (one.stop - one.start)),
            span=Span(start + one.start, start + one.stop),
            told=nats_of(found, known_in(found, analyse(inside[one.start : one.stop]))),
        )
        for one in split_passages(inside, max_words=_LINE_WORDS)
    )
