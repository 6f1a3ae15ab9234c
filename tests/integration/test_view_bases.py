"""What shares and thresholds of a view are measured by."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import Settings, TieredMemory
from langchain_tiered_memory.context.compaction.thresholds import advised
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.view import cover_builder
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.models.window_budget import ModelProfile, budget_of
from langchain_tiered_memory.settings import ContextSettings
from langchain_tiered_memory.summaries.tree.cover import Node
from langchain_tiered_memory.types.outcomes import Outcome, OutcomeKind, Zone
from tests.memory_builders import conversation, open_memory, quick_settings, summaries_of

if TYPE_CHECKING:
    from langchain_tiered_memory.session import Session


def talk(session: Session, turns: int, *, first: int = 0) -> None:
    for turn in range(first, first + turns):
        said = f"In step {turn} we spoke of stone {turn * 7} and of the wall by the river, at length. " * 3
        session.add_messages([HumanMessage(said), AIMessage(f"Good, step {turn} is done and the wall stands. " * 3)])


@pytest.mark.slow
def test_a_share_of_the_window_and_its_zones_have_one_base() -> None:
    settings = Settings.model_validate({"context": {"window_share": 0.7}, "guard": {"window": 8192}})
    with TieredMemory.open(None, embeddings=None, settings=settings) as memory:
        session = memory.session("s")
        for turn in range(60):
            talk(session, 1, first=turn)
            context = session.context(None, max_tokens=8192)
            assert context.guard.zone is Zone.SAFE
            assert context.tokens < 0.7 * context.guard.window.limit


@pytest.mark.slow
def test_the_selection_judges_its_room_before_facts_take_theirs() -> None:
    settings = Settings.model_validate({"context": {"older": "selection"}})
    with TieredMemory.open(None, embeddings=None, settings=settings) as memory:
        session = memory.session("s")
        talk(session, 400)
        memory.flush()
        history = session.context(None, max_tokens=8000).messages
        told = "\n".join(str(message.content) for message in history)
        spans = {f"{one.first_seq}-{one.last_seq}, " for one in summaries_of(session) if one.level == 2}
        assert sum(span in told for span in spans) > 1


def told_by_selection() -> Counter[int]:
    """How many summaries of each level a selection tells of, at least in short."""
    chosen = ContextSettings(older="selection")
    with open_memory(settings=quick_settings().model_copy(update={"context": chosen})) as memory:
        session = memory.session("s")
        session.add_messages(conversation(120))
        memory.flush()
        session.context(None, max_tokens=2500)
        ref = session.core.ref
        assert ref is not None
        (kept,) = session.core.checked.store.plans.kept(ref)
        plan = ViewPlan.from_json(kept["payload"])
        assert plan is not None
        return Counter(one.level for one in plan.items if isinstance(one, Node) and one.resolution != "headline")


def test_the_selection_shows_the_top_alone_when_room_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover_builder, "NUMBERS", replace(NUMBERS, selection_tokens=0))
    enough = told_by_selection()
    monkeypatch.setattr(cover_builder, "NUMBERS", replace(NUMBERS, selection_tokens=100_000))
    short = told_by_selection()
    assert max(short) == max(enough) > 2
    assert enough[2] > short[2]


def test_no_threshold_is_advised_that_the_answer_makes_void(monkeypatch: pytest.MonkeyPatch) -> None:
    little = [
        Outcome(id=str(at), kind=OutcomeKind.CONDENSED, last_seq=100 * at, tokens_before=1000, tokens_after=950)
        for at in range(20)
    ]
    with TieredMemory.open(None, embeddings=None) as memory:
        session = memory.session("s")
        talk(session, 1)
        runtime = session.core.checked
        ref = runtime.store.transcript.find("s")
        assert ref is not None
        monkeypatch.setattr(type(runtime.store.outcomes), "read", lambda *_, **__: little)
        window = budget_of(16_000, ModelProfile(window=16_000, answer=1000), settings=runtime.settings).window
        advice = advised(runtime, ref, None, window=window)
        assert advice is not None
        assert advice.percent <= 100 * window.allowed / window.tokens < 90
