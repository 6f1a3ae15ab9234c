"""How much a statement tells to somebody who reads it alone, long afterwards: by its wording, in English at best.

What happened, what is planned and who somebody is tells much; agreement, thanks, praise and what leans on the sentence
before it tell next to nothing. A wording in no list here weighs 1, so other languages are left as they are.
"""

from __future__ import annotations

import re

from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.statements import leans

_LEAST = 0.45

_CALLED = r"(?:(?:oh|so|and|but|well|aww?|ha|hey|yeah|wow),? ){0,2}"
_MOOD = (
    r"(?:amazing|awesome|great|cool|nice|lovely|wonderful|fantastic|incredible|beautiful|sweet|cute|fun|impressive"
    r"|inspiring|interesting|exciting|adorable|gorgeous|delicious|perfect|super|brave|special|peaceful|relaxing"
    r"|refreshing|important|good|fancy|pretty|calming|tough|hard|true|powerful|thoughtful|touching|rewarding)"
)
_REACTS = re.compile(
    rf"\W{{0,3}}{_CALLED}(?:i (?:\d{{1,3}}% |totally |completely |fully |really |so |couldn['\u2019]t |do )?"
    r"(?:agree|hear you|feel you|bet|appreciate|admire|get (?:it|that|you)|understand|hope|wish|know,)"
    r"|i(?:['\u2019]m| am) (?:\w{1,12} )?(?:glad|happy|proud|sorry|excited|thrilled|stoked|grateful|thankful|here)\b"
    r"(?! to (?:announce|share|say|tell))"
    rf"|(?:what|how|such) (?:an? |so )?(?:\w{{1,12}} )?{_MOOD}|so {_MOOD}|(?:sounds?|looks|seems?"
    rf"|feels) (?:like|so|really|pretty|{_MOOD})\b"
    r"|(?:thanks?|thank you|congrat\w{0,12}|kudos|cheers|welcome|hope|enjoy|keep (?:it|up|on|going|shining"
    r"|being|pushing)|good (?:for|luck|job|call|point)"
    r"|long time|best of|let me know|can['\u2019]t wait|no (?:worries|way)|me too"
    r"|same here|of course"
    r"|indeed|remember, |go for it|have (?:a|an|fun)|take care|take it easy|my pleasure|guess what"
    r"|you know|it depends)\b"
    r"|i apologi[sz]e\b|here['\u2019]s (?:an?|the|some|my) (?:pic|photo|picture|link|one)"
    r"|something (?:exciting|great|awesome|amazing|cool))"
)
_PRAISES = re.compile(
    rf"\W{{0,3}}{_CALLED}(?:you(?:['\u2019](?:re|ve|ll|d))?|your)\b(?! (?:said|asked|told|mentioned|need|must))"
    rf"|.{{0,90}}\b(?:is|are|was|were|look|looks|so|really|pretty|super|such a"
    rf"|['\u2019]s) (?:an? )?(?:\w{{1,12}} )?{_MOOD}"
    r"[.! ]{0,4}$"
)
_POINTS_BACK = re.compile(
    r"\w{2,16}ly, (?:it|they|he|she|that|this|we both)\b|(?:plus|also|and|yeah),? (?:it|they|that|this)\b"
    r"|.{0,60}\b(?:made|chose|got|did|done|do|use[ds]?|took|take|bought|painted|gave|keep|kept|saw|have"
    r"|had|find|found|try"
    r"|tried|enjoy(?:ed)?|love[ds]?|like[ds]?|said|mean|remember) (?:it|them|this|that|those"
    r"|these)(?: \w{1,12})?[.,!]"
    r"|.{0,60}\b(?:made|chose|bought|painted|took) (?:it|them|this)\b|.{0,100}\bagree more\b"
)
_HAPPENED = re.compile(
    r"\b(?:i|we|he|she|they)(?:['\u2019]ve| have| had)? ?(?:(?:just|also|recently|finally|actually|even"
    r"|already) ){0,2}"
    r"(?:(?!need|want|lov|lik)\w{2,20}ed|went|got|took|made|met|saw|bought|found|began|won|lost|ran|wrote"
    r"|gave|built|quit"
    r"|left|came|became|did|chose|flew|drove|taught|sold|spent|told|been|gone|read|grew|caught|broke|fell)\b"
)
_PLANNED = re.compile(
    r"\b(?:i|we)(?:['\u2019]m| am|['\u2019]re| are)? ?(?:going to|gonna|planning|plan to|looking (?:to"
    r"|for|into)|hoping to"
    r"|thinking (?:of|about)|considering|preparing|decided|want to|need to|trying to|working on|saving|applying)\b"
    r"|\b(?:i|we)(?:['\u2019]ll| will) \w"
)
_PERSONAL = re.compile(
    r"\bmy (?:\w{1,20} ){0,2}(?:is|was|are|has|have|lives?|works?|name)\b"
    r"|\bi(?:['\u2019]m| am) (?:an?|from|allergic|married|single|\d)\b|\b(?:i|we) (?:live|work|own|have"
    r"|study|play|teach)\b"
)
_ADVISES = re.compile(
    r"(?:consider|use|make|try|ensure|check|remember|keep|look|create|set|include|add|choose|avoid|start|stay"
    r"|research"
    r"|take|be|highlight|review|practice|practise|identify|focus|monitor|provide|offer|develop|explore"
    r"|join|highlight)\b"
    r"|[^:.]{3,60}: "
)
_FEW_WORDS, _SOME_WORDS = 4, 6
_REACTION, _BRIEF, _SHORT, _PRAISE, _LEANING = 0.25, 0.35, 0.75, 0.4, 0.55
_EVENT, _PLAN, _FACT, _FIGURE = 1.5, 1.35, 1.25, 1.1
_ASSISTANT, _ADVICE, _LISTING = 0.75, 0.6, 0.5
_MANY_ITEMS = 3


