"""The flow of a condensation, row by row: from the state of a request to its outcome, sync and async."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.context import ladder
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.extensions import TelemetryCollector, Verdict
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.settings import (
    CondensationSettings,
    GuardSettings,
    PriceSettings,
    Settings,
    StrategySettings,
    ThresholdSettings,
    TreeSettings,
)
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
from langchain_tiered_memory.summaries.writers.model import ModelCondenser
from langchain_tiered_memory.summaries.writers.model_calls import ModelCalls
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, summarising_model
from langchain_tiered_memory.types.outcomes import FailureReason, Outcome, OutcomeKind, Zone
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, conversation, counted, open_memory, ref_of, small_levels, store_of, turn
from tests.properties.test_cover import unaccounted

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)
WINDOW = 2000
ANSWER = 200
WHOLE = 100_000
"""A budget that leaves the model's window to decide."""
K, F = OutcomeKind, FailureReason


class Model(ScriptedModel):
    """A chat model that tells its window."""

    model_name: str = "m"

    def __init__(self, window: int | None = WINDOW, answer: int | None = ANSWER, **fields: Any) -> None:
        profile = {"max_input_tokens": window, "max_output_tokens": answer} if window is not None else None
        super().__init__(profile=profile, **fields)


SLIDING = StrategySettings(primary="truncation")


def settings_of(
    *, tree: dict[str, Any] | None = None, guard: Any = None, prices: Any = None, **changes: Any
) -> Settings:
    """Small levels, no background, no waiting, and what a test changes of condensing."""
    chosen: dict[str, Any] = {"background": False, "levels": small_levels()} | (tree or {})
    return Settings(
        tree=TreeSettings(**chosen),
        condensation=CondensationSettings(**({"foreground_seconds": 0} | changes)),
        guard=guard or GuardSettings(),
        prices=prices or {},
    )


@dataclass
class Seen:
    """A session, and the events that happened in it."""

    memory: TieredMemory
    events: list[Event] = field(default_factory=list)

    @property
    def session(self) -> Session:
        return self.memory.session("s")

    def names(self) -> list[str]:
        return [event.name for event in self.events]


def session_of(turns: int, chosen: Settings, call_style: CallStyle = "sync", **choices: Any) -> Seen:
    """A session with so many turns of some 70 tokens."""
    seen = Seen(open_memory(None, settings=chosen, **({"clock": FrozenClock(NOW)} | choices)))
    seen.memory.subscribe(seen.events.append)
    told(call_style, seen.session.add_messages, conversation(turns), at=NOW)
    return seen


def asked(
    seen: Seen, call_style: CallStyle, model: Any = None, *, max_tokens: int | None = WHOLE, **more: Any
) -> Context:
    context: Context = told(
        call_style,
        seen.session.context,
        "",
        model=model if model is not None else Model(),
        max_tokens=max_tokens,
        **more,
    )
    assert check_valid(context.messages) == []
    assert counted(context.messages) == context.raw_tokens <= context.max_tokens
    assert unaccounted(seen.session, context) == []
    return context


def turns_for(percent: float, window: int = WINDOW) -> int:
    """The fewest turns that take so many percent of a window."""
    number = 1
    while 100 * counted(conversation(number)) / window < percent:
        number += 1
    return number


@both
@pytest.mark.parametrize(
    ("threshold", "over", "expected"),
    [
        pytest.param(75, -1, K.NOT_NEEDED, id="below the threshold"),
        pytest.param(75, 0, K.CONDENSED, id="at the threshold"),
        pytest.param(75, 1, K.CONDENSED, id="above the threshold"),
        pytest.param(60, -1, K.NOT_NEEDED, id="below a lower threshold"),
        pytest.param(60, 0, K.CONDENSED, id="at a lower threshold"),
    ],
)
def test_the_threshold_is_reached_from_the_percent_on(
    call_style: CallStyle, threshold: float, over: int, expected: OutcomeKind
) -> None:
    chosen = settings_of(thresholds=ThresholdSettings(percent=threshold))
    seen = session_of(turns_for(threshold) + over, chosen, call_style)
    told(call_style, seen.session.flush)
    used = counted(conversation(turns_for(threshold) + over))
    outcome = asked(seen, call_style).guard.outcome
    assert (outcome.kind, outcome.tokens_before) == (expected, used)


