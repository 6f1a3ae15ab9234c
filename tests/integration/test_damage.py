"""Damage in any column of any table: `verify()` names it, nothing dies of it, `doctor()` mends what can be mended."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from sqlalchemy import Boolean, Float, Integer, LargeBinary, text

from langchain_tiered_memory.errors import (
    DamagedRowError,
    InvalidInputError,
    NotFoundError,
    TieredMemoryError,
    UnknownMessageError,
)
from langchain_tiered_memory.integrations.nodes import remember_node
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import FORMS
from langchain_tiered_memory.types import Scope
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.damage_builders import (
    ASKED,
    BUDGET,
    Damage,
    count_of,
    filled,
    opened,
    others_for,
    planted,
    present_value,
)
from tests.embedders import HashingEmbeddings
from tests.graph_builders import ChatState, Runner, thread
from tests.memory_builders import conversation, entries_of, open_memory, store_of, summaries_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.reports import Problem

pytestmark = pytest.mark.slow

COLUMNS = [column for table in schema.metadata.sorted_tables for column in table.columns if column.computed is None]
REFUSED = {"ltm_migrations.number": "a number that no step has is a newer schema: opening refuses it"}
NOT_CHECKABLE = {
    "ltm_meta.name": "a row of ours under another name is a row of nobody",
    "ltm_meta.value": "the identity is random, and which embedder made vectors nothing else says",
    "ltm_migrations.name": "a label",
    "ltm_migrations.applied_at": "a moment of which nothing else speaks",
    "ltm_sessions.title": "given, and kept nowhere else",
    "ltm_sessions.next_seq": "higher than needed is what forgetting leaves; lower is named",
    "ltm_sessions.epoch": "a counter without a source: higher only makes plans anew; lower than a plan's is named",
    "ltm_sessions.created_at": "a moment of which nothing else speaks",
    "ltm_sessions.ended_at": "a moment of which nothing else speaks",
    "ltm_sessions.begun_by": "given, and kept nowhere else",
    "ltm_sessions.checkpointer": "given, and kept nowhere else",
    "ltm_entries.pinned": "a user's wish, kept nowhere else",
    "ltm_entries.counter": "a mark of another counter is what another counter leaves: a note tells of it",
    "ltm_revisions.replaced_at": "a moment of which nothing else speaks",
    "ltm_removed_vectors.passage_id": "a vector that is gone already is removed once more",
    "ltm_summaries.strategy": "given by settings, and kept nowhere else",
    "ltm_summaries.source_tokens": "what was counted when it was planned: sources may have been counted anew since",
    "ltm_summaries.counter": "as of messages",
    "ltm_summaries.by_rules": "whether a model may write it still is kept nowhere else; a view asks again, or it stays",
    "ltm_summaries.wanted": "what a view asked for is kept nowhere else; its next request asks again",
    "ltm_summaries.degraded": "who wrote it is kept nowhere else; a sound one is made again",
    "ltm_summaries.stale": "whether it was made before an edit is kept nowhere else; a sound one is made again",
    "ltm_summaries.touched": "asked while it is being made alone",
    "ltm_summaries.attempts": "a count of what is over",
    "ltm_summaries.error": "words about what is over",
    "ltm_summaries.model": "who wrote it is kept nowhere else",
    "ltm_summaries.calls": "a count of what is over",
    "ltm_summaries.input_tokens": "a count of what is over",
    "ltm_summaries.output_tokens": "a count of what is over",
    "ltm_summaries.seconds": "a measure of what is over",
    "ltm_summaries.kept_identifiers": "measured on the sources as they were; its range is checked",
    "ltm_summaries.information_loss": "measured on the sources as they were; its range is checked",
    "ltm_summaries.reason": "why an attempt failed that is over",
    "ltm_summaries.created_at": "a moment of which nothing else speaks",
    "ltm_summaries.lease_owner": "asked while it is being made alone",
    "ltm_summaries.lease_until": "asked while it is being made alone",
    "ltm_summaries.retry_at": "when to look again; that an unfinished one has it is checked",
    "ltm_summaries.beside": "what its writer read besides is kept nowhere else",
    "ltm_facts.mentions": "how often summaries above took it up is kept nowhere else; fewer than its own say is named",
    "ltm_plans.name": "the digest of a view's name, which is kept nowhere else",
    "ltm_plans.epoch": "of another epoch a plan is made anew; a higher one than the session's is named",
    "ltm_plans.payload": "a plan is a choice; that it can be read and has its border is checked",
    "ltm_plans.written_at": "a moment of which nothing else speaks",
    "ltm_runs.phase": "given, and kept nowhere else",
    "ltm_runs.finished_tasks": "tasks may have been taken out since; fewer than the last number is named",
    "ltm_runs.zones": "how full a view was: the next request says it anew",
    "ltm_runs.started_at": "a moment of which nothing else speaks",
    "ltm_tasks.track": "given, and kept nowhere else",
    "ltm_tasks.depends_on": "given, and kept nowhere else",
    "ltm_tasks.started_at": "a moment of which nothing else speaks",
    "ltm_tasks.first_seq": "messages may have been forgotten since",
    "ltm_tasks.finished_at": "a moment of which nothing else speaks",
    "ltm_tasks.last_seq": "messages may have been forgotten since; behind the last one is named",
    "ltm_tasks.number": "tasks may have been taken out since; above the run's count is mended there",
    "ltm_tasks.session_key": "a task of another session is a task there",
    "ltm_checkpoints.key": "a number that only orders them",
    "ltm_outcomes.key": "a number that only orders them",
    "ltm_outcomes.session_key": "an outcome of another session is an outcome there",
    "ltm_outcomes.view": "the digest of a view's name, which is kept nowhere else",
    "ltm_outcomes.payload": "what was decided is kept nowhere else; its columns are checked against it",
    "ltm_outcomes.plan_before": "a plan is a choice; that it can be read is checked",
    "ltm_outcomes.plan_after": "a plan is a choice; that it can be read is checked",
    "ltm_outcomes.undone_at": "a moment of which nothing else speaks",
    "ltm_plans.session_key": "a plan of another session is of another epoch there, or names no summary of it",
    "ltm_runs.session_key": "a run of another session is that session's",
    "ltm_files.operation": "which tools write is a setting of the day",
    "ltm_files.tool": "which call touched it is a setting of the day",
    "ltm_checkpoints.archived": "how densely it is kept; both are read",
    "ltm_file_tiers.session_key": "the state of another session's tiers is that session's",
    "ltm_file_tiers.next_order": "higher than needed is what dropped files leave; lower is named",
    "ltm_file_tiers.collected_at": "a moment of which nothing else speaks",
    "ltm_file_tiers.optimised_at": "a moment of which nothing else speaks",
    "ltm_file_tiers.crowded_at": "a moment of which nothing else speaks",
    "ltm_file_tiers.figures": "counts of what is over",
    "ltm_file_tiers.report": "figures of what is over",
    "ltm_kept_files.changed_at": "a moment of which nothing else speaks",
    "ltm_kept_files.tier": "where it was is kept nowhere else; limits are settings of the day, put in force when read",
    "ltm_kept_files.pinned": "a user's wish, kept nowhere else",
    "ltm_kept_files.modified_ns": "another time has the file read again, and compared",
    "ltm_kept_files.dependencies": "what was read in it when it was opened",
    "ltm_kept_files.accessed_at": "a moment of which nothing else speaks",
    "ltm_kept_files.access_order": "a number that only orders them; one that is still to come is named",
    "ltm_kept_files.accesses": "a count of what is over",
    "ltm_kept_files.deleted": "the next look at the disk says it anew",
    "ltm_file_contents.form": "two words for compressed; one for not compressed is named",
    "ltm_windows.model": "learnt, and kept nowhere else",
    "ltm_windows.tokens": "learnt, and kept nowhere else",
    "ltm_windows.learned_at": "a moment of which nothing else speaks",
    "ltm_calibrations.model": "learnt, and kept nowhere else",
    "ltm_calibrations.counter": "learnt, and kept nowhere else",
    "ltm_calibrations.ratio": "learnt, and kept nowhere else",
    "ltm_calibrations.samples": "learnt, and kept nowhere else",
    "ltm_events.key": "a number that only orders them",
    "ltm_events.id": "a name by which listeners know an event again, kept nowhere else",
    "ltm_events.session_key": "an event of another session is told of that one",
    "ltm_events.name": "a later version may have further events; one that is not known is not told",
    "ltm_events.at": "a moment of which nothing else speaks",
    "ltm_events.reason": "a sentence, kept nowhere else",
    "ltm_events.details": "figures, kept nowhere else",
    "ltm_events.deliveries": "a count of what is over",
    "ltm_forgotten.forgotten_session": "keyed digests say nothing of each other; one of no session is named",
    "ltm_forgotten.seq": "what had the number is gone; that the session is behind it is checked",
    "ltm_forgotten.revision": "what had the number is gone",
    "ltm_forgotten.role": "who spoke is gone",
    "ltm_forgotten.track_digest": "what it was made of is gone",
    "ltm_forgotten.id_digest": "what it was made of is gone",
    "ltm_forgotten.words_digest": "what it was made of is gone",
    "ltm_forgotten.said_digest": "what it was made of is gone",
    "ltm_forgotten_sessions.key": "of a session that is gone nothing else knows it; of one that is there it is checked",
    "ltm_forgotten_sessions.next_seq": "higher than needed is what forgetting leaves; lower is named",
    "ltm_forgotten_sessions.epoch": "a counter without a source",
    "ltm_forgotten_sessions.checkpointer": "given, and kept nowhere else",
    "ltm_removals.key": "a number that only orders what is over; messages to be removed under another are named",
    "ltm_removals.begun_at": "a moment of which nothing else speaks",
    "ltm_removals.finished_at": "a moment of which nothing else speaks; what is left to be removed is named",
    "ltm_removals.entries": "a count of what is over",
    "ltm_removals.revisions": "a count of what is over",
    "ltm_removals.summaries": "a count of what is over",
    "ltm_removals.passages": "a count of what is over",
    "ltm_removals.facts": "a count of what is over",
    "ltm_removals.files": "a count of what is over",
    "ltm_removals.checkpoints": "a count of what is over",
    "ltm_removals.items": "a count of what is over",
    "ltm_items.payload": "given, and kept nowhere else",
    "ltm_items.fields": "given, and kept nowhere else",
    "ltm_items.embedder": "another one's vectors are made anew when the item is looked for",
    "ltm_items.created_at": "a moment of which nothing else speaks; behind its end is named",
    "ltm_items.updated_at": "a moment of which nothing else speaks",
    "ltm_items.ttl_minutes": "given, and kept nowhere else; none beside an end is named",
    "ltm_items.expires_at": "reading an item may have let it live on; before its beginning is named",
    "ltm_item_vectors.vector": "what an embedder gave; rebuild_index() has it made anew",
}
"""Columns in which a value of the right form says nothing wrong that anything else could tell."""
TRUTH = {
    "ltm_meta",
    "ltm_migrations",
    "ltm_entries",
    "ltm_revisions",
    "ltm_sessions",
    "ltm_forgotten",
    "ltm_forgotten_sessions",
    "ltm_removal_targets",
    "ltm_items",
}
"""Tables with what was given: where that is damaged, `doctor()` may have to leave it named."""
EMPTIED_BY_OPENING = {"ltm_removal_targets"}
"""What is left to remove is removed by the next open: damage there has tests of its own."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("healthy") / "memory.db"
    filled(path)
    with opened(path) as memory:
        assert memory.verify().problems == ()
    return path