def telling(text: str, *, advised: bool = False) -> float:
    """What the wording of a statement makes of its worth, for a reader who sees nothing else: about 0.1 to 2.

    Args:
        text: One statement.
        advised: Whether an assistant says it: general advice tells less than what it is about.
    """
    low = cues.lowered(text).replace("\u2019", "'")
    weight = _substance(text, low)
    weight *= _LEANING if leans(text) or _POINTS_BACK.match(low) else 1.0
    weight *= _LISTING if text.count(";") >= _MANY_ITEMS or text[:1].isdigit() or text.startswith("- ") else 1.0
    if advised:
        return weight * _ASSISTANT * (_ADVICE if _ADVISES.match(low) else 1.0)
    if _HAPPENED.search(low):
        weight *= _EVENT
    elif _PLANNED.search(low):
        weight *= _PLAN
    elif _PERSONAL.search(low):
        weight *= _FACT
    return weight * (_FIGURE if any(char.isdigit() for char in text) else 1.0)


def is_filler(text: str) -> bool:
    """Whether a statement only reacts, praises or says two words: it is told only where nothing else was said."""
    return _substance(text, cues.lowered(text).replace("\u2019", "'")) < _LEAST


def _substance(text: str, low: str) -> float:
    weight = 1.0
    if cues.DECISION.search(low) is None:
        weight = _REACTION if _REACTS.match(low) or _talks(low) else _PRAISE if _PRAISES.match(low) else 1.0
    words = text.count(" ") + 1
    if text.isascii() and not any(char.isdigit() for char in text):
        weight *= _BRIEF if words <= _FEW_WORDS else _SHORT if words <= _SOME_WORDS else 1.0
    return weight


def is_event(text: str) -> bool:
    """Whether a statement tells what somebody did or is going to do: it needs its day."""
    low = cues.lowered(text)
    return _HAPPENED.search(low) is not None or _PLANNED.search(low) is not None


def _talks(low: str) -> bool:
    """Whether a statement only opens a conversation or keeps it going, and tells nothing behind that."""
    return cues.SMALL_TALK.match(low) is not None and _HAPPENED.search(low) is None
