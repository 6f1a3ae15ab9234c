"""What a condensation leaves behind: preview, difference, undo, the ledger of what left, and the ledger of costs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import select

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.settings import (
    CondensationSettings,
    PriceSettings,
    Settings,
    ThresholdSettings,
    TreeSettings,
)
from langchain_tiered_memory.sql.schema import metadata
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
from langchain_tiered_memory.summaries.writers.model import ModelCondenser
from langchain_tiered_memory.summaries.writers.model_calls import ModelCalls
from langchain_tiered_memory.testing import FrozenClock, summarising_model
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import (
    NOW,
    as_bytes,
    conversation,
    counted,
    entries_of,
    open_memory,
    small_levels,
    store_of,
    turn,
)
from tests.run_builders import outcome as made

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.outcomes import Outcome

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)
BUDGET = 1500
WINDOW = 2000


class Windowed(FakeListChatModel):
    """What tells a window, and nothing else."""

    responses: list[str] = []  # noqa: RUF012 - a pydantic field
    model_name: str = "m"
    profile: Any = {"max_input_tokens": WINDOW, "max_output_tokens": 100}  # noqa: RUF012 - likewise


def opened(*, prices: dict[str, PriceSettings] | None = None, **choices: Any) -> TieredMemory:
    changes = {key: choices.pop(key) for key in list(choices) if key in CondensationSettings.model_fields}
    settings = Settings(
        tree=TreeSettings(background=False, levels=small_levels()),
        condensation=CondensationSettings(**({"foreground_seconds": 0} | changes)),
        prices=prices or {},
    )
    return open_memory(None, settings=settings, **({"clock": FrozenClock(NOW)} | choices))


def condensed(call_style: CallStyle, memory: TieredMemory, turns: int = 40) -> tuple[Session, Outcome]:
    """A session whose view was shown whole, then condensed."""
    session = memory.session("s")
    told(call_style, session.add_messages, conversation(10), at=NOW)
    told(call_style, session.context, "", max_tokens=BUDGET)
    told(call_style, session.add_messages, conversation(turns - 10, start=10), at=NOW)
    told(call_style, session.flush)
    outcome = told(call_style, session.context, "", max_tokens=BUDGET).guard.outcome
    assert outcome.kind is OutcomeKind.CONDENSED
    return session, outcome


def rows(memory: TieredMemory) -> dict[str, list[Any]]:
    """Everything in the database."""
    with store_of(memory).database.read() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table))] for table in metadata.sorted_tables
        }


@both
def test_a_preview_writes_nothing_calls_no_model_and_is_what_then_happens(call_style: CallStyle) -> None:
    model = summarising_model()
    memory = opened(model=model)
    session = memory.session("s")
    told(call_style, session.add_messages, conversation(40), at=NOW)
    told(call_style, session.flush)
    before, calls = rows(memory), model.calls
    events: list[Any] = []
    memory.subscribe(events.append)
    seen = told(call_style, session.preview, "", max_tokens=BUDGET)
    assert (rows(memory), model.calls, events) == (before, calls, [])
    outcome = told(call_style, session.context, "", max_tokens=BUDGET).guard.outcome
    assert (seen.outcome.kind, seen.outcome.steps) == (outcome.kind, outcome.steps)
    assert (seen.outcome.tokens_before, seen.outcome.tokens_after) == (outcome.tokens_before, outcome.tokens_after)
    assert seen.outcome.left_out == outcome.left_out
    happened = told(call_style, session.diff)
    assert (seen.left, seen.came, seen.text_after) == (happened.left, happened.came, happened.text_after)
    assert happened.came
    assert re.search(r"\n\[(?:messages )?1-", happened.text_after)
    assert happened.text_before == ""


@both
def test_a_preview_of_a_view_that_is_not_full_shows_what_a_condensation_would_do(call_style: CallStyle) -> None:
    memory = opened()
    session = memory.session("s")
    told(call_style, session.add_messages, conversation(40), at=NOW)
    told(call_style, session.flush)
    seen = told(call_style, session.preview, "", max_tokens=4000)
    assert seen.outcome.kind is OutcomeKind.CONDENSED
    assert told(call_style, session.context, "", max_tokens=4000).guard.outcome.kind is OutcomeKind.NOT_NEEDED


@both
def test_an_undone_condensation_gives_the_view_back_and_holds_it_while_it_fits(call_style: CallStyle) -> None:
    memory = opened()
    session = memory.session("s")
    turns = next(number for number in range(1, 99) if counted(conversation(number)) >= 0.77 * WINDOW)
    told(call_style, session.add_messages, conversation(turns), at=NOW)
    whole = told(call_style, session.context, "", max_tokens=2 * WINDOW)
    told(call_style, session.flush)
    outcome = told(call_style, session.context, "", max_tokens=10_000, model=Windowed()).guard.outcome
    assert outcome.kind is OutcomeKind.CONDENSED
    undone = told(call_style, session.undo)
    assert (undone.id, undone.undone_at) == (outcome.id, NOW)
    held = told(call_style, session.context, "", max_tokens=10_000, model=Windowed())
    assert [as_bytes(one) for one in held.messages] == [as_bytes(one) for one in whole.messages]
    assert held.guard.outcome.reason is FailureReason.UNDONE
    assert told(call_style, session.undo).id == outcome.id, "asking twice is asking once"
    assert all(row.undone for row in told(call_style, session.ledger) if row.outcome_id == outcome.id)
    told(call_style, session.add_messages, conversation(10, start=turns), at=NOW)
    told(call_style, session.flush)
    again = told(call_style, session.context, "", max_tokens=10_000, model=Windowed()).guard.outcome
    assert again.kind is OutcomeKind.CONDENSED, "it does not fit any more"
    assert again.id != outcome.id


@both
def test_only_the_last_condensation_of_a_view_can_be_undone(call_style: CallStyle) -> None:
    session, first = condensed(call_style, opened())
    told(call_style, session.add_messages, conversation(40, start=40), at=NOW)
    told(call_style, session.flush)
    second = told(call_style, session.context, "", max_tokens=BUDGET).guard.outcome
    assert second.kind is OutcomeKind.CONDENSED
    with pytest.raises(InvalidInputError, match="something else by now"):
        told(call_style, session.undo, first.id)
    assert told(call_style, session.undo, second.id).id == second.id
    with pytest.raises(NotFoundError):
        told(call_style, session.undo, "no such outcome")


@both
def test_there_is_nothing_to_undo_or_compare_before_the_first_condensation(call_style: CallStyle) -> None:
    session = opened().session("s")
    for verb in (session.undo, session.diff):
        with pytest.raises(NotFoundError):
            told(call_style, verb)
    told(call_style, session.add_messages, turn(0))
    for verb in (session.undo, session.diff):
        with pytest.raises(NotFoundError):
            told(call_style, verb)
    assert told(call_style, session.ledger) == []
    assert told(call_style, session.costs).rows == ()


@both
@pytest.mark.parametrize("primary", ["llm", "truncation"])
def test_the_ledger_accounts_for_every_message_that_left_a_view(call_style: CallStyle, primary: str) -> None:
    memory = opened(strategies={"primary": primary})
    session = memory.session("s")
    seq_of: dict[str, int] = {}
    shown: set[int] = set()
    for number in range(80):
        told(call_style, session.add_messages, turn(number), at=NOW)
        if number % 3 == 0:
            told(call_style, session.flush)
        context = session.context("", max_tokens=BUDGET)
        seq_of = {entry.id: entry.seq for entry in entries_of(session)}
        recent = context.section("recent")
        assert recent is not None
        now = {seq_of[one] for one in (*recent.entry_ids, *recent.passage_ids)}
        left = shown - now
        profile_of: set[int] = set()
        for row in context.guard.outcome.left_out:
            first, dash, last = row.what.partition("-")
            if dash and first.isdigit():
                profile_of.update(range(int(first), int(last) + 1))
            elif row.what in seq_of:
                profile_of.add(seq_of[row.what])
        assert left <= profile_of, f"turn {number}: {left - profile_of} left without a row"
        shown = now
    ledger = told(call_style, session.ledger)
    kept = told(call_style, session.outcomes, limit=200)
    assert [row.what for row in ledger] == [left.what for one in kept for left in one.left_out]
    assert all(row.reason and row.at == NOW and row.track == "main" for row in ledger)


@both
def test_costs_and_break_even_are_those_computed_by_hand(call_style: CallStyle) -> None:
    prices = {"one": PriceSettings(input_per_million=2.0, output_per_million=10.0)}
    count = EstimatingCounter().count_text
    writer = ModelCondenser(ModelCalls(summarising_model(), name="one", count_text=count, default_window=100_000))
    engine = CondensationEngine.create(CondensationSettings(), models=[writer])
    session, outcome = condensed(call_style, opened(prices=prices, engine=engine))
    freed = outcome.tokens_before - outcome.tokens_after
    spent_cost = (2 * outcome.spent.input_tokens + 10 * outcome.spent.output_tokens) / 1e6
    told(call_style, session.add_messages, [AIMessage("One.", id="x1"), HumanMessage("And?", id="x2")], at=NOW)
    told(call_style, session.add_messages, [AIMessage("Two.", id="x3"), AIMessage("Three.", id="x4")], at=NOW)
    costs = told(call_style, session.costs)
    (row,) = costs.rows
    assert (row.outcome_id, row.calls_since, row.saved_tokens_per_call) == (outcome.id, 3, freed)
    assert row.saved_tokens == costs.saved_tokens == 3 * freed
    assert row.spent_cost == pytest.approx(spent_cost)
    assert row.saved_cost == pytest.approx(3 * freed * 2 / 1e6)
    assert row.breaks_even_after == pytest.approx(spent_cost / (freed * 2 / 1e6))
    assert row.paid == (row.breaks_even_after is not None and row.breaks_even_after <= 3)
    assert costs.prefix_breaks == 1
    assert costs.spent.input_tokens >= outcome.spent.input_tokens
    told(call_style, session.undo)
    (undone,) = told(call_style, session.costs).rows
    assert (undone.saved_tokens, undone.breaks_even_after) == (0, None)


@both
def test_a_threshold_is_suggested_from_condensations_and_followed_where_that_is_switched_on(
    call_style: CallStyle,
) -> None:
    for adaptive in (False, True):
        memory = opened(thresholds=ThresholdSettings(percent=60, adaptive=adaptive))
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(4), at=NOW)
        assert told(call_style, session.suggest_threshold) is None
        ref = store_of(memory).transcript.find("s")
        assert ref is not None
        for place in range(9):
            late = made(
                OutcomeKind.TRUNCATED, reason=FailureReason.NOT_READY, last_seq=30 * place, tokens_before=9000,
                tokens_after=3000, steps=("slid",), left_out=(), summary_ids=(),
            )  # fmt: skip
            store_of(memory).outcomes.add(ref, "v", late, keep=50)
        advice = told(call_style, session.suggest_threshold)
        assert advice is not None
        assert (advice.present_percent, advice.samples) == (60, 9)
        assert 50 <= advice.percent < 60
        number = 4
        while counted(told(call_style, session.messages)) < 0.55 * WINDOW:
            told(call_style, session.add_messages, turn(number), at=NOW)
            number += 1
        told(call_style, session.flush)
        outcome = told(call_style, session.context, "", max_tokens=9000, model=Windowed()).guard.outcome
        assert outcome.kind is (OutcomeKind.CONDENSED if adaptive else OutcomeKind.NOT_NEEDED)


@both
@pytest.mark.parametrize(("pause", "expected"), [(299, OutcomeKind.NOT_NEEDED), (301, OutcomeKind.CONDENSED)])
def test_a_view_past_most_of_its_threshold_is_condensed_when_the_cache_ran_out_anyway(
    call_style: CallStyle, pause: float, expected: OutcomeKind
) -> None:
    clock = FrozenClock(NOW)
    memory = opened(clock=clock, cache_lifetime_seconds=300)
    session = memory.session("s")
    number = 0
    while session.context("", max_tokens=BUDGET).guard.used_tokens < 0.8 * BUDGET:
        told(call_style, session.add_messages, turn(number), at=clock())
        number += 1
    told(call_style, session.flush)
    assert told(call_style, session.context, "", max_tokens=BUDGET).guard.outcome.kind is OutcomeKind.NOT_NEEDED
    clock.advance(pause)
    outcome = told(call_style, session.context, "", max_tokens=BUDGET).guard.outcome
    assert outcome.kind is expected
    if expected is OutcomeKind.CONDENSED:
        assert "cache expired" in outcome.why
        assert told(call_style, session.context, "", max_tokens=BUDGET).guard.outcome.kind is OutcomeKind.NOT_NEEDED


@both
def test_what_was_forgotten_is_no_more_in_the_ledger(call_style: CallStyle) -> None:
    session, outcome = condensed(call_style, opened())
    told(call_style, session.forget, message_ids=["q3", "a3"])
    diff = told(call_style, session.diff, outcome.id)
    assert diff.text_before == diff.text_after == ""
    with pytest.raises(InvalidInputError):
        told(call_style, session.undo, outcome.id)
