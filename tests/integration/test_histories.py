"""Histories in and out of real chat histories, LangGraph checkpointers and OpenAI-style dicts."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_community.chat_message_histories import FileChatMessageHistory, SQLChatMessageHistory
from langchain_core.chat_history import BaseChatMessageHistory, InMemoryChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph, add_messages

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.integrations.histories import (
    aexport_history,
    afrom_langgraph,
    aimport_history,
    ato_openai,
    export_history,
    from_langgraph,
    import_history,
    to_openai,
)
from langchain_tiered_memory.integrations.legacy.chat_history import TieredChatMessageHistory
from tests.call_styles import CALL_STYLES, CallStyle
from tests.memory_builders import conversation, entries_of, open_memory, tool_turn

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import Session

KINDS = [
    (kind, call_style)
    for kind in ("in memory", "file", "sql", "sql async", "tiered")
    for call_style in CALL_STYLES
    if (kind, call_style) != ("sql async", "sync")
]
THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}


def unnamed() -> list[BaseMessage]:
    """A history as most are: people's messages have no ids, and some are said twice."""
    call = {"name": "look_up", "args": {"order": 7}, "id": "c1"}
    return [
        HumanMessage("hello"),
        AIMessage("good morning", id="run-1"),
        HumanMessage("look up order 7"),
        AIMessage("", tool_calls=[call], id="run-2"),
        ToolMessage("found", tool_call_id="c1"),
        AIMessage("It is there.", id="run-3"),
        HumanMessage("hello"),
    ]


def history_of(kind: str, where: Path) -> BaseChatMessageHistory:
    if kind == "file":
        return FileChatMessageHistory(str(where / "history.json"))
    if kind == "sql":
        return SQLChatMessageHistory("s", connection=f"sqlite:///{where / 'history.db'}")
    if kind == "sql async":
        return SQLChatMessageHistory("s", connection=f"sqlite+aiosqlite:///{where / 'history.db'}", async_mode=True)
    if kind == "tiered":
        return TieredChatMessageHistory(open_memory(), "elsewhere")
    return InMemoryChatMessageHistory()


def brought(session: Session, source: Any, call_style: CallStyle, **options: Any) -> list[str]:
    if call_style == "sync":
        return import_history(session, source, **options)

    async def go() -> list[str]:
        if isinstance(source, FileChatMessageHistory | SQLChatMessageHistory):
            return await aimport_history(session, source, **options)
        with blockbuster_ctx():
            return await aimport_history(session, source, **options)

    return asyncio.run(go())


def texts(session: Session) -> list[str]:
    return [str(one.text) for one in session.messages()]


@pytest.mark.parametrize(("kind", "call_style"), KINDS)
def test_a_chat_history_comes_in_once_however_often_it_is_brought(
    kind: str, call_style: CallStyle, tmp_path: Path
) -> None:
    history = history_of(kind, tmp_path)
    with open_memory() as memory:
        session = memory.session("s")
        if kind == "sql async":
            asyncio.run(history.aadd_messages(unnamed()))
        else:
            history.add_messages(unnamed())
        first = brought(session, history, call_style)
        assert texts(session) == [str(one.text) for one in unnamed()]
        assert brought(session, history, call_style) == first
        assert len(texts(session)) == 7
        if kind != "sql async":
            history.add_messages([HumanMessage("one more")])
            assert brought(session, history, call_style)[:7] == first
            assert texts(session)[7:] == ["one more"]
        assert memory.verify().problems == ()


@pytest.mark.parametrize(("kind", "call_style"), KINDS)
def test_a_session_goes_out_once_and_comes_back_equal(kind: str, call_style: CallStyle, tmp_path: Path) -> None:
    history = history_of(kind, tmp_path)

    def out(session: Session) -> list[str]:
        return (
            export_history(session, history) if call_style == "sync" else asyncio.run(aexport_history(session, history))
        )

    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([*conversation(3), *tool_turn(4)])
        assert len(out(session)) == 11
        assert out(session) == []
        session.add_messages([HumanMessage("later", id="later")])
        assert out(session) == ["later"]
        back = memory.session("back")
        brought(back, history, call_style)
        assert back.messages() == session.messages()


def test_a_history_that_came_in_without_ids_does_not_double_when_it_goes_back() -> None:
    history = InMemoryChatMessageHistory(messages=unnamed())
    with open_memory() as memory:
        session = memory.session("s")
        import_history(session, history)
        session.add_messages([AIMessage("hello", id="new")])
        assert export_history(session, history) == ["new"]
        assert len(history.messages) == 8


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_openai_dicts_come_in_with_their_times_and_go_out_again(call_style: CallStyle) -> None:
    rows = [
        {"role": "user", "content": "hello", "timestamp": "2024-03-15T13:56:00Z"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 7}'}}],
            "timestamp": "2024-03-15T13:57:00Z",
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found", "timestamp": "2024-03-15T13:58:00Z"},
        {"role": "user", "content": [{"type": "text", "text": "hello"}], "id": "mine", "timestamp": 1710511200},
    ]
    with open_memory() as memory:
        session = memory.session("s")
        first = brought(session, rows, call_style)
        assert brought(session, rows, call_style) == first
        assert first[3] == "mine"
        assert len(set(first)) == 4
        assert entries_of(session)[0].at == dt.datetime(2024, 3, 15, 13, 56, tzinfo=dt.UTC).timestamp()
        out = to_openai(session) if call_style == "sync" else asyncio.run(ato_openai(session))
        assert [one["role"] for one in out] == ["user", "assistant", "tool", "user"]
        assert out[1]["tool_calls"][0]["function"]["name"] == "look_up"
        back = memory.session("back")
        assert brought(back, out, call_style) == first
        assert texts(back) == texts(session)


