"""The writers of one engine: who wants a job, who is fit to do it, and the writing itself, within its bounds.

They are plugins, by name and priority; the built-in writers are plugins among them.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.driver import Flow, ModelCall, run
from langchain_tiered_memory.errors import CondensationError, SettingsError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.extensions import CondensationPlugin
from langchain_tiered_memory.models.circuit_breaker import CircuitBreaker, Pass
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.summaries.engine.extension_host import Given, rewritten
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob, with_spent
from langchain_tiered_memory.types.outcomes import FailureReason
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.settings import CondensationSettings
    from langchain_tiered_memory.summaries.engine.extension_host import ExtensionCaller
    from langchain_tiered_memory.summaries.engine.metrics import Tally
    from langchain_tiered_memory.summaries.writers.behind import Standing
    from langchain_tiered_memory.summaries.writers.jobs import Condenser, Part
    from langchain_tiered_memory.summaries.writers.model import ModelCondenser


T = TypeVar("T")
_MAX_KEPT = 256
"""Answers kept for jobs that wait; the oldest go first, and are asked for again."""

MINUTE_SECONDS = 60.0
_OPEN_SECONDS = 60.0
"""For which a model is left alone after failures in a row: providers mostly count by the minute. It doubles with each
further failure, up to `max_open_seconds`."""


class Meter:
    """The rate of one engine's model calls: a sliding minute over their moments. Safe for threads.

    A job that meets it between two of its calls is done again when the minute has passed. What its model answered until
    then is kept meanwhile and given again, so that a job of many calls comes to its end under any bound.
    """

    def __init__(self, max_calls_per_minute: int | None, tally: Tally) -> None:
        self._most = max_calls_per_minute
        self._tally = tally
        self._lock = forks.Lock()
        self._moments: deque[float] = deque()
        self._kept = Remembered[str, Any](_MAX_KEPT)

    def driven(self, flow: Flow[T], writer: str, now: Callable[[], float]) -> Flow[T]:
        """`flow`, within the bound.

        Raises:
            CondensationError: the flow's own; with `retry_after_seconds` where the bound is reached.
        """
        answers: dict[str, Any] = {}
        answer: Any = None
        error: Exception | None = None
        try:
            while True:
                try:
                    request = flow.throw(error) if error is not None else flow.send(answer)
                except StopIteration as stop:
                    written: T = stop.value
                    return written
                error = None
                try:
                    if isinstance(request, ModelCall):
                        answer = yield from self._called(request, writer, now, answers)
                    else:
                        answer = yield request
                except Exception as raised:  # noqa: BLE001 - handed on to the writer, who decides
                    error = raised
        except CondensationError as failure:
            if failure.retry_after_seconds is None:
                raise
            for key, kept in answers.items():
                self._kept.put(key, kept)
            # What the answers took is told when they are given again.
            raise with_spent(failure, Spent()) from failure
        finally:
            flow.close()

    def _called(self, request: ModelCall, writer: str, now: Callable[[], float], answers: dict[str, Any]) -> Flow[Any]:
        """The answer to one call: one that is kept, or a new one where the bound leaves room."""
        key = f"{writer}:{_digest(request)}"
        answer = self._kept.take(key)
        if answer is None:
            self._count(writer, now())
            answer = yield request
        answers[key] = answer
        return answer

    def take(self, now: float) -> float:
        """Count a call that is made now and give 0; where there is no room, give the seconds until there is."""
        if self._most is None:
            return 0.0
        with self._lock:
            while self._moments and self._moments[0] <= now - MINUTE_SECONDS:
                self._moments.popleft()
            if self._moments and self._moments[-1] > now:
                # The clock went back: what it calls the future was just now, and counts for a minute from here.
                self._moments = deque(min(moment, now) for moment in self._moments)
            if len(self._moments) >= self._most:
                return max(self._moments[0] + MINUTE_SECONDS - now, 0.001)
            self._moments.append(now)
            return 0.0

    def _count(self, writer: str, now: float) -> None:
        seconds = self.take(now)
        if not seconds:
            self._tally.add("called", writer)
            return
        message = (
            f"{self._most} model calls were made within a minute: {writer} waits for {seconds:.0f} seconds"
            " (condensation.max_calls_per_minute)"
        )
        raise CondensationError(message, reason=FailureReason.RATE_LIMITED, retry_after_seconds=seconds)


def _digest(request: ModelCall) -> str:
    said = json.dumps([[message.type, str(message.text)] for message in request.messages])
    return hashlib.sha256(said.encode("ascii")).hexdigest()


MODEL_PRIORITY = 100
"""Of the first condensing model; each further one of a chain has one less."""
EXTRACTIVE_PRIORITY = 0
_LEAST_SECONDS = 0.001
_NO_ATTEMPT = (FailureReason.RATE_LIMITED, FailureReason.CIRCUIT_OPEN)


class CondenserPlugin:
    """A built-in writer as a plugin. The engine drives its flow, sync or async as whoever asks.

    One that uses a model is tried again before rules write in its stead.
    """

    def __init__(self, condenser: Condenser, *, priority: int, uses_model: bool) -> None:
        self.name = condenser.name
        self.priority = priority
        self.uses_model = uses_model
        self._condenser = condenser

    def should_activate(self, context: CondensationContext) -> bool:
        """True for any job."""
        del context
        return True

    def condense(self, job: CondenseJob) -> Condensed:
        """The summary, in this thread."""
        return run(self.flow(job))

    def flow(self, job: CondenseJob) -> Flow[Condensed]:
        """The summary, as a flow."""
        return self._condenser.condense(job)

    @property
    def together(self) -> ModelCondenser | None:
        """The writer, where it can write several summaries in one call."""
        writer: Any = self._condenser
        return writer if self.uses_model and hasattr(writer, "condense_together") else None


def is_built_in_rules(plugin: CondensationPlugin) -> bool:
    """Whether it is a built-in writer that asks no model: what stands in for the others."""
    return isinstance(plugin, CondenserPlugin) and not plugin.uses_model


class Writers:
    """Plugins with their breakers, and one bound on model calls for all of them. Safe for threads."""

    def __init__(
        self, settings: CondensationSettings, caller: ExtensionCaller, tally: Tally, *, max_open_seconds: float
    ) -> None:
        self._settings = settings
        self._door = caller
        self._tally = tally
        self._max_open_seconds = max_open_seconds
        self._meter = Meter(settings.max_calls_per_minute, tally)
        self._lock = forks.Lock()
        self._breakers: dict[str, CircuitBreaker] = {}
        self._plugins: tuple[CondensationPlugin, ...] = ()

    @property
    def plugins(self) -> tuple[CondensationPlugin, ...]:
        """All of them, the highest priority first; among equals, the one that was there first."""
        return self._plugins

    def register(self, plugin: CondensationPlugin) -> None:
        """Add a plugin."""
        given: object = plugin
        if not isinstance(given, CondensationPlugin):
            msg = f"a plugin needs name, priority, should_activate and condense; {type(given).__name__} lacks some"
            raise SettingsError(msg)
        if not isinstance(plugin.name, str) or not plugin.name or not isinstance(plugin.priority, int | float):
            msg = f"a plugin's name is a text and its priority a number, not {plugin.name!r} and {plugin.priority!r}"
            raise SettingsError(msg)
        with self._lock:
            if any(one.name == plugin.name for one in self._plugins):
                msg = f"there is a plugin {plugin.name!r} already: unregister it first, or choose another name"
                raise SettingsError(msg)
            self._plugins = tuple(sorted((*self._plugins, plugin), key=lambda one: -one.priority))

    def unregister(self, name: str) -> bool:
        """Take a plugin out. Returns whether there was one of that name."""
        with self._lock:
            left = tuple(one for one in self._plugins if one.name != name)
            found = len(left) < len(self._plugins)
            self._plugins = left
            return found

    def configure(self, settings: CondensationSettings) -> None:
        """Bounds from now on. What breakers and the bound on calls know is forgotten where theirs are others."""
        if settings.max_calls_per_minute != self._settings.max_calls_per_minute:
            self._meter = Meter(settings.max_calls_per_minute, self._tally)
        with self._lock:
            if settings.breaker_failures != self._settings.breaker_failures:
                self._breakers.clear()
            self._settings = settings

    def candidates(self, context: CondensationContext) -> list[CondensationPlugin]:
        """Who wants the job, best first. Blocking."""
        return [plugin for plugin in self._plugins if self._wants(plugin, context)]

    def enter(self, plugin: CondensationPlugin, now: float) -> Pass | float:
        """Leave to write, or the seconds until it may be had."""
        breaker = self._breaker(plugin)
        if breaker is None:
            return Pass(0)
        return breaker.enter(now) or max(breaker.wait_seconds(now), _LEAST_SECONDS)

    def write(
        self, plugin: CondensationPlugin, job: CondenseJob, context: CondensationContext, now: Callable[[], float]
    ) -> Flow[Condensed]:
        """What one writer makes of a job, as it comes.

        Raises:
            CondensationError: when nothing usable came, or the bound on model calls is reached.
        """
        self._tally.add("asked", plugin.name)
        if isinstance(plugin, CondenserPlugin):
            return (yield from self._meter.driven(plugin.flow(job), plugin.name, now))
        condensed = self._of_plugin(plugin, job, context)
        self._tally.add("called", plugin.name, times=condensed.spent.calls)
        return condensed

    def write_together(
        self,
        plugin: CondenserPlugin,
        parts: Sequence[Part],
        now: Callable[[], float],
        *,
        standing: Standing | None = None,
    ) -> Flow[list[Condensed]]:
        """What one call of a built-in writer gives for several summaries, as it comes; none where it writes one by one.

        Raises:
            CondensationError: when no answer came, or the bound on model calls is reached.
        """
        if plugin.together is None:
            return []
        self._tally.add("asked", plugin.name)
        flow = plugin.together.condense_together(parts, standing=standing, report=self._door.report)
        return (yield from self._meter.driven(flow, plugin.name, now))

    @contextmanager
    def breaks(self, plugin: CondensationPlugin, given: Pass, now: Callable[[], float]) -> Iterator[None]:
        """Tell a writer's breaker what became of its call in the block: well, a failure, or what was not its doing."""
        breaker = self._breaker(plugin)
        try:
            yield
        except BaseException as error:  # cancelled and closed too
            given.well = False
            if isinstance(error, CondensationError) and error.reason is not FailureReason.RATE_LIMITED:
                self._tally.add("writer failed", plugin.name, error.reason)
                wait = error.retry_after_seconds
                seconds = breaker.failed(given, now(), wait=wait) if breaker is not None else None
                if seconds is not None:
                    why = f"failed again ({error.reason})" if wait is None else f"asks for a pause ({error})"
                    said = f"{plugin.name} {why} and is not called for {seconds:g} seconds"
                    self._door.report(EventName.CIRCUIT_OPENED, said, writer=plugin.name, seconds=seconds)
            raise
        finally:
            if breaker is not None and not given.well:
                breaker.left(given)
            elif breaker is not None and breaker.succeeded(given):
                self._door.report(EventName.CIRCUIT_CLOSED, f"{plugin.name} works again", writer=plugin.name)

    def open_seconds(self, now: float) -> list[tuple[str, float]]:
        """Each writer with the seconds that its breaker stays open."""
        breakers = [(plugin.name, self._breaker(plugin)) for plugin in self._plugins]
        return [(name, breaker.wait_seconds(now) if breaker is not None else 0.0) for name, breaker in breakers]

    def _breaker(self, plugin: CondensationPlugin) -> CircuitBreaker | None:
        if is_built_in_rules(plugin):
            return None  # what it cannot do has to do with the job: leaving it alone would help nobody
        with self._lock:
            found = self._breakers.get(plugin.name)
            if found is None:
                found = self._breakers[plugin.name] = CircuitBreaker(
                    failures=self._settings.breaker_failures,
                    seconds=_OPEN_SECONDS,
                    max_seconds=self._max_open_seconds,
                )
            return found

    def _wants(self, plugin: CondensationPlugin, context: CondensationContext) -> bool:
        if isinstance(plugin, CondenserPlugin):
            return not (plugin.uses_model and self._settings.strategies.primary == "provider")
        return self._door.value(
            f"plugin {plugin.name}.should_activate",
            lambda: plugin.should_activate(context),
            lambda said: said if isinstance(said, bool) else None,
            owner=plugin,
            otherwise=False,
            session_id=context.session_id,
        )

    def _of_plugin(self, plugin: CondensationPlugin, job: CondenseJob, context: CondensationContext) -> Condensed:
        answer = self._door.ask(
            f"plugin {plugin.name}.condense",
            lambda: plugin.condense(job),
            lambda said: _signed(said, plugin.name),
            owner=plugin,
            session_id=context.session_id,
        )
        if isinstance(answer, Given):
            return answer.value
        reason = FailureReason.TIMEOUT if answer.hung else FailureReason.MODEL_ERROR
        spent = None
        if isinstance(answer.error, CondensationError):
            spent = answer.error.spent
            reason = reason if answer.error.reason in _NO_ATTEMPT else answer.error.reason
        message = f"the plugin {plugin.name} {answer.why}"
        raise CondensationError(message, reason=reason, spent=spent) from answer.error


def _signed(said: object, name: str) -> Condensed | None:
    """A plugin's answer under its own name; `None` for nonsense."""
    if isinstance(said, str):
        return Condensed(text=said, tokens=0, model=name)
    if not isinstance(said, Condensed):
        return None
    written = rewritten(said, Condensed(text="", tokens=0, model=name))
    return written and replace(written, spent=said.spent)
