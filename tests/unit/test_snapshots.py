"""Whole contexts and a whole small database, byte for byte: a change of what a model sees or a file holds is seen here.

`TIERED_MEMORY_UPDATE_SNAPSHOTS=1` writes them anew; the difference is then read and committed with what made it.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import sys
import uuid
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, conversation, open_memory, tool_turn

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.migrates  # an identity of a database is the first of the ids in a row
FOLDER = Path(__file__).parents[1] / "snapshots"
RANDOM = {("ltm_meta", "identity"), ("ltm_meta", "forgetting_key")}
"""Rows whose value is random on purpose, each by its table and name."""


@pytest.fixture(autouse=True)
def _ids_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that the package makes are numbers, one after the other; other packages' stay random."""
    numbers, random_id = itertools.count(1), uuid.uuid4

    def numbered() -> uuid.UUID:
        is_ours = sys._getframe(1).f_globals["__name__"].startswith("langchain_tiered_memory.")
        return uuid.UUID(int=next(numbers) << 96) if is_ours else random_id()

    monkeypatch.setattr(uuid, "uuid4", numbered)


def compare(name: str, text: str) -> None:
    """Assert that `text` is what is kept under a name, or keep it."""
    path = FOLDER / name
    if os.environ.get("TIERED_MEMORY_UPDATE_SNAPSHOTS") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def shown(context: Context) -> str:
    """A context as a text: its sections with their account, then its messages."""
    lines = [f"{context.tokens} of {context.max_tokens} tokens, {context.stable_messages} stable messages"]
    lines += [
        f"- {section.name}: {section.tokens} of {section.cap} tokens; whole {' '.join(section.entry_ids) or 'none'};"
        f" in part {' '.join(section.passage_ids) or 'none'}; left out {len(section.left_out)}"
        for section in context.sections
    ]
    for message in context.messages:
        lines += ["", f"=== {message.type} {message.id}", content(message)]
        if isinstance(message, AIMessage):
            lines += [f"call {call['id']}: {call['name']} {json.dumps(call['args'])}" for call in message.tool_calls]
        if isinstance(message, ToolMessage):
            lines.append(f"answers {message.tool_call_id}")
    return "\n".join(lines) + "\n"


def content(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    return json.dumps(message.content, indent=1, ensure_ascii=False)


def spoken(session: Session, clock: FrozenClock, turns: list[list[BaseMessage]]) -> None:
    """Turns a minute apart, condensed every few turns."""
    for number, messages in enumerate(turns, 1):
        session.add_messages(messages)
        clock.advance(60)
        if number % 4 == 0:
            session.flush()


def chat_turns(count: int) -> list[list[BaseMessage]]:
    return [conversation(1, start=number) for number in range(count)]


def test_a_chat_that_outgrew_its_budget_is_shown_as_it_was() -> None:
    clock = FrozenClock(NOW)
    with open_memory(clock=clock) as memory:
        session = memory.session("s", user="ann", title="The harbour")
        spoken(session, clock, chat_turns(30))
        context = session.context("", max_tokens=900, system="You are the clerk of the harbour.")
        assert context.section("history") is not None
        compare("context_chat.txt", shown(context))


def test_a_question_brings_back_what_was_said_long_ago_as_it_did() -> None:
    clock = FrozenClock(NOW)
    with open_memory(clock=clock) as memory:
        session = memory.session("s")
        spoken(session, clock, chat_turns(40))
        context = session.context("Which team checked the crane of order 1001?", max_tokens=1200)
        assert context.section("recall") is not None
        compare("context_recall.txt", shown(context))


def test_an_agents_run_with_tools_is_shown_as_it_was() -> None:
    clock = FrozenClock(NOW)
    with open_memory(clock=clock) as memory:
        session = memory.session("s")
        session.start_task("inspect the quay")
        read = {"name": "read_file", "args": {"path": "src/harbour.py"}, "id": "call_read"}
        work: list[BaseMessage] = [
            HumanMessage("Read src/harbour.py, then look up each order.", id="ask"),
            AIMessage("", tool_calls=[read], id="reads"),
            ToolMessage("def harbour(): ...\n" * 60, tool_call_id="call_read", name="read_file", id="file"),
            AIMessage("It has one function.", id="told"),
        ]
        spoken(session, clock, [work, *(tool_turn(number) for number in range(10))])
        call = {"name": "look_up", "args": {"order": 77}, "id": "call_open"}
        session.add_messages([HumanMessage("And order 77?", id="last"), AIMessage("", tool_calls=[call], id="calls")])
        session.add_messages([ToolMessage("no such order", tool_call_id="call_open", name="look_up", id="found")])
        context = session.context("", max_tokens=1000)
        assert any(isinstance(message, ToolMessage) for message in context.messages)
        assert context.section("history") is not None
        compare("context_agent_run.txt", shown(context))


def rows_of(path: Path) -> str:
    """Every row of every table, without what is random on purpose."""
    lines: list[str] = []
    with closing(sqlite3.connect(path)) as connection:
        for table in sorted(schema.metadata.tables):
            cursor = connection.execute(f"SELECT * FROM {table}")
            columns = [column[0] for column in cursor.description]
            found = sorted(
                json.dumps(dict(zip(columns, map(plain, row), strict=True)), ensure_ascii=False)
                for row in cursor.fetchall()
                if (table, row[0]) not in RANDOM
            )
            lines += ["", f"=== {table}: {', '.join(columns)}", *found]
    return "\n".join(lines).lstrip() + "\n"


def plain(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


def test_a_small_database_holds_the_rows_that_it_held(tmp_path: Path) -> None:
    clock = FrozenClock(NOW)
    with open_memory(tmp_path / "memory.db", clock=clock) as memory:
        session = memory.session("s", user="ann", title="The harbour")
        session.start_task("inspect")
        spoken(session, clock, [*chat_turns(3), tool_turn(3)])
        session.pin("a1")
        session.add_messages([HumanMessage("What about the ferry?", id="q2")])
        session.context("", max_tokens=400)
        session.finish_task("inspect")
    compare("small_database.txt", rows_of(tmp_path / "memory.db"))
