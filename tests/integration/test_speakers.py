"""Whom "I" means: the facts of a talk between named people, from their messages to the view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import HumanMessage

from tests.memory_builders import open_memory, quick_settings

if TYPE_CHECKING:
    from pathlib import Path

ODD = "Bo\u0142ek\n(Ann)"
TALK = (
    ("Ann", "I just signed up for a welding class yesterday."),
    (ODD, "My sister lives in Graz."),
    ("Ann", "My sister moved to Vienna."),
    (ODD, "I'm allergic to shellfish."),
    ("Ann", "Totally agree, my friend!"),
    (ODD, "Here it is!"),
)


def messages() -> list[HumanMessage]:
    return [HumanMessage(text, name=name, id=f"m{place}") for place, (name, text) in enumerate(TALK)]


def test_facts_say_whose_they_are_and_nobody_takes_back_what_another_says_of_themselves(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db", settings=quick_settings(messages=2)) as memory:
        session = memory.session("s")
        for message in messages():
            session.add_messages([message], wait=True)
        memory.flush()
        found = [(one.speaker, one.text) for one in session.facts()]
        again = memory.session("s").facts("whose sister?")
        assert {one.speaker for one in again} == {"Ann", ODD}
        assert sorted(one for one in found if one in TALK) == sorted(TALK[:4])
        assert all(one.status == "active" for one in session.facts(superseded=True))
        assert memory.verify().problems == ()


async def test_facts_say_whose_they_are_without_waiting_too(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db", settings=quick_settings(messages=2)) as memory:
        session = memory.session("s")
        for message in messages():
            await session.aadd_messages([message], wait=True)
        await memory.aflush()
        found = [(one.speaker, one.text) for one in await session.afacts()]
        assert sorted(one for one in found if one in TALK) == sorted(TALK[:4])
