"""What middlewares behind the memory's add to a request is seen, set aside, and let go of."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import built, open_memory, openai_model, said
from tests.call_styles import CALL_STYLES, CallStyle
from tests.openai_server import OpenAIServer

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.service, pytest.mark.parametrize("call_style", CALL_STYLES), pytest.mark.slow]

LONG = "The bolts of this order came late, and the register has to say so. " * 14
WINDOW = 6000
PROFILE = {"max_input_tokens": WINDOW, "max_output_tokens": 500}
RULES = "RULE: keep the register in order.\n" * 230
"""About 2,000 tokens."""


class Rules(AgentMiddleware):
    """Puts rules behind the system prompt, as deepagents does with an AGENTS.md."""

    def __init__(self, text: str = RULES) -> None:
        super().__init__()
        self.text = text

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.ruled(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.ruled(request))

    def ruled(self, request: Any) -> Any:
        prompt = request.system_message.text if request.system_message is not None else ""
        return request.override(system_message=SystemMessage(f"{prompt}\n\n{self.text}"))


class Notes(Rules):
    """Puts a message behind all others, and hands the model one more tool."""

    def ruled(self, request: Any) -> Any:
        consult = {"name": "consult", "description": self.text, "parameters": {"type": "object", "properties": {}}}
        tools = [*request.tools, {"type": "function", "function": consult}]
        return request.override(messages=[*request.messages, HumanMessage(self.text)], tools=tools)


def counted(text: str) -> int:
    return EstimatingCounter().count_text(text)


@pytest.mark.parametrize(
    "behind", [Rules(), Notes(RULES[: len(RULES) // 2])], ids=["system prompt", "message and tool"]
)
def test_a_request_leaves_room_for_what_is_added_behind_it(call_style: CallStyle, behind: Any) -> None:
    with OpenAIServer(window_tokens=WINDOW, count_text=counted) as server, open_memory() as memory:
        agent = built(memory, openai_model(server, profile=PROFILE), tools=(), behind=[behind])
        for turn in range(24):
            said(call_style, agent, f"Order {turn}: {LONG}")
        assert [one.status for one in server.requests] == [200] * 24
        assert max(one.tokens for one in server.requests) > WINDOW / 2


def test_after_a_restart_one_refusal_at_most_teaches_it_again(call_style: CallStyle, tmp_path: Path) -> None:
    with OpenAIServer(window_tokens=WINDOW, count_text=counted) as server:
        model = openai_model(server, profile=PROFILE)
        with open_memory(tmp_path / "m.db") as memory:
            agent = built(memory, model, tools=())
            saver = agent.checkpointer
            for turn in range(24):
                said(call_style, agent, f"Order {turn}: {LONG}")
        before = len(server.requests)
        with open_memory(tmp_path / "m.db") as memory:
            agent = built(memory, model, tools=(), behind=[Rules(RULES * 2)], agent={"checkpointer": saver})
            for turn in range(8):
                said(call_style, agent, f"And order {turn}?")
        statuses = [one.status for one in server.requests[before:]]
        assert statuses in ([400, *[200] * 8], [200] * 8)


def test_room_is_given_back_when_nothing_is_added_any_more(call_style: CallStyle) -> None:
    with OpenAIServer(count_text=counted) as server, open_memory() as memory:
        rules = Rules(RULES * 2)
        agent = built(memory, openai_model(server, profile=PROFILE), tools=(), behind=[rules])
        for turn in range(12):
            said(call_style, agent, f"Order {turn}: {LONG}")
        rules.text = ""
        sizes = []
        for turn in range(20):
            said(call_style, agent, f"More of order {turn}: {LONG}")
            sizes.append(server.requests[-1].tokens)
        assert max(sizes[:7]) < WINDOW - 4000
        assert max(sizes[12:]) > WINDOW - 4000


def test_what_a_middleware_asks_another_model_besides_is_not_taken_for_the_request(call_style: CallStyle) -> None:
    judge = ScriptedModel(answers=["fine"])

    class Judging(AgentMiddleware):
        """Asks another model before and after the call."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            judge.invoke(RULES * 3)
            answer = handler(request)
            judge.invoke(RULES * 3)
            return answer

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            await judge.ainvoke(RULES * 3)
            answer = await handler(request)
            await judge.ainvoke(RULES * 3)
            return answer

    sizes = []
    for others in ([], [Judging()]):
        with OpenAIServer(window_tokens=WINDOW, count_text=counted) as server, open_memory() as memory:
            agent = built(memory, openai_model(server, profile=PROFILE), tools=(), behind=others)
            for turn in range(14):
                said(call_style, agent, f"Order {turn}: {LONG}")
            sizes.append([one.tokens for one in server.requests])
    assert sizes[0] == sizes[1]


def test_additions_that_leave_no_room_are_left_to_the_provider(call_style: CallStyle) -> None:
    rules = Rules(RULES * 4)
    with OpenAIServer(window_tokens=20_000, count_text=counted) as server, open_memory() as memory:
        agent = built(memory, openai_model(server, profile=PROFILE), tools=(), behind=[rules])
        for turn in range(4):
            said(call_style, agent, f"Order {turn}: {LONG}")
        assert [one.status for one in server.requests] == [200] * 4


def test_usage_counts_what_was_added_so_that_it_is_not_paid_for_twice(call_style: CallStyle) -> None:
    with OpenAIServer(count_text=counted) as server, open_memory() as memory:
        agent = built(memory, openai_model(server, profile=PROFILE), tools=(), behind=[Rules()])
        for turn in range(12):
            said(call_style, agent, f"Order {turn}: {LONG}")
        known = memory.core.runtime.store.plans.calibration("loopback", memory.core.runtime.counter.fingerprint)
        assert known is not None
        assert 0.85 < known[0] < 1.15


class Summing(AgentMiddleware):
    """Puts a summary in the place of older messages, in the request alone, as deepagents does."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self.summed(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self.summed(request))

    def summed(self, request: Any) -> Any:
        if len(request.messages) < 5:
            return request
        summary = HumanMessage("So far: orders.", additional_kwargs={"lc_source": "summarization"})
        return request.override(messages=[summary, *request.messages[-3:]])


def test_another_summary_in_a_request_is_told_of_once_and_stands_alone(call_style: CallStyle) -> None:
    events: list[Any] = []
    with OpenAIServer() as server, open_memory() as memory, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        memory.subscribe(events.append)
        agent = built(memory, openai_model(server), tools=(), before=[Summing()])
        for turn in range(6):
            said(call_style, agent, f"Order {turn}: {LONG}")
        assert sum("name='SummarizationMiddleware'" in str(one.message) for one in caught) == 1
        assert [one.name for one in events].count("second_summarizer") == 1
        roles = [(one["role"], one["content"][:8]) for one in server.requests[-1].messages]
        assert roles[:2] == [("system", "You keep"), ("user", "So far: ")]
        assert ["Order 0:" in one.text for one in server.requests] == [True, True, False, False, False, False]


def test_it_has_the_name_that_it_is_given(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), name="SummarizationMiddleware")
        said(call_style, agent, "Hello")
        assert "SummarizationMiddleware.after_agent" in agent.nodes


def test_it_is_called_by_its_class_otherwise(call_style: CallStyle) -> None:
    class Mine(TieredMemoryMiddleware):
        """Stands beside another one, on a track of its own."""

    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), before=[Mine(memory, track="mine")])
        said(call_style, agent, "Hello")
        assert {"Mine.after_agent", "TieredMemoryMiddleware.after_agent"} <= set(agent.nodes)
