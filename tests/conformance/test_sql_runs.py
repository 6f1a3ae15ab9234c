"""What tasks, phases, zones and their restoring must do on every database."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.runs.store import RunRow
from langchain_tiered_memory.types.outcomes import OutcomeKind
from tests.conformance.test_sql_query_plans import plans_of
from tests.run_builders import ODD, checkpoint, outcome, touching
from tests.store_builders import (
    NOW,
    append,
    forget_messages,
    forget_session,
    incoming,
    open_store,
    pinned,
    session_with,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import Task


def start(store: SqlStore, ref: SessionRef, task_id: str, track: str = "main", now: float = NOW) -> Task:
    return store.runs.start_task(ref, track, task_id, now=now)


def finish(store: SqlStore, ref: SessionRef, task_id: str) -> Task:
    return store.runs.finish_task(ref, task_id, NOW)[0]


def test_a_run_of_which_nothing_was_noted_stands_as_at_its_start(store: SqlStore) -> None:
    ref = session_with(store, 2)
    run = store.runs.read(ref)
    assert dataclasses.replace(run, figures={}) == RunRow(started_at=NOW)
    assert run.figures["entries"] == 2
    assert store.runs.tasks(ref, newest_finished=9) == []
    assert store.runs.current_task(ref, "main") is None


def test_phase_and_zones_are_kept_by_name_and_by_view(store: SqlStore) -> None:
    ref = session_with(store, 1)
    assert store.runs.set_phase(ref, ODD, NOW) is None
    assert store.runs.set_phase(ref, "build", NOW) == ODD
    store.runs.set_zone(ref, ODD, "warning", NOW)
    store.runs.set_zone(ref, "view", "safe", NOW)
    store.runs.set_zone(ref, ODD, "danger", NOW)
    run = store.runs.read(ref)
    assert (run.phase, run.zones) == ("build", {"view": "safe", ODD: "danger"})
    assert store.runs.set_phase(ref, None, NOW) == "build"
    assert store.runs.read(ref).phase is None


def test_zones_of_views_that_were_not_seen_for_long_are_dropped(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for number in range(70):
        store.runs.set_zone(ref, f"view{number}", "safe", NOW)
    assert list(store.runs.read(ref).zones) == [f"view{number}" for number in range(38, 70)]


def test_a_clock_that_was_set_back_puts_no_start_into_the_future(store: SqlStore) -> None:
    ref = session_with(store, 1)
    store.runs.set_phase(ref, "build", NOW - 500)
    assert store.runs.read(ref).started_at == NOW - 500


def test_a_task_knows_the_messages_that_can_belong_to_it(store: SqlStore) -> None:
    ref = session_with(store, 2)
    started = store.runs.start_task(ref, "main", ODD, depends_on=("a", ODD), now=NOW)
    assert (started.id, started.state, started.first_seq, started.last_seq) == (ODD, "active", 3, None)
    assert (started.depends_on, started.number) == (("a", ODD), 0)
    append(store, "s", incoming(), incoming())
    finished, is_new = store.runs.finish_task(ref, ODD, NOW + 5)
    assert is_new
    assert (finished.state, finished.last_seq, finished.finished_at, finished.number) == ("finished", 4, NOW + 5, 1)
    assert store.runs.tasks(ref, newest_finished=9) == [finished]


def test_starting_an_active_task_again_and_finishing_one_twice_change_nothing(store: SqlStore) -> None:
    ref = session_with(store, 1)
    first = start(store, ref, "a")
    append(store, "s", incoming())
    assert store.runs.start_task(ref, "other", "a", depends_on=("x",), now=NOW + 9) == first
    finished = store.runs.finish_task(ref, "a", NOW + 1)
    assert finished[1]
    assert store.runs.finish_task(ref, "a", NOW + 2) == (finished[0], False)
    assert store.runs.read(ref).finished_tasks == 1


def test_a_finished_task_is_opened_again_and_is_the_current_one(store: SqlStore) -> None:
    ref = session_with(store, 1)
    start(store, ref, "a")
    finish(store, ref, "a")
    start(store, ref, "b")
    append(store, "s", incoming())
    opened = start(store, ref, "a")
    assert (opened.state, opened.first_seq, opened.number, opened.finished_at) == ("active", 2, 0, None)
    assert store.runs.current_task(ref, "main") == "a"
    assert finish(store, ref, "a").number == 2


def test_the_current_task_is_the_one_started_last_even_when_the_clock_stands_or_goes_back(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for task_id, now in (("z", NOW), ("a", NOW), ("m", NOW - 100)):
        start(store, ref, task_id, now=now)
        assert store.runs.current_task(ref, "main") == task_id
    start(store, ref, "elsewhere", track="research")
    assert store.runs.current_task(ref, "main") == "m"
    assert store.runs.current_task(ref, "research") == "elsewhere"
    finish(store, ref, "m")
    assert store.runs.current_task(ref, "main") == "a"


def test_active_tasks_come_in_their_order_and_the_last_finished_behind_them(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for task_id in "edcba":
        start(store, ref, task_id)
    for task_id in "cae":
        finish(store, ref, task_id)
    assert [one.id for one in store.runs.tasks(ref, newest_finished=2)] == ["d", "b", "e", "a"]


def test_a_task_that_was_never_started_cannot_be_finished(store: SqlStore) -> None:
    ref, other = session_with(store, 1), session_with(store, 1, "other")
    start(store, other, "a")
    with pytest.raises(NotFoundError, match="no task 'a'"):
        store.runs.finish_task(ref, "a", NOW)


def test_names_too_long_to_be_looked_up_by_are_refused(store: SqlStore) -> None:
    ref = session_with(store, 1)
    with pytest.raises(InvalidInputError, match="the task's name takes 2000"):
        start(store, ref, "t" * 2000)
    with pytest.raises(InvalidInputError, match="the track's name"):
        start(store, ref, "t", track="\N{GRINNING FACE}" * 101)


def test_whoever_writes_to_a_session_that_was_removed_is_told(store: SqlStore) -> None:
    ref = session_with(store, 1)
    forget_session(store, ref)
    for write in (lambda: start(store, ref, "a"), lambda: store.runs.set_phase(ref, "p", NOW)):
        with pytest.raises(NotFoundError, match="removed"):
            write()
    store.runs.set_zone(ref, "view", "safe", NOW)
    assert store.runs.read(ref).zones == {}


def test_messages_since_are_counted_with_their_span(store: SqlStore) -> None:
    ref = session_with(store, 9)
    forget_messages(store, ref, ["m5"])
    assert store.runs.said_since(ref, 3) == (5, 4, 9)
    assert store.runs.said_since(ref, 9) == (0, 0, 0)


def test_a_state_is_put_back_with_tasks_phase_and_pins(store: SqlStore) -> None:
    ref = session_with(store, 4)
    start(store, ref, "old")
    finish(store, ref, "old")
    start(store, ref, "now")
    store.runs.set_phase(ref, "plan", NOW)
    store.transcript.set_pin(ref, "m2", pinned=True)
    kept = store.runs.state(ref, newest_finished=5)[0]
    assert (kept.pinned_ids, kept.last_seq, kept.last_message_id) == (("m2",), 4, "m4")
    append(store, "s", incoming("later"))
    finish(store, ref, "now")
    start(store, ref, "new")
    start(store, ref, "newer")
    finish(store, ref, "newer")
    store.runs.set_phase(ref, "build", NOW)
    store.transcript.set_pin(ref, "m2", pinned=False)
    store.transcript.set_pin(ref, "m3", pinned=True)
    done = store.runs.restore(ref, kept, NOW)
    assert done[0] == ()
    again = store.runs.state(ref, newest_finished=5)[0]
    assert (again.tasks, again.phase, again.pinned_ids) == (kept.tasks, "plan", ("m2",))
    assert again.finished_tasks == 1
    assert (again.last_seq, store.transcript.totals(ref)["entries"]) == (5, 5)
    assert finish(store, ref, "now").number == 2


def test_tasks_finished_too_long_ago_to_be_named_stay(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for number in range(5):
        start(store, ref, f"t{number}")
        finish(store, ref, f"t{number}")
    kept = store.runs.state(ref, newest_finished=2)[0]
    start(store, ref, "t5")
    finish(store, ref, "t5")
    assert store.runs.restore(ref, kept, NOW, epoch=ref.epoch) == ((), False), "there was no view"
    assert [one.id for one in store.runs.tasks(ref, newest_finished=9)] == ["t4", "t3", "t2", "t1", "t0"]


def test_a_pin_is_put_back_on_the_track_that_it_was_on(store: SqlStore) -> None:
    ref = append(store, "s", incoming("main", "1"), incoming("sub", "1", track="sub"), incoming("two", "2")).ref
    store.transcript.set_pin(ref, "1", pinned=True, track="sub")
    kept = store.runs.state(ref, newest_finished=5)[0]
    assert (kept.pinned_ids, kept.pinned_seqs) == (("1",), (2,))
    store.transcript.set_pin(ref, "1", pinned=False, track="sub")
    store.transcript.set_pin(ref, "1", pinned=True, track="main")
    store.runs.restore(ref, kept, NOW)
    assert [one.track for one in pinned(store, ref)] == ["sub"]
    old = dataclasses.replace(kept, pinned_seqs=())
    store.runs.restore(ref, old, NOW)
    assert [one.seq for one in pinned(store, ref)] == [1], "an id meant the first message while it was unique"


def test_pins_of_messages_that_are_gone_are_skipped_and_named(store: SqlStore) -> None:
    ref = session_with(store, 3)
    store.transcript.set_pin(ref, "m1", pinned=True)
    store.transcript.set_pin(ref, "m3", pinned=True)
    kept = store.runs.state(ref, newest_finished=5)[0]
    forget_messages(store, ref, ["m1"])
    assert store.runs.restore(ref, kept, NOW)[0] == ("m1",)
    assert [entry.id for entry in pinned(store, ref)] == ["m3"]


def test_plans_are_put_back_while_nothing_but_messages_came_since(store: SqlStore) -> None:
    ref = session_with(store, 3)
    store.plans.write(ref, "view", '{"border": 1}', now=NOW, border=1)
    kept, plans = store.runs.state(ref, newest_finished=5)[0], store.plans.kept(ref)
    append(store, "s", incoming("later"))
    store.plans.write(ref, "view", '{"border": 2}', now=NOW, border=2)
    store.plans.write(ref, "another", "{}", now=NOW)
    assert store.runs.restore(ref, kept, NOW, plans=plans, epoch=ref.epoch)[1]
    assert store.transcript.kept_view(ref, "view").plan == '{"border": 1}'
    assert store.transcript.kept_view(ref, "another").plan == "{}"
    assert {row["border"] for row in store.plans.kept(ref)} == {0, 1}


@pytest.mark.parametrize("moved", ["edited", "pinned"])
def test_plans_of_another_epoch_or_with_other_pins_are_not_put_back(store: SqlStore, moved: str) -> None:
    ref = session_with(store, 3)
    store.plans.write(ref, "view", "old", now=NOW)
    kept, plans = store.runs.state(ref, newest_finished=5)[0], store.plans.kept(ref)
    if moved == "edited":
        append(store, "s", incoming("edited", "m1"))
    else:
        store.transcript.set_pin(ref, "m1", pinned=True)
    since = store.transcript.find("s")
    assert since is not None
    store.plans.write(since, "view", "new", now=NOW)
    assert not store.runs.restore(ref, kept, NOW, plans=plans, epoch=ref.epoch)[1]
    found = store.transcript.find("s")
    assert found is not None
    assert store.transcript.kept_view(found, "view").plan == ("new" if moved == "edited" else None)


def test_a_removed_session_takes_its_run_along(store: SqlStore) -> None:
    ref, other = session_with(store, 1), session_with(store, 1, "other")
    for one in (ref, other):
        start(store, one, "a")
        store.runs.set_phase(one, "build", NOW)
    forget_session(store, ref)
    assert store.runs.tasks(ref, newest_finished=9) == []
    assert store.runs.read(ref).phase is None
    assert (store.runs.read(other).phase, store.runs.current_task(other, "main")) == ("build", "a")


steps = st.lists(st.tuples(st.sampled_from(["start", "finish", "say"]), st.sampled_from("abcd")), max_size=12)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=steps, after=steps)
def test_whatever_was_done_since_a_restore_gives_the_same_tasks_back(
    before: list[tuple[str, str]], after: list[tuple[str, str]]
) -> None:
    store = open_store()
    ref = session_with(store, 1)

    def done(what: list[tuple[str, str]]) -> None:
        for verb, name in what:
            if verb == "say":
                append(store, "s", incoming())
            elif verb == "start":
                start(store, ref, name)
            elif any(one.id == name for one in store.runs.tasks(ref, newest_finished=99)):
                finish(store, ref, name)

    done(before)
    kept = store.runs.state(ref, newest_finished=99)[0]
    done(after)
    store.runs.restore(ref, kept, NOW)
    assert store.runs.state(ref, newest_finished=99)[0].tasks == kept.tasks
    store.database.close()


HOT: dict[str, Callable[[SqlStore, SessionRef], object]] = {
    "run": lambda s, r: s.runs.read(r),
    "state": lambda s, r: s.runs.state(r, newest_finished=9),
    "zone": lambda s, r: s.runs.set_zone(r, "view", "warning", NOW),
    "current task": lambda s, r: s.runs.current_task(r, "main"),
    "start": lambda s, r: start(s, r, "another"),
    "finish": lambda s, r: finish(s, r, "b"),
    "checkpoint": lambda s, r: s.checkpoints.write(r, checkpoint(), keep=2),
    "checkpoints": lambda s, r: s.checkpoints.infos(r),
    "swap": lambda s, r: s.outcomes.swap(
        r, "view", "{}", border=1, now=NOW, outcome=outcome(), plan_before=None, keep=2
    ),
    "failure": lambda s, r: s.outcomes.add(r, "view", outcome(OutcomeKind.FAILED), keep=2),
    "outcomes": lambda s, r: s.outcomes.read(r, limit=9),
    "calls": lambda s, r: s.outcomes.assistant_calls(r, "main", after=1),
    "files": lambda s, r: s.files.latest(r, track="main", limit=99),
    "files of all tracks": lambda s, r: s.files.latest(r, track=None, limit=99),
    "touch": lambda s, _: append(s, "s", touching(("new", "write"))),
    "window": lambda s, _: s.windows.learn("m", 7, NOW),
}


@pytest.mark.parametrize("name", HOT)
def test_what_every_turn_of_a_run_asks_of_sqlite_goes_through_an_index(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path / "memory.db")
    ref = session_with(store, 30)
    append(store, "s", *(touching((f"f{number}", "read")) for number in range(9)))
    for task_id in "abc":
        start(store, ref, task_id)
    store.checkpoints.write(ref, checkpoint(), keep=2)
    scans = [line for _, line in plans_of(store, lambda: HOT[name](store, ref)) if line.startswith("SCAN ltm_")]
    assert scans == []
    store.database.close()
