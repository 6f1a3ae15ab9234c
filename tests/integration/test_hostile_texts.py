"""What strangers write does not stop the memory: every kind, from adding it to finding it again."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.hostile_texts import KINDS, hostile
from tests.memory_builders import open_memory, quick_settings
from tests.spread import EXHAUSTIVE
from tests.writers import start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from langchain_tiered_memory.protocols import TokenCounter

pytestmark = pytest.mark.slow
LONGEST = ("a run of '.'", "a run of '!'", "a run of '\\n'", "words", "one word", "a run of ideographs")
_CHARS = 20_000 if EXHAUSTIVE else 8_000
_TIMES = 4
_MOST_GROWTH = 9.0
"""Four times the text takes about 4 times as long where time is linear, 16 times where it is quadratic."""
_QUICK_SECONDS = 2.0 if EXHAUSTIVE else 1.0
"""Of processor time, under which quadratic work on so many characters cannot be hidden."""


def said(text: str) -> list[BaseMessage]:
    return [
        HumanMessage(text),
        AIMessage(text[: len(text) // 2], tool_calls=[{"name": "shell", "args": {"command": text}, "id": "c"}]),
        ToolMessage(text, tool_call_id="c", name="shell"),
        AIMessage("Done."),
        HumanMessage("What was it?"),
    ]


def journey(text: str, call_style: CallStyle, counter: TokenCounter | None = None) -> float:
    """Seconds of processor time from adding to finding; what comes out is checked."""
    with open_memory(token_counter=counter, settings=quick_settings(messages=3)) as memory:
        session = memory.session("s")
        started = time.process_time()
        told(call_style, session.add_messages, said(text))
        told(call_style, session.flush)
        context = told(call_style, session.context, None, max_tokens=3000)
        told(call_style, session.search, text[:1000])
        spent = time.process_time() - started
        assert context.tokens <= 3000
        assert check_valid(context.messages, complete=True) == []
        assert session.messages()[0].content == text
    return spent


@pytest.mark.sweep(36)
@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_text_is_kept_condensed_shown_and_searched_in_linear_time(kind: str) -> None:
    call_style = CALL_STYLES[KINDS.index(kind) % 2]
    short = journey(hostile(kind, _CHARS), call_style)
    if short < _QUICK_SECONDS:
        return
    grown = min(journey(hostile(kind, _TIMES * _CHARS), call_style) / short for _ in range(2))
    assert grown < _MOST_GROWTH


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", ["a run of '\\n'", "a run of '\\x00'", "blank lines"])
def test_arguments_are_cut_by_what_they_take_as_json(kind: str, call_style: CallStyle) -> None:
    journey(hostile(kind, _CHARS), call_style, EstimatingCounter())


@pytest.mark.parametrize("kind", LONGEST)
def test_a_million_characters_of_one_kind_are_condensed_and_shown(kind: str) -> None:
    call_style = CALL_STYLES[LONGEST.index(kind) % 2]
    text = hostile(kind, 1_000_000)
    with open_memory(token_counter=None, settings=quick_settings(messages=2)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage(text), AIMessage("Yes."), HumanMessage("And?")])
        told(call_style, session.flush)
        assert told(call_style, session.context, "", max_tokens=2000).tokens <= 2000


def grown_by(characters: int, pipe: Connection) -> None:
    """Bytes by which a process grows whose memory is given so many characters; it has done nothing else."""
    text = "The crane at the quay lifts forty tonnes. " * (characters // 42)
    with open_memory(token_counter=None, settings=quick_settings(messages=2)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Hello."), AIMessage("Good morning.")])
        session.flush()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        session.add_messages([HumanMessage(text), AIMessage("Yes."), HumanMessage("And?")])
        session.flush()
        context = session.context("", max_tokens=2000)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert context.tokens <= 2000
        assert session.messages()[2].content == text
    pipe.send(grown * 1024)


def test_a_message_of_many_megabytes_is_kept_in_memory_that_grows_with_it_alone() -> None:
    characters = 50_000_000 if EXHAUSTIVE else 6_000_000
    child, pipe = start(grown_by, characters)
    grown = pipe.recv()
    child.join()
    pipe.close()
    assert characters < grown < 40 * characters
