"""A handle with a scope says nothing of another track; its sight of the parent is capped and read-only."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.types import Scope
from tests.embedders import HashingEmbeddings
from tests.memory_builders import entries_of, open_memory, summaries_of

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session, TieredMemory

pytestmark = pytest.mark.slow

WORDS = {"main": "kingfisher", "researcher": "wagtail", "writer": "dipper"}
"""What each track says in all of its messages, and no other does."""
VIEWS = ("default", "recall", "minimal", "detailed", "compact")

says = st.lists(
    st.tuples(st.sampled_from(sorted(WORDS)), st.sampled_from(["talk", "file", "fact", "pin"]), st.integers(1, 12)),
    min_size=6,
    max_size=30,
)


def said(track: str, kind: str, number: int, length: int) -> list[BaseMessage]:
    """Messages of one turn, each with its track's word."""
    word = WORDS[track]
    if kind == "file":
        call = {"name": "read_file", "args": {"path": f"{word}/{number}.py"}, "id": f"{track}.{number}"}
        lines = "\n".join(f"{word}_{line} = order({line})" for line in range(length * 4))
        return [AIMessage("", tool_calls=[call]), ToolMessage(lines, tool_call_id=f"{track}.{number}")]
    if kind == "fact":
        return [
            HumanMessage(f"The {word} order {number} is due on 2024-03-{number % 28 + 1:02d} and costs {number} EUR.")
        ]
    question = f"Where does order {number} of the {word} stand? " * length
    return [HumanMessage(question), AIMessage(f"Order {number} of the {word} ships on Monday. " * length)]


def played(memory: TieredMemory, script: list[tuple[str, str, int]]) -> None:
    """Have every track say its part; each begins with a message of its own."""
    opening = [(track, "talk", 1) for track in WORDS]
    for number, (track, kind, length) in enumerate([*opening, *script]):
        session = memory.session("run", track=track)
        ids = session.add_messages(said(track, kind, number, length))
        if kind == "pin":
            session.pin(ids[0])
    memory.flush()


def others(track: str, *, but: str = "") -> list[str]:
    """The words of all other tracks."""
    return [word for name, word in WORDS.items() if name not in (track, but)]


def answers(session: Session, word: str, budget: int, view: str) -> list[str]:
    """All that a handle says when it is asked for what another track said."""
    context = session.context(f"order of the {word}", max_tokens=budget, view=view)
    assert not check_valid(context.messages, complete=False)
    assert context.tokens <= budget
    shown = [str([one.content for one in context.messages]), str(context.sections)]
    later = asyncio.run(session.acontext(f"order of the {word}", max_tokens=budget, view=view))
    assert [one.content for one in later.messages] == [one.content for one in context.messages]
    found = session.search(f"order 1 of the {word}", k=50)
    assert asyncio.run(session.asearch(f"order 1 of the {word}", k=50)) == found
    shown += [str(found), str(session.facts(k=200, superseded=True)), str(session.facts(word)), str(session.messages())]
    shown += [str(session.outcomes()), str(session.ledger()), str(session.tracks()), str(session.tasks())]
    return shown


@settings(max_examples=8)
@given(says, st.sampled_from(sorted(WORDS)), st.sampled_from(VIEWS), st.integers(400, 4000), st.booleans())
def test_a_scope_without_sight_shows_its_own_track_alone(
    script: list[tuple[str, str, int]],
    track: str,
    view: str,
    budget: int,
    embeds: bool,  # noqa: FBT001 - drawn
) -> None:
    with open_memory(embeddings=HashingEmbeddings() if embeds else None) as memory:
        played(memory, script)
        session = memory.session("run", track=track, scope=Scope())
        for word in others(track):
            assert all(word not in one for one in answers(session, word, budget, view))
        for entry in entries_of(memory.session("run")):
            if entry.track != track:
                with pytest.raises(NotFoundError):
                    session.expand(entry.id)
        for summary in summaries_of(session):
            below = ""
            with contextlib.suppress(NotFoundError):  # what merges tracks may stand for messages of one alone
                below = str(session.expand(summary.id)) + str(session.expand(summary.id, depth=None))
            assert all(word not in below for word in others(track))


