"""Nothing of a summary, and nothing of an assembled context, reaches the user's streams."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tiered_memory.integrations.nodes import condense_node
from langchain_tiered_memory.testing import ScriptedModel, summarising_model
from tests.graph_builders import answering, ask, chat_graph, thread
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

pytestmark = pytest.mark.slow

SECRET = "zanzibar"  # only the condensing model says it


def marked_writer() -> ScriptedModel:
    """A condensing model whose texts can be told from everything that was said."""
    telling = summarising_model().answers

    def reply(messages: Sequence[BaseMessage]) -> str:
        return re.sub(
            r"^(## .+)$", rf"\1\n- Decision: the code word is {SECRET}.", telling(messages), flags=re.MULTILINE
        )

    return ScriptedModel(answers=reply)


def long_graph(memory: Any, model: ScriptedModel) -> Any:
    builder = chat_graph(memory, model, max_tokens=1200, evict={"keep_messages": 4, "at_messages": 8})
    builder.add_node(condense_node(memory))
    builder.add_edge("evict", "condense")
    return builder.compile(checkpointer=InMemorySaver())


def shown_secret(model: ScriptedModel) -> bool:
    return any(SECRET in str(one.content) for prompt in model.prompts for one in prompt)


def ours(chunk: object) -> bool:
    """Whether a chunk holds a word of a summary, or of the frame that a context puts around history."""
    told = repr(chunk)
    return SECRET in told or "<history" in told or "Be brief." in told


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "mode", ["messages", "updates", "values", "custom", ["messages", "updates", "values", "custom"]]
)
def test_no_stream_mode_shows_a_word_of_it(mode: Any) -> None:
    model, writer = answering(), marked_writer()
    with open_memory(model=writer) as memory:
        graph = long_graph(memory, model)
        for number in range(34):
            for chunk in graph.stream(ask(number), thread(), stream_mode=mode, subgraphs=True):
                assert not ours(chunk), chunk
        assert writer.calls
        assert shown_secret(model), "the model was shown a summary"


@pytest.mark.sweep(1)
@pytest.mark.parametrize("mode", ["messages", "updates", "values", "custom"])
async def test_no_async_stream_mode_shows_a_word_of_it(mode: Any) -> None:
    model, writer = answering(), marked_writer()
    with open_memory(model=writer) as memory:
        graph = long_graph(memory, model)
        for number in range(34):
            async for chunk in graph.astream(ask(number), thread(), stream_mode=mode):
                assert not ours(chunk), chunk
        assert writer.calls
        assert shown_secret(model)


async def test_events_show_it_nowhere_but_in_the_models_own_input() -> None:
    model, writer = answering(), marked_writer()
    with open_memory(model=writer) as memory:
        graph = long_graph(memory, model)
        for number in range(34):
            async for event in graph.astream_events(ask(number), thread(), version="v2"):
                if event["event"].startswith("on_chat_model"):
                    assert event["metadata"]["langgraph_node"] == "answer"
                    event["data"].pop("input", None)
                assert not ours(event), event
        assert writer.calls
        assert shown_secret(model)


async def test_the_messages_stream_gives_each_answer_and_no_removal() -> None:
    with open_memory() as memory:
        graph = long_graph(memory, answering())
        got = []
        for number in range(10):
            got += [
                chunk
                async for chunk, _ in graph.astream(ask(number), thread(), stream_mode="messages")
                if not isinstance(chunk, HumanMessage)
            ]
        assert [one.id for one in got] == [f"a{number}" for number in range(10)]


class Tracer(BaseCallbackHandler):
    """Sees what a trace would show."""

    def __init__(self) -> None:
        self.models: list[str] = []
        self.events: list[tuple[str, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:  # noqa: ARG002
        self.models.append(str(kwargs.get("name")))

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:  # noqa: ARG002
        self.events.append((name, data))


@pytest.mark.parametrize("call_style", ["sync", "async"])
async def test_condensing_shows_in_traces_and_alerts_arrive_as_figures(call_style: str) -> None:
    tracer = Tracer()
    custom: list[Any] = []
    with open_memory(model=marked_writer()) as memory:
        graph = long_graph(memory, answering())
        config: Any = thread() | {"callbacks": [tracer]}
        for number in range(34):
            if call_style == "sync":
                custom += list(graph.stream(ask(number), config, stream_mode="custom"))
            else:
                custom += [one async for one in graph.astream(ask(number), config, stream_mode="custom")]
    assert len(set(tracer.models)) > 1, "the condensing calls have a name of their own"
    assert {one["event"] for one in custom} >= {"zone_alert", "outcome"}
    assert [data for name, data in tracer.events if name == "tiered_memory"] == custom
