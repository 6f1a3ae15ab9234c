"""What a sentence states, without lead-ins and asides: kind, subject, attribute, value, and the signs of its weight."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from langchain_tiered_memory.summaries.facts.frames import subject_of
from langchain_tiered_memory.summaries.facts.signs import PARTICULAR, weight_of, worded
from langchain_tiered_memory.summaries.facts.values import NAMED, denied_values, supposes
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import DATE, NUMBER, PATH
from langchain_tiered_memory.text.lexicon import NO_NAMES, word_set
from langchain_tiered_memory.text.noun_phrases import VERBS, Phrase, phrases, singular
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.sentences import ASKS
from langchain_tiered_memory.text.statements import leans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_tiered_memory.types.records import Entry, FactKind


MAX_WORDS = 30
"""Longest clause, in words; what is longer is cut around what it states."""
_MAX_CHARS = 320  # of a text without blanks between its words
_TAG_WORDS = 3  # of a question behind a sentence that asks about that sentence: ", right?", ", is that correct?"

_LEAD = re.compile(
    r"(?:(?:oh|ah|aw|hey|hi|hello|well|so|ok|okay|yeah|yes|yep|right|and|but|also|anyways?|btw|fyi|ps|p\.s\."
    r"|by the way|just so you know"
    r"|for the record|for what it['\u2019]?s worth|in case (?:it matters|you (?:need|wonder)\w*)"
    r"|before i forget|one more thing|another thing"
    r"|(?:a )?quick (?:note|one)|(?:a |just a )?heads[- ]up|just a note|(?:it )?turns out(?: that)?"
    r"|it turned out(?: that)?|in the end|long story short|to be honest|as it happens"
    r"|(?:i )?(?:just )?(?:should mention|should say|should add|found out"
    r"|wanted to (?:say|mention|add)|forgot to (?:say|mention|add))(?: that)?|as i (?:said|mentioned)"
    r"|you know(?: what)?|look|listen|honestly|haha+|lol|remember that|note that|keep in mind(?: that)?"
    r"|don['\u2019]t forget(?: that)?|remember|note|thanks|thank you|sure|great|good|perfect|cool|nice|got it)"
    r"(?:[,:;!\u2026.\u2013\u2014-]{1,3}\s{1,3}|\s{1,3}(?=\S)))",
    re.IGNORECASE,
)
_NEEDS_MARK = word_set(
    "right|good|great|cool|nice|perfect|sure|look|listen|remember|note|found out|thanks|thank you|so|well", "|"
)
_MOST_LEADS = 4
_SHOWN = re.compile(r"\[[^\[\]\s]{1,20} [^\[\]\s]{1,20} [^\[\]\n]{1,400}\](?!\()")
"""A note of several words in brackets, of a picture or a sound that stood there: nobody said it."""
_ASKS = re.compile(
    r"[,;.\u2013\u2014-] ?(?:(?:and|but|so) )?(?:what|how|why|where|when|who|which|do|does|did|are|is|am|was"
    r"|were|can|could|would|will|shall|should|have|has|had|any|right|ok|okay|yes|no|isn|aren|don|doesn|you)\b"
    r"(?:(?=[ '\u2019]{1,2}+[\w'\u2019-])[ '\u2019]{1,2}+[\w'\u2019-]{1,30}+){0,14}+\?+$",
    re.IGNORECASE,
)
_LEADS_TO = re.compile(
    r"(?:with|without|besides|apart from|despite|although|though|even though|while|when|whenever|if|unless|until"
    r"|after|before|since|because|as)\b",
    re.IGNORECASE,
)
"""What begins so states nothing before its comma."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ASKER, _OWNS = frozenset({"i", "we"}), frozenset({"my", "our"})
"""Who asks, in a language in which a verb stands before them where they only ask; and what is theirs."""


