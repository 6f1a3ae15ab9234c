"""What tells a clause that states something in particular from talk: signs in its wording, each with its weight.

The weights are log odds, fitted once (logistic regression over statements planted into talk, in several fields and
phrasings) and rounded; that of what settles something was raised afterwards, so that decisions keep their place among
other facts in a list. `benchmarks.fact_signs` prints what each sign adds; who is in charge adds nothing there, and in a
list it keeps who does what. No sign decides by itself: a clause without any cue is kept where it names rare things, and
one that praises or advises is not kept for its cue alone. Praise, agreement, thanks, reactions, wisdom of no particular
case and the announcement of a picture are talk, however rare their words are; on the other side stand what somebody
did, has, plans or likes, and when. What a model says must last weighs more than any wording.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.lexicon import CANCELLED, COMMON, word_set

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDED = {
    "second person": word_set("you your yours yourself you're you've you'll you'd"),
    "praises": word_set(
        "great amazing awesome wonderful beautiful fantastic incredible inspiring lovely cool nice fun excited "
        "exciting happy glad proud love loved loving enjoy enjoyed enjoying important special perfect best "
        "interesting super delicious good better helpful meaningful rewarding worth passion passionate joy thrilled "
        "grateful appreciate hilarious fascinating crazy insane hard tough hope hopefully wish luck support "
        "supportive thank thanks thankful stunning breathtaking"
    ),
    "generic": word_set(
        "people everyone everything something anything thing things stuff life world someone somebody way lot lots "
        "time moment always really truly journey others whole every make makes making help helps feeling consider "
        "ensure"
    ),
}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SHAPED = {
    "in charge": re.compile(
        r"\b(?:in charge|responsib\w+|looks? after|looking after|takes? care of|contact|point person|runs"
        r"|run by|leads|leading|led by|heads|headed|owns|owner|owned by|manages|managed by|handles|handled by"
        r"|belongs? to|reports to|works (?:as|at|for|in)|signs"
        r"|took over|takes over|taking over|on call|assigned to|dealing with|person for|ask|coordinat\w+"
        r"|overse\w+|supervis\w+|represents)\b"
    ),
    "personal": re.compile(
        r"\b(?:allerg\w+|intoleran\w+|vegan|vegetarian|diabetic|asthma\w*|medication|prescri\w+|dose|born"
        r"|birthday|anniversary|married|wedding|divorced|engaged|pregnant|lives? (?:in|at|on)|living (?:in|at)"
        r"|moved (?:in|to)|address"
        r"|phone number|e-?mail|passport|licen[cs]e|plate|password|passcode|pin|wifi|code|combination|locker"
        r"|account|blood type|(?:is|are|was|were) (?:called|named)|named|nickname\w*"
        r"|prefers?|favou?rite|can['\u2019]t stand|hates?|dislikes?|rather have|adopted|rescue[d]?|shelter"
        r"|majoring|graduat\w+|degree|surgery|appointment|diagnos\w+)\b"
    ),
    "settles": re.compile(
        r"\b(?:talked (?:me|us|him|her|them) into|any day|i['\u2019]d (?:pick|take|choose)|happening (?:in|at|on)"
        r"|decided|decision|agreed|settled|chose|chosen|choose|picked|picking|going (?:with|for|ahead)"
        r"|go(?:es)? with|went with|opted|approved|voted?|vote went|will be|gets"
        r"|going to (?:be|have|use|get)|it is for|sticking (?:to|with)|stick (?:to|with)|signed off"
        r"|final(?:ly|ised|ized)?|in the end|from now on"
        r"|adopt(?:ed|ing)?|switch(?:ed|ing)?|replac(?:ed|ing|es)|ordered|ruled out|drop(?:ped|ping)|instead)\b"
    ),
    "when": re.compile(
        r"\b(?:yesterday|tonight|tomorrow|(?:this|last|next|past) (?:week(?:end)?|month|year|summer|winter"
        r"|spring|fall|night|mon|tue|tues|wed|thu|thur|thurs"
        r"|fri|sat|sun|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:weeks?|months?|years?|days?) ago|recently"
        r"|since (?:high|college|childhood|19|20)|as a (?:kid|child))\b"
    ),
    "did": re.compile(
        r"(?:^|[,;] |\band |\bbut |\byesterday,? |\brecently,? |\bfriday,? |\bweek(?:end)?,? )(?:i|we|he|she|they"
        r"|my [\w-]{2,20})"
        r"(?:['\u2019]ve| have| had| has)?(?: also| just| recently| finally| actually| even| already| both)?"
        r" (?:\w{2,20}[a-z]ed|went|bought|made|took|met|began|built|broke|brought|chose|drew|drove|fell|flew|found"
        r"|gave|grew|led|left|lost|paid|ran|rode|saw|sold|sent|spent|swam|taught|threw|won|wore|wrote|read|got|had"
        r"|been|did)\b"
    ),
    "plans": re.compile(
        r"\b(?:(?:i|we)(?:['\u2019]m| am|['\u2019]re| are|['\u2019]ve been| have been)(?: also| still| currently"
        r"| just)? (?:planning|thinking (?:of|about)|looking (?:for|into|at)|applying|working (?:on|at|in|as|with)"
        r"|studying|learning|taking|training|saving|preparing|starting|moving|getting|trying|hoping|considering"
        r"|writing|building|creating|reading|going (?:to|on|through))|sign(?:ed|ing) up|enrolled"
        r"|applied (?:to|for)|keen on|interested in)\b"
    ),
    "has or is": re.compile(
        r"\b(?:(?:i|we)(?:['\u2019]ve got| have| got| own| had| run| teach| study| play| work| live| collect"
        r"| speak)(?: a| an| the| two| three| four| my| our| some| another| in| at| for| as| on| with)\b"
        r"|(?:i['\u2019]m|i am) (?:an? (?!bit|lot|little)|allergic|originally|from|in (?:my|a)|into|on (?:a|the))"
        r"|(?:big|huge) fan|(?:i|we) (?:really |also |usually |personally |mostly )?(?:like|love|enjoy|hate|prefer"
        r"|avoid|dislike|adore|play) (?:\w+ing|to \w+|\w+s)\b)"
    ),
    "decision": cues.DECISION,
    "constraint": cues.CONSTRAINT,
    "correction": cues.CORRECTION,
}
_BEGINS = {
    "begins with a gerund": re.compile(r"\w{2,30}ing\b"),
    "asks": re.compile(r"(?:what|how|why|where|who|which|do|does|did|are|is|can|could|would|will|have|has|any)\b"),
    "announces": re.compile(
        r"(?:(?:and|but|so|oh|wow|yeah|yes|yep) )?(?:here(?:['\u2019]s| is| are| it is| you go)|check (?:it|this"
        r"|that|them|out|my)"
        r"|take a look|have a look|see (?:this|the pic|below)|look at|this is (?:a|the|my) (?:pic|photo|picture)"
        r"|(?:i['\u2019]ll |let me )?(?:send|show|share|tell) (?:you|ya)|feel free|let me know|spill the"
        r"|hope (?:this|that|you|all|it)|good luck|best of|enjoy|keep (?:me|us|ya|you) posted|(?:see|talk to"
        r"|chat) (?:you|ya|soon)"
        r"|(?:caring|best|warm) |remember to|take (?:care|good care)|don['\u2019]t (?:worry|forget)|cheers"
        r"|congrat\w*|highly recommend|bet |what (?:a|an) |how )"
    ),
    "reacts": re.compile(
        r"(?:(?:and|but|so|oh|wow|aww?|yeah|yes|yep|yup|nah|haha+|lol|well|plus|hm+|omg|no|same)[,!.]? ){0,3}"
        r"(?:(?:that|this|it|they|those|these|you|your)(?:['\u2019](?:s|re|d|ve)| is| was| are| were| must(?: be"
        r"| have been)?)? (?:really|definitely|totally|truly|so|such|always|just|quite|pretty|sounds?|looks?|means?"
        r"|brings?|inspires?|feels?|sure)\b|sounds|looks (?:like|so|great|good)|glad|proud|love (?:the|that|your"
        r"|how|it|this|to)|so (?:glad|happy|cool|much|nice|true|proud|sorry|sweet|great|many|excited)"
        r"|can['\u2019]t wait|looking forward|long time|means|long live|no (?:worries|doubts?|problem|way|wonder)"
        r"|same here|totally|absolutely|definitely|exactly|agreed|indeed|of course|for sure|thanks?|thank you"
        r"|sorry (?:to|about|for|you|that)|welcome|appreciat\w+|wishing|sending|always (?:up|here|happy)|been (?:a"
        r"|so)|so much|seeing|knowing|realizing|just (?:seeing|being))\b"
    ),
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
"""At the start of a clause in lower case; `_SHAPED` stand anywhere in it."""

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
    "settles": 1.0,
    "subject": 0.2,
    "assistant": -0.3,
    "begins with a gerund": -0.5,
    "small talk": -0.7,
    "generic": -0.8,
    "asks": -2.0,
    "second person": -1.2,
    "praises": -1.3,
    "long answer": -2.4,
    "listed": -1.0,
    "announces": -2.0,
    "reacts": -1.2,
    "idles": -1.2,
    "tells nothing": -1.8,
    "tells little": -0.8,
}
"""Log odds of each sign; the empty one is what a clause begins with."""
PERSONAL = frozenset({"did", "plans", "has or is", "when"})
"""Signs that somebody tells of their own life."""
PARTICULAR = frozenset({"path", "code", "unit", "date", "full name"})
"""A clause with one of these says something in particular however it is put."""
ALWAYS = frozenset({"long answer", "listed", "asks"})
"""What speaks against a clause as much as ever then."""
OF_ONESELF = -3.3
"""Least log odds of what somebody tells of their own life: rather shown than not, behind what is more particular."""
TALK = word_set(
    "announces|reacts|idles|small talk|tells nothing|tells little|second person|asks|long answer|listed", "|"
)
"""Signs of talk: with one of these a clause is not shown for being about somebody's own life."""
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
    found = {name for name, cue in _WORDED.items() if words & cue}
    found.update(name for name, pattern in _SHAPED.items() if pattern.search(low))
    found.update(name for name, pattern in _BEGINS.items() if pattern.match(low))
    if CANCELLED.search(low):
        found.add("correction")
    telling = sum(_LONG_CHARS if len(word) >= _LONG_CHARS and not word.isascii() else 1 for word in words - COMMON)
    if telling < _FEW_TELLING:
        found.add("tells nothing")
    elif telling < _ENOUGH_TELLING:
        found.add("tells little")
    return found


def weight_of(signs: Iterable[str]) -> float:
    """The weight of a clause with these signs, 0 to 1: the logistic function of their sum."""
    signs = frozenset(signs)
    given = [(sign, WEIGHTS.get(sign, 0.0)) for sign in signs]
    eased = EASED if signs & PARTICULAR else 1.0
    total = WEIGHTS[""] + sum(odds * (eased if odds < 0 and sign not in ALWAYS else 1.0) for sign, odds in given)
    if signs & PERSONAL and not signs & TALK:
        total = max(total, OF_ONESELF)
    return round(1 / (1 + math.exp(-total)), 3)


def lasting(weight: float) -> float:
    """The weight of a statement that must last, by its wording's."""
    return LASTING + (1 - LASTING) * weight


def by_wording(weight: float) -> float:
    """The weight that a fact has by its wording, which decides among those that must last as among all others."""
    return (weight - LASTING) / (1 - LASTING) if weight >= LASTING else weight
