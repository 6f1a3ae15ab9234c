"""What a condensing model writes is what `facts()` gives and a view lists; no view shows its marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.testing import ScriptedModel, in_parts
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings, ref_of, store_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.records import Fact

both = pytest.mark.parametrize("call_style", CALL_STYLES)
SAID = re.compile(r"^(?:<m [^>\n]*>|- (?:\[keep\] )?)(.+)$", re.MULTILINE)
MORE = "more that must last has no room here"
KEPT = re.compile(r"^(\d+): (.+)$", re.MULTILINE)
TASK, DONE = "Somebody tells Olga about the lanterns of the berth.", "Olga heard about the lanterns today."
BOAT, MOVED = "The mooring of boat {n} is berth {n}0.", "The mooring of boat 3 moved: berth 77 instead of berth 30."


def keeping(messages: Sequence[BaseMessage]) -> str:
    """A model that repeats each message in a bullet, marks what names a berth, and says which task is done."""
    task = [number for number, text in KEPT.findall(str(messages[-1].text)) if text in TASK]

    def marks(line: str) -> str:
        return f"[instead of {task[0]}] " if line == DONE and task else "[keep] " if "berth" in line else ""

    def write(prompt: str) -> str:
        said = [line for line in SAID.findall(prompt) if line.strip()] or ["Boats were moored."]
        return "\n".join(f"- {marks(line)}{line}" for line in said)

    return in_parts(messages, write) or write(str(messages[-1].text))


def opened(where: Path | None = None) -> TieredMemory:
    return open_memory(where, model=ScriptedModel(answers=keeping), settings=quick_settings(eager=True))


def boats(count: int, *, start: int = 1) -> list[BaseMessage]:
    said: list[BaseMessage] = []
    for number in range(start, start + count):
        said += [
            HumanMessage(BOAT.format(n=number), id=f"u{number}"),
            AIMessage(f"Noted; the weather over the bay of quay {number} looks calm today.", id=f"a{number}"),
        ]
    return said


def by_message(found: Sequence[Fact]) -> list[Fact]:
    return sorted(found, key=lambda one: one.seq)


def texts(found: Sequence[Any]) -> list[str]:
    return [one.text for one in found]


def condensed(call_style: CallStyle, memory: TieredMemory, *more: BaseMessage) -> Session:
    session = memory.session("s")
    told(call_style, session.add_messages, [*boats(8), *more, *boats(8, start=20)])
    told(call_style, session.flush)
    return session


@both
def test_the_bullets_of_a_model_are_the_facts_each_with_its_message(call_style: CallStyle) -> None:
    with opened() as memory:
        session = condensed(call_style, memory)
        facts = [one for one in by_message(told(call_style, session.facts)) if "berth" in one.text]
        assert texts(facts)[:3] == [BOAT.format(n=1), BOAT.format(n=2), BOAT.format(n=3)]
        assert all(one.by_model and one.weight >= LASTING for one in facts)
        assert [one.message_ids for one in facts][:3] == [("u1",), ("u2",), ("u3",)]


@both
def test_what_must_last_is_in_every_view_and_its_mark_in_none(call_style: CallStyle) -> None:
    with opened() as memory:
        session = condensed(call_style, memory)
        stored = store_of(memory).tree.newest(ref_of(session), level=1, up_to=99, limit=9)
        assert any("[keep]" in one.text for one in stored)
        for budget in (500, 900):
            view = "\n".join(str(one.text) for one in told(call_style, session.context, "", max_tokens=budget).messages)
            assert "[keep]" not in view
        assert all(f"berth {number}0" in view for number in range(1, 9))


@pytest.mark.slow
@both
def test_a_list_that_leaves_out_what_must_last_says_so(call_style: CallStyle) -> None:
    def listed(*said: BaseMessage) -> tuple[str, int]:
        with opened() as memory:
            session = memory.session("s")
            told(call_style, session.add_messages, list(said))
            told(call_style, session.flush)
            view = told(call_style, session.context, "", max_tokens=700)
            assert view.tokens <= 700
            return str(view.section("facts").text), view.section("history").tokens

    plain = [HumanMessage(f"The tide of day {n} was {n}4 cm below the old quay.", id=f"t{n}") for n in range(90)]
    many, beside_many = listed(*boats(80))
    assert MORE in many
    few, beside_few = listed(*boats(4), *plain)
    assert beside_many <= beside_few, "summaries make room before anything that must last is left out"
    assert "berth 40" in few
    assert MORE not in few


@both
def test_nothing_is_added_to_what_a_model_says_that_was_shown_what_was_kept(call_style: CallStyle) -> None:
    weighed = [HumanMessage(f"The mooring of boat {n} holds 4,7{n}2 kg in all.", id=f"w{n}") for n in range(1, 9)]

    def brief(messages: Sequence[BaseMessage]) -> str:
        def write(prompt: str) -> str:
            lines = [line for line in SAID.findall(prompt) if "berth" in line]
            return "\n".join(f"- [keep] {line}" for line in lines) or "- The moorings were weighed."

        return in_parts(messages, write) or write(str(messages[-1].text))

    with open_memory(model=ScriptedModel(answers=brief), settings=quick_settings(eager=True)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, boats(12))
        told(call_style, session.flush)
        told(call_style, session.add_messages, [*weighed, *boats(8, start=40)])
        told(call_style, session.flush)
        stored = store_of(memory).tree.newest(ref_of(session), level=1, up_to=99, limit=99)
        assert any("were weighed" in one.text for one in stored), "a summary without a mark"
        assert not any("lso said" in one.text for one in stored)


@both
def test_a_sentence_that_names_what_it_replaces_takes_its_place(call_style: CallStyle) -> None:
    with opened() as memory:
        session = condensed(call_style, memory, HumanMessage(MOVED, id="m"), AIMessage("Moved.", id="b"))
        facts = texts(told(call_style, session.facts))
        assert MOVED in facts
        assert BOAT.format(n=3) not in facts
        assert BOAT.format(n=4) in facts, "another boat"
        assert BOAT.format(n=3) in texts(told(call_style, session.facts, superseded=True))


@both
def test_facts_are_read_again_from_the_stored_text(call_style: CallStyle, tmp_path: Path) -> None:
    with opened(tmp_path / "m.db") as memory:
        session = condensed(call_style, memory)
        before = told(call_style, session.facts)
        assert told(call_style, memory.verify).healthy
        told(call_style, memory.doctor)
        assert told(call_style, session.facts) == before


@both
def test_a_forgotten_message_takes_its_sentence_along(call_style: CallStyle) -> None:
    with opened() as memory:
        session = condensed(call_style, memory)
        told(call_style, session.forget, message_ids=["u2"])
        told(call_style, session.flush)
        assert not any("boat 2 " in one for one in texts(told(call_style, session.facts)))


@both
def test_an_edited_message_is_read_by_rules_until_a_model_writes_anew(call_style: CallStyle) -> None:
    with opened() as memory:
        session = condensed(call_style, memory)
        told(call_style, session.add_messages, [HumanMessage("The mooring of boat 2 is berth 55.", id="u2")])
        told(call_style, session.flush)
        facts = texts(told(call_style, session.facts))
        assert not any("berth 20." in one and "boat 2 " in one for one in facts)
        assert any("berth 55" in one for one in facts)


@both
def test_what_was_kept_is_shown_to_the_writer_who_may_end_it(call_style: CallStyle, tmp_path: Path) -> None:
    with opened(tmp_path / "m.db") as memory:
        session = memory.session("s")
        asked = [HumanMessage(TASK, id="t"), AIMessage("Who?", id="w")]
        told(call_style, session.add_messages, [*asked, *boats(7)])
        told(call_style, session.flush)
        assert TASK in texts(told(call_style, session.facts, k=99))
        told(call_style, session.add_messages, [HumanMessage(DONE, id="d"), AIMessage("Good."), *boats(7, start=20)])
        told(call_style, session.flush)
        held = told(call_style, session.facts, k=99)
        assert TASK not in texts(held), "nothing in the words says so: its writer does"
        (ended,) = (one for one in told(call_style, session.facts, k=99, superseded=True) if one.text == TASK)
        assert ended.superseded_by == next(one.id for one in held if one.text == DONE)
        view = "\n".join(str(one.text) for one in told(call_style, session.context, "", max_tokens=900).messages)
        assert "instead of" not in view
        assert told(call_style, memory.verify).healthy
        told(call_style, session.forget, message_ids=["d"])
        told(call_style, session.flush)
        assert TASK in texts(told(call_style, session.facts, k=99)), "what ended it was forgotten"


def test_kept_is_what_new_messages_are_about_and_not_what_is_worded_alike() -> None:
    shown: list[str] = []

    def noting(messages: Sequence[BaseMessage]) -> str:
        shown.append(str(messages[-1].text))

        def write(prompt: str) -> str:
            lines = [line for line in SAID.findall(prompt) if line.strip()] or ["Papers were saved."]
            return "\n".join(f"- {'[keep] ' if 'saved as' in line else ''}{line}" for line in lines)

        return in_parts(messages, write) or write(str(messages[-1].text))

    owners = ("Tom's visa", "Noor's guitar", "Hanne's moped", "Ruben's physio", "Marta's diary", "Vikram's hamster")
    notes = [f"{whose}: everything was saved as QX-10{place}" for place, whose in enumerate(owners)]
    with open_memory(model=ScriptedModel(answers=noting), settings=quick_settings(eager=True)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage(note) for note in notes])
        session.add_messages(boats(8))
        session.flush()
        held = [one.text for one in by_message(session.facts(k=99)) if "saved as" in one.text]
        person, thing = held[0].partition(":")[0].split("'s ")
        shown.clear()
        session.add_messages(
            [HumanMessage(f"Everything was saved as well for the attic; the {thing} of {person} came.")]
        )
        session.add_messages(boats(8, start=20))
        session.flush()
        assert len(held) > 2
        assert {text for _, text in KEPT.findall("\n".join(shown))} == {held[0]}


@both
def test_what_a_model_read_and_did_not_mark_is_no_fact_by_rules(call_style: CallStyle) -> None:
    with opened() as memory:
        session = memory.session("s")
        price = HumanMessage("Actually the price of the quay is 4120 euros now.", id="p")
        talk = [AIMessage(f"The weather over the bay of quay {n} looks calm and grey.", id=f"w{n}") for n in range(32)]
        told(call_style, session.add_messages, [*boats(4), price, *talk])
        told(call_style, session.flush)
        facts = told(call_style, session.context, "", max_tokens=600).section("facts")
        assert facts is not None
        assert "berth 30" in facts.text
        assert "4120" not in facts.text, "a model read it, and did not mark it"
        assert any("4120" in one.text for one in told(call_style, session.facts, k=500))