def stated_by(sentence: str) -> str:
    """What `sentence` states, in its own words; empty for a question or the head of a list."""
    said = " ".join((_SHOWN.sub(" ", sentence) if "[" in sentence else sentence).split())
    if said.endswith(ASKS):
        asks = _ASKS.search(said)
        if asks is None or asks[0].count(" ") <= _TAG_WORDS:
            return ""
        said = said[: asks.start()]
        if asks[0].startswith(",") and _LEADS_TO.match(_without_lead(said)):
            return ""  # the question itself is the main clause
    return "" if said.rstrip("*_ ").endswith((":", "\uff1a")) else _without_lead(said)


def told_in_asking(sentence: str, entry: Entry) -> Clause | None:
    """What a question says of whoever asks it, as it was asked: "Why is it so damp in the caravan we live in?".

    What belongs to them does, and what they do where no verb stands before them: "can I" and "don't we" only ask. It
    takes the place of nothing.
    """
    if entry.role == "assistant" or not sentence.rstrip().endswith(ASKS):
        return None
    words = _WORD.findall(sentence.casefold().replace("\u2019", "'"))
    tells = any(word.partition("'")[0] in _ASKER and before not in VERBS for before, word in itertools.pairwise(words))
    if not tells and _OWNS.isdisjoint(words):
        return None
    said = _without_lead(" ".join(sentence.split()))
    return replace(statement(said, entry), kind="question", attribute="", value="", span=(0, len(said)))


