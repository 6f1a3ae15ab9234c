"""What outcomes must do on every database: written with the plan or not at all, read back, undone, cut."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, StorageError
from langchain_tiered_memory.types.outcomes import Outcome, OutcomeKind
from langchain_tiered_memory.types.records import LeftOut
from tests.run_builders import ODD, outcome
from tests.store_builders import NOW, append, forget_messages, forget_session, incoming, open_store, session_with

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef

OLD, NEW = '{"border": 1, "v": 2}', '{"border": 7, "v": 2}'


def swap(store: SqlStore, ref: SessionRef, made: Outcome, plan: str = NEW, **changes: object) -> bool:
    options: dict[str, object] = {"border": 7, "now": NOW, "plan_before": OLD, "keep": 200, "view_name": "view"}
    options |= changes
    return store.outcomes.swap(ref, options.pop("view_name"), plan, outcome=made, **options)  # type: ignore[arg-type]


def plan_of(store: SqlStore, session_id: str = "s", view: str = "view") -> str | None:
    ref = store.transcript.find(session_id)
    assert ref is not None
    return store.transcript.kept_view(ref, view).plan


def test_a_plan_and_its_outcome_are_swapped_in_together(store: SqlStore) -> None:
    ref = session_with(store, 3)
    store.plans.write(ref, "view", OLD, now=NOW, border=1)
    made = outcome(track=ODD, left_out=(LeftOut(what=ODD, reason="slid", tokens=4),), error=ODD)
    assert swap(store, ref, made)
    assert plan_of(store) == NEW
    assert store.outcomes.read(ref, limit=9) == [made]
    stored = store.outcomes.get(ref, made.id)
    assert (stored.outcome, stored.plan_before, stored.plan_after) == (made, OLD, NEW)
    assert [row["border"] for row in store.plans.kept(ref)] == [7]


def test_nothing_is_swapped_when_the_epoch_moved_on_or_the_session_was_removed(store: SqlStore) -> None:
    ref = session_with(store, 3)
    append(store, "s", incoming("edited", "m1"))
    assert not swap(store, ref, outcome())
    assert (plan_of(store), store.outcomes.read(ref, limit=9)) == (None, [])
    forget_session(store, ref)
    assert not swap(store, ref, outcome())
    assert not store.outcomes.add(ref, "view", outcome(OutcomeKind.FAILED), keep=9)


def test_a_swap_that_the_database_refuses_leaves_plan_and_outcomes_as_they_were(store: SqlStore) -> None:
    ref = session_with(store, 3)
    store.plans.write(ref, "view", OLD, now=NOW)
    made = outcome()
    assert swap(store, ref, made)
    with pytest.raises(StorageError):
        swap(store, ref, made, plan="{}")  # its id is there already
    assert plan_of(store) == NEW
    assert store.outcomes.read(ref, limit=9) == [made]


def test_outcomes_come_newest_first_by_kind_and_the_oldest_go(store: SqlStore) -> None:
    ref, other = session_with(store, 1), session_with(store, 1, "other")
    theirs = outcome()
    swap(store, other, theirs)
    made = [outcome(kind, id=f"{number:032}") for number, kind in enumerate(list(OutcomeKind)[1:4] * 2)]
    for one in made:
        swap(store, ref, one, keep=5, view_name=f"view{made.index(one) % 2}")
    assert store.outcomes.read(ref, limit=9) == made[:0:-1]
    assert store.outcomes.read(ref, limit=2) == made[:3:-1]
    wanted = [one for one in made[:0:-1] if one.kind is OutcomeKind.TRUNCATED]
    assert store.outcomes.read(ref, limit=9, kinds=[OutcomeKind.TRUNCATED]) == wanted
    assert store.outcomes.read(other, limit=9) == [theirs]


def test_undoing_puts_the_plan_before_back_once(store: SqlStore) -> None:
    ref = session_with(store, 3)
    made = outcome()
    swap(store, ref, made)
    assert store.outcomes.undo(ref, made.id, now=NOW + 5)
    assert plan_of(store) == OLD
    assert [row["border"] for row in store.plans.kept(ref)] == [1]
    assert store.outcomes.get(ref, made.id).outcome.undone_at == NOW + 5
    assert not store.outcomes.undo(ref, made.id, now=NOW + 9)
    assert store.outcomes.read(ref, limit=1)[0].undone_at == NOW + 5


def test_undoing_the_first_condensation_leaves_the_view_without_a_plan(store: SqlStore) -> None:
    ref = session_with(store, 3)
    made = outcome()
    swap(store, ref, made, plan_before=None)
    assert store.outcomes.undo(ref, made.id, now=NOW)
    assert plan_of(store) is None


def test_only_the_last_condensation_of_a_view_can_be_undone(store: SqlStore) -> None:
    ref = session_with(store, 3)
    first, second, failed = outcome(), outcome(), outcome(OutcomeKind.FAILED)
    swap(store, ref, first)
    swap(store, ref, second, plan='{"border": 9}', plan_before=NEW)
    swap(store, ref, outcome(), view_name="another")
    store.outcomes.add(ref, "view", failed, keep=9)
    for one in (first, failed):
        with pytest.raises(InvalidInputError, match="cannot be undone"):
            store.outcomes.undo(ref, one.id, now=NOW)
    assert store.outcomes.undo(ref, second.id, now=NOW)
    assert store.outcomes.undo(ref, first.id, now=NOW)
    assert plan_of(store) == OLD


def test_what_was_edited_since_cannot_be_undone(store: SqlStore) -> None:
    ref = session_with(store, 3)
    made = outcome()
    swap(store, ref, made)
    append(store, "s", incoming("edited", "m1"))
    with pytest.raises(InvalidInputError, match="cannot be undone"):
        store.outcomes.undo(ref, made.id, now=NOW)
    assert store.outcomes.get(ref, made.id).outcome.undone_at is None


def test_an_outcome_that_is_not_there_is_an_error_that_says_so(store: SqlStore) -> None:
    ref, other = session_with(store, 1), session_with(store, 1, "other")
    theirs = outcome()
    swap(store, other, theirs)
    for ask in (store.outcomes.get, lambda *which: store.outcomes.undo(*which, now=NOW)):
        with pytest.raises(NotFoundError, match="has no outcome"):
            ask(ref, theirs.id)


def test_calls_of_the_assistant_are_counted_by_track_and_span(store: SqlStore) -> None:
    roles = ("user", "assistant", "assistant", "tool", "assistant", "user", "assistant")
    ref = append(store, "s", *(incoming(role=role) for role in roles)).ref
    append(store, "s", incoming(role="assistant", track="other"))
    assert store.outcomes.assistant_calls(ref, "main", after=0) == 4
    assert store.outcomes.assistant_calls(ref, "main", after=2) == 3
    assert store.outcomes.assistant_calls(ref, "other", after=0) == 1


def test_outcomes_of_a_forgotten_message_keep_figures_and_the_ids_of_others(store: SqlStore) -> None:
    ref = session_with(store, 5)
    left = (LeftOut(what="m2", reason="slid", tokens=9), LeftOut(what="m3", reason="slid", tokens=8))
    before, after = outcome(last_seq=1, error="the first"), outcome(last_seq=4, left_out=left, error="says word2")
    for one in (before, after):
        swap(store, ref, one)
    forget_messages(store, ref, ["m2"])
    newest, oldest = store.outcomes.read(ref, limit=9)
    assert oldest == before
    assert newest == dataclasses.replace(after, error=None, left_out=left[1:])
    stored = store.outcomes.get(ref, after.id)
    assert (stored.plan_before, stored.plan_after) == (None, None)
    with pytest.raises(InvalidInputError):
        store.outcomes.undo(ref, after.id, now=NOW)


plans = st.text(max_size=12).map(lambda words: f'{{"border": {len(words)}, "w": {len(words) * 7}}}')


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(chain=st.lists(plans, min_size=1, max_size=6), undone=st.integers(0, 6))
def test_undoing_from_the_newest_on_walks_back_through_the_plans(chain: list[str], undone: int) -> None:
    store = open_store()
    ref = session_with(store, 1)
    made = []
    for before, plan in zip([None, *chain], chain, strict=False):
        made.append(outcome())
        swap(store, ref, made[-1], plan=plan, plan_before=before)
    for one in list(reversed(made))[:undone]:
        assert store.outcomes.undo(ref, one.id, now=NOW)
    assert plan_of(store) == [None, *chain][max(len(chain) - undone, 0)]
    store.database.close()
