"""Turns text into the terms that the text index stores and that a question is looked up by.

One analysis serves every database, so that a memory on SQLite and one on PostgreSQL rank alike: the index stores our
terms, joined by spaces, and never cuts words itself. A term has letters, digits and vowel signs only, which every
tokenizer and every query syntax leaves alone. An identifier therefore loses its punctuation: `user_id`, `userId` and
`user-id` all become `userid`, and each can be found by its parts (`user`, `id`) too.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from snowballstemmer.english_stemmer import EnglishStemmer

from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.readings import read_once

MAX_TERM_CHARS = 64
"""Longer terms (base64, blobs) are cut, so that no database meets a lexeme above its limit (PostgreSQL: 2 KB)."""

BM25_SATURATION, BM25_LENGTH_SHARE = 1.2, 0.5
"""How soon another mention of a term adds nothing; how much a long text is held back, 0 to 1."""

MAX_PARTS = 12
"""What falls into more parts than this (a hash, a blob) is kept whole only."""

STOP_WORDS = word_set(
    "a an and are as at be been but by can cannot could did do does for from had has have he her him his how i if in"
    " into is it its me my of on or our she should so than that the their them then there these they this those to was"
    " we were what when where which who whom whose why will with would you your"
)
"""English function words. Kept short: a word that is dropped can never be looked up again."""

_MAX_WORD_CHARS = 512  # of one unbroken word: no blob is cut into parts or kept in the cache
_DECIMAL_POINT = "\u02d1"  # the point in `3.5`: a letter to every tokenizer, and in no word that people write
_IRREGULAR_FORMS = (  # no rule finds these; a stemmer only cuts endings
    "become became,begin began begun,break broke broken,bring brought,build built,buy bought,catch caught,child "
    "children,choose chose chosen,come came,draw drew drawn,drink drank drunk,drive drove driven,eat ate eaten,fall "
    "fell fallen,feel felt,fight fought,find found,fly flew flown,foot feet,forget forgot forgotten,freeze froze "
    "frozen,get got gotten,give gave given,go goes went gone,grow grew grown,hear heard,hide hid hidden,hold held,keep "
    "kept,know knew known,leave left,lend lent,life lives,lose lost,make made,man men,mean meant,meet met,mouse "
    "mice,pay paid,person people,ride rode ridden,run ran,say said,see saw seen,sell sold,send sent,shoot shot,show "
    "shown,sing sang sung,sit sat,sleep slept,speak spoke spoken,spend spent,stand stood,steal stole stolen,swim swam "
    "swum,take took taken,teach taught,tell told,think thought,throw threw thrown,tooth teeth,understand "
    "understood,wake woke woken,wear wore worn,wife wives,win won,woman women,write wrote written"
)
_IRREGULAR = {form: base for base, *forms in (group.split() for group in _IRREGULAR_FORMS.split(",")) for form in forms}
_CONTRACTED = frozenset({"s", "m", "d", "re", "ve", "ll"})
_NEGATED = word_set("ain aren can couldn didn doesn don hadn hasn haven isn mustn shouldn wasn weren won wouldn")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670]+")  # accents; Hebrew and Arabic points

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = _HAN + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\uac00-\ud7a3"
"""Scripts that put no blanks between words: Han, Thai to Khmer, kana, Hangul."""
_LETTER = f"(?:[^\\W_{UNSPACED}]|[\u0900-\u0963\u0966-\u0dff])"  # Indic vowel signs are letters to us, not to `re`
_WORD = re.compile(f"([{UNSPACED}]+)|{_LETTER}+(?:[-_./@'\u2019]{_LETTER}+)*")
_ASCII_WORD = re.compile(r"[a-zA-Z0-9]+(?:[-_./@'][a-zA-Z0-9]+)*")
"""As `_WORD` finds them where a text has no other characters: most have none, and this takes a third of the time."""
_IDEOGRAPH = re.compile(f"[{_HAN}]")
_CONNECTOR = re.compile("[-_./@'\u2019]")
_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ORDINAL = re.compile(r"(?<!\d)(\d++)(?:st|nd|rd|th)", re.IGNORECASE)
_PART = re.compile(r"\d+|[^\W\da-z_]{2,}s(?![a-z])|[^\W\da-z_]+(?![a-z])|[^\W\da-z_]?[a-z]+|[^\W\d_]+|\S")


def analyse(text: str) -> list[str]:
    """The terms of `text` in their order, repetitions included; for documents and questions alike.

    Words are casefolded, stripped of accents and stemmed (Snowball's English stemmer, <https://snowballstem.org>:
    harmless elsewhere, as both sides pass through it). Text without spaces between words is cut into pairs of
    characters, Chinese characters also stand alone. Never raises, whatever the text.
    """
    # Line by line, for passages, messages and measures of loss are made of the same lines: each is read once.
    return list(chain.from_iterable(map(_analysed, text.split("\n"))) if "\n" in text else _analysed(text))


@read_once
def _analysed(text: str) -> tuple[str, ...]:
    if text.isascii():
        text = _THOUSANDS.sub("", text) if "," in text else text
        return tuple(chain.from_iterable(map(_cut_word_terms, _ASCII_WORD.findall(text))))
    return tuple(_terms(_normalised(text)))


def _normalised(text: str) -> str:
    """`text` without accents and width variants, and with `3,000` as `3000`."""
    text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))
    return _THOUSANDS.sub("", text) if "," in text else text


def _terms(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        if match[1]:
            yield from _pairs(match[1])
        else:
            yield from _cut_word_terms(match[0])


def _cut_word_terms(word: str) -> tuple[str, ...]:
    return _word_terms(word if len(word) <= _MAX_WORD_CHARS else word[:_MAX_WORD_CHARS])


def _pairs(run: str) -> Iterator[str]:
    """Overlapping pairs of characters, as every CJK analyser cuts; an ideograph is a word of its own as well."""
    for position, char in enumerate(run):
        if len(run) == 1 or _IDEOGRAPH.match(char):
            yield char
        if position + 1 < len(run):
            yield run[position : position + 2]


@lru_cache(maxsize=1 << 16)
def _word_terms(word: str) -> tuple[str, ...]:
    """The terms of one word or identifier: the whole, then its parts."""
    word = _without_contraction(word)
    ordinal = _ORDINAL.fullmatch(word)
    if ordinal:
        return (ordinal[1],)
    parts = [part for piece in _CONNECTOR.split(word) for part in _PART.findall(piece)]
    whole = _CONNECTOR.sub("", _POINT.sub(_DECIMAL_POINT, word))
    terms = [_term(whole)]
    if 1 < len(parts) <= MAX_PARTS:
        terms += [_term(part) for part in parts if len(part) > 1 or part.isdigit()]
    return tuple(term for term in terms if term and term not in STOP_WORDS)


def _without_contraction(word: str) -> str:
    """`Anna's` as `Anna`, `I'm` as `I`, `don't` as nothing."""
    head, mark, tail = word.replace("\u2019", "'").rpartition("'")
    if not mark:
        return word
    if tail.casefold() == "t" and head.casefold() in _NEGATED:
        return ""
    return head if tail.casefold() in _CONTRACTED else word


def _term(part: str) -> str:
    """One part, casefolded and stemmed. The stemmer has state, hence one for each call: threads may analyse at once."""
    folded = part.casefold()
    if folded in STOP_WORDS:
        return ""
    if not folded.isascii():
        folded = _MARKS.sub("", folded)
    if folded.isascii() and folded.isalpha() and len(folded) < MAX_TERM_CHARS:
        folded = _stemmed(_IRREGULAR.get(folded, folded))
    return folded[:MAX_TERM_CHARS]


@lru_cache(maxsize=1 << 14)
def _stemmed(word: str) -> str:
    """A word without its ending: identifiers fall into parts that are words of others."""
    return str(EnglishStemmer().stemWord(word))


def let_go_of_words() -> None:
    """Keep no word any longer: of what was forgotten, nothing shall stay in memory on our account."""
    _word_terms.cache_clear()
    _stemmed.cache_clear()


def kept_words() -> int:
    """How many words are kept."""
    return _word_terms.cache_info().currsize + _stemmed.cache_info().currsize


def rarity(times: int, of: int) -> float:
    """What a term tells that `times` of `of` texts have, 0 to 1: inverse document frequency, Spaerck Jones 1972."""
    return math.log(1 + of / times) / math.log(1 + of)
