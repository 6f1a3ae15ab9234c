"""What the summary tree must do on every database."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import text

from langchain_tiered_memory.types.records import Spent, SummaryState
from tests.store_builders import NOW, append, claim, fact, ids, incoming, plan, session_with, summarised, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.runtime import SqlStore


def test_what_waits_is_given_by_track_and_in_order(store: SqlStore) -> None:
    ref = append(
        store, "s", *(incoming("a b", f"m{n}", track="xy"[n % 2], calls=("c",) if n == 3 else ()) for n in range(1, 6))
    ).ref
    first = store.tree.next_waiting_track(ref, after=None)
    second = store.tree.next_waiting_track(ref, after=first)
    assert {first, second} == {"x", "y"}
    assert store.tree.next_waiting_track(ref, after=second) is None
    waiting = store.tree.waiting_entries(ref, track="y", limit=10)
    assert [(one.seq, one.group, one.tokens, one.waits) for one in waiting] == [
        (1, 1, 2, False),
        (3, 3, 2, True),
        (5, 5, 2, False),
    ]
    assert len(store.tree.waiting_entries(ref, track="y", limit=2)) == 2
    claim(store, ref, plan(1, 1, 3, 5, track="y"))
    assert store.tree.waiting_entries(ref, track="y", limit=10) == []
    assert store.tree.next_waiting_track(ref, after=None) == "x"


def test_a_claim_says_what_it_covers(store: SqlStore) -> None:
    ref = session_with(store, 4)
    claimed = claim(store, ref, plan(1, 2, 3))
    assert claimed is not None
    entries = store.transcript.by_seq(ref, [2, 3])
    assert claimed.state is SummaryState.GENERATING
    assert (claimed.sources, claimed.first_seq, claimed.last_seq, claimed.entry_count) == (("m2", "m3"), 2, 3, 2)
    assert (claimed.first_at, claimed.last_at, claimed.source_tokens) == (entries[0].at, entries[1].at, 4)
    assert [entry.summary_id for entry in entries] == [claimed.id] * 2
    assert store.tree.unfinished() == store.tree.unfinished(ref) == 1


def test_a_claim_that_meets_anothers_takes_nothing_at_all(store: SqlStore) -> None:
    ref = session_with(store, 4)
    claim(store, ref, plan(1, 2, 3))
    assert claim(store, ref, plan(1, 3, 4)) is None
    assert claim(store, ref, plan(1, 4, 99)) is None
    assert claim(store, ref, plan(1, 4, 4)) is None
    assert claim(store, ref, plan(1)) is None
    assert [one.seq for one in store.tree.waiting_entries(ref, track="main", limit=9)] == [1, 4]
    assert len(store.tree.all(ref)) == 1


def test_a_claim_of_very_many_messages_takes_them_all(store: SqlStore) -> None:
    ref = session_with(store, 1300)
    claimed = claim(store, ref, plan(1, *range(1, 1301)))
    assert claimed is not None
    assert claimed.entry_count == 1300


def test_a_higher_level_takes_only_finished_summaries_of_the_level_below(store: SqlStore) -> None:
    ref = session_with(store, 6)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    being_made = claim(store, ref, plan(1, 5, 6))
    assert claim(store, ref, plan(2, one, being_made)) is None
    assert claim(store, ref, plan(3, one, two)) is None
    assert claim(store, ref, plan(2)) is None
    parent = claim(store, ref, plan(2, two, one))
    assert parent is not None
    assert (parent.sources, parent.first_seq, parent.last_seq) == ((one.id, two.id), 1, 4)
    assert (parent.entry_count, parent.source_tokens) == (4, one.tokens + two.tokens)
    assert claim(store, ref, plan(2, one)) is None


def test_children_stand_in_the_cover_until_their_parent_is_finished(store: SqlStore) -> None:
    ref = session_with(store, 4)
    children = [summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)]
    parent = claim(store, ref, plan(2, *children))
    assert parent is not None
    assert ids(store.tree.roots(ref, limit=9)) == ids(children)
    store.tree.commit(ref, parent, written("both"), owner="w", now=NOW)
    assert ids(store.tree.roots(ref, limit=9)) == [parent.id]
    below = store.tree.children([parent.id])[parent.id]
    assert ids(below) == ids(children)
    assert {one.state for one in below} == {SummaryState.SUPERSEDED}


def test_a_commit_gives_back_what_was_written(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claimed = claim(store, ref, plan(1, 1, 2))
    assert claimed is not None
    stated = fact(1, "we chose \N{SNOWMAN} 'x'", kind="decision", subject="x")
    said = written("the \0 text", facts=(stated,), degraded=True, error="why\0", retry_at=NOW + 9, model="m\ud800")
    assert store.tree.commit(ref, claimed, said, owner="w", now=NOW + 1)
    (found,) = store.tree.by_id(ref, [claimed.id])
    assert (found.text, found.tokens) == ("the \ufffd text", said.tokens)
    assert store.facts.of_summaries(ref, [claimed.id]) == {claimed.id: [stated]}
    assert (found.degraded, found.error, found.model, found.spent) == (True, "why\ufffd", "m\ufffd", said.spent)
    assert (found.state, found.kept_identifiers, found.created_at) == (SummaryState.ACTIVE, 1.0, NOW + 1)
    ((_, row),) = store.inspection.summary_rows(ref)
    assert len(row["text_digest"]) == 64
    assert store.tree.unfinished() == 0


def test_a_summary_is_committed_once(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claimed = claim(store, ref, plan(1, 1, 2))
    assert claimed is not None
    assert store.tree.commit(ref, claimed, written("first"), owner="w", now=NOW)
    assert not store.tree.commit(ref, claimed, written("second"), owner="w", now=NOW)
    assert store.tree.by_id(ref, [claimed.id])[0].text == "first"


def test_a_lease_that_ran_out_is_taken_over_and_its_former_owner_commits_in_vain(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claimed = claim(store, ref, plan(1, 1, 2), owner="slow", lease_seconds=10)
    assert claimed is not None
    assert store.tree.due(ref, now=NOW + 9, remake_stale=False) is None
    due = store.tree.due(ref, now=NOW + 10, remake_stale=False)
    assert due is not None
    assert due.id == claimed.id
    assert not store.tree.lease(due, owner="hasty", now=NOW + 9, lease_seconds=10)
    assert store.tree.lease(due, owner="next", now=NOW + 10, lease_seconds=10)
    assert store.tree.due(ref, now=NOW + 11, remake_stale=False) is None
    assert not store.tree.commit(ref, claimed, written("late"), owner="slow", now=NOW + 11)
    assert store.tree.commit(ref, due, written("in time"), owner="next", now=NOW + 11)
    assert store.tree.by_id(ref, [claimed.id])[0].text == "in time"


def test_a_lease_from_an_old_copy_fails_even_when_the_work_is_done(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claim(store, ref, plan(1, 1, 2), owner="gone", lease_seconds=1)
    seen_by_both = store.tree.due(ref, now=NOW + 2, remake_stale=False)
    assert seen_by_both is not None
    assert store.tree.lease(seen_by_both, owner="a", now=NOW + 2, lease_seconds=10)
    assert store.tree.commit(ref, seen_by_both, written("done"), owner="a", now=NOW + 3)
    assert not store.tree.lease(seen_by_both, owner="b", now=NOW + 4, lease_seconds=10)
    assert ids(store.tree.roots(ref, limit=9)) == [seen_by_both.id]


def test_a_failed_attempt_waits_for_its_time_and_keeps_its_sources(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claimed = claim(store, ref, plan(1, 1, 2))
    assert claimed is not None
    spent = Spent(calls=1, input_tokens=7)
    store.tree.fail(claimed, owner="nobody", error="not mine", retry_at=NOW, spent=spent)
    store.tree.fail(claimed, owner="w", error="it \0 said no", retry_at=NOW + 5, spent=spent)
    (found,) = store.tree.by_id(ref, [claimed.id])
    assert (found.state, found.error, found.spent, found.attempts) == (
        SummaryState.FAILED,
        "it \ufffd said no",
        spent,
        1,
    )
    assert store.tree.due(ref, now=NOW + 4, remake_stale=False) is None
    due = store.tree.due(ref, now=NOW + 5, remake_stale=False)
    assert due is not None
    assert store.tree.lease(due, owner="w", now=NOW + 5, lease_seconds=10)
    assert store.tree.commit(ref, due, written("at last"), owner="w", now=NOW + 6)
    assert claim(store, ref, plan(1, 1)) is None


def test_a_degraded_summary_is_made_again_and_keeps_its_text_meanwhile(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claimed = claim(store, ref, plan(1, 1, 2))
    assert claimed is not None
    store.tree.commit(ref, claimed, written("poor", degraded=True, retry_at=NOW + 60), owner="w", now=NOW)
    assert store.tree.due(ref, now=NOW + 59, remake_stale=False) is None
    due = store.tree.due(ref, now=NOW + 60, remake_stale=False)
    assert due is not None
    assert store.tree.lease(due, owner="w", now=NOW + 60, lease_seconds=10)
    assert [one.text for one in store.tree.roots(ref, limit=9)] == ["poor"]
    store.tree.fail(due, owner="w", error="again", retry_at=NOW + 99, spent=Spent())
    assert [(one.text, one.state) for one in store.tree.roots(ref, limit=9)] == [("poor", SummaryState.ACTIVE)]
    due = store.tree.due(ref, now=NOW + 99, remake_stale=False)
    assert due is not None
    assert store.tree.lease(due, owner="w", now=NOW + 99, lease_seconds=10)
    assert store.tree.commit(ref, due, written("good"), owner="w", now=NOW + 100)
    (root,) = store.tree.roots(ref, limit=9)
    assert (root.text, root.degraded) == ("good", False)
    assert store.tree.due(ref, now=NOW + 10_000, remake_stale=True) is None


def test_an_edit_marks_every_summary_above_it_stale(store: SqlStore) -> None:
    ref = session_with(store, 4)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    top = summarised(store, ref, 2, one, two)
    append(store, "s", incoming("other words", "m1"))
    stale = {found.id: found.stale for found in store.tree.all(ref)}
    assert stale == {one.id: True, two.id: False, top.id: True}
    assert store.tree.due(ref, now=NOW + 1, remake_stale=False) is None
    lowest = store.tree.due(ref, now=NOW + 1, remake_stale=True)
    assert lowest is not None
    assert lowest.id == one.id


def test_a_stale_summary_stays_stale_when_its_remaker_crashes(store: SqlStore) -> None:
    ref = session_with(store, 2)
    one = summarised(store, ref, 1, 1, 2)
    append(store, "s", incoming("other words", "m1"))
    due = store.tree.due(ref, now=NOW, remake_stale=True)
    assert due is not None
    assert store.tree.lease(due, owner="crashes", now=NOW, lease_seconds=10)
    assert store.tree.by_id(ref, [one.id])[0].stale
    assert store.tree.due(ref, now=NOW + 9, remake_stale=True) is None
    again = store.tree.due(ref, now=NOW + 10, remake_stale=True)
    assert again is not None
    assert store.tree.lease(again, owner="w", now=NOW + 10, lease_seconds=10)
    assert store.tree.commit(ref, again, written("new"), owner="w", now=NOW + 11)
    assert not store.tree.by_id(ref, [one.id])[0].stale
    assert store.tree.due(ref, now=NOW + 999, remake_stale=True) is None


def test_an_edit_while_a_summary_is_written_leaves_it_stale(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claimed = claim(store, ref, plan(1, 1, 2))
    assert claimed is not None
    append(store, "s", incoming("other words", "m1"))
    assert store.tree.commit(ref, claimed, written("from the old words"), owner="w", now=NOW + 1)
    assert store.tree.by_id(ref, [claimed.id])[0].stale
    due = store.tree.due(ref, now=NOW + 1, remake_stale=True)
    assert due is not None
    assert due.id == claimed.id


def test_a_remade_summary_makes_the_one_above_it_stale_and_moves_the_epoch(store: SqlStore) -> None:
    ref = session_with(store, 2)
    one = summarised(store, ref, 1, 1, 2)
    top = summarised(store, ref, 2, one)
    append(store, "s", incoming("other words", "m1"))
    for expected in (one, top):
        due = store.tree.due(ref, now=NOW + 5, remake_stale=True)
        assert due is not None
        assert due.id == expected.id
        before = store.transcript.find("s")
        assert store.tree.lease(due, owner="w", now=NOW + 5, lease_seconds=9)
        assert store.tree.commit(ref, due, written("remade"), owner="w", now=NOW + 5)
        after = store.transcript.find("s")
        assert before is not None
        assert after is not None
        assert after.epoch == before.epoch + 1
    assert store.tree.due(ref, now=NOW + 999, remake_stale=True) is None
    assert ids(store.tree.roots(ref, limit=9)) == [top.id]


def test_a_plan_passes_where_a_summary_that_it_shows_is_marked_as_out_of_date(store: SqlStore) -> None:
    ref = session_with(store, 2)
    one = summarised(store, ref, 1, 1, 2, by_rules=True)
    top = summarised(store, ref, 2, one, by_rules=True)

    def passes(change: Callable[[], object], shown: str) -> bool:
        now = store.transcript.find("s")
        assert now is not None
        store.plans.write(now, "view", json.dumps({"items": [shown]}), now=NOW)
        change()
        then = store.transcript.find("s")
        assert then is not None
        return store.transcript.kept_view(then, "view").plan is None

    def write_the_lower_one_anew() -> None:
        assert ids(store.tree.lease_together(ref, [one], owner="w", now=NOW + 5, lease_seconds=9)) == [one.id]
        assert store.tree.commit(ref, one, written("a model's words"), owner="w", now=NOW + 5)

    assert passes(write_the_lower_one_anew, top.id)
    assert store.tree.by_id(ref, [top.id])[0].stale
    asked = {"note": None, "by_model": False, "now": NOW, "owner": None, "lease_seconds": 1.0}
    judge = partial(store.tree.judge, ref, one.id, "wrong", **asked)
    assert not passes(judge, top.id), "it is not shown"
    assert passes(judge, one.id)


def test_no_plan_of_before_passes_where_a_summary_fails_under_a_damaged_epoch(store: SqlStore) -> None:
    ref = session_with(store, 2)
    one = summarised(store, ref, 1, 1, 2, by_rules=True)
    store.plans.write(replace(ref, epoch=0), "view", json.dumps({"items": [one.id]}), now=NOW)
    with store.database.write() as connection:
        connection.execute(text("UPDATE ltm_sessions SET epoch = -1"))
    store.tree.fail(one, owner="w", error="no", retry_at=NOW, spent=Spent(), degrades=True)
    now = store.transcript.find("s")
    assert now is not None
    assert now.epoch > 0
    assert store.transcript.kept_view(now, "view").plan is None


def test_waiting_summaries_are_those_that_no_higher_one_has_taken(store: SqlStore) -> None:
    ref = session_with(store, 6)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    three = claim(store, ref, plan(1, 5, 6))
    assert three is not None
    assert ids(store.tree.waiting_summaries(ref, level=1, limit=9)) == [one.id, two.id, three.id]
    claim(store, ref, plan(2, one))
    assert ids(store.tree.waiting_summaries(ref, level=1, limit=9)) == [two.id, three.id]
    assert ids(store.tree.waiting_summaries(ref, level=1, limit=1)) == [two.id]


def test_closing_a_session_archives_its_highest_summaries(store: SqlStore) -> None:
    ref = session_with(store, 4)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    top = summarised(store, ref, 2, one)
    store.tree.archive(ref)
    assert SummaryState.ARCHIVED not in {found.state for found in store.tree.all(ref)}  # it was not closed
    store.transcript.end(ref, now=1.0)
    store.tree.archive(ref)
    states = {found.id: found.state for found in store.tree.all(ref)}
    assert states == {
        one.id: SummaryState.SUPERSEDED,
        two.id: SummaryState.ARCHIVED,
        top.id: SummaryState.ARCHIVED,
    }
    assert ids(store.tree.roots(ref, limit=9)) == [top.id, two.id]
    assert claim(store, ref, plan(2, two)) is not None


def test_figures_sum_the_finished_summaries_of_each_level(store: SqlStore) -> None:
    ref = session_with(store, 6)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    summarised(store, ref, 2, one, two)
    claim(store, ref, plan(1, 5, 6))
    first, second = store.tree.level_figures(ref)
    assert (first["level"], first["summaries"], first["tokens"], first["source_tokens"]) == (1, 2, 4, 8)
    assert (first["calls"], first["input_tokens"], first["degraded"], first["stale"]) == (2, 20, 0, 0)
    assert (second["level"], second["summaries"], second["kept_identifiers"]) == (2, 1, 1.0)


def test_borders_and_gaps_of_a_track_are_found(store: SqlStore) -> None:
    ref = session_with(store, 8)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    claim(store, ref, plan(1, 5, 6))
    assert store.tree.borders(ref, track="main", after=0, limit=9) == [(one.id, 1, 2), (two.id, 3, 4)]
    assert store.tree.borders(ref, track="main", after=2, limit=9) == [(two.id, 3, 4)]
    assert store.tree.borders(ref, track="other", after=0, limit=9) == []
    assert store.tree.last_border(ref, track="main", before=4) == (one.id, 1, 2)
    assert store.tree.last_border(ref, track="main", before=2) is None
    assert ids(store.tree.level_1_between(ref, after=2, up_to=4)) == [two.id]
    assert store.tree.uncondensed(ref, track="main", up_to=8) == [(5, 6, 2), (7, 8, 2)]
    assert store.tree.first_uncondensed(ref, track="main", after=0) == 5
    assert store.tree.first_uncondensed(ref, track="main", after=8) is None


def test_summaries_are_found_by_the_beginning_of_their_id(store: SqlStore) -> None:
    ref = session_with(store, 4)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    assert ids(store.tree.by_prefix(ref, one.id[:12])) == [one.id]
    assert ids(store.tree.by_prefix(ref, two.id)) == [two.id]
    assert store.tree.by_prefix(ref, "%") == []
    assert store.tree.by_prefix(session_with(store, 1, "other"), one.id) == []


def test_no_summary_is_reached_through_another_session(store: SqlStore) -> None:
    mine, other = session_with(store, 2, "mine"), session_with(store, 2, "other")
    one = summarised(store, mine, 1, 1, 2)
    assert store.tree.by_id(other, [one.id]) == []
    assert store.tree.roots(other, limit=9) == []
    assert claim(store, other, plan(2, one)) is None
    assert not store.tree.commit(other, one, written("x"), owner="w", now=NOW)
    assert store.tree.waiting_summaries(other, level=1, limit=9) == []
    assert [entry.summary_id for entry in store.transcript.entries(other)] == [None, None]
    assert store.tree.level_figures(other) == []


def test_whoever_ends_gives_back_its_leases_and_nobody_elses(store: SqlStore) -> None:
    ref = session_with(store, 4)
    mine = claim(store, ref, plan(1, 1, 2), owner="ends")
    other = claim(store, ref, plan(1, 3, 4), owner="stays")
    assert mine is not None
    assert other is not None
    assert store.tree.lessees(ref, now=NOW) == {"ends", "stays"}
    store.tree.release(owner="ends", now=NOW)
    assert store.tree.lessees(ref, now=NOW) == {"stays"}
    due = store.tree.due(ref, now=NOW, remake_stale=False)
    assert due is not None
    assert due.id == mine.id
    assert not store.tree.commit(ref, mine, written("late"), owner="ends", now=NOW)
    assert store.tree.commit(ref, other, written("in time"), owner="stays", now=NOW)


def test_a_stale_summary_is_due_later_only_where_stale_ones_are_remade(store: SqlStore) -> None:
    ref = session_with(store, 2)
    assert not store.tree.due_later(ref)
    summarised(store, ref, 1, 1, 2)
    assert not store.tree.due_later(ref)
    append(store, "s", incoming("other words", "m1"))
    assert store.tree.due_later(ref, remake_stale=True)
    assert not store.tree.due_later(ref, remake_stale=False)


def test_finished_summaries_are_read_newest_first(store: SqlStore) -> None:
    ref = append(store, "s", *(incoming("a b", f"m{n}", track="xy"[n % 2]) for n in range(1, 9))).ref
    odd = [summarised(store, ref, 1, n, n + 2) for n in (1, 5)]
    assert ids(store.tree.newest(ref, level=1, up_to=9, limit=9)) == ids(odd)[::-1]
    assert ids(store.tree.newest(ref, level=1, up_to=3, limit=9)) == [odd[0].id]
