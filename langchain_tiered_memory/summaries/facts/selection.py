"""Which facts a view shows: as many as there is room for, from the whole span, by what they are worth a token."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.clauses import is_order, read
from langchain_tiered_memory.summaries.facts.frames import template_of
from langchain_tiered_memory.summaries.facts.listing import facts_list, headed, line_of
from langchain_tiered_memory.summaries.facts.related import COMMON_TERMS, SAME, SAYS_NOT_WHAT, form_of
from langchain_tiered_memory.summaries.facts.signs import LASTING, SURE, among_its_like
from langchain_tiered_memory.summaries.facts.supersession import rivals
from langchain_tiered_memory.summaries.facts.values import corrects
from langchain_tiered_memory.summaries.facts.written import only_ends, stated_in
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.text.similarity import are_alike
from langchain_tiered_memory.text.terms import analyse, rarity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from langchain_tiered_memory.types.records import Fact


LEAST_WORTH = 3.5
"""What is worth less, and no sure fact by its wording, is not listed, however much room there is: of statements planted
in talk by eight authors 94 to 100 % are worth more, of what is said around them 10 to 59 %."""
RAREST_TERMS = 4
"""Of a fact, whose rarity counts, and by which others are found that may say the same."""
RARITY_ODDS, DENSITY_ODDS = 3.0, 8.0
"""What the rarity of its rarest words that are no common ones, and of its terms on average, add to the log odds of a
fact: what a conversation says once, and more than a remark. Fitted on statements of seven authors planted in talk and
looked at on an eighth's, each in turn."""
MENTION_ODDS = 0.3
"""What each doubling of its mentions adds."""
_SELDOM = 3
"""Facts that share a word, at most, for it to be what they are about."""
_NEAREST = 32
"""Earlier facts with a word that one is held against, the last: of many that are alike each would be, else."""
ROUTINE = 4
"""Times that an order is given, each time of something else, from which it is how somebody works and no fact."""
_DAY_TOKENS = 6
"""Of a line with a date, about: the first fact of a day takes it along."""
_OF_A_NOTE = 0.5
"""Of the log odds of its weight, for what a model marked: it judged what is worth keeping, put first what would be
missed most, and a note has few words. They count where it marks more than there is room for."""
_MARKED_SHARE = 0.1
"""Of a model's statements, from which it marks what must last as it was asked: then what it left unmarked is told in
its summary, and nobody is asked whether that still holds. A model that marks less does not follow."""
_LEAST_TOKENS = 4
_COST_ODDS = 0.8
"""Of the log of its tokens, that is taken from a fact's log odds. All of it would list most facts were the odds right;
but short talk goes before long statements then."""
_LEAST_ODDS = 1e-3


