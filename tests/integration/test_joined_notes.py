"""A list of notes that has no room for all: the model that keeps it says them in fewer words, and nothing is lost."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_tiered_memory.context.view_cache import ViewCache
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.tree.reviews import joining as joining_of
from langchain_tiered_memory.summaries.tree.reviews import review_of
from langchain_tiered_memory.testing import ScriptedModel, in_parts
from langchain_tiered_memory.types.records import DEFAULT_TRACK
from tests.call_styles import CALL_STYLES, told
from tests.engine_builders import job
from tests.memory_builders import open_memory, quick_settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_tiered_memory import Session, TieredMemory
    from tests.call_styles import CallStyle

both = pytest.mark.parametrize("call_style", CALL_STYLES)
BOAT, MOVED = "The mooring of boat {n} is berth {n}0.", "The mooring of boat 2 is berth 777 now."
LANTERN = "The mooring of boat 2 is berth 20 by the lantern."
SAID = re.compile(r"^<m [^>\n]*>(.+)$", re.MULTILINE)
KEPT = re.compile(r"^(\d+)(?: \([\d-]+\))?: (.+)$", re.MULTILINE)
REVIEW = re.compile(r"<part (\d+) notes words=\d+>")
BUDGET = 700


def joining(messages: Sequence[BaseMessage]) -> str:
    """A model that notes each berth, joins two notes to one where it is asked to, and says what a moved boat had."""
    text = str(messages[-1].text)
    kept = KEPT.findall(text)

    def write(prompt: str) -> str:
        lines: list[str] = []
        for line in filter(lambda one: "berth" in one, SAID.findall(prompt)):
            was = [(place, note) for place, note in kept if line == MOVED and "boat 2 " in note]
            mark = f"[instead of {was[0][0]}] [keep] " if was else "[keep] "
            lines.append(f"- {mark}{line}{f' Before: {was[0][1]}.' if was else ''}")
        return "\n".join(lines or [f"- {line}" for line in SAID.findall(prompt)]) or "- Boats were moored."

    given = in_parts(messages, write) or write(text)
    for number in REVIEW.findall(text):
        plain = [(place, re.findall(r"\d+", note)) for place, note in kept if note.startswith("The mooring")]
        pairs = zip(plain[::2], plain[1::2], strict=False)
        lines = (f"- [instead of {a} {b}] [keep] Boats {x[0]}, {y[0]}: {x[1]}, {y[1]}" for (a, x), (b, y) in pairs)
        given += f"\n<summary {number}>\n" + "\n".join(lines) + "\n</summary>"
    return given


def boats(first: int, last: int) -> list[BaseMessage]:
    said: list[BaseMessage] = []
    for number in range(first, last + 1):
        said += [
            HumanMessage(BOAT.format(n=number), id=f"u{number}"),
            AIMessage(f"Noted; the weather over the bay of quay {number} looks calm today.", id=f"a{number}"),
        ]
    return said


def moored(call_style: CallStyle, memory: TieredMemory) -> Session:
    """A session whose notes had no room in its views until they were joined."""
    session = memory.session("s")
    for first in range(1, 49, 12):
        told(call_style, session.add_messages, boats(first, first + 11))
        told(call_style, session.context, "", max_tokens=BUDGET)
        told(call_style, session.flush)
    return session


def opened(model: ScriptedModel, where: Path | None = None) -> TieredMemory:
    return open_memory(where, model=model, settings=quick_settings())


def noted(call_style: CallStyle, session: Session) -> dict[str, str]:
    return {one.text: one.status for one in told(call_style, session.facts, k=999, superseded=True)}


@both
def test_notes_without_room_are_joined_and_every_view_says_what_they_said(call_style: CallStyle) -> None:
    model = ScriptedModel(answers=joining)
    with opened(model) as memory:
        heard: list[str] = []
        memory.subscribe(lambda event: heard.append(event.name))
        session = moored(call_style, memory)
        assert EventName.NOTES_JOINED in heard
        held = {text for text, status in noted(call_style, session).items() if status == "active"}
        assert "Boats 1, 2: 10, 20" in held
        assert noted(call_style, session)[BOAT.format(n=2)] == "joined"
        view = "\n".join(str(one.text) for one in told(call_style, session.context, "", max_tokens=BUDGET).messages)
        listed = sum(f"{number}0" in view for number in range(1, 37))
        assert listed > 20, "more than the room has of notes by themselves"
        asked = sum(1 for prompt in model.prompts if REVIEW.search(str(prompt[-1].text)))
        assert 0 < asked < len(model.prompts)
        spent = told(call_style, session.metrics).spent
        assert spent.calls == len(model.prompts), "what a review takes is told with its call"
        assert told(call_style, memory.verify).healthy


@both
@pytest.mark.parametrize("how", ["forgotten", "edited"])
def test_what_goes_takes_the_note_that_says_it_too_and_the_others_come_back(
    call_style: CallStyle, how: str, tmp_path: Path
) -> None:
    with opened(ScriptedModel(answers=joining), tmp_path / "m.db") as memory:
        session = moored(call_style, memory)
        if how == "forgotten":
            told(call_style, session.forget, message_ids=["u2"])
        else:
            told(call_style, session.add_messages, [HumanMessage("The boat is gone.", id="u2")])
            told(call_style, session.flush)
        now = noted(call_style, session)
        assert "Boats 1, 2: 10, 20" not in now
        assert BOAT.format(n=2) not in now
        apart = BOAT.format(n=31) if how == "forgotten" else "Boats 3, 4: 30, 40"
        assert now.get(apart) == "active", "others stay joined; of those that a call read with it they come back"
        told(call_style, session.flush)
        assert noted(call_style, session).get(BOAT.format(n=1), "active") == "active"
        assert told(call_style, memory.verify).healthy


@both
def test_what_a_branch_leaves_out_is_in_no_joined_note_of_it(call_style: CallStyle) -> None:
    with opened(ScriptedModel(answers=joining)) as memory:
        session = moored(call_style, memory)
        kept = [one.id for one in told(call_style, session.messages) if one.id != "u2"]
        branch = told(call_style, session.context, "", max_tokens=BUDGET, branch=kept)
        view = "\n".join(str(one.text) for one in branch.messages)
        assert "Boats 1, 2" not in view


@both
def test_what_replaces_a_forgotten_message_in_a_note_is_written_anew(call_style: CallStyle, tmp_path: Path) -> None:
    eager = quick_settings(eager=True)
    with open_memory(tmp_path / "m.db", model=ScriptedModel(answers=joining), settings=eager) as memory:
        session = memory.session("s")
        first = [HumanMessage(LANTERN, id="u2"), AIMessage("Noted.", id="a2"), *boats(3, 8)]
        for said in (first, [HumanMessage(MOVED, id="moved"), AIMessage("Good.", id="good"), *boats(20, 30)]):
            told(call_style, session.add_messages, said)
            told(call_style, session.flush)
        assert noted(call_style, session)[LANTERN] == "superseded"
        assert any(MOVED in one.text and "lantern" in one.text for one in told(call_style, session.tree).summaries)
        told(call_style, session.forget, message_ids=["u2"])
        left = [*told(call_style, session.tree).summaries, *told(call_style, session.facts, k=999, superseded=True)]
        assert not any("lantern" in one.text for one in left)
        assert told(call_style, memory.verify).healthy


@both
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "it is empty"),
        ("- Boats are at sea.", "none of its 1 lines names notes that it joins"),
        ("- [instead of 1 2] [keep] Zebras graze.", "none of its 1 lines says in fewer words what the notes say"),
    ],
)
def test_an_answer_that_joins_nothing_is_told_with_the_reason_and_not_asked_for_at_once_again(
    call_style: CallStyle, line: str, why: str
) -> None:
    def useless(messages: Sequence[BaseMessage]) -> str:
        own = joining(messages)
        for number in REVIEW.findall(str(messages[-1].text)):
            own = f"{own.partition(f'<summary {number}>')[0]}<summary {number}>\n{line}\n</summary>"
        return own

    model = ScriptedModel(answers=useless)
    with opened(model) as memory:
        heard: list[str] = []
        memory.subscribe(lambda event: heard.append(event.reason) if event.name == EventName.ANSWER_REFUSED else None)
        session = moored(call_style, memory)
        asked = reviews(model)
        assert asked == sum(why in reason for reason in heard) > 0
        told(call_style, session.add_messages, boats(60, 60))
        told(call_style, session.context, "", max_tokens=BUDGET)
        told(call_style, session.flush)
        assert reviews(model) == asked, "one note more is no reason"


def test_who_does_not_remember_the_last_review_asks_for_nothing_that_was_joined() -> None:
    with opened(ScriptedModel(answers=joining)) as memory:
        session = moored("sync", memory)
        runtime = replace(session.core.engine.runtime, view_cache=ViewCache())  # as a process that begins anew
        ref = runtime.store.transcript.find("s")
        assert ref is not None
        now = replace(job(), sources=(replace(job().sources[0], seq=999),))

        def is_asked_for() -> bool:
            return review_of(runtime, ref, [now], track=DEFAULT_TRACK) is not None

        notes = runtime.store.facts.lasting(ref, before=999, track=DEFAULT_TRACK, limit=999)
        runtime.view_cache.note_list_room(ref.key, DEFAULT_TRACK, sum(len(one.text) for one in notes) // 12)
        assert is_asked_for()
        last = [place for place, one in enumerate(notes, 1) if "48" in one.text or "47" in one.text]
        said = f"- [instead of {' '.join(map(str, last))}] [keep] Moorings of boats 47, 48: 470, 480"
        assert runtime.store.facts.join(ref, joining_of(said, notes)) == len(last)
        assert not is_asked_for()


def test_words_that_a_message_said_before_in_another_note_cost_no_other_that_is_joined() -> None:
    with opened(ScriptedModel(answers=joining)) as memory:
        session = moored("sync", memory)
        store, ref = session.core.found()
        assert ref is not None
        notes = store.facts.lasting(ref, before=999, track=DEFAULT_TRACK, limit=999)
        (a, first), (b, second), *_ = ((place, one) for place, one in enumerate(notes, 1) if one.text.startswith("The"))
        lines = (
            f"- [instead of {place}] [keep] {one.text.removeprefix('The ')}" for place, one in ((a, first), (b, second))
        )
        once, other = joining_of("\n".join(lines), notes)
        assert store.facts.join(ref, [replace(once, id=first.id), other]) == 1
        held = {text for text, status in noted("sync", session).items() if status == "active"}
        assert held >= {first.text, other.text}
        assert not held & {once.text, second.text}


def reviews(model: ScriptedModel) -> int:
    return sum(1 for prompt in model.prompts if REVIEW.search(str(prompt[-1].text)))
