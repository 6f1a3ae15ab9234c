"""A person rates a summary: the verdict is kept and counted, and what was wrong or missing stands in the next text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.reports import Ratings
from langchain_tiered_memory.testing import ScriptedModel
from langchain_tiered_memory.types import Scope
from langchain_tiered_memory.types.drafts import Written
from langchain_tiered_memory.types.records import Spent
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings, ref_of, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.records import Summary

MISSING = "The pumps are of the maker Okonkwo and run at 940 rpm"


def talked(memory: TieredMemory, *, turns: int = 26) -> Session:
    session = memory.session("s")
    for number in range(turns):
        session.add_messages(
            [HumanMessage(f"Pump {number} in hall {number % 7} leaks at the valve."), AIMessage("I noted it down.")]
        )
    session.flush()
    return session


def summaries_of(session: Session, level: int) -> list[Summary]:
    return [one for one in session.tree().summaries if one.level == level]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.sweep(1)
def test_what_was_missing_stands_in_the_next_text_and_in_all_that_follow(
    where: str | Path | None, call_style: CallStyle
) -> None:
    with open_memory(where) as memory:
        session = talked(memory)
        first = summaries_of(session, 1)[0]
        rated = told(call_style, session.rate, first.id[:8], "incomplete", note=MISSING)
        assert (rated.verdict, rated.verdict_note, rated.stale) == ("incomplete", MISSING, True)
        session.flush()
        for _ in range(2):
            again = summaries_of(session, 1)[0]
            assert MISSING in again.text
            assert again.id == first.id
            assert (again.stale, again.verdict) == (False, "incomplete")
            # An edit below has it made once more.
            session.add_messages([HumanMessage("Pump 0 in hall 3 is fine.", id=again.sources[0])])
            session.flush()
        assert session.metrics().ratings == (Ratings(level=1, writer="extractive", incomplete=1),)
        assert memory.verify().problems == ()
        memory.rebuild_index()
        assert MISSING in session.search("maker Okonkwo rpm")[0].text


@pytest.mark.sweep(1)
def test_what_stands_above_is_made_from_the_new_text(where: str | Path | None) -> None:
    with open_memory(where) as memory:
        session = talked(memory)
        (above, *_) = summaries_of(session, 2)
        session.rate(above.sources[0], "wrong", note=MISSING)
        session.flush()
        again = summaries_of(session, 2)[0]
        assert again.id == above.id
        assert again.source_digest != above.source_digest
        assert not again.stale


def test_the_model_is_told_and_its_own_words_are_enough_where_they_say_it() -> None:
    said = f"The user reported leaking valves. {MISSING}."
    plain = "The user reported valves that leak in several halls, one after the other."
    model = ScriptedModel(answers=[plain, said])
    settings = quick_settings(eager=True)
    with open_memory(model=model, settings=settings) as memory:
        session = talked(memory, turns=8)
        (first, *_) = summaries_of(session, 1)
        assert first.model != "extractive"
        session.rate(first.id, "incomplete", note=MISSING)
        session.flush()
        (again, *_) = summaries_of(session, 1)
        assert again.text.count("Okonkwo") == 1
        assert MISSING in str(model.prompts[-1])


@pytest.mark.sweep(1)
def test_a_persons_own_text_takes_the_place_of_the_summary_in_search_too(where: str | Path | None) -> None:
    own = "Sixty pumps in seven halls leak at the valve; a Zieglermann seal mends it."
    with open_memory(where) as memory:
        session = talked(memory)
        first = summaries_of(session, 1)[0]
        now = session.rate(first.id, "wrong", text=own)
        assert (now.text, now.model, now.stale) == (own, "person", False)
        session.flush()
        assert summaries_of(session, 1)[0].text == own
        assert own in [hit.text for hit in session.search("Zieglermann seal", levels=[1])]
        assert session.metrics().ratings == (Ratings(level=1, writer="extractive", wrong=1),)
        assert memory.verify().problems == ()


def test_words_that_are_there_in_another_order_are_no_correction() -> None:
    with open_memory() as memory:
        session = talked(memory)
        first = summaries_of(session, 1)[0]
        backwards = " ".join(reversed(first.text.rstrip(".").split()[:5]))
        session.rate(first.id, "wrong", note=backwards)
        session.flush()
        assert backwards in summaries_of(session, 1)[0].text


@pytest.mark.sweep(1)
def test_a_verdict_that_comes_while_a_summary_is_written_is_not_lost(where: str | Path | None) -> None:
    with open_memory(where) as memory:
        session = talked(memory)
        first = summaries_of(session, 1)[0]
        session.rate(first.id, "wrong")
        store, ref = store_of(memory), ref_of(session)
        now = session.core.runtime.now()
        due = store.tree.due(ref, now=now, remake_stale=False)
        assert due is not None
        assert store.tree.lease(due, owner="another process", now=now, lease_seconds=60)
        session.rate(first.id, "incomplete", note=MISSING)
        written = Written(
            text="Pumps leak.", tokens=3, facts=(), model="extractive", spent=Spent(), kept_identifiers=None,
            source_digest="", passages=(),
        )  # fmt: skip
        assert store.tree.commit(ref, due, written, owner="another process", now=now)
        session.flush()
        assert MISSING in summaries_of(session, 1)[0].text


@pytest.mark.sweep(1)
def test_a_later_verdict_takes_the_place_of_an_earlier_one_and_good_changes_nothing(
    where: str | Path | None,
) -> None:
    with open_memory(where) as memory:
        session = talked(memory)
        one, other, *_ = summaries_of(session, 1)
        session.rate(one.id, "wrong")
        session.flush()
        session.rate(one.id, "good")
        session.rate(other.id, "good")
        rated = {summary.id: summary for summary in summaries_of(session, 1)}
        assert rated[other.id].text == other.text
        assert not rated[one.id].stale
        (counts,) = session.metrics().ratings
        assert (counts.good, counts.wrong, counts.good_share) == (2, 0, 1.0)


def test_it_is_made_again_where_edits_leave_summaries_as_they_are() -> None:
    settings = quick_settings(regenerate_on_edit=False)
    with open_memory(settings=settings) as memory:
        session = talked(memory)
        session.rate(summaries_of(session, 1)[0].id, "wrong", note=MISSING)
        session.flush()
        assert MISSING in summaries_of(session, 1)[0].text


@pytest.mark.parametrize(
    ("named", "given", "error", "told_of"),
    [
        ("zzz", {"verdict": "good"}, NotFoundError, "no summary"),
        ("a message", {"verdict": "good"}, NotFoundError, "tree"),
        ("first", {"verdict": "good", "note": "x"}, InvalidInputError, "good"),
        ("first", {"verdict": "fine"}, InvalidInputError, "good"),
        ("first", {"verdict": "wrong", "note": "x" * 601}, InvalidInputError, "600"),
        ("first", {"verdict": "wrong", "text": "word " * 9000}, InvalidInputError, "shorten"),
        ("first", {"verdict": "wrong", "note": "word " * 118}, InvalidInputError, "shorten"),
    ],
)
def test_what_cannot_be_a_verdict_is_refused_and_changes_nothing(
    named: str, given: dict[str, str], error: type[Exception], told_of: str
) -> None:
    with open_memory() as memory:
        session = talked(memory, turns=20)
        before = summaries_of(session, 1)
        wanted = {"first": before[0].id, "a message": before[0].sources[0]}.get(named, named)
        with pytest.raises(error, match=told_of):
            session.rate(wanted, **given)  # type: ignore[arg-type]
        assert summaries_of(session, 1) == before


def test_a_scoped_handle_rates_nothing_of_another_track() -> None:
    with open_memory() as memory:
        session = talked(memory)
        memory.session("s", track="helper").add_messages([HumanMessage("I am here.")])
        scoped = memory.session("s", track="helper", scope=Scope())
        with pytest.raises(NotFoundError):
            scoped.rate(summaries_of(session, 1)[0].id, "wrong", note="It never leaked.")
        assert summaries_of(session, 1)[0].verdict is None


def test_forgetting_a_message_takes_the_note_with_its_summary(tmp_path: Path) -> None:
    with open_memory(tmp_path / "m.db") as memory:
        session = talked(memory)
        first = summaries_of(session, 1)[0]
        session.rate(first.id, "incomplete", note=MISSING)
        session.flush()
        session.forget(message_ids=[first.sources[0]])
        session.flush()
        assert all("Okonkwo" not in one.text and one.verdict is None for one in session.tree().summaries)
    for file in tmp_path.iterdir():
        assert file.is_dir() or b"Okonkwo" not in file.read_bytes()
