"""What a sentence states, without lead-ins, asides and a question behind it."""

from __future__ import annotations

import re

from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.sentences import ASKS

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
_ASIDE = re.compile(
    r"(?:[,;]| -)? (?:by the way|btw|fyi|oddly enough|funnily enough|lol|haha|if that helps|just so you know|you know"
    r"|i mean)"
    r"(?=[.!]*$)",
    re.IGNORECASE,
)
_SHOWN = re.compile(r"\[[^\[\]\s]{1,20} [^\[\]\s]{1,20} [^\[\]\n]{1,400}\](?!\()")
"""A note of several words in brackets, of a picture or a sound that stood there: nobody said it."""
_ASKS = re.compile(
    r"[,;.\u2013\u2014-] ?(?:(?:and|but|so) )?(?:what|how|why|where|when|who|which|do|does|did|are|is|am|was"
    r"|were|can|could|would|will|shall|should|have|has|had|any|right|ok|okay|yes|no|isn|aren|don|doesn|you)\b"
    r"(?:(?=[ '\u2019]{1,2}+[\w'\u2019-])[ '\u2019]{1,2}+[\w'\u2019-]{1,30}+){0,14}+\?+$",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[,:\u2013\u2014-] [^,:\u2013\u2014]{1,60}$")
_ITEM_WORDS = 4
"""What stands between the comma before a last part and that part is one of several things if it is no longer: "and I"
of "my friend, Toby, and I played" is no clause of its own."""
_TAIL = re.compile(
    r"(?:,| [\u2013\u2014-]) (?:so|which|everybody|everyone|nobody|no one|all|and (?:that|i|it|everybody"
    r"|everyone|nobody|not)|but (?:that|i|it)|though|although|because|since|as"
    r"|i(?! (?:think|guess|hope|believe|suppose|assume|heard)\b)"
    r"|please|just|oddly|thankfully|luckily|sadly|unfortunately|finally|more|less|keep|ping|in case"
    r"|for now|whatever)\b[^,;:]{0,80}$",
    re.IGNORECASE,
)
_BECAUSE = re.compile(r"(?<=[\w)]) (?:because|since|as it|so that|in case|even though)\b[^,;:]{1,80}$", re.IGNORECASE)
_LEADS_TO = re.compile(
    r"(?:with|without|besides|apart from|despite|although|though|even though|while|when|whenever|if|unless|until"
    r"|after|before|since|because|as)\b",
    re.IGNORECASE,
)
"""What begins so states nothing before its comma."""
_JOINS_ON = re.compile(r",? (?:(?:and|but|or|so|plus)|(?:and|but)[.!]{1,3})$")
_SPECIFIC = re.compile(r"\d|[/@\\]|(?<=\s)(?!I\b)[^\W\d_a-z]")


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


def trimmed(clause: str, *, keep: tuple[int, int]) -> str:
    """`clause` without a last part that adds nothing to what stands at `keep`, and not longer than a clause may be."""
    for pattern in (_TAIL, _BECAUSE):
        tail = pattern.search(clause, keep[1])
        if tail and not (_SPECIFIC.search(tail[0]) or _LEADS_TO.match(clause) or _is_listed(clause, tail.start())):
            clause = clause[: tail.start()]
    return shortened(_JOINS_ON.sub("", clause), around=keep)


def without_remark(clause: str) -> str:
    """`clause` without a last part that only says how somebody feels about it: "and I'm glad"."""
    tail = _TAIL.search(clause)
    return clause[: tail.start()] if tail and not _SPECIFIC.search(tail[0]) else clause


def shortened(said: str, *, around: tuple[int, int], max_words: int = MAX_WORDS) -> str:
    """`said`, or at most `max_words` of its words around a span, with an ellipsis where something is missing.

    Of a longer span its end is kept: there stands what is told of something.
    """
    words = said.split(" ")
    if len(words) <= max_words and len(said) <= _MAX_CHARS:
        return said
    first = max(0, min(said.count(" ", 0, around[0]) - max_words // 3, len(words) - max_words))
    first = max(first, said.count(" ", 0, around[1]) + 1 - max_words)
    start = len(" ".join(words[:first])) + (1 if first else 0)
    short = " ".join(words[first : first + max_words])
    if len(short) > _MAX_CHARS:
        cut = max(0, min(around[0] - start - _MAX_CHARS // 4, len(short) - _MAX_CHARS))
        start, short = start + cut, short[cut : cut + _MAX_CHARS]
    return f"{chr(0x2026) if start else ''}{short.strip()}{chr(0x2026) if start + len(short) < len(said) else ''}"


def _is_listed(clause: str, stop: int) -> bool:
    """Whether what ends at `stop` is one of several things."""
    listed = _LISTED.search(clause, 0, stop)
    return listed is not None and listed[0].count(" ") <= _ITEM_WORDS


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
