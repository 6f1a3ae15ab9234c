"""Judges what is said by what is found for it: what answers it, how much it asks, and what is worth its room beside it.

A conversation that goes on says much that asks nothing, and what asks stands among reasons, greetings and pasted logs.
So each stretch of a message is judged alone, by what older messages share with it: words that nobody said before tell
nothing of what is asked. What is shared answers where so much would hardly be shared by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import gt
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.recall.filling import POINTER_TOKENS, price
from langchain_tiered_memory.recall.questions import repeats
from langchain_tiered_memory.recall.ranking import WEIGHTS
from langchain_tiered_memory.text import lexicon as cues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_tiered_memory.recall.finding import Found
    from langchain_tiered_memory.recall.ranking import RankedEntry

Asks: TypeAlias = Literal["nothing", "a little", "a question"]
_Row: TypeAlias = "list[tuple[float, int]]"
"""What answers a stretch, the best first: what it shares with that, and its `seq`."""

_BY_CHANCE = 5
"""Passages of a session that may share so much with a stretch by chance, if words came independently of each other."""
_BESIDE_BEST = 0.8
"""Of what the best answer to a stretch shares with it: what shares less is no answer beside that."""
_LEAST_OF_OWN = (0.1, 0.35)
"""What an entry must score to stand beside a message that asks, in parts of what one would that has all that anybody
said of it: beside a brief message, and beside a long one, of which every old talk shares some words."""
_TELLING_NATS = (20.0, 60.0)
"""Where a message counts as brief and as long: how much its known words tell together."""
_GOES_ON = 0.5
"""Of what an entry would score that has all that anybody said, from which on the answer before it is its subject."""
_TWO, _SEVERAL = 2, 3
"""Words of a message of one stretch, all that anybody said before, that one old message shares, where none is rare:
with two it may ask for that, with three it does, with a question mark or without. One makes small talk."""
_SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was found for what is said, judged by what is out of sight."""

    best: tuple[int, ...]
    """`seq`s of what answers a stretch best, for each that is answered: shown before all else."""
    answers: frozenset[int]
    """`seq`s of all that answers one."""
    asks: Asks
    """However it is put."""
    hidden: tuple[RankedEntry, ...]
    """All that is out of sight, as ranked."""
    whole: float
    """About what an entry would score that has all of a stretch that anybody said."""
    least: float
    """What an entry must score that is no answer, to be quoted beside one that asks."""

    def worth_quoting(self) -> list[RankedEntry]:
        """What is worth its room in a conversation that goes on: what answers, and what is near that for who asks."""
        if self.asks == "nothing":
            return [one for one in self.hidden if one.sequence in self.answers]
        return [one for one in self.hidden if one.sequence in self.answers or (one.adds and one.own_score > self.least)]


def judge(found: Found, is_hidden: Callable[[int], bool]) -> Judged:
    """Judge what was found; `is_hidden` tells whether the entry of a `seq` is out of sight."""
    # Equal texts tell nothing more: the one that is ranked best stands for them.
    once: dict[tuple[str, str], RankedEntry] = {}
    for one in found.ranked:
        if one.sequence in found.entries and is_hidden(one.sequence):
            entry = found.entries[one.sequence]
            once.setdefault((entry.role, entry.text), one)
    hidden = tuple(once.values())
    new = [one for one in hidden if one.adds]
    rows, whole = _answers(found, new), _whole_score(found, new)
    said = [row for row, one in enumerate(found.stretches) if not cues.SMALL_TALK.match(cues.lowered(one.text))]
    plain = _plain(found, rows, alone=len(said) == 1)
    best = sorted((-nats, seq) for nats, seq in (ones[0] for ones in plain))
    return Judged(
        best=tuple(dict.fromkeys(seq for _, seq in best)),
        answers=frozenset(seq for ones in plain for _, seq in ones),
        asks=_asks(found, new, rows, said=said),
        hidden=hidden,
        whole=whole,
        least=_least_part(found) * whole,
    )