def shortened(said: str, *, around: tuple[int, int]) -> str:
    """`said`, or at most `MAX_WORDS` of its words around a span, with an ellipsis where something is missing.

    Of a longer span its end is kept: there stands what is told of something.
    """
    words = said.split(" ")
    if len(words) <= MAX_WORDS and len(said) <= _MAX_CHARS:
        return said
    first = max(0, min(said.count(" ", 0, around[0]) - MAX_WORDS // 3, len(words) - MAX_WORDS))
    first = max(first, said.count(" ", 0, around[1]) + 1 - MAX_WORDS)
    start = len(" ".join(words[:first])) + (1 if first else 0)
    short = " ".join(words[first : first + MAX_WORDS])
    if len(short) > _MAX_CHARS:
        cut = max(0, min(around[0] - start - _MAX_CHARS // 4, len(short) - _MAX_CHARS))
        start, short = start + cut, short[cut : cut + _MAX_CHARS]
    return f"{chr(0x2026) if start else ''}{short.strip()}{chr(0x2026) if start + len(short) < len(said) else ''}"


def _without_lead(said: str) -> str:
    for _ in range(_MOST_LEADS):
        lead = _LEAD.match(said)
        if lead is None:
            break
        bare = not lead[0].rstrip().endswith((",", ":", ";", "!", ".", "\u2026", "\u2013", "\u2014", "-"))
        if bare and lead[0].strip().casefold().removesuffix(" that") in _NEEDS_MARK:
            break
        said = said[lead.end() :]
    return said.strip().lstrip("-\u2013\u2014 ")


BRIEF_CHARS = 600
"""Of an assistant's message: a longer one advises at length, and mentions much that nobody settled."""
_MIN_GOAL_WORDS = 5
LEAST_WORDS = 3
"""Of a statement: fewer name something, and say nothing of it."""
_ANSWER_WORDS = 5
_POINTS_BACK = re.compile(r"(?:it|that|they|this one)(?:['\u2019]\w+)?\b", re.IGNORECASE)
_ANSWERS = PARTICULAR | {"full name", "decision"}

_NO_UNIT = (
    "a|an|the|and|or|of|for|to|at|on|in|by|with|per|is|are|was|were|it|that|this|so|but|not|from|as|now"
    "|if|i|we|you|he|she|they|when|which|who|instead|rather|after|before|each|every|ago|again|too"
)
_LONG_FIGURE = re.compile(r"\d\d")
_DIGIT = re.compile(r"\d")
_FIGURE = re.compile(rf"(?:{NUMBER.pattern})(?: ?(?!(?:{_NO_UNIT})\b)[^\W\d_]{{1,20}}\b)?")
"""A figure with the word behind it: what it counts."""
_CAPITAL = r"(?!I(?:['\u2019]\w{1,2})?(?![\w'\u2019-]))[^\W\d_a-z][\w'\u2019-]*"
"""A word with a capital that is not "I", which is part of no name: "Now I'm"."""
_CAPITALS = re.compile(rf"{_CAPITAL}(?:\.(?=\w))?(?: {_CAPITAL}){{0,3}}")
_OWNED = re.compile(r" ([^\W\d_][\w-]{1,30})")
_MOVED_TO = re.compile(r"\bmoved (?:to|in with) (?=[^\W\d_a-z])")
_TELLS_WHOSE = frozenset({"to", "by", "with", "from"})
_ONE_VALUED = frozenset({"lives", "works", "weight", "married", "born"})
"""Properties that a person has one of: what is said of oneself later takes the place of what was said before."""
_POINTS = re.compile(
    r"\b(?:it|they|them|he|him|she|th(?:is|at) one|these|those"
    r"|th(?:is|at)(?=[,.!?]| (?:after|before|when|for|in|at|with|on|last|to)\b|$))\b",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(r"(?:I['\u2019]m|I am) ")
_NEAR_BLANKS = 6
"""Before such a word: behind more it means what was just named."""
_INTENDS = re.compile(r"i(?:['\u2019]ll| will| need to|['\u2019]m going to)\b|let['\u2019]s ")
_I = re.compile(r"(?:i|i['\u2019]m|i['\u2019]ve|we|we['\u2019]re|we['\u2019]ve)\b")
_PROPERTY = re.compile(
    r"\b(?:(?<=\w )(?:long|wide|high|tall|deep|heavy|old)(?=\W*$)|weighs?|weighed|costs?|opens?|closes?|starts?"
    r"|begins?|ends?"
    r"|arrives?|departs?|born|lives|live(?= (?:in|at|on|with)\b)|allergic|works?(?= (?:as|at|for|in)\b)|plays?"
    r"|studies|called|named|married)\b"
)
_PROPERTIES = {
    "weigh": "weight", "weighs": "weight", "weighed": "weight", "heavy": "weight", "costs": "cost", "cost": "cost",
    "open": "opens", "close": "closes",
    "start": "begins", "starts": "begins", "begin": "begins", "end": "ends", "arrive": "arrives",
    "depart": "departs", "live": "lives", "work": "works", "play": "plays", "called": "name", "named": "name",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause, and what it states."""

    text: str
    """The clause, as it was said."""
    kind: FactKind
    subject: str
    attribute: str
    value: str
    signs: frozenset[str]
    span: tuple[int, int]
    """Where its subject and its value stand."""
    named: str = ""
    """Its subject as it is said, for what the next sentence calls "it"."""

    @property
    def weight(self) -> float:
        """How much it is worth showing, 0 to 1."""
        return 1.0 if self.kind == "goal" else weight_of(self.signs)


class Read(NamedTuple):
    """A clause as it is weighed, whoever says it."""

    signs: frozenset[str]
    phrases: tuple[Phrase, ...]
    named: tuple[re.Match[str], ...]
    shape: str
    value: str


@read_once
def read(clause: str) -> Read:
    """The signs of a clause, and what it names."""
    found = phrases(clause)
    about = topic(found)
    named = tuple(_names(clause))
    shape, value = _shaped(clause, named, denied_values(clause))
    signs = worded(cues.lowered(clause)) | _formed(clause, shape, value, named)
    if named and _introduces(clause, named):
        signs = signs - {"tells nothing"} | {"introduces"}
    if about and len(about.words) > 1:
        signs.add("wide subject")
    return Read(frozenset(signs), tuple(found), named, shape, value)


@read_once
def points_back(text: str) -> bool:
    """Whether a statement has a word for something that it does not name before it: "A friend made it"."""
    if leans(text):
        return True
    found = _POINTS.search(text)
    if found is None or text.count(" ", 0, found.start()) > _NEAR_BLANKS:
        return False
    said = read(text)
    return not any(one.stop <= found.start() and len(one.words) > 1 for one in said.phrases) and not any(
        one.start() < found.start() for one in said.named
    )


def statement(clause: str, entry: Entry) -> Clause:
    """What `clause` of `entry` states, however little."""
    low = cues.lowered(clause)
    signs, found, named, shape, value = read(clause)
    about = topic(found)
    if entry.role == "assistant":
        signs |= {"long answer" if len(entry.text) > BRIEF_CHARS else "assistant"}
    attribute = _attribute(about, found, clause, low)
    return Clause(
        clause,
        _kind(shape, signs, low, entry),
        _subject(about, named, attribute=attribute if _I.match(low) else "", speaker=entry.name or entry.role)
        or (subject_of(clause, value) if value else ""),
        attribute,
        value,
        signs,
        _span(clause, about, value, signs),
        " ".join(about.words) if about and len(about.words) > 1 else "",
    )


def read_clause(clause: str, entry: Entry, *, about: str, listed: bool = False) -> Clause | None:
    """What `clause` states, of `about` (what was spoken of before) where it names no subject of its own."""
    words = clause.count(" ") + 1
    low = cues.lowered(clause)
    announces = entry.role == "assistant" and (cues.NEXT_STEP.match(low) or (entry.calls and _INTENDS.match(low)))
    if supposes(clause) or announces:
        return None  # the calls behind what is said to come tell what was done
    stated = statement(clause, entry)
    if (
        about
        and not stated.named
        and (words <= _ANSWER_WORDS or _POINTS_BACK.match(clause))
        and stated.signs & _ANSWERS
        and not listed
        and "**" not in clause
    ):
        told = statement(f"the {about}: {clause}", entry)
        return replace(told, text=clause, span=(0, len(clause)))
    brief = clause.isascii() and words < LEAST_WORDS
    return None if brief and "introduces" not in stated.signs else stated


def _introduces(clause: str, named: Sequence[re.Match[str]]) -> bool:
    """Whether somebody says who they are: "I'm Marit"."""
    opening = _INTRODUCES.match(clause)
    return opening is not None and any(one.start() == opening.end() for one in named)


def named_in(text: str) -> str:
    """What a question is about, where it names it in two words or more."""
    about = topic(phrases(text))
    return " ".join(about.words) if about and len(about.words) > 1 else ""


def is_ask(clause: str) -> bool:
    """Whether a clause of a first message states what is wanted."""
    substantial = len(clause.split()) >= _MIN_GOAL_WORDS or not clause.isascii()
    return substantial and is_order(clause)


def is_order(clause: str) -> bool:
    """Whether a clause asks for something to be done."""
    low = cues.lowered(clause)
    return bool(cues.GOAL.search(low) or cues.IMPERATIVE.match(low))


def topic(found: Sequence[Phrase]) -> Phrase | None:
    """The noun phrase that a clause is about: with most words, behind a preposition before one that is not.

    Somebody's thing behind "to" or "by" is what the clause says of another: "the van belongs to Ann's team".
    """

    def rank(one: Phrase) -> tuple[int, bool]:
        told = one.before in _TELLS_WHOSE and one.determiner.endswith(("'s", "\u2019s"))
        return len(one.words), one.before != "" and not told

    return max(found, key=rank, default=None)


def _subject(about: Phrase | None, named: Sequence[re.Match[str]], *, attribute: str, speaker: str) -> str:
    """Its noun phrase, who speaks of a property of their own, or the name that a clause begins with."""
    if attribute in _ONE_VALUED and (about is None or len(about.words) == 1):
        return f"{speaker.casefold()} {attribute}"
    if about:
        return " ".join(about.key)
    return named[0][0].casefold() if named and named[0].start() == 0 else ""


def _attribute(about: Phrase | None, found: Sequence[Phrase], clause: str, low: str) -> str:
    """Which property of its subject a clause tells: "budget" of "the budget for the ferry", "long", "weighs"."""
    if about:
        for other in found:
            joint = clause[other.stop : about.start].strip().casefold()
            if other is not about and joint in ("of", "for", "on", "to"):
                return other.key[-1]
        owned = _OWNED.match(clause, about.stop)
        if owned and clause[about.start : about.stop].endswith(("'s", "\u2019s")):
            return singular(owned[1].casefold())
    if _MOVED_TO.search(clause):
        return "lives"
    told = _PROPERTY.search(low)
    names_subject = told is not None and about is not None and told[0] in about.words  # "in the end"
    return _PROPERTIES.get(told[0], told[0]) if told and not names_subject else ""


def _span(clause: str, about: Phrase | None, value: str, signs: frozenset[str]) -> tuple[int, int]:
    start, stop = (about.start, about.stop) if about else (0, 0)
    place = clause.find(value) if value else -1
    if place >= 0:
        return (min(start, place) if about else place), max(stop, place + len(value))
    return (start, stop) if about and "decision" in signs else (start, len(clause))


def _kind(shape: str, signs: frozenset[str], low: str, entry: Entry) -> FactKind:
    if entry.role != "assistant" and "small talk" not in signs and "constraint" in signs:
        return "constraint"
    if "decision" in signs:
        return "decision"
    if shape == "path":
        return "path"
    if shape in ("figure", "date"):
        return "number"
    if shape in ("code", "full name"):
        return "identifier"
    return "question" if cues.QUESTION.search(low) else "statement"


def _shaped(clause: str, named: Sequence[re.Match[str]], denied: Sequence[str]) -> tuple[str, str]:
    """The strongest form in a clause, and what has it: the last of two, and never a value that it takes back."""

    def last(matches: Iterable[re.Match[str]]) -> str:
        found = [one[0].strip(" ,.") for one in matches]
        holding = [one for one in found if not any(one in wrong or wrong in one for wrong in denied)]
        return holding[-1] if holding else ""

    figures = _DIGIT.search(clause) is not None
    if ("/" in clause or "." in clause[:-1] or "\\" in clause) and (path := last(PATH.finditer(clause))):
        return "path", path
    if (figures or "@" in clause or "://" in clause) and (code := last(NAMED.finditer(clause))):
        return "code", code
    if figures:
        if date := last(DATE.finditer(clause)):
            return "date", date
        if number := last(_FIGURE.finditer(clause)):
            return "figure", number
    if full := last(one for one in named if " " in one[0]):
        return "full name", full
    single = last(one for one in named if one.start() > 0)
    return ("name", single) if single else ("", "")


def _formed(clause: str, shape: str, value: str, named: Sequence[re.Match[str]]) -> set[str]:
    signs = {shape} if shape else set()
    if shape == "figure":
        digits = sum(char.isdigit() for char in value)
        small = digits == 1 and value.isdigit() and _LONG_FIGURE.search(clause) is None
        signs = set() if small else {"figure"}
    if any(" " in one[0] for one in named):
        signs.add("full name")
    elif any(one.start() > 0 for one in named):
        signs.add("name")
    return signs


def _names(clause: str) -> Iterator[re.Match[str]]:
    """Capitalised words that are names, as matches, without a word at the start of a clause that is none."""
    opening = clause.partition(" ")[0]
    start = len(opening) + 1 if opening.casefold().partition("'")[0].partition("\u2019")[0] in NO_NAMES else 0
    for match in _CAPITALS.finditer(clause, start):
        words = match[0].split()
        if match.start() == 0 and len(words) == 1:
            continue
        if all(word.casefold().replace("\u2019", "'") in NO_NAMES for word in words):
            continue
        yield match
