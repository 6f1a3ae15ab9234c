"""OpenTelemetry spans and metrics of memory operations, if the program has set up a provider.

Names follow the `gen_ai` conventions for memory (semantic-conventions-genai 0.1, in Development: `search_memory`,
`upsert_memory`, `delete_memory`, `gen_ai.memory.*`, `gen_ai.conversation.id`). Other names begin with
`tiered_memory.`. Content is never reported: no message, query, path or file.

This module does not import OpenTelemetry. Only a program that imported the API can set a provider, so without one an
operation costs a look into `sys.modules`, and with only the API a look at its provider. Spans of operations that wait
(contexts, model calls) are not made current, because their steps run in several threads. Spans of plain functions are
current, so calls inside them nest.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_tiered_memory._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Note: TypeAlias = Callable[[Mapping[str, Any]], None]

SCOPE = "langchain_tiered_memory"
"""The instrumentation's name."""
OPERATION = "gen_ai.operation.name"
CONVERSATION = "gen_ai.conversation.id"
RECORDS = "gen_ai.memory.record.count"
ERROR = "error.type"
DURATION = "gen_ai.client.operation.duration"
"""Seconds of each operation, by its name: the conventions' histogram."""
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
"""The first three are from the conventions, which allow other names for the rest."""
_INSTRUMENTS: Mapping[str, tuple[Literal["counter", "histogram"], str, str]] = {
    DURATION: ("histogram", "s", "Duration of memory operations"),
    CONTEXT_TOKENS: ("histogram", "{token}", "Size of contexts, system prompt and tools included"),
    CONDENSE_TOKENS: ("counter", "{token}", "Tokens that condensing models read and wrote"),
    FILE_MOVES: ("counter", "{file}", "Files that went to another tier"),
}
_IDLE = frozenset({"_ProxyMeterProvider", "NoOpMeterProvider", "ProxyTracerProvider", "NoOpTracerProvider"})
"""The API's providers while none is set. The first has no public name."""


@lru_cache(maxsize=1)
def _tracer_of(provider: Any) -> Any:  # noqa: ANN401 - OpenTelemetry's, which may not be installed
    return provider.get_tracer(SCOPE, __version__)


@lru_cache(maxsize=len(_INSTRUMENTS))
def _instrument_of(provider: Any, name: str) -> Any:  # noqa: ANN401 - as above
    kind, unit, about = _INSTRUMENTS[name]
    meter = provider.get_meter(SCOPE, __version__)
    make = meter.create_counter if kind == "counter" else meter.create_histogram
    return make(name, unit=unit, description=about)


def _provider(module: str, getter: str) -> Any:  # noqa: ANN401 - as above
    """The provider that is set, or `None`."""
    api = sys.modules.get(module)
    ask = getattr(api, getter, None)  # absent while another thread imports it
    provider = ask() if ask is not None else None
    return None if provider is None or type(provider).__name__ in _IDLE else provider


def record(name: str, amount: float, attributes: Mapping[str, Any] | None = None) -> None:
    """Add to a counter, or note a value in a histogram."""
    provider = _provider("opentelemetry.metrics", "get_meter_provider")
    if provider is not None:
        instrument = _instrument_of(provider, name)
        note = instrument.add if _INSTRUMENTS[name][0] == "counter" else instrument.record
        note(amount, dict(attributes or {}))


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


@contextmanager
def operation(name: Name, attributes: Mapping[str, Any], *, is_current: bool = True) -> Iterator[Note]:
    """Trace and time the block. Does nothing if no provider is set. The yielded function adds attributes.

    Attributes that are `None` are left out. If it `is_current`, which a flow's is not, spans that begin in the block in
    this thread are its children. Only the class of an error is reported, because its words may quote a message.
    """
    provider = _provider("opentelemetry.trace", "get_tracer_provider")
    span: Any = None
    within: AbstractContextManager[Any] = nullcontext()
    if provider is not None:
        trace = sys.modules["opentelemetry.trace"]
        told = {OPERATION: name, **_plain(attributes)}
        kind = trace.SpanKind.INTERNAL
        span = _tracer_of(provider).start_span(name, kind=kind, attributes=told, record_exception=False)
        within = trace.use_span(span, record_exception=False, set_status_on_exception=False) if is_current else within

    def note(known: Mapping[str, Any]) -> None:
        if span is not None:
            span.set_attributes(_plain(known))

    failed: dict[str, str] = {}
    begun = perf_counter()
    with within:
        try:
            yield note
        except Exception as error:
            failed[ERROR] = type(error).__qualname__
            raise
        finally:
            record(DURATION, perf_counter() - begun, {OPERATION: name, **failed})
            if span is not None:
                if failed:
                    span.set_attributes(failed)
                    span.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)
                span.end()
