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
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.facts.clauses import read
from langchain_tiered_memory.summaries.facts.signs import FILLER, PARTICULAR, TALK, weight_of
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.lexicon import COMMON, FUNCTION_WORDS
from langchain_tiered_memory.text.sentences import asks
from langchain_tiered_memory.text.small_talk import only_reacts
from langchain_tiered_memory.text.statements import COLONS, leans
from langchain_tiered_memory.text.terms import rarity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.sections import ItemKind

_WORD = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{2}|[^\\W_][\\w'\u2019-]*")
_CALLED = re.compile(rf"{marks.USED}[A-Za-z_][\w.-]{{0,63}}\(")
IDENTIFIER_WEIGHT = 3.0
"""What an identifier, figure or name weighs, in words of the same rarity."""
_TOLD_AGAIN = 0.2  # what a term is worth that a chosen sentence states already
_LINE_TOKENS = 6  # what a sentence costs beside its own words: bullet, speaker
_FULL_WORD_CHARS = 7  # short words tell less, in every language that spaces its words
_KIND_WEIGHT: dict[ItemKind, float] = {
    "overview": 1.0, "point": 1.0, "decision": 2.0, "action": 1.15, "technical": 1.1, "progress": 1.15, "open": 1.1,
}  # fmt: skip
_EMPTY_WORDS = COMMON.union(*FUNCTION_WORDS.values())

_FLATTENED = 0.25
"""Power of a statement's weight: beside how rare its words are, the worth that it has by itself counts a little."""
_BRIEF_BLANKS = 3
_ADVISED, _LEANING, _ASKING, _ANNOUNCING = 0.75, 0.35, 0.5, 0.3


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence that may be kept."""

    text: str
    kind: ItemKind
    source: int
    """Index of its source in the job."""
    tokens: float
    """Estimated."""
    line: int = 0
    """Of its source, if that is a summary: what stands in one line was said in one message."""
    speaker: str = ""
    when: str = ""
    """A date to stand behind it, where its own words need one."""
    weight: float = 1.0
    asked: str = ""
    """The question that it answers."""
    asker: str = ""
    """Who asked it."""

    @property
    def told(self) -> str:
        """Its words, with those of the question before it."""
        return f"{self.asked} {self.text}" if self.asked else self.text

    @property
    def by_tool(self) -> bool:
        """Whether a tool says it."""
        return self.speaker.startswith(marks.TOOL_MARK)

    @property
    def is_call(self) -> bool:
        """Whether it tells a call: "used read_file(...)", and not what somebody "used to" do."""
        return _CALLED.match(self.text) is not None

    @property
    def is_code(self) -> bool:
        """Whether it tells what a block of code defines."""
        return self.text.startswith(f"{marks.CODE}`")


def advice_share(advised: Sequence[bool], *, works: bool) -> float:
    """What each statement of an assistant is worth beside those of the people it helps: less where it says more.

    Args:
        advised: For each statement, whether an assistant says it.
        works: Whether it works with tools: then it advises nobody, and tells what was done and found.
    """
    mine = 0 if works else sum(advised)
    return _ADVISED * min(1.0, (len(advised) - mine) / mine) if mine and mine < len(advised) else 1.0


REPORTED = 0.2
"""What a call, or a line that a tool printed, is worth beside what was said of it, above level 1 and in short."""


def telling(text: str) -> float:
    """What a statement is worth by itself, for a reader who sees nothing else: about 0.1 to 2."""
    weight: float = 2 * weight_of(_signs(text)) ** _FLATTENED
    said = text.rstrip()
    announces = said.endswith(COLONS) or cues.NEXT_STEP.match(cues.lowered(text)) is not None
    weight *= _ASKING if asks(said) else _ANNOUNCING if announces else 1.0
    return weight * (_LEANING if leans(text) else 1.0)


def is_filler(text: str) -> bool:
    """Whether a statement only reacts, praises or says two words: it is told only where nothing else was said."""
    signs = _signs(text)
    return _is_brief(text, signs) or only_reacts(text) or weight_of(signs) < FILLER


def _signs(text: str) -> frozenset[str]:
    """Of a statement; what settles something is no talk, however it begins."""
    signs = read(text).signs
    return signs - TALK if "decision" in signs else signs


def _is_brief(text: str, signs: frozenset[str]) -> bool:
    """Whether it says two or three words and nothing in particular: "Luna and Oliver!"."""
    return text.isascii() and text.count(" ") < _BRIEF_BLANKS and signs.isdisjoint((*PARTICULAR, "full name"))


def kind_of(text: str) -> ItemKind:
    """The kind of a sentence of a conversation, by its wording."""
    low = cues.lowered(text)
    if cues.QUESTION.search(low):
        return "open"
    if asks(text):
        return "point"
    if cues.DECISION.search(low) or cues.ORDER.match(low) or cues.CONSTRAINT.search(low):
        return "decision"
    if cues.ACTION.search(low) and not only_reacts(text):
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


def within(units: Sequence[Unit], order: Sequence[int], room: float) -> list[int]:
    """Those of `order` that fit into `room` by their tokens, one after the other; in their places."""
    chosen: list[int] = []
    for index in order:
        if units[index].tokens <= room:
            room -= units[index].tokens
            chosen.append(index)
    return sorted(chosen)


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
    by_count = {count: rarity(count, len(units)) for count in set(counts.values())}
    rare = {term: by_count[count] for term, count in counts.items()}
    weighed = []
    for found, names in zip(words, named, strict=True):
        terms = {word: rare[word] * min(1.0, _letters(word) / _FULL_WORD_CHARS) for word in found if len(word) > 1}
        terms.update((f"={name}", IDENTIFIER_WEIGHT * (0.5 + 0.5 * rare[name])) for name in names)
        weighed.append(terms)
    return weighed


def _letters(word: str) -> int:
    return len(word) if word.isascii() else len(word.encode()) + 1


def _plain(word: str) -> str:
    return word.casefold().replace("\u2019", "'").removesuffix("'s")
