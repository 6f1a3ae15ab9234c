"""What the transcript must do on every database."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError, NotFoundError
from langchain_tiered_memory.sql.schema import packed, storable, unpacked
from langchain_tiered_memory.types.drafts import Follows
from tests.store_builders import (
    NOW,
    append,
    claim,
    ids,
    incoming,
    open_calls,
    open_store,
    pinned,
    plan,
    session_with,
    waiting,
)

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef

ODD_STRINGS = (
    "a\0b",
    "lone \ud800 surrogate",
    "pair \ud83d\ude00 of surrogates",
    "\N{GRINNING FACE} \N{ZERO WIDTH JOINER}",
    "x" * 10_000,
    "'; DROP TABLE ltm_entries; --",
    'double "quotes" and \\backslashes\\n',
    "\\ud800 in plain letters",
    "a/b/../c.d?e=f#g%00",
    "line\nbreak\ttab\r",
    " ",
    "%_[]*",
    "\u202eright to left",
)


def test_messages_come_back_as_they_were_written_and_in_their_order(store: SqlStore) -> None:
    sent = [incoming(f"text {n}", name="Ann", kind="note", task="t1", track="side", role="assistant") for n in range(5)]
    ref = append(store, "s", *sent).ref
    found = store.transcript.entries(ref)
    assert [entry.seq for entry in found] == [1, 2, 3, 4, 5]
    for entry, item in zip(found, sent, strict=True):
        for field in dataclasses.fields(item.draft):
            if field.name not in ("reported", "counter"):
                assert getattr(entry, field.name) == getattr(item.draft, field.name)
        assert (entry.pinned, entry.revision, entry.summary_id, entry.group) == (False, 0, None, entry.seq)


def test_what_was_appended_is_there_after_the_store_is_opened_again(shared_where: str | Path) -> None:
    first = open_store(shared_where)
    ref = session_with(first, 3)
    first.database.close()
    again = open_store(shared_where)
    assert ids(again.transcript.entries(ref)) == ["m1", "m2", "m3"]
    assert again.database.identity == first.database.identity
    again.database.close()


def test_appending_the_same_messages_again_changes_nothing(store: SqlStore) -> None:
    items = [incoming("one", "a"), incoming("two", "b")]
    first = append(store, "s", *items)
    before = store.transcript.entries(first.ref), store.transcript.totals(first.ref)
    again = append(store, "s", *items)
    assert (first.new, again.new, again.revised) == (2, 0, ())
    assert (store.transcript.entries(again.ref), store.transcript.totals(again.ref)) == before


def test_a_new_payload_that_says_the_same_is_no_revision(store: SqlStore) -> None:
    item = incoming("same", "a")
    ref = append(store, "s", item).ref
    later = dataclasses.replace(item, draft=dataclasses.replace(item.draft, payload='{"usage": 1}'))
    appended = append(store, "s", later)
    (entry,) = store.transcript.entries(ref)
    assert (appended.new, appended.revised, entry.revision, entry.payload) == (0, (), 0, '{"usage": 1}')
    assert store.transcript.revisions(ref, "a") == []
    assert appended.ref.epoch == ref.epoch


def test_an_edit_keeps_place_and_time_and_the_old_revisions_stay_readable(store: SqlStore) -> None:
    original = incoming("first", "a", at=5.0, track="x", payload="p0")
    ref = append(store, "s", original, incoming("next", "b")).ref
    appended = append(store, "s", incoming("second words", "a", at=99.0, track="x", payload="p1", kind="k"))
    append(store, "s", incoming("first", "a", track="x", payload="p2"))
    entry = store.transcript.by_id(ref, ["a"])[0]
    assert appended.revised == ("a",)
    assert (entry.seq, entry.at, entry.track, entry.revision, entry.payload) == (1, 5.0, "x", 2, "p2")
    assert store.transcript.revisions(ref, "a") == ["p0", "p1"]
    assert store.transcript.revisions(ref, "b") == []


def test_an_id_is_unique_on_its_track_and_may_stand_on_others(store: SqlStore) -> None:
    ref = append(store, "s", incoming("on main", "1")).ref
    again = append(store, "s", incoming("on sub", "1", track="sub"), incoming("on main", "1"))
    assert (again.new, again.revised) == (1, ())
    append(store, "s", incoming("on sub, edited", "1", track="sub"))
    assert [(one.track, one.text) for one in store.transcript.by_id(ref, ["1"])] == [
        ("main", "on main"),
        ("sub", "on sub, edited"),
    ]
    assert [one.text for one in store.transcript.by_id(ref, ["1"], track="main")] == ["on main"]
    assert store.transcript.named(ref, ["1", "2"], track="sub")["1"].text == "on sub, edited"
    assert store.transcript.revisions(ref, "1", track="sub") == ['{"content": "on sub"}']
    assert store.transcript.revisions(ref, "1", track="main") == []
    store.transcript.set_pin(ref, "1", pinned=True, track="sub")
    assert [one.track for one in pinned(store, ref)] == ["sub"]
    with pytest.raises(InvalidInputError, match=r"several tracks.*'main', 'sub'.*not on 'other'"):
        store.transcript.set_pin(ref, "1", pinned=True, track="other")


def test_the_beginning_of_an_id_that_several_tracks_have_is_that_of_one_id(store: SqlStore) -> None:
    ref = append(store, "s", incoming("a", "first-id"), incoming("a", "first-id", track="sub")).ref
    append(store, "s", incoming("b", "second-id"))
    assert ids(store.transcript.by_prefix(ref, "first")) == ["first-id", "first-id"]
    assert ids(store.transcript.by_prefix(ref, "second")) == ["second-id"]


def test_nothing_is_written_when_an_id_that_must_be_new_is_there(store: SqlStore) -> None:
    ref = append(store, "s", incoming("one", "a"), incoming("sub", "b", track="sub")).ref
    refused = append(store, "s", incoming("two", "c"), incoming("other", "a"), new_ids=frozenset({"a"}))
    assert (refused.is_taken, refused.new) == (True, 0)
    written = append(store, "s", incoming("two", "c"), incoming("main", "b"), new_ids=frozenset({"b", "c"}))
    assert (written.is_taken, written.new) == (False, 2)
    assert [one.text for one in store.transcript.entries(ref, track="main")] == ["one", "two", "main"]


def test_messages_that_follow_one_are_written_where_it_stands_as_it_was_known(store: SqlStore) -> None:
    ref = session_with(store, 2)
    append(store, "s", incoming("sub", "m9", track="sub"))
    for follows in (
        Follows("m2", 3, ref.epoch),
        Follows("m2", 2, ref.epoch + 1),
        Follows("m9", 3, ref.epoch),
        Follows("gone", 2, ref.epoch),
    ):
        refused = append(store, "s", incoming("two", "m3"), follows=follows)
        assert (refused.is_taken, refused.new) == (True, 0), follows
    refused = append(store, "another", incoming("two", "m3"), follows=Follows("m2", 2, 0))
    assert refused.is_taken
    assert store.transcript.find("another") is None
    written = append(store, "s", incoming("two", "m3"), follows=Follows("m2", 2, ref.epoch))
    assert (written.is_taken, written.new, written.behind) == (False, 1, 3)
    assert [one.id for one in store.transcript.entries(ref, track="main")] == ["m1", "m2", "m3"]


def test_tracks_are_listed_in_the_order_in_which_they_began(store: SqlStore) -> None:
    ref = append(store, "s", *(incoming(str(n), track=track) for n, track in enumerate("czazbc"))).ref
    assert store.transcript.tracks(ref) == ["c", "z", "a", "b"]
    assert store.transcript.tracks(session_with(store, 1, "other")) == ["main"]


def test_an_edit_moves_the_epoch_of_the_reference_that_comes_back(store: SqlStore) -> None:
    ref = session_with(store, 1)
    edited = append(store, "s", incoming("other words", "m1")).ref
    assert edited.epoch == ref.epoch + 1
    assert store.transcript.find("s") == edited


def test_an_id_that_comes_twice_in_one_call_is_the_message_and_then_its_edit(store: SqlStore) -> None:
    appended = append(
        store, "s", incoming("one", "a", payload="p0"), incoming("two", "b"), incoming("three", "a"), incoming("x", "c")
    )
    found = store.transcript.entries(appended.ref)
    assert [(entry.id, entry.seq, entry.text) for entry in found] == [("a", 1, "three"), ("b", 2, "two"), ("c", 3, "x")]
    assert (appended.new, appended.revised) == (3, ("a",))
    assert store.transcript.revisions(appended.ref, "a") == ["p0"]
    assert store.transcript.totals(appended.ref)["tokens"] == 3


def test_a_result_joins_the_group_of_its_call_however_late_and_only_on_its_track(store: SqlStore) -> None:
    append(store, "s", incoming("call", "call", role="assistant", calls=("c1", "c2")), incoming("between", "u"))
    ref = append(store, "s", incoming("elsewhere", "r0", role="tool", answers="c1", track="other")).ref
    assert ids([*waiting(store, ref, track="main")]) == ["call"]
    append(store, "s", incoming("result 1", "r1", role="tool", answers="c1"))
    assert open_calls(store, ref) == {1: ("c2",)}
    append(store, "s", incoming("result 2", "r2", role="tool", answers="c2"))
    assert ids(store.transcript.groups_of(ref, [1])) == ["call", "r1", "r2"]
    assert store.transcript.by_id(ref, ["r0"])[0].group == 3
    assert waiting(store, ref, track="main") == ()


def test_of_two_messages_that_make_the_same_call_the_later_gets_the_result_and_the_earlier_still_waits(
    store: SqlStore,
) -> None:
    ref = append(store, "s", incoming("1", "h1", calls=("call_0", "x")), incoming("2", "h2", calls=("call_0",))).ref
    append(store, "s", incoming("r", "r1", answers="call_0"), incoming("r x", "r2", answers="x"))
    assert [entry.group for entry in store.transcript.entries(ref)] == [1, 2, 2, 1]
    assert open_calls(store, ref) == {1: ("call_0",)}


def test_an_edit_that_drops_a_call_no_longer_waits_for_it(store: SqlStore) -> None:
    ref = append(store, "s", incoming("1", "h", calls=("a", "b")), incoming("r", "r", answers="a")).ref
    append(store, "s", incoming("1 edited", "h", calls=("a",)))
    assert waiting(store, ref, track="main") == ()


def test_reads_filter_by_track_place_and_role(store: SqlStore) -> None:
    ref = append(
        store,
        "s",
        *(
            incoming(str(n), f"m{n}", track="even" if n % 2 == 0 else "odd", role="user" if n < 5 else "tool")
            for n in range(1, 9)
        ),
    ).ref
    read = store.transcript.entries
    assert ids(read(ref, track="even")) == ["m2", "m4", "m6", "m8"]
    assert ids(read(ref, after=3, up_to=5)) == ["m4", "m5"]
    assert ids(read(ref, roles=["tool"], newest_first=True, limit=2)) == ["m8", "m7"]
    assert ids(read(ref, track="odd", roles=["user"], limit=1)) == ["m1"]
    assert ids(store.transcript.by_seq(ref, [7, 2, 2, 99])) == ["m2", "m7"]
    assert ids(store.transcript.by_id(ref, ["m8", "nobody", "m1", "m8"])) == ["m1", "m8"]


def test_many_ids_are_read_at_once(store: SqlStore) -> None:
    ref = session_with(store, 1200)
    assert len(store.transcript.by_id(ref, [f"m{n}" for n in range(1, 1201)])) == 1200
    assert len(store.transcript.by_seq(ref, range(1, 1201))) == 1200
    assert len(store.transcript.groups_of(ref, range(1, 1201))) == 1200


def test_a_pin_holds_until_it_is_let_go(store: SqlStore) -> None:
    ref = session_with(store, 3)
    store.transcript.set_pin(ref, "m3", pinned=True)
    store.transcript.set_pin(ref, "m1", pinned=True)
    assert ids(pinned(store, ref)) == ["m1", "m3"]
    store.transcript.set_pin(ref, "m1", pinned=False)
    assert ids(pinned(store, ref)) == ["m3"]
    moved = store.transcript.find("s")
    assert moved is not None
    assert moved.epoch == 3
    with pytest.raises(NotFoundError, match="no message 'm9'"):
        store.transcript.set_pin(ref, "m9", pinned=True)


def test_an_edit_keeps_the_pin(store: SqlStore) -> None:
    ref = session_with(store, 1)
    store.transcript.set_pin(ref, "m1", pinned=True)
    append(store, "s", incoming("edited", "m1"))
    assert ids(pinned(store, ref)) == ["m1"]


def test_a_session_belongs_to_its_first_user(store: SqlStore) -> None:
    append(store, "s", incoming())
    owned = append(store, "s", incoming(), user="ann").ref
    assert owned.user == "ann"
    append(store, "s", incoming())
    with pytest.raises(MixedOwnersError, match="belongs to another user than 'bob'"):
        append(store, "s", incoming(), user="bob")
    append(store, "t", incoming(), user="bob")
    assert [one.session_id for one in store.transcript.sessions(user="ann")] == ["s"]
    assert [one.session_id for one in store.transcript.sessions()] == ["s", "t"]
    assert store.transcript.totals(owned)["entries"] == 3


def test_a_message_to_a_closed_session_opens_it_again(store: SqlStore) -> None:
    ref = append(store, "s", incoming(), title="old").ref
    store.transcript.end(ref, now=NOW)
    closed = store.transcript.find("s")
    assert closed is not None
    assert closed.ended_at == NOW
    opened = append(store, "s", incoming(), title="new").ref
    assert (opened.ended_at, opened.title) == (None, "new")
    assert store.transcript.find("s") == opened


def test_a_call_that_cannot_be_written_whole_writes_nothing(store: SqlStore) -> None:
    ref = session_with(store, 2)
    before = store.transcript.totals(ref)
    with pytest.raises(InvalidInputError, match="shorter name"):
        append(store, "s", incoming("good"), incoming("edited", "m1"), incoming("bad", track="t" * 2000))
    assert store.transcript.totals(ref) == before
    assert [entry.text for entry in store.transcript.entries(ref)] == ["word1 common", "word2 common"]


def test_an_empty_session_and_a_missing_one_have_no_rows(store: SqlStore) -> None:
    assert store.transcript.find("nobody") is None
    ref = append(store, "s").ref
    assert (store.transcript.entries(ref), store.transcript.totals(ref)["entries"]) == ([], 0)


@pytest.mark.parametrize("odd", ODD_STRINGS, ids=lambda odd: ascii(odd[:20]))
def test_any_string_may_name_things(store: SqlStore, odd: str) -> None:
    track = odd[:90]
    item = incoming("hello world", odd, name=odd, kind=odd, task=odd, track=track, calls=(odd,), role="assistant")
    ref = append(store, odd, item, incoming("plain", "p"), user=odd, title=odd).ref
    found: SessionRef | None = store.transcript.find(odd)
    assert found == ref
    assert (ref.session_id, ref.user, ref.title) == (odd, odd, odd)
    answered = append(store, odd, incoming("r", odd + "r", answers=odd, track=track), user=odd).ref
    entry, result = store.transcript.by_id(answered, [odd, odd + "r"])
    assert (entry.id, entry.name, entry.kind, entry.task, entry.track) == (odd, odd, odd, odd, track)
    assert (entry.calls, result.answers, result.group) == ((odd,), odd, entry.seq)
    assert len(store.transcript.entries(ref, track=track)) == 2
    assert [one.session_id for one in store.transcript.sessions(user=odd)] == [odd]
    waiting = {store.tree.next_waiting_track(ref, after=None), store.tree.next_waiting_track(ref, after=track)}
    waiting.add(store.tree.next_waiting_track(ref, after="main"))
    assert {track, "main"} <= waiting
    claimed = claim(store, ref, plan(1, entry.seq, result.seq, track=track))
    assert claimed is not None
    assert (claimed.track, claimed.sources) == (track, (odd, odd + "r"))


def test_ids_that_differ_only_in_how_they_would_be_escaped_stay_apart(store: SqlStore) -> None:
    twins = ["\\ud800", "\ud800", "\\\\ud800", "\ud83d\ude00", "\U0001f600", "\\U0001f600", "\0", "\\x00", "\\0"]
    ref = append(store, "s", *(incoming("x", twin) for twin in twins)).ref
    assert [entry.id for entry in store.transcript.entries(ref)] == twins


def test_texts_that_no_database_takes_are_made_storable(store: SqlStore) -> None:
    ref = append(store, "s", incoming("a\0b \ud800 c", "m", terms="a\0b \ud800")).ref
    assert store.transcript.entries(ref)[0].text == "a\ufffdb \ufffd c"


def test_nothing_of_one_session_is_read_through_another(store: SqlStore) -> None:
    mine = session_with(store, 3, "mine", role="assistant")
    append(store, "mine", incoming("call", "open", calls=("c",)))
    store.transcript.set_pin(mine, "m1", pinned=True)
    append(store, "mine", incoming("edited", "m2"))
    other = append(store, "other", incoming("x", "y", answers="c")).ref
    assert ids(store.transcript.entries(other)) == ["y"]
    assert store.transcript.by_id(other, ["m1", "open"]) == []
    assert ids(store.transcript.by_seq(other, [1, 2, 3])) == ["y"]
    assert pinned(store, other) == []
    assert store.transcript.revisions(other, "m2") == []
    assert waiting(store, other, track="main") == ()
    assert store.transcript.entries(other)[0].group == 1
    with pytest.raises(NotFoundError):
        store.transcript.set_pin(other, "m1", pinned=True)


any_text = st.text(st.characters(exclude_categories=()), max_size=40)


@given(any_text)
def test_packing_is_undone_by_unpacking_and_gives_plain_ascii(value: str) -> None:
    assert unpacked(packed(value)) == value
    assert packed(value).isascii()
    assert packed(value).isprintable()


@given(any_text)
def test_a_storable_text_keeps_its_length(value: str) -> None:
    assert len(storable(value)) == len(value)
    storable(value).encode("utf-8")
