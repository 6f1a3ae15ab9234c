"""Judges what is said by what is found for it: what answers it, how much it asks, and what is worth its room beside it.

A conversation that goes on says much that asks nothing, and what asks stands among reasons, greetings and pasted logs.
So each stretch of a message is judged alone, by what older messages share with it: words that nobody said before tell
nothing of what is asked. What is shared answers where so much would hardly be shared by chance.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from operator import gt
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.messages.message_text import notices_of
from langchain_tiered_memory.recall.filling import (
    POINTER_TOKENS,
    asks_again,
    nats_of,
    only_asks,
    price,
    told_by,
    wording_of,
)
from langchain_tiered_memory.recall.ranking import WEIGHTS
from langchain_tiered_memory.summaries.writers.extractive_calls import call_start
from langchain_tiered_memory.text.small_talk import only_reacts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from langchain_tiered_memory.recall.finding import Found
    from langchain_tiered_memory.recall.questions import Stretch
    from langchain_tiered_memory.recall.ranking import RankedEntry
    from langchain_tiered_memory.types.records import Entry

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
_SUBJECT = 0.5
"""Of what an entry would score that has all that anybody said, from which on it tells of the same subject."""
_TWO, _SEVERAL = 2, 3
"""Words of a message of one stretch, all that anybody said before, that one old message shares, where none is rare:
with two it may ask for that, with three it does, with a question mark or without. One makes small talk."""
_SLACK = 1e-6
_HAS_A_WORD = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was found for what is said, judged by what is out of sight."""

    best: tuple[int, ...]
    """`seq`s of what answers a stretch best, for each that is answered: shown before all else."""
    answers: frozenset[int]
    """`seq`s of all that answers one."""
    asks: Asks
    """However it is put."""
    goes_on: bool
    """Whether it goes on with what stands in view, so that it asks little of what does not."""
    hidden: tuple[RankedEntry, ...]
    """All that is out of sight, as ranked, of the same words the best."""
    unseen: Mapping[int, RankedEntry]
    """The same by number, with all that say the same."""
    least: float
    """What an entry must score that is no answer, to be quoted beside one that asks."""
    work: frozenset[int]
    """`seq`s of calls of tools and of what they gave: it can be had again, so only what answers is quoted."""

    def worth_quoting(self) -> list[RankedEntry]:
        """What is worth its room in a conversation that goes on: what answers; for who asks, what is said near that."""
        return [one for one in self.hidden if one.sequence in self.answers or self._is_near(one)]

    def _is_near(self, one: RankedEntry) -> bool:
        said = self.asks != "nothing" and one.sequence not in self.work
        return said and one.adds and one.own_score > self.least


def judge(found: Found, is_hidden: Callable[[int], bool]) -> Judged:
    """Judge what was found; `is_hidden` tells whether the entry of a `seq` is out of sight."""
    # The same words tell nothing more: those that are ranked best stand for them. A host's notes tell nothing at all.
    notes = notices_of(found.entries.values())
    once: dict[str, RankedEntry] = {}
    unseen: dict[int, RankedEntry] = {}
    shown: list[RankedEntry] = []
    for one in found.ranked:
        entry = found.entries.get(one.sequence)
        if entry is None or entry.seq in notes:
            continue
        if is_hidden(one.sequence):
            unseen[one.sequence] = one
            once.setdefault(wording_of(entry), one)
        else:
            shown.append(one)
    hidden = tuple(once.values())
    parts = [one.terms | one.pairs for one in found.stretches]
    new = [_with_its_head(found, one, parts) for one in hidden if one.adds]
    said = [row for row, one in enumerate(found.stretches) if not _greets(one)]
    # Beside other things that are said, what does not ask is answered only where all the less is shared by chance.
    beside = [row for row, one in enumerate(found.stretches) if not one.asks and len(said) != 1]
    rows, whole = _answers(found, new, beside=beside), _whole_score(found, new)
    asks = _asks(found, new, rows, said=said)
    work = frozenset(one.sequence for one in hidden if _is_work(found.entries[one.sequence]))
    plain = _plain(found, rows, beside=beside)
    best = sorted((-nats, seq) for nats, seq in (row[0] for row in plain))
    goes_on = asks == "a question" and _goes_on(found, hidden, shown, whole)
    return Judged(
        best=tuple(dict.fromkeys(seq for _, seq in best)),
        answers=frozenset(seq for ones in plain for _, seq in ones),
        asks=asks,
        goes_on=goes_on,
        hidden=hidden,
        unseen=unseen,
        least=(_least_part(found) if asks == "a question" and not goes_on else _SUBJECT) * whole,
        work=work,
    )


def _is_work(entry: Entry) -> bool:
    return entry.role == "tool" or (bool(entry.calls) and not entry.text[: call_start(entry.text)].strip())


def tokens_of(found: Found, seqs: Iterable[int], *, most_each: int | None = None) -> int:
    """About what it takes to quote these, long ones by passages that take `most_each`."""
    prices = (price(found.entries[seq]) + POINTER_TOKENS for seq in seqs)
    return sum(one if most_each is None else min(one, most_each) for one in prices)


def _answers(found: Found, new: Sequence[RankedEntry], *, beside: Sequence[int]) -> list[_Row]:
    """For each stretch what answers it, the best first, and what it shares; for those `beside` others not by habit."""
    least = _shared_by_chance(found)
    sharing = [one for one in _not_by_habit(found, new, least, beside=beside) if any(map(gt, one.shared, least))]
    terms = frozenset[str]().union(*(one.terms for one in found.stretches))
    rows: list[_Row] = []
    for row in range(len(found.stretches)):
        best = max((one.shared[row] for one in sharing), default=0.0)
        kept = [one for one in sharing if one.shared[row] > max(least[row], _BESIDE_BEST * best)]
        kept = [] if _greets(found.stretches[row]) else kept
        # An earlier asking comes behind what answers.
        kept.sort(key=lambda one: (asks_again(found.entries[one.sequence], terms), -one.shared[row]))
        rows.append([(one.shared[row], one.sequence) for one in kept])
    return rows


