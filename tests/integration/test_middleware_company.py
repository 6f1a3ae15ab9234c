"""The agent middleware among others: what they add, reword, take out or fall back to, on either side of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    dynamic_prompt,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_tiered_memory.models.token_counters import EstimatingCounter
from tests.agent_builders import THREAD, built, open_memory, openai_model, said, streamed
from tests.call_styles import CALL_STYLES, CallStyle
from tests.openai_server import SERVER_ERROR, OpenAIServer, calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.memory import TieredMemory
    from tests.openai_server import Scripted

pytestmark = [pytest.mark.service, pytest.mark.parametrize("call_style", CALL_STYLES), pytest.mark.slow]

SIDES = ("before", "behind")
LONG = "The bolts of this order came late, and the register has to say so. " * 14


def one_call_each(body: dict[str, Any]) -> Scripted:
    turns = sum(message["role"] == "user" for message in body["messages"])
    latest = {message["role"] for message in body["messages"][-2:]}
    return "It is due on Monday." if "tool" in latest else calls("look_up", {"order": turns})


def stored(memory: TieredMemory) -> list[str]:
    return [str(one.text) for one in memory.session("alice").messages()]


def ever_written(memory: TieredMemory) -> str:
    """All that the transcript has, earlier revisions included."""
    session = memory.session("alice")
    messages = session.messages()
    earlier = [old for one in messages for old in session.revisions(str(one.id))]
    return " ".join(str(one.text) for one in (*messages, *earlier))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("strategy", ["redact", "mask", "hash"])
def test_what_is_taken_out_of_an_answer_is_never_written(call_style: CallStyle, side: str, strategy: Any) -> None:
    mail = PIIMiddleware("email", strategy=strategy, apply_to_output=True)
    with OpenAIServer(script=["Write to ann@example.com."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), **{side: [mail]})
        for question in ("Whom do I ask?", "Again, please?"):
            state = said(call_style, agent, question)
            assert stored(memory) == [str(one.text) for one in state["messages"]]
        assert "ann@example.com" not in ever_written(memory)


@pytest.mark.parametrize("side", SIDES)
def test_the_last_words_of_a_run_that_another_middleware_ended_are_written_at_once(
    call_style: CallStyle, side: str
) -> None:
    limit = ModelCallLimitMiddleware(run_limit=2, exit_behavior="end")

    def reply(body: dict[str, Any]) -> Scripted:
        return calls("look_up", {"order": len(body["messages"])})

    with OpenAIServer(script=reply) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), **{side: [limit]})
        state = said(call_style, agent, "What about every order?")
        assert "limit" in state["messages"][-1].text
        assert stored(memory) == [str(one.text) for one in state["messages"]]


def test_an_answer_that_no_state_has_is_in_no_transcript_either(call_style: CallStyle) -> None:
    class Broken(AgentMiddleware):
        """Fails between the model and the state, as a cancelled run does."""

        def after_model(self, state: Any, runtime: Any) -> None:
            del state, runtime
            msg = "cut off"
            raise RuntimeError(msg)

        async def aafter_model(self, state: Any, runtime: Any) -> None:
            self.after_model(state, runtime)

    with OpenAIServer(script=["One.", "Two."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), behind=[Broken()], agent={"checkpointer": None})
        with pytest.raises(RuntimeError, match="cut off"):
            said(call_style, agent, "Hello")
        assert stored(memory) == ["Hello"]


class Rebuilding(AgentMiddleware):
    """Redacts every request by messages of its own, which have no ids, and says something besides."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=self.rebuilt(request.messages)))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=self.rebuilt(request.messages)))

    def rebuilt(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        return [
            *(
                one.model_copy(update={"id": None, "content": str(one.content).replace("Zanzibar", "[place]")})
                for one in messages
            ),
            HumanMessage("Be brief."),
        ]


def test_messages_that_a_middleware_rebuilt_without_ids_stand_once_and_as_it_words_them(call_style: CallStyle) -> None:
    with OpenAIServer(script=one_call_each) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), before=[Rebuilding()])
        for turn in range(3):
            said(call_style, agent, f"Order {turn} goes to Zanzibar.")
        assert [one.status for one in server.requests] == [200] * 6
        assert not any("Zanzibar" in one.text for one in server.requests)
        users = [one["content"] for one in server.requests[-1].messages if one["role"] == "user"]
        assert users == [*(f"Order {turn} goes to [place]." for turn in range(3)), "Be brief."]
        assert "Zanzibar" in stored(memory)[0]