@both
@pytest.mark.parametrize(("short_by", "expected"), [(0, K.NOT_NEEDED), (1, K.CONDENSED)])
def test_exactly_at_the_threshold_counts_to_the_token(
    call_style: CallStyle, short_by: int, expected: OutcomeKind
) -> None:
    used = counted(conversation(20))
    window = 2 * used + 1 - short_by  # 50 percent of it are half a token more than used, or half a token less
    seen = session_of(20, settings_of(thresholds=ThresholdSettings(percent=50)), call_style)
    told(call_style, seen.session.flush)
    assert asked(seen, call_style, Model(window)).guard.outcome.kind is expected


@both
def test_more_than_is_allowed_is_due_below_the_threshold_too(call_style: CallStyle) -> None:
    seen = session_of(turns_for(70), settings_of(thresholds=ThresholdSettings(percent=100)), call_style)
    told(call_style, seen.session.flush)
    context = asked(seen, call_style, Model(answer=600))
    assert context.guard.window.allowed == 1200 < context.guard.used_tokens < WINDOW
    assert context.guard.outcome.kind is K.CONDENSED
    assert "1,200 allowed" in context.guard.outcome.why


@both
@pytest.mark.parametrize(
    ("profiles", "expected", "warnings"),
    [
        pytest.param({}, K.CONDENSED, 0, id="no profile"),
        pytest.param({"m": -1.0}, K.CONDENSED, 0, id="it inherits"),
        pytest.param({"m": 90.0}, K.NOT_NEEDED, 0, id="its own"),
        pytest.param({"m": 4.0}, K.CONDENSED, 1, id="too low"),
        pytest.param({"m": 101.0}, K.CONDENSED, 1, id="too high"),
        pytest.param({"other": 90.0}, K.CONDENSED, 0, id="another model's"),
    ],
)
def test_a_profile_has_its_own_threshold_where_it_is_valid_and_one_that_is_not_is_warned_of_once(
    call_style: CallStyle, profiles: dict[str, float], expected: OutcomeKind, warnings: int
) -> None:
    seen = session_of(
        turns_for(55), settings_of(thresholds=ThresholdSettings(percent=50, profiles=profiles)), call_style
    )
    told(call_style, seen.session.flush)
    kinds = [asked(seen, call_style).guard.outcome.kind for _ in range(3)]
    assert kinds[0] is expected
    assert seen.names().count("threshold_unusable") == warnings


@both
def test_a_request_names_its_profile_itself(call_style: CallStyle) -> None:
    seen = session_of(
        turns_for(55), settings_of(thresholds=ThresholdSettings(percent=50, profiles={"careful": 90})), call_style
    )
    told(call_style, seen.session.flush)
    assert asked(seen, call_style, profile="careful").guard.outcome.kind is K.NOT_NEEDED
    assert asked(seen, call_style).guard.outcome.kind is K.CONDENSED


@both
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"tree": {"enabled": False}}, id="no summaries at all"),
        pytest.param({"strategies": SLIDING}, id="the window is the first choice"),
    ],
)
def test_where_no_summary_may_be_made_the_window_slides_directly(
    call_style: CallStyle, changes: dict[str, Any]
) -> None:
    seen = session_of(turns_for(80), settings_of(**changes), call_style)
    told(call_style, seen.session.flush)
    context = asked(seen, call_style)
    outcome = context.guard.outcome
    assert (outcome.kind, outcome.reason, outcome.steps) == (K.TRUNCATED, None, ("slid",))
    assert outcome.tokens_after < 0.7 * outcome.tokens_before
    assert outcome.messages_after < outcome.messages_before == 2 * turns_for(80)
    ids = [one.id for one in context.messages]
    last = turns_for(80) - 1
    assert "q0" in ids, "the first message stays"
    assert ids[-3:] == [f"a{last - 1}", f"q{last}", f"a{last}"], "and so do the last three"
    assert asked(seen, call_style).guard.outcome.kind is K.NOT_NEEDED, "and that was enough"


@both
def test_a_window_that_slid_once_is_not_slid_again_while_there_is_nothing_to_leave_out(call_style: CallStyle) -> None:
    chosen = settings_of(strategies=SLIDING, thresholds=ThresholdSettings(percent=5))
    seen = session_of(30, chosen, call_style)
    kinds = [asked(seen, call_style).guard.outcome.kind for _ in range(12)]
    assert kinds[0] is K.TRUNCATED
    assert kinds[-1] is K.FAILED
    assert [one.reason for one in seen.session.outcomes() if one.kind is K.FAILED] == [F.TOO_FEW_MESSAGES]


