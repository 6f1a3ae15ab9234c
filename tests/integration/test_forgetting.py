"""What was forgotten stays so, wherever it still stands: in LangGraph's checkpoints, with clients, in exports."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from operator import add
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.integrations.histories import import_history
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.nodes import context_node, model_input, remember_node
from langchain_tiered_memory.integrations.state import STATE_KEY, TieredState
from langchain_tiered_memory.testing import ScriptedModel
from langchain_tiered_memory.text.readings import kept_count
from langchain_tiered_memory.text.terms import kept_words
from tests.agent_builders import said as told_to_agent
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.graph_builders import Runner, SaverKind, answering, ask, chat_graph, open_saver, thread
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of, store_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import TieredMemory

SAVERS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def stored(memory: TieredMemory, session_id: str = "t") -> list[str]:
    return [str(one.text) for one in memory.session(session_id).messages()]


def heard(memory: TieredMemory) -> list[Any]:
    events: list[Any] = []
    memory.subscribe(events.append)
    return events


def sayings(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(str(one.text) for one in messages)


def agent_of(memory: TieredMemory, model: ScriptedModel, saver: Any) -> Any:
    return create_agent(model, [], middleware=[TieredMemoryMiddleware(memory, max_tokens=2000)], checkpointer=saver)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_nothing_that_was_read_from_a_forgotten_text_stays_in_memory(call_style: CallStyle) -> None:
    with open_memory() as memory:
        memory.session("t").add_messages([HumanMessage("SECRET stands in src/vault.py")])
        assert kept_count() > 0
        assert kept_words() > 0
        told(call_style, memory.forget, session_id="t")
        assert kept_count() == kept_words() == 0


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("whole", ["session", "user"])
def test_an_agents_next_turn_does_not_bring_a_forgotten_session_back(call_style: CallStyle, whole: str) -> None:
    model = ScriptedModel(answers=lambda _: AIMessage("Noted."))
    config = thread(user_id="ann")
    with open_memory() as memory:
        agent = agent_of(memory, model, InMemorySaver())
        for number in range(3):
            told_to_agent(call_style, agent, {"messages": [HumanMessage(f"SECRET{number}")]}, config)
        chosen = {"session_id": "t"} if whole == "session" else {"user": "ann"}
        receipt = told(call_style, memory.forget, **chosen)
        assert receipt.entries == 6
        assert ["InMemorySaver" in place and "'t'" in place for place in receipt.may_remain] == [True]
        for text in ("Hello again.", "And again."):
            told_to_agent(call_style, agent, {"messages": [HumanMessage(text)]}, config)
            assert "SECRET" not in sayings(model.prompts[-1])
        assert stored(memory) == ["Hello again.", "Noted.", "And again.", "Noted."]
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", SAVERS)
async def test_nodes_do_not_bring_a_forgotten_session_back_and_its_thread_can_be_deleted(
    kind: SaverKind, call_style: CallStyle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        session = memory.session("t")
        async with open_saver(kind, call_style, folder=tmp_path, url=url) as saver:
            graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=saver)
            for number in range(3):
                await runner.invoke(graph, ask(number), thread())
            forget = session.forget if call_style == "sync" else session.aforget
            receipt = forget()
            receipt = receipt if call_style == "sync" else await receipt
            assert type(saver).__name__ in receipt.may_remain[0]
            await runner.invoke(graph, ask(3), thread())
            assert [one.id for one in memory.session("t").messages()] == ["q3", "a3"]
            assert "order 1001" not in sayings(model.prompts[-1]).lower()
            receipt = forget(checkpointer=saver)
            receipt = receipt if call_style == "sync" else await receipt
            assert (await runner.state(graph, thread())).values == {}
            free = [place for place in receipt.may_remain if "free space" in place]
            assert receipt.may_remain == tuple(free)
            assert bool(free) is (kind != "memory")
            await runner.invoke(graph, ask(4), thread())
            assert [one.id for one in memory.session("t").messages()] == ["q4", "a4"]


@pytest.mark.parametrize("turns_between", [0, 1])
def test_the_last_messages_stay_forgotten_when_the_state_is_edited_before_any_turn(turns_between: int) -> None:
    with open_memory() as memory:
        graph = chat_graph(memory, answering(), max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(3):
            graph.invoke(ask(number), thread())
        receipt = memory.session("t").forget(message_ids=["q2", "a2"])
        assert "RemoveMessage" in receipt.may_remain[0]
        for number in range(3, 3 + turns_between):
            graph.invoke(ask(number), thread())
        graph.update_state(thread(), {"messages": [RemoveMessage(id="q0")]}, as_node="keep")
        for number in (6, 7):
            graph.invoke(ask(number), thread())
        ids = [one.id for one in memory.session("t").messages()]
        assert {"q2", "a2"}.isdisjoint(ids)
        assert ids[-4:] == ["q6", "a6", "q7", "a7"]


def test_a_graph_without_our_key_in_its_state_brings_nothing_back() -> None:
    with open_memory() as memory:
        model = answering()

        def answer(state: Any, config: RunnableConfig) -> dict[str, Any]:
            return {"messages": [model.invoke(model_input(memory, state, config, max_tokens=4000))]}

        builder = StateGraph(MessagesState)
        builder.add_node("answer", answer)
        builder.add_edge(START, "answer")
        graph = builder.compile(checkpointer=InMemorySaver())
        for number in range(3):
            graph.invoke(ask(number), thread())
        memory.session("t").forget()
        graph.invoke(ask(3), thread())
        assert "order 1001" not in sayings(model.prompts[-1]).lower()
        assert [one.id for one in memory.session("t").messages()] == ["q3"]


class Plain(TieredState):
    """A list whose messages have no ids."""

    messages: Annotated[list[Any], add]


def plain_graph(memory: TieredMemory) -> Any:
    builder = StateGraph(Plain)
    builder.add_node(remember_node(memory))
    builder.add_node(context_node(memory, max_tokens=4000))
    builder.add_node("answer", lambda _: {"messages": [AIMessage("Hello.")]})
    builder.add_node("keep", remember_node(memory))
    for first, second in ((START, "remember"), ("remember", "context"), ("context", "answer"), ("answer", "keep")):
        builder.add_edge(first, second)
    builder.add_edge("keep", END)
    return builder


@pytest.mark.parametrize("deleted", [False, True])
def test_the_same_words_said_again_are_new_though_their_ids_are_made_of_them(deleted: bool) -> None:  # noqa: FBT001
    with open_memory() as memory:
        saver = InMemorySaver()
        graph = plain_graph(memory).compile(checkpointer=saver)
        for text in ("hi", "SECRET"):
            graph.invoke({"messages": [HumanMessage(text)]}, thread())
        memory.session("t").forget(checkpointer=saver if deleted else None)
        for _ in range(2):
            graph.invoke({"messages": [HumanMessage("hi")]}, thread())
        assert stored(memory) == ["hi", "Hello."] * 2
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_client_that_sends_all_of_it_each_time_does_not_bring_forgotten_messages_back(call_style: CallStyle) -> None:
    model = ScriptedModel(answers=lambda asked: AIMessage(f"Answer {len(asked)}."))
    with open_memory() as memory:
        agent = agent_of(memory, model, None)
        kept: list[Any] = []
        for text in ("hi", "SECRET one", "What now?"):
            kept = turn(call_style, agent, kept, text)
        ids = [one.id for one in memory.session("alice").messages()]
        told(call_style, memory.session("alice").forget, message_ids=ids[2:4])
        kept = turn(call_style, agent, kept, "And then?")
        assert "SECRET" not in "".join(stored(memory, "alice"))
        assert len(stored(memory, "alice")) == 6
        told(call_style, memory.session("alice").forget)
        kept = turn(call_style, agent, kept, "hi")
        assert stored(memory, "alice")[0] == "hi"
        assert len(stored(memory, "alice")) == 2
        assert "SECRET" not in sayings(model.prompts[-1])
        turn(call_style, agent, [], "hi")
        assert stored(memory, "alice")[2] == "hi"


def turn(call_style: CallStyle, agent: Any, history: list[Any], text: str) -> list[Any]:
    """A client's turn without ids: all that it keeps, and what its user says now."""
    said = told_to_agent(call_style, agent, {"messages": [*history, {"role": "user", "content": text}]})
    return [{"role": "user" if one.type == "human" else "assistant", "content": one.text} for one in said["messages"]]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_forgotten_message_that_is_added_again_is_left_out_and_said_so(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(3))
        told(call_style, session.add_messages, [HumanMessage("Edited.", id="q1")])
        told(call_style, session.forget, message_ids=["q1", "a1"])
        events = heard(memory)
        assert told(call_style, session.add_messages, conversation(4)) == ["q0", "a0", "q2", "a2", "q3", "a3"]
        (event,) = [one for one in events if one.name == "forgotten_not_stored"]
        assert event.details["message_ids"] == ["q1", "a1"]
        assert told(call_style, session.add_messages, [HumanMessage("Edited.", id="q1")]) == []
        # Other words under an old id are new ones, and so are the same words under a new id.
        assert told(call_style, session.add_messages, [HumanMessage("New words.", id="q1")]) == ["q1"]
        assert len(told(call_style, session.add_messages, [HumanMessage("Edited.")])) == 1
        assert told(call_style, session.add_messages, [HumanMessage("Edited.", id="q1")]) == []
        assert stored(memory, "s")[-2:] == ["New words.", "Edited."]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_forgotten_session_is_not_made_again_by_what_is_left_of_it(call_style: CallStyle) -> None:
    with open_memory() as memory:
        told(call_style, memory.session("s", user="ann").add_messages, conversation(3))
        told(call_style, memory.forget, user="ann")
        assert told(call_style, memory.session("s", user="ann", title="SECRET").add_messages, conversation(3)) == []
        assert memory.sessions() == []
        assert told(call_style, memory.session("s").add_messages, conversation(4)) == ["q3", "a3"]