def chosen_facts(
    facts: Sequence[Fact],
    *,
    room: int,
    lasting_room: int = 0,
    count_text: Callable[[str], int],
    told: str = "",
    first: Collection[str] = (),
    among: Sequence[Fact] = (),
) -> list[Fact]:
    """The facts worth showing, in their order.

    The weightiest first, those with the rarest words before others: what a conversation says once is what is lost
    when its messages fade. No place in the span is preferred, so early facts are not behind. Superseded ones are left
    out, and what `told`, prose that is shown as well, states already.

    The list, as `facts_list` writes it, has at most `room` tokens; `lasting_room`, where that is more, for facts that
    must last (`LASTING`). Ids in `first` are taken before all others: what they correct is shown. How rare words are is
    counted `among` these facts: those that were chosen once already have rare words, and few others.
    """
    stated = stated_in(told, facts) if told else [False] * len(facts)
    waiting = [fact for fact, is_told in zip(facts, stated, strict=True) if not is_told and fact.status == "active"]
    waiting = sorted(_marked(_without_routine(waiting, first), first), key=lambda one: (one.seq, one.id))
    speakers = frozenset(analyse(" ".join({fact.speaker for fact in facts})))
    terms = [frozenset(analyse(fact.text)) for fact in waiting]
    seen = Counter(term for mine in terms for term in mine)
    tokens = [count_text(line_of(fact)) + 1 for fact in waiting]
    everywhere = Counter(term for fact in among for term in frozenset(analyse(fact.text))) | seen
    worths = _worths(waiting, [mine - speakers for mine in terms], everywhere, among or waiting)
    prices = [
        _COST_ODDS * math.log(max(_LEAST_TOKENS, cost)) - worth for cost, worth in zip(tokens, worths, strict=True)
    ]
    tells = {term: math.log(1 + len(among or waiting) / times) for term, times in everywhere.items()}
    after: dict[int, list[int]] = {}
    for older, later in _said_later(waiting, terms, seen, tells):
        worths[later], prices[later] = max(worths[later], worths[older]), min(prices[later], prices[older])
        after.setdefault(older, []).append(later)
    doubtful = rivals(waiting)
    at = {fact.id: place for place, fact in enumerate(waiting)}
    chosen: list[int] = []
    days = set[tuple[tuple[bool, str], str]]()
    sharing: dict[str, list[int]] = {}
    spent = 0

    def rank(place: int) -> tuple[bool, bool, float, int]:
        fact = waiting[place]
        return fact.id not in first, fact.weight < LASTING, prices[place], -fact.seq

    def matters(place: int) -> bool:
        fact = waiting[place]
        return bool(terms[place]) and (worths[place] >= LEAST_WORTH or fact.weight >= SURE or fact.id in first)

    def later_of(place: int) -> Sequence[int]:
        """What has to be shown with one; what is taken before all others waits for nothing."""
        fact = waiting[place]
        return () if fact.id in first or fact.weight >= LASTING else after.get(place, ())

    for place in sorted(filter(matters, range(len(waiting))), key=rank):
        beside = [at[one] for one in doubtful.get(waiting[place].id, ()) if at[one] not in chosen]
        new_days = {(headed(waiting[one]), day(waiting[one].at)) for one in (place, *beside)} - days
        cost = sum(tokens[one] for one in (place, *beside)) + _DAY_TOKENS * len(new_days)
        most = max(room, lasting_room) if waiting[place].weight >= LASTING else room
        if place in chosen or spent + cost > most or any(later not in chosen for later in later_of(place)):
            continue
        rarest = sorted(terms[place], key=lambda term: (seen[term], term))[:RAREST_TERMS]
        near = {other for term in rarest for other in sharing.get(term, ())}
        value = waiting[place].value
        if any(value == waiting[other].value and are_alike(terms[place], terms[other]) for other in near):
            continue
        chosen += [place, *beside]  # where two values are told of one thing, none stands alone
        spent += cost
        days |= new_days
        for term in rarest:
            sharing.setdefault(term, []).append(place)
    while chosen and count_text(facts_list([waiting[place] for place in chosen])) > max(room, spent):
        chosen.pop()
    said = [place for place in chosen if not any(_is_part(place, other, waiting, terms, first) for other in chosen)]
    return [waiting[place] for place in sorted(said)]


def _worths(
    facts: Sequence[Fact], terms: Sequence[frozenset[str]], seen: Mapping[str, int], among: Sequence[Fact]
) -> list[float]:
    """How much each is worth showing: the log odds that it matters, its words held against those of the facts `among`.

    What a fact needs to be understood may have been put before it since: its wording may be none of theirs.
    """
    of = len(among)
    found: list[float] = []
    for fact, mine in zip(facts, terms, strict=True):
        weight = among_its_like(fact.weight)
        odds = math.log(max(weight, _LEAST_ODDS) / max(1 - weight, _LEAST_ODDS))
        odds *= _OF_A_NOTE if fact.by_model and fact.weight >= LASTING else 1.0
        telling = sorted((rarity(seen[term], of) for term in mine - COMMON_TERMS), reverse=True)[:RAREST_TERMS]
        rare = math.fsum(rarity(seen[term], of) for term in mine) / max(len(mine), 1)  # whatever the order of a set
        odds += RARITY_ODDS * sum(telling) / RAREST_TERMS + DENSITY_ODDS * rare
        found.append(odds + MENTION_ODDS * math.log2(max(fact.mentions, 1)))
    return found


