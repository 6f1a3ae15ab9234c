"""Judges what the user said last by what is found for it: how much it asks for, and what is worth its room beside it.

A conversation that goes on says much that asks nothing. What a message scores itself, among all that is ranked for it,
is the measure of what answers it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.recall.filling import POINTER_TOKENS, price

if TYPE_CHECKING:
    from langchain_tiered_memory.recall.finding import Found

_LEAST_OF_OWN = (0.1, 0.35)
"""What an entry must score beside what is said, in parts of what that scores itself: for brief messages, which are
often questions, and for long ones, of which every old talk shares some words. Measured on chats
(`benchmarks/cost_curve.py`): the evidence of questions stays, and of what others recalled three quarters go."""
_TELLING_NATS = (20.0, 60.0)
"""Where a message counts as brief and as long: the sum of the idf of its terms."""
_ANSWERED = 0.5
"""Of what a message scores itself, from which on the answer before it is what it goes on with, or something older what
it asks for: a third the answer has for standing beside it alone, whatever is said."""
_RARE = 3
"""Passages that a term may stand in to be looked up whatever else is said: the message itself is one of them."""
_LITTLE = 1.25
"""A message that tells less than so many unique words, none of them rare, is small talk unless it asks."""
_ASKS = re.compile("[?\uff1f\u061f\u037e]")
"""Question marks."""


def wanted_tokens(found: Found, query: str, *, said_at: int, shown_from: int) -> int:
    """About how many tokens `recall` would quote beside what the user said last, had it all room that there is.

    Args:
        found: What `find` gave for it.
        query: What was said.
        said_at: Its `seq`.
        shown_from: Messages of the same track from this `seq` on stand in the context in any case.
    """
    least = least_score(found, query, said_at)
    track = found.entries[said_at].track if said_at in found.entries else None
    worth = [found.entries[one.sequence] for one in found.ranked if one.own_score >= least]
    hidden = [entry for entry in worth if entry.seq < shown_from or (track is not None and entry.track != track)]
    return sum(price(entry) + POINTER_TOKENS for entry in hidden)


def goes_on(found: Found, *, said_at: int, shown_from: int) -> bool:
    """Whether what the user said last goes on with what the assistant said last: nothing older matches it as well.

    Args:
        found: What `find` gave for it.
        said_at: Its `seq`.
        shown_from: Messages from this `seq` on stand in the context in any case.
    """
    shown = (one for one in found.ranked if shown_from <= one.sequence < said_at)
    answered = max((one.own_score for one in shown if found.entries[one.sequence].role == "assistant"), default=0.0)
    own, older = _own_score(found, said_at), _older_score(found, shown_from)
    return answered >= max(_ANSWERED * own, older) > 0.0


def asks_back(found: Found, query: str, *, said_at: int, shown_from: int) -> bool:
    """Whether what the user said last is a question, or is answered by something older, however it is put.

    Args:
        found: What `find` gave for it.
        query: What was said.
        said_at: Its `seq`.
        shown_from: Messages from this `seq` on stand in the context in any case.
    """
    if _ASKS.search(query):
        return True
    return _older_score(found, shown_from) >= _ANSWERED * _own_score(found, said_at) > 0.0


def least_score(found: Found, query: str, said_at: int | None) -> float:
    """The score from which on an entry is worth its room beside a message of a conversation that goes on."""
    own = next((one.own_score for one in found.ranked if one.sequence == said_at), None)
    if own is None:
        return 0.0
    if found.rarest > _RARE and found.asked_nats < _LITTLE * found.unique_nats and not _ASKS.search(query):
        return math.inf
    low, high = _LEAST_OF_OWN
    brief, long = _TELLING_NATS
    return own * (low + (high - low) * min(max((found.asked_nats - brief) / (long - brief), 0.0), 1.0))


def _own_score(found: Found, said_at: int) -> float:
    """What a message scores itself; 0 where it was not found."""
    return next((one.own_score for one in found.ranked if one.sequence == said_at), 0.0)


def _older_score(found: Found, shown_from: int) -> float:
    """The best score of what stands in no context in any case."""
    return max((one.own_score for one in found.ranked if one.sequence < shown_from), default=0.0)
