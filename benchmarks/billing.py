"""What a whole run costs: what is sent, how much of it a provider's cache has already, what is written, condensing.

Each request is compared with the one before it. A message that stands at the same place, byte for byte, is read from
the cache; of the first that differs, the text up to where it differs (its share of the message's tokens). Providers
cache less than that (from 1,024 tokens on, in steps, for some minutes), and the same less for everybody.

A message is counted once, however often it is sent: a run of 400,000 tokens sends 17 million at a window of 128,000.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.agent_transcripts import searchable
from benchmarks.prefix import shared_prefix
from benchmarks.transcript_runs import as_bytes
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.protocols import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Prices of a token, in those of an uncached token of input."""

    cached: float
    """Of input that a provider has in its cache."""
    output: float

    @property
    def label(self) -> str:
        """As tables and files call it."""
        return f"cached {self.cached:g}, output {self.output:g}"


RATES = tuple(Rates(cached=cached, output=output) for cached in (0.1, 0.5) for output in (1.0, 5.0))
"""A tenth is what Anthropic and OpenAI's newest models take for cached input, a half is what others take; an output
token costs four to eight times an input token nearly everywhere, so 1 is kind to whoever writes much."""


LEAST_CACHED = 1024
"""Tokens from which on providers cache a prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request."""

    tokens: int
    """The whole of it: instructions, tags, tools, recall."""
    cached: int
    """Of those, tokens of the prefix that the request before had alike."""
    messages: tuple[Reading, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A message as sent."""

    digest: bytes
    tokens: int
    text: str
    """All that a model reads of it, without line numbers, white space collapsed."""
    raw: bytes
    """Its text as sent, to tell how far it goes on like another."""


class Meter:
    """Counts the requests of one run, one after the other.

    Args:
        counter: Of tokens.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[bytes, Reading] = {}
        self._before: tuple[Reading, ...] = ()
        self._tools_before: int | None = None

    def request(self, messages: Sequence[BaseMessage], *, tool_tokens: int = 0) -> Sent:
        """The next request.

        Args:
            messages: What is sent.
            tool_tokens: Of the tools that are offered with it; they stand before all messages.
        """
        now = tuple(self._reading(message) for message in messages)
        cached = tool_tokens if tool_tokens == self._tools_before else 0
        if self._tools_before in {None, tool_tokens}:
            cached += self._alike(now)
        self._before, self._tools_before = now, tool_tokens
        tokens = PRIMING_TOKENS + tool_tokens + sum(one.tokens for one in now)
        return Sent(tokens=tokens, cached=cached, messages=now)

    def alike(self, messages: Sequence[BaseMessage]) -> int:
        """Tokens of `messages` that begin as the last request did, which stays the last one; tools are left aside."""
        return self._alike([self._reading(message) for message in messages])

    def _alike(self, now: Sequence[Reading]) -> int:
        """Tokens that both requests begin with."""
        tokens = 0
        for old, new in zip(self._before, now, strict=False):
            if old.digest != new.digest:
                shared = shared_prefix(old.raw, new.raw)
                return tokens + int(new.tokens * shared / max(len(new.raw), 1))
            tokens += new.tokens
        return tokens

    def _reading(self, message: BaseMessage) -> Reading:
        sent = as_bytes(message)
        digest = hashlib.blake2b(sent, digest_size=16).digest()
        known = self._known.get(digest)
        if known is None:
            tokens = self._counter.count_message(message)
            known = Reading(digest=digest, tokens=tokens, text=searchable(message), raw=sent)
            self._known[digest] = known
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a whole run took, in tokens; bills add up."""

    sent: int = 0
    cached: int = 0
    """Of those sent."""
    answered: int = 0
    """Written by the model that is asked: the same for everybody."""
    condensing_calls: int = 0
    condensing_read: int = 0
    condensing_written: int = 0
    condensing_cached: int = 0
    """Of those read, what begins like the condensing call before or like the last request, where a provider would cache
    it; billed as the rest all the same, for a condensing model is called seldom, and is mostly another one."""
    condensing_own_cached: int = 0
    """Of those read, what begins like the last request, where the condensing model is the one that was sent it: read
    from its cache, and billed so."""

    def __add__(self, other: Bill) -> Bill:
        """Both together."""
        return Bill(
            sent=self.sent + other.sent,
            cached=self.cached + other.cached,
            answered=self.answered + other.answered,
            condensing_calls=self.condensing_calls + other.condensing_calls,
            condensing_read=self.condensing_read + other.condensing_read,
            condensing_written=self.condensing_written + other.condensing_written,
            condensing_cached=self.condensing_cached + other.condensing_cached,
            condensing_own_cached=self.condensing_own_cached + other.condensing_own_cached,
        )

    def billed(self, rates: Rates) -> float:
        """In tokens of uncached input."""
        written = self.answered + self.condensing_written
        read, cached = self.sent + self.condensing_read, self.cached + self.condensing_own_cached
        return read - cached + rates.cached * cached + rates.output * written