@both
def test_hybrid_takes_what_is_summarised_and_slides_over_the_rest(call_style: CallStyle) -> None:
    chosen = settings_of(strategies=StrategySettings(primary="hybrid"), foreground_seconds=30)
    seen = session_of(turns_for(80), chosen, call_style)
    told(call_style, seen.session.flush)
    assert asked(seen, call_style).guard.outcome.kind is K.CONDENSED
    model = summarising_model()
    other = session_of(60, chosen, call_style, model=model)
    outcome = asked(other, call_style).guard.outcome
    assert outcome.kind is K.TRUNCATED
    assert outcome.reason is F.NOT_READY
    assert model.calls == 0, "nobody waited"


@both
def test_where_the_fallback_is_an_error_nothing_is_left_out(call_style: CallStyle) -> None:
    chosen = settings_of(strategies=StrategySettings(fallback="error"))
    seen = session_of(60, chosen, call_style)
    with pytest.raises(CondensationError) as raised:
        asked(seen, call_style)
    assert raised.value.reason is F.NOT_READY
    (kept,) = told(call_style, seen.session.outcomes)
    assert (kept.kind, kept.reason, kept.left_out) == (K.FAILED, F.NOT_READY, ())
    with pytest.raises(CondensationError):
        asked(seen, call_style)
    assert len(seen.session.outcomes()) == 1, "the same is not kept twice"
    told(call_style, seen.session.flush)
    assert asked(seen, call_style).guard.outcome.kind is K.CONDENSED, "and it goes on once the summaries are there"


@both
def test_where_the_fallback_is_an_error_a_view_that_fits_is_shown_as_it_was(call_style: CallStyle) -> None:
    seen = session_of(turns_for(78), settings_of(strategies=StrategySettings(fallback="error")), call_style)
    context = asked(seen, call_style)
    assert context.guard.outcome.kind is K.FAILED
    assert len(context.messages) == 2 * turns_for(78)


def failing(reason: FailureReason) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings and choices with which no summary comes about, for one of the engine's reasons."""
    said: dict[FailureReason, Any] = {
        F.MODEL_ERROR: RuntimeError("503"),
        F.EMPTY_SUMMARY: "",
        F.REFUSED: "I'm sorry, but I can't help with that.",
        F.TIMEOUT: TimeoutError("too slow"),
        F.CIRCUIT_OPEN: RuntimeError("503"),
    }
    changes: dict[str, Any] = {"foreground_seconds": 30}
    if reason is F.CIRCUIT_OPEN:
        changes["breaker_failures"] = 1
    if reason is F.RATE_LIMITED:
        changes["max_calls_per_minute"] = 1
    settings = CondensationSettings(**changes)
    model = ScriptedModel(answers=[said[reason]]) if reason in said else summarising_model()
    counter = EstimatingCounter()
    writer = ModelCondenser(ModelCalls(model, name="one", count_text=counter.count_text, default_window=100_000))
    engine = CondensationEngine.create(settings, models=[writer], attempts=99)
    if reason is F.VALIDATOR_REJECTED:
        engine.register_validator(Never())
    return changes, {"engine": engine}


class Never:
    """A validator that takes nothing."""

    name = "never"

    def validate(self, job: Any, text: str) -> Verdict:
        del job, text
        return Verdict(valid=False, issues=("not good enough",))


