"""What an agent's caller gets to see of the memory: events of the guard, and nothing of a summary."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import StructuredTool
from langchain_core.tracers.base import BaseTracer

from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import SUMMARY_SECRET, THREAD, built, open_memory, openai_model, said, streamed
from tests.call_styles import CALL_STYLES, CallStyle
from tests.openai_server import OpenAIServer, calls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from langchain_core.tracers.schemas import Run

pytestmark = [pytest.mark.service, pytest.mark.slow]

FENCES = (SUMMARY_SECRET, "<conversation_history", "<recalled")
LONG = "The bolts of this order came late, and the register has to say so. " * 14


def telling_model() -> ScriptedModel:
    """Condenses everything into a text with a word that stands nowhere else."""

    def reply(messages: Sequence[BaseMessage]) -> str:
        said = "the bolts of it came late, as the register has to say"
        aim = "\n".join(f"- Order {number}: {said}, {SUMMARY_SECRET}." for number in range(6))
        heading = str(messages[0].text).partition("## ")[2].partition("\n")[0] or "Overview"
        return f"## {heading}\n{aim}"

    return ScriptedModel(answers=reply)


class Kept(BaseTracer):
    """Keeps every run."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        """A root run has ended."""

    def _on_llm_end(self, run: Run) -> None:
        self.runs.append(run)


class CustomEvents(BaseCallbackHandler):
    """Keeps the custom events of callbacks."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **_: Any) -> None:
        del run_id
        if name == "tiered_memory":
            self.found.append(data)


def as_text(chunk: object) -> str:
    """All that a chunk says, whatever it is made of."""
    return json.dumps(chunk, default=repr, ensure_ascii=False)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.sweep(1)
def test_no_stream_shows_anything_of_a_summary(call_style: CallStyle, *, streaming: bool) -> None:
    condenser = telling_model()
    modes = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]
    with OpenAIServer() as server, open_memory(model=condenser) as memory:
        agent = built(memory, openai_model(server, streaming=streaming), tools=(), max_tokens=2500)
        chunks = [
            chunk for number in range(14) for chunk in streamed(call_style, agent, f"Order {number}: {LONG}", modes)
        ]
        assert condenser.calls > 0
        assert SUMMARY_SECRET in server.requests[-1].text
        assert {mode for mode, _ in chunks} == set(modes)
        assert [mode for mode, chunk in chunks if any(one in as_text(chunk) for one in FENCES)] == []
        assert [one for one in agent.get_state_history(THREAD) if any(word in as_text(one) for word in FENCES)] == []


@pytest.mark.seldom(2)
def test_no_event_shows_anything_of_a_summary_but_the_input_of_the_call_that_got_it() -> None:
    condenser = telling_model()
    with OpenAIServer() as server, open_memory(model=condenser) as memory:
        agent = built(memory, openai_model(server), tools=(), max_tokens=2500)

        async def events() -> list[Any]:
            found = []
            for number in range(14):
                given = {"messages": [("user", f"Order {number}: {LONG}")]}
                found += [event async for event in agent.astream_events(given, THREAD, version="v2")]
            return found

        found = asyncio.run(events())
        assert SUMMARY_SECRET in server.requests[-1].text
    assert condenser.calls > 0
    assert {event["name"] for event in found if event["event"] == "on_chat_model_start"} == {"ChatOpenAI"}
    for event in found:
        if event["event"].startswith("on_chat_model_"):
            event["data"].pop("input", None)  # the prompt itself: that is what was asked to be shown
        assert not any(word in as_text(event) for word in FENCES), event["event"]
    assert any(event["event"] == "on_custom_event" and event["name"] == "tiered_memory" for event in found)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_traces_show_every_condensing_call_with_name_tags_and_usage(call_style: CallStyle) -> None:
    condenser, tracer = telling_model(), Kept()
    with OpenAIServer() as server, open_memory(model=condenser) as memory:
        agent = built(memory, openai_model(server), tools=(), max_tokens=2500)
        for number in range(16):
            said(call_style, agent, f"Order {number}: {LONG}", THREAD | {"callbacks": [tracer]})
    condensing = [run for run in tracer.runs if run.name == "tiered_memory_condense"]
    assert len(condensing) == condenser.calls > 0
    for run in condensing:
        assert {"nostream", "tiered_memory"} <= set(run.tags or ())
        assert run.extra["metadata"]["tiered_memory_session_id"] == "alice"
        message = run.outputs["generations"][0][0]["message"]
        assert message["kwargs"]["usage_metadata"]["total_tokens"] > 0


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_alerts_and_outcomes_come_once_in_the_custom_stream_and_in_callbacks(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), max_tokens=2500)
        callbacks = CustomEvents()
        notices = [
            chunk
            for number in range(14)
            for _, chunk in streamed(
                call_style, agent, f"Order {number}: {LONG}", ["custom"], THREAD | {"callbacks": [callbacks]}
            )
        ]
        kept = memory.session("alice").outcomes(limit=1000)
    assert callbacks.found == notices
    assert json.loads(json.dumps(notices)) == notices
    told = [one["id"] for one in notices if one["event"] == "outcome"]
    assert sorted(told) == sorted(one.id for one in kept)
    assert any(one["event"] == "zone_alert" and one["recommendation"] for one in notices)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_overflow_is_told_of(call_style: CallStyle) -> None:
    with OpenAIServer(window_tokens=2000) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=())
        notices = [
            chunk
            for number in range(10)
            for _, chunk in streamed(call_style, agent, f"Order {number}: {LONG}", ["custom"])
        ]
    (overflow,) = [one for one in notices if one["event"] == "overflow"]
    assert overflow["retry_tokens"] < overflow["refused_tokens"]


