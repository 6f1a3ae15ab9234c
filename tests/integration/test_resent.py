"""Without a checkpointer the client keeps the conversation: what it sends again is known again."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents.middleware import ModelRequest, wrap_model_call
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, convert_to_openai_messages

from langchain_tiered_memory.integrations.graph.client_resends import recognised
from langchain_tiered_memory.messages.groups import overlap
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import ToolModel, built, open_memory, openai_model, said
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.graph_builders import chat_graph, thread
from tests.openai_server import Failure, OpenAIServer, calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import BaseMessage

STATELESS = {"agent": {"checkpointer": None}}


def turn(call_style: CallStyle, agent: Any, history: list[Any], text: str) -> list[Any]:
    """A client's turn: all that it keeps, and what its user says now, as plain dicts."""
    state = said(call_style, agent, {"messages": [*history, {"role": "user", "content": text}]})
    return list(convert_to_openai_messages(state["messages"]))


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_client_that_sends_all_of_it_each_time_has_it_stored_once(call_style: CallStyle) -> None:
    script = ["Hello Ann.", calls("look_up", {"order": 5}), "On Monday.", "You are Ann."]
    with OpenAIServer(script=script) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), **STATELESS)
        kept: list[Any] = []
        for text in ("I am Ann.", "When is order 5 due?", "Who am I?"):
            kept = turn(call_style, agent, kept, text)
        roles = [one.type for one in memory.session("alice").messages()]
        assert roles == ["human", "ai", "human", "ai", "tool", "ai", "human", "ai"]
        asked = [one["content"] for one in server.requests[-1].messages if one["role"] == "user"]
        assert asked == ["I am Ann.", "When is order 5 due?", "Who am I?"]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_turn_that_failed_and_that_the_client_does_not_have_stays_in_the_transcript(call_style: CallStyle) -> None:
    with OpenAIServer(script=["Hello Ann."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server, max_retries=0), **STATELESS)
        kept = turn(call_style, agent, [], "I am Ann.")
        server.play([Failure(status=500, message="500: down")])
        with pytest.raises(Exception, match="500"):
            turn(call_style, agent, kept, "Can you hear me?")
        server.play(["You are Ann."])
        turn(call_style, agent, kept, "Who am I?")
        stored = [str(one.text) for one in memory.session("alice").messages()]
        assert stored == ["I am Ann.", "Hello Ann.", "Can you hear me?", "Who am I?", "You are Ann."]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_a_middleware_takes_out_of_a_resent_message_is_not_sent(call_style: CallStyle) -> None:
    def without_secret(request: ModelRequest) -> ModelRequest:
        messages = [
            one.model_copy(update={"content": str(one.content).replace("swordfish", "[secret]")})
            for one in request.messages
        ]
        return request.override(messages=messages)

    @wrap_model_call
    def hide(request: ModelRequest, handler: Callable[..., Any]) -> Any:
        return handler(without_secret(request))

    @wrap_model_call
    async def ahide(request: ModelRequest, handler: Callable[..., Any]) -> Any:
        return await handler(without_secret(request))

    with OpenAIServer() as server, open_memory() as memory:
        before = [hide] if call_style == "sync" else [ahide]
        agent = built(memory, openai_model(server), tools=(), before=before, **STATELESS)
        kept = turn(call_style, agent, [], "The word is swordfish.")
        turn(call_style, agent, kept, "And now?")
        assert "swordfish" not in str(server.requests[-1].messages)
        assert "[secret]" in str(server.requests[-1].messages)
        assert len(memory.session("alice").messages()) == 4


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_nodes_know_it_again_too(call_style: CallStyle) -> None:
    with open_memory() as memory:
        model = ScriptedModel(answers=lambda shown: AIMessage(f"I was shown {len(shown)}."))
        graph = chat_graph(memory, model).compile()
        kept: list[Any] = []
        for number in range(3):
            kept = [*kept, {"role": "user", "content": f"Question {number}"}]
            state = told(call_style, graph.invoke, {"messages": kept}, thread())
            kept = list(convert_to_openai_messages(state["messages"]))
        assert len(memory.session("t").messages()) == 6


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_client_that_never_sees_the_tool_work_has_it_stored_once(call_style: CallStyle) -> None:
    script = ["Hello Ann.", calls("look_up", {"order": 5}), "On Monday.", calls("look_up", {"order": 6}), "It is open."]
    with OpenAIServer(script=script) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), **STATELESS)
        kept: list[Any] = []
        for text in ("I am Ann.", "When is order 5 due?", "And order 6?"):
            kept.append({"role": "user", "content": text})
            state = said(call_style, agent, {"messages": kept})
            kept.append({"role": "assistant", "content": state["messages"][-1].text})
        roles = [one.type for one in memory.session("alice").messages()]
        assert roles == ["human", "ai", *(["human", "ai", "tool", "ai"] * 2)]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("named", [True, False])