def test_an_import_that_is_repeated_brings_nothing_back() -> None:
    history = [{"role": "user", "content": "SECRET"}, {"role": "assistant", "content": "Noted."}]
    with open_memory() as memory:
        session = memory.session("s")
        ids = import_history(session, history)
        session.forget(message_ids=ids[:1])
        assert import_history(session, history) == ids[1:]
        session.forget()
        assert import_history(session, history) == []
        assert stored(memory, "s") == []


def test_forgetting_twice_is_no_error_and_what_never_was_there_is() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        assert session.forget(message_ids=["q0"]).entries == 1
        assert session.forget(message_ids=["q0"]).entries == 0
        assert session.forget(message_ids=["q0", "a0"]).entries == 1
        with pytest.raises(NotFoundError, match="nobody"):
            session.forget(message_ids=["q1", "nobody"])
        assert [one.id for one in session.messages()] == ["q1", "a1"]
        session.forget()
        assert session.forget(message_ids=["q1"]).entries == 0


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_checkpointer_that_fails_is_named_and_one_that_is_none_refused(call_style: CallStyle) -> None:
    class Failing(InMemorySaver):
        def delete_thread(self, thread_id: str) -> None:
            raise RuntimeError(thread_id)

        async def adelete_thread(self, thread_id: str) -> None:
            raise RuntimeError(thread_id)

    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        with pytest.raises(InvalidInputError, match="checkpointer"):
            told(call_style, session.forget, checkpointer=object())
        assert len(session.messages()) == 4
        receipt = told(call_style, session.forget, checkpointer=Failing())
        assert receipt.entries == 4
        assert "RuntimeError: s" in receipt.may_remain[0]


