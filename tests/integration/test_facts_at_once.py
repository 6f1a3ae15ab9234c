"""Facts of messages that no summary stands for yet: read when they are asked for, and kept with their summary alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.sql.schema import facts as table
from langchain_tiered_memory.types import Scope
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory import TieredMemory


def kept(memory: TieredMemory) -> int:
    with memory.core.runtime.store.database.read() as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_fact_is_there_after_the_first_message_and_is_not_stored_for_it(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Keep the garden shed under 900 euros.", id="m1")])
        (fact,) = told(call_style, session.facts)
        assert fact.text == "Keep the garden shed under 900 euros."
        assert fact.message_ids == ("m1",)
        assert [one.text for one in told(call_style, session.facts, "garden shed")] == [fact.text]
        assert told(call_style, session.facts, "helicopter") == []
        assert kept(memory) == 0


def test_what_is_summarised_later_states_the_same_facts_under_the_same_ids() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        for number in range(40):
            session.add_messages(
                [HumanMessage(f"The port of service {number} is {8000 + number}."), AIMessage("Noted.")]
            )
        before = {fact.id for fact in session.facts(k=999, superseded=True)}
        assert kept(memory) == 0
        session.flush()
        assert kept(memory) > 0
        assert {fact.id for fact in session.facts(k=999, superseded=True)} == before


def test_a_correction_counts_before_it_is_summarised() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The port of the database is 5432.")])
        for number in range(40):
            session.add_messages([HumanMessage(f"Point {number} of the list is done."), AIMessage("Good.")])
        session.flush()
        assert kept(memory) > 0
        session.add_messages([HumanMessage("Correction: the port of the database is 5433, not 5432.")])
        said = " ".join(fact.text for fact in session.facts("port of the database"))
        assert "5433" in said
        assert "is 5432." not in said
        was = next(fact for fact in session.facts("port of the database", superseded=True) if "is 5432." in fact.text)
        assert was.status == "superseded"
        assert was.superseded_by is not None


def test_a_handle_of_its_own_track_reads_its_own_alone() -> None:
    with open_memory() as memory:
        memory.session("s").add_messages([HumanMessage("The crane is yellow.")])
        apart = memory.session("s", track="helper", scope=Scope())
        apart.add_messages([HumanMessage("The port of the helper is 7000.")])
        assert [fact.text for fact in apart.facts()] == ["The port of the helper is 7000."]