@both
@pytest.mark.parametrize(
    "reason",
    [F.MODEL_ERROR, F.EMPTY_SUMMARY, F.REFUSED, F.TIMEOUT, F.VALIDATOR_REJECTED, F.CIRCUIT_OPEN, F.RATE_LIMITED],
)
@pytest.mark.parametrize("fits", [True, False])
def test_each_way_a_summary_fails_is_the_reason_of_the_outcome(
    call_style: CallStyle,
    reason: FailureReason,
    fits: bool,  # noqa: FBT001 - drawn
) -> None:
    changes, choices = failing(reason)
    turns = turns_for(78) if fits else 60
    first, *higher = small_levels(messages=2 * turns - 4)
    tree = {"levels": (first.model_copy(update={"tokens": None}), *higher)}
    clock = FrozenClock(NOW)
    seen = session_of(turns, settings_of(tree=tree, **changes), call_style, clock=clock, **choices)
    if reason is F.CIRCUIT_OPEN:
        told(call_style, seen.session.flush)
        clock.advance(10)
    if reason is F.RATE_LIMITED:  # the one call of this minute is gone
        told(call_style, seen.memory.session("other").add_messages, conversation(turns), at=NOW)
        told(call_style, seen.memory.session("other").flush)
    context = asked(seen, call_style)
    outcome = context.guard.outcome
    assert outcome.reason is reason
    assert outcome.kind is (K.FAILED if fits else K.TRUNCATED)
    assert outcome.error
    assert outcome.tokens_before == context.guard.used_tokens
    if fits:
        assert outcome.tokens_after == outcome.tokens_before == context.tokens
        assert outcome.left_out == ()
        assert len([one for one in seen.session.outcomes() if one.reason is reason]) == 1
        asked(seen, call_style)
        assert len([one for one in seen.session.outcomes() if one.reason is reason]) == 1, "kept once"


@both
def test_nothing_but_what_must_stay_is_too_few_messages(call_style: CallStyle) -> None:
    seen = Seen(open_memory(None, settings=settings_of(), clock=FrozenClock(NOW)))
    said = next(one for one in range(100, 2000) if counted([HumanMessage("long " * one), AIMessage("yes")]) >= 1510)
    told(call_style, seen.session.add_messages, [HumanMessage("long " * said), AIMessage("yes")])
    outcome = asked(seen, call_style).guard.outcome
    assert (outcome.kind, outcome.reason) == (K.FAILED, F.TOO_FEW_MESSAGES)


@both
@pytest.mark.parametrize(
    ("turns", "due", "expected"),
    [
        pytest.param(turns_for(78), None, F.TOO_FEW_MESSAGES, id="nothing"),
        pytest.param(60, None, F.TOO_FEW_MESSAGES, id="nothing, of many messages"),
        pytest.param(60, "count", F.NOT_READY, id="many messages"),
        pytest.param(turns_for(78), "pause", F.NOT_READY, id="a pause"),
        pytest.param(turns_for(78), "task", F.NOT_READY, id="the end of a task"),
    ],
)
def test_a_view_waits_for_a_summary_only_where_one_is_due(
    call_style: CallStyle, turns: int, due: str | None, expected: FailureReason
) -> None:
    first, *higher = small_levels(messages=100 if due == "count" else 1000)
    tree = {"levels": (first.model_copy(update={"tokens": None}), *higher), "idle_seconds": 3600.0}
    clock = FrozenClock(NOW)
    seen = session_of(turns, settings_of(tree=tree), call_style, clock=clock)
    if due == "pause":
        clock.advance(3600)
    if due == "task":
        seen.session.start_task("the register")
        told(call_style, seen.session.add_messages, [HumanMessage("Done?"), AIMessage("Done.")], at=NOW)
        seen.session.finish_task("the register")
    outcome = asked(seen, call_style).guard.outcome
    assert outcome.reason is expected
    assert str(outcome.error).endswith("are not due yet" if due is None else "the next request uses them")


@both
def test_what_was_condensed_a_moment_ago_is_not_condensed_again(call_style: CallStyle) -> None:
    chosen = settings_of(thresholds=ThresholdSettings(percent=5))
    seen = session_of(turns_for(60), chosen, call_style)
    told(call_style, seen.session.flush)
    assert asked(seen, call_style).guard.outcome.kind is K.CONDENSED
    outcome = asked(seen, call_style).guard.outcome
    assert (outcome.kind, outcome.reason) == (K.FAILED, F.CONDENSED_RECENTLY)


@both
def test_a_step_that_would_free_too_little_waits(call_style: CallStyle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "NUMBERS", replace(NUMBERS, least_progress_share=0.9))
    chosen = settings_of(thresholds=ThresholdSettings(percent=50))
    seen = session_of(turns_for(60), chosen, call_style)
    told(call_style, seen.session.flush)
    context = asked(seen, call_style)
    assert (context.guard.outcome.kind, context.guard.outcome.reason) == (K.FAILED, F.CONDENSED_RECENTLY)
    assert "would free only" in str(context.guard.outcome.error)
    assert len(context.messages) == 2 * turns_for(60)