def test_the_model_is_asked_what_a_client_asks_again_or_in_place_of_its_last_question(
    call_style: CallStyle, *, named: bool
) -> None:
    def user(number: int, text: str) -> dict[str, str]:
        return {"role": "user", "content": text} | ({"id": f"u{number}"} if named else {})

    with OpenAIServer(script=["Hello Ann."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), **STATELESS)
        kept = [user(1, "I am Ann."), {"role": "assistant", "content": "Hello Ann."}]
        said(call_style, agent, {"messages": kept[:1]})
        questions = ["When is order 5 due?", "When is order 5 due?", "When is order 5 due?", "And order 6?"]
        for text in questions:
            server.play([calls("look_up", {"order": 5}), calls("look_up", {"order": 6}), "On Monday."])
            said(call_style, agent, {"messages": [*kept, user(2, text)]})
            shown = server.requests[-3].messages
            assert (shown[-1]["role"], shown[-1]["content"]) == ("user", text)
        said(call_style, agent, {"messages": [user(1, "I am Bob.")]})
        stored = memory.session("alice").messages()
        assert [one.text for one in stored if one.type == "human"] == ["I am Ann.", *questions, "I am Bob."]
        work = ["human", "ai", "tool", "ai", "tool", "ai"]
        assert [one.type for one in stored] == ["human", "ai", *work * 4, "human", "ai"]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", ["agent", "nodes"])
def test_a_client_that_numbers_its_messages_anew_in_each_request_overwrites_nothing(
    kind: str, call_style: CallStyle
) -> None:
    with open_memory() as memory:
        model = ToolModel(answers=lambda shown: f"You said {shown[-1].text}")
        graph = built(memory, model, tools=(), **STATELESS) if kind == "agent" else chat_graph(memory, model).compile()
        for text in ("one", "two", "three"):
            told(call_style, graph.invoke, {"messages": [HumanMessage(text, id="1")]}, thread("t"))
        texts = [one.text for one in memory.session("t").messages()]
        assert texts == ["one", "You said one", "two", "You said two", "three", "You said three"]


@pytest.mark.parametrize("named", ["user", "assistant"])
def test_a_client_that_keeps_the_ids_of_one_side_alone_has_it_stored_once(named: str) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), **STATELESS)
        kept: list[Any] = []
        for number in range(4):
            own = {"id": f"u{number}"} if named == "user" else {}
            kept.append({"role": "user", "content": f"Question {number}", **own})
            last = said("sync", agent, {"messages": kept})["messages"][-1]
            own = {"id": last.id} if named == "assistant" else {}
            kept.append({"role": "assistant", "content": last.text, **own})
        assert [one.type for one in memory.session("alice").messages()] == ["human", "ai"] * 4


@pytest.mark.parametrize("prompt", ["Be kind.", "It is {} o'clock."])
@pytest.mark.parametrize("sent", [100, 3])
def test_a_system_message_in_front_is_in_nobodys_way(prompt: str, sent: int) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), **STATELESS)
        kept: list[Any] = []
        for number in range(5):
            kept.append({"role": "user", "content": f"Question {number}"})
            system = {"role": "system", "content": prompt.format(number)}
            state = said("sync", agent, {"messages": [system, *kept[-sent:]]})
            kept.append({"role": "assistant", "content": state["messages"][-1].text})
        stored = memory.session("alice").messages()
        assert [one.type for one in stored if one.type != "system"] == ["human", "ai"] * 5
        prompts = [str(one.text) for one in stored if one.type == "system"]
        assert prompts == list(dict.fromkeys(prompt.format(number) for number in range(5)))


def test_several_failed_turns_are_in_nobodys_way_either() -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server, max_retries=0), tools=(), **STATELESS)
        kept: list[Any] = []
        for text in ("I am Ann.", "Hello?"):
            kept = turn("sync", agent, kept, text)
        for text in ("Can you hear me?", "And now?", "Now?"):
            server.play([Failure(status=500, message="500: down")])
            with pytest.raises(Exception, match="500"):
                turn("sync", agent, kept, text)
        server.play(["You are Ann."])
        turn("sync", agent, kept, "Who am I?")
        users = [one.text for one in memory.session("alice").messages() if one.type == "human"]
        assert users == ["I am Ann.", "Hello?", "Can you hear me?", "And now?", "Now?", "Who am I?"]


