"""A person corrects what the record states: the correction stands, is told with its source, and can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.summaries.tree.fact_reading import facts_from, facts_of_chunk
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session, TieredMemory

OLD, NEW = "The port of the database is 5432.", "The port of the database was always 6000."


def talked(memory: TieredMemory, *, turns: int = 12) -> Session:
    """A session with a statement, and enough behind it for a summary."""
    session = memory.session("s")
    session.add_messages([HumanMessage(OLD, id="m0"), AIMessage("Noted.", id="a0")])
    for number in range(1, turns):
        session.add_messages([HumanMessage(f"Point {number} of the list is done."), AIMessage("Good.")])
    return session


def the_port(session: Session) -> str:
    (first, *_) = session.facts("port of the database")
    return first.text


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("is_summarised", [False, True])
def test_a_correction_takes_the_place_of_a_fact_and_stays_there(call_style: CallStyle, is_summarised: bool) -> None:  # noqa: FBT001
    with open_memory() as memory:
        session = talked(memory)
        if is_summarised:
            session.flush()
        (old, *_) = session.facts("port of the database")
        new = told(call_style, session.correct, old.id[:6], NEW)
        assert (new.text, new.by, new.status) == (NEW, "user", "active")
        (source,) = [message for message in session.messages() if message.id in new.message_ids]
        assert source.text == NEW
        for _ in range(2):
            assert the_port(session) == NEW
            was = next(fact for fact in session.facts("port", superseded=True) if fact.text == OLD)
            assert (was.status, was.superseded_by) == ("superseded", new.id)
            for number in range(12):
                session.add_messages([HumanMessage(f"Later point {number} is done."), AIMessage("Fine.")])
            session.flush()
        shown = session.context("Which port has the database?", max_tokens=1500)
        assert NEW in "\n".join(message.text for message in shown.messages)
        assert NEW in [hit.text for hit in session.search("port of the database")]
        memory.rebuild_index()
        assert the_port(session) == NEW
        assert memory.verify().problems == ()


def test_an_assistant_that_repeats_the_old_statement_changes_nothing() -> None:
    with open_memory() as memory:
        session = talked(memory)
        session.correct(session.facts("port of the database")[0].id, NEW)
        session.add_messages([AIMessage("As noted: the port of the database is 5432.")])
        session.flush()
        assert NEW in [fact.text for fact in session.facts("port of the database")]
        assert OLD not in [fact.text for fact in session.facts("port of the database")]


def test_a_correction_is_undone_by_forgetting_its_message() -> None:
    with open_memory() as memory:
        session = talked(memory)
        session.flush()
        new = session.correct(session.facts("port of the database")[0].id, NEW)
        session.flush()
        session.forget(message_ids=list(new.message_ids))
        assert the_port(session) == OLD
        assert all(fact.status == "active" for fact in session.facts("port", superseded=True) if fact.text == OLD)


def test_a_correction_can_be_corrected() -> None:
    with open_memory() as memory:
        session = talked(memory)
        first = session.correct(session.facts("port of the database")[0].id, NEW)
        second = session.correct(first.id, "The port of the database is 7000 after all.")
        assert the_port(session) == second.text
        with pytest.raises(InvalidInputError, match="replaced already"):
            session.correct(first.id, "The port of the database is 1.")


def test_a_model_that_summarises_the_correction_cannot_leave_it_out() -> None:
    with open_memory() as memory:
        session = talked(memory)
        new = session.correct(session.facts("port of the database")[0].id, NEW)
        store = memory.core.runtime.store.transcript
        ref = store.find("s")
        assert ref is not None
        entries = list(reversed(store.not_summarised(ref, limit=99)))
        text = "- The database listens on 5432. [1]"
        assert new.id in {fact.id for fact in facts_from(text, entries, facts_of_chunk(entries), by_rules=False)}


@pytest.mark.parametrize(
    "correction",
    [
        "Scratch what I said about the railway migration: it is Sunniva Okonkwo now.",
        "Sorry, I mixed things up: for the railway migration it should be Sunniva Okonkwo.",
    ],
)
def test_of_what_a_model_repeats_without_a_mark_rules_tell_what_it_ends(correction: str) -> None:
    said = ("For the railway migration we are dealing with Bastien Hallberg from now on.", correction)
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage(one) for one in said])
        store = memory.core.runtime.store.transcript
        ref = store.find("s")
        assert ref is not None
        entries = list(reversed(store.not_summarised(ref, limit=99)))

        def holding(mark: str) -> list[str]:
            text = "\n".join(f"- {mark}{one}" for one in said)
            facts = facts_from(text, entries, facts_of_chunk(entries), by_rules=False)
            gone = superseded(facts)
            return [one.value for one in facts if one.id not in gone]

        assert holding("") == ["Sunniva Okonkwo"]
        assert holding("[keep] ") == ["Bastien Hallberg", "Sunniva Okonkwo"], "who marks says what it replaces"


def test_what_corrects_nothing_is_refused_and_nothing_is_written() -> None:
    with open_memory() as memory:
        session = talked(memory)
        fact = session.facts("port of the database")[0]
        before = len(session.messages())
        with pytest.raises(NotFoundError):
            session.correct("zzz", NEW)
        with pytest.raises(InvalidInputError, match="use some of the words"):
            session.correct(fact.id, "Bananas ripen quickly.")
        with pytest.raises(InvalidInputError):
            session.correct(fact.id, "  ")
        assert len(session.messages()) == before


def test_a_message_of_that_kind_that_names_nothing_is_read_as_any_other() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        odd = HumanMessage("The crane of hall 3 is yellow.", additional_kwargs={"tiered_memory_corrects": "all"})
        session.add_messages([odd], kind="correction")
        session.add_messages([HumanMessage("The crane of hall 4 is red.")], kind="correction")
        assert {fact.text for fact in session.facts()} == {
            "The crane of hall 3 is yellow.",
            "The crane of hall 4 is red.",
        }