@both
def test_summaries_larger_than_what_they_stand_for_are_a_context_that_grew(call_style: CallStyle) -> None:
    chosen = settings_of(thresholds=ThresholdSettings(percent=5), tree={"levels": small_levels(messages=2)})
    seen = Seen(open_memory(None, settings=chosen, clock=FrozenClock(NOW)))
    said = [HumanMessage("a", id="m0"), AIMessage("b", id="m1"), *turn(1), HumanMessage("so " * 200, id="m2")]
    told(call_style, seen.session.add_messages, said[:2])
    told(call_style, seen.session.flush)
    told(call_style, seen.session.add_messages, [AIMessage("c", id="m3"), *said[-1:], AIMessage("d", id="m4")])
    outcome = asked(seen, call_style).guard.outcome
    assert (outcome.kind, outcome.reason) == (K.FAILED, F.CONTEXT_GREW)


@both
def test_summaries_that_nobody_made_yet_are_not_ready(call_style: CallStyle) -> None:
    seen = session_of(turns_for(78), settings_of(foreground_seconds=0), call_style)
    outcome = asked(seen, call_style).guard.outcome
    assert (outcome.kind, outcome.reason) == (K.FAILED, F.NOT_READY)
    told(call_style, seen.session.flush)
    assert asked(seen, call_style).guard.outcome.kind is K.CONDENSED


@both
def test_a_view_that_slid_because_nothing_was_ready_takes_the_summaries_up_when_they_are(call_style: CallStyle) -> None:
    seen = session_of(60, settings_of(foreground_seconds=0), call_style)
    first = asked(seen, call_style)
    assert (first.guard.outcome.kind, first.guard.outcome.reason) == (K.TRUNCATED, F.NOT_READY)
    told(call_style, seen.session.flush)
    second = asked(seen, call_style)
    assert second.guard.outcome.kind is K.CONDENSED
    assert second.summary_ids
    assert asked(seen, call_style).guard.outcome.kind is K.NOT_NEEDED


@both
def test_a_request_waits_for_its_summaries_where_nobody_makes_them_in_the_background(call_style: CallStyle) -> None:
    model = summarising_model()
    seen = session_of(turns_for(78), settings_of(foreground_seconds=None), call_style, model=model)
    assert asked(seen, call_style).guard.outcome.kind is K.CONDENSED
    assert model.calls > 0


@both
def test_a_condensation_that_was_undone_is_not_made_again_while_the_view_fits(call_style: CallStyle) -> None:
    seen = session_of(turns_for(78), settings_of(), call_style)
    told(call_style, seen.session.flush)
    before = asked(seen, call_style)
    assert before.guard.outcome.kind is K.CONDENSED
    told(call_style, seen.session.undo)
    after = asked(seen, call_style)
    assert (after.guard.outcome.kind, after.guard.outcome.reason) == (K.FAILED, F.UNDONE)
    assert len(after.messages) == 2 * turns_for(78)


def tool_run(rounds: int, lines: int = 60) -> list[Any]:
    """An agent that looks at the same page again and again."""
    said: list[Any] = [HumanMessage("Watch the page until the ferry is there.", id="goal")]
    for number in range(rounds):
        said += [
            AIMessage(
                "", tool_calls=[{"name": "fetch", "args": {"url": "ferry"}, "id": f"c{number}"}], id=f"a{number}"
            ),
            ToolMessage("No ferry yet. " * lines, tool_call_id=f"c{number}", id=f"t{number}"),
        ]
    return said


@both
def test_repeated_tool_outputs_are_masked_before_anything_is_condensed(call_style: CallStyle) -> None:
    seen = Seen(open_memory(None, settings=settings_of(), clock=FrozenClock(NOW)))
    told(call_style, seen.session.add_messages, tool_run(9))
    context = asked(seen, call_style)
    outcome = context.guard.outcome
    assert (outcome.kind, outcome.reason, outcome.steps) == (K.MASKED, None, ("masked",))
    assert outcome.summary_ids == ()
    assert {one.what for one in outcome.left_out} <= {f"t{number}" for number in range(8)}
    assert {one.reason for one in outcome.left_out} == {"masked: repeated tool output"}
    assert outcome.messages_after == outcome.messages_before
    assert any("tokens left out" in str(one.content) for one in context.messages)
    assert context.messages[-1].content == "No ferry yet. " * 60


