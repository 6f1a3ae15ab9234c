"""What a user said in other sessions: found, listed, shown where that is switched on, and never anybody else's."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_tiered_memory import OtherSessions
from langchain_tiered_memory.across.store import Across
from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError, SettingsError
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.nodes import context_node, model_input, remember_node
from langchain_tiered_memory.integrations.state import TieredState
from langchain_tiered_memory.integrations.tools import memory_tools
from langchain_tiered_memory.types.arguments import Scope
from tests.agent_builders import ToolModel
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.graph_builders import thread
from tests.memory_builders import conversation, open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.contexts import Context
    from langchain_tiered_memory.types.records import Entry, SessionRef

both = pytest.mark.parametrize("call_style", CALL_STYLES)
MARCH = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
ABOUT_ME = "I prefer dark roast coffee, and I'm allergic to peanuts."
BERGEN = "The ferry to Bergen leaves quay 7 at 09:40, booking F-4711."


@dataclass
class Ctx:
    """A context of a graph's run."""

    user_id: str


def talk(memory: TieredMemory, session_id: str, *texts: str, user: str | None, at: dt.datetime = MARCH) -> Session:
    session = memory.session(session_id, user=user)
    session.add_messages([HumanMessage(text, id=f"{session_id}-{n}") for n, text in enumerate(texts)], at=at)
    return session


@pytest.fixture
def memory(where: str | Path | None) -> Iterator[TieredMemory]:
    """Zoe spoke twice, Bob and somebody unknown once."""
    with open_memory(where, embeddings=HashingEmbeddings()) as opened:
        talk(opened, "zoe-1", ABOUT_ME, BERGEN, *(one.text for one in conversation(6)), user="zoe")
        talk(opened, "zoe-2", "My sister is called Marta.", user="zoe", at=MARCH + dt.timedelta(days=40))
        talk(opened, "bob-1", "I prefer green tea. The ferry to Bergen is BOBS.", user="bob")
        talk(opened, "nobody", "I prefer cocoa. The ferry to Bergen is NOBODYS.", user=None)
        opened.flush()
        yield opened


def shown(context: Context) -> str:
    return "\n".join(str(one.content) for one in context.messages)


@both
def test_a_users_sessions_are_searched_together(memory: TieredMemory, call_style: CallStyle) -> None:
    hits = told(call_style, memory.search, "ferry to Bergen", user="zoe")
    assert [(hits[0].session_id, hits[0].id, hits[0].passage)] == [("zoe-1", "zoe-1-1", BERGEN)]
    assert all(hit.session_id.startswith("zoe") for hit in hits)
    later = told(call_style, memory.search, "sister Marta ferry", user="zoe", since=MARCH + dt.timedelta(days=1))
    assert [hit.session_id for hit in later] == ["zoe-2"]
    assert len(told(call_style, memory.search, "order bolts", user="zoe", k=2)) == 2
    for stranger in ("Zoe", "nobody at all"):
        assert told(call_style, memory.search, "ferry to Bergen", user=stranger) == []
    with pytest.raises(InvalidInputError):
        memory.search("ferry", user="")


@both
def test_facts_of_a_user_have_session_date_and_source_and_the_last_word_holds(
    memory: TieredMemory, call_style: CallStyle
) -> None:
    (bobs,) = told(call_style, memory.facts, user="bob")  # what is kept of one user is not there for another
    facts = {fact.text: fact for fact in told(call_style, memory.facts, user="zoe")}
    assert bobs.text not in facts
    assert memory.facts(user="bob") == [bobs]
    assert [any(words in text for text in facts) for words in ("dark roast", "called Marta")] == [True, True]
    assert not any("Bergen" in text or "order" in text for text in facts)
    sister = next(fact for text, fact in facts.items() if "Marta" in text)
    assert (sister.session_id, sister.message_ids, sister.at) == (
        "zoe-2",
        ("zoe-2-0",),
        (MARCH + dt.timedelta(days=40)).timestamp(),
    )
    talk(memory, "zoe-3", "My sister is called Anna, not Marta.", user="zoe", at=MARCH + dt.timedelta(days=50))
    assert not any(fact.text == sister.text for fact in memory.facts("sister", user="zoe"))
    gone = [fact for fact in memory.facts("sister", user="zoe", superseded=True) if fact.status == "superseded"]
    assert [fact.session_id for fact in gone] == ["zoe-2"]
    receipt = told(call_style, memory.session("zoe-3", user="zoe").forget, message_ids=["zoe-3-0"])
    assert receipt.entries == 1
    assert any(fact.text == sister.text for fact in memory.facts("sister", user="zoe"))


