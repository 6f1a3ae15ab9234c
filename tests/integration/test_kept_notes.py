"""Which notes of before a condensing model is shown beside new messages: also those that share no word with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.marks import NOTHING_HOLDS
from langchain_tiered_memory.testing import ScriptedModel, in_parts
from tests.call_styles import CALL_STYLES, told
from tests.memory_builders import entries_of, open_memory, quick_settings, ref_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.reports import Event
    from tests.call_styles import CallStyle

PLAN, CHANGE = "Our holiday goes to Oaxaca", "Everybody flies into Lisbon after all."
SHOPS = ("baker", "butcher", "florist", "tailor", "barber", "grocer", "cobbler", "optician", "chemist", "jeweller")
SAID = re.compile(r"^<m [^>\n]*>(.+)$", re.MULTILINE)
TRAVEL = re.compile(r"holiday|oaxaca|flies|lisbon", re.IGNORECASE)


class Travelling(Embeddings):
    """Knows what is about a journey; other texts have a direction each."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        own = [float(shop in text) for shop in SHOPS]
        return [1.0, 3.0 if TRAVEL.search(text) else 0.0, *own]


class Unreachable(Travelling):
    """Gives no vectors."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise ConnectionError(len(texts))


def noting(messages: Sequence[BaseMessage]) -> str:
    """A model that notes whatever the user says."""

    def write(prompt: str) -> str:
        return "\n".join(f"- [keep] {line}" for line in SAID.findall(prompt) if line != "Fine.")

    text = str(messages[-1].text)
    return in_parts(messages, write) or write(text)


def said(text: str) -> list[BaseMessage]:
    return [HumanMessage(text), AIMessage("Fine.")]


def kept_beside_the_change(call_style: CallStyle, embeddings: Embeddings | None) -> str:
    model = ScriptedModel(answers=noting)
    with open_memory(model=model, settings=quick_settings(eager=True), embeddings=embeddings) as memory:
        session = memory.session("s")
        first = [
            *said(f"{PLAN}."),
            *(one for shop in SHOPS for one in said(f"Visit the {shop} by the river.")),
        ]
        told(call_style, session.add_messages, first)
        told(call_style, session.flush)
        told(call_style, session.add_messages, [*said("Good morning."), *said(CHANGE), *said("Nice."), *said("Yes.")])
        told(call_style, session.flush)
        assert told(call_style, memory.verify).healthy
    asked = next(text for prompt in model.prompts if CHANGE in (text := str(prompt[-1].text)))
    return asked.partition("<kept>")[2].partition("</kept>")[0]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_note_that_shares_no_word_with_its_change_is_shown_where_vectors_tell(call_style: CallStyle) -> None:
    embeddings = Travelling()
    assert PLAN in kept_beside_the_change(call_style, embeddings)
    assert sum(PLAN in text and "user" in text for text in embeddings.texts) == 1, "no message is embedded twice"


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("embeddings", [None, Unreachable()])
def test_without_vectors_the_words_decide(call_style: CallStyle, embeddings: Embeddings | None) -> None:
    assert PLAN not in kept_beside_the_change(call_style, embeddings)


def test_what_all_messages_have_in_common_makes_none_of_them_near() -> None:
    with open_memory(settings=quick_settings(eager=True), embeddings=Travelling()) as memory:
        session = memory.session("s")
        texts = [f"{PLAN}.", *(f"Visit the {shop} by the river." for shop in SHOPS), CHANGE]
        session.add_messages([HumanMessage(text) for text in texts])
        session.flush()
        seqs = [one.seq for one in entries_of(session)]
        runtime, ref = session.core.runtime, ref_of(session)
        near = runtime.likeness(ref, seqs[-1:], [{seq} for seq in seqs[:-1]])
        assert list(near) == [0]
        assert 0 < near[0] < 1
        assert runtime.likeness(ref, [], [{seq} for seq in seqs]) == {}
        assert runtime.likeness(ref, seqs[-1:], [{seqs[-1] + 9}]) == {}


def test_a_note_that_is_named_by_a_line_that_does_not_tell_of_it_stays_and_an_event_says_so() -> None:
    def careless(messages: Sequence[BaseMessage]) -> str:
        """Names the first note in whatever it says of a walk."""

        def write(prompt: str) -> str:
            lines = (line for line in SAID.findall(prompt) if line != "Fine.")
            return "\n".join(f"- [instead of 1] {line}" if "walk" in line else f"- [keep] {line}" for line in lines)

        text = str(messages[-1].text)
        return in_parts(messages, write) or write(text)

    events: list[Event] = []
    with open_memory(model=ScriptedModel(answers=careless), settings=quick_settings(eager=True)) as memory:
        memory.subscribe(events.append)
        session = memory.session("s")
        session.add_messages([*said("The mooring of the boat is berth 30."), *said("The rent is 900 euros a month.")])
        session.flush()
        session.add_messages([*said("We went for a long walk in the hills."), *said("Nice weather, too.")])
        session.add_messages([*said("Good morning to you."), *said("Yes, it is.")])
        session.flush()
        facts = [fact.text for fact in session.facts()]
    assert any("berth 30" in fact for fact in facts), facts
    refused = [event for event in events if event.name == EventName.NOTE_NOT_REPLACED]
    assert refused, [str(event.name) for event in events]
    assert refused[0].details["notes"] == 1


def test_what_tools_told_does_not_take_the_room_of_what_people_said() -> None:
    open_point = "Reverting the shadow branch: nobody has chosen."

    def called(number: int, output: str) -> list[BaseMessage]:
        call = {"name": "scan", "args": {"pier": number}, "id": f"c{number}", "type": "tool_call"}
        return [AIMessage("", tool_calls=[call]), ToolMessage(output, tool_call_id=f"c{number}", name="scan")]

    def notes(messages: Sequence[BaseMessage]) -> str:
        """Notes what a tool found and what the user left open."""

        def write(prompt: str) -> str:
            said = re.findall(r"^<m (user|tool)[^>\n]*>(.+)$", prompt, re.MULTILINE)
            return (
                "\n".join(f"- {'[tool] ' if who == 'tool' else ''}[keep] {text}" for who, text in said) or "- Nothing."
            )

        text = str(messages[-1].text)
        return in_parts(messages, write) or write(text)

    model = ScriptedModel(answers=notes)
    with open_memory(model=model, settings=quick_settings(eager=True)) as memory:
        session = memory.session("s")
        outputs = [f"Pier QX-{n}0 of the harbour has bollard BD-{n}7 and {n}4 metres of rope." for n in range(1, 13)]
        session.add_messages([*said(open_point), *(one for n, text in enumerate(outputs) for one in called(n, text))])
        session.flush()
        again = " ".join(text.replace("metres", "feet") for text in outputs[:8])
        session.add_messages(
            [HumanMessage("Give up on that branch."), *called(90, again), *said("Good."), *said("Fine.")]
        )
        session.flush()
    asked = next(text for prompt in model.prompts if "Give up on" in (text := str(prompt[-1].text)))
    kept = asked.partition("<kept>")[2].partition("</kept>")[0]
    assert "QX-" in kept
    assert "shadow branch" in kept


def replacing(messages: Sequence[BaseMessage]) -> str:
    """A model that notes the mooring, in the place of the note of it that it is shown, and tells what else is said."""

    def write(prompt: str) -> str:
        lines = [line for line in SAID.findall(prompt) if not line.startswith(("Fine.", "("))]
        place = re.search(r"^(\d+): The mooring", str(messages[-1].text), re.MULTILINE)
        mark = f"[instead of {place[1]}] [keep] " if place else "[keep] "
        return "\n".join(f"- {mark if 'mooring' in line else ''}{line}" for line in lines) or "- They talked."

    text = str(messages[-1].text)
    return in_parts(messages, write) or write(text)


@pytest.mark.parametrize(("beside", "told_in_the_end"), [("", "Tea 0 was"), ("Fine.", NOTHING_HOLDS)])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_view_that_is_condensed_again_does_not_tell_a_note_that_is_over(
    call_style: CallStyle, beside: str, told_in_the_end: str
) -> None:
    shown: list[str] = []
    with open_memory(
        model=ScriptedModel(answers=replacing), settings=quick_settings(messages=8, sources=9, eager=True)
    ) as memory:
        session = memory.session("s")
        for number in range(44):
            berth = {1: 30, 25: 77}.get(number)
            text = (number < 4 and beside) or f"Tea {number} was served on deck."
            text = f"The mooring of the boat is berth {berth}." if berth else text
            talk = f"Fine. {'It is good to hear of it, and of the rest of the day. ' * 20}"
            told(call_style, session.add_messages, [HumanMessage(text), AIMessage(talk)])
            told(call_style, session.flush)
            history = told(call_style, session.context, "", max_tokens=6000).section("history")
            shown.append(history.text if history is not None else "")
        assert told(call_style, memory.verify).healthy
    told_before = [text for text in shown if "[messages 1-4" in text and "berth 30" in text]
    assert len(told_before) > 1
    assert len(set(told_before)) == 1, "its bytes stand until the next condensation"
    assert "[messages 1-4" in shown[-1]
    assert told_in_the_end in shown[-1]
    assert "berth 30" not in shown[-1]


def test_who_merges_summaries_does_not_read_a_note_that_was_replaced_since() -> None:
    model = ScriptedModel(answers=replacing)
    settings = quick_settings(eager=True)
    with open_memory(model=model, settings=settings) as memory:
        session = memory.session("s")
        for text in (f"The mooring of the boat is berth {berth}." for berth in (30, 77)):
            session.add_messages([*said(text), *said("Good morning to you all.")])
            session.flush()
        for number in range(8):
            session.add_messages(said(f"Tea number {number} was served."))
            session.flush()
        session.context(max_tokens=300)
    merged = [text for prompt in model.prompts if "<earlier" in (text := str(prompt[-1].text)) and "berth 77" in text]
    assert merged
    assert all("berth 30" not in text.partition("<earlier")[2] for text in merged)
