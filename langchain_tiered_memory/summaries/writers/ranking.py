"""Which sentences of a job tell most, token for token.

Each sentence is worth the terms it states that nothing chosen before it states: rare words of the job and, above all,
its names, figures and identifiers. Choosing greedily by worth per token is the standard approximation of budgeted
coverage (Khuller, Moss and Naor 1999; Lin and Bilmes 2010 for summaries), here with a heap that re-weighs a sentence
only when it comes up.

How much a statement tells to somebody who reads it alone (`telling`) goes by its wording, in English at best: what
happened, what is planned and who somebody is tells much; agreement, thanks, praise and what leans on the sentence
before it next to nothing. A wording in no list here weighs 1.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.statements import leans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.sections import ItemKind

_WORD = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{2}|[^\\W_][\\w'\u2019-]*")
_IDENTIFIER_WEIGHT = 3.0
_TOLD_AGAIN = 0.2  # what a term is worth that a chosen sentence states already
_LINE_TOKENS = 6  # what a sentence costs beside its own words: bullet, speaker
_FULL_WORD_CHARS = 7  # short words tell less, in every language that spaces its words
_KIND_WEIGHT: dict[ItemKind, float] = {
    "overview": 1.0, "point": 1.0, "decision": 2.0, "action": 1.15, "technical": 1.1, "progress": 1.15, "open": 1.1,
}  # fmt: skip
_BRIEF_CHARS, _BRIEF_WORDS = 24, 3
ANNOUNCES = re.compile(r"(?:certainly|sure|absolutely|great)?\W{0,3}(?:let['\u2019]?s|here(?:['\u2019]s| is| are)) ")
_EMPTY_WORDS = word_set(
    "a since come came trying been totally super love about after again all also am an and any are as at be because "
    "been before being but by can could did do does doing don't for from get got had has have having he her here him "
    "his how i i'm i've i'd i'll if in into is it it's its just like me more most my no not now of off on once one "
    "only or other our out over own really same she so some such than that that's the their them then there these they "
    "they're this those through to too up very was we we're were what what's when where which while who why will with "
    "would you you're your yours much many lot lots thing things something always ever even well make makes going go "
    "know think feel see want need way good great nice let let's us yeah oh wow thanks hey sure ok okay yes hi hello "
    "glad happy le la les un une des du de et en est dans que qui pour pas ne je tu il elle nous vous ils au aux ce "
    "cette ces sur avec mais ou der die das und ist ein eine einen den dem des mit von zu auf für nicht ich du er sie "
    "wir ihr es im am auch als an bei war el los las y que en una por con para no se su al lo como más o pero ha me si "
    "ya muy o os as um uma e do da em não com di che è per non sono ho del della nel il gli"
)

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
    r"|(?:thanks?|thank you|congrat\w{0,12}|kudos|cheers|welcome|hope|enjoy|keep (?:it|up|on|going|shining|being"
    r"|pushing)|good (?:for|luck|job|call|point)|long time|best of|let me know|can['\u2019]t wait|no (?:worries|way)"
    r"|me too|same here|of course|indeed|remember, |go for it|have (?:a|an|fun)|take care|take it easy|my pleasure"
    r"|guess what|you know|it depends)\b|i apologi[sz]e\b|here['\u2019]s (?:an?|the|some|my) (?:pic|photo|picture|link"
    r"|one)"
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
    r"|.{0,60}\b(?:made|chose|got|did|done|do|use[ds]?|took|take|bought|painted|gave|keep|kept|saw|have|had|find|found"
    r"|try|tried|enjoy(?:ed)?|love[ds]?|like[ds]?|said|mean|remember) (?:it|them|this|that|those"
    r"|these)(?: \w{1,12})?[.,!]"
    r"|.{0,60}\b(?:made|chose|bought|painted|took) (?:it|them|this)\b|.{0,100}\bagree more\b"
)
_HAPPENED = re.compile(
    r"\b(?:i|we|he|she|they)(?:['\u2019]ve| have| had)? ?(?:(?:just|also|recently|finally|actually|even|already) ){0,2}"
    r"(?:(?!need|want|lov|lik)\w{2,20}ed|went|got|took|made|met|saw|bought|found|began|won|lost|ran|wrote|gave|built"
    r"|quit|left|came|became|did|chose|flew|drove|taught|sold|spent|told|been|gone|read|grew|caught|broke|fell)\b"
)
_PLANNED = re.compile(
    r"\b(?:i|we)(?:['\u2019]m| am|['\u2019]re| are)? ?(?:going to|gonna|planning|plan to|looking (?:to"
    r"|for|into)|hoping to"
    r"|thinking (?:of|about)|considering|preparing|decided|want to|need to|trying to|working on|saving|applying)\b"
    r"|\b(?:i|we)(?:['\u2019]ll| will) \w"
)
_PERSONAL = re.compile(
    r"\bmy (?:\w{1,20} ){0,2}(?:is|was|are|has|have|lives?|works?|name)\b|\bi(?:['\u2019]m| am) (?:an?|from|allergic"
    r"|married|single|\d)\b|\b(?:i|we) (?:live|work|own|have|study|play|teach)\b"
)
_ADVISES = re.compile(
    r"(?:consider|use|make|try|ensure|check|remember|keep|look|create|set|include|add|choose|avoid|start|stay|research"
    r"|take|be|highlight|review|practice|practise|identify|focus|monitor|provide|offer|develop|explore|join"
    r"|highlight)\b|[^:.]{3,60}: "
)
_FEW_WORDS, _SOME_WORDS = 4, 6
_REACTION, _BRIEF, _SHORT, _PRAISE, _LEANING = 0.25, 0.35, 0.75, 0.4, 0.55
_EVENT, _PLAN, _FACT, _FIGURE = 1.5, 1.35, 1.25, 1.1
_ASSISTANT, _ADVICE, _LISTING = 0.75, 0.6, 0.5
_MANY_ITEMS = 3


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence that may be kept."""

    text: str
    kind: ItemKind
    source: int
    """Index of its source in the job."""
    tokens: float
    """Estimated."""
    speaker: str = ""
    when: str = ""
    """A date to stand behind it, where its own words need one."""
    weight: float = 1.0
    day: str = ""
    """When it was said, where the summary that it is read from tells."""
    asked: str = ""
    """The question that it answers."""
    asker: str = ""
    """Who asked it."""

    @property
    def told(self) -> str:
        """Its words, with those of the question before it."""
        return f"{self.asked} {self.text}" if self.asked else self.text