@both
def test_the_fields_of_a_condensation_account_for_it(call_style: CallStyle) -> None:
    model = summarising_model()
    prices = {"one": PriceSettings(input_per_million=2.0, output_per_million=10.0)}
    writer = ModelCondenser(
        ModelCalls(model, name="one", count_text=EstimatingCounter().count_text, default_window=100_000)
    )
    engine = CondensationEngine.create(CondensationSettings(), models=[writer])
    seen = session_of(turns_for(80), settings_of(prices=prices), call_style, engine=engine)
    told(call_style, seen.session.flush)
    context = asked(seen, call_style)
    outcome = context.guard.outcome
    assert outcome.kind is K.CONDENSED
    assert outcome.steps == context.guard.steps == ("condensed",)
    assert (outcome.track, outcome.at, outcome.error, outcome.undone_at) == ("main", NOW, None, None)
    assert outcome.last_seq == outcome.messages_before == 2 * turns_for(80)
    recent = context.section("recent")
    assert recent is not None
    assert outcome.messages_after == len(recent.entry_ids)
    assert outcome.tokens_before == counted(conversation(turns_for(80)))
    assert outcome.tokens_after == context.tokens
    assert set(outcome.summary_ids) == set(context.summary_ids)
    assert outcome.spent.calls >= len(outcome.summary_ids) > 0
    spent = outcome.spent
    assert outcome.cost == pytest.approx((2 * spent.input_tokens + 10 * spent.output_tokens) / 1_000_000)
    assert outcome.breaks_prefix
    first, last = outcome.left_out[0].what.split("-")
    assert int(last) - int(first) + 1 == outcome.messages_before - outcome.messages_after
    assert told(call_style, seen.session.outcomes) == [outcome]
    (event,) = [one for one in seen.events if one.id == outcome.id]
    assert event.name == "view_condensed"
    assert event.details["tokens_after"] == outcome.tokens_after


@both
def test_without_a_price_a_condensation_has_no_cost_and_the_extractive_one_spends_nothing(
    call_style: CallStyle,
) -> None:
    seen = session_of(turns_for(80), settings_of(), call_style)
    told(call_style, seen.session.flush)
    outcome = asked(seen, call_style).guard.outcome
    assert (outcome.cost, outcome.spent.calls) == (None, 0)


def test_the_history_of_outcomes_is_read_newest_first_and_is_bounded() -> None:
    chosen = settings_of(strategies=SLIDING)
    seen = session_of(0, chosen.model_copy(deep=True))
    found: list[Outcome] = []
    for number in range(80):
        seen.session.add_messages(turn(number))
        outcome = asked(seen, "sync").guard.outcome
        if outcome.id:
            found.insert(0, outcome)
    assert len(found) > 3
    assert seen.session.outcomes() == found
    assert seen.session.outcomes(limit=2) == found[:2]