def _said_later(
    facts: Sequence[Fact], terms: Sequence[frozenset[str]], seen: Mapping[str, int], tells: Mapping[str, float]
) -> list[tuple[int, int]]:
    """Places of facts, in order, each with that of a later one that may say otherwise of the same.

    The later one settles something, or has a figure of the same form ("the train gets in at 14:05", "her train,
    it's 15:40 now"), one of the two has a value, and they share a seldom word. Where it has such a figure, or takes
    something back outright, it is enough that the same speaker tells much of the same (`SAME`). It may take the
    place of the earlier, in whatever words, so that is never shown without it.
    """
    about = [mine - SAYS_NOT_WHAT for mine in terms]
    told = [math.fsum(tells[term] for term in mine) for mine in about]
    forms = [form_of(fact.value) for fact in facts]
    holders: dict[str, list[int]] = {}
    found: list[tuple[int, int]] = []
    for later, fact in enumerate(facts):
        if fact.by_model:
            continue
        settles, takes_back = "settles" in read(fact.text).signs, corrects(fact.text)
        again = [term for term in about[later] if term in holders]
        rarest = sorted(again, key=lambda term: (-tells[term], term))[:RAREST_TERMS]
        for place in {place for term in rarest for place in holders[term][-_NEAREST:]}:
            measures = forms[later] != "" and forms[place] == forms[later]
            if facts[place].seq == fact.seq or not (measures or settles or takes_back):
                continue
            shared = about[place] & about[later]
            is_same = (measures or takes_back) and facts[place].speaker == fact.speaker
            has_value = facts[place].value != "" or fact.value != ""
            least = SAME * math.sqrt(told[place] * told[later])
            if (has_value and min(seen[term] for term in shared) <= _SELDOM) or (
                is_same and math.fsum(tells[term] for term in shared) >= least
            ):
                found.append((place, later))
        for term in about[later]:
            holders.setdefault(term, []).append(later)
    return sorted(found)


def _is_part(
    place: int, other: int, facts: Sequence[Fact], terms: Sequence[frozenset[str]], first: Collection[str]
) -> bool:
    """Whether a model's note says all that one does, and more, or the same message is told on to the next sentence.

    Of notes, which name who they are about, and of goals. In others' own words "I eat meat" is no part of "I do not eat
    meat or fish". What is shown for what it corrects (`first`) is part of it where it only says that something is over.
    """
    fact, note = facts[place], facts[other]
    clause = fact.text.rstrip(".!")
    before, found, behind = note.text.partition(clause)
    if found and fact.seq == note.seq and len(fact.text) < len(note.text):
        return not (before[-1:].isalnum() or behind[:1].isalnum())
    if not note.by_model or not (fact.by_model or fact.kind == "goal"):
        return False
    if fact.id in first:
        return only_ends(fact) and terms[place] - SAYS_NOT_WHAT < terms[other] - SAYS_NOT_WHAT
    return terms[place] < terms[other] and fact.value == note.value


def marks_what_lasts(facts: Sequence[Fact]) -> bool:
    """Whether a model marks some of its statements as what must last, as it was asked."""
    by_model = [fact for fact in facts if fact.by_model]
    marked = sum(fact.weight >= LASTING for fact in by_model)
    return bool(marked) and marked >= _MARKED_SHARE * len(by_model)


def _marked(facts: Sequence[Fact], first: Collection[str]) -> list[Fact]:
    """Where a model marks what must last: that, and what rules read in users' words.

    Elsewhere all but what only says that a note is over, which is not listed any more.
    """
    if not marks_what_lasts(facts):
        over = [bool(fact.ends or fact.instead_of) and fact.weight < LASTING for fact in facts]
        return [fact for fact, is_over in zip(facts, over, strict=True) if fact.id in first or not is_over]
    return [
        fact
        for fact in facts
        if fact.id in first or fact.weight >= LASTING or (fact.by == "user" and not fact.by_model)
    ]


def _without_routine(facts: Sequence[Fact], first: Collection[str]) -> list[Fact]:
    """The facts without orders that are given again and again, alike but for a number or a name: these tell nothing."""
    given = Counter(template_of(fact.text) for fact in facts if is_order(fact.text))
    return [fact for fact in facts if fact.id in first or given[template_of(fact.text)] < ROUTINE]
