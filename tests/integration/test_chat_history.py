"""The memory inside a real `RunnableWithMessageHistory`: nothing that was said is lost, nothing is stored twice."""

from __future__ import annotations

import asyncio
import copy
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_classic.chains import LLMChain
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnableWithMessageHistory
from pydantic import BaseModel

from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError, StorageError
from langchain_tiered_memory.integrations.legacy.chat_history import TieredChatMessageHistory
from langchain_tiered_memory.integrations.legacy.runnable_history import with_tiered_history
from langchain_tiered_memory.testing import ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle
from tests.memory_builders import conversation, open_memory, quick_settings, store_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from langchain_core.runnables import Runnable, RunnableConfig

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.reports import Event

HOW = ("invoke", "stream", "batch")
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "You are a clerk."), MessagesPlaceholder("history"), ("human", "{input}")]
)


def config(session_id: str = "s", **more: Any) -> RunnableConfig:
    return {"configurable": {"session_id": session_id}, **more}


async def _alist(chunks: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in chunks]


def ask(chat: Runnable[Any, Any], said: Any, *, how: str, call_style: CallStyle, session_id: str = "s") -> None:
    """One turn, sync or async, by any of the three ways to run a runnable."""
    if call_style == "sync":
        if how == "invoke":
            chat.invoke(said, config(session_id))
        elif how == "stream":
            list(chat.stream(said, config(session_id)))
        else:
            chat.batch([said], config(session_id))
        return

    async def go() -> None:
        with blockbuster_ctx():
            if how == "invoke":
                await chat.ainvoke(said, config(session_id))
            elif how == "stream":
                await _alist(chat.astream(said, config(session_id)))
            else:
                await chat.abatch([said], config(session_id))

    asyncio.run(go())


def texts(memory: TieredMemory, session_id: str = "s") -> list[str]:
    return [str(one.text) for one in memory.session(session_id).messages()]


def plain(
    memory: TieredMemory, runnable: Any, *, view: str = "transcript", keys: dict[str, str] | None = None, **options: Any
) -> RunnableWithMessageHistory:
    """What anybody would write who follows LangChain's documentation."""
    return RunnableWithMessageHistory(
        runnable, lambda session_id: TieredChatMessageHistory(memory, session_id, view=view, **options), **(keys or {})
    )


def numbered() -> ScriptedModel:
    answers = iter(range(1000))
    return ScriptedModel(answers=lambda _: f"answer {next(answers)}")


Maker = "plain transcript", "plain context", "with_tiered_history"


def made(
    kind: str, memory: TieredMemory, model: Any, *, keys: bool, max_tokens: int = 1200
) -> tuple[Runnable[Any, Any], Callable[[str], Any]]:
    """A chat of each kind, and how its input looks."""
    runnable = PROMPT | model if keys else model
    names = {"input_messages_key": "input", "history_messages_key": "history"} if keys else {}
    if kind == "with_tiered_history":
        chat: Runnable[Any, Any] = with_tiered_history(runnable, memory, max_tokens=max_tokens, **names)
    else:
        options = {"max_tokens": max_tokens} if kind == "plain context" else {}
        chat = plain(memory, runnable, view=kind.split()[1], keys=names, **options)
    return chat, (lambda text: {"input": text}) if keys else (lambda text: [HumanMessage(text)])


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("keys", [True, False], ids=["with keys", "without keys"])
@pytest.mark.parametrize("kind", Maker)
def test_each_turn_is_stored_once_and_in_order(kind: str, *, keys: bool, how: str, call_style: CallStyle) -> None:
    with open_memory() as memory:
        chat, shaped = made(kind, memory, numbered(), keys=keys)
        for number in range(6):
            ask(chat, shaped(f"question {number}"), how=how, call_style=call_style)
        assert texts(memory) == [one for n in range(6) for one in (f"question {n}", f"answer {n}")]


@pytest.mark.slow
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", ["plain context", "with_tiered_history"])
def test_a_condensed_view_neither_doubles_nor_loses_a_message(kind: str, call_style: CallStyle) -> None:
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(30))
        memory.session("s").flush()
        model = numbered()
        chat, shaped = made(kind, memory, model, keys=False, max_tokens=700)
        for number in range(8):
            ask(chat, shaped(f"question {number}"), how="invoke", call_style=call_style)
            memory.session("s").flush()
        assert texts(memory)[60:] == [one for n in range(8) for one in (f"question {n}", f"answer {n}")]
        assert len(texts(memory)) == 76
        assert all(len(prompt) < 40 for prompt in model.prompts), "the view was condensed"
        assert memory.verify().problems == ()


