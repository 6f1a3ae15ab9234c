"""The same messages give the same bytes: nothing that is drawn anew (ids of summaries, of requests) reaches a view."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks.conversations import conversation
from benchmarks.made_up_run import made_up_run
from langchain_tiered_memory import OtherSessions
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, in_parts, summarising_model
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import NOW, as_bytes, open_memory, quick_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow

TURNS = 32


def work(turns: int) -> list[BaseMessage]:
    """Talk about orders, each looked up: enough for summaries of several levels."""
    said: list[BaseMessage] = []
    for turn in range(turns):
        call = {"name": "look_up", "args": {"order": turn}, "id": f"c{turn}", "type": "tool_call"}
        said += [
            HumanMessage(f"The crane of order {turn} goes to quay {turn % 7}, before Monday.", id=f"q{turn}"),
            AIMessage("", id=f"l{turn}", tool_calls=[call]),
            ToolMessage(f"order {turn}: {turn * 31} kg, berth {turn % 5}", tool_call_id=f"c{turn}", id=f"r{turn}"),
            AIMessage(f"Order {turn} weighs {turn * 31} kg; its crane is booked for quay {turn % 7}.", id=f"a{turn}"),
        ]
    return said


def views(budget: int) -> list[str]:
    """Every view of a session on the way, as text."""
    shown: list[str] = []
    with open_memory(token_counter=best_counter()) as memory:
        session = memory.session("s")
        for number, message in enumerate(work(TURNS)):
            session.add_messages([message], at=1.7e9 + 60.0 * number)
            if isinstance(message, ToolMessage):
                shown.append("\n".join(str(one) for one in session.context(max_tokens=budget).messages))
    return shown


@pytest.mark.parametrize("budget", [800, 2000])
@pytest.mark.sweep(1)
def test_two_memories_that_were_told_and_asked_the_same_show_the_same(budget: int) -> None:
    first, second = views(budget), views(budget)
    assert any("[1-" in view or "[messages 1-" in view for view in first), "nothing was condensed"
    assert first == second


def read_by_two(turns: int) -> list[BaseMessage]:
    """Two tools that say as much each of what one sentence tells together."""
    said: list[BaseMessage] = []
    for turn in range(turns):
        calls = [{"name": name, "args": {}, "id": f"{name}{turn}"} for name in ("gauge", "ledger")]
        said += [HumanMessage("Look again, please.", id=f"q{turn}"), AIMessage("", tool_calls=calls, id=f"c{turn}")]
        said += [
            ToolMessage(words, tool_call_id=call["id"], name=call["name"], id=call["id"])
            for words, call in zip((f"brass{turn} weight{turn}", f"cedar{turn} price{turn}"), calls, strict=True)
        ]
        said.append(AIMessage("Both answered.", id=f"a{turn}"))
    return said


def of_both(part: str) -> str:
    """A summary that tells what two tools found in one sentence."""
    found = re.findall(r"(?:brass|cedar)\d+ \w+", part)
    return "\n".join(["## Overview", *(f"- {one} and {other}" for one, other in pairwise(found))])


def everything() -> list[str]:
    """All that a user's sessions show, condensed by rules and by models."""
    talk = [turn.message.model_copy(update={"id": f"t{at}"}) for at, turn in enumerate(conversation(120, seed=2).turns)]
    said = {"work": made_up_run(turns=32, seed=3).messages, "talk": talk}
    tools = {"tools": read_by_two(16)}
    joining = ScriptedModel(answers=lambda asked: in_parts(asked, of_both) or "")
    return [*of_a_memory(None, said | tools), *of_a_memory(summarising_model(), said), *of_a_memory(joining, tools)]


def of_a_memory(model: BaseChatModel | None, said: Mapping[str, Sequence[BaseMessage]]) -> list[str]:
    """As `everything`, of a memory with these sessions."""
    shown: list[str] = []
    clock = FrozenClock(NOW)
    with open_memory(
        model=model,
        embeddings=HashingEmbeddings(),
        settings=quick_settings(messages=12, eager=True),
        token_counter=best_counter(),
        clock=clock,
    ) as memory:
        memory.sections.register(OtherSessions(share=0.15))
        for name, messages in said.items():
            session = memory.session(name, user="ann")
            for number, message in enumerate(messages):
                clock.advance(60.0)
                session.add_messages([message])
                if number % 24 == 23 and not isinstance(message, ToolMessage):
                    shown += account_of(session.context(message.text, max_tokens=2000))
            session.flush()
            shown += [*account_of(session.context(max_tokens=900)), *derived(session)]
        asked = memory.session("new", user="ann").context("What did we decide about the budget?", max_tokens=2000)
        shown += account_of(asked)
        shown += [repr([(fact.text, fact.session_id) for fact in memory.facts(user="ann")])]
    return shown


def account_of(context: Context) -> list[str]:
    """A view's bytes, and what its account says of it."""
    told = [
        (one.name, one.tokens, one.cap, one.entry_ids, one.passage_ids, len(one.left_out)) for one in context.sections
    ]
    return [*(as_bytes(message).decode() for message in context.messages), repr(told)]


def derived(session: Session) -> list[str]:
    """What a session has beside its messages."""
    return [
        *(summary.text for summary in session.tree().summaries),
        repr([(fact.text, fact.status, fact.mentions, fact.sources) for fact in session.facts(superseded=True, k=500)]),
        repr([(hit.text, hit.score) for hit in session.search("oak budget gauge", k=20)]),
        repr([(one.path, one.operation) for one in session.accessed_files()]),
    ]


def test_processes_that_hash_otherwise_show_the_same() -> None:
    script = "import json; from tests.integration.test_same_bytes import everything; print(json.dumps(everything()))"
    first, second = (
        json.loads(
            subprocess.run(
                [sys.executable, "-c", script],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(map(str, sys.path))},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for seed in ("1", "2")
    )
    assert sum(map(len, first)) > 100_000
    assert [(one, other) for one, other in zip(first, second, strict=True) if one != other] == []


WORDS = (
    "harbour",
    "crane",
    "pump",
    "order",
    "valve",
    "budget",
    "deadline",
    "team",
    "Tuesday",
    "decision",
    "must",
    "never",
    "always",
    "prefer",
    "file",
    "error",
    "failed",
    "fixed",
    "deployed",
    "customer",
    "ship",
    "dock",
    "Lisbon",
    "Oslo",
)


def of_many_lengths(chance: random.Random, turns: int) -> list[BaseMessage]:
    """Talk and calls of which some are far longer than others: of a small budget the required ones take most."""

    def words() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.choice([4, 12, 12, 90]))) + "."

    said: list[BaseMessage] = []
    for turn in range(turns):
        said.append(HumanMessage(words(), id=f"q{turn}"))
        if chance.random() < 0.5:
            call = {"name": "look", "args": {"at": words()}, "id": f"c{turn}"}
            result = ToolMessage(words(), tool_call_id=f"c{turn}", id=f"t{turn}")
            said += [AIMessage("", tool_calls=[call], id=f"l{turn}"), result]
        said.append(AIMessage(words(), id=f"a{turn}"))
    return said


@pytest.mark.parametrize("drawn", [0, 1, 5, 6])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_who_asks_again_is_shown_the_same_where_not_even_what_is_required_fits(
    call_style: CallStyle, drawn: int
) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(of_many_lengths(random.Random(drawn), 12))
        session.flush()
        for budget in (500, 600, 700, 900):
            contexts = [told(call_style, session.context, "", max_tokens=budget) for _ in range(3)]
            first, *later = [[as_bytes(message) for message in context.messages] for context in contexts]
            assert later == [first, first]
