"""What tells a clause that states something in particular from talk: signs in its wording, each with its weight.

The weights are log odds, fitted once (logistic regression over statements planted into talk, in several fields and
phrasings) and rounded. No sign decides by itself: a clause without any cue is kept where it names rare things, and one
that praises or advises is not kept for its cue alone.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.talk import PERSONAL, signs_of_talk
from langchain_tiered_memory.text import lexicon as cues

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECOND_TEXT = "you your yours yourself you're you've you'll you'd"
_FIRST_TEXT = "i my me mine i'm i've i'll i'd"
_PLURAL_TEXT = "we our us ours let's lets we're we've we'll we'd"
_PRAISES_TEXT = (
    "great amazing awesome wonderful beautiful fantastic incredible inspiring lovely cool nice fun "
    "excited exciting happy "
    "glad proud love loved loving enjoy enjoyed enjoying important special perfect best interesting "
    "super delicious good "
    "better helpful meaningful rewarding worth passion passionate joy thrilled grateful appreciate "
    "hilarious fascinating "
    "crazy insane hard tough hope hopefully wish luck support supportive thank thanks thankful stunning breathtaking"
)
_HEDGES_TEXT = (
    "maybe perhaps might could would probably kinda guess seem seems wonder wondering feel feels felt "
    "supposed should may "
    "idk"
)
_GENERIC_TEXT = (
    "people everyone everything something anything thing things stuff life world someone somebody way "
    "lot lots time moment "
    "always really truly journey others whole every make makes making help helps feeling consider ensure"
)
_NOW_TEXT = "now since currently anymore"
_WORDED: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (name, frozenset(text.split()))
    for name, text in (
        ("second person", _SECOND_TEXT),
        ("first person", _FIRST_TEXT),
        ("first plural", _PLURAL_TEXT),
        ("praises", _PRAISES_TEXT),
        ("hedges", _HEDGES_TEXT),
        ("generic", _GENERIC_TEXT),
        ("tells of now", _NOW_TEXT),
    )
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SHAPED: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "in charge",
        re.compile(
            r"\b(?:in charge|responsib\w+|looks? after|looking after|takes? care of|contact|point person|runs"
            r"|run by|leads|leading|led by|heads|headed|owns|owner"
            r"|owned by|manages|managed by|handles|handled by|belongs? to|reports to|works (?:as|at|for|in)|signs"
            r"|took over|takes over|taking over|on call|assigned to|dealing with|person for|ask|coordinat\w+"
            r"|overse\w+"
            r"|supervis\w+|represents)\b"
        ),
    ),
    (
        "personal",
        re.compile(
            r"\b(?:allerg\w+|intoleran\w+|vegan|vegetarian|diabetic|asthma\w*|medication|prescri\w+|dose|born"
            r"|birthday|anniversary|married|wedding"
            r"|divorced|engaged|pregnant|lives? (?:in|at|on)|living (?:in|at)|moved (?:in|to)|address"
            r"|phone number|e-?mail|passport"
            r"|licen[cs]e|plate|password|passcode|pin|wifi|code|combination|locker|account|blood type|(?:is|are"
            r"|was|were) (?:called|named)|named|nickname\w*"
            r"|prefers?|favou?rite|can['\u2019]t stand|hates?|dislikes?|rather have|adopted|rescue[d]?|shelter"
            r"|majoring|graduat\w+|degree|surgery"
            r"|appointment|diagnos\w+)\b"
        ),
    ),
    (
        "scheduled",
        re.compile(
            r"\b(?:deadline|due|by (?:the|mon|tue|wed|thu|fri|sat|sun)\w*|on (?:mon|tues|wednes|thurs|fri|satur"
            r"|sun)day|until|at (?:noon|midnight)|expires?|renew\w*"
            r"|closes|opens|starts|begins|ends|departs|arrives|leaves|booked|reserved|scheduled|rescheduled"
            r"|postponed|flight"
            r"|next (?:week|month|year|mon|tues|wednes|thurs|fri|satur|sun)\w*)\b"
        ),
    ),
    (
        "placed",
        re.compile(
            r"\b(?:is in|are in|lives? (?:in|under|at)|sits? (?:in|under|at)|stored (?:in|at)|saved (?:in|at|as"
            r"|to|under)|kept (?:in|at)|went to|"
            r"put|(?:find|found|look) (?:it |them |the \w+ )?(?:in|at|under)|copy|located|committed|parked|key)\b"
        ),
    ),
    (
        "measured",
        re.compile(
            r"\b(?:comes? to|cost|costs|price|priced|budget|limit|limited|total|pay|pays|paid|charge[ds]?|fee"
            r"|rent|salary|weigh(?:s|ed)?|measured|counted|count"
            r"|takes|took|holds|fits|size|height|length|width|capacity|quota|version|port|rate|score|threshold"
            r"|timeout|maximum|minimum|at most"
            r"|at least|up to|no more than|tops? out|needed|needs|used|average|roughly|exactly|half|dozen)\b"
        ),
    ),
    (
        "settles",
        re.compile(
            r"\b(?:talked (?:me|us|him|her|them) into|any day|i['\u2019]d (?:pick|take|choose)|happening (?:in|at|on)"
            r"|decided|decision|agreed|settled|chose|chosen|choose|picked|picking|going (?:with|for|ahead)"
            r"|go(?:es)? with|went with|opted|approved|voted?|vote went|will be|gets"
            r"|going to (?:be|have|use|get)|it is for|sticking (?:to|with)|stick (?:to|with)|signed off"
            r"|final(?:ly|ised|ized)?|in the end|from now on"
            r"|adopt(?:ed|ing)?|switch(?:ed|ing)?|replac(?:ed|ing|es)|ordered|ruled out|drop(?:ped|ping)|instead)\b"
        ),
    ),
    ("marked up", re.compile(r"\*\*|`[^`]+`:|^\s*\w+:\s|[{}<>|=]")),
)
_BEGINS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("it", re.compile(r"(?:it|that|this|these|those|they|he|she|there)(?:['\u2019]\w+)?\b")),
    ("begins with a gerund", re.compile(r"\w{2,30}ing\b")),
    (
        "asks",
        re.compile(
            r"(?:what|how|why|where|who|which|do|does|did|are|is|can|could|would|will|have|has|any)\b",
        ),
    ),
)

WEIGHTS: dict[str, float] = {
    "": -4.0,
    "date": 1.5,
    "path": 2.2,
    "code": 1.5,
    "figure": 1.8,
    "unit": 0.4,
    "wide subject": 1.4,
    "full name": 1.2,
    "name": 0.8,
    "personal": 1.4,
    "in charge": 1.2,
    "correction": 1.2,
    "decision": 1.2,
    "constraint": 1.0,
    "settles": 0.7,
    "few words": 0.7,
    "first plural": 0.4,
    "scheduled": 0.3,
    "measured": 0.3,
    "placed": 0.2,
    "subject": 0.2,
    "tells of now": 0.2,
    "hedges": -0.3,
    "assistant": -0.3,
    "begins with a gerund": -0.5,
    "it": -0.7,
    "small talk": -0.7,
    "generic": -0.8,
    "asks": -2.0,
    "second person": -1.2,
    "many words": -1.4,
    "exclaims": -1.1,
    "marked up": -1.5,
    "praises": -1.3,
    "long answer": -2.4,
    "listed": -1.0,
    "announces": -2.0,
    "reacts": -1.2,
    "idles": -1.2,
    "tells nothing": -1.8,
    "tells little": -0.8,
    "impersonal": -1.0,
    "addresses": -0.5,
}
"""Log odds of each sign; the empty one is what a clause begins with."""
PARTICULAR = frozenset({"path", "code", "unit", "date", "full name"})
"""A clause with one of these says something in particular however it is put."""
ALWAYS = frozenset({"long answer", "listed", "asks"})
"""What speaks against a clause as much as ever then."""
OF_ONESELF = -3.3
"""Least log odds of what somebody tells of their own life: rather shown than not, behind what is more particular."""
TALK = frozenset(
    {
        "announces",
        "reacts",
        "idles",
        "small talk",
        "tells nothing",
        "tells little",
        "second person",
        "asks",
        "long answer",
        "listed",
        "marked up",
    }
)
"""Signs of talk: with one of these a clause is not shown for being about somebody's own life."""
BEARING = (
    PARTICULAR
    | PERSONAL
    | {
        "figure",
        "small figure",
        "name",
        "wide subject",
        "own",
        "in charge",
        "personal",
        "decision",
        "constraint",
        "correction",
        "settles",
        "first person",
        "first plural",
        "scheduled",
        "placed",
        "measured",
    }
)
"""Signs that a clause is about somebody or something in particular."""
EASED = 0.5
"""Of what speaks against a clause that says something in particular."""