def tokens_of(found: Found, seqs: Iterable[int], *, most_each: int | None = None) -> int:
    """About what it takes to quote these, long ones by passages that take `most_each`."""
    prices = (price(found.entries[seq]) + POINTER_TOKENS for seq in seqs)
    return sum(one if most_each is None else min(one, most_each) for one in prices)


def goes_on(found: Found, judged: Judged, *, shown_from: int) -> bool:
    """Whether what the user said last goes on with what the assistant said last: nothing older matches it as well.

    What stands beside it counts as much more for that as it does in any ranking.
    """
    older = max((one.own_score for one in judged.hidden), default=0.0)
    least = max(older, _GOES_ON * judged.whole)
    beside = WEIGHTS.after[0] * judged.whole
    hidden = {one.sequence for one in judged.hidden}
    newest = [one for one in found.ranked if one.sequence >= shown_from and one.own_score > 0.0]
    return any(
        one.own_score + beside >= least
        for one in newest
        if one.sequence not in hidden and found.entries[one.sequence].role == "assistant"
    )


def _answers(found: Found, new: Sequence[RankedEntry]) -> list[_Row]:
    """For each stretch what answers it, the best first, with what it shares."""
    least = [math.log(max(found.passage_count * count / _BY_CHANCE, 1.0)) for count in found.known_terms]
    sharing = [one for one in new if any(map(gt, one.shared, least))]
    terms = frozenset[str]().union(*(one.terms for one in found.stretches))
    again = {one.sequence for one in sharing if _asked_before(found, one.sequence, terms)}
    rows: list[_Row] = []
    for row in range(len(found.stretches)):
        best = max((one.shared[row] for one in sharing), default=0.0)
        kept = [one for one in sharing if one.shared[row] > max(least[row], _BESIDE_BEST * best)]
        kept.sort(key=lambda one: (one.sequence in again, -one.shared[row]))
        rows.append([(one.shared[row], one.sequence) for one in kept])
    return rows


def _plain(found: Found, rows: Sequence[_Row], *, alone: bool) -> list[_Row]:
    """The answers that are worth their room whatever else is said.

    Those of a stretch that asks, or that stands `alone`; of others where so much would by chance be shared with no pair
    of words of all that is said.
    """
    least = math.log(max(found.passage_count * sum(found.known_terms) ** 2, 1))
    answered = [(one.asks or alone, ones) for one, ones in zip(found.stretches, rows, strict=True) if ones]
    return [ones for is_plain, ones in answered if is_plain or ones[0][0] > least]


def _whole_score(found: Found, new: Sequence[RankedEntry]) -> float:
    best = max(new, key=lambda one: one.own_score, default=None)
    if best is None:
        return 0.0
    part = max((one / known for one, known in zip(best.shared, found.known_nats, strict=True) if known), default=0.0)
    return best.own_score / (part or 1.0)


def _least_part(found: Found) -> float:
    low, high = _LEAST_OF_OWN
    brief, long = _TELLING_NATS
    return low + (high - low) * min(max((sum(found.known_nats) - brief) / (long - brief), 0.0), 1.0)


def _asked_before(found: Found, seq: int, terms: frozenset[str]) -> bool:
    """Whether an entry is an earlier asking of the same: it comes behind what answers."""
    entry = found.entries[seq]
    return entry.role == "user" and repeats(entry.text, terms)


def _asks(found: Found, new: Sequence[RankedEntry], rows: Sequence[_Row], *, said: Sequence[int]) -> Asks:
    """How much is asked in what is `said` besides small talk."""
    asking = [row for row, one in enumerate(found.stretches) if one.asks]
    if asking:
        return "a question" if len(said) == 1 or any(rows[row] for row in asking) else "a little"
    if len(said) != 1 or not any(one.shared[said[0]] >= found.known_nats[said[0]] - _SLACK for one in new):
        return "nothing"
    covered = found.known_terms[said[0]]
    return "a question" if covered >= _SEVERAL else "a little" if covered >= _TWO else "nothing"
