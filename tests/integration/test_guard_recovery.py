"""When the window fills up: zones, checkpoints, pruning, and the way back from an overflow, arrow by arrow."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from sqlalchemy import update

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.errors import ContextOverflowError, StorageError
from langchain_tiered_memory.runs.checkpoint_store import Checkpoints
from langchain_tiered_memory.settings import (
    CheckpointSettings,
    CondensationSettings,
    ContextSettings,
    GuardSettings,
    Settings,
    ThresholdSettings,
    TreeSettings,
    ViewSettings,
)
from langchain_tiered_memory.sql.schema import checkpoints
from langchain_tiered_memory.testing import FrozenClock
from langchain_tiered_memory.types.outcomes import OutcomeKind, Zone
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import (
    NOW,
    conversation,
    counted,
    entries_of,
    open_memory,
    ref_of,
    small_levels,
    store_of,
    summaries_of,
    tool_turn,
)
from tests.properties.test_cover import unaccounted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)
WINDOW = 3000
LIMIT = WINDOW - 500
WHOLE = 100_000


class Model(FakeListChatModel):
    """What tells a window, and nothing else."""

    responses: list[str] = []  # noqa: RUF012 - a pydantic field
    model_name: str = "m"
    profile: Any = {"max_input_tokens": WINDOW, "max_output_tokens": 500}  # noqa: RUF012 - likewise


class Scene:
    """A session with its clock, and the events that happened in it."""

    def __init__(self, call_style: CallStyle = "sync", *, tree: dict[str, Any] | None = None, **changes: Any) -> None:
        self.call_style = call_style
        self.clock = FrozenClock(NOW)
        self.events: list[Event] = []
        chosen: dict[str, Any] = {"condensation": CondensationSettings(foreground_seconds=0)} | changes
        summarised = TreeSettings(**({"background": False, "levels": small_levels()} | (tree or {})))
        self.memory: TieredMemory = open_memory(None, settings=Settings(tree=summarised, **chosen), clock=self.clock)
        self.memory.subscribe(self.events.append)

    @property
    def session(self) -> Session:
        return self.memory.session("s")

    def says(self, messages: Sequence[BaseMessage], **more: Any) -> None:
        told(self.call_style, self.session.add_messages, messages, **more)

    def asks(self, *, max_tokens: int = WHOLE, model: Any = Model, whole: bool = True, **more: Any) -> Context:
        more = {"model": model() if model is not None else None} | more
        context: Context = told(self.call_style, self.session.context, "", max_tokens=max_tokens, **more)
        assert check_valid(context.messages) == []
        assert counted(context.messages) == context.raw_tokens <= context.max_tokens
        if whole:
            assert unaccounted(self.session, context) == []
        return context

    def fills(self, share: float, *, limit: int = LIMIT) -> None:
        """Talk until the request takes such a share of the limit, and no more than needed."""
        number = len(told(self.call_style, self.session.messages))
        while counted(told(self.call_style, self.session.messages)) < share * limit:
            self.says([HumanMessage(f"Go on with bolt {number} of the crane.", id=f"f{number}")])
            number += 1

    def named(self, *names: str) -> list[Event]:
        return [event for event in self.events if event.name in names]


def late() -> CondensationSettings:
    """Condense only when more is used than is allowed."""
    return CondensationSettings(foreground_seconds=0, thresholds=ThresholdSettings(percent=100), buffer_share=0)


@both
@pytest.mark.parametrize(
    ("share", "zone", "word"),
    [
        (0.5, Zone.SAFE, None),
        (0.7, Zone.WARNING, "Finish tasks"),
        (0.86, Zone.DANGER, "Save a checkpoint"),
        (0.96, Zone.CRITICAL, "pruned to its essentials"),
    ],
)
def test_each_zone_alerts_with_its_recommendation(
    call_style: CallStyle, share: float, zone: Zone, word: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(call_style, condensation=late())
    scene.fills(share)
    with caplog.at_level(logging.WARNING, "langchain_tiered_memory"):
        context = scene.asks()
    assert context.guard.zone is zone
    alert = context.guard.alert
    assert (alert is None) == (word is None)
    logged = [record for record in caplog.records if record.getMessage().startswith("zone_")]
    if alert is None:
        assert not logged
        assert not [event for event in scene.events if event.name.startswith("zone_")]
        return
    (event,) = scene.named(f"zone_{zone.value}")
    assert word is not None
    assert word in alert.recommendation
    assert event.details["recommendation"] == alert.recommendation
    assert event.details["ratio"] == alert.ratio == context.guard.used_tokens / LIMIT >= share
    assert [record.levelno for record in logged] == [logging.WARNING]


@both
def test_a_long_history_that_is_condensed_as_intended_alerts_nobody(call_style: CallStyle) -> None:
    scene = Scene(call_style)
    scene.says(conversation(200))
    told(call_style, scene.memory.flush)
    context = scene.asks(max_tokens=2500, model=None)
    assert (context.guard.zone, context.guard.steps) == (Zone.CRITICAL, ("condensed",))
    assert context.guard.alert is None
    assert not [one for one in scene.events if one.name.startswith("zone_")]


@both
def test_a_zone_alerts_once_until_it_is_left(call_style: CallStyle) -> None:
    scene = Scene(call_style, condensation=late())
    zones = []
    for share in (0.5, 0.71, 0.75, 0.84, 0.86, 0.9, 0.94):
        scene.fills(share)
        zones.append(scene.asks().guard.alert)
    assert [alert.zone if alert else None for alert in zones] == [
        None, Zone.WARNING, None, None, Zone.DANGER, None, None,
    ]  # fmt: skip
    gone = [entry.id for entry in entries_of(scene.session)][5:-5]
    told(call_style, scene.session.forget, message_ids=gone)
    assert scene.asks().guard.alert is None
    scene.fills(0.72)
    again = scene.asks().guard.alert
    assert again is not None
    assert again.zone is Zone.WARNING, "it was left, and entered again"


@both
def test_another_process_knows_the_zone_and_does_not_alert_again(call_style: CallStyle, tmp_path: Any) -> None:
    where = tmp_path / "memory.db"
    for expected in (1, 0):
        events: list[Event] = []
        settings = Settings(tree=TreeSettings(background=False), condensation=late())
        with open_memory(where, settings=settings, clock=FrozenClock(NOW)) as memory:
            memory.subscribe(events.append)
            told(call_style, memory.session("s").add_messages, conversation(42), at=NOW)
            told(call_style, memory.session("s").context, "", model=Model(), max_tokens=WHOLE)
        assert len([event for event in events if event.name.startswith("zone_")]) == expected


@both
def test_danger_and_critical_save_the_run_once_each(call_style: CallStyle) -> None:
    scene = Scene(call_style, condensation=late(), checkpoints=CheckpointSettings(window_share=1.0))
    made = []
    for share in (0.75, 0.86, 0.9, 0.96, 0.961):
        scene.fills(share)
        context = scene.asks()
        made.append(context.guard.checkpoint_id)
    assert [one is not None for one in made][:4] == [False, True, False, True]
    infos = told(call_style, scene.session.checkpoints)
    assert [info.reasons for info in infos][-2:] == [("critical",), ("danger",)]
    assert infos[-1].id == made[1]


@both
def test_over_eighty_percent_of_the_window_saves_the_run_once_for_each_crossing(call_style: CallStyle) -> None:
    scene = Scene(call_style, condensation=late(), guard=GuardSettings(warning=0.97, danger=0.98, critical=0.99))
    made = []
    for share in (0.7, 0.81, 0.83):
        scene.fills(share, limit=WINDOW)
        made.append(scene.asks(model=None, max_tokens=int(WINDOW)).guard.checkpoint_id)
    assert [one is not None for one in made] == [False, True, False]
    ids = [entry.id for entry in entries_of(scene.session)]
    told(call_style, scene.session.forget, message_ids=ids[5:25])
    assert scene.asks(model=None, max_tokens=int(WINDOW)).guard.checkpoint_id is None
    scene.fills(0.82, limit=WINDOW)
    assert scene.asks(model=None, max_tokens=int(WINDOW)).guard.checkpoint_id is not None
    assert {info.reasons for info in scene.session.checkpoints()} == {("context_size",)}


@both
def test_half_an_hour_saves_the_run_once_whatever_the_views(call_style: CallStyle) -> None:
    scene = Scene(call_style)
    scene.says(conversation(3))
    assert scene.asks().guard.checkpoint_id is None
    assert scene.asks(max_tokens=700).guard.checkpoint_id is None
    scene.clock.advance(1801)
    assert scene.asks().guard.checkpoint_id is not None
    assert scene.asks(max_tokens=700).guard.checkpoint_id is None, "another view saves no second time"
    scene.clock.advance(1700)
    told(call_style, scene.session.checkpoint)
    scene.clock.advance(200)
    assert scene.asks().guard.checkpoint_id is None, "it was saved by hand meanwhile"
    scene.clock.advance(-5000)
    assert scene.asks().guard.checkpoint_id is None, "a clock that goes back saves nothing"
    assert len(scene.session.checkpoints()) == 2


@both
def test_a_checkpoint_that_cannot_be_written_does_not_break_the_turn(
    call_style: CallStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        msg = "the disk is full"
        raise StorageError(msg)

    scene = Scene(call_style, condensation=late())
    scene.fills(0.9)
    monkeypatch.setattr(Checkpoints, "write", full)
    context = scene.asks()
    assert context.guard.checkpoint_id is None
    assert scene.named("checkpoint_failed")


def looks(number: int, *, path: str, lines: int = 8) -> list[BaseMessage]:
    """An agent reads a file."""
    call = {"name": "read_file", "args": {"path": path}, "id": f"look{number}"}
    text = "".join(f"{path}:{number}: line {n} of what it says\n" for n in range(lines))
    return [
        AIMessage("", tool_calls=[call], id=f"l{number}"),
        ToolMessage(text, tool_call_id=f"look{number}", id=f"o{number}"),
    ]


def run_of(scene: Scene, rounds: int) -> None:
    scene.says([HumanMessage("Fix the crane in src/crane.py.", id="goal")])
    for number in range(rounds):
        scene.says(looks(number, path=f"src/part_{number % 7}.py"))
        scene.clock.advance(60)
    scene.says(looks(rounds, path="src/crane.py"))


@both
def test_a_critical_view_is_pruned_to_its_target_and_goes_on(call_style: CallStyle) -> None:
    scene = Scene(call_style, tree={"enabled": False})
    run_of(scene, 40)
    context = scene.asks()
    guard = context.guard
    assert (guard.zone, guard.outcome.kind, guard.steps) == (Zone.CRITICAL, OutcomeKind.TRUNCATED, ("masked", "pruned"))
    assert guard.checkpoint_id is not None
    assert context.tokens <= 0.7 * LIMIT
    assert any(one.reason.startswith("pruned: ") for one in guard.outcome.left_out)
    assert {"goal", "l40", "o40"} <= set(context.entry_ids)
    following = scene.asks()
    assert following.guard.outcome.kind is OutcomeKind.NOT_NEEDED
    assert following.messages == context.messages


@both
def test_what_would_leave_next_is_planned_in_the_danger_zone_and_saved(call_style: CallStyle) -> None:
    scene = Scene(
        call_style, condensation=late(), tree={"enabled": False}, checkpoints=CheckpointSettings(window_share=1)
    )
    scene.says(conversation(3))
    scene.fills(0.86)
    assert scene.asks().guard.zone is Zone.DANGER
    saved = told(call_style, scene.session.read_checkpoint)
    assert saved.reasons == ("danger",)
    planned = [one["first_seq"] for one in saved.context_state["pruning"]]
    assert planned
    assert all(one["reason"] for one in saved.context_state["pruning"])
    scene.fills(0.9)
    assert scene.asks().guard.checkpoint_id is None, "it is kept as it is"
    scene.fills(0.96)
    guard = scene.asks().guard
    assert (guard.zone, guard.steps) == (Zone.CRITICAL, ("pruned",))
    gone = {int(one.what.split("-")[0]) for one in guard.outcome.left_out if one.reason.startswith("pruned")}
    assert gone > set(planned), "and as much more as it takes"


@both
def test_where_pruning_is_not_enough_the_musts_are_shown_head_and_tail(call_style: CallStyle) -> None:
    scene = Scene(call_style)
    scene.says([HumanMessage("goal " * 300, id="q0"), AIMessage("word " * 3000, id="a0"), HumanMessage("end", id="q1")])
    context = scene.asks()
    assert context.guard.steps == ("shortened",)
    assert context.guard.outcome.kind is OutcomeKind.TRUNCATED
    assert "a0" in context.passage_ids
    assert [one.steps for one in scene.session.outcomes()] == [("shortened",)]
    scene.asks()
    assert len(scene.session.outcomes()) == 1, "and that is kept once"
    scene.says([AIMessage("done", id="a1"), *conversation(3)])
    scene.asks()


def crowd(rounds: int) -> list[BaseMessage]:
    """One answer with so many calls that no view can show them all."""
    calls = [{"name": "search", "args": {"q": f"bolt {n}"}, "id": f"c{n}"} for n in range(rounds)]
    return [
        HumanMessage("Look for every bolt.", id="goal"),
        AIMessage("", tool_calls=calls, id="calls"),
        *(
            ToolMessage(f"bolt {n} is in box {n} on the quay " * 8, tool_call_id=f"c{n}", id=f"r{n}")
            for n in range(rounds)
        ),
    ]


@both
def test_where_calls_are_too_many_to_be_cut_some_are_shown_with_their_results_and_a_note_tells_of_the_others(
    call_style: CallStyle,
) -> None:
    scene = Scene(call_style)
    scene.says(crowd(60))
    context = scene.asks(max_tokens=2000, model=None)
    assert context.guard.steps[-1] == "recovered"
    assert scene.named("context_recovered")
    assert context.messages[0].content == "Look for every bolt."
    (calls,) = (one.tool_calls for one in context.messages if isinstance(one, AIMessage) and one.tool_calls)
    assert 1 < len(calls) < 60
    assert [one.tool_call_id for one in context.messages if isinstance(one, ToolMessage)] == [
        one["id"] for one in calls
    ]
    scene.says([AIMessage("All are there.", id="a1"), HumanMessage("Thanks.", id="q2")])
    scene.asks(max_tokens=2000, model=None)


def unanswerable() -> list[BaseMessage]:
    """Calls that wait for a person: they have to be shown, and nothing in them can give way."""
    calls = [{"name": "approve", "args": {"number": n}, "id": f"w{n}"} for n in range(60)]
    return [HumanMessage("Ask for each.", id="goal"), AIMessage("", tool_calls=calls, id="waits")]


@both
def test_an_overflow_is_recovered_from_the_last_checkpoint_with_the_essentials(call_style: CallStyle) -> None:
    scene = Scene(call_style)
    run_of(scene, 4)
    calm = told(call_style, scene.session.checkpoint)
    scene.says([HumanMessage("Only the hook, please, and nothing else. " * 20, id="last"), *crowd(30)[1:]])
    found: Context | None = None
    for budget in range(400, 60, -10):
        found = scene.asks(max_tokens=budget, model=None)
        if "recovered" in found.guard.steps:
            break
    assert found is not None
    assert found.guard.steps[-1] == "recovered"
    assert found.guard.outcome.kind is OutcomeKind.TRUNCATED
    (event,) = scene.named("context_recovered")
    assert event.details["checkpoint_id"] == calm.id, "what was just written is no way back"
    assert found.guard.checkpoint_id not in (None, calm.id)
    assert scene.named("context_overflow")
    assert "last" in (*found.entry_ids, *found.passage_ids)
    scene.says([AIMessage("Done.", id="a1"), HumanMessage("Thanks.", id="q2")])
    assert "q2" in scene.asks(model=None, max_tokens=found.max_tokens).entry_ids


def overflowing(call_style: CallStyle, budget: int, *, pins: bool = False) -> tuple[Scene, str, str | None, Context]:
    """A view that was condensed and saved while all was well, and then overflows; and its plan as it was saved."""
    scene = Scene(call_style)
    scene.says([*conversation(12), HumanMessage("Find the bolts.", id="goal")])
    told(call_style, scene.session.flush)
    scene.asks(max_tokens=budget, model=None)
    saved = told(call_style, scene.session.checkpoint, "calm")
    (plan,) = [kept["payload"] for kept in saved.context_state["plans"]]
    scene.says(crowd(30)[1:])
    if pins:
        told(call_style, scene.session.pin, "q3")
    return scene, saved.id, plan, scene.asks(max_tokens=budget, model=None)


@both
def test_after_an_overflow_the_view_goes_on_from_the_last_good_checkpoint(call_style: CallStyle) -> None:
    scene, saved, plan, context = next(
        found
        for budget in range(420, 150, -30)
        if "recovered" in (found := overflowing(call_style, budget))[3].guard.steps
    )
    (event,) = scene.named("context_recovered")
    assert event.details["checkpoint_id"] == saved != context.guard.checkpoint_id
    (kept,) = store_of(scene.memory).plans.kept(ref_of(scene.session))
    assert kept["payload"] == plan, "it is loaded, not only named"
    again, other, _, _ = overflowing(call_style, context.max_tokens, pins=True)
    (event,) = again.named("context_recovered")
    assert event.details["checkpoint_id"] == other, "where its plan does not hold any more, the essentials are shown"
    scene.says([AIMessage("Done.", id="a1"), HumanMessage("Thanks.", id="q99")])
    assert "q99" in scene.asks(model=None, max_tokens=context.max_tokens).entry_ids


@both
def test_an_overflow_that_cannot_be_recovered_says_what_takes_the_room_and_has_saved_everything(
    call_style: CallStyle,
) -> None:
    scene = Scene(call_style)
    scene.says(unanswerable())
    before = told(call_style, scene.session.messages)
    with pytest.raises(ContextOverflowError) as raised:
        scene.asks(max_tokens=70, model=None)
    said = str(raised.value)
    assert "70" in said
    assert "max_tokens" in said
    (info,) = told(call_style, scene.session.checkpoints)
    assert raised.value.checkpoint_id == info.id
    assert "critical" in info.reasons
    saved = store_of(scene.memory).checkpoints.read(ref_of(scene.session), info.id)
    assert saved.conversation
    assert told(call_style, scene.session.messages) == before
    assert len(scene.named("context_fatal")) == len(scene.named("zone_critical")) == 1
    with pytest.raises(ContextOverflowError):
        scene.asks(max_tokens=70, model=None)
    assert len(scene.session.checkpoints()) == 1, "asking again saves nothing twice"
    assert len(scene.named("zone_critical")) == 1
    assert scene.asks(max_tokens=8000, model=None).guard.steps == ()
    assert told(call_style, scene.session.restore).checkpoint.id is not None


@both
@pytest.mark.parametrize("spare", [-200, 0, 5])
def test_a_system_prompt_that_leaves_no_room_goes_the_way_of_every_overflow(call_style: CallStyle, spare: int) -> None:
    scene = Scene(call_style)
    scene.says(conversation(3))
    system = "Mind the tide. " * 100
    budget = counted([SystemMessage(system)]) + spare
    with pytest.raises(ContextOverflowError, match="system prompt") as raised:
        scene.asks(max_tokens=budget, model=None, system=system)
    (info,) = told(call_style, scene.session.checkpoints)
    assert raised.value.checkpoint_id == info.id
    assert "critical" in info.reasons
    assert len(scene.named("zone_critical")) == len(scene.named("context_overflow", "context_fatal")) - 1 == 1
    with pytest.raises(ContextOverflowError):
        scene.asks(max_tokens=budget, model=None, system=system)
    assert len(told(call_style, scene.session.checkpoints)) == 1
    assert scene.asks(max_tokens=budget + 3000, model=None, system=system).guard.steps == ()


@both
def test_without_checkpoints_the_fatal_error_points_to_the_transcript(call_style: CallStyle) -> None:
    scene = Scene(call_style, checkpoints=CheckpointSettings(enabled=False))
    scene.says(unanswerable())
    with pytest.raises(ContextOverflowError, match="transcript") as raised:
        scene.asks(max_tokens=70, model=None)
    assert raised.value.checkpoint_id is None


@both
def test_a_damaged_checkpoint_is_passed_over_on_the_way_back(call_style: CallStyle) -> None:
    scene = Scene(call_style)
    scene.says(unanswerable())
    with pytest.raises(ContextOverflowError) as raised:
        scene.asks(max_tokens=70, model=None)
    with store_of(scene.memory).database.write() as connection:
        connection.execute(update(checkpoints).values(payload=b"torn"))
    with pytest.raises(ContextOverflowError) as again:
        scene.asks(max_tokens=70, model=None)
    assert raised.value.checkpoint_id is not None
    assert again.value.checkpoint_id is None
    assert scene.named("checkpoint_damaged", "checkpoint_unusable")


@both
def test_the_minimal_view_shows_task_file_last_user_message_and_error_and_nothing_else(call_style: CallStyle) -> None:
    scene = Scene(call_style)
    run_of(scene, 5)
    failed = {"name": "bash", "args": {"command": "pytest"}, "id": "bad"}
    scene.says(
        [
            AIMessage("", tool_calls=[failed], id="try"),
            ToolMessage("ValueError: the crane has no hook", tool_call_id="bad", status="error", id="boom"),
            HumanMessage("Only the hook, please.", id="last"),
        ]
    )
    context = scene.asks(view="minimal", system="You are an engineer.")
    assert {"goal", "l5", "o5", "try", "boom", "last"} == set(context.entry_ids)
    assert context.messages[0].content == "You are an engineer."
    assert context.guard.steps == ("minimal",)
    assert context.guard.outcome.kind is OutcomeKind.NOT_NEEDED
    assert context.guard.outcome.id == ""
    assert scene.session.outcomes() == []
    assert len(scene.asks().entry_ids) == 16, "the default view is as it was"


@both
@pytest.mark.parametrize(
    ("view", "levels", "most"),
    [("detailed", {1}, 10), ("compact", {2, 3}, 5), ("mine", {1, 2}, 4)],
)
def test_a_view_shows_its_levels_and_its_recent_messages_and_names_what_is_between(
    call_style: CallStyle, view: str, levels: set[int], most: int
) -> None:
    views = {**ContextSettings().views, "mine": ViewSettings(last_messages=4, levels=(1, 2))}
    scene = Scene(call_style, context=ContextSettings(views=views))
    scene.says(conversation(60), at=NOW)
    told(call_style, scene.session.flush)
    context = scene.asks(max_tokens=1500, model=None, view=view)
    history, recent = context.section("history"), context.section("recent")
    assert history is not None
    assert recent is not None
    shown = {(int(one), int(other)) for one, other in re.findall(r"[[ ](\d+)-(\d+), ", history.text)}
    found = {one.level for one in summaries_of(scene.session) if (one.first_seq, one.last_seq) in shown}
    assert found
    assert found <= levels
    assert len(recent.entry_ids) <= most + 4, "as many as asked for, up to the next border"
    assert recent.entry_ids[-1] == "a59"
    assert context.guard.outcome.kind is OutcomeKind.CONDENSED


def test_a_tool_loop_keeps_its_recall_from_request_to_request() -> None:
    scene = Scene()
    scene.says(conversation(120), at=NOW)
    told("sync", scene.session.flush)
    scene.says([HumanMessage("Which crane of order 1001 needs bolts?", id="ask")])
    recalls = []
    for number in range(6):
        scene.says(tool_turn(200 + number)[1:-1])
        context = scene.session.context(max_tokens=3000)
        section = context.section("recall")
        recalls.append(section.text if section is not None else None)
    assert recalls[0]
    assert set(recalls) == {recalls[0]}, [one and len(one) for one in recalls]


@both
def test_pictures_that_have_no_room_are_described_and_the_newest_stay(call_style: CallStyle) -> None:
    session = open_memory(None, settings=Settings(tree=TreeSettings(background=False))).session("s")
    image = {"type": "image", "base64": "eA==" * 90, "mime_type": "image/png"}
    for number in range(3):
        asked = [{"type": "text", "text": f"What is on plate {number}?"}, image, image]
        told(call_style, session.add_messages, [HumanMessage(asked, id=f"q{number}"), AIMessage("A crane.")])
    told(
        call_style,
        session.add_messages,
        [HumanMessage([{"type": "text", "text": "And here?"}, image, image], id="last")],
    )
    context = told(call_style, session.context, "", max_tokens=4000)
    assert context.tokens <= 4000
    assert check_valid(context.messages, complete=True) == []
    shown = {one.id: one for one in context.messages if isinstance(one, HumanMessage)}
    assert [block["type"] for block in shown["last"].content] == ["text", "image", "image"]
    assert "What is on plate" in str(context.messages), sorted(map(str, shown))
