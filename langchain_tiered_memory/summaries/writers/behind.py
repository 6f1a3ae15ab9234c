"""Has a model write several summaries behind the agent's last request, where that is billed less than a prompt anew.

The request is sent as it was, byte for byte, with one message behind it, so the provider reads it from its cache. What
comes back is text, and taken apart and checked as the answer to any other call for several.

The last answered request of each session is kept in memory alone, one a session, and not for long: a provider's cache
lasts minutes, and what was forgotten must not stand here. It is used only while its session has the epoch under which
it was made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.models.chat_models import answer_limit
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.summaries.prompts.batch_prompt import Shown, build_batch, build_behind
from langchain_tiered_memory.summaries.writers.batches import nothing, of_its_own, taken_apart
from langchain_tiered_memory.summaries.writers.model_calls import PromptOverflowError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.settings import ValidationSettings
    from langchain_tiered_memory.summaries.writers.jobs import Condensed, Part
    from langchain_tiered_memory.summaries.writers.model_calls import Answer, ModelCalls
    from langchain_tiered_memory.types.records import Spent

K = TypeVar("K")
_SESSIONS = 32
"""Sessions whose last request is kept: with long windows each may be a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRequest:
    """A request as it was sent."""

    model: Runnable[Any, Any]
    """As it was called: with its tools and settings."""
    messages: Sequence[BaseMessage]
    tokens: int
    """Of all that was sent, tools included."""
    at: float
    """When it was answered, in seconds since the epoch."""
    epoch: int
    """The session's, when it was put together."""
    is_cached: bool
    """Whether the provider is known to cache it."""

    def places(self) -> Mapping[str, int]:
        """By id, where each message stands; of two under one id, neither."""
        found: dict[str, int] = {}
        for place, message in enumerate(self.messages):
            if message.id:
                found[message.id] = -1 if message.id in found else place
        return {one: place for one, place in found.items() if place >= 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A last request that may be used now."""

    request: LastRequest
    cached_price: float
    """Of a token of it, in the price of one that is not cached."""
    by_name: bool
    """Whether a model of the same name is taken for the same one, and for one whose provider caches."""


class LastRequests:
    """Bounded, and safe for threads."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._kept: dict[str, LastRequest] = {}
        self._waiting: dict[tuple[str, str], LastRequest] = {}

    def note(self, session_id: str, request: LastRequest) -> None:
        """Keep a request in the place of the one before it."""
        with self._lock:
            _keep(self._kept, session_id, request)

    def await_answer(self, session_id: str, track: str, request: LastRequest) -> None:
        """Keep a request that was handed out and is not answered yet, in the place of the one before it."""
        with self._lock:
            _keep(self._waiting, (session_id, track), request)

    def take_answered(self, session_id: str, track: str) -> LastRequest | None:
        """The request that an answer belongs to, once; `None` where none was handed out."""
        with self._lock:
            return self._waiting.pop((session_id, track), None)

    def warm(self, session_id: str, *, now: float, lifetime_seconds: float) -> LastRequest | None:
        """The session's, while its provider has it; those that ran out are let go of.

        A clock that went back is no reason to trust a cache.
        """
        with self._lock:
            for one, kept in list(self._kept.items()):
                if not 0 <= now - kept.at < lifetime_seconds:
                    del self._kept[one]
            return self._kept.get(session_id)

    def clear(self) -> None:
        """Let go of everything: something was forgotten, or the memory is closed."""
        with self._lock:
            self._kept.clear()
            self._waiting.clear()


def _keep(kept: dict[K, LastRequest], key: K, request: LastRequest) -> None:
    kept.pop(key, None)
    kept[key] = request
    if len(kept) > _SESSIONS:
        del kept[next(iter(kept))]


_FILLED = 0.95
"""Of the window, that request, message and answer may fill: most of it the provider has counted itself."""
_WORTH = 0.9
"""Of what the usual call would be billed: what fails is paid for twice."""
PART_TOKENS = 12
"""Around a part of an answer."""
_PASSED_OVER = 4
"""Calls that go the usual way after one that failed; twice as many after each further one in a row."""
_MOST_DOUBLINGS = 10
_READ_SHARE = 0.5
"""Of the request, that a provider which reports what it read from its cache must report."""


class BehindRequests:
    """Tries it for one condensing model; it passes over the next calls where that failed."""

    def __init__(self, calls: ModelCalls, *, validation: ValidationSettings) -> None:
        self._calls = calls
        self._validation = validation
        self._failures = 0
        self._rests = 0

    def written(
        self, parts: Sequence[Part], standing: Standing, *, usual: Sequence[Part]
    ) -> Flow[tuple[list[Condensed], str]]:
        """What the call gives for each of `parts`, and why none of it can be used; nothing where it is not made.

        `usual` are the parts as the usual call would show them: it is made where it is billed less than that.
        """
        shown = self._shown(standing)
        message = self._message(parts, standing, shown, usual=usual) if shown is not None else None
        if shown is None or message is None or self._is_resting():
            return [], ""
        calls = self._calls.as_bound(standing.request.model)
        # The request's own settings stand, its temperature too: nothing of it is to change.
        job = replace(parts[0].job, temperature=None)
        try:
            answer = yield from calls.ask([*standing.request.messages, message], job)
        except (CondensationError, PromptOverflowError) as error:
            if isinstance(error, CondensationError) and error.retry_after_seconds is not None:
                raise
            return self._failed(str(error), error.spent, parts)
        answer = replace(answer, spent=_billed(answer, standing))
        if answer.calls_tools:
            return self._failed("the model called a tool", answer.spent, parts)
        answers = taken_apart(
            answer, parts, writer=self._calls.name, count_text=self._calls.count_text, validation=self._validation
        )
        answers = [
            replace(of_its_own(one, part, _others(part, shown)), shown=tuple(shown.texts))
            for one, part in zip(answers, parts, strict=True)
        ]
        if not any(one.text for one in answers):
            self._rest()
            why = "the answer ended too soon" if answer.cut_off else answers[0].refused[-1].why
            return answers, f"no part of the answer could be used: {why}"
        self._learn(answer, standing)
        return answers, ""

    def _message(
        self, parts: Sequence[Part], standing: Standing, shown: Shown, *, usual: Sequence[Part]
    ) -> BaseMessage | None:
        """What stands behind the request; `None` where there is no room, or a prompt of its own is billed less."""
        request = standing.request
        message = build_behind(parts, shown)
        if message is None:
            return None
        added = self._calls.count([message])
        answer = sum(part.job.max_tokens + PART_TOKENS for part in parts)
        window, limit = self._calls.as_bound(request.model).window(), answer_limit(request.model)
        if request.tokens + added + answer > _FILLED * window or (limit is not None and answer > limit):
            return None
        apart = self._calls.count(build_batch(usual))
        return message if standing.cached_price * request.tokens + added < _WORTH * apart else None

    def _shown(self, standing: Standing) -> Shown | None:
        """The request as texts, where it is this model's own, and cached."""
        request = standing.request
        if not self._calls.is_of(request.model, by_name=standing.by_name):
            return None
        if not (request.is_cached or standing.by_name):
            return None
        return Shown.of(request.messages, request.places())

    def _is_resting(self) -> bool:
        resting = self._rests > 0
        self._rests -= resting
        return resting

    def _learn(self, answer: Answer, standing: Standing) -> None:
        """Whether the provider had it in its cache, where it says so."""
        if answer.cached_tokens is not None and answer.cached_tokens < _READ_SHARE * standing.request.tokens:
            self._rest()
        else:
            self._failures = 0

    def _failed(self, why: str, spent: Spent, parts: Sequence[Part]) -> tuple[list[Condensed], str]:
        self._rest()
        return nothing(parts, self._calls.name, spent), why

    def _rest(self) -> None:
        self._rests = _PASSED_OVER * 2 ** min(self._failures, _MOST_DOUBLINGS)
        self._failures += 1


def _billed(answer: Answer, standing: Standing) -> Spent:
    """What the call took, with what came from the cache at its price: all of the request where nobody says."""
    spent = answer.spent
    cached = standing.request.tokens if answer.cached_tokens is None else answer.cached_tokens
    cached = min(cached, spent.input_tokens)
    return replace(spent, input_tokens=spent.input_tokens - round((1 - standing.cached_price) * cached))


def _others(part: Part, shown: Shown) -> list[list[str]]:
    """What else stands in the request, in stretches of about the size of the part."""
    own = {shown.places[source.id] for source in part.job.sources if source.id in shown.places}
    size = sum(len(source.text) for source in part.job.sources)
    found: list[list[str]] = [[]]
    filled = 0
    for place, text in enumerate(shown.texts):
        if place in own:
            continue
        if filled >= size:
            found.append([])
            filled = 0
        found[-1].append(text)
        filled += len(text)
    return found
