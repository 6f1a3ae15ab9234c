"""Models inside of LangChain's wrappers, in every integration that is handed one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.nodes import context_node, model_input
from langchain_tiered_memory.integrations.state import TieredState
from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.settings import Settings, TreeSettings
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import open_memory, openai_model, said
from tests.call_styles import CALL_STYLES, CallStyle
from tests.openai_server import OpenAIServer

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

LONG = "The bolts of this order came late, and the register has to say so. " * 14


class Narrow(ScriptedModel):
    """Tells a small window."""

    profile: Any = None


@pytest.mark.parametrize("wrap", ["with_retry", "with_fallbacks", "with_config"])
def test_a_wrapped_model_condenses_within_its_window(wrap: str) -> None:
    model = Narrow(answers=["## Topics\n- Orders came late."], profile={"max_input_tokens": 2500})
    wrapped = {
        "with_retry": model.with_retry(),
        "with_fallbacks": model.with_fallbacks([ScriptedModel(answers=["never"])]),
        "with_config": model.with_config(tags=["a"]),
    }[wrap]
    with open_memory(model=wrapped) as memory:
        session = memory.session("s")
        for turn in range(40):
            session.add_messages([("user", f"Order {turn}: {LONG}"), ("assistant", "Noted.")])
        session.context("", max_tokens=4000)
        session.flush()
        assert model.calls > 0
        prompts = [sum(EstimatingCounter().count_message(one) for one in prompt) for prompt in model.prompts]
        assert max(prompts) <= 2500
        (levels, *_) = [session.metrics().levels]
        assert levels


@pytest.mark.parametrize("stranger", [RunnableLambda(str), init_chat_model(configurable_fields=("model",)), 7])
def test_what_holds_no_chat_model_is_refused_where_the_memory_is_opened(stranger: Any) -> None:
    with pytest.raises(
        SettingsError, match=r"a condensing model must be a chat model|model must be a string or a Runnable"
    ):
        TieredMemory.open(model=stranger)


def test_a_condensing_model_that_parses_its_answer_is_told_of_and_the_extractive_condenser_goes_on() -> None:
    told: list[Any] = []
    model = ScriptedModel(answers=["## Topics\n- Orders."]) | RunnableLambda(lambda message: str(message.content))
    with open_memory(model=model, settings=Settings(tree=TreeSettings(background=False))) as memory:
        memory.subscribe(told.append)
        session = memory.session("s")
        for turn in range(30):
            session.add_messages([("user", f"Order {turn}: {LONG}"), ("assistant", "Noted.")])
        session.context("", max_tokens=4000)
        session.flush()
        assert session.metrics().levels
        assert any("returns a str" in event.reason for event in told)


@pytest.mark.slow
@pytest.mark.service
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_agent_keeps_to_the_window_of_the_model_that_its_config_chooses(call_style: CallStyle) -> None:
    with OpenAIServer(count_text=EstimatingCounter().count_text) as server, open_memory() as memory:
        model = init_chat_model(
            "large",
            model_provider="openai",
            configurable_fields=("model", "profile"),
            base_url=server.base_url,
            api_key="none",
            profile={"max_input_tokens": 50_000},
        )
        agent = create_agent(model, [], middleware=[TieredMemoryMiddleware(memory)], checkpointer=InMemorySaver())
        small = {"model": "small", "profile": {"max_input_tokens": 3000}}
        for turn in range(20):
            said(call_style, agent, f"Order {turn}: {LONG}", {"configurable": {"thread_id": "alice"}})
        assert server.requests[-1].tokens > 3000
        said(call_style, agent, "And then?", {"configurable": {"thread_id": "alice", **small}})
        assert server.requests[-1].body["model"] == "small"
        assert server.requests[-1].tokens <= 3000


@pytest.mark.service
def test_a_node_finds_its_plan_again_though_the_config_chooses_another_model() -> None:
    with OpenAIServer() as server, open_memory() as memory:
        made = openai_model(server, model="unused")
        model = init_chat_model(
            "large",
            model_provider="openai",
            configurable_fields=("model",),
            base_url=server.base_url,
            api_key="none",
            profile={"max_input_tokens": 3000},
        )
        seen: list[int] = []

        class State(MessagesState, TieredState):
            """Messages, and the memory's record."""

        def answer(state: State, config: RunnableConfig) -> dict[str, Any]:
            seen.append(len(model_input(memory, state, config)))
            return {"messages": [made.invoke("ok?")]}

        builder = StateGraph(State)
        builder.add_node("context", context_node(memory, model=model))
        builder.add_node("answer", answer)
        builder.add_edge(START, "context")
        builder.add_edge("context", "answer")
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "t", "model": "other"}})
        assert seen == [1]