def _with_its_head(found: Found, one: RankedEntry, parts: Sequence[frozenset[str]]) -> RankedEntry:
    """An entry of which each passage shares what the first line does; `parts` are the terms and pairs of stretches."""
    if not any(one.shared):
        return one
    told = told_by(found, one.sequence)
    return one._replace(shared=tuple(max(nats_of(found, terms & each) for each in told) for terms in parts))


def _shared_by_chance(found: Found) -> list[float]:
    """For each stretch how much of it an entry shares by chance, in nats."""
    return [math.log(max(found.passage_count * count / _BY_CHANCE, 1.0)) for count in found.known_terms]


def _not_by_habit(
    found: Found, new: Sequence[RankedEntry], least: Sequence[float], *, beside: Sequence[int]
) -> list[RankedEntry]:
    """Those of `new` that share much, for stretches `beside` others without words that come together out of habit.

    Such are "let me know", and the caption of a picture.
    """
    sharing = [one for one in new if any(map(gt, one.shared, least))]
    rows = [row for row in beside if any(one.shared[row] > least[row] for one in sharing)]
    if not rows:
        return sharing
    said = {seq: [found.nats.keys() & one.terms.split() for one in its] for seq, its in found.passages.items()}
    asked = {one.sequence for one in sharing}
    for row in rows:
        terms = found.stretches[row].terms & found.nats.keys()
        told = _told(said, {term: found.nats[term] for term in terms}, asked)
        for place, one in enumerate(sharing):
            nats = min(one.shared[row], told[one.sequence])
            sharing[place] = one._replace(shared=(*one.shared[:row], nats, *one.shared[row + 1 :]))
    return sharing


def _told(
    said: Mapping[int, Sequence[AbstractSet[str]]], nats: Mapping[str, float], asked: Collection[int]
) -> dict[int, float]:
    """How much of these terms each entry `asked` shares, in nats: as far as no rarer one beside leads to expect it."""
    shared = {seq: [one & nats.keys() for one in passages] for seq, passages in said.items()}
    counts = Counter[str]()
    together = Counter[tuple[str, ...]]()
    for each in shared.values():
        for one in each:
            counts.update(one)
            together.update(combinations(sorted(one), 2))

    def beside(term: str, rarer: str) -> float:
        """What a term tells in a passage that has a rarer one: how many of the others that have that have both."""
        others = together[min(term, rarer), max(term, rarer)] - 1
        return -math.log((others + math.exp(-nats[term])) / counts[rarer])

    def told(one: AbstractSet[str]) -> float:
        rarest = sorted(one, key=lambda term: (-nats[term], term))
        return sum(
            min(nats[term], *(beside(term, rarer) for rarer in rarest[:place])) if place else nats[term]
            for place, term in enumerate(rarest)
        )

    return {seq: max(map(told, shared[seq]), default=0.0) for seq in asked}


def _greets(stretch: Stretch) -> bool:
    """Whether a stretch is small talk, or has no word and asks nothing: "1+2" chooses among what was just offered."""
    return only_reacts(stretch.text) or not (stretch.asks or _HAS_A_WORD.search(stretch.text))


def _plain(found: Found, rows: Sequence[_Row], *, beside: Sequence[int]) -> list[_Row]:
    """The answers that are worth their room whatever else is said.

    Those of a stretch that asks, or that stands alone; of those `beside` others where so much would by chance be shared
    with no pair of words of all that is said.
    """
    least = math.log(max(found.passage_count * sum(found.known_terms) ** 2, 1))
    return [ones for row, ones in enumerate(rows) if ones and (row not in beside or ones[0][0] > least)]


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


def _goes_on(found: Found, older: Sequence[RankedEntry], shown: Sequence[RankedEntry], whole: float) -> bool:
    """Whether what the user said last goes on with what is in view: that has more of it than by chance.

    Nothing older matches it as well. What stands beside it counts as much more for that as it does in any ranking,
    where it matches at all well. What the user asked before is no subject: it may wait for its answer still.
    """
    best = max((one.own_score for one in older), default=0.0)
    beside = {(found.asked_at or 0) - 1 - place: part * whole for place, part in enumerate(WEIGHTS.after)}

    def matches(one: RankedEntry) -> bool:
        entry = found.entries[one.sequence]
        if entry.role == "user" and only_asks(entry.text):
            return False
        with_place = one.own_score + beside.get(one.sequence, 0.0)
        return one.own_score > best or with_place >= max(best, _SUBJECT * whole)

    least = _shared_by_chance(found)
    return any(one.adds and any(map(gt, one.shared, least)) and matches(one) for one in shown)


def _asks(found: Found, new: Sequence[RankedEntry], rows: Sequence[_Row], *, said: Sequence[int]) -> Asks:
    """How much is asked in what is `said` besides small talk."""
    asking = [row for row in said if found.stretches[row].asks]
    if asking:
        return "a question" if len(said) == 1 or any(rows[row] for row in asking) else "a little"
    if len(said) != 1:
        return "nothing"
    if not any(one.shared[said[0]] >= found.known_nats[said[0]] - _SLACK for one in new):
        return "nothing"
    covered = found.known_terms[said[0]]
    return "a question" if covered >= _SEVERAL else "a little" if covered >= _TWO else "nothing"
