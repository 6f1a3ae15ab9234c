"""What other middlewares leave out of a request stays out of it, wherever the memory could have shown it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from sqlalchemy import event

from langchain_tiered_memory.settings import ContextSettings
from tests.agent_builders import THREAD, built, look_up, open_memory, openai_model, said
from tests.call_styles import CALL_STYLES, CallStyle
from tests.memory_builders import quick_settings
from tests.openai_server import OpenAIServer, calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import TieredMemory
    from tests.openai_server import Scripted

pytestmark = [pytest.mark.service, pytest.mark.parametrize("call_style", CALL_STYLES), pytest.mark.slow]

LONG = "The bolts of this order came late, and the register has to say so. " * 14
SECRET = "Zanzibar"


class Filter(AgentMiddleware):
    """Sends on what `passes`."""

    def __init__(self, passes: Callable[[BaseMessage], bool], *, note: str = "") -> None:
        super().__init__()
        self.passes = passes
        self.note = note

    def left(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        added = [HumanMessage(self.note)] if self.note else []
        return [*(one for one in messages if self.passes(one)), *added]

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=self.left(request.messages)))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=self.left(request.messages)))


def tells_no_secret(message: BaseMessage) -> bool:
    return SECRET not in str(message.content)


def stored(memory: TieredMemory) -> list[str]:
    return [str(one.text) for one in memory.session("alice").messages()]


@pytest.mark.parametrize("place", [0, 3, 11], ids=["the goal", "in the middle", "what the user says last"])
@pytest.mark.parametrize("max_tokens", [1200, 50_000], ids=["condensed", "whole"])
def test_a_message_that_is_left_out_is_in_no_part_of_the_request(
    call_style: CallStyle, place: int, max_tokens: int
) -> None:
    with OpenAIServer(script=["Noted."]) as server, open_memory() as memory:
        screen = Filter(tells_no_secret)
        agent = built(memory, openai_model(server), tools=(), before=[screen], max_tokens=max_tokens)
        for turn in range(12):
            said(call_style, agent, f"Order {turn} goes to {SECRET if turn == place else 'Berlin'}. {LONG}")
            memory.flush()
            assert SECRET not in server.requests[-1].text
        said(call_style, agent, "Which order went to the island whose name begins with Zanzi? Order 0, 3 or 11?")
        memory.flush()
        assert SECRET not in server.requests[-1].text
        assert all(one.status == 200 for one in server.requests)
        assert SECRET in stored(memory)[2 * place]
        screen.passes = lambda _: True
        said(call_style, agent, f"Which order goes to {SECRET}?")
        assert f"Order {place} goes to {SECRET}." in server.requests[-1].text


def test_summaries_that_stand_for_other_messages_are_shown_all_the_same(call_style: CallStyle) -> None:
    with OpenAIServer(script=["Noted."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), before=[Filter(tells_no_secret)], max_tokens=3000)
        for turn in range(40):
            place = SECRET if turn == 2 else f"town{turn}"
            said(call_style, agent, f"We decided that order {turn} goes to {place}. {LONG}")
        memory.flush()
        said(call_style, agent, "And then?")
        assert any(SECRET in hit.text for hit in memory.session("alice").search(SECRET, levels=[1]))
        sent = server.requests[-1].text
        assert SECRET not in sent
        assert "<conversation_history>" in sent
        assert len(set(re.findall("town[0-9]+", sent.split("</conversation_history>")[0]))) > 2, sent[:3000]
        assert server.requests[-1].tokens <= 3200


@pytest.mark.parametrize(
    ("choices", "settings"),
    [
        ({"view": "detailed"}, ContextSettings()),
        ({"view": "compact"}, ContextSettings()),
        ({}, ContextSettings(older="selection")),
    ],
    ids=["one level", "two levels", "selection"],
)
def test_no_way_of_choosing_summaries_shows_one_that_stands_for_it(
    call_style: CallStyle, choices: dict[str, Any], settings: ContextSettings
) -> None:
    chosen = quick_settings().model_copy(update={"context": settings})
    with OpenAIServer(script=["Noted."]) as server, open_memory(settings=chosen) as memory:
        screen = Filter(tells_no_secret)
        agent = built(memory, openai_model(server), tools=(), before=[screen], max_tokens=3000, **choices)
        blocks = []
        for turn in range(40):
            place = SECRET if turn == 20 else f"town{turn}"
            said(call_style, agent, f"We decided that order {turn} goes to {place}. {LONG}")
            memory.flush()
            assert SECRET not in server.requests[-1].text
            blocks.append(server.requests[-1].text.partition("</conversation_history>")[0])
        assert any(SECRET in hit.text for hit in memory.session("alice").search(SECRET, levels=[1]))
        assert any("We decided" in one and "town" in one for one in blocks[25:]), "others are shown"


def test_a_pinned_message_that_is_left_out_is_not_quoted(call_style: CallStyle) -> None:
    with OpenAIServer(script=["Noted."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), before=[Filter(tells_no_secret)])
        said(call_style, agent, f"The order goes to {SECRET}.")
        session = memory.session("alice")
        session.pin(str(session.messages()[0].id))
        said(call_style, agent, "And then?")
        assert SECRET not in server.requests[-1].text


def test_a_result_that_is_left_out_leaves_a_valid_request(call_style: CallStyle) -> None:
    def reply(body: dict[str, Any]) -> Scripted:
        return "It is due." if body["messages"][-1]["role"] == "tool" else calls("look_up", {"order": 3}, {"order": 4})

    with OpenAIServer(script=reply) as server, open_memory() as memory:
        no_results = Filter(lambda one: one.type != "tool" or "Order 4" not in str(one.content))
        agent = built(memory, openai_model(server), before=[no_results])
        for _ in range(3):
            said(call_style, agent, "When are they due?")
        assert {one.status for one in server.requests} == {200}
        assert not any("Order 4 is due" in one.text for one in server.requests)
        assert sum("Order 4 is due" in one for one in stored(memory)) == 3
        assert look_up.name in server.requests[-1].text


def test_what_is_left_out_is_left_out_for_a_client_that_sends_its_list_again(call_style: CallStyle) -> None:
    with OpenAIServer(script=["Noted."]) as server, open_memory() as memory:
        screen = [Filter(tells_no_secret)]
        agent = built(memory, openai_model(server), tools=(), before=screen, agent={"checkpointer": None})
        sent: list[Any] = []
        for turn in range(4):
            sent.append(("user", f"Order {turn} goes to {SECRET if turn == 1 else 'Berlin'}."))
            said(call_style, agent, {"messages": list(sent)})
            assert SECRET not in server.requests[-1].text
            sent.append(("assistant", "Noted."))
        assert sum(SECRET in one for one in stored(memory)) == 1
        assert len(stored(memory)) == 8


def test_a_request_of_other_messages_alone_has_nothing_of_the_conversation(call_style: CallStyle) -> None:
    with OpenAIServer(script=["Noted."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), before=[Filter(lambda _: False, note="Say hello.")])
        said(call_style, agent, "The order goes to Berlin.")
        said(call_style, agent, "When?")
        assert server.requests[-1].messages[-1]["content"] == "Say hello."
        assert not any(word in server.requests[-1].text for word in ("Berlin", "When?", "Noted"))
        assert stored(memory) == ["The order goes to Berlin.", "Noted.", "When?", "Noted."]


def test_what_is_left_out_is_not_taken_for_deleted_and_what_is_deleted_not_for_left_out(call_style: CallStyle) -> None:
    with OpenAIServer(script=["Noted."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), before=[Filter(tells_no_secret)])
        said(call_style, agent, f"The order goes to {SECRET}.")
        said(call_style, agent, "And the bolts go to Bremen.")
        agent.update_state(THREAD, {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})
        said(call_style, agent, "Start anew.")
        assert "Bremen" not in server.requests[-1].text
        assert len(stored(memory)) == 6


def test_a_middleware_that_leaves_nothing_out_costs_no_statement(call_style: CallStyle) -> None:
    counts: list[int] = []
    for others in ([], [Filter(lambda _: True)]):
        with OpenAIServer(script=["Noted."]) as server, open_memory() as memory:
            statements: list[str] = []
            agent = built(memory, openai_model(server), tools=(), before=others)
            said(call_style, agent, "Hello")
            engine = memory.core.runtime.store.database.engine
            event.listen(engine, "before_cursor_execute", lambda *said, into=statements: into.append(said[2]))
            said(call_style, agent, "And then?")
            counts.append(len(statements))
    assert counts[0] == counts[1]
