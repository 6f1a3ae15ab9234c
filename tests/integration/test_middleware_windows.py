"""What refused requests teach the agent middleware of a model's window, in the words of several providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage

from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import built, open_memory, said
from tests.call_styles import CALL_STYLES, CallStyle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

pytestmark = [pytest.mark.parametrize("call_style", CALL_STYLES), pytest.mark.slow]

LONG = "The bolts of this order came late, and the register has to say so. " * 14
WINDOW = 3000
REFUSALS: dict[str, tuple[Exception, bool]] = {
    "core": (ContextOverflowError("the input is larger than the model's context"), False),
    "anthropic": (ValueError(f"Error code: 400 - prompt is too long: 4100 tokens > {WINDOW} maximum"), True),
    "google": (
        ValueError(f"The input token count (4100) exceeds the maximum number of tokens allowed ({WINDOW})."),
        True,
    ),
    "bedrock": (ValueError("ValidationException: Input is too long for requested model."), False),
    "vllm": (
        ValueError(
            f"This model's maximum context length is {WINDOW} tokens. However, you requested 4100 tokens (3600 in the "
            "messages, 500 in the completion). Please reduce the length of the messages or completion."
        ),
        True,
    ),
}
"""What is raised, and whether it names the window."""


class Bounded(ScriptedModel):
    """Refuses what is over its window, and reports what it took."""

    model_name: str = "bounded"
    profile: Any = None


def bounded(refusal: Exception, sizes: list[int], *, window: list[int]) -> Bounded:
    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        tokens = sum(EstimatingCounter().count_message(one) for one in messages)
        sizes.append(tokens)
        if tokens > window[0]:
            raise refusal
        return AIMessage("ok", usage_metadata={"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1})

    return Bounded(answers=reply)


@pytest.mark.parametrize("provider", list(REFUSALS))
@pytest.mark.sweep(2)
def test_a_refusal_is_answered_with_one_smaller_request_and_remembered(call_style: CallStyle, provider: str) -> None:
    refusal, tells = REFUSALS[provider]
    sizes: list[int] = []
    with open_memory() as memory:
        agent = built(memory, bounded(refusal, sizes, window=[WINDOW]), tools=())
        for turn in range(14):
            state = said(call_style, agent, f"Order {turn}: {LONG}")
        assert len(state["messages"]) == 28
        refused = [place for place, size in enumerate(sizes) if size > WINDOW]
        assert all(sizes[place + 1] <= WINDOW for place in refused)
        assert len(refused) == 1 if tells else len(refused) < 4
        learned = memory.core.runtime.store.windows.read("bounded")
        assert learned == WINDOW if tells else learned is not None


def test_a_window_that_was_misread_is_corrected_by_what_the_model_takes(call_style: CallStyle) -> None:
    sizes: list[int] = []
    with open_memory() as memory:
        memory.learn_window("bounded", 3000)

        def reply(messages: Sequence[BaseMessage]) -> AIMessage:
            tokens = 4 * sum(EstimatingCounter().count_message(one) for one in messages)
            sizes.append(tokens)
            usage = {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}
            return AIMessage("ok", usage_metadata=usage)  # type: ignore[typeddict-item]

        agent = built(memory, Bounded(answers=reply), tools=())
        for turn in range(8):
            said(call_style, agent, f"Order {turn}: {LONG}")
        assert max(sizes) > 3000
        assert memory.core.runtime.store.windows.read("bounded") == max(sizes)


def test_an_answer_is_given_though_what_it_taught_of_the_window_cannot_be_written(
    call_style: CallStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory() as memory:
        memory.learn_window("bounded", 3000)

        def full(*_: object) -> None:
            msg = "the disk is full"
            raise StorageError(msg)

        monkeypatch.setattr(type(memory.core.runtime.store.windows), "confirm", full)
        usage = {"input_tokens": 4000, "output_tokens": 1, "total_tokens": 4001}
        answer = AIMessage("It is due on Monday.", usage_metadata=usage)  # type: ignore[typeddict-item]
        state = said(call_style, built(memory, Bounded(answers=[answer]), tools=()), "When is it due?")
        assert state["messages"][-1].text == "It is due on Monday."
        assert memory.core.runtime.store.windows.read("bounded") == 3000


def test_a_learnt_window_stays_while_nothing_larger_was_taken(call_style: CallStyle) -> None:
    sizes: list[int] = []
    window = [2500]
    with open_memory() as memory:
        agent = built(memory, bounded(REFUSALS["google"][0], sizes, window=window), tools=())
        for turn in range(14):
            said(call_style, agent, f"Order {turn}: {LONG}")
        assert memory.core.runtime.store.windows.read("bounded") == WINDOW