@pytest.mark.parametrize("view", ["transcript", "context"])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_others_write_during_a_run_costs_nobody_a_message(view: str, call_style: CallStyle) -> None:
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(2))

        def busy(_: list[BaseMessage]) -> str:
            memory.session("s").add_messages([HumanMessage("from elsewhere"), AIMessage("noted")])
            return "answer"

        chat = plain(memory, ScriptedModel(answers=busy), view=view)
        ask(
            chat, [HumanMessage("question")], how="invoke", call_style=call_style
        ) if call_style == "sync" else asyncio.run(chat.ainvoke([HumanMessage("question")], config()))
        assert sorted(texts(memory)[4:]) == sorted(["from elsewhere", "noted", "question", "answer"])


@pytest.mark.parametrize("keys", [True, False], ids=["with keys", "without keys"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_failing_model_loses_nothing_that_was_said(*, keys: bool, how: str, call_style: CallStyle) -> None:
    with open_memory() as memory:
        events: list[Event] = []
        memory.subscribe(events.append)
        model = ScriptedModel(answers=[RuntimeError("no capacity"), "answer"])
        chat, shaped = made("with_tiered_history", memory, model, keys=keys)
        with pytest.raises(RuntimeError, match="no capacity"):
            ask(chat, shaped("my only question"), how=how, call_style=call_style)
        assert texts(memory) == ["my only question"]
        assert [one.name for one in events if one.name == "turn_interrupted"] == ["turn_interrupted"]
        ask(chat, shaped("and again"), how=how, call_style=call_style)
        assert texts(memory) == ["my only question", "and again", "answer"]


def streaming(words: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(words)]))


def entries(memory: TieredMemory) -> list[Any]:
    ref = store_of(memory).transcript.find("s")
    assert ref is not None
    return store_of(memory).transcript.entries(ref)


@pytest.mark.parametrize("keys", [True, False], ids=["with keys", "without keys"])
def test_a_stream_that_is_broken_off_keeps_the_question_and_what_came_of_the_answer(*, keys: bool) -> None:
    with open_memory() as memory:
        chat, shaped = made("with_tiered_history", memory, streaming("one two three four"), keys=keys)
        stream = chat.stream(shaped("tell me"), config())
        got = [next(stream).text for _ in range(3)]
        stream.close()  # type: ignore[attr-defined] # a generator
        question, stump = entries(memory)
        assert question.text == "tell me"
        assert stump.text == "".join(got).strip()
        assert stump.kind == "interrupted"
        assert memory.session("s").messages()[1].response_metadata["interrupted"] == "GeneratorExit"


async def test_a_cancelled_stream_keeps_the_question_and_what_came_of_the_answer() -> None:
    memory = open_memory()
    came = asyncio.Event()

    async def slow(_: Any) -> AsyncIterator[str]:
        yield "the first"
        came.set()
        await asyncio.sleep(60)
        yield " the last"

    from langchain_core.runnables import RunnableGenerator  # noqa: PLC0415 - only here

    chat = with_tiered_history(RunnableGenerator(slow), memory)  # type: ignore[type-var]
    with blockbuster_ctx():
        task = asyncio.create_task(_alist(chat.astream("tell me", config())))
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [str(one.text) for one in await memory.session("s").amessages()] == ["tell me", "the first"]


async def test_a_cancelled_call_keeps_the_question() -> None:
    memory = open_memory()
    came = asyncio.Event()

    async def slow(_: Any) -> str:
        came.set()
        await asyncio.sleep(60)
        return "never"

    chat = with_tiered_history(RunnableLambda(slow), memory)
    task = asyncio.create_task(chat.ainvoke("tell me", config()))
    await came.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert texts(memory) == ["tell me"]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_concurrent_turns_on_one_session_lose_and_double_nothing(call_style: CallStyle) -> None:
    with open_memory() as memory:
        chat, shaped = made("with_tiered_history", memory, numbered(), keys=True)
        asked = [shaped(f"question {n}") for n in range(8)]
        if call_style == "sync":
            chat.batch(asked, config())
        else:
            asyncio.run(chat.abatch(asked, config()))
        found = texts(memory)
        assert sorted(found) == sorted([one for n in range(8) for one in (f"question {n}", f"answer {n}")])


