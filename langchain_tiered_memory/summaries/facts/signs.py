"""What tells a clause that states something in particular from talk: signs in its form and wording, each with a weight.

The weights are log odds, fitted once (logistic regression over statements planted into talk, in several fields and
phrasings) and rounded. What a clause names makes most of its weight: figures, dates, codes, people, a thing in two
words. Reactions and idle words are talk, and so is what has no word but the commonest; what somebody says of themselves
beside that is rather shown than not. What a model says must last weighs more than any wording.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.lexicon import COMMON, word_set

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_ONESELF = word_set("i me my mine i'm i've i'll i'd we our us ours let's lets we're we've we'll we'd")
_DID = re.compile(
    r"(?:^|[,;] |\band |\bbut |\byesterday,? |\brecently,? |\bfriday,? |\bweek(?:end)?,? )(?:i|we|he|she|they"
    r"|my [\w-]{2,20})"
    r"(?:['\u2019]ve| have| had| has)?(?: also| just| recently| finally| actually| even| already| both)?"
    r" (?:\w{2,20}[a-z]ed|went|bought|made|took|met|began|built|broke|brought|chose|drew|drove|fell|flew|found"
    r"|gave|grew|led|left|lost|paid|ran|rode|saw|sold|sent|spent|swam|taught|threw|won|wore|wrote|read|got|had"
    r"|been|did)\b"
)
"""What somebody did."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_BEGINS = {
    "idles": re.compile(
        r"(?:(?:and|but|so|yeah|yes|well|plus|now|then|also|actually|honestly|personally) )?(?:i"
        r"|we)(?:['\u2019](?:m|ve|ll|d|re)| am| have| will| would| are| can| could)?(?: all| just| really| still"
        r"| also| so| totally| completely| definitely| truly| always| never| super| gonna| going to| not| already"
        r"| kinda| actually){0,4} (?:agree|appreciate|understand|get it|get that|see (?:that|it|you|what|why|how)"
        r"|know|keep (?:it|ya|you|at|going|trying|in)|feel|hope|wish|bet|guess|think|imagine|sure|glad|happy"
        r"|proud|excited|thrilled|stoked|grateful|thankful|honou?red|blessed|lucky|sorry|amazed|ready|curious|hear"
        r"|believe|can['\u2019]t (?:wait|believe|imagine|thank|help)"
        r"|couldn['\u2019]t|can['\u2019]t|don['\u2019]t know|didn['\u2019]t|haven['\u2019]t|remember|forget"
        r"|mean|relate|wonder|getting there|here for|need to|have to|should|must|love (?:that|how|it|the|your|seeing"
        r"|hearing|to see|this)|like (?:that|how|it|the|your)"
        r"|enjoyed (?:it|that)|tell|let you|talk|share|apologi[sz]e|recommend|suggest|look forward"
        r"|looking forward|fine|good|ok|okay|doing (?:well|good|great|ok|fine|alright)|off to|there)\b"
    ),
    "small talk": cues.SMALL_TALK,
}
"""At the start of a clause in lower case."""

WEIGHTS: dict[str, float] = {
    "": -4.0,
    "path": 2.2,
    "figure": 1.8,
    "date": 1.5,
    "code": 1.5,
    "wide subject": 1.4,
    "full name": 1.2,
    "decision": 1.2,
    "correction": 1.2,
    "constraint": 1.0,
    "did": 0.8,
    "name": 0.8,
    "when": 0.8,
    "assistant": -0.3,
    "small talk": -0.7,
    "tells little": -0.8,
    "listed": -1.0,
    "idles": -1.2,
    "many words": -1.4,
    "tells nothing": -1.8,
    "long answer": -2.4,
}
"""Log odds of each sign; the empty one is what a clause begins with."""
PARTICULAR = frozenset({"path", "code", "date", "full name"})
"""A clause with one of these says something in particular however it is put."""
_ADVICE = frozenset({"long answer", "listed"})
"""What speaks against a clause as much as ever then."""
TALK = frozenset({"idles", "small talk", "tells nothing"})
OF_ONESELF = -3.3
"""Least log odds of what somebody says of themselves that is no talk: rather shown than not, behind what is more
particular."""
EASED = 0.5
"""Of what speaks against a clause that says something in particular."""

LASTING = 0.98
"""The weight of what a model says must last: above what any wording alone weighs, below a goal."""

SURE = 0.2
"""The weight from which what rules read in messages counts beside a model's words for them."""

_FEW_TELLING = 2
"""Fewer words that are not common tell nothing."""
_ENOUGH_TELLING = 3
"""Fewer tell little."""
_LONG_CHARS = 4
"""Characters from which a word of another script or language counts as several: it may be a whole clause."""


def worded(low: str) -> set[str]:
    """Signs in the wording of a clause in lower case."""
    words = frozenset(_WORD.findall(low.replace("\u2019", "'")))
    found = {name for name, pattern in _BEGINS.items() if pattern.match(low)}
    telling = sum(_LONG_CHARS if len(word) >= _LONG_CHARS and not word.isascii() else 1 for word in words - COMMON)
    if telling < _FEW_TELLING:
        found.add("tells nothing")
    elif telling < _ENOUGH_TELLING:
        found.add("tells little")
    if found.isdisjoint(TALK):
        if not words.isdisjoint(_OF_ONESELF):
            found.add("of oneself")
        if _DID.search(low):
            found.add("did")
    if cues.DECISION.search(low):
        found.add("decision")
    if cues.CONSTRAINT.search(low) or cues.ORDER.match(low):
        found.add("constraint")
    if cues.RELATIVE_TIME.search(low):
        found.add("when")
    return found


def weight_of(signs: Iterable[str]) -> float:
    """The weight of a clause with these signs, 0 to 1: the logistic function of their sum."""
    signs = frozenset(signs)
    given = [(sign, WEIGHTS.get(sign, 0.0)) for sign in signs]
    eased = EASED if signs & PARTICULAR else 1.0
    total = WEIGHTS[""] + sum(odds * (eased if odds < 0 and sign not in _ADVICE else 1.0) for sign, odds in given)
    if "of oneself" in signs and signs.isdisjoint(_ADVICE):
        total = max(total, OF_ONESELF)
    return round(1 / (1 + math.exp(-total)), 3)


def lasting(weight: float) -> float:
    """The weight of a statement that must last, by its wording's."""
    return LASTING + (1 - LASTING) * weight


def by_wording(weight: float) -> float:
    """The weight that a fact has by its wording, which decides among those that must last as among all others."""
    return (weight - LASTING) / (1 - LASTING) if weight >= LASTING else weight
