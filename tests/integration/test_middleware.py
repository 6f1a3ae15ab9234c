"""The agent middleware against a server that speaks OpenAI's protocol, sync and async."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError
from langchain_tiered_memory.settings import ContextSettings, Settings, TreeSettings
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import THREAD, ToolModel, built, look_up, open_memory, openai_model, said, streamed
from tests.call_styles import CALL_STYLES, CallStyle
from tests.openai_server import (
    EMPTY,
    RATE_LIMITED,
    SERVER_ERROR,
    Failure,
    OpenAIServer,
    Silence,
    calls,
)

if TYPE_CHECKING:
    from tests.openai_server import Scripted

pytestmark = [
    pytest.mark.service,
    pytest.mark.parametrize("call_style", CALL_STYLES),
    pytest.mark.slow,
]


def one_call_each(body: dict[str, Any]) -> Scripted:
    """A call of the tool for each of the user's messages, then an answer."""
    turns = sum(message["role"] == "user" for message in body["messages"])
    return "It is due on Monday." if body["messages"][-1]["role"] == "tool" else calls("look_up", {"order": turns})


def test_every_request_of_a_long_conversation_is_taken_and_the_state_keeps_every_message(call_style: CallStyle) -> None:
    with OpenAIServer(script=one_call_each, window_tokens=4000) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), max_tokens=3000)
        for number in range(20):
            state = said(call_style, agent, f"What about order {number}?")
        assert [one.status for one in server.requests] == [200] * 40
        assert len(state["messages"]) == 80
        assert max(one.tokens for one in server.requests) < 4000
        stored = memory.session("alice").messages()
        assert [one.id for one in stored] == [one.id for one in state["messages"]]
        assert "conversation_history" in server.requests[-1].text
        assert server.requests[-1].messages[0] == {"role": "system", "content": "You keep the register."}


def test_streamed_answers_are_remembered_under_the_ids_of_the_state(call_style: CallStyle) -> None:
    with OpenAIServer(script=one_call_each) as server, open_memory() as memory:
        agent = built(memory, openai_model(server, streaming=True))
        chunks = streamed(call_style, agent, "What about order 1?", ["messages"])
        spoken = "".join(str(chunk.text) for _, (chunk, _) in chunks if chunk.type == "AIMessageChunk")
        assert spoken == "It is due on Monday."
        stored = memory.session("alice").messages()
        assert [one.id for one in stored] == [one.id for one in agent.get_state(THREAD).values["messages"]]


def test_parallel_calls_keep_their_results(call_style: CallStyle) -> None:
    replies = [calls("look_up", {"order": 1}, {"order": 2}, {"order": 3}), "All three are due."]
    with OpenAIServer(script=replies) as server, open_memory() as memory:
        said(call_style, built(memory, openai_model(server)), "What about orders 1 to 3?")
        assert [one.status for one in server.requests] == [200, 200]
        assert [one["role"] for one in server.requests[-1].messages] == [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
            "tool",
        ]


def test_a_request_over_the_window_is_tried_once_more_smaller_and_the_window_is_remembered(
    call_style: CallStyle,
) -> None:
    with OpenAIServer(script=one_call_each, window_tokens=2500) as server, open_memory() as memory:
        agent = built(memory, openai_model(server))
        for number in range(12):
            said(call_style, agent, f"What about order {number}?")
        refused = [place for place, one in enumerate(server.requests) if one.status == 400]
        assert len(refused) == 1
        before, after = server.requests[refused[0]], server.requests[refused[0] + 1]
        assert after.status == 200
        assert after.tokens < before.tokens
        other = built(memory, openai_model(server))
        said(call_style, other, "And then?", {"configurable": {"thread_id": "alice"}})
        assert sum(one.status == 400 for one in server.requests) == 1


def test_a_second_overflow_is_raised_as_it_is(call_style: CallStyle) -> None:
    refusal = Failure(status=400, message="Input is too long for requested model.")
    with OpenAIServer(script=[refusal]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server))
        with pytest.raises(Exception, match="Input is too long") as raised:
            said(call_style, agent, "What about order 1? " * 50)
        assert type(raised.value).__module__.split(".")[0] in {"openai", "langchain_openai"}
        assert len(server.requests) in {1, 2}
        assert len(memory.session("alice").messages()) == 1


@pytest.mark.parametrize(
    ("failure", "words"),
    [(RATE_LIMITED, "Rate limit"), (SERVER_ERROR, "had an error"), (Silence(seconds=60), "timed out|Connection")],
)
def test_other_failures_pass_through_and_lose_nothing(call_style: CallStyle, failure: Scripted, words: str) -> None:
    with OpenAIServer(script=[failure]) as server, open_memory() as memory:
        # The answer after it has to come in the same time, also on a loaded machine.
        agent = built(memory, openai_model(server, timeout=4.0))
        with pytest.raises(Exception, match=words):
            said(call_style, agent, "What about order 1?")
        assert len(server.requests) == 1
        assert [one.text for one in memory.session("alice").messages()] == ["What about order 1?"]
        server.play(["Monday."])
        state = said(call_style, agent, "Once more, please.")
        assert [one.text for one in state["messages"]] == ["What about order 1?", "Once more, please.", "Monday."]
        assert [one.text for one in memory.session("alice").messages()] == [one.text for one in state["messages"]]