def cue_weight(text: str) -> float:
    """What the wording of a sentence adds to or takes from its worth."""
    weight, low = 1.0, cues.lowered(text)
    if len(text) < _BRIEF_CHARS and text.count(" ") < _BRIEF_WORDS and text.isascii():
        weight *= 0.5  # "Luna and Oliver!" tells nothing without what was asked
    if ANNOUNCES.match(low):
        weight *= 0.6
    if text.startswith("["):
        weight *= 0.5  # a picture, which nobody sees
    if cues.SMALL_TALK.match(low) and not cues.DECISION.search(low):
        weight *= 0.4
    if text.rstrip().endswith(("?", "\uff1f")):
        weight *= 0.5
    if text.rstrip().endswith((":", "\uff1a")):
        weight *= 0.3  # it announces what is not quoted with it
    if cues.CORRECTION.search(low):
        weight *= 1.2
    if cues.REASON.search(low):
        weight *= 1.05
    if cues.RELATIVE_TIME.search(low):
        weight *= 1.15
    return weight


def kind_of(text: str) -> ItemKind:
    """The kind of a sentence of a conversation, by its wording."""
    asks = text.rstrip().endswith(("?", "\uff1f"))
    low = cues.lowered(text)
    if cues.QUESTION.search(low):
        return "open"
    if not asks and (cues.DECISION.search(low) or cues.ORDER.match(low) or cues.CONSTRAINT.search(low)):
        return "decision"
    if not asks and cues.ACTION.search(low) and not cues.SMALL_TALK.match(low):
        return "action"
    return "point"


def in_order_of_worth(
    units: Sequence[Unit], *, dull: frozenset[str] = frozenset(), spread: float = 0.0
) -> Iterator[int]:
    """Indexes of `units`, the one that adds most per token first.

    `dull` words, casefolded, tell nothing here, such as the speakers' names. Each unit chosen from a source takes
    `spread` from the worth of its others: with more than 0, no part of a long stretch is left out for another.
    """
    terms = _weighed(units, dull)
    told = set[str]()
    chosen = Counter[int]()

    def gain(index: int) -> float:
        unit = units[index]
        worth = sum([weight * (_TOLD_AGAIN if term in told else 1.0) for term, weight in terms[index].items()])
        worth /= 1.0 + spread * chosen[unit.source]
        return worth * unit.weight * _KIND_WEIGHT[unit.kind] / (unit.tokens + _LINE_TOKENS)

    heap = [(-gain(index), index) for index in range(len(units))]
    heapq.heapify(heap)
    while heap:
        _, index = heapq.heappop(heap)
        now = -gain(index)
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, index))
            continue
        told.update(terms[index])
        chosen[units[index].source] += 1
        yield index


def _weighed(units: Sequence[Unit], dull: frozenset[str]) -> list[dict[str, float]]:
    """Each unit's terms with their worth between 0 and 1, identifiers above that."""
    # In an order of their own: added up in another one, sums differ in their last digit, and so may the choice.
    words = [
        dict.fromkeys(
            word for word in map(_plain, _WORD.findall(unit.told)) if word not in _EMPTY_WORDS and word not in dull
        )
        for unit in units
    ]
    named = [dict.fromkeys(one for one in sorted(identifiers(unit.told)) if one not in dull) for unit in units]
    counts = Counter(term for found in (*words, *named) for term in found)
    rarest = math.log(1 + len(units)) or 1.0
    by_count = {count: math.log(1 + len(units) / count) / rarest for count in set(counts.values())}
    rarity = {term: by_count[count] for term, count in counts.items()}
    weighed = []
    for found, names in zip(words, named, strict=True):
        terms = {word: rarity[word] * min(1.0, _letters(word) / _FULL_WORD_CHARS) for word in found if len(word) > 1}
        terms.update((f"={name}", _IDENTIFIER_WEIGHT * (0.5 + 0.5 * rarity[name])) for name in names)
        weighed.append(terms)
    return weighed


def _letters(word: str) -> int:
    return len(word) if word.isascii() else len(word.encode()) + 1


def _plain(word: str) -> str:
    return word.casefold().replace("\u2019", "'").removesuffix("'s")


def telling(text: str, *, advised: bool = False) -> float:
    """What the wording of a statement makes of its worth, for a reader who sees nothing else: about 0.1 to 2.

    What an assistant advises in general tells less than what it is about.
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
