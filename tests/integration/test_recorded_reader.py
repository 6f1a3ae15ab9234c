"""Answers as a reader wrote them, of a made-up conversation: none is refused, nothing is added that is no sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.settings import Settings, TreeSettings
from langchain_tiered_memory.testing import ScriptedModel
from tests.memory_builders import open_memory, summaries_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

RECORD = json.loads((Path(__file__).parents[1] / "assets" / "recorded_reader.json").read_text(encoding="utf-8"))
_PART = re.compile(r"^<part (\d+) [^>\n]*>\n(?:<m [^>\n]*>(.*))?", re.MULTILINE)
_ADDED = re.compile(r"(?:Also said|Still open): (?:user|assistant): [A-Z]\w* .* .*[.!]")


def reader(prompt: Sequence[BaseMessage]) -> str:
    """The recorded answer to a prompt for several summaries, or for one."""
    asked = str(prompt[-1].text)
    said = {chunk["messages"][0]: chunk["answer"] for chunk in RECORD["chunks"]}
    parts = _PART.findall(asked)
    if not parts:
        return next((answer for first, answer in said.items() if first in asked), RECORD["merged"])
    return "\n".join(f"<summary {number}>\n{said.get(first, RECORD['merged'])}\n</summary>" for number, first in parts)


def test_what_a_reader_wrote_is_taken_as_it_stands_in_few_calls() -> None:
    model = ScriptedModel(answers=reader)
    events: list[Any] = []
    with open_memory(model=model, settings=Settings(tree=TreeSettings(background=False))) as memory:
        memory.subscribe(events.append)
        session = memory.session("s")
        said = [text for chunk in RECORD["chunks"] for text in chunk["messages"]]
        for place, text in enumerate(said):
            session.add_messages([AIMessage(text) if place % 2 else HumanMessage(text)])
            if place % 2 == 0:
                session.context("", max_tokens=420)
                session.flush()
        made = [one for one in summaries_of(session) if not one.by_rules]
    told = [event.name for event in events]
    assert EventName.ANSWER_REFUSED not in told
    assert EventName.SUMMARY_UNSOURCED not in told, "Maria is known from another part"
    assert model.calls <= 4
    assert {one.level for one in made} == {1, 2}
    lines = {
        line
        for answer in (*(chunk["answer"] for chunk in RECORD["chunks"]), RECORD["merged"])
        for line in answer.split("\n")
    }
    for one in made:
        added = [line for line in one.text.split("\n") if line and line not in lines]
        assert [line for line in added if not _ADDED.fullmatch(line)] == []
        assert "\u02c2" not in one.text
    assert "<session-id>" in "".join(one.text for one in made)


@pytest.mark.parametrize(("named", "is_marked"), [("#4417", False), ("#9926", True)])
def test_what_other_messages_of_one_call_name_is_no_invention(named: str, *, is_marked: bool) -> None:
    def answer(prompt: Sequence[BaseMessage]) -> str:
        numbers = re.findall(r"^<part (\d+) ", str(prompt[-1].text), re.MULTILINE)
        told = f"- They spoke of the harbour's crane at length, order {named}."
        return "\n".join(f"<summary {number}>\n{told}\n</summary>" for number in numbers)

    with open_memory(model=ScriptedModel(answers=answer)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Order #4417 is the harbour's crane.")])
        for number in range(24):
            said = f"The harbour's crane moved at length, load after load, they spoke of it {'again ' * 8}({number})."
            session.add_messages([AIMessage(said) if number % 2 else HumanMessage(said)])
        session.context("", max_tokens=420)
        session.flush()
        texts = [one.text for one in summaries_of(session) if not one.by_rules and one.first_seq > 1]
    assert len(texts) > 1
    assert any("not in the source" in text for text in texts) is is_marked


LEASE = "The lease of the harbour's mast costs 358 crowns."
RENTS = "The harbour's mast costs 150 crowns in May and 208 crowns in June."
MOVED = "The harbour's mast was moved at length, load after load"


@pytest.mark.parametrize(
    ("begins", "level"),
    [
        pytest.param(LEASE, 1, id="a note, in a summary of messages"),
        pytest.param(LEASE, 2, id="a note, in a summary of summaries"),
        pytest.param(RENTS, 1, id="what an earlier part says"),
    ],
)
def test_what_a_note_or_an_earlier_part_of_the_call_states_is_no_invention(begins: str, level: int) -> None:
    def answer(prompt: Sequence[BaseMessage]) -> str:
        """Notes the lease where its message is, and names it in the parts of one level; the rest are said to move."""
        told: list[str] = []
        for part in f"\n{asked(prompt)}".split("\n<part ")[1:]:
            number, form, shown = re.findall(r"(\d+) ([^>]*)>([^@]*)", part)[0]
            is_meant = ("of=" in form) is (level > 1)
            line = f"{MOVED} for 358 crowns." if is_meant else f"{MOVED}."
            told.append(f"<summary {number}>\n- {f'[keep] {LEASE}' if begins in shown else line}\n</summary>")
        return "\n".join(told)

    with open_memory(model=ScriptedModel(answers=answer)) as memory:
        session = memory.session("s")
        for number in range(40):
            said = f"{MOVED} ({number})." if number else begins
            session.add_messages([AIMessage(said) if number % 2 else HumanMessage(said)])
            session.context("", max_tokens=300)
            session.flush()
        texts = [one.text for one in summaries_of(session) if one.level == level and "for 358" in one.text]
    assert texts
    assert not any("not in the source" in text for text in texts)


def asked(prompt: Sequence[BaseMessage]) -> str:
    return str(prompt[-1].text)