def test_somebody_says_of_every_column_what_it_can_hold() -> None:
    tables = schema.metadata.tables
    assert {name: set(forms) for name, forms in FORMS.items()} == {
        name: {column.name for column in table.columns} for name, table in tables.items()
    }
    assert set(NOT_CHECKABLE) <= {str(column) for table in tables.values() for column in table.columns}


def test_the_database_that_is_damaged_has_something_in_every_table(healthy: Path) -> None:
    empty = {table.name for table in schema.metadata.sorted_tables if not count_of(healthy, table)}
    assert empty == EMPTIED_BY_OPENING


def damaged_copy(healthy: Path, tmp_path: Path, damages: list[Damage]) -> tuple[Path, list[Damage]]:
    """A copy, and what of the damage its database let in."""
    path = tmp_path / "memory.db"
    for old in tmp_path.glob("memory.db*"):
        old.unlink()
    shutil.copy(healthy, path)
    return path, [damage for damage in damages if planted(path, damage)]


def misshapen_values(column: Any) -> list[Any]:
    if isinstance(column.type, Integer | Boolean | Float):
        return ["garbage", 1e300] if isinstance(column.type, Float) else [-5]
    if isinstance(column.type, LargeBinary):
        return ["garbage"]
    return ["garbage \u00e9 \\x", b"\xff\xfe"]