def test_the_context_is_put_together_for_what_is_asked_now() -> None:
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(40))
        memory.session("s").flush()
        model = numbered()
        chat, shaped = made("with_tiered_history", memory, model, keys=True, max_tokens=600)
        chat.invoke(shaped("What about invoice F-0003?"), config())
        (prompt,) = model.prompts
        assert "F-0003" in "\n".join(str(one.text) for one in prompt[1:-1])
        assert [str(one.text) for one in prompt].count("What about invoice F-0003?") == 1
        assert str(prompt[-1].text) == "What about invoice F-0003?"


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_string_inputs_and_parsed_outputs_are_messages_too(call_style: CallStyle) -> None:
    with open_memory() as memory:
        chat = with_tiered_history(numbered() | StrOutputParser(), memory)
        ask(chat, "plain words", how="invoke", call_style=call_style)
        assert [type(one) for one in memory.session("s").messages()] == [HumanMessage, AIMessage]


class Answer(BaseModel):
    """A structured output."""

    text: str
    sure: bool


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize(
    ("answer", "stored"),
    [
        (Answer(text="words", sure=True), '{"text":"words","sure":true}'),
        ({"place": "quay", "sure": True}, '{"place":"quay","sure":true}'),
        ({"answer": "words", "context": [1]}, "words"),
        ([{"type": "text", "text": "words"}], "words"),
        (42, "42"),
        (None, None),
    ],
)
def test_an_answer_that_langchain_would_drop_is_kept(
    answer: Any, stored: str | None, how: str, call_style: CallStyle
) -> None:
    with open_memory() as memory:
        chat = with_tiered_history(RunnableLambda(lambda _: answer), memory)
        ask(chat, "question", how=how, call_style=call_style)
        assert texts(memory) == [one for one in ("question", stored) if one is not None]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_content_blocks_are_one_message_of_the_user(call_style: CallStyle) -> None:
    blocks = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}}]
    with open_memory() as memory:
        model = numbered()
        ask(with_tiered_history(model, memory), blocks, how="invoke", call_style=call_style)
        (said, _) = memory.session("s").messages()
        assert (type(said), said.content) == (HumanMessage, blocks)
        assert model.prompts[0][-1].content == blocks


def test_an_input_that_names_no_message_is_an_error_that_says_which_keys_there_are() -> None:
    with open_memory() as memory:
        chat = with_tiered_history(numbered(), memory)
        with pytest.raises(InvalidInputError, match="cannot be read as a message"):
            chat.invoke(42, config())
        with pytest.raises(InvalidInputError, match=r"the chain's inputs are 'animal', 'call_style'"):
            chat.invoke({"animal": "cat", "call_style": "red"}, config())
        assert texts(memory) == []


@pytest.mark.parametrize("wrong", ["words", HumanMessage("words"), {"role": "user", "content": "words"}])
def test_one_message_where_a_list_is_wanted_is_refused_and_not_taken_apart(wrong: Any) -> None:
    with open_memory() as memory:
        with pytest.raises(InvalidInputError, match="put it in a list"):
            TieredChatMessageHistory(memory, "s").add_messages(wrong)
        assert texts(memory) == []


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_it_serves_as_the_chat_memory_of_an_older_memory(call_style: CallStyle) -> None:
    with open_memory() as memory:
        buffer = ConversationBufferMemory(chat_memory=TieredChatMessageHistory(memory, "s"), return_messages=True)
        chain = LLMChain(llm=numbered(), prompt=PROMPT, memory=buffer)
        for number in range(2):
            if call_style == "sync":
                chain.invoke({"input": f"question {number}"})
            else:
                asyncio.run(chain.ainvoke({"input": f"question {number}"}))
        assert texts(memory) == ["question 0", "answer 0", "question 1", "answer 1"]
        assert [str(one.text) for one in buffer.buffer] == texts(memory)
        buffer.clear()
        assert texts(memory) == []


