"""Cuts a sentence down to the clause that states something: without lead-ins, asides and a question behind it."""

from __future__ import annotations

import re

MAX_WORDS = 30
"""Longest clause, in words; what is longer is cut at its end."""
_MAX_CHARS = 320  # of a text without blanks between its words

_LEAD = re.compile(
    r"(?:(?:oh|ah|hey|hi|well|so|ok|okay|yeah|yes|yep|and|but|also|anyway|btw|fyi|ps|by the way|just so you know"
    r"|for the record|for what it['\u2019]?s worth|in case it matters|before i forget|one more thing|another thing"
    r"|quick (?:note|update)|heads[- ]up|just a (?:note|heads[- ]up)|(?:it )?turns out(?: that)?"
    r"|i (?:just )?(?:think|guess|believe|suppose|mean|should mention|should say|found out|heard)(?: that)?|as i said"
    r"|as i mentioned|you know|look|listen|honestly|haha|lol|remember that|note that|remember|note)"
    r"(?:[,:;!\u2026.\u2013\u2014-]{1,3}\s{1,3}|\s{1,3}(?=\S)))",
    re.IGNORECASE,
)
_MOST_LEADS = 4
_ASIDE = re.compile(
    r"[,;]? (?:by the way|btw|fyi|oddly enough|funnily enough|lol|haha|if that helps|just so you know|you know|i think"
    r"|i guess)"
    r"(?=[.!]*$)",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[,;.\u2013\u2014-] ?(?:\w{1,20} ){0,8}\w{1,20}\?+$")


def clauses(sentence: str) -> list[str]:
    """What of `sentence` states something, in its own words; nothing for a question."""
    said = " ".join(sentence.split())
    if said.endswith(("?", "\uff1f", "\u061f")):
        asks = _ASKS.search(said)
        if asks is None:
            return []
        said = said[: asks.start()]
    if said.endswith((":", "\uff1a")):
        return []
    for _ in range(_MOST_LEADS):
        lead = _LEAD.match(said)
        if lead is None:
            break
        said = said[lead.end() :]
    said = _ASIDE.sub("", said)
    return [shortened(said)] if said else []


def shortened(said: str) -> str:
    """`said`, or its first `MAX_WORDS` words with an ellipsis."""
    words = said.split(" ")
    short = " ".join(words[:MAX_WORDS])[:_MAX_CHARS]
    return short if short == said else f"{short.rstrip()}\u2026"