def test_title_tasks_and_phase_go_with_the_messages_that_they_were_about(tmp_path: Path) -> None:
    folder = tmp_path / "alone"
    folder.mkdir()
    with open_memory(folder / "memory.db", settings=quick_settings()) as memory:
        session = memory.session("s", user="ann", title="titlesecret")
        session.add_messages([HumanMessage("Good morning.", id="m0")])
        session.start_task("tasksecret")
        session.start_task("later", depends_on=["tasksecret"])
        session.checkpoint("by hand")
        session.add_messages([HumanMessage("It is on.", id="m1")], task="tasksecret")
        session.add_messages([HumanMessage("It goes on.", id="m2")], task="later")
        session.forget(message_ids=["m1"])
        assert found_in(folder, "tasksecret") == []
        tasks = store_of(memory).runs.tasks(ref_of(session), newest_finished=9)
        assert [(one.id, one.depends_on) for one in tasks] == [("later", ())]
        assert session.checkpoints() == []
        session.phase("phasesecret")
        session.forget(message_ids=["m0", "m2"])
        for word in ("titlesecret", "phasesecret", "later", "good morning"):
            assert found_in(folder, word) == []
        assert memory.verify().problems == ()


def found_in(folder: Path, word: str) -> list[str]:
    """Files with a word in them, as it is or inside of a checkpoint."""
    found = [path.name for path in folder.iterdir() if word.lower().encode() in path.read_bytes().lower()]
    with closing(sqlite3.connect(f"file:{folder / 'memory.db'}?mode=ro", uri=True)) as connection:
        import zlib  # noqa: PLC0415 - a checkpoint's own compression

        payloads = [row[0] for row in connection.execute("SELECT payload FROM ltm_checkpoints")]
        found += ["a checkpoint" for one in payloads if word.lower().encode() in zlib.decompress(one).lower()]
    return found


def test_the_digests_that_are_left_cannot_be_made_without_the_databases_key() -> None:
    with open_memory() as memory, open_memory() as other:
        rows = []
        for one in (memory, other):
            one.session("s").add_messages([HumanMessage("yes", id="m")])
            one.session("s").forget()
            with store_of(one).database.read() as connection:
                rows.append(connection.exec_driver_sql("SELECT * FROM ltm_forgotten").mappings().one())
        digests = [[value for value in row.values() if isinstance(value, bytes)] for row in rows]
        assert [len(one) for one in digests[0]] == [12] * 4
        assert set(digests[0]).isdisjoint(digests[1])


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("whole", [False, True])
async def test_a_step_back_in_time_brings_nothing_back(call_style: CallStyle, whole: bool) -> None:  # noqa: FBT001
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(4):
            await runner.invoke(graph, ask(number), thread())
        past = next(
            one
            for one in await runner.history(graph, thread())
            if not one.next and [message.id for message in one.values["messages"]][-1] == "a1"
        )
        memory.session("t").forget(message_ids=None if whole else ["q1", "a1"])
        await runner.invoke(graph, ask(30), past.config)
        assert "order 1001" not in sayings(model.prompts[-1]).lower()
        kept = [] if whole else ["q0", "a0", "q2", "a2", "q3", "a3"]
        assert [one.id for one in memory.session("t").messages()] == [*kept, "q30", "a30"]