def test_events_that_are_streamed_and_broken_off_keep_what_had_come() -> None:
    class Stalling(GenericFakeChatModel):
        async def _astream(self, *given: Any, **options: Any) -> AsyncIterator[Any]:
            async for chunk in super()._astream(*given, **options):
                if chunk.message.content == "three":
                    await asyncio.sleep(60)
                yield chunk

    memory = open_memory()
    model = Stalling(messages=iter([AIMessage("one two three")]))
    chat = with_tiered_history(PROMPT | model, memory, input_messages_key="input", history_messages_key="history")

    async def go() -> None:
        with blockbuster_ctx():
            events = chat.astream_events({"input": "question"}, config(), version="v2")
            async for event in events:
                if event["event"] == "on_chain_stream" and getattr(event["data"]["chunk"], "content", "") == "two":
                    break
            await events.aclose()  # type: ignore[attr-defined] # an async generator

    for _ in range(5):
        model.messages = iter([AIMessage("one two three")])
        memory.session("s").forget()
        asyncio.run(go())
        question, answer = texts(memory)
        assert question == "question"
        assert answer.startswith("one two")
        assert "three" not in answer


def test_a_dict_with_one_key_for_all_messages_works() -> None:
    with open_memory() as memory:
        model = numbered()
        chat = with_tiered_history(
            RunnableLambda(lambda value: {"answer": model.invoke(value["messages"])}),
            memory,
            input_messages_key="messages",
            output_messages_key="answer",
        )
        chat.invoke({"messages": [HumanMessage("one")]}, config())
        chat.invoke({"messages": [HumanMessage("two")]}, config())
        assert texts(memory) == ["one", "answer 0", "two", "answer 1"]
        assert [len(prompt) for prompt in model.prompts] == [1, 3]


@pytest.mark.parametrize("keys", [True, False], ids=["with keys", "without keys"])
@pytest.mark.parametrize("kind", Maker)
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_question_under_an_id_that_was_answered_is_a_new_one(kind: str, call_style: CallStyle, *, keys: bool) -> None:
    with open_memory() as memory:
        model = numbered()
        chat, _ = made(kind, memory, model, keys=keys)
        asked = ("the same", "the same", "another")
        for text in asked:
            question = HumanMessage(text, id="m1")
            ask(chat, {"input": [question]} if keys else [question], how="invoke", call_style=call_style)
            assert text in model.prompts[-1][-1].text
        assert texts(memory) == [one for at, text in enumerate(asked) for one in (text, f"answer {at}")]


def test_a_question_that_failed_and_is_asked_again_under_its_id_is_stored_once() -> None:
    with open_memory() as memory:
        chat = with_tiered_history(ScriptedModel(answers=[RuntimeError("no capacity"), "answer"]), memory)
        with pytest.raises(RuntimeError, match="no capacity"):
            chat.invoke([HumanMessage("the same", id="m1")], config())
        chat.invoke([HumanMessage("the same", id="m1")], config())
        assert texts(memory) == ["the same", "answer"]


def test_the_session_may_have_another_key_and_its_absence_is_an_error_that_names_it() -> None:
    with open_memory() as memory:
        chat = with_tiered_history(numbered(), memory, session_key="thread_id")
        chat.invoke("hello", {"configurable": {"thread_id": "t"}})
        assert texts(memory, "t") == ["hello", "answer 0"]
        with pytest.raises(ValueError, match="thread_id"):
            chat.invoke("hello")


def test_a_history_key_without_an_input_key_is_refused() -> None:
    with open_memory() as memory, pytest.raises(InvalidInputError, match="input_messages_key"):
        with_tiered_history(numbered(), memory, history_messages_key="history")


def test_a_history_object_that_is_kept_serves_turn_after_turn() -> None:
    with open_memory() as memory:
        kept = TieredChatMessageHistory(memory, "s")
        chat = RunnableWithMessageHistory(numbered(), lambda _: kept)
        for number in range(3):
            chat.invoke([HumanMessage(f"question {number}")], config())
        memory.session("s").add_messages([HumanMessage("from elsewhere")])
        assert [str(one.text) for one in kept.messages][-1] == "from elsewhere", "outside of a run it is never old"
        assert len(texts(memory)) == 7