def test_a_message_that_says_the_same_as_an_answered_one_is_new() -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), **STATELESS)
        for _ in range(3):
            said("sync", agent, "Next.")
        assert [one.type for one in memory.session("alice").messages()] == ["human", "ai"] * 3


def test_other_words_under_the_same_roles_are_another_conversation() -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), **STATELESS)
        turn("sync", agent, [], "I am Ann.")
        said("sync", agent, {"messages": [HumanMessage("I am Bob."), AIMessage("Hello Bob."), HumanMessage("Hi.")]})
        assert len(memory.session("alice").messages()) == 6


_KINDS = {"u": HumanMessage, "a": AIMessage, "p": SystemMessage}
TWICE = "u1 Next. | a1 Done. | u2 Next. | a2 Done."
PROMPTED = "p1 Kindly. | u1 Hi. | a1 Hello. | p2 Kindly. | u2 Yes? | a2 Well."


def spelt(messages: str) -> list[BaseMessage]:
    """Messages by the first letter of their ids."""
    pairs = [one.split(" ", 1) for one in messages.split(" | ") if one]
    return [_KINDS[name[0]](text, id=name) for name, text in pairs]


@pytest.mark.parametrize(
    ("stored", "forgotten", "sent", "found", "gone"),
    [
        (TWICE, "", "u1 Next. | a1 Done. | u9 And?", "u1 a1 u9", ""),
        (TWICE, "", "u8 Next. | a8 Done. | u9 And?", "u2 a2 u9", ""),
        (TWICE, "u1 a1", "u5 Next. | a6 Done. | u7 Next. | a8 Done. | u9 And?", "u5 a6 u2 a2 u9", "u5 a6"),
        (TWICE, "u1 a1 u2 a2", "u5 Next. | a6 Done. | u9 And?", "u5 a6 u9", "u5 a6"),
        (TWICE, "u1 u2", "u8 Next. | u9 And?", "u8 u9", ""),
        (TWICE, "u2 a2", "u1 Next. | a1 Done. | u9 And?", "u1 a1 u9", ""),
        ("u1 My word is X. | a1 Noted.", "u1", "u9 My word is X.", "u9", ""),
        ("p1 Kindly. | u1 Hi. | a1 Hello.", "p1", "p8 Kindly. | u8 Hi. | a8 Hello. | u9 And?", "p8 u1 a1 u9", ""),
        (PROMPTED, "", f"{PROMPTED} | u9 And?".replace("1", "7").replace("2", "8"), "p1 u1 a1 p2 u2 a2 u9", ""),
        ("p1 Kindly. | u1 Hi. | a1 Hello. | u2 Yes?", "", "p9 Kindly. | u9 And?", "p1 u9", ""),
        ("u1 Hi. | a1 Hello. | p1 Kindly. | u2 Yes?", "", "p9 Kindly. | u9 And?", "p1 u9", ""),
        ("u1 Hi. | a1 Hello.", "", "u1 Hi. | a1 Hello.", "u1 a1", ""),
        ("u1 Hi. | a1 Hello.", "", "u8 Hi. | a1 Hello.", "u1 a1", ""),
        ("u1 Hi. | a1 Hello. | u2 Yes? | a2 Well.", "", "u1 Hi. | a1 Hello.", "u1 a1", ""),
        ("u1 Hi. | a1 Hello.", "", "u9 So. | u1 Hi.", "u9 u1", ""),
        ("u1 Hi. | a1 Hello.", "", "u9 Hi again. | a1 Hello.", "u9 a1-*", ""),
        ("u1 Hi. | a1 Hello. | u2 Yes?", "", "u1 Hi. | a1 Hello. | u2 Yes? | a1 Hello.", "u1 a1 u2 a1-*", ""),
    ],
)
def test_a_list_is_known_again_by_its_words_and_what_has_an_id_of_ours_by_that(
    stored: str, forgotten: str, sent: str, found: str, gone: str
) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(spelt(stored))
        if forgotten:
            session.forget(message_ids=forgotten.split())
        messages, missing = recognised(memory.session("s"), spelt(sent))
    ids = [str(one.id) for one in messages]
    assert len(ids) == len(found.split())
    assert all(map(fnmatch, ids, found.split())), ids
    assert missing == set(gone.split())


@given(st.lists(st.sampled_from("ab"), max_size=12), st.lists(st.sampled_from("ab"), max_size=12))
def test_the_overlap_is_the_longest_there_is(first: list[str], last: list[str]) -> None:
    longest = max(n for n in range(min(len(first), len(last)) + 1) if first[:n] == last[len(last) - n :])
    said_first, said_last = ([("user", one, (), None) for one in words] for words in (first, last))
    assert overlap(said_first, said_last) == longest