def test_what_was_moved_out_of_the_state_and_forgotten_leaves_no_id_in_our_part_of_the_state() -> None:
    with open_memory() as memory:
        graph = chat_graph(memory, answering(), max_tokens=4000, evict={"keep_messages": 4, "at_messages": 4}).compile(
            checkpointer=InMemorySaver()
        )
        for number in range(5):
            result = graph.invoke(ask(number), thread())
        last = result[STATE_KEY]["branches"]["messages"]["archived"]["last_id"]
        assert last
        events = heard(memory)
        memory.session("t").forget(message_ids=[last])
        for number in (5, 6):
            result = graph.invoke(ask(number), thread())
        assert last not in {one.id for one in memory.session("t").messages()}
        assert sum(one.name == "archive_changed" for one in events) == 1
        assert repr(last) not in str(result[STATE_KEY]), "a number in hexadecimal may have it by chance"


def test_what_was_forgotten_on_one_track_is_not_written_on_another_that_shares_the_list() -> None:
    with open_memory() as memory:
        graph = chat_graph(memory, answering(), max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(3):
            graph.invoke(ask(number), thread())
        memory.session("t").forget(message_ids=["q1", "a1"])
        remember_node(memory, track="other").invoke(graph.get_state(thread()).values, thread())
        said = sayings(memory.session("t", track="other").messages())
        assert "order 1000" in said
        assert "order 1001" not in said


def test_what_a_graph_forgot_is_not_written_by_a_sub_graph_however_long_their_names_are(
    where: str | Path | None,
) -> None:
    nodes = ("planner" * 10, "reviewer" * 10, "writer" * 10, "editor" * 10)
    with open_memory(where) as memory:

        def remember(depth: int) -> None:
            namespace = "|".join(f"{name}:{place}" for place, name in enumerate([*nodes[:depth], "remember"]))
            config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
            remember_node(memory).invoke({"messages": conversation(4)}, config)

        for depth in range(len(nodes)):
            remember(depth)
        tracks = memory.session("t").tracks()
        for track, forgotten in zip(tracks, ("q0", "q1", "q2", "q3"), strict=True):
            memory.session("t", track=track).forget(message_ids=[forgotten])
        remember(len(nodes))
        added = set(memory.session("t").tracks()) - set(tracks)
        said = memory.session("t", track=added.pop()).messages()
        assert [one.id for one in said] == ["a0", "a1", "a2", "a3"]


def test_what_was_forgotten_on_a_track_whose_name_an_earlier_version_cut_is_not_written_again() -> None:
    whole = "|".join(("planner" * 10, "reviewer" * 10))
    cut = f"{whole[:100]}...{hashlib.blake2b(whole.encode(), digest_size=8).hexdigest()}"
    config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": f"{whole}|remember"}}
    with open_memory() as memory:
        memory.session("t", track=cut).add_messages(conversation(2))
        memory.session("t", track=cut).forget(message_ids=["q0"])
        remember_node(memory).invoke({"messages": conversation(2)}, config)
        assert [one.id for one in memory.session("t", track=whole).messages()] == ["a0", "q1", "a1"]


def test_a_forgotten_message_that_was_reworded_in_an_old_part_of_the_list_stays_out() -> None:
    with open_memory() as memory:
        state: dict[str, Any] = {"messages": conversation(3)}
        remember_node(memory).invoke(state, thread())
        memory.session("t").forget(message_ids=["q1"])
        state["messages"][2] = HumanMessage("What of order 1001, I asked?", id="q1")
        remember_node(memory).invoke({"messages": [*state["messages"], *conversation(1, start=3)]}, thread())
        assert [one.id for one in memory.session("t").messages()] == ["q0", "a0", "a1", "q2", "a2", "q3", "a3"]


def test_a_new_conversation_may_count_its_messages_from_one_again() -> None:
    with open_memory() as memory:
        model = answering()
        for saver in (InMemorySaver(), InMemorySaver()):
            graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=saver)
            memory.session("t").forget()
            for number in range(2):
                graph.invoke(ask(number, f"{saver}: something else {number}?"), thread())
            assert len([one for one in memory.session("t").messages() if one.type == "human"]) == 2