@pytest.mark.parametrize("keys", [True, False], ids=["with keys", "without keys"])
@pytest.mark.parametrize("view", ["transcript", "context"])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_one_history_object_serves_many_runs_at_once(call_style: CallStyle, view: str, *, keys: bool) -> None:
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(20))
        memory.session("s").flush()
        kept = TieredChatMessageHistory(memory, "s", view=view, max_tokens=700 if view == "context" else None)
        names = {"input_messages_key": "input", "history_messages_key": "history"} if keys else {}
        model = numbered()
        chat: Any = RunnableWithMessageHistory(PROMPT | model if keys else model, lambda _: kept, **names)
        asked = [f"question {n}" for n in range(6)]
        given_ = [{"input": one} if keys else [HumanMessage(one)] for one in asked]
        if call_style == "sync":
            chat.batch(given_, config())
        else:
            asyncio.run(chat.abatch(given_, config()))
        assert sorted(texts(memory)[40:]) == sorted([*asked, *(f"answer {n}" for n in range(6))])


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_was_put_into_a_broken_history_to_make_it_valid_is_not_stored(call_style: CallStyle) -> None:
    broken: list[BaseMessage] = [
        AIMessage("Good morning.", id="a0"),
        AIMessage("I look it up.", id="a1", tool_calls=[{"name": "look_up", "args": {}, "id": "c1"}]),
        HumanMessage("Never mind.", id="h1"),
        ToolMessage("found", tool_call_id="c9", id="t1"),
    ]
    with open_memory() as memory:
        memory.session("s").add_messages(broken)
        model = numbered()
        chat = plain(memory, model, view="context")
        for number in range(2):
            ask(chat, [HumanMessage(f"question {number}")], how="invoke", call_style=call_style)
        assert len(model.prompts[0]) > len(broken) + 1, "bridges were put in"
        stored = memory.session("s").messages()
        assert stored[:4] == broken
        assert texts(memory)[4:] == ["question 0", "answer 0", "question 1", "answer 1"]
        assert memory.session("s").revisions("a0") == []


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_run_that_failed_leaves_no_old_view_behind_in_a_history_object_that_is_kept(call_style: CallStyle) -> None:
    with open_memory() as memory:
        kept = TieredChatMessageHistory(memory, "s")
        model = ScriptedModel(answers=[RuntimeError("no capacity"), "answer"])
        chat = RunnableWithMessageHistory(model, lambda _: kept)
        with pytest.raises(RuntimeError):
            ask(chat, "question 0", how="invoke", call_style=call_style)
        memory.session("s").add_messages([HumanMessage("from elsewhere")])
        ask(chat, "question 1", how="invoke", call_style=call_style)
        assert [str(one.text) for one in model.prompts[-1]] == ["from elsewhere", "question 1"]
        assert texts(memory) == ["from elsewhere", "question 1", "answer"]


@pytest.mark.parametrize("view", ["transcript", "context", "recall"])
def test_it_is_a_chat_history_with_several_views(view: str) -> None:
    with open_memory() as memory:
        history = TieredChatMessageHistory(memory, "s", view=view, query="crane", max_tokens=900)
        assert isinstance(history, BaseChatMessageHistory)
        assert history.messages == []
        history.add_user_message("hello")
        history.add_ai_message("good morning")
        history.add_messages(conversation(20))
        memory.session("s").flush()
        assert (len(history.messages) == 42) == (view == "transcript")
        history.add_messages(history.messages if view == "transcript" else [])
        assert len(texts(memory)) == 42
        history.clear()
        assert history.messages == []


def test_what_this_package_wrote_into_a_context_is_never_stored() -> None:
    with open_memory() as memory:
        history = TieredChatMessageHistory(memory, "s", view="context", max_tokens=700)
        history.add_messages(conversation(30))
        memory.session("s").flush()
        shown = history.messages
        assert any("conversation_history" in str(one.text) for one in shown)
        history.add_messages([one for one in shown if one.id is None])
        assert len(texts(memory)) == 60


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_answer_that_cannot_be_written_is_reported_and_what_the_user_said_stays(
    call_style: CallStyle, tmp_path: Path
) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        events: list[Event] = []
        memory.subscribe(events.append)
        store = store_of(memory)

        def failing(_: list[BaseMessage]) -> str:
            with store.database.write() as connection:
                connection.exec_driver_sql(
                    "CREATE TRIGGER full BEFORE INSERT ON ltm_entries BEGIN SELECT RAISE(ABORT, 'disk full'); END"
                )
            return "answer"

        chat = with_tiered_history(ScriptedModel(answers=failing), memory)
        if call_style == "sync":
            answer = chat.invoke("question", config())
        else:
            answer = asyncio.run(chat.ainvoke("question", config()))
        assert answer.text == "answer"
        assert texts(memory) == ["question"]
        assert "history_not_written" in [one.name for one in events]
        events.clear()
        with pytest.raises(StorageError):
            chat.invoke("another", config())
        assert [one.name for one in events] == ["history_not_written"], "a question that was not kept is not called so"


