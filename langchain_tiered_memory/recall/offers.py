"""What is offered to a filling: what is ranked with its price, without small talk, both halves of an exchange together.

A quote is read far from where it was said. So a short reply takes the question that it answers along, and a question
its reply; and who only greets, thanks or agrees is not quoted, however well the name of the speaker matches.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.recall.filling import POINTER_TOKENS, Offer, PassageOffer, price
from langchain_tiered_memory.summaries.writers.ranking import greets
from langchain_tiered_memory.text.sentences import ASKS, pieces

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_tiered_memory.recall.finding import Found
    from langchain_tiered_memory.recall.ranking import RankedEntry
    from langchain_tiered_memory.types.records import Entry

_OF_OTHER_HALF = 0.5
"""Of its score, what one half of an exchange lends the other: before what scores clearly less, behind what answers."""
_LONGEST_TALK = 400
"""Characters: whoever says more says something."""
_BRIEF_TOKENS = 40
"""Of a reply that may need its question: about two sentences."""


def mended(
    found: Found, offers: list[Offer], shown: Collection[int], *, hidden: Mapping[int, RankedEntry]
) -> list[Offer]:
    """`offers` without what of `shown` is small talk, and with the other half of an exchange not far behind.

    `hidden` is all that is out of sight, by number.
    """
    by_seq = {one.sequence: one for one in offers}
    talk = {seq for seq in shown if is_small_talk(found.entries[seq])}
    for seq in sorted(shown):
        other = None if seq in talk else _other_half(found, seq, hidden)
        if other is None:
            continue
        talk.discard(other)
        score = _OF_OTHER_HALF * by_seq[seq].score
        beside = by_seq.get(other) or next(iter(offers_of(found, [hidden[other]], (), code_room=0)), None)
        if beside is not None and beside.place is None and (other not in by_seq or beside.score < score):
            by_seq[other] = replace(beside, score=max(beside.score, score))
    return [one for one in by_seq.values() if one.place is not None or one.sequence not in talk]


def _other_half(found: Found, seq: int, hidden: Collection[int]) -> int | None:
    """The question before a brief reply, or the reply to a question, where it is out of sight."""
    entry, asks = found.entries[seq], found.entries[seq].text.rstrip().endswith(ASKS)
    beside = seq + 1 if asks else seq - 1
    if beside not in hidden or (not asks and price(entry) > _BRIEF_TOKENS):
        return None
    other = found.entries[beside]
    if other.track != entry.track or (other.role, other.name) == (entry.role, entry.name):
        return None
    return beside if asks or other.text.rstrip().endswith(ASKS) else None


def is_small_talk(entry: Entry) -> bool:
    """Whether all sentences of a message only greet, thank, agree or react."""
    said = () if _is_code(entry) or len(entry.text) > _LONGEST_TALK else pieces(entry.text)
    return bool(said) and all(greets(piece.text) for piece in said)


def _only_asks(text: str) -> bool:
    """Whether all sentences of a passage ask: "Would you like more on this?" says nothing of what it is about."""
    said = pieces(text)
    return bool(said) and all(piece.text.rstrip().endswith(ASKS) for piece in said)


def _is_code(entry: Entry) -> bool:
    """Whether an entry is code or tool output, which has a room of its own."""
    return entry.role == "tool" or entry.kind in ("code", "tool_output") or "```" in entry.text


def offers_of(found: Found, ranked: Sequence[RankedEntry], best: Sequence[int], *, code_room: int) -> list[Offer]:
    """What is ranked, `best` before all else: of code that its room does not hold these alone, cut."""
    offers: list[Offer] = []
    places = {seq: place for place, seq in enumerate(best)}
    code = 0
    for one in ranked:
        entry = found.entries[one.sequence]
        tokens, is_cut = price(entry), False
        if _is_code(entry) and entry.role != "user":
            is_cut = code + tokens > code_room
            if is_cut and one.sequence not in places:
                continue
            code += 0 if is_cut else tokens
        total = max(len(entry.text), 1)
        pieces = tuple(
            PassageOffer(
                score=0.0
                if entry.role == "assistant" and _only_asks(entry.text[passage.start : passage.stop])
                else score,
                tokens=POINTER_TOKENS + math.ceil(tokens * (passage.stop - passage.start) / total * 1.2),
            )
            for passage, score in zip(found.passages[one.sequence], one.passage_scores, strict=True)
        )
        offers.append(
            Offer(
                sequence=one.sequence,
                score=one.score,
                tokens=tokens,
                sitting=found.sittings[one.sequence],
                passages=pieces if len(pieces) > 1 else (),
                place=places.get(one.sequence),
                only_passages=is_cut,
            )
        )
    return offers
