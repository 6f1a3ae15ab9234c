"""The memory inside real chains of `langchain_classic`."""

from __future__ import annotations

import asyncio
import copy
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_classic.base_memory import BaseMemory
from langchain_classic.chains import (
    ConversationalRetrievalChain,
    ConversationChain,
    LLMChain,
    RetrievalQAWithSourcesChain,
    SequentialChain,
    TransformChain,
)
from langchain_classic.memory import CombinedMemory, SimpleMemory
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.integrations.legacy.classic import ConversationTieredMemory
from langchain_tiered_memory.integrations.retriever import TieredMemoryRetriever
from langchain_tiered_memory.testing import ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle
from tests.memory_builders import conversation, open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """LangChain says at each construction that these chains will go."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deprecated.*")
        yield


def run(chain: Any, given: Any, call_style: CallStyle) -> dict[str, Any]:
    """One run of a chain sync or async; blocking the loop is an error."""
    if call_style == "sync":
        answer: dict[str, Any] = chain.invoke(given)
        return answer

    async def go() -> dict[str, Any]:
        with blockbuster_ctx():
            found: dict[str, Any] = await chain.ainvoke(given)
            return found

    return asyncio.run(go())


def numbered() -> ScriptedModel:
    answers = iter(range(1000))
    return ScriptedModel(answers=lambda _: f"answer {next(answers)}")


def texts(memory: TieredMemory) -> list[str]:
    return [str(one.text) for one in memory.session("s").messages()]


def of(memory: TieredMemory, **options: Any) -> ConversationTieredMemory:
    return ConversationTieredMemory(memory=memory, session_id="s", **options)


def chat_prompt(*variables: str) -> ChatPromptTemplate:
    told = "\n".join(f"{{{one}}}" for one in variables)
    return ChatPromptTemplate.from_messages(
        [("system", f"You are a clerk.\n{told}"), MessagesPlaceholder("history"), ("human", "{input}")]
    )


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_conversation_chain_stores_each_turn_once_and_sees_what_was_said(call_style: CallStyle) -> None:
    with open_memory() as memory:
        model = numbered()
        chain = ConversationChain(llm=model, memory=of(memory))
        for number in range(4):
            run(chain, {"input": f"question {number}"}, call_style)
        assert texts(memory) == [one for n in range(4) for one in (f"question {n}", f"answer {n}")]
        prompt = str(model.prompts[-1][0].text)
        assert "Human: question 2\nAI: answer 2" in prompt
        assert prompt.count("question 3") == 1


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_chat_prompt_gets_messages_and_a_long_history_stays_within_its_bound(call_style: CallStyle) -> None:
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(40))
        memory.session("s").flush()
        model = numbered()
        chain = LLMChain(llm=model, prompt=chat_prompt(), memory=of(memory, return_messages=True, max_tokens=700))
        run(chain, {"input": "What about invoice F-0003?"}, call_style)
        (prompt,) = model.prompts
        assert len(prompt) < 30
        assert "F-0003" in "\n".join(str(one.text) for one in prompt[1:-1]), "recalled for what is asked"
        assert [str(one.text) for one in prompt].count("What about invoice F-0003?") == 1
        assert len(texts(memory)) == 82


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_failing_model_does_not_lose_what_the_user_said_and_a_retry_does_not_double_it(call_style: CallStyle) -> None:
    with open_memory() as memory:
        model = ScriptedModel(answers=[RuntimeError("down"), RuntimeError("down"), "answer"])
        chain = ConversationChain(llm=model, memory=of(memory))
        for _ in range(2):
            with pytest.raises(RuntimeError, match="down"):
                run(chain, {"input": "my question"}, call_style)
            assert texts(memory) == ["my question"]
        run(chain, {"input": "my question"}, call_style)
        assert texts(memory) == ["my question", "answer"]
        run(chain, {"input": "my question"}, call_style)
        assert texts(memory) == ["my question", "answer", "my question", "answer"]


async def test_a_cancelled_chain_keeps_the_question() -> None:
    memory = open_memory()
    came = asyncio.Event()

    class Hanging(ScriptedModel):
        async def _agenerate(self, *_: Any, **__: Any) -> Any:
            came.set()
            await asyncio.sleep(60)

    chain = ConversationChain(llm=Hanging(), memory=of(memory))
    task = asyncio.create_task(chain.ainvoke({"input": "my question"}))
    await came.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert texts(memory) == ["my question"]


def test_the_variables_stay_the_same_between_load_and_save() -> None:
    with open_memory() as memory:
        ours = of(memory)
        first = ours.load_memory_variables({"input": "question"})
        memory.session("s").add_messages([AIMessage("from elsewhere")])
        assert ours.load_memory_variables({"input": "question"}) == first
        ours.save_context({"input": "question"} | first, {"response": "answer"})
        assert texts(memory) == ["question", "from elsewhere", "answer"]
        assert "from elsewhere" in ours.load_memory_variables({})["history"]


def test_looking_at_the_memory_without_an_input_writes_nothing() -> None:
    with open_memory() as memory:
        assert of(memory).load_memory_variables({}) == {"history": ""}
        assert texts(memory) == []


def test_an_instance_that_only_reads_writes_nothing_at_the_load() -> None:
    with open_memory() as memory:
        ours = of(memory, save_input_first=False)
        ours.load_memory_variables({"input": "inner prompt"})
        assert texts(memory) == []
        ours.save_context({"input": "question"}, {"output": "answer"})
        assert texts(memory) == ["question", "answer"]


def test_the_same_words_said_by_several_runs_at_once_are_stored_once_for_each() -> None:
    with open_memory() as memory:
        ours = of(memory)
        for said in ("hello", "other", "hello"):
            ours.load_memory_variables({"input": said})
        for number, said in enumerate(("hello", "other", "hello")):
            ours.save_context({"input": said}, {"output": f"answer {number}"})
        assert texts(memory) == ["hello", "other", "hello", "answer 0", "answer 1", "answer 2"]


async def test_an_async_batch_of_the_same_words_doubles_nothing() -> None:
    memory = open_memory()
    chain = ConversationChain(llm=numbered(), memory=of(memory))
    await chain.abatch([{"input": "hello"}, {"input": "other"}] * 4)
    found = texts(memory)
    assert (found.count("hello"), found.count("other"), len(found)) == (4, 4, 16)


def test_a_turn_that_failed_long_ago_is_no_retry_of_the_same_words_now() -> None:
    with open_memory() as memory:
        chain = ConversationChain(
            llm=ScriptedModel(answers=[RuntimeError("down"), "one", "two", "three"]), memory=of(memory)
        )
        with pytest.raises(RuntimeError):
            chain.invoke({"input": "A"})
        for said in "BAA":
            chain.invoke({"input": said})
        assert texts(memory) == ["A", "B", "one", "A", "two", "A", "three"]


def test_a_copy_for_another_session_has_no_turn_of_the_first() -> None:
    with open_memory() as memory:
        ours = of(memory)
        other = ours.model_copy(update={"session_id": "t"})
        for one in (ours, other, copy.copy(ours), copy.deepcopy(ours)):
            assert isinstance(one, BaseMemory)
            one.load_memory_variables({"input": "question"})
        other.save_context({"input": "question"}, {"output": "answer"})
        assert [str(one.text) for one in memory.session("t").messages()] == ["question", "answer"]
        assert texts(memory) == ["question"] * 3


def test_its_fields_can_be_dumped_as_json() -> None:
    with open_memory() as memory:
        dumped = json.loads(of(memory, tags=["mine"]).model_dump_json())
        assert dumped["session_id"] == "s"
        assert dumped["tags"] == ["mine"]


def test_what_a_sub_chain_is_asked_through_a_read_only_memory_is_no_word_of_the_user() -> None:
    with open_memory() as memory:
        ours = of(memory)
        inner = LLMChain(
            llm=numbered(), prompt=PromptTemplate.from_template("{history}\n{input}"), memory=ours.read_only()
        )
        model = ScriptedModel(answers=lambda _: inner.invoke({"input": "for the sub-chain"})["text"])
        ConversationChain(llm=model, memory=ours).invoke({"input": "question"})
        asyncio.run(inner.ainvoke({"input": "again"}))
        assert texts(memory) == ["question", "answer 0"]


class Answer(BaseModel):
    """A structured output."""

    text: str


@pytest.mark.parametrize(
    ("output", "stored"),
    [
        ("words", "words"),
        (AIMessage("a message", id="a1"), "a message"),
        ([AIMessage("in a list")], "in a list"),
        ([{"type": "text", "text": "blocks"}], "blocks"),
        ({"answer": 42}, '{"answer":42}'),
        (Answer(text="structured"), '{"text":"structured"}'),
        (None, "null"),
    ],
)
def test_outputs_of_any_shape_are_kept(output: Any, stored: str) -> None:
    with open_memory() as memory:
        of(memory).save_context({"input": "question"}, {"output": output})
        assert texts(memory) == ["question", stored]


@pytest.mark.parametrize(
    "said",
    [
        "words",
        HumanMessage("words"),
        [HumanMessage("words")],
        (HumanMessage("words", id="h1"),),
        [{"role": "user", "content": "words"}],
        [("user", "words")],
        [{"type": "text", "text": "words"}, {"type": "image_url", "image_url": {"url": "https://a.test/b.png"}}],
    ],
)
def test_inputs_may_be_messages(said: Any) -> None:
    with open_memory() as memory:
        ours = of(memory)
        ours.load_memory_variables({"input": said})
        ours.save_context({"input": said}, {"output": "answer"})
        assert texts(memory) == ["words", "answer"]


@pytest.mark.parametrize(
    ("said", "stored"), [(42, "42"), (True, "true"), ({"a": 1}, '{"a":1}'), ("", ""), (None, None)]
)
def test_an_input_that_nobody_can_say_is_kept_as_json_and_not_lost(said: Any, stored: str | None) -> None:
    with open_memory() as memory:
        ours = of(memory)
        ours.load_memory_variables({"input": said, "language": None})
        ours.save_context({"input": said, "language": None}, {"output": "answer"})
        assert texts(memory) == [one for one in (stored, "answer") if one is not None]


def test_a_usual_key_counts_before_a_text_beside_it() -> None:
    with open_memory() as memory:
        of(memory).save_context({"input": {"order": 7}, "language": "en"}, {"answer": {"found": 7}, "log": "text"})
        assert texts(memory) == ['{"order":7}', '{"found":7}']


def test_the_keys_are_found_where_only_one_can_be_meant() -> None:
    with open_memory() as memory:
        inputs = {"question": "asked", "documents": [1, 2], "temperature": 0.1, "stop": ["x"], "history": "told"}
        of(memory).save_context(inputs, {"answer": "said", "source_documents": [3]})
        assert texts(memory) == ["asked", "said"]


def test_keys_that_could_be_several_are_an_error_that_names_them_and_the_remedy() -> None:
    with open_memory() as memory:
        ours = of(memory)
        with pytest.raises(InvalidInputError, match=r"which input counts\? .*'animal', 'call_style'.* set input_key"):
            ours.load_memory_variables({"animal": "cat", "call_style": "red"})
        with pytest.raises(InvalidInputError, match=r"which output counts\? .*'one', 'two'.* set output_key"):
            ours.save_context({"input": "question"}, {"one": "a", "two": "b"})
        assert texts(memory) == ["question"], "what the user said is kept all the same"
        with pytest.raises(InvalidInputError, match=r"input_key is 'ask', but the chain's inputs are 'input'"):
            of(memory, input_key="ask").load_memory_variables({"input": "hello"})
        of(memory, input_key="animal", output_key="two").save_context(
            {"animal": "cat", "call_style": "red"}, {"one": "a", "two": "b"}
        )
        assert texts(memory)[1:] == ["cat", "b"]


def test_keys_that_collide_and_fields_that_do_not_exist_are_refused() -> None:
    with open_memory() as memory:
        with pytest.raises(SettingsError, match="must differ"):
            of(memory, input_key="history")
        with pytest.raises(SettingsError, match="max_token_limit"):
            of(memory, max_token_limit=5)
        with pytest.raises(SettingsError, match="session_id must be a string that is not empty"):
            ConversationTieredMemory(memory=memory, session_id="")


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_clear_removes_the_conversation_and_no_other(call_style: CallStyle) -> None:
    with open_memory() as memory:
        memory.session("other").add_messages([HumanMessage("stays")])
        ours = of(memory)
        ours.save_context({"input": "question"}, {"output": "answer"})
        if call_style == "sync":
            ours.clear()
        else:
            asyncio.run(ours.aclear())
        assert memory.sessions() == ["other"]


def test_it_stands_beside_other_memories_and_in_longer_chains() -> None:
    with open_memory() as memory:
        model = numbered()
        both = CombinedMemory(memories=[of(memory, input_key="input"), SimpleMemory(memories={"house": "the harbour"})])
        prompt = PromptTemplate.from_template("{house}\n{history}\n{input}")
        chain = SequentialChain(
            chains=[
                TransformChain(
                    input_variables=["raw"],
                    output_variables=["input"],
                    transform=lambda given: {"input": given["raw"].strip()},
                ),
                LLMChain(llm=model, prompt=prompt, memory=both),
            ],
            input_variables=["raw"],
        )
        chain.invoke({"raw": "  question one "})
        chain.invoke({"raw": "  question two "})
        assert texts(memory) == ["question one", "answer 0", "question two", "answer 1"]
        assert "question one" in str(model.prompts[1][0].text)


def test_many_runs_of_one_chain_at_once_lose_and_double_nothing() -> None:
    with open_memory() as memory:
        chain = ConversationChain(llm=numbered(), memory=of(memory))
        chain.batch([{"input": f"question {n}"} for n in range(8)])
        assert sorted(texts(memory)) == sorted([one for n in range(8) for one in (f"question {n}", f"answer {n}")])


class Runs(BaseCallbackHandler):
    """Notes the names, tags and metadata of the runs it is told of."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[str], dict[str, Any]]] = []

    def on_chain_start(self, *_: Any, name: str = "", tags: Any = None, metadata: Any = None, **__: Any) -> None:
        self.seen.append((name, tags or [], metadata or {}))


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_its_runs_carry_its_own_callbacks_tags_and_metadata(call_style: CallStyle) -> None:
    with open_memory() as memory:
        runs = Runs()
        ours = of(memory, callbacks=[runs], tags=["mine"], metadata={"tenant": "blue"})
        run(ConversationChain(llm=numbered(), memory=ours), {"input": "question"}, call_style)
        assert [name for name, _, _ in runs.seen] == ["load_tiered_memory", "save_tiered_memory"]
        assert all("mine" in tags and metadata["tenant"] == "blue" for _, tags, metadata in runs.seen)