def test_an_agent_that_gives_back_its_whole_state_stores_only_what_is_new() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(conversation(10))
        session.add_messages([HumanMessage("long " * 3000, id="long"), AIMessage("I have read it.", id="read")])
        session.flush()
        call = AIMessage("", tool_calls=[{"name": "look_up", "args": {}, "id": "c1"}])

        def look_up() -> str:
            """Look it up."""
            return "found"

        class Calling(ScriptedModel):
            def bind_tools(self, *_: Any, **__: Any) -> Any:
                return self

        agent = create_agent(Calling(answers=[call, "It is there."]), tools=[look_up])
        chat = with_tiered_history(
            agent, memory, input_messages_key="messages", output_messages_key="messages", max_tokens=1500
        )
        chat.invoke({"messages": [HumanMessage("Is it there?")]}, config())
        assert texts(memory)[22:] == ["Is it there?", "", "found", "It is there."]
        assert session.revisions("long") == [], "a message that a view shows in part is not edited by that"


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(fates=st.lists(st.sampled_from(["well", "fails", "broken off"]), max_size=12), keys=st.booleans())
def test_whatever_becomes_of_each_turn_every_question_is_stored_once_in_its_order(
    fates: list[str], *, keys: bool
) -> None:
    with open_memory() as memory:
        expected: list[str] = []
        for number, fate in enumerate(fates):
            expected.append(f"question {number}")
            model: Any = streaming(f"answer {number}")
            if fate == "fails":
                model = ScriptedModel(answers=[RuntimeError("no capacity")])
            chat, shaped = made("with_tiered_history", memory, model, keys=keys, max_tokens=400)
            stream = chat.stream(shaped(f"question {number}"), config())
            if fate == "fails":
                with pytest.raises(RuntimeError):
                    list(stream)
            elif fate == "well":
                list(stream)
                expected.append(f"answer {number}")
            else:
                next(stream)
                stream.close()  # type: ignore[attr-defined] # a generator
                expected.append("answer")
            memory.session("s").flush()
        assert texts(memory) == expected
        assert memory.verify().problems == ()


def test_another_users_session_is_refused() -> None:
    with open_memory() as memory:
        memory.session("s", user="ann").add_messages([HumanMessage("mine")])
        history = TieredChatMessageHistory(memory, "s", user="bob")
        with pytest.raises(MixedOwnersError):
            _ = history.messages
        with pytest.raises(MixedOwnersError):
            history.add_messages([HumanMessage("mine too")])


def test_summaries_are_made_behind_the_turn_and_never_in_it() -> None:
    condensing = ScriptedModel(answers=[RuntimeError("the condensing model is down")])
    with open_memory(model=condensing, settings=quick_settings(background=True)) as memory:
        chat = with_tiered_history(numbered(), memory, max_tokens=300)
        for number in range(24):
            chat.invoke(f"question {number} about the harbour of order {number}", config())
        assert len(texts(memory)) == 48
        memory.flush()
        assert condensing.calls


def test_nobody_is_warned_of_a_class_that_he_has_not_named() -> None:
    with open_memory() as memory, warnings.catch_warnings():
        warnings.simplefilter("error")
        with_tiered_history(numbered(), memory).invoke("hello", config())


def test_a_deep_copy_of_a_history_reads_and_writes_the_same_session() -> None:
    with open_memory() as memory:
        history = TieredChatMessageHistory(memory, "s", view="default", max_tokens=900)
        history.add_messages([HumanMessage("first")])
        copied = copy.deepcopy(history)
        copied.add_messages([HumanMessage("second")])
        assert [one.text for one in history.messages] == [one.text for one in copied.messages] == ["first", "second"]
