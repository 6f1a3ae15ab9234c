"""What texts are about, in noun phrases: without a dictionary, by the words that stand before nouns.

What follows an article, a possessive or a preposition is a noun phrase, up to the next function word or sign. That
finds "the charity race" and "for user sessions", and neither "planned" nor "spent". Names count by their capitals. In a
script without spaces nothing is found.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.identifiers import NAME
from langchain_tiered_memory.text.lexicon import word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ASIDE = re.compile(r"\[[^\]\n]{0,300}\]|\S{0,100}[/\\_]\S{1,300}|`[^`\n]{0,200}`")
"""What was not said: a picture's description, an address, code."""
_TOKEN = re.compile(r"[^\W\d_][\w'\u2019-]{0,60}|[^\w\s]|\d\S{0,40}")
_MAX_CHARS = 400  # of one statement that are looked at
_MAX_WORDS = 3
_FULL_CHARS = 7  # shorter words tell less
_MIN_CHARS = 3

_OPENERS = word_set(
    "the a an my our your his her their its this these those some any each every another no of about for with on in at "
    "from into by between without against after before during under over as through der die das den dem des ein eine "
    "einen einem einer mein meine unser unsere im vom zum zur \u00fcber f\u00fcr mit le la les un une des du mon ma "
    "mes notre nos sur pour avec dans el los las una mi nuestro nuestra sobre para con del il lo gli nel o os um uma"
)
_GERUND_TAKERS = word_set(
    "of about for with on in at from into by between without against after before during as through"
)
_CLOSERS = word_set(
    "and or but nor so yet to is are was were be been being am do does did done has have had having will would can "
    "could should shall may might must not that which who whom whose what when where why how if than then because "
    "since while like unlike such though meantime myself yourself himself herself itself ourselves themselves due "
    "until i you he she it we they me him us them there here up down out off again also just very really too quite "
    "even only still already ever never always often sometimes soon now today yesterday tomorrow tonight ago later "
    "much many more most less least few all both one two three other others same such own well around back away "
    "together yes no ok und oder aber ist sind war wird hat nicht auch et ou est sont qui que pas y e es son no se"
)
CALENDAR = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august"
    " september october november december mon tue tues wed thu thurs fri jan feb mar apr jun jul aug sep sept"
    " oct nov dec"
)
"""Days and months: they say when, and not what about."""
_WEAK = CALENDAR | word_set(  # adjectives and empty nouns: they neither are a topic nor end one
    "thing things something anything everything nothing lot lots kind sort bit way ways time times day days week"
    " weeks month months year years moment part parts stuff people person guy guys man one ones example case fact"
    " sure idea first second third last next new old good great nice amazing awesome wonderful lovely big small"
    " little long short high low best better right left full whole different important special own free able"
    " current following several certain various specific main simple easy hard beautiful cool fun happy glad real"
    " true possible available clear hand end beginning start top bottom middle side point number moment morning"
    " evening night afternoon weekend today basic code clean inside outside waiting talk other others general"
    " particular order addition course least most love thanks hope look like photo image picture far further"
    " experience experiences difference reminder message messages memory memories joy blast pic pics buddy dude"
    " additional early late close open recent past future extra happy sad i'm i've i'll i'd it's that's let's"
    " what's there's don't can't won't didn't isn't doesn't you're they're we're"
)
_VERBS = word_set(
    "left lost met went go goes got get gets made make makes making took take takes taking said say says told tell came"
    " come comes coming thought think thinks knew know knows saw see sees want wants need needs needed found find"
    " finds gave give gives feel feels felt help helps keep keeps kept let lets put puts seems seem looks started"
    " began ran run uses use using work works try tries tried ask asks asked show shows shown mean means meant"
    " became become brings bring brought going helped planned spent sounds including based following regarding ensure"
    " ensures provide provides contains contain allows allow returns return requires require happens shares"
)


def noun_phrases(text: str) -> Iterator[str]:
    """The noun phrases of `text`, at most three words each, lower-cased but for names; repetitions included."""
    run: list[str] = []
    is_open = False
    for match in _TOKEN.finditer(text):
        word = match[0]
        low = word.casefold().replace("\u2019", "'")
        if low in _OPENERS or low in _CLOSERS or low in _VERBS or not word[0].isalpha():
            yield from _phrase(run)
            run = []
            is_open = low in _OPENERS
            gerund = low in _GERUND_TAKERS
            continue
        if not is_open:
            continue
        if not run and gerund and low.endswith("ing"):
            continue  # "for handling user sessions": what is handled
        if low.endswith("ly") or (low.endswith("ed") and run):
            yield from _phrase(run)
            run, is_open = [], False
            continue
        run.append(low.removesuffix("'s"))
        if low.endswith("'s"):
            run = []
        elif len(run) == _MAX_WORDS:
            yield from _phrase(run)
            run, is_open = [], False
    yield from _phrase(run)


def _phrase(run: Sequence[str]) -> Iterator[str]:
    words = list(run)
    while words and (words[0] in _WEAK or words[0].endswith("ed")):
        del words[0]
    if words and words[-1] not in _WEAK and len(words[-1]) >= _MIN_CHARS:
        yield " ".join(words)


def subjects(texts: Iterable[str], *, dull: frozenset[str], count: int) -> list[str]:
    """What `texts` are about: up to `count` noun phrases and names, the most telling first.

    `dull` words, casefolded, are no subject here, such as the names of those who speak.
    """
    heads: Counter[str] = Counter()
    whole: defaultdict[str, Counter[str]] = defaultdict(Counter)
    shown: dict[str, str] = {}
    for text in texts:
        spoken = _ASIDE.sub(" ; ", text[:_MAX_CHARS])
        named = [match[0] for match in NAME.finditer(spoken) if not _is_called(spoken, match.start(), match.end())]
        shown.update((name.casefold(), name) for name in named)
        phrases = {*noun_phrases(spoken), *(name.casefold() for name in named)}
        for phrase in sorted(phrases):
            head = _head(phrase)
            if dull.isdisjoint(phrase.split()) and head not in _WEAK and head not in _CLOSERS and head not in _VERBS:
                heads[head] += 1
                whole[head][phrase] += 1
    order = sorted(heads, key=lambda head: (-heads[head] * min(1.0, len(head) / _FULL_CHARS), head))
    best = [head for head in order if heads[head] > 1]
    # What was named once is a subject only where nothing came up twice, and says more in two words than in one.
    once = [head for head in order if heads[head] == 1 and max(map(len, whole[head])) > len(head) + 1]
    found: list[str] = []
    said = set[str]()
    for head in (*best, *once):
        phrase = max(whole[head], key=lambda one: (whole[head][one] * (1 + (" " in one)), len(one), one))
        if said.isdisjoint(phrase.split()):
            said.update(phrase.split(), (head,))
            found.append(shown.get(phrase) or " ".join(shown.get(word, word) for word in phrase.split()))
        if len(found) == count:
            break
    return found


def _is_called(text: str, start: int, stop: int) -> bool:
    """Whether a name is only called: "Thanks, Mel!"."""
    return text[:start].rstrip().endswith(",") and text[stop : stop + 1] in ("?", "!", ".", ",", "")


def _head(phrase: str) -> str:
    word = phrase.rpartition(" ")[2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > _MIN_CHARS else word
