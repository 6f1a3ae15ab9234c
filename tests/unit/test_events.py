"""Every event is a member with its level; the documentation names each of them."""

from __future__ import annotations

import ast
import logging
from pathlib import Path
from typing import Any

import pytest

import langchain_tiered_memory
from langchain_tiered_memory.events import DURABLE, EventName, table
from langchain_tiered_memory.types.outcomes import OutcomeKind, Zone
from tests.memory_builders import open_memory

GUIDE = Path(__file__).parents[2] / "docs" / "extending.md"
PACKAGE = Path(langchain_tiered_memory.__file__).parent


def test_the_documentation_has_the_table_of_events_as_it_is() -> None:
    assert table() in GUIDE.read_text(encoding="utf-8")


def test_every_event_says_what_it_means_in_a_line() -> None:
    for one in EventName:
        assert one.about
        assert one.level in (logging.INFO, logging.WARNING)


def test_every_event_is_sent_from_somewhere() -> None:
    sent = {
        node.attr
        for path in PACKAGE.rglob("*.py")
        if path.name != "events.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "EventName"
    }
    made = {f"VIEW_{kind.name}" for kind in OutcomeKind} | {f"ZONE_{zone.name}" for zone in Zone}
    assert {one.name for one in EventName} == sent | made


@pytest.mark.parametrize("name", ["answer_not_stored", "window_not_learned", "archive_changed"])
def test_what_a_person_should_look_at_is_a_warning(name: str) -> None:
    assert EventName(name).level == logging.WARNING


def test_a_name_that_nobody_knows_is_refused() -> None:
    with open_memory() as memory, pytest.raises(ValueError, match="no_such_event"):
        memory.core.runtime.report("no_such_event", "it happened")  # type: ignore[arg-type]


def test_a_name_is_a_plain_string_for_who_listens(caplog: pytest.LogCaptureFixture) -> None:
    events: list[Any] = []
    caplog.set_level(logging.INFO, logger="langchain_tiered_memory")
    with open_memory() as memory:
        memory.subscribe(events.append)
        memory.core.runtime.report(EventName.ANSWER_NOT_STORED, "it happened")
    assert events[0].name == "answer_not_stored"
    assert f"{events[0].name}" == "answer_not_stored"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert EventName.SUMMARY_MADE in DURABLE