def test_facts_of_a_user_are_read_again_only_where_a_session_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = tmp_path / "memory.db", list[list[str]]()
    as_ever = Across.unread

    def unread(self: Across, refs: Sequence[SessionRef]) -> list[tuple[SessionRef, Entry]]:
        read.append([ref.session_id for ref in refs])
        return as_ever(self, refs)

    monkeypatch.setattr(Across, "unread", unread)

    def facts() -> list[str]:
        read.clear()
        return [fact.text for fact in memory.facts(user="zoe")]

    with open_memory(path) as memory, open_memory(path) as other:
        talk(memory, "zoe-1", ABOUT_ME, BERGEN, user="zoe")
        talk(memory, "zoe-2", "My sister is called Marta.", user="zoe", at=MARCH + dt.timedelta(days=40))
        both_said = facts()
        assert len(read) == 1
        assert facts() == both_said
        assert read == []
        memory.session("zoe-2", user="zoe").add_messages([HumanMessage("Good. Thanks.")])
        assert facts() == both_said
        assert read == [["zoe-2"]]
        other.session("zoe-1").forget(message_ids=["zoe-1-0"])
        left = facts()
        assert [sorted(one) for one in read] == [["zoe-1", "zoe-2"]], "what is forgotten concerns each of the user's"
        assert left == [text for text in both_said if "Marta" in text]
        talk(other, "zoe-3", "My sister is called Anna, not Marta.", user="zoe", at=MARCH + dt.timedelta(days=50))
        assert not set(left).intersection(facts())
        other.forget(session_id="zoe-3")
        assert facts() == left
        assert [sorted(one) for one in read] == [["zoe-1", "zoe-2"]]
        other.forget(user="zoe")
        assert facts() == []


@both
def test_a_context_tells_of_other_sessions_where_that_is_switched_on(
    memory: TieredMemory, call_style: CallStyle
) -> None:
    asking = talk(memory, "zoe-now", "Which coffee do I like, and when does the ferry to Bergen leave?", user="zoe")
    plain = told(call_style, asking.context, max_tokens=1500)
    assert plain.section("other_sessions") is None
    assert "dark roast" not in shown(plain)
    memory.sections.register(OtherSessions(share=0.2))
    context = told(call_style, asking.context, max_tokens=1500)
    section = context.section("other_sessions")
    assert section.tokens <= section.cap == 300
    assert "other conversations" in section.text
    assert "2026-03-01" in section.text
    assert "dark roast" in section.text
    assert BERGEN in section.text
    assert {one.message_ids[0] for one in section.sources if one.session_id == "zoe-1"} >= {"zoe-1-0", "zoe-1-1"}
    facts = {fact.id for fact in memory.facts(user="zoe")}
    assert {one.fact_id for one in section.sources} - {None} <= facts
    assert "BOBS" not in shown(context)
    assert "NOBODYS" not in shown(context)
    for session in (
        memory.session("zoe-now"),
        memory.session("zoe-now", user="zoe", track="helper", scope=Scope()),
        memory.session("nobody"),
    ):
        without = told(call_style, session.context, "Which coffee, which ferry to Bergen?", max_tokens=1500)
        assert without.section("other_sessions") is None or without.section("other_sessions").text == ""
        assert "dark roast" not in shown(without)


def test_what_another_session_does_not_say_any_more_is_shown_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with open_memory(path) as memory, open_memory(path) as other:
        memory.sections.register(OtherSessions(share=0.2))
        talk(memory, "zoe-1", ABOUT_ME, BERGEN, user="zoe")
        asking = talk(memory, "now", "When does the ferry to Bergen leave?", user="zoe")
        assert BERGEN in shown(asking.context(max_tokens=2000))
        asking.add_messages([AIMessage("At 09:40."), HumanMessage("Thanks. And which coffee do I like?")])
        assert BERGEN in shown(asking.context(max_tokens=2000))  # it stands before the first question
        other.session("zoe-1").forget(message_ids=["zoe-1-1"])
        context = asking.context(max_tokens=2000)
        assert BERGEN not in shown(context)
        assert "dark roast" in shown(context)
        other.forget(session_id="zoe-1")
        assert "dark roast" not in shown(asking.context(max_tokens=2000))


