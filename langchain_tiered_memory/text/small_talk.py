"""What small talk is: a sentence that greets, thanks, agrees or reacts, and says nothing besides.

How it begins is not enough: "Sure, we decided on Redis" settles something. Behind that, whoever is called by name is
nothing to tell, nor is one more word that is not common ("Wow, Nora, gorgeous!"); but a question says with one what it
is about ("OK, and the harbour?"), unless that says when. Small talk may choose all the same among what was offered
("ok 2"), which nobody sees who reads it alone.
"""

from __future__ import annotations

import re

from langchain_tiered_memory.text.lexicon import COMMON, DECISION, RELATIVE_TIME, lowered
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.sentences import asks, pieces

_REACTS = re.compile(
    r"/[a-z][\w-]{0,30}\.?$"  # a command to the program
    r"|(?:\W{0,16}+(?:oh|aw{1,8}|hey|hi|hello|wow|yeah|yep|yes|no(?! \w)|nope|sure|ok(?:ay)?|thanks|thank you|thx|great"
    r"|cool|nice|awesome|amazing|congrats|congratulations|haha{1,8}|lol|absolutely|totally|definitely|exactly|agreed"
    r"|sounds? (?:good|great|like)|good (?:morning|luck|job|to)|you['\u2019]re (?:welcome|right|amazing|so)"
    r"|that['\u2019]s (?:so|great|awesome|cool|amazing|really|wonderful|fantastic|nice)|glad|take care|bye"
    r"|talk (?:to you )?(?:soon|later)|no problem|my pleasure|i(?:['\u2019]m| am) (?:so )?(?:glad|happy (?:for"
    r"|to hear)|proud of you)|keep (?:it|up)|how are|how['\u2019]s it|what['\u2019]s up|can['\u2019]t wait"
    r"|i (?:totally |completely )?(?:agree|understand|see)|merci|danke|gracias|bonjour|hallo|hola)\b){1,4}"
)
_NAME = r"[^\W\d_a-z][\w'-]{0,20}"
_CALLED = re.compile(rf"\W{{0,8}}{_NAME}(?: {_NAME}){{0,2}}(?=[,.!?\u2026])")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_LONG_CHARS = 4
"""Characters from which a word of another script or language counts as several: it may be a whole clause."""
_MOST_CHARS = 400
"""Whoever says more says something."""


def reacts(low: str) -> bool:
    """Whether a sentence in lower case begins as small talk does, whatever it goes on to say."""
    return _REACTS.match(low) is not None


def telling_words(low: str) -> int:
    """How many words of a sentence in lower case are not common."""
    words = frozenset(_WORD.findall(low.replace("\u2019", "'"))) - COMMON
    return sum(_LONG_CHARS if len(word) >= _LONG_CHARS and not word.isascii() else 1 for word in words)


def only_reacts(sentence: str) -> bool:
    """Whether a sentence is small talk."""
    low = lowered(sentence)
    begins = _REACTS.match(low)
    if begins is None or DECISION.search(low):
        return False
    called = _CALLED.match(sentence, begins.end())
    rest = low[called.end() if called else begins.end() :]
    if asks(rest):
        return telling_words(RELATIVE_TIME.sub(" ", rest)) == 0
    return telling_words(rest) <= 1


@read_once
def is_small_talk(text: str) -> bool:
    """Whether all that a text says is small talk."""
    said = pieces(text) if len(text) <= _MOST_CHARS else ()
    return bool(said) and all(only_reacts(piece.text) for piece in said)
