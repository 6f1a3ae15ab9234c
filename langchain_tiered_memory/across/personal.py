"""Tells what holds for a user from what holds for a conversation, by how it is worded.

A statement crosses to other conversations where its speaker tells of themself (who they are, what they like, cannot
have or always want), or gives a standing order to whoever answers. One that points at the matter in hand ("this file",
"for now", "the draft above") stays where it was said, whatever else it says. In doubt it stays: a search finds it all
the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.reading import is_quoted

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Fact

_KINDS = frozenset({"constraint", "decision", "identifier", "number", "statement"})
"""Goals, questions and paths are of a conversation."""
_OF_SELF = re.compile(
    r"\bi (?:(?:really|always|usually|never|only|also|mostly|still|absolutely|currently|just|don['\u2019]t|do not"
    r"|can['\u2019]t|cannot|can not) ){0,2}(?:prefer|like|love|enjoy|hate|dislike|avoid|drink|eat|smoke|live|work|study"
    r"|majored|graduated|moved|speak|own|have (?:a|an|two|three|\w{1,12} (?:kids|children|sons|daughters|dogs|cats))\b"
    r"|use|go by|grew up|was born|stand|tolerate|digest)\b"
    r"|\bi(?:['\u2019]m| am) (?:(?:not|also|now|a|an|the|originally|currently|severely) ){0,2}(?:[\w-]{1,20} ){0,2}"
    r"(?:allerg\w{1,8}|intoleran\w{1,4}|vegan|vegetarian|diabetic|asthmatic|pregnant|c(?:o)?eliac|colou?r.?blind|deaf"
    r"|dyslexi\w{1,2}|married|divorced|engaged|widowed|retired|born|from|based|living|working as|learning|studying"
    r"|years old|left-handed|religious|muslim|jewish|hindu|christian|buddhist|sikh|nurse|teacher|student|engineer"
    r"|doctor|lawyer|developer|manager|designer|freelancer|[\w-]{2,20}(?:er|or|ist|ian|ant))\b"
    r"|\bmy (?:[\w'\u2019-]{1,20} ){0,3}(?:name|nickname|pronouns|birthday|anniversary|age|job|profession|wife|husband"
    r"|partner|girlfriend|boyfriend|fianc\u00e9e?|sons?|daughters?|kids?|child(?:ren)?|mother|mom|mum|father|dad|parents"
    r"|brothers?|sisters?|siblings|grand\w{3,8}|dogs?|cats?|pets?|car|bike|house|home|apartment|flat|address|phone"
    r"|e-?mail|diet|allerg\w{1,3}|medication|favou?rites?|hobby|hobbies|native language|mother tongue|time zone)\b",
    re.IGNORECASE,
)
_STANDING_ORDER = re.compile(
    r"(?:^|[,;:.!?] )(?:and |but |so |also |please |from now on,? |in (?:the )?future,? |remember(?: that)?,? ){0,3}"
    r"(?:(?:always|never|don['\u2019]t ever|do not ever) \w|(?:call|address|write to|speak to|contact|remind) me\b"
    r"|(?:only |always )?(?:answer|reply|respond|speak|write|talk)(?: to me)? (?:in|with|briefly|shortly)\b"
    r"|use (?:metric|imperial|british|american|celsius|fahrenheit)\b)",
    re.IGNORECASE,
)
_OF_THIS_MATTER = re.compile(
    r"\b(?:(?:this|that|these|those|the (?:current|present|following|above|attached|next)) (?!is\b|means?\b|was\b)"
    r"[^\W\d_]{2,20}|(?:in|for|from) (?:this|that)\b|above|below|attached|attachment|here|right now|for now"
    r"|at the moment|today|tonight|tomorrow|this (?:time|week|once)|so far|the (?:file|files|function|class|method"
    r"|tests?|bug|error|branch|repo|repository|code|script|draft|document|essay|paragraph|section|table|query|server|build|pipeline"
    r"|ticket|issue|commit|module|project|task|assignment))\b"
    r"|[`{}<>|=]|\w\.(?:py|js|ts|md|txt|json|csv|html|java|cpp|go|rs)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\?\s{0,4}$|^(?:can|could|would|will|do|does|did|what|how|why|where|who|when|which)\b", re.IGNORECASE
)


def may_tell_of_user(text: str) -> bool:
    """Whether any line of a message is worded as what `holds_for_user`: most are not, and need not be read further."""
    return any(_OF_SELF.search(line) or _STANDING_ORDER.search(line) for line in text.splitlines())


def holds_for_user(fact: Fact) -> bool:
    """Whether a statement says something of the person who made it, and not of the conversation."""
    if fact.by != "user" or fact.kind not in _KINDS or is_quoted(fact) or _ASKS.search(fact.text):
        return False
    if _OF_THIS_MATTER.search(fact.text):
        return False
    return bool(_OF_SELF.search(fact.text) or _STANDING_ORDER.search(fact.text))
