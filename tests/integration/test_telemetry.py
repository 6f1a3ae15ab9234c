"""Spans and metrics of memory operations, with OpenTelemetry's own SDK; and that there are none without a provider."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.errors import FileGoneError
from langchain_tiered_memory.testing import ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.file_builders import small_rules
from tests.memory_builders import open_memory, quick_settings, shown_within, turn

if TYPE_CHECKING:
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

SECRET = "zanzibar"


class Collected:
    """What the SDK was told of."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider(metric_readers=[self.reader])

    def spans(self, name: str) -> list[ReadableSpan]:
        return [one for one in self.exporter.get_finished_spans() if one.name == name]

    def points(self, name: str) -> list[Any]:
        found = self.reader.get_metrics_data()
        scopes = [scope for one in (found.resource_metrics if found else ()) for scope in one.scope_metrics]
        return [
            point
            for scope in scopes
            if scope.scope.name == telemetry.SCOPE
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Collected:
    """A provider of spans and one of metrics, set for one test: the API lets a process set each once."""
    made = Collected()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made.tracers)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: made.meters)
    return made


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_writing_searching_and_building_a_context_are_spans_by_the_conventions(
    call_style: CallStyle, collected: Collected
) -> None:
    with open_memory() as memory:
        session = memory.session("alice")
        told(call_style, session.add_messages, [HumanMessage(f"The {SECRET} crane"), AIMessage("Noted.")])
        told(call_style, session.search, SECRET, k=3)
        context = told(call_style, session.context, max_tokens=1500)
    (write,), (search,), (build,) = map(collected.spans, ("upsert_memory", "search_memory", "build_context"))
    for span in (write, search, build):
        assert span.attributes is not None
        assert span.attributes["gen_ai.operation.name"] == span.name
        assert span.attributes["gen_ai.conversation.id"] == "alice"
        assert span.instrumentation_scope is not None
        assert span.instrumentation_scope.name == "langchain_tiered_memory"
    assert write.attributes["gen_ai.memory.record.count"] == 2  # type: ignore[index]
    assert search.attributes["gen_ai.memory.record.count"] == 2 or search.attributes["gen_ai.memory.record.count"] == 1  # type: ignore[index]
    assert search.attributes["gen_ai.retrieval.top_k"] == 3  # type: ignore[index]
    assert build.attributes["tiered_memory.context.tokens"] == context.tokens  # type: ignore[index]
    assert build.attributes["tiered_memory.context.zone"] == "safe"  # type: ignore[index]
    assert {one.attributes["gen_ai.operation.name"] for one in collected.points(telemetry.DURATION)} == {
        "upsert_memory",
        "search_memory",
        "build_context",
    }
    assert [one.sum for one in collected.points(telemetry.CONTEXT_TOKENS)] == [context.tokens]


def test_no_span_tells_what_was_said(collected: Collected, tmp_path: Path) -> None:
    (tmp_path / f"{SECRET}.py").write_text(SECRET)
    with open_memory() as memory, memory.run("s", roots=[str(tmp_path)], background=False) as run:
        session = memory.session("s")
        session.add_messages([HumanMessage(f"The {SECRET} crane", id="m")])
        session.search(SECRET)
        session.context(SECRET)
        run.open(f"{SECRET}.py")
        with pytest.raises(FileGoneError):
            run.open(f"no {SECRET}.py")
        session.forget(message_ids=["m"])
    said = "".join(span.to_json() for span in collected.exporter.get_finished_spans())
    assert SECRET not in said
    assert '"delete_memory"' in said


def test_calls_that_condense_are_spans_with_their_tokens(collected: Collected) -> None:
    with open_memory(model=ScriptedModel(answers=["## Overview\nThe crane of order 1001 was checked."])) as memory:
        session = memory.session("s")
        for number in range(16):
            session.add_messages(turn(number))
        shown_within(session, 400)
    spans = collected.spans("condense_memory")
    assert spans
    read = sum(one.attributes["tiered_memory.condense.input_tokens"] for one in spans)  # type: ignore[index, misc]
    counted = {one.attributes["gen_ai.token.type"]: one.value for one in collected.points(telemetry.CONDENSE_TOKENS)}
    assert counted["input"] == read > 0
    assert counted["output"] > 0


