"""`doctor()` mends what `verify()` names, that alone, and says what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory.maintenance import inspection, verify
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.properties.test_agreement import FAULTS, LAST_ENTRY, ids_everywhere, index_of, plant

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

BEYOND_MENDING = {"message_changed", "unreadable_message"}
"""What a message said cannot be derived from anything."""


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_healthy_memory_is_left_as_it_is(memory: TieredMemory, call_style: CallStyle) -> None:
    before = ids_everywhere(memory)
    report = told(call_style, memory.doctor)
    assert (report.found, report.mended, report.left) == ((), (), ())
    assert ids_everywhere(memory) == before


@pytest.mark.parametrize(("kind", "statement"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_named_and_mended_or_named_as_left(memory: TieredMemory, kind: str, statement: str) -> None:
    plant(memory, statement)
    report = memory.doctor()
    assert kind in {problem.kind for problem in report.found}
    if kind in BEYOND_MENDING:
        assert kind in {problem.kind for problem in report.left}
        return
    memory.flush()
    assert report.healthy, report.left
    assert report.mended == report.found
    assert memory.verify().problems == ()


def test_vectors_that_vanished_or_belong_to_nobody_are_mended_without_embedding_the_rest(memory: TieredMemory) -> None:
    index: Any = index_of(memory)
    gone = sorted(index.ids())[:3]
    index.remove(gone)
    embedded: list[int] = []
    add = index.add
    index.add = lambda rows: (embedded.extend(row.id for row in rows), add(rows))[1]
    report = memory.doctor()
    assert {problem.kind for problem in report.mended} == {"missing_vector"}
    assert report.healthy
    assert sorted(embedded) == gone


@pytest.mark.parametrize(
    "wrong",
    [f"seq = {LAST_ENTRY}", f"sources = '[' || seq || ',' || {LAST_ENTRY} || ']'"],
    ids=["its message", "its other messages"],
)
def test_a_fact_of_another_summarys_messages_is_found_where_facts_are_yet_to_be_read(
    memory: TieredMemory, wrong: str
) -> None:
    plant(
        memory,
        f"UPDATE ltm_facts SET {wrong} WHERE id = (SELECT min(id) FROM ltm_facts WHERE session_key = 1)",
        "UPDATE ltm_summaries SET facts_read = 0",
    )
    assert "orphan_fact" in {problem.kind for problem in memory.verify().problems}
    report = memory.doctor()
    assert report.healthy, report.left
    assert memory.verify().problems == ()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM ltm_summaries",
        "UPDATE ltm_summaries SET text = 'another'",
        "UPDATE ltm_summaries SET sources = 'no JSON'",
    ],
    ids=["lost", "changed", "unreadable"],
)
def test_summaries_that_go_are_removed_together(
    memory: TieredMemory, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = memory.verify().sessions
    plant(memory, statement)
    removals: list[Any] = []
    uproot = inspection.uproot
    monkeypatch.setattr(inspection, "uproot", lambda *given: (removals.append(given), uproot(*given))[1])
    report = memory.doctor()
    assert len(report.found) > sessions
    assert report.healthy, report.left
    assert 1 <= len(removals) <= sessions


def looks_of(memory: TieredMemory, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often `doctor()` looks at the whole database, from its first look to its last."""
    looks: list[object] = []
    general = verify._general
    monkeypatch.setattr(verify, "_general", lambda *given: (looks.append(given), general(*given))[1])
    memory.doctor()
    return len(looks)


LOOKS = 4
"""Before and after, one that mends each part before it looks at the next, and one that finds nothing more."""


def test_faults_of_all_parts_are_mended_in_one_walk_over_them(
    memory: TieredMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(
        memory,
        "UPDATE ltm_entries SET group_seq = -5 WHERE seq = 1",
        "UPDATE ltm_entries SET open_calls = '*' WHERE seq = 2",
        "DELETE FROM ltm_passages WHERE seq = 2",
        "UPDATE ltm_sessions SET tokens = tokens + 1",
    )
    assert looks_of(memory, monkeypatch) == LOOKS
    assert memory.verify().problems == ()


def test_a_remedy_that_is_undone_every_time_is_not_tried_for_long(
    memory: TieredMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = "UPDATE ltm_sessions SET entries = abs(random()) WHERE key = NEW.key"
    plant(
        memory,
        f"CREATE TRIGGER undoes AFTER UPDATE OF entries ON ltm_sessions BEGIN {undo}; END",
        "UPDATE ltm_sessions SET entries = entries + 1",
    )
    assert looks_of(memory, monkeypatch) == LOOKS
    assert {problem.kind for problem in memory.verify().problems} == {"wrong_total"}