def test_langchains_dicts_pairs_and_chunks_come_in_too() -> None:
    from langchain_core.messages import messages_to_dict  # noqa: PLC0415 - only here

    with open_memory() as memory:
        assert len(import_history(memory.session("dicts"), messages_to_dict(conversation(2)))) == 4
        assert memory.session("dicts").messages() == conversation(2)
        mixed = [("user", "hello"), AIMessageChunk("in pieces"), "and a string"]
        import_history(memory.session("mixed"), mixed)
        assert [type(one) for one in memory.session("mixed").messages()] == [HumanMessage, AIMessage, HumanMessage]


def test_the_state_that_langgraphs_server_gives_comes_in_as_its_messages() -> None:
    with open_memory() as memory:
        state = [one.model_copy(update={"id": f"m{n}"}) for n, one in enumerate(unnamed())]
        rows = [one.model_dump() for one in state]
        session = memory.session("s")
        assert import_history(session, rows) == [one.id for one in state]
        assert session.messages() == state
        import_history(session, state)
        assert len(session.messages()) == len(state)


def legacy() -> list[dict[str, Any]]:
    """What an assistant says beside its content, in OpenAI's words."""
    return [
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": None, "function_call": {"name": "look_up", "arguments": '{"order": 7}'}},
        {"role": "function", "name": "look_up", "content": "found"},
        {"role": "assistant", "content": None, "refusal": "I cannot tell."},
        {"role": "user", "content": "say it"},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1", "transcript": "It is there."}},
        {"role": "assistant", "content": "So it is.", "reasoning_content": "Think."},
    ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_an_assistant_says_beside_its_content_comes_in_too(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        brought(session, legacy(), call_style)
        brought(session, legacy(), call_style)
        said = session.messages()
        assert len(said) == len(legacy())
        assert said[1].additional_kwargs["function_call"]["name"] == "look_up"
        assert [one.text for one in entries_of(session)][3] == "I cannot tell."
        assert said[5].text == "It is there."
        assert said[6].additional_kwargs["reasoning_content"] == "Think."
        out = to_openai(session)
        assert out[1]["function_call"] == legacy()[1]["function_call"]
        assert session.context("What did you say?").messages


def test_a_call_that_could_not_be_parsed_goes_out_as_it_came() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{order: 7"}}
    rows = [
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "no JSON"},
    ]
    with open_memory() as memory:
        session = memory.session("s")
        ids = import_history(session, rows)
        out = to_openai(session)
        assert out[1]["tool_calls"] == [call]
        assert import_history(session, out) == ids
        assert len(session.messages()) == len(rows)


def test_a_block_that_openai_has_no_form_for_does_not_stop_the_rest_from_going_out() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(
            [
                HumanMessage([{"type": "text", "text": "hear"}, {"type": "media", "mime_type": "a/b", "data": "QQ=="}]),
                AIMessage("I hear."),
            ]
        )
        assert [one["content"] for one in to_openai(session)] == ["hear", "I hear."]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    said=st.lists(
        st.one_of(
            st.builds(lambda text: {"role": "user", "content": text}, st.text(max_size=20)),
            st.builds(lambda text: {"role": "assistant", "content": text}, st.text(max_size=20)),
            st.builds(lambda text: {"role": "system", "content": text}, st.text(max_size=20)),
            st.builds(
                lambda args, text: [
                    {
                        "role": "assistant",
                        "content": text,
                        "tool_calls": [
                            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": json.dumps(args)}}
                        ],
                    },
                    {"role": "tool", "tool_call_id": "c1", "content": text},
                ],
                st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
                st.text(max_size=10),
            ),
        ),
        max_size=8,
    )
)
def test_openai_dicts_come_in_as_langchain_reads_them_and_go_out_as_langchain_writes_them(said: list[Any]) -> None:
    rows = [row for one in said for row in (one if isinstance(one, list) else [one])]
    with open_memory() as memory:
        session = memory.session("s")
        import_history(session, rows)
        read = convert_to_messages(rows)
        ours = session.messages()
        assert [one.model_copy(update={"id": None}) for one in ours] == read
        out = [{key: value for key, value in one.items() if key != "id"} for one in to_openai(session)]
        assert out == convert_to_openai_messages(read)


def test_two_histories_of_the_same_words_are_told_apart_by_a_label() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        import_history(session, [HumanMessage("hello")], label="monday")
        import_history(session, [HumanMessage("hello")], label="tuesday")
        import_history(session, [HumanMessage("hello")], label="tuesday")
        assert texts(session) == ["hello", "hello"]


def test_a_time_can_be_given_for_histories_that_have_none() -> None:
    at = dt.datetime(2021, 1, 2, tzinfo=dt.UTC)
    with open_memory() as memory:
        import_history(memory.session("s"), unnamed(), at=at)
        assert {one.at for one in entries_of(memory.session("s"))} == {at.timestamp()}


@pytest.mark.parametrize("source", ["hello", {"role": "user"}, 7, HumanMessage("hello"), [{"content": "no role"}], [7]])
def test_what_is_no_history_is_refused_and_nothing_is_written(source: Any) -> None:
    with open_memory() as memory:
        with pytest.raises(InvalidInputError):
            import_history(memory.session("s"), source)
        assert memory.sessions() == []


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(said=st.lists(st.sampled_from(["hello", "yes", "no", ""]), max_size=30), known=st.integers(0, 30))
def test_any_beginning_of_a_history_that_came_before_changes_nothing(said: list[str], known: int) -> None:
    history = [HumanMessage(text) for text in said]
    with open_memory() as memory:
        session = memory.session("s")
        import_history(session, history[:known])
        import_history(session, history)
        assert texts(session) == said


def test_an_empty_history_brings_nothing() -> None:
    with open_memory() as memory:
        assert import_history(memory.session("s"), []) == []
        assert import_history(memory.session("s"), InMemoryChatMessageHistory()) == []
        assert export_history(memory.session("s"), InMemoryChatMessageHistory()) == []


def test_a_long_history_comes_in_in_batches_that_split_no_call_from_its_result() -> None:
    long = [message for number in range(150) for message in tool_turn(number)]
    with open_memory() as memory:
        session = memory.session("s")
        assert len(import_history(session, long)) == 750
        groups = {one.answers: one.group for one in entries_of(session) if one.answers}
        heads = {call: one.seq for one in entries_of(session) for call in one.calls}
        assert groups == heads


class State(TypedDict):
    """A graph's state with more than messages in it."""

    messages: Annotated[list[BaseMessage], add_messages]
    count: int


def graph_on(saver: Any) -> Any:
    def answer(state: State) -> dict[str, Any]:
        said = state["messages"][-1].text
        return {"messages": [AIMessage(f"about {said}")], "count": state.get("count", 0) + 1}

    return StateGraph(State).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=saver)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_the_messages_of_a_threads_latest_checkpoint_come_in(kind: str, tmp_path: Path) -> None:
    from contextlib import nullcontext  # noqa: PLC0415 - only here

    held: Any = (
        nullcontext(InMemorySaver()) if kind == "memory" else SqliteSaver.from_conn_string(str(tmp_path / "graph.db"))
    )
    with held as saver, open_memory() as memory:
        graph = graph_on(saver)
        session = memory.session("t")
        graph.invoke({"messages": [HumanMessage("one")]}, THREAD)
        first = import_history(session, from_langgraph(saver, THREAD))
        assert texts(session) == ["one", "about one"]
        graph.invoke({"messages": [HumanMessage("two")]}, THREAD)
        assert import_history(session, from_langgraph(saver, THREAD))[:2] == first
        assert texts(session) == ["one", "about one", "two", "about two"]
        state = graph.get_state(THREAD).values["messages"]
        assert session.messages() == state
        with pytest.raises(NotFoundError, match="nowhere"):
            from_langgraph(saver, {"configurable": {"thread_id": "nowhere"}})
        with pytest.raises(InvalidInputError, match=r"'count', 'messages'"):
            from_langgraph(saver, THREAD, channel="count")
        with pytest.raises(InvalidInputError, match="thread_id"):
            from_langgraph(saver, {"configurable": {}})


async def test_an_async_checkpointer_is_read_without_blocking(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver:
        graph = graph_on(saver)
        await graph.ainvoke({"messages": [HumanMessage("one")]}, THREAD)
        memory = open_memory()
        with blockbuster_ctx():
            await aimport_history(memory.session("t"), await afrom_langgraph(saver, THREAD))
        assert texts(memory.session("t")) == ["one", "about one"]


class AsyncAlone(InMemorySaver):
    """A checkpointer that can only be awaited, as `BaseCheckpointSaver` allows."""

    def get_tuple(self, config: RunnableConfig) -> Any:
        raise NotImplementedError

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        return super().get_tuple(config)


async def test_a_checkpointer_that_can_only_be_awaited_is_awaited() -> None:
    saver = AsyncAlone()
    await graph_on(saver).ainvoke({"messages": [HumanMessage("one")]}, THREAD)
    assert [one.text for one in await afrom_langgraph(saver, THREAD)] == ["one", "about one"]