def test_files_are_spans_by_tier_and_their_moves_are_counted(collected: Collected) -> None:
    settings = quick_settings().model_copy(update={"tiers": small_rules(hot=2, warm=2)})
    with open_memory(settings=settings) as memory, memory.run("s", background=False) as run:
        for name in ("a", "b", "c", "a"):
            run.keep(name, f"content of {name}")
        run.collect()
        run.optimise()
    tiers = [one.attributes["tiered_memory.file.from_tier"] for one in collected.spans("open_file")]  # type: ignore[index]
    assert tiers == ["new", "new", "new", "warm"]
    assert collected.spans("collect_files")
    assert collected.spans("optimise_files")
    moves = {
        (one.attributes["tiered_memory.file.from"], one.attributes["tiered_memory.file.to"]): one.value
        for one in collected.points(telemetry.FILE_MOVES)
    }
    assert moves[("new", "hot")] == 3
    assert moves[("hot", "warm")] == 2
    assert moves[("warm", "hot")] == 1


def test_what_fails_is_an_error_by_its_class_alone(collected: Collected, tmp_path: Path) -> None:
    with (
        open_memory() as memory,
        memory.run("s", roots=[str(tmp_path)], background=False) as run,
        pytest.raises(FileGoneError),
    ):
        run.open("nothing.py")
    (span,) = [one for one in collected.spans("open_file") if not one.status.is_ok]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == "FileGoneError"
    assert not span.events
    assert not span.status.description


def test_a_span_of_ours_is_a_child_of_the_callers(collected: Collected) -> None:
    tracer = collected.tracers.get_tracer("test")

    async def go() -> None:
        async with await memory_of() as memory:
            session = memory.session("s")
            with tracer.start_as_current_span("request"):
                await session.aadd_messages([HumanMessage("hello")])
                await session.acontext(max_tokens=500)
                assert trace.get_current_span().get_span_context() == outer()

    async def memory_of() -> Any:
        return open_memory()

    def outer() -> Any:
        return trace.get_current_span().get_span_context()

    asyncio.run(go())
    (request,) = collected.spans("request")
    for name in ("upsert_memory", "build_context"):
        (span,) = collected.spans(name)
        assert span.parent is not None
        assert span.parent.span_id == request.context.span_id


def test_without_a_provider_nothing_is_made() -> None:
    with telemetry.operation("search_memory", {}) as note:
        note({"a": 1})
        assert trace.get_current_span() is trace.INVALID_SPAN
    telemetry.record(telemetry.FILE_MOVES, 1)


def test_without_opentelemetry_a_memory_works_and_imports_none_of_it() -> None:
    code = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from langchain_tiered_memory import TieredMemory\n"
        "with TieredMemory.open(embeddings=None) as memory:\n"
        "    session = memory.session('s')\n"
        "    session.add_messages([('user', 'hello')])\n"
        "    session.search('hello')\n"
        "    session.context('')\n"
        "    with memory.run('s', background=False) as run:\n"
        "        run.keep('a', 'b')\n"
        "print([one for one in sys.modules if one.startswith('opentelemetry.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_provider_that_is_set_later_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Collected(), Collected()
    with open_memory() as memory:
        session = memory.session("s")
        for one in (first, second):
            monkeypatch.setattr(trace, "get_tracer_provider", lambda one=one: one.tracers)
            monkeypatch.setattr(metrics, "get_meter_provider", lambda one=one: one.meters)
            session.search("hello")
            session.add_messages([HumanMessage("hello")])
    assert len(first.spans("upsert_memory")) == len(second.spans("upsert_memory")) == 1
    assert len(second.points(telemetry.DURATION)) == 2
