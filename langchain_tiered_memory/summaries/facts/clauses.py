"""Reads a sentence: the clauses that state something, and the noun phrases in them.

Clauses come without lead-ins, asides and a question behind them. A noun phrase needs no dictionary of nouns: it begins
behind an article or a possessive, or with whose it is ("Ann's"), and ends before a verb, a preposition, a figure or a
mark. The lists of these are short and English; a sentence in another language mostly has no phrase, and its facts stand
without a subject.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.sentences import ASKS

MAX_WORDS = 30
"""Longest clause, in words; what is longer is cut around what it states."""
_MAX_CHARS = 320  # of a text without blanks between its words
_LEAST_HALF = 4  # words of a half that stands alone
_TAG_WORDS = 3  # of a question behind a sentence that asks about that sentence: ", right?", ", is that correct?"
_SPLIT_WORDS = 12  # a shorter sentence is one clause

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
_ASIDE = re.compile(
    r"[,;]? (?:by the way|btw|fyi|oddly enough|funnily enough|lol|haha|if that helps|just so you know|you know)"
    r"(?=[.!]*$)",
    re.IGNORECASE,
)
_SHOWN = re.compile(r"\[[^\[\]\s]{1,20} [^\[\]\s]{1,20} [^\[\]\n]{1,400}\]")
"""A note of several words in brackets, of a picture or a sound that stood there: nobody said it."""
_ASKS = re.compile(
    r"[,;.\u2013\u2014-] ?(?:(?:and|but|so) )?(?:what|how|why|where|when|who|which|do|does|did|are|is|am|was"
    r"|were|can|could|would|will|shall|should|have|has|had|any|right|ok|okay|yes|no|isn|aren|don|doesn|you)\b"
    r"(?:[ '\u2019]{1,2}+[\w'\u2019-]{1,30}+){0,14}+\?+$",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"(?:, (?:and|but|so|also|plus)|;| [\u2013\u2014]| -) (?=(?:i|we|my|our|the|for|there|please|let['\u2019]?s"
    r"|[A-Z][\w'\u2019]{1,30})\b)"
    r"|, (?=(?:by the way|btw)\b)"
)
_TAIL = re.compile(
    r"(?:,| [\u2013\u2014-]) (?:so|which|everybody|everyone|nobody|no one|all|and (?:that|i|it|everybody"
    r"|everyone|nobody|not)|but (?:that|i|it)|though|although|because|since|as"
    r"|i(?! (?:think|guess|hope|believe|suppose|assume|heard)\b)"
    r"|please|just|oddly|thankfully|luckily|sadly|unfortunately|finally|more|less|keep|ping|in case"
    r"|for now|whatever)\b[^,;:]{0,80}$",
    re.IGNORECASE,
)
_BECAUSE = re.compile(r"(?<=[\w)]) (?:because|since|as it|so that|in case|even though)\b[^,;:]{1,80}$", re.IGNORECASE)
_SPECIFIC = re.compile(r"\d|[/@\\]|(?<=\s)(?!I\b)[^\W\d_a-z]")

MAX_PHRASE_WORDS = 4
"""Words of a noun phrase; what is longer is cut at its end."""

_TOKEN = re.compile(r"[^\W_]+(?:['\u2019.-][^\W_]+)*+|[^\w\s]")
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
PREPOSITIONS = word_set(
    "for of to at on in about with after under by from into around near over behind inside through until before during "
    "as since within without von f\u00fcr zu bei mit pour sur dans de para sobre en"
)
_VERBS = word_set(
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


def clauses(sentence: str) -> list[str]:
    """What of `sentence` states something, in its own words; nothing for a question or the head of a list."""
    said = " ".join((_SHOWN.sub(" ", sentence) if "[" in sentence else sentence).split())
    if said.endswith(ASKS):
        asks = _ASKS.search(said)
        if asks is None or asks[0].count(" ") <= _TAG_WORDS:
            return []
        said = said[: asks.start()]
    if said.rstrip("*_ ").endswith((":", "\uff1a")) or not said:
        return []
    found = (_without_lead(half) for half in _halves(said))
    return [one for one in found if one]


def trimmed(clause: str, *, keep: tuple[int, int]) -> str:
    """`clause` without a last part that adds nothing to what stands at `keep`, and not longer than a clause may be."""
    for pattern in (_TAIL, _BECAUSE):
        tail = pattern.search(clause, keep[1])
        if tail and not _SPECIFIC.search(tail[0]):
            clause = clause[: tail.start()]
    return shortened(clause, around=keep)


def without_remark(clause: str) -> str:
    """`clause` without a last part that only says how somebody feels about it: "and I'm glad"."""
    tail = _TAIL.search(clause)
    return clause[: tail.start()] if tail and not _SPECIFIC.search(tail[0]) else clause


def shortened(said: str, *, around: tuple[int, int], max_words: int = MAX_WORDS) -> str:
    """`said`, or at most `max_words` of its words around a span, with an ellipsis where something is missing."""
    words = said.split(" ")
    if len(words) <= max_words and len(said) <= _MAX_CHARS:
        return said
    first = max(0, min(said.count(" ", 0, around[0]) - max_words // 3, len(words) - max_words))
    start = len(" ".join(words[:first])) + (1 if first else 0)
    short = " ".join(words[first : first + max_words])
    if len(short) > _MAX_CHARS:
        cut = max(0, min(around[0] - start - _MAX_CHARS // 4, len(short) - _MAX_CHARS))
        start, short = start + cut, short[cut : cut + _MAX_CHARS]
    return f"{chr(0x2026) if start else ''}{short.strip()}{chr(0x2026) if start + len(short) < len(said) else ''}"


def _halves(said: str) -> list[str]:
    """A long sentence, cut where another one is only joined to it."""
    if said.count(" ") < _SPLIT_WORDS:
        return [said]
    halves: list[str] = []
    start = 0
    for joint in _JOINT.finditer(said):
        if said.count(" ", start, joint.start()) + 1 < _LEAST_HALF or said.count(" ", joint.end()) + 1 < _LEAST_HALF:
            continue
        halves.append(said[start : joint.start()])
        start = joint.end()
    return [*halves, said[start:]]


def _without_lead(said: str) -> str:
    for _ in range(_MOST_LEADS):
        lead = _LEAD.match(said)
        if lead is None:
            break
        bare = not lead[0].rstrip().endswith((",", ":", ";", "!", ".", "\u2026", "\u2013", "\u2014", "-"))
        if bare and lead[0].strip().casefold().removesuffix(" that") in _NEEDS_MARK:
            break
        said = said[lead.end() :]
    return _ASIDE.sub("", said).strip().lstrip("-\u2013\u2014 ")


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
    if not owns and not (DETERMINERS | POSSESSIVES).intersection(sentence.casefold().split()):
        return []
    tokens = list(_TOKEN.finditer(sentence))
    found: list[Phrase] = []
    place = 0
    while place < len(tokens):
        word = tokens[place][0].casefold()
        owned = _is_owner(tokens[place][0])
        if word not in DETERMINERS and word not in POSSESSIVES and not owned:
            place += 1
            continue
        behind = _words_behind(tokens, place + 1, of_things=word in _OF_THINGS)
        if owned and behind:  # whose it is tells it from everybody else's
            behind = [tokens[place], *behind][:MAX_PHRASE_WORDS]
        telling = [one[0] for one in behind if one[0].casefold() not in EMPTY_WORDS and len(one[0]) > 1]
        if telling:
            first = place
            while owned and first and tokens[first - 1][0][:1].isupper():
                first -= 1  # "Ann Miller's": the word before the whole name
            before = tokens[first - 1][0].casefold() if first else ""
            before = before if before.isalpha() else ""
            found.append(Phrase(tuple(telling), tokens[place].start(), behind[-1].end(), before, word))
        place += max(len(behind), 1) if owned else len(behind) + 1
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
        joint = low.split("'", 1)[0] if low not in _VERBS else low
        telling = sum(one[0].casefold() not in EMPTY_WORDS for one in words)
        if not token[0][0].isalpha() or low in DETERMINERS or low in PREPOSITIONS or joint in _JOINTS:
            break
        if telling and (low in _VERBS or (low.endswith("ed") and len(low) >= _PARTICIPLE_CHARS)):
            break
        if telling and low.endswith("s") and not low.endswith(("ss", "us", "is")) and _is_verb_before(tokens, place):
            break
        if telling > 1 and low in _ASKED:
            break
        if not telling and low in _VERBS and words:
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
