"""Invariant 4: SQL, the text index and Chroma agree after `flush()`; `verify()` names every planted fault."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolMessage
from sqlalchemy import text

from langchain_tiered_memory.testing import ScriptedModel
from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory, shown_within, store_of, turn
from tests.properties.test_cover import distinct
from tests.strategies import broken_histories, healthy_histories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.recall.chroma.index import ChromaIndex

pytestmark = pytest.mark.slow


def index_of(memory: TieredMemory) -> ChromaIndex:
    index: Any = memory.core.runtime.open_index()
    assert index is not None
    return index


def ids_everywhere(memory: TieredMemory) -> tuple[set[int], set[int], set[int]]:
    """Passage ids in SQL, in the full-text index and in Chroma."""
    with store_of(memory).database.read() as connection:
        sql = set(connection.scalars(text("SELECT id FROM ltm_passages")))
        words = set(connection.scalars(text("SELECT id FROM ltm_passages_fts_docsize")))
    return sql, words, index_of(memory).ids()


def plant(memory: TieredMemory, *statements: str) -> None:
    """Change rows behind the memory's back."""
    with store_of(memory).database.write() as connection:
        for statement in statements:
            connection.execute(text(statement))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(st.one_of(healthy_histories(), broken_histories()), min_size=1, max_size=3), st.booleans())
def test_after_a_flush_sql_text_index_and_chroma_hold_the_same_passages(
    histories: list[list[BaseMessage]],
    forget: bool,  # noqa: FBT001
) -> None:
    with open_memory(None, embeddings=HashingEmbeddings()) as memory:
        session = memory.session("s")
        ids = [one for number, some in enumerate(histories) for one in session.add_messages(distinct(some, number))]
        memory.flush()
        if forget and ids:
            session.forget(message_ids=ids[:2])
        if len(ids) > 3:
            session.add_messages([turn(1)[0].model_copy(update={"id": ids[3]})])
        memory.flush()
        sql, words, vectors = ids_everywhere(memory)
        assert sql == words == vectors
        assert memory.verify().problems == ()


def test_a_summary_of_texts_that_no_database_stores_is_counted_as_it_is_stored() -> None:
    with open_memory(None) as memory:
        args = "\xb2\x00\\\x1f \x0c\xc4\xc7\r\U0009b419\U0008e20a\x9d\x12\xa1"
        odd = InvalidToolCall(
            type="invalid_tool_call", id="functions.bash:0", name="search", args=args, error="no JSON"
        )
        image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
        calling = AIMessage([image], invalid_tool_calls=[odd])
        memory.session("s").add_messages([calling])
        memory.session("s").add_messages([HumanMessage("the", id="h0"), *turn(1)])
        for number in range(1, 4):
            memory.session("s").add_messages([HumanMessage("the", id=f"h{number}"), AIMessage("the", id=f"a{number}")])
        memory.flush()
        assert memory.verify().summaries
        assert memory.verify().problems == ()


@pytest.mark.parametrize(
    "touching",
    [
        AIMessage("", tool_calls=[{"name": "read_file", "args": {"path": "src/a.py"}, "id": None}]),
        ToolMessage("src/a.py\nsrc/b.py", name="glob", tool_call_id="c1"),
    ],
    ids=["a call without an id", "a result that finds files"],
)
def test_files_that_a_message_touches_are_no_fault_and_stay(touching: BaseMessage) -> None:
    with open_memory(None) as memory:
        call = AIMessage("", tool_calls=[{"name": "glob", "args": {"pattern": "src"}, "id": "c1"}])
        memory.session("s").add_messages([HumanMessage("look"), call, touching])

        def touched() -> list[Any]:
            with store_of(memory).database.read() as connection:
                return list(connection.execute(text("SELECT seq, path FROM ltm_files ORDER BY seq, path")))

        before = touched()
        assert before
        assert memory.verify().problems == ()
        assert memory.doctor().found == ()
        assert touched() == before


