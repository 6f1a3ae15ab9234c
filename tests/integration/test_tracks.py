"""Several tracks of one session: ids are unique on each, what is meant by an id, and where the messages are."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import update

from langchain_tiered_memory.driver import run
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.settings import ContextSettings
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.types.records import Entry
from tests.call_styles import CALL_STYLES, CallStyle
from tests.memory_builders import conversation, open_memory, quick_settings

TESTS = Path(__file__).parents[1]

if TYPE_CHECKING:
    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.session import Session

pytestmark = pytest.mark.slow


def told(session: Session, verb: str, call_style: CallStyle, *given: Any, **named: Any) -> Any:
    if call_style == "sync":
        return getattr(session, verb)(*given, **named)
    return asyncio.run(getattr(session, f"a{verb}")(*given, **named))


def texts(session: Session) -> list[str]:
    return [str(one.text) for one in session.messages()]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_same_id_on_two_tracks_is_two_messages(call_style: CallStyle) -> None:
    with open_memory() as memory:
        main, sub = memory.session("s"), memory.session("s", track="sub")
        told(main, "add_messages", call_style, [HumanMessage("on main", id="1")])
        told(sub, "add_messages", call_style, [HumanMessage("on sub", id="1")])
        told(sub, "add_messages", call_style, [HumanMessage("on sub, edited", id="1")])
        assert (texts(main), texts(sub)) == (["on main"], ["on sub, edited"])
        assert [one.text for one in told(sub, "revisions", call_style, "1")] == ["on sub"]
        assert told(main, "revisions", call_style, "1") == []
        assert told(main, "tracks", call_style) == ["main", "sub"]
        assert memory.verify().problems == ()


@pytest.mark.parametrize("older", ["cover", "selection"])
@pytest.mark.parametrize("view", ["default", "detailed", "recall"])
@pytest.mark.parametrize("task", ["task", "main"])
def test_a_conversation_of_its_own_is_shown_nothing_of_other_tracks(older: Any, view: str, task: str) -> None:
    chosen = quick_settings().model_copy(update={"context": ContextSettings(older=older)})
    with open_memory(settings=chosen) as memory:
        other = "main" if task == "task" else "task"
        for number in range(40):
            for track in (task, other):
                said = f"The {track} order {number} of the harbour crane is due on Monday. " * 8
                memory.session("s", track=track).add_messages([HumanMessage(said), AIMessage(f"Noted on {track}.")])
        memory.session("s", track=task).add_messages([HumanMessage("Which order of the harbour crane is due?")])
        memory.flush()
        session = memory.session("s", track=task)
        asked = {"max_tokens": 2000, "system": None, "tools": (), "model": None, "view": view}
        shown = {
            alone: "\n".join(str(one.text) for one in run(session.core.context(None, **asked, alone=alone)).messages)
            for alone in (True, False)
        }
        assert f"The {task} order" in shown[True]
        assert f"The {other} order" not in shown[True]
        assert f"The {other} order" in shown[False]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_id_means_the_message_of_the_own_track_then_that_of_the_one_other_track_that_has_it(
    call_style: CallStyle,
) -> None:
    with open_memory() as memory:
        main = memory.session("s")
        main.add_messages([HumanMessage("on main", id="1")])
        memory.session("s", track="a").add_messages([HumanMessage("on a", id="1"), HumanMessage("of a alone", id="2")])
        memory.session("s", track="b").add_messages([HumanMessage("on b", id="1")])
        told(main, "pin", call_style, "2")
        assert "of a alone" in str(main.context("", max_tokens=2000).messages)
        (found,) = told(memory.session("s", track="a"), "expand", call_style, "1")
        assert isinstance(found, Entry)
        assert found.text == "on a"
        with pytest.raises(InvalidInputError, match=r"'main', 'a', 'b'"):
            told(memory.session("s", track="c"), "expand", call_style, "1")
        with pytest.raises(InvalidInputError, match=r"several tracks.*'a', 'b', 'main'"):
            told(memory.session("s", track="c"), "forget", call_style, message_ids=["1"])
        with pytest.raises(NotFoundError, match="'3'"):
            told(main, "forget", call_style, message_ids=["1", "3"])
        receipt = told(main, "forget", call_style, message_ids=["1"])
        assert receipt.entries == 1
        assert [place for place in receipt.may_remain if "the same ids" in place] == [
            f"The track {track!r} of the session 's': 1 messages of the same ids; "
            f"session(..., track={track!r}).forget(message_ids=...) removes them"
            for track in ("a", "b")
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert texts(main) == []
        assert texts(memory.session("s", track="b")) == ["on b"]
        assert memory.verify().problems == ()


def test_copies_that_say_the_same_are_expanded_from_anywhere() -> None:
    with open_memory() as memory:
        for track in ("a", "b"):
            memory.session("s", track=track).add_messages([HumanMessage("the same words", id="shared-1")])
        for name in ("shared-1", "shared"):
            (found,) = memory.session("s").expand(name)
            assert isinstance(found, Entry)
            assert found.text == "the same words"


def test_summaries_of_tracks_that_share_ids_stand_for_the_words_of_their_own_track() -> None:
    with open_memory(settings=quick_settings()) as memory:
        main, sub = memory.session("s"), memory.session("s", track="sub")
        turns = conversation(12)
        main.add_messages(turns)
        sub.add_messages([one.model_copy(update={"content": f"ZETA-{n} {one.text}"}) for n, one in enumerate(turns)])
        main.flush()
        found = memory.core.runtime.store
        ref = found.transcript.find("s")
        assert ref is not None
        level_1 = [one for one in found.tree.all(ref) if one.level == 1]
        assert {one.track for one in level_1} == {"main", "sub"}
        for summary in level_1:
            below = main.expand(summary.id)
            assert {one.track for one in below} == {summary.track}
            assert len(below) == summary.entry_count
            assert ("ZETA" in summary.text) == (summary.track == "sub")
        assert memory.verify().problems == ()
        summaries = schema.summaries
        wrong = update(summaries).where(summaries.c.level == 1).values(track="main", first_seq=1)
        with found.database.write() as connection:
            connection.execute(wrong)
        assert {one.kind for one in memory.verify().problems} >= {"wrong_summary"}
        assert memory.doctor().healthy
        memory.flush()
        assert memory.verify().problems == ()
        mended = [one for one in found.tree.all(ref) if one.level == 1]
        assert {one.sources: (one.track, one.first_seq) for one in mended} == {
            one.sources: (one.track, one.first_seq) for one in level_1
        }


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_session_without_messages_on_its_main_track_says_on_which_tracks_they_are(call_style: CallStyle) -> None:
    with open_memory() as memory:
        events: list[Event] = []
        memory.subscribe(events.append)
        assert told(memory.session("s"), "tracks", call_style) == []
        assert told(memory.session("s"), "messages", call_style) == []
        memory.session("s", track="chat").add_messages([HumanMessage("hello"), AIMessage("hi")])
        with pytest.warns(UserWarning, match=r"no message on its main track.*'chat'.*track='chat'") as warned:
            assert told(memory.session("s"), "messages", call_style) == []
        if call_style == "sync":
            assert Path(warned[0].filename).is_relative_to(TESTS), "it points at who called the verb"
        (event,) = [one for one in events if one.name == "messages_elsewhere"]
        assert event.details["tracks"] == ["chat"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert told(memory.session("s", track="chosen"), "messages", call_style) == [], "who names a track means it"
            memory.session("s").add_messages([HumanMessage("on main")])
            assert len(told(memory.session("s"), "messages", call_style)) == 1


def test_a_checkpoint_and_its_restore_tell_the_tracks_apart() -> None:
    with open_memory() as memory:
        main, sub = memory.session("s"), memory.session("s", track="sub")
        main.add_messages([HumanMessage("on main", id="1")])
        sub.add_messages([HumanMessage("on sub", id="1")])
        sub.pin("1")
        saved = main.checkpoint("test")
        sub.add_messages([HumanMessage("on sub, edited", id="1")])
        sub.unpin("1")
        report = main.restore(saved.id)
        assert [(one.kind, one.what) for one in report.differences if one.kind.startswith("message")] == []
        transcript = memory.core.runtime.store.transcript
        entries = transcript.entries(transcript.find("s"))  # type: ignore[arg-type]
        assert [one.track for one in entries if one.pinned] == ["sub"]
