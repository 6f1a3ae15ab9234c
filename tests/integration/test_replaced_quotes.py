"""A message is never quoted as if what it states still held, where something later took its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.recall.recall import recall
from langchain_tiered_memory.types.drafts import SearchFilters
from tests.memory_builders import entries_of, open_memory, ref_of

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory

OLD, NEW = "The port of the lantern gateway is 8080.", "Correction: the port of the lantern gateway is now 8443."
NOTED = f"user: {OLD} (replaced since: port of the lantern gateway is now 8443)"
ENOUGH, SCANT = 84, 64


def talk(count: int) -> list[BaseMessage]:
    """Talk of other things."""
    pairs = ((HumanMessage(f"I fed goose {n}."), AIMessage(f"Noted, goose {n}.")) for n in range(count))
    return [message for pair in pairs for message in pair]


def after(memory: TieredMemory, *later: str) -> Session:
    """A session in which a port was told, and `later` something else."""
    session = memory.session("s")
    session.add_messages([HumanMessage(OLD, id="old"), AIMessage("Noted."), *talk(20)])
    session.add_messages([HumanMessage(text, id=f"later{n}") for n, text in enumerate(later)])
    session.add_messages(talk(20))
    session.flush()
    return session


def quoted(
    session: Session, *, room: int = ENOUGH, shown: frozenset[int] = frozenset(), filters: SearchFilters | None = None
) -> str:
    """What is quoted for a question that only the old value answers."""
    runtime = session.core.runtime
    asked = "Was it 8080?"
    return recall(runtime, ref_of(session), asked, room=room, code_room=9, shown=shown, filters=filters).text


def test_a_value_that_was_replaced_says_by_what() -> None:
    with open_memory() as memory:
        assert NOTED in quoted(after(memory, NEW))


def test_it_says_nothing_where_that_stands_beside_it_or_may_not_be_seen() -> None:
    with open_memory() as memory:
        session = after(memory, NEW)
        (later,) = (one.seq for one in entries_of(session) if one.id == "later0")
        assert "replaced since" not in quoted(session, shown=frozenset({later}))
        assert "replaced since" in quoted(session, filters=SearchFilters(tracks=("main",)))
        memory.session("s", track="side").add_messages([HumanMessage(f"{OLD} Was it 8080?"), *talk(9)])
        memory.flush()
        assert "8443" not in quoted(session, filters=SearchFilters(tracks=("side",)))


def test_a_value_that_still_holds_says_nothing() -> None:
    with open_memory() as memory:
        found = quoted(after(memory, "The crane of the harbour costs 900 euros."))
    assert OLD in found
    assert "replaced since" not in found


def test_what_answers_comes_before_what_is_said_of_it() -> None:
    with open_memory() as memory:
        found = quoted(after(memory, NEW), room=SCANT)
    assert OLD in found
    assert "replaced since" not in found


@pytest.mark.parametrize("room", range(110, 260, 15))
def test_fewer_messages_are_quoted_so_that_each_says_what_replaced_it(room: int) -> None:
    with open_memory() as memory:
        session = after(memory, *(f"Was it 8080, or gate {n}, that we asked?" for n in range(20)), NEW)
        found = quoted(session, room=room)
    assert "gate" in found
    assert (OLD in found) == (NOTED in found)


def test_what_was_forgotten_replaces_nothing() -> None:
    with open_memory() as memory:
        session = after(memory, NEW)
        session.forget(message_ids=["later0"])
        session.flush()
        found = quoted(session)
    assert OLD in found
    assert "8443" not in found


def test_a_question_that_brings_its_reply_says_that_it_was_replaced() -> None:
    asked = "Zinc marmalade quartz pelican, which number shall I use?"
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage(asked, name="Ann"), HumanMessage(OLD, name="Bob"), *talk(9)])
        session.add_messages([HumanMessage(NEW, name="Bob"), *talk(9)])
        session.flush()
        runtime = session.core.runtime
        said = "I had zinc marmalade quartz pelican for breakfast today."
        text = recall(runtime, ref_of(session), said, room=150, code_room=9, shown=frozenset(), said_at=99).text
        assert f"Bob: {OLD} (replaced since: " in text


def test_a_call_and_what_it_gave_are_what_happened_then() -> None:
    call = {"name": "set_port", "args": {"note": OLD}, "id": "c"}
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Note the port."), AIMessage(f"{OLD} I note it.", tool_calls=[call])])
        session.add_messages([ToolMessage(OLD, tool_call_id="c", name="set_port"), *talk(20), HumanMessage(NEW)])
        session.add_messages(talk(20))
        session.flush()
        found = quoted(session, room=200)
    assert "8080" in found
    assert "replaced since" not in found