LASTING = 0.98
"""The weight of what a model says must last: above what any wording alone weighs, below a goal."""


def worded(low: str) -> set[str]:
    """Signs in the wording of a clause in lower case."""
    words = frozenset(_WORD.findall(low.replace("\u2019", "'")))
    found = {name for name, cue in _WORDED if words & cue}
    found.update(name for name, pattern in _SHAPED if pattern.search(low))
    found.update(name for name, pattern in _BEGINS if pattern.match(low))
    if "!" in low:
        found.add("exclaims")
    for name, pattern in (
        ("decision", cues.DECISION),
        ("constraint", cues.CONSTRAINT),
        ("correction", cues.CORRECTION),
        ("correction", cues.CANCELLED),
    ):
        if pattern.search(low):
            found.add(name)
    if cues.SMALL_TALK.match(low):
        found.add("small talk")
    found |= signs_of_talk(low, words)
    return found


def weight_of(signs: Iterable[str], *, weights: Mapping[str, float] = WEIGHTS) -> float:
    """The weight of a clause with these signs, 0 to 1: the logistic function of their sum."""
    signs = frozenset(signs)
    if not signs & BEARING:
        signs |= {"impersonal"}
    given = [(sign, weights.get(sign, 0.0)) for sign in signs]
    eased = EASED if signs & PARTICULAR else 1.0
    total = weights[""] + sum(odds * (eased if odds < 0 and sign not in ALWAYS else 1.0) for sign, odds in given)
    if signs & PERSONAL and not signs & TALK:
        total = max(total, OF_ONESELF)
    return round(1 / (1 + math.exp(-total)), 3)


def lasting(weight: float) -> float:
    """The weight of a statement that must last, by its wording's."""
    return LASTING + (1 - LASTING) * weight


def by_wording(weight: float) -> float:
    """The weight that a fact has by its wording, which decides among those that must last as among all others."""
    return (weight - LASTING) / (1 - LASTING) if weight >= LASTING else weight
