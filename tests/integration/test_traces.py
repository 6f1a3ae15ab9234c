"""What the memory does, as runs in tracers: with inputs, outputs and tokens, and in nobody's stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from langchain_tiered_memory.testing import summarising_model
from tests.graph_builders import answering, ask, chat_graph, thread
from tests.memory_builders import open_memory, quick_settings, turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.tracers.schemas import Run

    from langchain_tiered_memory.memory import Session

OURS = {"assemble", "recall", "search", "condense"}
STREAMS = ["values", "messages", "updates", "custom"]


def runs_in(collector: RunCollectorCallbackHandler) -> list[Run]:
    """All runs, in the order of the tree."""
    found: list[Run] = []
    waiting = list(collector.traced_runs)
    while waiting:
        one = waiting.pop(0)
        found.append(one)
        waiting = [*one.child_runs, *waiting]
    return found


def traced(work: Callable[[], object]) -> list[Run]:
    """What a tracer sees of `work`."""
    collector = RunCollectorCallbackHandler()
    RunnableLambda(lambda _: work()).with_config(run_name="turn").invoke(0, {"callbacks": [collector]})
    return runs_in(collector)


def filled(session: Session, *, turns: int = 20) -> Session:
    for number in range(turns):
        session.add_messages(turn(number))
    return session


def test_a_context_is_a_run_with_its_question_messages_and_tokens_and_recall_another() -> None:
    with open_memory() as memory:
        session = filled(memory.session("s"))
        session.flush()
        contexts: list[Any] = []
        runs = {run.name: run for run in traced(lambda: contexts.append(session.context("the crane", max_tokens=900)))}
        (context,) = contexts
        assemble, recall = runs["assemble"], runs["recall"]
        assert assemble.inputs == {"query": "the crane", "max_tokens": 900, "view": "default"}
        assert assemble.outputs is not None
        assert assemble.outputs["messages"] == context.messages
        assert assemble.outputs["tokens"] == context.tokens
        assert assemble.outputs["sections"]["recent"] == context.section("recent").tokens
        assert assemble.parent_run_id == runs["turn"].id
        assert recall.parent_run_id == assemble.id
        assert assemble.tags == ["tiered_memory"]
        assert recall.outputs is not None
        assert recall.outputs["tokens"] > 0


def test_a_search_and_a_summary_that_a_model_writes_are_runs() -> None:
    with open_memory(model=summarising_model(), settings=quick_settings(eager=True)) as memory:
        session = filled(memory.session("s"), turns=6)
        runs = traced(lambda: (session.flush(), session.search("crane", k=2)))
        condense = [run for run in runs if run.name == "condense"]
        assert condense
        for run in condense:
            assert [child.run_type for child in run.child_runs] == ["llm"], "the model's call stands under it"
            assert run.inputs["level"] >= 1
            assert run.outputs is not None
            assert run.outputs["text"]
            assert run.outputs["input_tokens"] > run.outputs["output_tokens"] > 0
        (search,) = [run for run in runs if run.name == "search"]
        assert search.outputs is not None
        assert len(search.outputs["hits"]) == 2


def test_a_failure_is_told_with_its_run() -> None:
    with open_memory() as memory:
        session = filled(memory.session("s"), turns=3)

        def work() -> None:
            try:
                session.context(max_tokens=1)
            except ValueError:
                return

        (assemble,) = [run for run in traced(work) if run.name == "assemble"]
        assert "ContextOverflowError" in str(assemble.error)


def test_a_setting_turns_them_off() -> None:
    settings = quick_settings().model_copy(update={"traces": False})
    with open_memory(settings=settings) as memory:
        session = filled(memory.session("s"), turns=3)
        runs = traced(lambda: (session.context("crane"), session.search("crane")))
        assert {run.name for run in runs} == {"turn"}


async def test_a_graphs_streams_show_nothing_of_them_and_its_trace_does() -> None:
    with open_memory() as memory:
        graph = chat_graph(memory, answering()).compile()
        collector = RunCollectorCallbackHandler()
        told: list[tuple[str, Any]] = []
        for number in range(3):
            told += graph.stream(ask(number), thread() | {"callbacks": [collector]}, stream_mode=STREAMS)
        config = thread() | {"callbacks": [collector]}
        events = [event async for event in graph.astream_events(ask(3), config, version="v2")]
        runs = runs_in(collector)
        assert [run.name for run in runs].count("assemble") >= 4
        nodes = {run.id: run.name for run in runs}
        parents = {nodes[run.parent_run_id] for run in runs if run.name == "assemble" and run.parent_run_id}
        assert parents <= {"guard", "context"}
        assert parents
        assert not {event["name"] for event in events} & OURS
        assert "assemble" not in str(told)
        answers = [part[0].id for mode, part in told if mode == "messages" and part[0].type == "ai"]
        assert answers == ["a0", "a1", "a2"]
