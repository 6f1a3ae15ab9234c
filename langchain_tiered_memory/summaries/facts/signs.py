"""What tells a clause that states something in particular from talk: a few signs in its wording, each with its weight.

How rare its words are among all that was said decides most, and is looked at where a list is made (`worth`). Beside
that these signs are what is left of some forty: each of the others was left out without loss where statements were
planted into talk, in the words of five authors, and where questions cite what people said. Their weights are log odds,
fitted on some of the authors, looked at on another, and rounded. `benchmarks.fact_signs` prints what each adds. None
decides by itself. What a model says must last weighs more than any wording.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.small_talk import reacts, telling_words

if TYPE_CHECKING:
    from collections.abc import Iterable

SETTLING = word_set(
    "decide decided decision agreed settled chose chosen pick picked booked approved promised instead now anymore new "
    "since change changed move moved switch switched drop dropped replaced cancelled canceled"
)
"""Words of what settles something, or changes it."""
IN_WORDS = {
    "number": word_set(
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half quarter dozen "
        "third fourth fifth"
    ),
    "day": word_set(
        "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays "
        "saturdays sundays weekend weekends"
    ),
    "month": word_set("january february march april june july august september october november december"),
    "hour": word_set("noon midnight morning mornings evening evenings night nights"),
    "span": word_set("fortnight weekly daily monthly yearly"),
}
"""Words of what figures say too, by what they are the measure of."""
_WORDED: dict[str, frozenset[str]] = {
    "second person": word_set("you your yours yourself you're you've you'll you'd"),
    "praises": word_set(
        "great amazing awesome wonderful beautiful fantastic incredible inspiring lovely cool nice fun excited "
        "exciting happy glad proud love loved loving enjoy enjoyed enjoying important special perfect best "
        "interesting super delicious good better helpful meaningful rewarding worth passion passionate joy thrilled "
        "grateful appreciate hilarious fascinating crazy insane hard tough hope hopefully wish luck support "
        "supportive thank thanks thankful stunning breathtaking feel feels feeling felt emotion emotions emotional "
        "faith dream dreams inspire inspires inspired inspiration memories memorable motivated motivation heart soul "
        "vibe vibes journey moment moments creativity express comfort like"
    ),
    "settles": SETTLING,
    "restricts": word_set(
        "never always must only nobody without except unless avoid not don't doesn't can't cannot won't mustn't "
        "shouldn't please no nothing none every each whoever until till"
    ),
    "personal": word_set(
        "allergic allergy intolerant vegan vegetarian diabetic medication born birthday anniversary married wedding "
        "divorced engaged pregnant address passport license licence password passcode code account called named "
        "nickname prefer prefers favourite favorite hate hates dislike dislikes adopted graduated degree surgery "
        "appointment diagnosed"
    ),
    "in words": frozenset().union(*IN_WORDS.values()),
}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SHAPED = {"decision": cues.DECISION, "constraint": cues.CONSTRAINT}

PARTICULAR = frozenset({"path", "code", "date", "figure"})
"""Forms of what is exact: a clause has at most one of them as its value."""
WEIGHTS: dict[str, float] = {
    "": -2.7,
    **dict.fromkeys(sorted(PARTICULAR), 0.8),
    "full name": 0.6,
    "name": 0.6,
    "in words": 0.4,
    "settles": 0.6,
    "decision": 0.6,
    "restricts": 0.5,
    "personal": 0.8,
    "wide subject": 0.2,
    "second person": -0.6,
    "tells little": -0.5,
    "praises": -0.7,
    "small talk": -0.7,
    "assistant": -0.6,
    "tells nothing": -1.4,
    "long answer": -2.0,
}
"""Log odds of each sign; the empty one is what a clause begins with."""
TALK = frozenset({"second person", "praises", "small talk", "tells little", "tells nothing"})
"""Signs of talk."""

LASTING = 0.98
"""The weight of what a model says must last: above what any wording alone weighs, below a goal."""

FILLER = 0.033
"""What weighs less only reacts, praises or agrees, whatever it is about, and is no fact."""

SURE = 0.2
"""The weight from which what rules read in messages counts beside a model's words for them."""

_FEW_TELLING = 2
"""Fewer words that are not common tell nothing."""
_ENOUGH_TELLING = 3
"""Fewer tell little."""


def worded(low: str) -> set[str]:
    """Signs in the wording of a clause in lower case."""
    words = frozenset(_WORD.findall(low.replace("\u2019", "'")))
    found = {name for name, cue in _WORDED.items() if words & cue}
    found.update(name for name, pattern in _SHAPED.items() if pattern.search(low))
    if cues.ORDER.match(low):
        found.add("constraint")
    if "constraint" in found:
        found.add("restricts")
    if "decision" in found or cues.CORRECTION.search(low) or cues.CANCELLED.search(low):
        found.add("settles")
    if reacts(low):
        found.add("small talk")
    telling = telling_words(low)
    if telling < _FEW_TELLING:
        found.add("tells nothing")
    elif telling < _ENOUGH_TELLING:
        found.add("tells little")
    return found


def weight_of(signs: Iterable[str]) -> float:
    """The weight of a clause with these signs, 0 to 1: the logistic function of their sum."""
    total = WEIGHTS[""] + sum(WEIGHTS.get(sign, 0.0) for sign in signs)
    return round(1 / (1 + math.exp(-total)), 3)


def lasting(weight: float, *, before: float) -> float:
    """The weight of a statement that a model marked, by its wording's and the share of those that stand before it."""
    return LASTING + (1 - LASTING) * (weight + 1 - before) / 2


def among_its_like(weight: float) -> float:
    """The weight that decides among what a model marked, as that by its wording does among all others, 0 to 1."""
    return (weight - LASTING) / (1 - LASTING) if weight >= LASTING else weight