class Condensed(AsyncCallbackHandler):
    """Notes the chat models that are started."""

    def __init__(self) -> None:
        self.started: list[list[str]] = []

    async def on_chat_model_start(self, *_: Any, tags: Any = None, **__: Any) -> None:
        self.started.append(tags or [])


async def test_a_summary_that_a_load_has_to_wait_for_shows_in_its_traces() -> None:
    model = ScriptedModel(answers=["## Overview\nThe harbour, crane and ferry orders were checked by their teams."])
    memory = open_memory(model=model)
    await memory.session("s").aadd_messages(conversation(40))
    seen = Condensed()
    ours = of(memory, callbacks=[seen], tags=["mine"], max_tokens=700)
    await ours.aload_memory_variables({"input": "What next?"})
    assert model.calls > 0
    assert seen.started
    assert all({"mine", "tiered_memory", "nostream"} <= set(tags) for tags in seen.started)


def test_messages_with_calls_can_stand_in_a_text_history() -> None:
    with open_memory() as memory:
        call = {"name": "look_up", "args": {"order": 7}, "id": "c1"}
        from langchain_core.messages import ToolMessage  # noqa: PLC0415 - only here

        said: list[BaseMessage] = [
            HumanMessage("look it up"),
            AIMessage("", tool_calls=[call]),
            ToolMessage("found", tool_call_id="c1"),
            AIMessage("It is there."),
        ]
        memory.session("s").add_messages(said)
        told = of(memory).load_memory_variables({"input": "thanks"})["history"]
        assert "Tool: found" in told
        assert "thanks" not in told


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_agent_executor_with_its_steps_stores_question_and_answer(call_style: CallStyle) -> None:
    @tool
    def look_up(order: int) -> str:
        """Look it up."""
        return f"order {order} is there"

    class Calling(ScriptedModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    with open_memory() as memory:
        call = AIMessage("", tool_calls=[{"name": "look_up", "args": {"order": 7}, "id": "c1"}])
        model = Calling(answers=[call, "It is there.", "You are welcome."])
        prompt = ChatPromptTemplate.from_messages(
            [MessagesPlaceholder("history"), ("human", "{input}"), MessagesPlaceholder("agent_scratchpad")]
        )
        agent = AgentExecutor(
            agent=create_tool_calling_agent(model, [look_up], prompt),
            tools=[look_up],
            memory=of(memory, return_messages=True),
            return_intermediate_steps=True,
        )
        assert run(agent, {"input": "Is it there?"}, call_style)["intermediate_steps"]
        run(agent, {"input": "Thanks."}, call_style)
        assert texts(memory) == ["Is it there?", "It is there.", "Thanks.", "You are welcome."]
        assert [str(one.text) for one in model.prompts[-1]] == ["Is it there?", "It is there.", "Thanks."]


def test_chains_that_retrieve_from_one_session_remember_in_another() -> None:
    with open_memory() as memory:
        memory.session("documents").add_messages(conversation(10))
        retriever = TieredMemoryRetriever(memory=memory, session_id="documents", k=3)
        chain = ConversationalRetrievalChain.from_llm(
            numbered(),
            retriever,
            memory=of(memory, memory_key="chat_history", return_messages=True),
            return_source_documents=True,
            return_generated_question=True,
        )
        chain.invoke({"question": "Which team checked the crane?"})
        chain.invoke({"question": "And the ferry?"})
        assert texts(memory) == ["Which team checked the crane?", "answer 0", "And the ferry?", "answer 2"]
        memory.session("s").forget()
        citing = RetrievalQAWithSourcesChain.from_chain_type(
            ScriptedModel(answers=["It was team 1. SOURCES: a1"]),
            retriever=retriever,
            memory=of(memory),
            return_source_documents=True,
        )
        assert citing.invoke({"question": "Which team?"})["sources"] == "a1"
        assert texts(memory) == ["Which team?", "It was team 1. "]