def test_what_the_state_is_given_is_plain_and_private() -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=())
        state = said("sync", agent, "Hello")
        assert set(state) == {"messages"}
        kept = agent.get_state(THREAD).values["tiered_memory"]
        assert json.loads(json.dumps(kept)) == kept
        assert "tiered_memory" not in agent.get_input_jsonschema()["properties"]
        assert "tiered_memory" not in agent.get_output_jsonschema()["properties"]
        assert isinstance(state["messages"][-1], AIMessage)
        asked: Any = {"messages": [("user", "And now?")]}
        for mode in ("values", "updates"):
            shown = list(agent.stream(asked, THREAD, stream_mode=mode, output_keys=["messages"]))
            assert shown
            assert "tiered_memory" not in str([one if mode == "values" else list(one.values()) for one in shown])


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.seldom(2)
def test_no_stream_of_a_sub_agent_shows_anything_of_a_summary(call_style: CallStyle) -> None:
    condenser, tracer = telling_model(), Kept()
    modes: Any = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]

    def reply(body: dict[str, Any]) -> Any:
        is_helper = not body.get("tools")
        if is_helper or body["messages"][-1]["role"] == "tool":
            return "Done."
        return calls("ask_helper", {"task": f"Count. {LONG}"}, {"task": f"Look. {LONG}"})

    async def gathered(agent: Any, given: Any, config: Any) -> list[Any]:
        return [one async for one in agent.astream(given, config, stream_mode=modes, subgraphs=True)]

    with OpenAIServer(script=reply) as server, open_memory(model=condenser) as memory:
        model = openai_model(server, streaming=True)
        helper = built(memory, model, tools=(), max_tokens=2500, agent={"checkpointer": None, "name": "helper"})

        def ask(task: str) -> str:
            return str(helper.invoke({"messages": [("user", task)]})["messages"][-1].text)

        async def aask(task: str) -> str:
            return str((await helper.ainvoke({"messages": [("user", task)]}))["messages"][-1].text)

        asking = StructuredTool.from_function(ask, coroutine=aask, name="ask_helper", description="Hand a task over.")
        agent = built(memory, model, tools=[asking], max_tokens=2500)
        config: Any = THREAD | {"callbacks": [tracer]}
        chunks: list[Any] = []
        with asyncio.Runner() as runner:
            for number in range(7):
                given: Any = {"messages": [("user", f"Order {number}: {LONG}")]}
                if call_style == "sync":
                    chunks += agent.stream(given, config, stream_mode=modes, subgraphs=True)
                else:
                    chunks += runner.run(gathered(agent, given, config))
        assert {one.status for one in server.requests} == {200}
        assert any(SUMMARY_SECRET in one.text for one in server.requests)
    assert {mode for place, mode, _ in chunks if place} >= {"values", "updates", "messages"}
    assert [mode for _, mode, chunk in chunks if any(one in as_text(chunk) for one in FENCES)] == []
    assert len([run for run in tracer.runs if run.name == "tiered_memory_condense"]) == condenser.calls > 0