def test_an_empty_answer_does_not_break_the_next_request(call_style: CallStyle) -> None:
    with OpenAIServer(script=[EMPTY, "Monday."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server))
        said(call_style, agent, "What about order 1?")
        state = said(call_style, agent, "Are you there?")
        assert [one.status for one in server.requests] == [200, 200]
        assert state["messages"][-1].text == "Monday."


def test_a_thread_id_is_asked_for(call_style: CallStyle) -> None:
    with open_memory() as memory:
        agent = built(memory, ScriptedModel(), tools=(), agent={"checkpointer": None})
        with pytest.raises(InvalidInputError, match="thread_id"):
            said(call_style, agent, "Hello", {"configurable": {"other": 1}})


def test_another_users_thread_is_refused(call_style: CallStyle) -> None:
    with open_memory() as memory:
        agent = built(memory, ScriptedModel(), tools=())
        said(call_style, agent, "Hello", {"configurable": {"thread_id": "alice", "user_id": "alice"}})
        with pytest.raises(MixedOwnersError):
            said(call_style, agent, "Hello", {"configurable": {"thread_id": "alice", "user_id": "bob"}})


def test_the_window_is_that_of_the_model_of_each_request(call_style: CallStyle) -> None:
    small = ScriptedModel(profile={"max_input_tokens": 2000, "max_output_tokens": 200})
    large = ScriptedModel(profile={"max_input_tokens": 50_000, "max_output_tokens": 200})
    long = "The bolts of the seventh order came late. " * 60
    with open_memory() as memory:
        for model in (small, large):
            agent = built(memory, model, tools=())
            for number in range(8):
                said(call_style, agent, f"{number}: {long}")
    counts = [[sum(len(str(one.text)) for one in prompt) for prompt in model.prompts] for model in (small, large)]
    assert max(counts[0]) < 2000 * 4
    assert max(counts[1]) > 12_000


@pytest.mark.parametrize("profile", [None, {}, {"max_input_tokens": 0}])
def test_a_model_that_does_not_tell_its_window_gets_the_settings_budget(
    call_style: CallStyle, profile: dict[str, Any] | None
) -> None:
    settings = Settings(tree=TreeSettings(background=False), context=ContextSettings(max_tokens=1500))
    model = ScriptedModel(profile=profile)
    with open_memory(settings=settings) as memory:
        agent = built(memory, model, tools=())
        for number in range(10):
            said(call_style, agent, f"{number}: " + "The bolts came late. " * 50)
    assert max(sum(len(str(one.text)) for one in prompt) for prompt in model.prompts) < 1500 * 5


def test_recall_quotes_what_the_question_is_about_and_can_be_switched_off(call_style: CallStyle) -> None:
    shown = []
    for recall in (True, False):
        model = ScriptedModel()
        with open_memory() as memory:
            agent = built(memory, model, tools=(), max_tokens=1500, recall=recall)
            said(call_style, agent, "The key of the lighthouse is under the third flowerpot.")
            for number in range(28):
                said(call_style, agent, f"Order {number}: " + "the bolts came late again. " * 12)
            said(call_style, agent, "Where is the key of the lighthouse?")
        shown.append("<recalled" in "\n".join(str(one.text) for one in model.prompts[-1]))
    assert shown == [True, False]


def test_sequences_are_valid_for_every_provider(call_style: CallStyle) -> None:
    def reply(messages: list[Any]) -> AIMessage | str:
        turns = sum(isinstance(one, HumanMessage) for one in messages)
        if isinstance(messages[-1], ToolMessage):
            return "Done."
        made = [{"name": "look_up", "args": {"order": n}, "id": f"c{turns}-{n}-{len(messages)}"} for n in range(2)]
        return AIMessage("", tool_calls=made)

    model = ToolModel(answers=reply)
    with open_memory() as memory:
        agent = built(memory, model, tools=[look_up], max_tokens=1800)
        for number in range(15):
            said(call_style, agent, f"Orders {number} and {number + 1}, please.")
    assert [fault for prompt in model.prompts for fault in check_valid(prompt, complete=True)] == []


def test_an_unknown_window_is_warned_of_once(call_style: CallStyle, caplog: pytest.LogCaptureFixture) -> None:
    class NamelessModel(ScriptedModel):
        model_name: str = f"nameless-{call_style}"

    with caplog.at_level(logging.WARNING), open_memory() as memory:
        agent = built(memory, NamelessModel(), tools=())
        said(call_style, agent, "Hello")
        said(call_style, agent, "Hello again")
    assert sum("does not tell its window" in record.message for record in caplog.records) == 1