LAST_ENTRY = "(SELECT max(seq) FROM ltm_entries WHERE session_key = 1)"
FIRST_PASSAGE = "(SELECT min(id) FROM ltm_passages)"
A_ROOT = "(SELECT min(id) FROM ltm_summaries WHERE state = 'active' AND level > 1)"
A_LEAF = "(SELECT min(id) FROM ltm_summaries WHERE level = 1 AND parent_id IS NOT NULL)"
FAULTS = {
    "a payload that was changed": (
        "message_changed",
        f"UPDATE ltm_entries SET payload = replace(payload, 'invoice', 'bill') WHERE seq = {LAST_ENTRY}",
    ),
    "a text that was changed": (
        "text_changed",
        f"UPDATE ltm_entries SET text = 'nothing' WHERE session_key = 1 AND seq = {LAST_ENTRY}",
    ),
    "a payload that cannot be read": (
        "unreadable_message",
        f"UPDATE ltm_entries SET payload = '{{' WHERE session_key = 1 AND seq = {LAST_ENTRY}",
    ),
    "a wrong count of tokens": ("wrong_count", f"UPDATE ltm_entries SET tokens = 7777 WHERE seq = {LAST_ENTRY}"),
    "a message that vanished": ("wrong_total", f"DELETE FROM ltm_entries WHERE session_key=1 AND seq={LAST_ENTRY}"),
    "a message that vanished from under a summary": (
        "wrong_coverage",
        "DELETE FROM ltm_entries WHERE session_key = 1 AND seq = 2",
    ),
    "a passage that vanished": ("wrong_index_rows", f"DELETE FROM ltm_passages WHERE id = {FIRST_PASSAGE}"),
    "a passage of other terms": (
        "wrong_index_rows",
        f"UPDATE ltm_passages SET terms = 'nonsense' WHERE id = {FIRST_PASSAGE}",
    ),
    "a passage of nobody": (
        "orphan_index_row",
        (
            "INSERT INTO ltm_passages (session_key, level, seq, part, start, stop, track, at, scope, terms) "
            "VALUES (1, 0, 99999, 0, 0, 1, 'main', 0, 's1l0', 'ghost')"
        ),
    ),
    "wrong running totals": ("wrong_total", "UPDATE ltm_sessions SET tokens = tokens + 1 WHERE key = 1"),
    "a full-text index that lost a row": (
        "damaged_text_index",
        (
            "INSERT INTO ltm_passages_fts (ltm_passages_fts, rowid, scope, terms) SELECT 'delete', id, scope, terms "
            f"FROM ltm_passages WHERE id = {FIRST_PASSAGE}"
        ),
    ),
    "a summary of other words": ("summary_changed", f"UPDATE ltm_summaries SET text = 'x' WHERE id = {A_LEAF}"),
    "a summary of other sources": (
        "sources_changed",
        f"UPDATE ltm_summaries SET source_digest = 'f00' WHERE id = {A_LEAF}",
    ),
    "a summary that vanished": ("missing_summary", f"DELETE FROM ltm_summaries WHERE id = {A_LEAF}"),
    "a parent that vanished": ("missing_parent", f"DELETE FROM ltm_summaries WHERE id = {A_ROOT}"),
    "a message under no summary any more": (
        "wrong_coverage",
        "UPDATE ltm_entries SET summary_id = NULL WHERE session_key = 1 AND seq = 1",
    ),
    "a summary in a state that does not fit": (
        "wrong_state",
        f"UPDATE ltm_summaries SET state = 'active' WHERE id = {A_LEAF}",
    ),
}


@pytest.mark.sweep(6)  # that each is named, `test_doctor` shows too
@pytest.mark.parametrize(("kind", "statement"), FAULTS.values(), ids=FAULTS.keys())
def test_verify_names_the_fault_and_rebuilding_mends_it(memory: TieredMemory, kind: str, statement: str) -> None:
    assert memory.verify().problems == ()
    plant(memory, statement)
    found = {problem.kind for problem in memory.verify().problems}
    assert kind in found
    after = memory.rebuild_index()
    memory.flush()
    if kind in ("message_changed", "unreadable_message", "text_changed"):
        # What the transcript itself says cannot be derived from anything: it stays named.
        assert {problem.kind for problem in memory.verify().problems} <= {kind, "text_changed"}
    else:
        assert memory.verify().problems == (), after.problems
    sql, words, vectors = ids_everywhere(memory)
    assert sql == words == vectors


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("missing_vector", lambda index: index.remove(sorted(index.ids())[:3])),
        ("extra_vector", lambda index: index.add([_Row(10**9)])),
        ("missing_vector", lambda index: index.clear()),
    ],
    ids=["vectors that vanished", "a vector of nobody", "an index that was emptied"],
)
def test_verify_names_what_is_wrong_in_chroma_and_rebuilding_mends_it(
    memory: TieredMemory, kind: str, damage: Callable[[Any], None]
) -> None:
    damage(index_of(memory))
    assert {problem.kind for problem in memory.verify().problems} == {kind}
    memory.rebuild_index()
    assert memory.verify().problems == ()
    sql, words, vectors = ids_everywhere(memory)
    assert sql == words == vectors


class _Row:
    """A row that no passage knows."""

    text = "a ghost"
    metadata = {"session": 1, "level": 0, "seq": 1, "track": "main", "at": 0.0, "kind": ""}  # noqa: RUF012 - a constant

    def __init__(self, number: int) -> None:
        self.id = number


def test_verifying_and_rebuilding_never_call_a_model(tmp_path: Path) -> None:
    model = ScriptedModel(answers=["## Overview\nThe harbour and the crane were looked at by several teams."])
    with closing(open_memory(tmp_path / "memory.db", model=model, embeddings=HashingEmbeddings())) as memory:
        memory.session("s").add_messages(conversation(16))
        shown_within(memory.session("s"), 400)
        calls = model.calls
        assert calls > 0
        plant(memory, FAULTS["a wrong count of tokens"][1], FAULTS["a passage of other terms"][1])
        assert memory.verify().problems != ()
        assert memory.rebuild_index().problems == ()
        assert model.calls == calls
