"""Plays an agent's transcript to this memory and asks for a context before each of the agent's calls."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from benchmarks.agent_transcripts import Probe, Transcript, searchable
from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.context.pieces import MARK
from langchain_tiered_memory.context.section_report import POINTED
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.types.contexts import Context

Query: TypeAlias = Literal["last", "none"]
"""What is looked up: the last user message, or nothing."""
Asked: TypeAlias = Literal["calls", "probes"]
"""When a context is asked for: before each call of the agent, as in life, or where a probe wants one."""

_BROKEN_BELOW = 0.5
"""A call of which less is a prefix of the last counts as a break of the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the context before one probe showed."""

    transcript: str
    probe: Probe
    part: str | None
    """Where the needle stands: `messages`, or the part that we wrote (`history`, `recall` ...); `None` if nowhere."""


@dataclass(slots=True, kw_only=True)
class Run:
    """One transcript within one budget."""

    transcript: str
    budget: int
    found: list[Found] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    """Of each context."""
    counted_calls: int = 0
    """Calls for which the history did not fit the budget: only then a prefix tells something."""
    sent_bytes: int = 0
    alike_bytes: int = 0
    """Of those, in messages that the call before had sent alike."""
    breaks: int = 0
    pointed: set[str] = field(default_factory=set)
    """Results of which some context had a pointer to the same text above."""
    pointed_tokens: int = 0
    """What they would have taken besides, in all contexts."""
    faults: list[str] = field(default_factory=list)
    """What a provider would refuse, and contexts over budget."""
    refused: list[str] = field(default_factory=list)
    """Contexts that could not be made, with the error."""
    context_seconds: list[float] = field(default_factory=list)
    add_seconds: list[float] = field(default_factory=list)
    """Of each message, condensing included."""


def run_transcript(
    transcript: Transcript,
    budget: int,
    *,
    counter: TokenCounter,
    embeddings: Embeddings | None = None,
    query: Query = "none",
    asked: Asked = "calls",
) -> Run:
    """Add the messages one by one to a session of a new memory and ask for contexts on the way.

    Args:
        transcript: The run.
        budget: Of each context, in tokens.
        counter: The memory's.
        embeddings: The memory's; `None` for words alone.
        query: What is looked up.
        asked: When.
    """
    settings = Settings(tree=TreeSettings(background=False))
    with TieredMemory.open(None, embeddings=embeddings, token_counter=counter, settings=settings) as memory:
        player = _Player(transcript, memory.session(transcript.name), budget, counter=counter, query=query)
        for place, message in enumerate(transcript.messages):
            if place in player.probes or (asked == "calls" and place and isinstance(message, AIMessage)):
                player.ask(place)
            player.add(place)
        return player.run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A message as sent: kept, for most are sent many times."""

    text: str
    tokens: int


class _Player:
    """Plays one transcript."""

    def __init__(
        self, transcript: Transcript, session: Session, budget: int, *, counter: TokenCounter, query: Query
    ) -> None:
        self.run = Run(transcript=transcript.name, budget=budget)
        self.probes: dict[int, list[Probe]] = {}
        for probe in transcript.probes:
            self.probes.setdefault(probe.at, []).append(probe)
        self._transcript = transcript
        self._session = session
        self._counter = counter
        self._query = None if query == "last" else ""
        self._history = 0
        self._before: list[bytes] = []
        self._results: dict[str, str] = {}
        self._read: dict[bytes, _Reading] = {}

    def add(self, place: int) -> None:
        """The next message, with the summaries that fall due."""
        message = self._transcript.messages[place]
        began = time.perf_counter()
        [identity] = self._session.add_messages([message], at=self._transcript.times[place], wait=True)
        self.run.add_seconds.append(time.perf_counter() - began)
        self._history += self._counter.count_message(message)
        if isinstance(message, ToolMessage):
            self._results[identity] = text_of(message)

    def ask(self, place: int) -> None:
        """What the agent would be sent before it writes message `place`."""
        began = time.perf_counter()
        sent: list[BaseMessage] = []
        try:
            context = self._session.context(self._query, max_tokens=self.run.budget)
        except BudgetError as error:
            self.run.refused.append(f"before {place}: {error}")
        else:
            self.run.context_seconds.append(time.perf_counter() - began)
            sent = context.messages
            now = [as_bytes(message) for message in sent]
            read = [self._reading(message, key) for message, key in zip(sent, now, strict=True)]
            self._check(sent, place, tokens=sum(one.tokens for one in read), own_count=context.tokens)
            self._compare(now)
            self._follow(context, place)
        for probe in self.probes.get(place, ()):
            parts = (_part(message) for message in sent if probe.needle in self._reading(message).text)
            self.run.found.append(Found(transcript=self.run.transcript, probe=probe, part=next(parts, None)))

    def _check(self, sent: Sequence[BaseMessage], place: int, *, tokens: int, own_count: int) -> None:
        tokens += PRIMING_TOKENS
        self.run.tokens.append(tokens)
        complete = not isinstance(self._transcript.messages[place - 1], AIMessage)
        self.run.faults += [f"before {place}: {fault}" for fault in check_valid(sent, complete=complete)]
        if max(tokens, own_count) > self.run.budget:
            self.run.faults.append(f"before {place}: {tokens} tokens, {own_count} by its own account")

    def _compare(self, now: list[bytes]) -> None:
        if self._history > self.run.budget:
            alike = 0
            for one, other in zip(self._before, now, strict=False):
                if one != other:
                    break
                alike += len(one)
            sent = sum(len(one) for one in now)
            self.run.counted_calls += 1
            self.run.sent_bytes += sent
            self.run.alike_bytes += alike
            self.run.breaks += alike < _BROKEN_BELOW * sent
        self._before = now

    def _follow(self, context: Context, place: int) -> None:
        """Hold what is pointed to against what stands above the pointer."""
        recent = context.section("recent")
        left = {one.what: one for one in recent.left_out if one.reason.endswith(POINTED)} if recent is not None else {}
        for at, message in enumerate(context.messages if left else ()):
            pointed = left.get(str(message.id))
            if pointed is None:
                continue
            self.run.pointed.add(pointed.what)
            self.run.pointed_tokens += pointed.tokens
            text = self._results[pointed.what]
            if not any(text in text_of(one) for one in context.messages[:at]):
                self.run.faults.append(f"before {place}: {pointed.what} is pointed to and does not stand above")

    def _reading(self, message: BaseMessage, key: bytes | None = None) -> _Reading:
        key = as_bytes(message) if key is None else key
        if key not in self._read:
            self._read[key] = _Reading(text=searchable(message), tokens=self._counter.count_message(message))
        return self._read[key]


def _part(message: BaseMessage) -> str:
    mark = message.additional_kwargs.get(MARK)
    return str(mark.get("part")) if isinstance(mark, dict) else "messages"


def as_bytes(message: BaseMessage) -> bytes:
    """A message as a provider reads it: role, name, content, calls and the call that it answers."""
    calls = [[call.name, call.args, call.raw, call.id] for call in requested_calls(message)]
    said = [message.type, message.name, message.content, calls, getattr(message, "tool_call_id", None)]
    return json.dumps(said, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