def misshapen_cases(healthy: Path, column: Any) -> list[list[Damage]]:
    """Values that cannot be in a column, by what is planted together: each in a row of its own where there is one."""
    form = FORMS[column.table.name][column.name]
    wrong = [value for value in misshapen_values(column) if not form.holds(value)]
    if count_of(healthy, column.table) >= len(wrong):
        return [[Damage(column.table, column, value, rank) for rank, value in enumerate(wrong)]]
    return [[Damage(column.table, column, value)] for value in wrong]


def in_groups(columns: list[Any], *, most: int, apart: Collection[str]) -> list[list[Any]]:
    """Columns that share a copy: one of a table at most, and none beside one of a table that stands apart."""
    by_table: dict[str, list[Any]] = {}
    for column in columns:
        by_table.setdefault(column.table.name, []).append(column)
    groups = [[column] for column in columns if column.table.name in apart]
    made = [own for name, own in by_table.items() if name not in apart]
    for across in zip_longest(*made):
        there = [column for column in across if column is not None]
        groups += [there[start : start + most] for start in range(0, len(there), most)]
    return groups


def are_named(damages: list[Damage], problems: tuple[Problem, ...]) -> bool:
    """Whether each value that cannot be there has a problem of its own, and another one any."""
    column = damages[0].column
    if FORMS[column.table.name][column.name].holds(damages[0].value):
        return bool(problems)
    prefix, suffix = f"{column.table.name}/", f"/{column.name}"
    named = [one for one in problems if one.what.startswith(prefix) and one.what.endswith(suffix)]
    return len(named) >= len(damages)