@both
def test_the_tool_looks_into_other_sessions_only_where_it_may(memory: TieredMemory, call_style: CallStyle) -> None:
    talk(memory, "now", "Hello again.", user="zoe")
    recall = memory_tools(memory, across=True)[0]
    narrow = memory_tools(memory)[0]
    assert "scope" in recall.args
    assert "scope" not in narrow.args

    def asked(tool: Any, config: dict[str, Any], **more: Any) -> str:
        return str(told(call_style, tool.invoke, {"query": "ferry to Bergen, coffee", **more}, config))

    found = asked(recall, thread("now", user_id="zoe"), scope="user")
    assert BERGEN in found
    assert "dark roast" in found
    assert "other conversations" in found
    assert "BOBS" not in found
    assert BERGEN not in asked(recall, thread("now", user_id="zoe"))
    assert BERGEN not in asked(narrow, thread("now", user_id="zoe"), scope="user")
    for config in (thread("now"), thread("nobody")):
        assert "cannot be searched" in asked(recall, config, scope="user")
    scoped = memory_tools(memory, across=True, scope=Scope())[0]
    assert "cannot be searched" in asked(scoped, thread("now", user_id="zoe"), scope="user")
    with pytest.raises(MixedOwnersError):
        asked(recall, thread("now", user_id="bob"), scope="user")
    with pytest.raises(SettingsError, match="tools=True"):
        TieredMemoryMiddleware(memory, across=True)


@both
@pytest.mark.parametrize("context", [Ctx(user_id="zoe"), {"user_id": "zoe"}], ids=["object", "mapping"])
def test_the_user_of_a_run_is_read_from_its_context(context: Any, call_style: CallStyle) -> None:
    calls = iter(
        [
            AIMessage("", tool_calls=[{"name": "recall", "args": {"query": "Bergen", "scope": "user"}, "id": "c1"}]),
            AIMessage("At 09:40."),
        ]
    )
    with open_memory() as memory:
        talk(memory, "zoe-1", BERGEN, user="zoe")
        talk(memory, "bob-1", "The ferry to Bergen is BOBS.", user="bob")
        agent = create_agent(
            ToolModel(answers=lambda _: next(calls)),
            [],
            middleware=[TieredMemoryMiddleware(memory, tools=True, across=True)],
            context_schema=Ctx if isinstance(context, Ctx) else dict,
            checkpointer=InMemorySaver(),
        )
        given = {"messages": [HumanMessage("When does the ferry leave?")]}
        done = told(call_style, agent.invoke, given, thread("now"), context=context)
        (result,) = [one for one in done["messages"] if isinstance(one, ToolMessage)]
        assert BERGEN in result.content
        assert "BOBS" not in result.content
        assert memory.sessions(user="zoe") == ["zoe-1", "now"]
        with pytest.raises(MixedOwnersError):
            told(call_style, agent.invoke, given, thread("now", user_id="bob"), context=context)


class State(MessagesState, TieredState):
    """A state of a hand-built graph."""


@both
def test_nodes_know_the_user_of_the_context_too(call_style: CallStyle) -> None:
    requests: list[Sequence[BaseMessage]] = []
    with open_memory() as memory:
        memory.sections.register(OtherSessions(share=0.3))
        talk(memory, "zoe-1", ABOUT_ME, user="zoe")

        def answer(state: State, config: RunnableConfig) -> dict[str, Any]:
            requests.append(model_input(memory, state, config))
            return {"messages": [AIMessage("Noted.")]}

        builder = StateGraph(State, context_schema=Ctx)
        builder.add_sequence(
            [
                ("remember", remember_node(memory)),
                ("view", context_node(memory, max_tokens=1500)),
                ("answer", answer),
            ]
        )
        builder.add_edge(START, "remember")
        graph = builder.compile()
        given = {"messages": [HumanMessage("Which coffee do I like?")]}
        told(call_style, graph.invoke, given, thread("now"), context=Ctx(user_id="zoe"))
        told(call_style, graph.invoke, given, thread("other"), context=Ctx(user_id="bob"))
        assert memory.sessions(user="zoe") == ["zoe-1", "now"]
    assert ["dark roast" in str(request) for request in requests] == [True, False]
