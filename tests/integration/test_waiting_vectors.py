"""A context does not wait until what it shows anyway is embedded; what it does not show is, and is found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from tests.call_styles import CALL_STYLES, told
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from tests.call_styles import CallStyle

MEANS_A_COLOUR = re.compile(r"paint|turquoise|colour", re.IGNORECASE)
SAID, QUESTION = "The door is turquoise.", "Which paint did we take?"


class Painting(Embeddings):
    """Knows what is about colours, and keeps what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.1] if MEANS_A_COLOUR.search(text) else [0.1, 1.0]


def talk(turns: int) -> list[BaseMessage]:
    return [
        one(f"Plank {turn} of the fence {'has nails, ' * 12}")
        for turn in range(turns)
        for one in (HumanMessage, AIMessage)
    ]


def step(number: int) -> list[BaseMessage]:
    call = {"name": "look", "args": {"at": number}, "id": f"c{number}"}
    return [
        AIMessage("", tool_calls=[call]),
        ToolMessage(f"result {number}: {'wood ' * 15}", tool_call_id=f"c{number}"),
    ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_history_that_fits_is_not_embedded_by_who_asks(call_style: CallStyle) -> None:
    embeddings = Painting()
    with open_memory(embeddings=embeddings) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage(SAID), AIMessage("Noted."), HumanMessage(QUESTION)])
        context = told(call_style, session.context, max_tokens=2000)
    assert SAID in str(context.messages)
    assert embeddings.texts == []


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("steps", [1, 4])
def test_what_an_agent_did_last_is_not_waited_for_and_what_left_the_view_is(steps: int, call_style: CallStyle) -> None:
    embeddings = Painting()
    with open_memory(embeddings=embeddings) as memory:
        session = memory.session("s")
        told(
            call_style,
            session.add_messages,
            [HumanMessage(SAID), AIMessage("Noted."), *talk(28), HumanMessage(QUESTION)],
        )
        for number in range(steps):
            told(call_style, session.add_messages, step(number))
        context = told(call_style, session.context, max_tokens=1500)
    assert any(SAID in message.text and "<recalled>" in message.text for message in context.messages)
    assert any(SAID in text for text in embeddings.texts)
    assert not any(text.startswith(f"tool: result {steps - 1}:") for text in embeddings.texts)
