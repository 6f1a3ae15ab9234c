"""OpenTelemetry spans and metrics of memory operations, where the program has set up a provider; else nothing.

Names are those of the `gen_ai` conventions for memory (semantic-conventions-genai 0.1: `search_memory`,
`upsert_memory`, `delete_memory`, `gen_ai.memory.*`, `gen_ai.conversation.id`), in Development there; what they have no
name for begins with `tiered_memory.`. No content is ever told: no message, query, path or file.

Nothing is imported here: a provider can only be set by who imported the API, so without one an operation costs a look
into `sys.modules`, and with the API alone a look at its provider. Spans of operations that wait (contexts, model calls)
are not made current: their steps run in several threads. Those of plain functions are, so what is called in them nests.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from langchain_tiered_memory._version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

SCOPE = "langchain_tiered_memory"
"""The instrumentation's name."""
OPERATION = "gen_ai.operation.name"
CONVERSATION = "gen_ai.conversation.id"
RECORDS = "gen_ai.memory.record.count"
ERROR = "error.type"
DURATION = "gen_ai.client.operation.duration"
"""Seconds of each operation, by its name; the conventions' histogram."""
CONTEXT_TOKENS = "tiered_memory.context.tokens"
CONDENSE_TOKENS = "tiered_memory.condense.tokens"
FILE_MOVES = "tiered_memory.file.moves"

Name: TypeAlias = Literal[
    "search_memory",
    "upsert_memory",
    "delete_memory",
    "build_context",
    "condense_memory",
    "open_file",
    "collect_files",
    "optimise_files",
]
"""The first three are the conventions' own; for the others they allow names of one's own."""
_INSTRUMENTS: Mapping[str, tuple[Literal["counter", "histogram"], str, str]] = {
    DURATION: ("histogram", "s", "Duration of memory operations"),
    CONTEXT_TOKENS: ("histogram", "{token}", "Size of contexts, system prompt and tools included"),
    CONDENSE_TOKENS: ("counter", "{token}", "Tokens that condensing models read and wrote"),
    FILE_MOVES: ("counter", "{file}", "Files that went to another tier"),
}
_IDLE = frozenset({"_ProxyMeterProvider", "NoOpMeterProvider", "ProxyTracerProvider", "NoOpTracerProvider"})
"""What the API gives while no provider is set; the first of them has no public name."""


@dataclass(slots=True)
class _Cached:
    """The tracer and the instruments of the providers that were there last."""

    tracer_of: tuple[Any, Any] = (None, None)
    meter_of: tuple[Any, Any] = (None, None)
    instruments: dict[str, Any] = field(default_factory=dict)


_cached = _Cached()


def _provider(module: str, getter: str) -> Any:  # noqa: ANN401 - OpenTelemetry's, which may not be installed
    """The provider that is set, or `None`."""
    api = sys.modules.get(module)
    ask = getattr(api, getter, None)  # absent while another thread imports it
    provider = ask() if ask is not None else None
    return None if provider is None or type(provider).__name__ in _IDLE else provider


def _tracer() -> Any:  # noqa: ANN401 - as above
    provider = _provider("opentelemetry.trace", "get_tracer_provider")
    if provider is None:
        return None
    known, tracer = _cached.tracer_of
    if known is not provider:
        tracer = provider.get_tracer(SCOPE, __version__)
        _cached.tracer_of = (provider, tracer)
    return tracer


def _instrument(name: str) -> Any:  # noqa: ANN401 - as above
    provider = _provider("opentelemetry.metrics", "get_meter_provider")
    if provider is None:
        return None
    known, meter = _cached.meter_of
    if known is not provider:
        meter = provider.get_meter(SCOPE, __version__)
        _cached.instruments = {}
        _cached.meter_of = (provider, meter)
    instruments = _cached.instruments
    if name not in instruments:
        kind, unit, about = _INSTRUMENTS[name]
        make = meter.create_counter if kind == "counter" else meter.create_histogram
        instruments[name] = make(name, unit=unit, description=about)
    return instruments[name]


def add(name: str, amount: int, attributes: Mapping[str, Any] | None = None) -> None:
    """Raise a counter."""
    counter = _instrument(name)
    if counter is not None:
        counter.add(amount, dict(attributes or {}))


def record(name: str, value: float, attributes: Mapping[str, Any] | None = None) -> None:
    """Note a value in a histogram."""
    histogram = _instrument(name)
    if histogram is not None:
        histogram.record(value, dict(attributes or {}))


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


class Operation:
    """One operation under way: a span, and its duration. Use as a context manager; made by `operation`."""

    __slots__ = ("_attributes", "_begun", "_is_current", "_name", "_span", "_token", "_tracer")

    def __init__(self, name: Name, attributes: Mapping[str, Any], tracer: Any, *, is_current: bool) -> None:  # noqa: ANN401 - as above
        self._name = name
        self._attributes = {OPERATION: name, **_plain(attributes)}
        self._tracer = tracer
        self._is_current = is_current
        self._span: Any = None
        self._token: Any = None
        self._begun = 0.0

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Add what is known by now; what is `None` is left out."""
        if self._span is not None:
            self._span.set_attributes(_plain(attributes))

    def __enter__(self) -> Self:
        """Begin."""
        if self._tracer is not None:
            trace = sys.modules["opentelemetry.trace"]
            self._span = self._tracer.start_span(
                self._name, kind=trace.SpanKind.INTERNAL, attributes=self._attributes, record_exception=False
            )
            if self._is_current:
                self._token = _context().attach(trace.set_span_in_context(self._span))
        self._begun = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End; an error is told by its class alone: its words may quote what was said."""
        failed = {ERROR: kind.__qualname__} if kind is not None and issubclass(kind, Exception) else {}
        record(DURATION, perf_counter() - self._begun, {OPERATION: self._name, **failed})
        if self._span is None:
            return
        if self._token is not None:
            _context().detach(self._token)
        if failed:
            trace = sys.modules["opentelemetry.trace"]
            self._span.set_attributes(failed)
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()


def operation(name: Name, attributes: Mapping[str, Any], *, is_current: bool = True) -> Operation:
    """An operation to be traced and timed; one that does nothing where no provider is set.

    Attributes that are `None` are left out. Spans that begin within it in this thread are its children where it
    `is_current`: not for a flow.
    """
    return Operation(name, attributes, _tracer(), is_current=is_current)


def _context() -> Any:  # noqa: ANN401 - as above
    with suppress(KeyError):
        return sys.modules["opentelemetry.context"]
    from opentelemetry import context  # noqa: PLC0415 - only where the API is loaded already

    return context