@settings(max_examples=8)
@given(
    says, st.sampled_from(["researcher", "writer"]), st.sampled_from(VIEWS), st.integers(600, 4000), st.integers(0, 900)
)
def test_a_sight_shows_the_parent_alone_and_within_its_tokens(
    script: list[tuple[str, str, int]], track: str, view: str, budget: int, cap: int
) -> None:
    with open_memory() as memory:
        played(memory, script)
        count = memory.core.runtime.counter.count_text
        session = memory.session("run", track=track, scope=Scope(sight_tokens=cap))
        for word in others(track):
            for one in answers(session, word, budget, view):
                assert all(hidden not in one for hidden in others(track, but="main"))
        context = session.context("order of the kingfisher", max_tokens=budget, view=view)
        seen = [section for section in context.sections if section.name == "parent"]
        assert sum(section.tokens for section in seen) <= cap
        rest = [section for section in context.sections if section.name != "parent"]
        assert "kingfisher" not in str([(section.text, section.left_out) for section in rest])
        hits = session.search("order 1 of the kingfisher", k=50)
        assert sum(count(hit.text) for hit in hits if hit.track == "main") <= cap


@settings(max_examples=8)
@given(says, st.integers(200, 900))
def test_a_sub_agent_changes_nothing_of_its_parent(script: list[tuple[str, str, int]], cap: int) -> None:
    with open_memory() as memory:
        played(memory, script)
        main, session = memory.session("run"), memory.session("run", track="writer", scope=Scope(sight_tokens=cap))
        main.start_task("report")
        pins = [entry.id for entry in entries_of(main) if entry.track == "main"]
        before = [entry for entry in entries_of(main) if entry.track == "main"]
        tasks, tracks = main.tasks(), main.tracks()
        refused: list[Any] = [
            lambda: session.forget(message_ids=pins[:1]),
            session.forget,
            session.end,
            session.restore,
            session.undo,
            lambda: session.phase("done"),
            lambda: session.pin(pins[0]),
            lambda: session.unpin(pins[0]),
            lambda: session.revisions(pins[0]),
            lambda: session.finish_task("report"),
            lambda: session.search("order", tracks=["researcher"]),
        ]
        for verb in refused:
            with pytest.raises((InvalidInputError, NotFoundError)):
                verb()
        assert session.start_task("report").track == "writer", "a name is one on its track"
        session.add_messages([HumanMessage("The dipper has the last word.")])
        session.context("kingfisher", max_tokens=900)
        memory.flush()
        after = [entry for entry in entries_of(main) if entry.track == "main"]
        assert [(one.id, one.text, one.pinned, one.task) for one in after] == [
            (one.id, one.text, one.pinned, one.task) for one in before
        ]
        assert [one for one in main.tasks() if one.track == "main"] == tasks
        assert main.tracks() == tracks
        assert memory.verify().problems == ()


def test_what_a_sight_shows_stays_until_the_user_speaks_again() -> None:
    with open_memory() as memory:
        main, sub = memory.session("run"), memory.session("run", track="sub", scope=Scope(sight_tokens=400))
        main.add_messages([HumanMessage("Build the quay in Bergen."), AIMessage("I ask the researcher.")])
        sub.add_messages([HumanMessage("What does the permit say?")])
        first = sub.context(max_tokens=2000)
        main.add_messages([AIMessage("The permit came meanwhile.")])
        call = {"name": "look_up", "args": {}, "id": "1"}
        sub.add_messages([AIMessage("", tool_calls=[call]), ToolMessage("nothing", tool_call_id="1")])
        second = sub.context(max_tokens=2000)
        assert "Bergen" in str(first.messages[0].content)
        assert [one.content for one in second.messages[:2]] == [one.content for one in first.messages]
        sub.add_messages([AIMessage("Nothing."), HumanMessage("And now?")])
        assert "came meanwhile" in str([one.content for one in sub.context(max_tokens=2000).messages])


def test_a_track_that_is_the_only_one_has_its_higher_summaries_in_a_scope() -> None:
    with open_memory() as memory:
        for number in range(60):
            memory.session("run").add_messages(said("main", "talk", number, 3))
        memory.flush()
        session = memory.session("run", scope=Scope())
        levels = {one.id: one.level for one in summaries_of(session)}
        assert max(levels.values()) > 1
        shown = session.context("", max_tokens=1200).summary_ids
        assert {levels[one] for one in shown} - {1}
        assert {hit.level for hit in session.search("order of the kingfisher", k=40)} - {0, 1}
        memory.session("run", track="writer").add_messages(said("writer", "talk", 99, 1))
        assert {levels[one] for one in session.context("", max_tokens=1100).summary_ids} <= {1}


@pytest.mark.parametrize("scope", [{"sight_tokens": -1}, {"sight_tokens": True}, {"parent": ""}, {"parent": 3}])
def test_a_scope_that_cannot_be_meant_is_refused(scope: dict[str, Any]) -> None:
    with open_memory() as memory, pytest.raises(InvalidInputError):
        memory.session("run", scope=Scope(**scope))
    with open_memory() as memory, pytest.raises(InvalidInputError):
        memory.session("run", scope="main")  # type: ignore[arg-type]
