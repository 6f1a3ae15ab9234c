"""What the store of facts must do on every database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from langchain_tiered_memory.sql import schema
from tests.store_builders import (
    NOW,
    append,
    claim,
    fact,
    forget_messages,
    forget_session,
    incoming,
    plan,
    session_with,
    summarised,
    written,
)

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import Fact, SessionRef

OLD = fact(1, "The port is 8080.", subject="port")
NEW = fact(4, "The port is now 8443.", subject="port")
NEWEST = fact(6, "Correction: the port is now 9443.", subject="port")
CRANE = fact(2, "The crane of order 1001 costs 900 euros.", subject="crane order", weight=0.9)


def texts(found: list[Fact]) -> list[str]:
    return [one.text for one in found]


def rows_left(store: SqlStore) -> int:
    with store.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(schema.facts)) or 0


def told(store: SqlStore) -> SessionRef:
    ref = session_with(store, 6)
    summarised(store, ref, 1, 1, 2, facts=[OLD, CRANE])
    summarised(store, ref, 1, 3, 4, facts=[NEW])
    return ref


def test_a_later_chunk_corrects_an_earlier_one_whichever_is_committed_first(store: SqlStore) -> None:
    ref = session_with(store, 6)
    for chunk, found in ((5, 6), [NEWEST]), ((1, 2), [OLD, CRANE]), ((3, 4), [NEW]):
        summarised(store, ref, 1, *chunk, facts=found)
    assert texts(store.facts.best(ref, 9)) == [CRANE.text, NEWEST.text]
    everything = {one.text: one for one in store.facts.best(ref, 9, superseded_too=True)}
    assert everything[OLD.text].status == everything[NEW.text].status == "superseded"
    assert everything[OLD.text].superseded_by in {NEW.id, NEWEST.id}


def test_what_is_said_again_and_again_is_told_once_and_hides_nothing(store: SqlStore) -> None:
    ref = session_with(store, 12)
    summarised(store, ref, 1, 1, 2, facts=[CRANE])
    again = [fact(seq, "Please go on with the quay.", subject="", weight=0.95) for seq in range(3, 9)]
    summarised(store, ref, 1, 3, 8, facts=again)
    for k in (2, 9):
        assert texts(store.facts.best(ref, k)) == [again[0].text, CRANE.text]
    assert texts(store.facts.search(ref, "quay crane", 2)) == [CRANE.text, again[0].text]
    assert texts(store.facts.best(ref, 9, track="main")) == [again[0].text, CRANE.text]


def test_candidates_are_the_facts_up_to_a_border_in_their_order_the_weightiest_where_there_are_more(
    store: SqlStore,
) -> None:
    ref = told(store)
    assert texts(store.facts.candidates(ref, up_to=6, limit=9)) == [CRANE.text, NEW.text]
    assert texts(store.facts.candidates(ref, up_to=2, limit=9)) == [CRANE.text]
    assert texts(store.facts.candidates(ref, up_to=6, limit=1)) == [CRANE.text]
    assert texts(store.facts.candidates(ref, up_to=6, limit=1, first={NEW.id, OLD.id})) == [NEW.text]
    assert texts(store.facts.candidates(ref, up_to=2, limit=1, first={NEW.id})) == [CRANE.text], "behind the border"


def test_what_was_kept_before_a_message_is_what_held_there_though_the_message_itself_corrects_it(
    store: SqlStore,
) -> None:
    kept, other = (replace(one, by_model=True, weight=0.99) for one in (OLD, CRANE))
    ref = session_with(store, 6)
    summarised(store, ref, 1, 1, 2, facts=[kept, other])
    summarised(store, ref, 1, 3, 4, facts=[NEW])  # by rules, before a model reads it

    def known(before: int, *, track: str = "main") -> list[str]:
        return texts(store.facts.lasting(ref, before=before, track=track, limit=9))

    assert known(3) == [kept.text, other.text], "so whoever condenses message 4 can say that it is changed"
    assert known(5) == [other.text], "corrected before, and nobody marked the correction"
    assert known(2) == [kept.text]
    assert known(3, track="side") == []


def test_a_message_is_known_by_what_holds_in_the_place_of_what_it_states(store: SqlStore) -> None:
    ref = session_with(store, 6)
    summarised(store, ref, 1, 1, 2, facts=[OLD, CRANE])
    assert store.facts.replaced(ref, [1, 2]) == {}
    summarised(store, ref, 1, 3, 4, facts=[NEW])
    summarised(store, ref, 1, 5, 6, facts=[NEWEST])
    assert {seq: texts(found) for seq, found in store.facts.replaced(ref, range(1, 7)).items()} == {
        1: [NEWEST.text],
        4: [NEWEST.text],
    }
    assert store.facts.replaced(ref, []) == {}


def test_what_is_stated_again_replaces_nothing(store: SqlStore) -> None:
    ref = session_with(store, 6)
    first, again = (
        fact(seq, text, subject="italian cooking class", value="Italian")
        for seq, text in (
            (1, "I'm so excited for my Italian cooking class tonight."),
            (4, "It's the same Italian cooking class I told you about."),
        )
    )
    summarised(store, ref, 1, 1, 2, facts=[first])
    summarised(store, ref, 1, 3, 4, facts=[again])
    assert [one.id for one in store.facts.best(ref, 9)] == [again.id], "one of them is enough"
    assert store.facts.replaced(ref, [1]) == {}


def test_on_a_branch_without_a_correction_what_it_corrected_holds(store: SqlStore) -> None:
    ref = told(store)
    assert texts(store.facts.candidates(ref, up_to=6, without={4}, limit=9)) == [OLD.text, CRANE.text]
    assert texts(store.facts.candidates(ref, up_to=6, without={1, 2}, limit=9)) == [NEW.text]


def test_on_a_branch_without_the_second_of_three_values_the_third_still_holds(store: SqlStore) -> None:
    ref = told(store)
    summarised(store, ref, 1, 5, 6, facts=[NEWEST])
    assert texts(store.facts.candidates(ref, up_to=6, without={4}, limit=9)) == [CRANE.text, NEWEST.text]
    assert texts(store.facts.candidates(ref, up_to=6, without={6}, limit=9)) == [CRANE.text, NEW.text]


def test_a_track_knows_its_own_facts_and_is_corrected_by_them_alone(store: SqlStore) -> None:
    ref = append(store, "s", *(incoming("a", f"m{n}", track="xy"[n % 2]) for n in range(1, 5))).ref
    summarised(store, ref, 1, 1, 3, track="y", facts=[fact(1, "The port is 8080.", subject="port", track="y")])
    summarised(store, ref, 1, 2, 4, track="x", facts=[fact(4, "The port is now 8443.", subject="port", track="x")])
    assert texts(store.facts.candidates(ref, up_to=9, limit=9)) == ["The port is now 8443."]
    assert texts(store.facts.candidates(ref, up_to=9, track="y", limit=9)) == ["The port is 8080."]
    assert texts(store.facts.candidates(ref, up_to=9, track="x", limit=9)) == ["The port is now 8443."]


def test_a_fact_of_several_messages_is_on_no_branch_without_one_of_them(store: SqlStore) -> None:
    ref = session_with(store, 4)
    summarised(store, ref, 1, 1, 2, 3, facts=[fact(1, "Ann runs the pilot.", sources=(1, 3))])
    assert store.facts.candidates(ref, up_to=4, without={2}, limit=9) != []
    assert store.facts.candidates(ref, up_to=4, without={3}, limit=9) == []


def test_a_search_gives_the_best_match_first_and_only_what_holds(store: SqlStore) -> None:
    ref = told(store)
    assert texts(store.facts.search(ref, "which port?", 9)) == [NEW.text]
    assert set(texts(store.facts.search(ref, "which port?", 9, superseded_too=True))) == {OLD.text, NEW.text}
    assert texts(store.facts.search(ref, "what does the crane cost", 1)) == [CRANE.text]
    assert store.facts.search(ref, "nothing of that sort", 9) == []


def test_an_edit_takes_the_facts_of_its_message_out_at_once_and_its_chunk_waits_to_be_read(store: SqlStore) -> None:
    ref = told(store)
    append(store, "s", incoming("other words", "m4"))
    assert texts(store.facts.best(ref, 9, superseded_too=True)) == [CRANE.text, OLD.text]
    assert texts(store.facts.candidates(ref, up_to=6, limit=9)) == [OLD.text, CRANE.text]
    assert [one.sources for one in store.facts.unread(ref, 9)] == [("m3", "m4")]


def test_what_is_read_while_a_message_is_edited_is_not_written(store: SqlStore) -> None:
    ref = told(store)
    append(store, "s", incoming("other words", "m4"))
    ref = store.transcript.find("s")
    assert ref is not None
    (waiting,) = store.facts.unread(ref, 9)
    append(store, "s", incoming("still other words", "m3"))
    assert not store.facts.replace(ref, waiting, [NEW])
    assert [one.id for one in store.facts.unread(ref, 9)] == [waiting.id]
    ref = store.transcript.find("s")
    assert ref is not None
    assert store.facts.replace(ref, waiting, [NEW])
    assert store.facts.unread_count(ref) == 0
    assert texts(store.facts.candidates(ref, up_to=6, limit=9)) == [CRANE.text, NEW.text]


def test_a_message_that_was_edited_while_its_summary_was_written_leaves_no_fact_of_its_old_words(
    store: SqlStore,
) -> None:
    ref = session_with(store, 4)
    claimed = claim(store, ref, plan(1, 1, 2))
    assert claimed is not None
    append(store, "s", incoming("other words", "m1"))
    assert store.tree.commit(ref, claimed, written(facts=(OLD, CRANE)), owner="w", now=NOW)
    assert store.facts.best(ref, 9, superseded_too=True) == []
    assert [one.id for one in store.facts.unread(ref, 9)] == [claimed.id]


def test_forgetting_a_correction_lets_what_it_corrected_hold_and_leaves_no_row_of_it(store: SqlStore) -> None:
    ref = told(store)
    forget_messages(store, ref, ["m4"])
    assert texts(store.facts.best(ref, 9, superseded_too=True)) == [CRANE.text, OLD.text]
    assert texts(store.facts.candidates(ref, up_to=6, limit=9)) == [OLD.text, CRANE.text]
    forget_messages(store, ref, ["m1", "m2"])
    assert rows_left(store) == 0


def test_a_fact_of_several_messages_goes_with_any_of_them(store: SqlStore) -> None:
    ref = session_with(store, 4)
    summarised(store, ref, 1, 1, 2, 3, facts=[fact(1, "Ann runs the pilot.", subject="pilot", sources=(1, 3))])
    forget_messages(store, ref, ["m3"])
    assert rows_left(store) == 0


def test_a_session_goes_with_its_facts_and_leaves_those_of_others(store: SqlStore) -> None:
    ref = told(store)
    other = session_with(store, 2, "other")
    summarised(store, other, 1, 1, 2, facts=[OLD])
    assert store.facts.best(other, 9)[0].status == "active", "one session's facts correct nothing in another"
    forget_session(store, ref)
    assert texts(store.facts.best(other, 9)) == [OLD.text]
    forget_session(store, other)
    assert rows_left(store) == 0


def test_a_fact_that_is_taken_up_above_is_counted_and_keeps_its_count_where_it_is_read_again(store: SqlStore) -> None:
    ref = told(store)
    below = store.tree.waiting_summaries(ref, level=1, limit=9)
    claimed = claim(store, ref, plan(2, *below))
    assert claimed is not None
    assert store.tree.commit(ref, claimed, written(taken_up=(CRANE.id,)), owner="w", now=NOW)
    assert {one.id: one.mentions for one in store.facts.best(ref, 9)} == {CRANE.id: 2, NEW.id: 1}
    assert store.facts.replace(ref, below[0], [OLD, CRANE])
    assert {one.id: one.mentions for one in store.facts.best(ref, 9)} == {CRANE.id: 2, NEW.id: 1}
