"""Noun phrases: without a dictionary of nouns, by the words that stand around them.

A phrase begins behind an article or a possessive, or with whose it is ("Ann's"), and ends before a verb, a preposition,
a figure or a mark. The lists are short and English first: a sentence in another language mostly has no phrase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from langchain_tiered_memory.text.lexicon import word_set

MAX_PHRASE_WORDS = 4
"""Words of a noun phrase or a name; what is longer is cut at its end."""

# A possessive group looks ahead before it takes anything: CPython 3.11.2 does not give back what a part took that fails
# half-way.
_TOKEN = re.compile(r"[^\W_]+(?:(?=['\u2019.-][^\W_])['\u2019.-][^\W_]+)*+|[^\w\s]")
EMPTY_WORDS = word_set(
    "a an the our my your his her its their this that these those some any new old current currently actual actually "
    "now so but and or also well oh ok okay yes no sorry just only really correct right final total exact same first "
    "last next whole entire one other another own very quite most more thing best favorite favourite part "
    "lot kind bit way time day all"
)
"""Words of a noun phrase that do not say what it is about."""
DETERMINERS = word_set(
    "the my our this these those der die das den dem unser unsere mein meine le la les notre mon ma el los las "
    "nuestro nuestra mi il lo"
)
_OF_THINGS = frozenset({"the", "this", "these", "those"})
"""Determiners behind which an owner is mostly no person."""
POSSESSIVES = word_set("your his her their its")
_BEGIN = DETERMINERS | POSSESSIVES
PREPOSITIONS = word_set(
    "for of to at on in about with after under by from into around near over behind inside through until before during "
    "as since within without von f\u00fcr zu bei mit pour sur dans de para sobre en"
)
VERBS = word_set(
    "is are was were be been being am isn't aren't wasn't weren't has have had hasn't haven't hadn't will would can "
    "could should shall may might must do does did don't doesn't didn't won't can't cannot couldn't wouldn't shouldn't "
    "gets get got goes go went gone comes come came costs cost takes take took needs need makes make made lives live "
    "runs run ran belongs belong sits sit sat stays stay stands stand stood starts start begins begin began ends opens "
    "closes holds hold held keeps keep kept leaves leave left moves becomes became looks look seems seem says said "
    "tells told works uses use wants want gives gave puts put weighs means meant knows knew likes loves thinks thought "
    "handles manages leads owns signs expects arrives departs happens reads feels falls fell rises rose grows grew "
    "pays paid buys bought sells sold sends sent writes wrote meets met wins won loses lost eats ate drinks drank "
    "sleeps slept drives drove flies flew speaks spoke breaks broke builds built brings brought changes ist sind war "
    "hat haben wird kostet est sont \u00e9tait a ont co\u00fbte es son est\u00e1 tiene cuesta"
)
"""Verbs: a noun phrase ends before one."""
_ASKED = frozenset({"check", "ask", "call", "see", "use", "open", "read", "try", "visit", "email", "contact", "please"})
"""Verbs that ask somebody; behind two words of a phrase they are no noun of it."""
_JOINTS = word_set(
    "who which that where when while if because than then and or but so not no never always also too again already "
    "still yet ever today tomorrow yesterday tonight here there i you he she it we they me him us them what how why "
    "up down out off away back along anymore instead soon later earlier however though although either both each every"
)
_CONTRACTED = word_set(
    "it that this there here what who how where when why he she let everything everyone everybody something someone "
    "somebody nothing nobody one god"
)
"""What stands before "'s" for "is", "has" or "us"."""
_PARTICIPLE_CHARS = 5


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase: its telling words as said, and where it stands."""

    words: tuple[str, ...]
    start: int
    """Of its determiner."""
    stop: int
    before: str
    """The word before it, in lower case; empty at the beginning or behind a mark."""
    determiner: str

    @property
    def key(self) -> tuple[str, ...]:
        """Its words, normalised."""
        return tuple(singular(word.casefold()) for word in self.words)