def test_a_plan_and_its_outcome_are_written_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = session_of(turns_for(80), settings_of())
    seen.session.flush()
    name = "langchain_tiered_memory.context.outcome_store.insert_outcome"

    def torn(*_: Any, **__: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(name, torn)
        with pytest.raises(RuntimeError):
            asked(seen, "sync")
    assert seen.session.outcomes() == []
    assert store_of(seen.memory).plans.kept(ref_of(seen.session)) == []
    outcome = asked(seen, "sync").guard.outcome
    assert seen.session.outcomes() == [outcome]
    (plan,) = store_of(seen.memory).plans.kept(ref_of(seen.session))
    assert plan["payload"] == store_of(seen.memory).outcomes.get(ref_of(seen.session), outcome.id).plan_after


def test_two_sessions_that_say_the_same_at_the_same_moment_have_outcomes_of_their_own() -> None:
    memory = open_memory(None, settings=settings_of(), clock=FrozenClock(NOW))
    found = set()
    for name in ("one", "two"):
        memory.session(name).add_messages(conversation(60), at=NOW)
        found.add(memory.session(name).context("", model=Model(), max_tokens=WHOLE).guard.outcome.id)
    assert len(found) == 2


@both
@pytest.mark.parametrize(
    ("model", "guard", "learn", "source", "tokens"),
    [
        pytest.param(Model(), None, None, "model", 2000, id="its profile tells"),
        pytest.param(Model(None), 1500, None, "setting", 1500, id="a setting tells"),
        pytest.param(Model(), 1500, None, "setting", 1500, id="a setting corrects the profile"),
        pytest.param(Model(), None, 1300, "learned", 1300, id="a refusal taught a smaller one"),
        pytest.param(Model(), None, 9000, "model", 2000, id="a larger one is not learnt"),
        pytest.param(Model(None), None, 1300, "learned", 1300, id="a refusal taught the only one"),
        pytest.param(Model(None), None, None, "budget", 5000, id="only a budget is known"),
    ],
)
def test_the_window_is_what_is_known_best(  # noqa: PLR0917 - a row of the table
    call_style: CallStyle, model: Model, guard: int | None, learn: int | None, source: str, tokens: int
) -> None:
    seen = session_of(60, settings_of(guard=GuardSettings(window=guard)), call_style)
    told(call_style, seen.session.flush)
    if learn is not None:
        told(call_style, seen.memory.learn_window, model, learn)
    context = asked(seen, call_style, model, max_tokens=4500)
    window = context.guard.window
    assert (window.source, window.tokens) == (source, tokens)
    assert context.max_tokens == window.allowed
    if source == "model":
        assert (window.reserved_tokens, window.limit, window.allowed) == (ANSWER, 1800, 1600)
    if source == "budget":
        assert (window.reserved_tokens, window.allowed) == (0, 4500)
    assert context.guard.zone in Zone


@both
def test_a_bare_budget_is_grown_into_to_its_end(call_style: CallStyle) -> None:
    seen = session_of(1, settings_of(), call_style)
    highest = 0
    for number in range(1, 60):
        told(call_style, seen.session.add_messages, turn(number))
        told(call_style, seen.session.flush)
        context = told(call_style, seen.session.context, "", max_tokens=1000)
        outcome = context.guard.outcome
        assert (outcome.kind is K.NOT_NEEDED) == (context.guard.used_tokens <= 1000)
        highest = max(highest, context.tokens)
    assert highest > 900


class Selector:
    """Leaves out what it is told to, or goes wrong."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.questions: list[Any] = []

    def select(self, question: Any) -> Any:
        self.questions.append(question)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(question) if callable(self.answer) else self.answer


@both
def test_a_truncation_selector_chooses_what_leaves_first(call_style: CallStyle) -> None:
    seen = session_of(60, settings_of(strategies=SLIDING), call_style)
    selector = Selector(lambda question: [group.first_seq for group in question.groups[21:]])
    seen.memory.engine.views.truncation_selector = selector
    outcome = asked(seen, call_style).guard.outcome
    assert outcome.kind is K.TRUNCATED
    gone = {int(one.what.split("-")[0]) for one in outcome.left_out}
    assert gone == set(range(22, 118)), "as it said, save what must stay"
    assert selector.questions[0].room_tokens < 1600


@both
@pytest.mark.parametrize("answer", [RuntimeError("boom"), None, 7, "all", [None, "x", -3, True], [10**9], {}])
def test_a_selector_that_goes_wrong_is_passed_over(call_style: CallStyle, answer: Any) -> None:
    plain, odd = (session_of(60, settings_of(strategies=SLIDING), call_style) for _ in range(2))
    odd.memory.engine.views.truncation_selector = Selector(answer)
    expected, found = asked(plain, call_style).guard.outcome, asked(odd, call_style).guard.outcome
    assert [one.what for one in found.left_out] == [one.what for one in expected.left_out]
    assert ("extension_failed" in odd.names()) == (answer is None or isinstance(answer, RuntimeError | int | str))


@both
def test_a_selector_that_hangs_is_passed_over(call_style: CallStyle) -> None:
    seen = session_of(60, settings_of(strategies=SLIDING, plugin_seconds=0.05), call_style)
    seen.memory.engine.views.truncation_selector = Selector(lambda _: threading.Event().wait(60))
    assert asked(seen, call_style).guard.outcome.kind is K.TRUNCATED
    assert "extension_failed" in seen.names()


class Resolver:
    """Answers as it is told."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.questions: list[Any] = []

    def resolve(self, question: Any) -> Any:
        self.questions.append(question)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer


@both
@pytest.mark.parametrize(
    ("answer", "expected", "event"),
    [
        pytest.param(90.0, K.NOT_NEEDED, None, id="later"),
        pytest.param(20, K.CONDENSED, None, id="earlier"),
        pytest.param(None, K.CONDENSED, None, id="no opinion"),
        pytest.param(4.0, K.CONDENSED, "threshold_unusable", id="too low"),
        pytest.param(float("inf"), K.CONDENSED, "threshold_unusable", id="infinite"),
        pytest.param("high", K.CONDENSED, "extension_failed", id="nonsense"),
        pytest.param(RuntimeError("boom"), K.CONDENSED, "extension_failed", id="raises"),
    ],
)
def test_a_threshold_resolver_decides_where_its_answer_can_be_used(
    call_style: CallStyle, answer: Any, expected: OutcomeKind, event: str | None
) -> None:
    seen = session_of(turns_for(55), settings_of(thresholds=ThresholdSettings(percent=50)), call_style)
    told(call_style, seen.session.flush)
    resolver = Resolver(answer)
    seen.memory.engine.views.threshold_resolver = resolver
    context = asked(seen, call_style)
    assert context.guard.outcome.kind is expected
    (question,) = resolver.questions
    assert (question.session_id, question.track, question.profile) == ("s", "main", "m")
    assert (question.global_percent, question.window_tokens) == (50, WINDOW)
    assert question.used_tokens == context.guard.used_tokens
    profile_of = [name for name in seen.names() if name in {"threshold_unusable", "extension_failed"}]
    assert profile_of == ([event] if event else [])


@both
def test_the_same_flow_in_a_database_of_its_own(call_style: CallStyle, where: Any) -> None:
    with open_memory(where, settings=settings_of(), clock=FrozenClock(NOW)) as memory:
        seen = Seen(memory)
        told(call_style, seen.session.add_messages, conversation(60), at=NOW)
        assert asked(seen, call_style).guard.outcome.kind is K.TRUNCATED
        told(call_style, seen.session.flush)
        outcome = asked(seen, call_style).guard.outcome
        assert outcome.kind is K.CONDENSED
        told(call_style, seen.session.undo)
        assert told(call_style, seen.session.outcomes)[0].undone_at == NOW
        assert told(call_style, seen.session.diff, outcome.id).outcome.id == outcome.id
        assert told(call_style, seen.session.costs).prefix_breaks >= 1
        assert told(call_style, seen.session.ledger)[-1].what


class Falls(TelemetryCollector):
    """Keeps what it is told of falls to the window."""

    name = "falls"

    def __init__(self) -> None:
        self.told: list[tuple[str, Outcome]] = []

    def on_fallback_to_window(self, session_id: str, outcome: Outcome) -> None:
        self.told.append((session_id, outcome))


@both
def test_collectors_hear_of_a_fall_to_the_window_once_with_its_reason(call_style: CallStyle) -> None:
    seen = session_of(60, settings_of(), call_style)
    falls = Falls()
    seen.memory.engine.register_telemetry(falls)
    outcome = asked(seen, call_style).guard.outcome
    assert (outcome.kind, outcome.reason) == (K.TRUNCATED, F.NOT_READY)
    assert falls.told == [("s", outcome)]
    asked(seen, call_style)
    assert len(falls.told) == 1
    told(call_style, seen.session.flush)
    assert asked(seen, call_style).guard.outcome.kind is K.CONDENSED
    assert len(falls.told) == 1, "a condensation is none"


@both
@pytest.mark.parametrize("window", ["half", "last"])
@pytest.mark.parametrize("opening", [0, 1])
def test_the_bridge_stands_between_the_first_message_and_the_rest(
    call_style: CallStyle, window: Any, opening: int
) -> None:
    chosen = settings_of(strategies=StrategySettings(primary="truncation", window=window))
    seen = Seen(open_memory(None, settings=chosen, clock=FrozenClock(NOW)))
    prompts = [SystemMessage("Answer about the harbour.", id="rules")][:opening]
    told(call_style, seen.session.add_messages, [*prompts, *conversation(40)], at=NOW)
    context = asked(seen, call_style)
    assert context.guard.outcome.kind is K.TRUNCATED
    ids = [one.id for one in context.messages]
    bridges = [at for at, one in enumerate(context.messages) if one.additional_kwargs.get("tiered_memory")]
    assert bridges == [ids.index("q0") + 1]
    assert "sliding window" in context.messages[bridges[0]].text or "not shown" in context.messages[bridges[0]].text
