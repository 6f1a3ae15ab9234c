"""Whatever others do to an agent's request, what its answer says that it took is compared with what was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.integrations.agent.called_models import aside_of
from langchain_tiered_memory.models.chat_models import profile_of
from tests.agent_builders import ToolModel, built, open_memory, said
from tests.memory_builders import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import ChatResult

LONG = "The bolts of this order came late, and the register has to say so. " * 14
CONSULT = {
    "type": "function",
    "function": {"name": "consult", "description": LONG, "parameters": {"type": "object", "properties": {}}},
}


class Billing(ToolModel):
    """Bills each request as it is counted here."""

    def _generate(self, messages: list[BaseMessage], *about: Any, **options: Any) -> ChatResult:
        result = super()._generate(messages, *about, **options)
        billed = counted(messages, tools=options.get("tools") or ())
        usage = {"input_tokens": billed, "output_tokens": 1, "total_tokens": billed + 1}
        about_it = {"usage_metadata": usage, "response_metadata": {"model_name": "m"}}
        generation = result.generations[0]
        generation.message = generation.message.model_copy(update=about_it)
        return result


class Changes(AgentMiddleware):
    """Calls the model with another request, or others besides."""

    def __init__(self, change: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.change = change

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return self.change(request, handler)


def unchanged(request: Any, handler: Any) -> Any:
    return handler(request)


def with_a_note(request: Any, handler: Any) -> Any:
    return handler(request.override(messages=[*request.messages, HumanMessage(LONG)]))


def with_a_tool(request: Any, handler: Any) -> Any:
    return handler(request.override(tools=[*request.tools, CONSULT]))


def reworded(request: Any, handler: Any) -> Any:
    messages = [one.model_copy(update={"content": f"{one.text}!"}) for one in request.messages]
    return handler(request.override(messages=messages))


def without_the_first(request: Any, handler: Any) -> Any:
    return handler(request.override(messages=request.messages[1:]))


def asking_the_same_and_more_before(request: Any, handler: Any) -> Any:
    request.model.invoke([request.system_message, *request.messages, HumanMessage(LONG)])
    return handler(request)


def asking_something_else_after(request: Any, handler: Any) -> Any:
    response = handler(request)
    request.model.invoke([HumanMessage("Is that so?")])
    return response


ADDS = (with_a_note, with_a_tool, reworded)
"""What takes more room than was counted for the request, if it comes behind."""


@pytest.mark.parametrize("side", ["before", "behind"])
@pytest.mark.parametrize(
    "change",
    [unchanged, *ADDS, without_the_first, asking_the_same_and_more_before, asking_something_else_after],
    ids=lambda one: one.__name__,
)
def test_a_request_is_counted_as_it_was_sent(change: Callable[[Any, Any], Any], side: str) -> None:
    with open_memory() as memory:
        model = Billing(answers=lambda _: AIMessage("Noted."))
        agent = built(memory, model, max_tokens=32_000, **{side: [Changes(change)]})
        for turn in range(3):
            said("sync", agent, f"Order {turn}: {LONG}")
        runtime = memory.core.runtime
        learnt = runtime.store.plans.calibration("m", runtime.counter.fingerprint)
        aside = aside_of(runtime, memory.session(*memory.sessions()), profile_of(model).name)
    assert learnt == (pytest.approx(1, abs=0.01), 3)
    assert aside == (512 if side == "behind" and change in ADDS else 0)