def in_each_group(*, most: int, apart: Collection[str] = ()) -> Any:
    groups = in_groups(COLUMNS, most=most, apart=apart)
    return pytest.mark.parametrize("columns", groups, ids=lambda columns: "-".join(map(str, columns)))


in_each_checked_column = pytest.mark.parametrize(
    "column", [one for one in COLUMNS if str(one) not in NOT_CHECKABLE], ids=str
)


@in_each_group(most=len(FORMS))
def test_a_value_that_cannot_be_there_is_named(healthy: Path, tmp_path: Path, columns: list[Any]) -> None:
    for together in misshapen_together(healthy, columns):
        named(healthy, tmp_path, together)


@pytest.mark.sweep(12)
@in_each_group(most=4, apart=TRUTH)
def test_of_a_value_that_cannot_be_there_nothing_dies_and_it_is_mended(
    healthy: Path, tmp_path: Path, columns: list[Any]
) -> None:
    for together in misshapen_together(healthy, columns):
        tried(healthy, tmp_path, together)


@pytest.mark.sweep(60)
@in_each_checked_column
def test_a_value_that_is_wrong_beside_others_is_named(healthy: Path, tmp_path: Path, column: Any) -> None:
    for value in others_for(column, present_value(healthy, column.table, column))[:1]:
        named(healthy, tmp_path, [[Damage(column.table, column, value)]])


@pytest.mark.sweep(12)
@in_each_checked_column
def test_of_a_value_that_is_wrong_beside_others_nothing_dies_and_it_is_mended(
    healthy: Path, tmp_path: Path, column: Any
) -> None:
    for value in others_for(column, present_value(healthy, column.table, column))[:1]:
        tried(healthy, tmp_path, [[Damage(column.table, column, value)]])


def misshapen_together(healthy: Path, columns: list[Any]) -> Iterator[list[list[Damage]]]:
    """The damage of a few columns, by what is planted in one copy."""
    for together in zip_longest(*(misshapen_cases(healthy, column) for column in columns), fillvalue=()):
        yield [list(damages) for damages in together if damages]


def openable(by_column: list[list[Damage]]) -> list[Damage]:
    """The damage with which a database is opened at all."""
    return [damage for own in by_column for damage in own if str(damage.column) not in REFUSED]


def named(healthy: Path, tmp_path: Path, by_column: list[list[Damage]]) -> None:
    """Damage of a few columns in one copy, which is looked at before anything is done with it."""
    path, there = damaged_copy(healthy, tmp_path, openable(by_column))
    if there:
        with opened(path) as memory:
            assert are_all_named(there, memory.verify().problems), f"{' and '.join(map(str, there))} is not named"


def tried(healthy: Path, tmp_path: Path, by_column: list[list[Damage]]) -> None:
    """Damage of a few columns in one copy, which is used and mended."""
    path, there = damaged_copy(healthy, tmp_path, openable(by_column))
    if not there:
        return
    with opened(path) as memory:
        use(memory)
        left = memory.doctor().left
    assert {one.table.name for one in there} <= TRUTH or not left, f"{' and '.join(map(str, there))} leaves {left}"


def are_all_named(damages: list[Damage], problems: tuple[Problem, ...]) -> bool:
    """Whether the damage of each column is named."""
    by_column: dict[str, list[Damage]] = {}
    for damage in damages:
        by_column.setdefault(str(damage.column), []).append(damage)
    return all(are_named(own, problems) for own in by_column.values())


def use(memory: TieredMemory) -> None:
    """What a program does all day; of a damaged truth it may be told by an error of ours."""
    session = memory.session("s")
    try:
        session.context(ASKED, max_tokens=BUDGET)
        session.search("crane")
        with suppress(NotFoundError):  # its row is not found under a digest that is damaged
            session.checkpoint()
    except DamagedRowError as error:
        assert error.table in TRUTH  # noqa: PT017 - either is right
    memory.flush(timeout=0)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_message_that_cannot_be_read_is_a_placeholder_in_a_view_and_an_error_where_it_is_asked_for(
    tmp_path: Path, call_style: CallStyle
) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        events: list[Any] = []
        memory.subscribe(events.append)
        with store_of(memory).database.write() as connection:
            broken = '{"v":1,"class":"AIMessage","fields":{"content":{"$t":"nonsense","v":1}}}'
            query = text("UPDATE ltm_entries SET payload = :broken WHERE message_id = 'a0'")
            connection.execute(query, {"broken": broken})
        context = told(call_style, session.context, max_tokens=2000)
        (stand_in,) = [one for one in context.messages if one.id == "a0"]
        assert "damaged" in stand_in.text
        assert "harbour of order 1000" in stand_in.text
        assert any("'a0'" in repair for repair in context.repairs)
        assert [event.name for event in events].count("message_damaged") == 1
        with pytest.raises(UnknownMessageError, match="a0"):
            told(call_style, session.messages)


