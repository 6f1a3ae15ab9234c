"""A user is forgotten whole: messages, facts, files, checkpoints, items and what LangGraph keeps, with one receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from langchain_tiered_memory import TieredStore
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.forgetting.row_removal import Removal
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.file_builders import keep_in_all_tiers
from tests.graph_builders import thread
from tests.memory_builders import open_memory, ref_of, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow
SECRET = "zanzibar"


def planted(memory: TieredMemory) -> None:
    """Two sessions of Zoe that say a word everywhere it can stand, and one of Bob."""
    for name in ("zoe-1", "zoe-2"):
        session = memory.session(name, user="zoe")
        said = [HumanMessage(f"I live in {SECRET} {number}, house {number}7.") for number in range(5)]
        session.add_messages([*said, AIMessage("Noted.")])
        session.checkpoint(SECRET)
        keep_in_all_tiers(store_of(memory), ref_of(session))
    memory.flush()
    TieredStore(memory, user="zoe").put(("memories", SECRET), SECRET, {"says": f"{SECRET} again"})
    TieredStore(memory, user="zoe").put(("memories", "other"), "k", {SECRET: 1}, ttl=100)
    TieredStore(memory, user="bob").put(("memories",), "k", {"says": "good morning"})
    memory.session("bob-1", user="bob").add_messages([HumanMessage("Good morning.")])


def beside(user: str) -> tuple[Any, InMemorySaver, InMemoryStore]:
    """LangGraph's own keeping of a user's threads and memories, and of somebody else's."""
    saver, store = InMemorySaver(), InMemoryStore()
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda _: {"messages": [AIMessage("Noted.")]})
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=saver, store=store)
    for name in (f"{user}-1", f"{user}-2", "bob-1"):
        graph.invoke({"messages": [HumanMessage(SECRET)]}, thread(name))
    for number in range(250):
        store.put(("memories", user, "deep"), f"k{number}", {"says": SECRET})
    store.put(("memories", "bob"), "k", {"says": "good morning"})
    return graph, saver, store


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_one_receipt_tells_of_everything_that_a_user_had(tmp_path: Path, call_style: CallStyle) -> None:
    graph, saver, theirs = beside("zoe")
    with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as memory:
        planted(memory)
        facts = len([one for name in ("zoe-1", "zoe-2") for one in memory.session(name).facts(superseded=True)])
        receipt = told(
            call_style, memory.forget, user="zoe", checkpointer=saver, store=theirs, namespaces=[("memories", "zoe")]
        )
        assert set(receipt.session_ids) == {"zoe-1", "zoe-2"}
        assert (receipt.entries, receipt.files, receipt.checkpoints) == (12, 80, 2)
        assert 0 < receipt.facts <= facts  # `facts()` also reads those that nothing keeps yet
        assert facts > 0
        assert (receipt.items, receipt.threads) == (252, 2)
        assert receipt.may_remain == ()
        assert memory.facts(user="zoe", superseded=True) == memory.search(SECRET, user="zoe") == []
        assert TieredStore(memory, user="zoe").list_namespaces() == []
        assert len(TieredStore(memory, user="bob").search(())) == 1
        assert [one.key for one in theirs.search((), limit=999)] == ["k"]
        assert graph.get_state(thread("zoe-1")).values == {}
        assert graph.get_state(thread("bob-1")).values != {}
        assert memory.verify().problems == ()
        again = told(call_style, memory.forget, user="zoe")
        assert (again.entries, again.items, again.facts) == (0, 0, 0)
    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert [path.name for path in files if SECRET.encode() in path.read_bytes().lower()] == []


@pytest.mark.postgres
def test_it_is_so_on_postgresql(postgres_url: str) -> None:
    with open_memory(postgres_url) as memory:
        planted(memory)
        receipt = memory.forget(user="zoe")
        assert (receipt.entries, receipt.files, receipt.checkpoints, receipt.items) == (12, 80, 2, 2)
        assert TieredStore(memory, user="zoe").search(()) == []
        assert len(TieredStore(memory, user="bob").search(())) == 1


def test_a_removal_that_is_broken_off_is_finished_by_the_next_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise KilledError

    path = tmp_path / "memory.db"
    with open_memory(path) as memory:
        planted(memory)
        with monkeypatch.context() as patched:
            patched.setattr(Removal, "carry_out", killed)
            with pytest.raises(KilledError):
                memory.forget(user="zoe")
    with open_memory(path) as memory:
        assert memory.sessions() == ["bob-1"]
        assert TieredStore(memory, user="zoe").search(()) == []
    assert [one.name for one in tmp_path.iterdir() if one.is_file() and SECRET.encode() in one.read_bytes()] == []


def test_a_store_is_not_emptied_of_what_nobody_said_was_the_users() -> None:
    class Sticky(InMemoryStore):
        def delete(self, *_: Any) -> None:
            """Deletes nothing."""

    store = Sticky()
    store.put(("memories", "zoe"), "k", {"says": "hello"})
    with open_memory() as memory:
        memory.session("zoe-1", user="zoe").add_messages([HumanMessage("Hello.")])
        for wrong in (
            {"user": "zoe", "store": store},
            {"user": "zoe", "store": store, "namespaces": [()]},
            {"user": "zoe", "store": object(), "namespaces": [("a",)]},
            {"user": "zoe", "namespaces": [("a",)]},
            {"session_id": "zoe-1", "store": store, "namespaces": [("a",)]},
        ):
            with pytest.raises(InvalidInputError):
                memory.forget(**wrong)  # type: ignore[arg-type]
        assert memory.sessions() == ["zoe-1"]
        receipt = memory.forget(user="zoe", store=store, namespaces=[("memories", "zoe")])
        assert (receipt.entries, receipt.items) == (1, 0)
        assert ["still there" in one for one in receipt.may_remain] == [True]
