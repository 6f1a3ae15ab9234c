"""Which facts hold after some came or went, worked out from what hangs on those, is what follows from all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from langchain_tiered_memory.sql.rows import insert_all
from langchain_tiered_memory.sql.schema import facts as table
from langchain_tiered_memory.summaries.facts import rows, supersession
from tests.store_builders import fact, open_store, session_with

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from langchain_tiered_memory.types.records import Fact

MESSAGES = 30
SUBJECTS = ("port", "staging port", "budget", "crane", "", "garden port")
VALUES = ("8080", "8443", "9000", "42")
FORMS = (
    "The {subject} is {value}.",
    "Correction: the {subject} is now {value}.",
    "Use {value}, not {other}.",
    "We chose {value} for the {subject}.",
    "Not {other}.",
    "The {subject} is cancelled.",
    "Suppose the {subject} is {value}.",
)


def stated(draw: Random, before: list[Fact]) -> Fact:
    """A fact about one of few things, which may name messages or facts that it changes."""
    seq, subject = draw.randint(1, MESSAGES), draw.choice(SUBJECTS)
    value, other = draw.choice(VALUES), draw.choice(VALUES)
    said = draw.choice(FORMS).format(subject=subject or "thing", value=value, other=other)
    kind = draw.choice(["number", "decision", "number", "decision", "goal"])
    by = draw.choice(["user", "assistant"])
    one = fact(seq, said, subject=subject, kind=kind, by=by, attribute="", value=value)
    if draw.randint(0, 2):
        return one
    named = draw.sample(range(1, seq + 1), min(seq, draw.randint(0, 2)))
    ends = [old.id[: draw.choice([4, 8])] for old in draw.sample(before, min(len(before), draw.randint(0, 1)))]
    return replace(one, by_model=True, weight=0.99, instead_of=tuple(named), ends=tuple(ends))


def written(connection: Connection, key: int, found: list[Fact]) -> None:
    new = [rows.as_stored(one) for one in found]
    insert_all(connection, table, [rows._values(key, "a" * 32, one, least_mentions=1) for one in new])
    rows.stand_anew(connection, key, new)


def changed(connection: Connection, key: int, draw: Random, step: int) -> None:
    """Some facts come, two are joined, or some go."""
    there = rows.all_facts(connection, key)
    held = [one for one in there if one.status == "active" and not one.joins]
    what = draw.choice(["come", "come", "go", "join"])
    if what == "come" or not there:
        new = {one.id: one for one in (stated(draw, there) for _ in range(draw.randint(1, 6)))}
        written(connection, key, [one for one in new.values() if one.id not in {old.id for old in there}])
    elif what == "join" and len(held) > 1:
        first, last = sorted(draw.sample(held, 2), key=lambda one: (one.seq, one.id))
        text, joins = f"Both: {first.text} {last.text}", (first.id, last.id)
        written(connection, key, [replace(last, id=f"{step:016x}", text=text, joins=joins, by_model=True)])
    else:
        going = draw.sample(there, min(len(there), draw.randint(1, 5)))
        rows.stand_anew(connection, key, rows.drop_facts(connection, key, [one.id for one in going]))


@pytest.mark.parametrize(("nearest", "near_seqs"), [(2, 0), (3, 2), (40, 12)])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.randoms(use_true_random=False))
@example(draw=Random(9))  # what one judgement changes hangs on another, which is judged anew in its turn
def test_what_hangs_on_facts_that_come_or_go_is_all_that_changes(
    monkeypatch: pytest.MonkeyPatch, nearest: int, near_seqs: int, draw: Random
) -> None:
    """With narrow windows too: then most of what is looked at lies at an edge of one."""
    monkeypatch.setattr(supersession, "_NEAREST", nearest)
    monkeypatch.setattr(supersession, "_NEAR_SEQS", near_seqs)
    store = open_store()
    ref = session_with(store, MESSAGES)
    with store.database.write() as connection:
        for step in range(12):
            changed(connection, ref.key, draw, step)
            there = rows.all_facts(connection, ref.key)
            assert {one.id: (one.status, one.superseded_by) for one in there} == supersession.standing(there)
    store.database.close()


def test_only_what_may_be_concerned_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()
    ref = session_with(store, 200)
    said = [fact(seq, f"The gate {seq} is {seq}00.", subject=f"gate{seq}", value=f"{seq}00") for seq in range(1, 201)]
    read: list[str] = []
    looked = rows.facts_with

    def reading(connection: Connection, key: int, ids: list[str]) -> list[Fact]:
        read.extend(ids)
        return looked(connection, key, ids)

    monkeypatch.setattr(rows, "facts_with", reading)
    monkeypatch.setattr(rows, "all_facts", None)
    with store.database.write() as connection:
        written(connection, ref.key, said)
        read.clear()
        rows.stand_anew(connection, ref.key, rows.drop_facts(connection, ref.key, [said[100].id]))
        assert read == []
        again = replace(said[50], text="Correction: the gate51 is now 7.", id="b" * 16, seq=150)
        written(connection, ref.key, [again])
        assert set(read) == {said[50].id, again.id}
    store.database.close()
