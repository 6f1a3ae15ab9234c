"""Invariant 10: which facts hold depends on the messages that there are, never on how they came to be read."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import select

from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.summaries.facts.rows import all_facts, drop_facts_of_messages
from langchain_tiered_memory.summaries.facts.supersession import superseded
from tests.memory_builders import open_memory, quick_settings, ref_of, store_of
from tests.store_builders import append, fact, forget_messages, incoming, open_store, session_with, summarised

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import Fact, SessionRef

pytestmark = pytest.mark.slow

MESSAGES = 12
_numbers = itertools.count()
SUBJECTS = ("port", "staging port", "budget", "crane", "")
VALUES = ("8080", "8443", "9000", "42")
FORMS = (
    "The {subject} is {value}.",
    "Correction: the {subject} is now {value}.",
    "Use {value}, not {other}.",
    "We chose {value} for the {subject}.",
)


@st.composite
def stated(draw: st.DrawFn, seq: int) -> Fact:
    """A fact of one message, about one of few things, so that many are about the same."""
    subject, value, other = (draw(st.sampled_from(one)) for one in (SUBJECTS, VALUES, VALUES))
    text = draw(st.sampled_from(FORMS)).format(subject=subject or "thing", value=value, other=other)
    kind = draw(st.sampled_from(["number", "decision"]))
    by = draw(st.sampled_from(["user", "assistant"]))
    said = fact(seq, text, subject=subject, kind=kind, by=by, attribute="", value=value)
    instead_of = draw(st.lists(st.integers(1, max(seq - 1, 1)), max_size=2, unique=True))
    return replace(said, by_model=True, weight=0.99, instead_of=tuple(instead_of)) if draw(st.booleans()) else said


@st.composite
def tellings(draw: st.DrawFn) -> tuple[list[list[Fact]], list[int]]:
    """The facts of each message of a session, and the order in which its chunks of two are committed."""
    facts = [draw(st.lists(stated(seq), max_size=2, unique_by=lambda one: one.id)) for seq in range(1, MESSAGES + 1)]
    return facts, draw(st.permutations(range(0, MESSAGES, 2)))


def standing(store: SqlStore, ref: SessionRef) -> dict[str, tuple[str, str | None]]:
    with store.database.read() as connection:
        return {one.id: (one.status, one.superseded_by) for one in all_facts(connection, ref.key)}


def right(facts: Sequence[Fact]) -> dict[str, tuple[str, str | None]]:
    gone = superseded(facts)
    return {one.id: ("superseded" if one.id in gone else "active", gone.get(one.id)) for one in facts}


def committed(store: SqlStore, facts: list[list[Fact]], order: Sequence[int], name: str) -> SessionRef:
    ref = session_with(store, MESSAGES, name)
    for first in order:
        summarised(store, ref, 1, first + 1, first + 2, facts=[*facts[first], *facts[first + 1]])
    return ref


def holds_whatever_came_first(store: SqlStore, telling: Any, gone: set[int], *, name: str = "s") -> None:
    facts, order = telling
    ref = committed(store, facts, order, name)
    assert standing(store, ref) == right([one for of_message in facts for one in of_message])
    branch = [one for of_message in facts for one in of_message if one.seq not in gone]
    found = store.facts.candidates(ref, up_to=MESSAGES, without=gone, limit=999)
    assert {one.id for one in found} == {one for one, (status, _) in right(branch).items() if status == "active"}
    with store.database.write() as connection:
        drop_facts_of_messages(connection, ref.key, sorted(gone))
    assert standing(store, ref) == right(branch)
    ref = store.transcript.find(name) or ref
    for summary in store.tree.roots(ref, limit=99):
        again = [one for seq in range(summary.first_seq, summary.last_seq + 1) for one in facts[seq - 1]]
        assert store.facts.replace(ref, summary, again)
    assert standing(store, ref) == right([one for of_message in facts for one in of_message])
    forget_messages(store, ref, [f"m{seq}" for seq in range(1, MESSAGES + 1)])
    with store.database.read() as connection:
        assert connection.execute(select(schema.facts)).first() is None


gone_ones = st.sets(st.integers(1, MESSAGES), max_size=4)


@settings(max_examples=30)
@given(tellings(), gone_ones)
def test_a_facts_standing_depends_on_the_facts_there_are_and_not_on_their_order(telling: Any, gone: set[int]) -> None:
    store = open_store()
    holds_whatever_came_first(store, telling, gone)
    store.database.close()


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_so_it_does_on_postgresql(postgres_url: str, data: st.DataObject) -> None:
    store = open_store(postgres_url)
    name = f"session {next(_numbers)}"  # the database is the same for each example
    holds_whatever_came_first(store, data.draw(tellings()), data.draw(gone_ones), name=name)
    store.database.close()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(VALUES), st.booleans()),
        st.tuples(st.just("edit"), st.integers(0, 30), st.sampled_from(VALUES)),
        st.tuples(st.just("forget"), st.integers(0, 30), st.just("")),
        st.tuples(st.just("flush"), st.just(0), st.just("")),
    ),
    min_size=4,
    max_size=25,
)


@settings(max_examples=25)
@given(steps)
def test_edits_and_forgetting_leave_no_fact_of_words_that_are_gone(told: list[tuple[str, Any, Any]]) -> None:
    memory = open_memory(None, settings=quick_settings(messages=3))
    session = memory.session("s")
    session.add_messages([HumanMessage("Good morning, let us talk of the harbour.", id="first")])
    words: dict[str, str] = {}
    gone: list[str] = []
    for number, (what, one, other) in enumerate(told):
        if what == "say":
            text = f"{'Correction: the' if other else 'The'} port of the gate {number}x is {one}{number}."
            words[f"m{number}"] = text
            session.add_messages([HumanMessage(text, id=f"m{number}"), AIMessage("Noted.", id=f"a{number}")])
        elif what == "flush":
            session.flush()
        elif words:
            chosen = sorted(words)[one % len(words)]
            gone.append(words[chosen].split()[-1])
            if what == "forget":
                session.forget(message_ids=[chosen])
                del words[chosen]
            else:
                words[chosen] = f"The port of the gate is {other}77{number}."
                session.add_messages([HumanMessage(words[chosen], id=chosen)])
        left = " ".join(fact.text for fact in session.facts(k=999, superseded=True))
        assert not [value for value in gone if value in left]
    session.flush()
    assert memory.verify().problems == ()
    assert store_of(memory).facts.unread_count(ref_of(session)) == 0
    ids = {message.id for message in session.messages()}
    found = session.facts(k=999, superseded=True)
    assert all(fact.message_ids and set(fact.message_ids) <= ids for fact in found)
    memory.close()


def test_a_database_that_is_read_again_whole_has_the_facts_that_it_had(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db", settings=quick_settings(messages=3)) as memory:
        session = memory.session("s")
        for number in range(12):
            text = f"{'Correction: the' if number % 3 else 'The'} port of the gate is {8000 + number}."
            session.add_messages([HumanMessage(text, id=f"q{number}"), AIMessage("Noted.", id=f"a{number}")])
        session.flush()
        before = session.facts(k=99, superseded=True)
        assert before
        assert memory.rebuild_index().problems == ()
        assert session.facts(k=99, superseded=True) == before
        store = store_of(memory)
        append(store, "s", incoming("nothing", "q3"))
        assert "8003" not in " ".join(fact.text for fact in session.facts(k=99, superseded=True))
