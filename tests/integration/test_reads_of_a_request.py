"""What a request asks of the database is bounded, however long the session is, and is of one state of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from sqlalchemy import event

from tests.memory_builders import open_memory, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

MOST_READS = 4
MOST_STATEMENTS = 6
MOST_STATEMENTS_WITH_A_QUESTION = 21


@dataclass(kw_only=True)
class Log:
    """Statements of a stretch, and transactions that only read."""

    statements: list[str] = field(default_factory=list)
    reads: int = 0


@contextmanager
def logged(memory: TieredMemory) -> Iterator[Log]:
    """What a memory asks of SQLite meanwhile."""
    log = Log()
    engine = store_of(memory).database.engine

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("BEGIN"):
            log.reads += statement == "BEGIN"
        else:
            log.statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield log
    finally:
        event.remove(engine, "before_cursor_execute", note)


def turn(number: int) -> list[BaseMessage]:
    """What is said in one turn."""
    return [HumanMessage(f"where is parcel {number}?"), AIMessage(f"parcel {number} is in the harbour warehouse")]


def step(number: int) -> list[BaseMessage]:
    """One step of an agent."""
    call = {"name": "read_file", "args": {"path": f"src/part_{number}.py"}, "id": f"call-{number}"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(f"contents of part {number}", tool_call_id=f"call-{number}")]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[TieredMemory]:
    with open_memory(tmp_path / "memory.db") as opened:
        yield opened


@pytest.mark.parametrize("said", [turn, step])
@pytest.mark.sweep(1)
def test_a_context_that_changes_nothing_is_one_read_of_few_statements(memory: TieredMemory, said: Any) -> None:
    session = memory.session("s")
    session.add_messages([HumanMessage("mend the parcel service")])
    for number in range(60):
        session.add_messages(said(number))
    session.flush()
    for _ in range(2):
        session.context("", max_tokens=800)
    session.add_messages(said(61))
    with logged(memory) as log:
        found = session.context("", max_tokens=4000)
    assert any("61" in str(message) for message in found.messages), "it was made anew"
    assert log.reads <= MOST_READS
    assert 0 < len(log.statements) <= 6 * MOST_STATEMENTS  # the first of its budget makes its plan
    session.add_messages(said(62))
    with logged(memory) as log:
        found = session.context("", max_tokens=4000)
    assert any("62" in str(message) for message in found.messages)
    assert log.reads == 1
    assert 0 < len(log.statements) <= MOST_STATEMENTS, log.statements


def test_a_question_costs_a_bounded_number_of_statements_more(memory: TieredMemory) -> None:
    session = memory.session("s")
    for number in range(80):
        session.add_messages(turn(number))
    session.flush()
    session.context("harbour", max_tokens=800)
    with logged(memory) as log:
        found = session.context("where was parcel 7 in the harbour warehouse, and who asked?", max_tokens=800)
    assert any("parcel 7 " in str(message.content) for message in found.messages), "something was recalled"
    assert log.reads <= MOST_READS
    assert 0 < len(log.statements) <= MOST_STATEMENTS_WITH_A_QUESTION, log.statements


def test_a_search_of_every_level_is_one_read_beside_the_sessions_own(memory: TieredMemory) -> None:
    session = memory.session("s")
    for number in range(80):
        session.add_messages(turn(number))
    session.flush()
    with logged(memory) as log:
        found = session.search("where was parcel 7 in the harbour warehouse, and who asked?", k=8)
    assert any("parcel 7 " in hit.text for hit in found)
    assert log.statements
    assert log.reads <= 2


def test_a_write_in_the_middle_of_a_context_is_not_half_seen(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory, open_memory(tmp_path / "memory.db") as other:
        session = memory.session("s")
        session.add_messages([HumanMessage("the goal", id="goal"), AIMessage("an answer", id="answer")])
        session.context("", max_tokens=2000)
        interrupted: list[str] = []

        def interrupt(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if "ltm_files" in statement and not interrupted:  # between the reading of the musts and of the messages
                interrupted.append(statement)
                other.session("s").add_messages([HumanMessage("meanwhile", id="late")])
                other.session("s").pin("answer")

        event.listen(store_of(memory).database.engine, "before_cursor_execute", interrupt)
        before = session.context("", max_tokens=2000)
        after = session.context("", max_tokens=2000)
    assert interrupted
    assert before.entry_ids == ("goal", "answer")
    assert set(after.entry_ids) == {"goal", "answer", "late"}, "the next request sees it"