def test_a_message_that_is_shown_in_part_is_a_part_of_what_a_middleware_made_of_it(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), before=[Rebuilding()], max_tokens=900)
        said(call_style, agent, "The order goes to Zanzibar. " + LONG * 5 + "So it goes to Zanzibar.")
        (sent,) = [one["content"] for one in server.requests[-1].messages if one["role"] == "user"][:1]
        assert sent.startswith("The order goes to [place].")
        assert sent.endswith("So it goes to [place].")
        assert "left out" in sent


@pytest.mark.parametrize("side", SIDES)
def test_a_window_is_learnt_for_the_model_that_refused(call_style: CallStyle, side: str) -> None:
    with (
        OpenAIServer() as server,
        OpenAIServer(script=["From the small one."], window_tokens=2500) as other,
        open_memory() as memory,
    ):
        fallback = ModelFallbackMiddleware(openai_model(other, model="small"))
        agent = built(memory, openai_model(server, model="large"), tools=(), **{side: [fallback]})
        for turn in range(3):
            said(call_style, agent, f"Order {turn}: {LONG * 4}")
        server.play([SERVER_ERROR])
        assert said(call_style, agent, "And then?")["messages"][-1].text == "From the small one."
        windows = memory.core.runtime.store.windows
        assert (windows.read("large"), windows.read("small")) == (None, 2500)


@dynamic_prompt
def wordy(request: Any) -> str:
    del request
    return "Rules, and more of the rules. " * 250


def test_what_middlewares_before_it_add_to_the_system_prompt_is_counted(call_style: CallStyle) -> None:
    counted = EstimatingCounter().count_text
    with OpenAIServer(count_text=counted) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), before=[wordy], max_tokens=4000)
        for turn in range(10):
            said(call_style, agent, f"Order {turn}: {LONG}")
        assert max(one.tokens for one in server.requests) <= 4000


@pytest.mark.parametrize("side", SIDES)
def test_retries_and_chosen_tools_change_nothing_of_what_is_kept(call_style: CallStyle, side: str) -> None:
    replies = [SERVER_ERROR, "One.", SERVER_ERROR, "Two."]
    with (
        OpenAIServer(script=replies) as server,
        OpenAIServer(script=['{"tools": ["look_up"]}']) as selecting,
        open_memory() as memory,
    ):
        others = [
            ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False),
            LLMToolSelectorMiddleware(model=openai_model(selecting), max_tools=1),
        ]
        agent = built(memory, openai_model(server), **{side: others})
        said(call_style, agent, "What about order 1?")
        state = said(call_style, agent, "And order 2?")
        assert [one.status for one in server.requests] == [500, 200, 500, 200]
        assert stored(memory) == [str(one.text) for one in state["messages"]]


class Due(BaseModel):
    """When an order is due."""

    day: str
    bolts: int


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
def test_structured_answers_are_given_and_kept(call_style: CallStyle, strategy: Any) -> None:
    due = {"day": "Monday", "bolts": 3}
    reply = calls("Due", due) if strategy is ToolStrategy else '{"day": "Monday", "bolts": 3}'
    with OpenAIServer(script=[reply]) as server, open_memory() as memory:
        options = {"response_format": strategy(Due), "checkpointer": None}
        agent = built(memory, openai_model(server), tools=(), max_tokens=2500, agent=options)
        for turn in range(6):
            state = said(call_style, agent, f"Order {turn}: {LONG}")
            assert state["structured_response"] == Due(**due)
        assert [one.status for one in server.requests] == [200] * 6
        assert max(one.tokens for one in server.requests) < 2900
        assert len(stored(memory)) == 6 * (3 if strategy is ToolStrategy else 2)


def test_an_answer_stands_in_the_streams_under_one_id_though_it_is_written_where_the_agent_ends(
    call_style: CallStyle,
) -> None:
    with OpenAIServer(script=["Monday, at noon."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server, streaming=True), tools=())
        chunks = streamed(call_style, agent, "When?", ["messages", "updates"])
        spoken = [chunk for mode, (chunk, *_) in ((m, c) for m, c in chunks if m == "messages")]
        assert "".join(str(one.text) for one in spoken) == "Monday, at noon."
        updates = [update for mode, update in chunks if mode == "updates"]
        answers = [one for update in updates for part in update.values() for one in (part or {}).get("messages", ())]
        assert {type(one) for one in answers} == {AIMessage}
        assert len({one.id for one in answers}) == 1
        assert stored(memory) == ["When?", "Monday, at noon."]
        assert agent.get_state(THREAD).next == ()