def test_a_damaged_list_of_calls_is_read_again_from_the_message_and_told_of(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        session = memory.session("s")
        call = {"name": "look", "args": {"at": "sea"}, "id": "c1"}
        session.add_messages([HumanMessage("Look.", id="q"), AIMessage("", tool_calls=[call], id="a")])
        session.add_messages([ToolMessage("waves", tool_call_id="c1", id="r"), AIMessage("Waves.", id="b")])
        before = session.context(max_tokens=2000).messages
        events: list[Any] = []
        memory.subscribe(events.append)
        with store_of(memory).database.write() as connection:
            connection.execute(text("UPDATE ltm_entries SET calls = '{' WHERE message_id = 'a'"))
        assert session.context(max_tokens=2000).messages == before
        assert [event.details["column"] for event in events if event.name == "damaged_row"] == ["calls"]
        assert memory.doctor().healthy


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("damaged", ["{not json", -7, 2.5])
def test_a_damaged_epoch_stops_no_verb_and_is_made_anew_by_the_next_write(
    tmp_path: Path, call_style: CallStyle, damaged: object
) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        session = memory.session("s")
        session.add_messages(conversation(8))
        session.flush()
        shown = session.context(max_tokens=600).messages
        events: list[Any] = []
        memory.subscribe(events.append)
        with store_of(memory).database.write() as connection:
            connection.execute(text("UPDATE ltm_sessions SET epoch = :damaged"), {"damaged": damaged})
        assert len(told(call_style, session.messages)) == 16
        assert told(call_style, session.context, max_tokens=600).messages == shown
        assert told(call_style, session.checkpoint).id
        assert told(call_style, session.search, "crane")
        assert [event.details["column"] for event in events if event.name == "damaged_row"] == ["epoch"]
        assert memory.verify().problems == ()
        session.add_messages([HumanMessage("Something else was asked.", id="q7")])
        assert "Something else was asked." in str(told(call_style, session.context, max_tokens=600).messages)


def test_an_edited_result_whose_count_is_damaged_still_answers_the_call_that_it_answered(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        session = memory.session("s")
        call = {"name": "look", "args": {}, "id": "old"}
        session.add_messages([HumanMessage("look"), AIMessage("", tool_calls=[call], id="c")])
        session.add_messages([ToolMessage("there", tool_call_id="old", id="r")])
        session.add_messages([ToolMessage("there, and here", tool_call_id="new", id="r")])
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute("UPDATE ltm_entries SET tokens = 'many' WHERE answers IS NOT NULL")
    with open_memory(tmp_path / "memory.db") as memory:
        last = list(memory.session("s").entries())[-1]
    assert (last.text, last.answers, last.revision) == ("there, and here", "old", 1)


@pytest.mark.parametrize(
    ("damage", "works_before"),
    [
        ("UPDATE ltm_sessions SET next_seq = '{'", False),
        ("UPDATE ltm_summaries SET level = '{' WHERE rowid = (SELECT min(rowid) FROM ltm_summaries)", True),
        ("UPDATE ltm_entries SET answers = -7 WHERE answers IS NOT NULL", True),
    ],
)
def test_garbage_in_a_column_is_named_in_no_raw_error_and_mended_at_once(
    healthy: Path, tmp_path: Path, damage: str, *, works_before: bool
) -> None:
    shutil.copyfile(healthy, tmp_path / "memory.db")
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute(damage)
    with open_memory(tmp_path / "memory.db", embeddings=None) as memory:
        session = memory.session(memory.sessions()[0])
        assert memory.verify().problems
        if works_before:
            session.search("harbour")
            session.context(max_tokens=2000)
            memory.flush()
        memory.doctor()
        assert memory.verify().problems == ()
        session.search("harbour")


@pytest.mark.parametrize("damage", ["text = 'something else'", "text = x'ff'", "role = 'tool'", "tokens = -7"])
def test_damage_to_what_is_derived_from_a_message_costs_no_summary_of_it(tmp_path: Path, damage: str) -> None:
    with open_memory(tmp_path / "memory.db", embeddings=None) as memory:
        session = memory.session("s")
        session.add_messages(conversation(12))
        memory.flush()
        before = [(one.id, one.text) for one in summaries_of(session)]
        with store_of(memory).database.write() as connection:
            connection.execute(text(f"UPDATE ltm_entries SET {damage} WHERE message_id = 'q1'"))
        report = memory.doctor()
        assert report.healthy, report.left
        assert [(one.id, one.text) for one in summaries_of(session)] == before


@pytest.mark.parametrize(
    ("damage", "kinds"),
    [
        ("UPDATE ltm_sessions SET digest = 'ffffffffffffffffffffffffffffffff'", {"wrong_session_digest"}),
        ("UPDATE ltm_sessions SET digest = x'ff'", {"damaged_row", "wrong_session_digest"}),
        ("UPDATE ltm_sessions SET session_id = 'other'", {"wrong_session_digest"}),
    ],
    ids=["another", "garbage", "its id"],
)
def test_a_damaged_digest_of_a_session_moves_none_of_its_messages(tmp_path: Path, damage: str, kinds: set[str]) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        session = memory.session("s")
        session.add_messages(conversation(6))
        memory.flush()
        with store_of(memory).database.write() as connection:
            seals = "SELECT seq, seal FROM ltm_entries ORDER BY seq"
            before = connection.execute(text(seals)).all()
            connection.execute(text("UPDATE ltm_entries SET at = at + 1 WHERE message_id = 'q0'"))
            connection.execute(text(damage))
        named = [(one.kind, one.what) for one in memory.verify().problems]
        assert {kind for kind, _ in named} >= kinds
        assert {what for kind, what in named if kind == "message_moved"} <= {"s/q0", "other/q0"}
        left = memory.doctor().left
        assert {one.kind for one in left} == ({"wrong_session_digest"} if "session_id" in damage else set())
        with store_of(memory).database.read() as connection:
            assert connection.execute(text(seals)).all() == before


def test_damage_that_cannot_be_mended_keeps_no_other_from_being_named_and_mended(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        memory.session("s").add_messages(conversation(12))
        memory.flush()
        made = [one.id for one in summaries_of(memory.session("s")) if one.level == 1]
        first = sorted({made[0], min(made)})  # in whichever order they are looked at
        others = [one for one in made if one not in first]
        copied = "(SELECT payload FROM ltm_entries WHERE message_id = 'q6')"
        for statement in (
            f"UPDATE ltm_entries SET payload = {copied} WHERE message_id = 'a0'",
            "UPDATE ltm_entries SET text = 'something else' WHERE message_id = 'q7'",
            *(f"UPDATE ltm_summaries SET sources = '[\"nobody\"]' WHERE id = '{one}'" for one in first),
            *(f"UPDATE ltm_summaries SET first_at = 77 WHERE id = '{one}'" for one in others),
        ):
            with store_of(memory).database.write() as connection:
                connection.execute(text(statement))
        named = {problem.what for problem in memory.verify().problems if problem.kind == "wrong_summary"}
        assert all(any(one in what for what in named) for one in others), named
        left = " ".join(problem.what for problem in memory.doctor().left)
        assert "a0" in left
        assert "q7" not in left
        assert "order 1007" in next(one.text for one in entries_of(memory.session("s")) if one.id == "q7")


def test_on_postgresql_damage_is_named_and_mended_too(postgres_url: str) -> None:
    filled(postgres_url)
    with opened(postgres_url) as memory:
        assert memory.verify().problems == ()
        for statement in (
            "UPDATE ltm_summaries SET sources = '{' WHERE id = (SELECT max(id) FROM ltm_summaries)",
            "UPDATE ltm_entries SET track = 'x', calls = '{' WHERE message_id = 'a2'",
            "UPDATE ltm_plans SET payload = '[]'",
            "UPDATE ltm_runs SET zones = 'garbage'",
            "UPDATE ltm_outcomes SET payload = '{}'",
            "UPDATE ltm_checkpoints SET reasons = '5'",
            "UPDATE ltm_sessions SET next_seq = 3, digest = repeat('0', 32) WHERE key = 1",
        ):
            with store_of(memory).database.write() as connection:
                connection.execute(text(statement))
            assert memory.verify().problems, statement
            use(memory)
        assert memory.doctor().healthy
        assert len(memory.session("s").messages()) > 20


@pytest.mark.parametrize("scope", [None, Scope()], ids=["the session's", "a track's alone"])
@pytest.mark.parametrize("damaged", ["alone = 7", "alone = 'x'", "at = 'x'", "last_seq = 'x'", "track = x'ff'"])
def test_what_a_checkpoint_has_of_its_own_is_put_back_from_its_contents(
    tmp_path: Path, scope: Scope | None, damaged: str
) -> None:
    path = tmp_path / "memory.db"
    with opened(path) as memory:
        session = memory.session("s", track="scout", scope=scope)
        session.add_messages(conversation(1))
        session.checkpoint("by hand")
        before = session.checkpoints()
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(f"UPDATE ltm_checkpoints SET {damaged}")
    with opened(path) as memory:
        assert memory.doctor().left == ()
        assert memory.session("s", track="scout", scope=scope).checkpoints() == before


LEFT_TO_REMOVE = (
    "INSERT INTO ltm_removals (key, begun_at) VALUES (77, 1.0)",
    (
        "INSERT INTO ltm_removal_targets (removal, target, seq) SELECT 77, session_key, seq FROM ltm_entries WHERE "
        "message_id = 'f2'"
    ),
)


@pytest.mark.parametrize("column", schema.removal_targets.columns, ids=str)
def test_a_removal_whose_targets_are_damaged_ends_or_is_named_and_takes_nothing_else(
    healthy: Path, tmp_path: Path, column: Any
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(healthy, path)
    with closing(sqlite3.connect(path)) as raw, raw:
        (before,) = raw.execute("SELECT count(*) FROM ltm_entries").fetchone()
        for statement in LEFT_TO_REMOVE:
            raw.execute(statement)
        # A number below 0 is one that is written there: the last of a session's messages that go.
        damaged = "'garbage'" if column.name == "seq" else "-5"
        raw.execute(f"UPDATE ltm_removal_targets SET {column.name} = {damaged}")
    with opened(path) as memory:
        use(memory)
        report = memory.doctor()
        assert {one.kind for one in report.left} <= {"damaged_row"}
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT count(*) FROM ltm_entries").fetchone() == (before,)


@pytest.mark.parametrize(
    "broken", ["DELETE FROM ltm_removals WHERE key = 77", "UPDATE ltm_removals SET finished_at = 5.0 WHERE key = 77"]
)
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_was_left_to_remove_is_removed_though_its_removal_is_gone_or_said_to_be_finished(
    healthy: Path, tmp_path: Path, call_style: CallStyle, broken: str
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(healthy, path)
    with closing(sqlite3.connect(path)) as raw, raw:
        for statement in (*LEFT_TO_REMOVE, broken):
            raw.execute(statement)
    with opened(path) as memory:
        assert {one.kind for one in told(call_style, memory.verify).problems} == {"wrong_removal"}
        assert told(call_style, memory.doctor).healthy
        assert "f2" not in [one.id for one in memory.session("s").messages()]


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("UPDATE ltm_forgotten_sessions SET digest = zeroblob(12) WHERE key = 1", "wrong_tombstones"),
        ("UPDATE ltm_forgotten_sessions SET key = 55 WHERE key = 1", "wrong_tombstones"),
        ("DELETE FROM ltm_forgotten_sessions WHERE key = 1", "wrong_tombstones"),
        ("UPDATE ltm_sessions SET forgotten = NULL", "wrong_tombstones"),
        ("UPDATE ltm_sessions SET forgotten = 99 WHERE forgotten IS NOT NULL", "wrong_tombstones"),
        ("UPDATE ltm_forgotten_sessions SET next_seq = 1", "wrong_next_number"),
        ("UPDATE ltm_forgotten SET seq = 900 WHERE forgotten_session = 1", "wrong_next_number"),
    ],
)
def test_what_was_forgotten_is_held_back_again_after_its_rows_were_mended(
    healthy: Path, tmp_path: Path, statement: str, kind: str
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(healthy, path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(statement)
    with opened(path) as memory:
        assert kind in {one.kind for one in memory.verify().problems}
        assert memory.doctor().healthy
        memory.session("s").add_messages([HumanMessage("Forget this one.", id="f1")])
        memory.session("gone").add_messages(conversation(1, start=200))
        assert "f1" not in [one.id for one in memory.session("s").messages()]
        assert memory.session("gone").messages() == []
        memory.session("gone").add_messages([HumanMessage("A new one.", id="n1")])
        assert memory.verify().problems == ()


def test_a_damaged_number_of_a_forgotten_session_gives_none_of_its_numbers_again(healthy: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(healthy, path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE ltm_forgotten_sessions SET next_seq = 'garbage', epoch = x'ff'")
    with opened(path) as memory:
        memory.session("gone").add_messages([HumanMessage("A new one.", id="n1")])
        assert memory.doctor().healthy
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT seq FROM ltm_entries WHERE message_id = 'n1'").fetchone() == (3,)


def test_copies_of_a_message_on_two_tracks_are_summarised_each_on_its_own_and_nothing_is_wrong(
    tmp_path: Path,
) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        for track in ("main", "scout"):
            memory.session("s", track=track).add_messages(conversation(8))
        memory.flush()
        assert memory.verify().problems == ()
        with store_of(memory).database.write() as connection:
            connection.execute(text("UPDATE ltm_summaries SET track = 'elsewhere' WHERE level = 1"))
        assert memory.verify().problems
        assert memory.doctor().healthy


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_counts_of_another_counter_are_a_note_and_counted_anew_on_demand(tmp_path: Path, call_style: CallStyle) -> None:
    path = tmp_path / "memory.db"
    with open_memory(path, token_counter=EstimatingCounter()) as memory:
        memory.session("s").add_messages(conversation(12))
        memory.flush()
    with open_memory(path, token_counter=lambda said: len(said) // 2) as memory:
        report = told(call_style, memory.verify)
        assert report.problems == ()
        assert any("another counter" in note for note in report.notes)
        rebuilt = told(call_style, memory.rebuild_index)
        assert (rebuilt.problems, rebuilt.pending_vectors > 0) == ((), True)
        assert not any("another counter" in note for note in rebuilt.notes)
        with store_of(memory).database.write() as connection:
            connection.execute(text("UPDATE ltm_entries SET tokens = tokens + 1 WHERE seq = 1"))
        assert "wrong_count" in {problem.kind for problem in memory.verify().problems}


def test_counts_from_before_marks_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with open_memory(path) as memory:
        memory.session("s").add_messages(conversation(3))
        with store_of(memory).database.write() as connection:
            connection.execute(text("UPDATE ltm_entries SET counter = NULL, seal = NULL"))
    with open_memory(path, token_counter=lambda said: len(said) // 2) as memory:
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_embedder_that_appears_later_finds_its_vectors_named_and_made(tmp_path: Path, call_style: CallStyle) -> None:
    path = tmp_path / "memory.db"
    with open_memory(path) as memory:
        memory.session("s").add_messages(conversation(4))
        memory.flush()
        assert any("without an embedder" in note for note in memory.verify().notes)
    with open_memory(path, embeddings=HashingEmbeddings()) as memory:
        report = told(call_style, memory.verify)
        assert report.pending_vectors == report.passages > 0
        assert any("have no vector yet" in note for note in report.notes)
        mended = told(call_style, memory.doctor)
        assert (mended.left, mended.notes) == ((), ())
        assert memory.verify().vectors == report.passages


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"leaf": 1}
    for _ in range(levels - 1):
        value = {"inner": value}
    return value


@pytest.mark.parametrize("levels", [103, 150, 3000])
@pytest.mark.parametrize("field", ["tool_calls", "content", "additional_kwargs", "response_metadata"])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_is_nested_too_deeply_is_refused_with_the_limit(levels: int, field: str, call_style: CallStyle) -> None:
    values: dict[str, Any] = {
        "tool_calls": [{"name": "t", "args": nested(levels), "id": "c"}],
        "content": [{"type": "blob", "value": nested(levels)}],
        "additional_kwargs": nested(levels),
        "response_metadata": nested(levels),
    }
    message = AIMessage(**({"content": "x"} | {field: values[field]}), id="deep")
    with open_memory() as memory:
        session = memory.session("s")
        with pytest.raises(InvalidInputError, match=rf"{field}.* nested too deep \(at most 102 levels"):
            told(call_style, session.add_messages, [HumanMessage("first", id="q"), message])
        assert memory.sessions() == [] or session.messages() == []
        assert memory.verify().problems == ()


def test_a_hundred_levels_of_arguments_are_kept_as_they_are() -> None:
    message = AIMessage("", tool_calls=[{"name": "t", "args": nested(100), "id": "c"}], id="a")
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([message])
        assert session.messages() == [message]
        assert memory.verify().problems == ()


@pytest.mark.parametrize("artifact", [nested(150), nested(3000), object()], ids=["deep", "very deep", "no JSON"])
def test_an_artifact_that_cannot_be_kept_is_reported_and_verify_finds_nothing_wrong(artifact: object) -> None:
    with open_memory() as memory:
        events: list[Any] = []
        memory.subscribe(events.append)
        memory.session("s").add_messages([ToolMessage("x", tool_call_id="c", artifact=artifact, id="r")])
        assert [event.name for event in events] == ["artifact_not_kept"]
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_graph_goes_on_where_its_model_answers_with_what_is_nested_too_deeply(call_style: CallStyle) -> None:
    deep = AIMessage("Done.", additional_kwargs=nested(200), id="deep")  # LangGraph itself keeps about 250
    with open_memory() as memory:
        events: list[Any] = []
        memory.subscribe(events.append)
        builder = StateGraph(ChatState)
        builder.add_node("remember", remember_node(memory))
        builder.add_edge(START, "remember")
        graph = builder.compile(checkpointer=InMemorySaver())
        for number in range(2):
            turn = [HumanMessage(f"Go on {number}.", id=f"q{number}"), *([deep] if not number else [])]
            await Runner(call_style).invoke(graph, {"messages": turn}, thread())
        assert [one.id for one in memory.session("t").messages()] == ["q0", "deep", "q1"]
        assert [event.name for event in events] == ["artifact_not_kept"]
        assert "nested deeper than 102" in events[0].reason
        assert memory.verify().problems == ()


def test_typed_errors_stay_in_the_family() -> None:
    assert issubclass(DamagedRowError, TieredMemoryError)