def singular(word: str) -> str:
    """A word without a plural's or a possessive's ending."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word  # noqa: PLR2004 - "bus", "gas" keep theirs


def normalised(noun: str) -> str:
    """A noun phrase as subjects are compared: its telling words in lower case, without plurals' endings."""
    words = (word.casefold() for word in noun.split())
    return " ".join(singular(word) for word in words if word not in EMPTY_WORDS)


def phrases(sentence: str) -> list[Phrase]:
    """The noun phrases of a sentence that stand behind a determiner or an owner's name, in their order."""
    owns = "'s" in sentence or "\u2019s" in sentence
    if not owns and _BEGIN.isdisjoint(sentence.casefold().split()):
        return []
    tokens = list(_TOKEN.finditer(sentence))
    found: list[Phrase] = []
    place = 0
    while place < len(tokens):
        word = tokens[place][0].casefold()
        owned = _is_owner(tokens[place][0])
        if word not in _BEGIN and not owned:
            place += 1
            continue
        words = _words_behind(tokens, place + 1, of_things=word in _OF_THINGS)
        if owned and words:  # whose it is tells it from everybody else's
            words = [tokens[place], *words][:MAX_PHRASE_WORDS]
        telling = [one[0] for one in words if one[0].casefold() not in EMPTY_WORDS and len(one[0]) > 1]
        if telling:
            first = place
            while owned and first and tokens[first - 1][0][:1].isupper():
                first -= 1  # "Ann Miller's": the word before the whole name
            before = tokens[first - 1][0].casefold() if first else ""
            before = before if before.isalpha() else ""
            found.append(Phrase(tuple(telling), tokens[place].start(), words[-1].end(), before, word))
        place += max(len(words), 1) if owned else len(words) + 1
    return found


def _is_owner(word: str) -> bool:
    """Whether a word is somebody's name in the possessive ("Ann's"), and not "It's" or "Let's"."""
    name = word.removesuffix("'s").removesuffix("\u2019s")
    return name != word and name[:1].isupper() and name.casefold() not in _CONTRACTED


def _words_behind(tokens: list[re.Match[str]], first: int, *, of_things: bool) -> list[re.Match[str]]:
    """The words of the phrase that begins at a token.

    What belongs to a thing is one of its properties ("the ferry's budget"); what belongs to somebody is a thing of its
    own ("my aunt's visa").
    """
    words: list[re.Match[str]] = []
    for place in range(first, min(first + MAX_PHRASE_WORDS + 1, len(tokens))):
        token = tokens[place]
        low = token[0].casefold().replace("\u2019", "'")
        joint = low.split("'", 1)[0] if low not in VERBS else low
        telling = sum(one[0].casefold() not in EMPTY_WORDS for one in words)
        if not token[0][0].isalpha() or low in DETERMINERS or low in PREPOSITIONS or joint in _JOINTS:
            break
        if telling and (low in VERBS or (low.endswith("ed") and len(low) >= _PARTICIPLE_CHARS)):
            break
        if telling and low.endswith("s") and not low.endswith(("ss", "us", "is")) and _is_verb_before(tokens, place):
            break
        if telling > 1 and low in _ASKED:
            break
        if not telling and low in VERBS and words:
            break
        words.append(token)
        if len(words) > MAX_PHRASE_WORDS:
            break
        if of_things and token[0].endswith(("'s", "\u2019s")):
            break
    return words[:MAX_PHRASE_WORDS]


def _is_verb_before(tokens: list[re.Match[str]], place: int) -> bool:
    """Whether what stands behind a word that ends like a plural makes it a verb: "tops out", "seats 40"."""
    following = tokens[place + 1][0].casefold() if place + 1 < len(tokens) else ""
    return following in _PARTICLES or following[:1].isdigit()


_PARTICLES = frozenset({"out", "up", "down", "over", "off", "at", "around", "roughly", "exactly", "about"})
