"""A summariser whose text has nothing to do with the conversation: it never stands as a sound summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory.settings import CondensationSettings, ValidationSettings
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
from langchain_tiered_memory.summaries.rendering import summary_block
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, summarising_model
from langchain_tiered_memory.types.outcomes import FailureReason
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory, quick_settings, shown_within, summaries_of

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.types.records import Summary

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)
LOREM = "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et. "
BAD: dict[str, str] = {
    "112,000 characters of filler": LOREM * 1000,
    "a paragraph of filler": LOREM * 3,
    "another conversation's summary": "## Overview\nMarta and Ivo plan their wedding in Lisbon.\n## Key points\n- Marta"
    " wants peonies and a jazz band; Ivo invites his cousins from Porto.\n- The cake will have pistachios.",
    "half a sentence": "We talked",
    "empty sections": "## Overview\n\n## Key points\nNone.\n\n## Decisions\nNone.",
    "words that say nothing": "The user asked several questions and the assistant answered each of them in detail.",
    "a paraphrased refusal": "It would be better if somebody else looked into this, as nothing useful comes to mind.",
}


def spoken(memory: TieredMemory, clock: FrozenClock, call_style: CallStyle, *, turns: int = 12) -> list[Summary]:
    session = memory.session("s")
    told(call_style, session.add_messages, conversation(turns))
    for _ in range(4):
        shown_within(session, 300, call_style)
        clock.advance(4000)
    return summaries_of(session)


@both
@pytest.mark.parametrize("kind", BAD)
def test_an_unsound_summary_is_degraded_and_is_made_again_when_the_model_is_well(
    kind: str, call_style: CallStyle
) -> None:
    clock = FrozenClock()
    good = summarising_model()
    well = False

    def answer(messages: list[BaseMessage]) -> Any:
        return good.invoke(messages).text if well else BAD[kind]

    events: list[Any] = []
    not_left_alone = {"condensation": CondensationSettings(breaker_failures=1000)}
    settings = quick_settings(attempts=2).model_copy(update=not_left_alone)
    with open_memory(model=ScriptedModel(answers=answer), clock=clock, settings=settings) as memory:
        memory.subscribe(events.append)
        made = spoken(memory, clock, call_style)
        assert all(one.by_rules for one in made), "nothing of it stands, and a model builds nothing on what stands in"
        stand_in = [one for one in made if one.degraded]
        assert len(stand_in) >= 4
        assert all(one.level == 1 and one.reason is not None for one in stand_in)
        assert not [one for one in made if BAD[kind][:60] in one.text]
        assert "condensation_failed" in {event.name for event in events}
        assert all(", provisional]" in summary_block(one) for one in stand_in)
        well = True
        clock.advance(100_000)
        after = spoken(memory, clock, call_style, turns=0)
        assert not any(one.degraded for one in after)
        assert max(one.level for one in after if not one.by_rules) >= 2


@both
def test_what_rules_wrote_is_told_of_and_counted_when_it_stands_in_for_a_model(call_style: CallStyle) -> None:
    clock = FrozenClock()
    events: list[Any] = []
    with open_memory(model=ScriptedModel(answers=[RuntimeError("503")]), clock=clock) as memory:
        memory.subscribe(events.append)
        made = spoken(memory, clock, call_style)
        if not any(one.degraded for one in made):
            pytest.fail("nothing stands in, so this tells nothing", pytrace=False)
        assert "condensation_fell_back" in {event.name for event in events}
        assert memory.engine.metrics().degraded > 0


class Babbler:
    """A plugin that knows nothing of the conversation."""

    name = "babbler"
    priority = 10

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = 0

    def should_activate(self, context: CondensationContext) -> bool:
        return bool(context.session_id)

    def condense(self, job: CondenseJob) -> str:
        self.asked += bool(job.sources)
        return self.text


@both
def test_where_nobody_else_writes_an_unsound_text_stands_as_degraded_and_is_asked_for_again(
    call_style: CallStyle,
) -> None:
    clock = FrozenClock()
    babbler = Babbler(BAD["another conversation's summary"])
    engine = CondensationEngine.create_custom(CondensationSettings(breaker_failures=1000), [babbler])
    with open_memory(engine=engine, clock=clock) as memory:
        made = spoken(memory, clock, call_style)
        assert made
        assert all(one.degraded and one.reason == FailureReason.UNSOUND for one in made)
        assert {one.level for one in made} == {1}
        assert memory.session("s").metrics().degraded == len(made)
        asked = babbler.asked
        assert asked > len(made)
        babbler.text = (
            "The harbour, crane, ferry, pilot, customs, warehouse orders were checked by their teams: new bolts before"
            " Monday."
        )
        clock.advance(100_000)
        assert not any(one.degraded for one in spoken(memory, clock, call_style, turns=0) if one.level == 1)


@both
def test_without_the_rule_of_soundness_any_text_is_taken(call_style: CallStyle) -> None:
    validation = ValidationSettings(rules=("size", "emptiness"), audit=False)
    settings = quick_settings().model_copy(update={"condensation": CondensationSettings(validation=validation)})
    clock = FrozenClock()
    with open_memory(
        model=ScriptedModel(answers=[BAD["a paragraph of filler"]]), settings=settings, clock=clock
    ) as memory:
        made = spoken(memory, clock, call_style)
        assert not all(one.by_rules for one in made)
        assert not any(one.degraded for one in made)


INVENTED = "- The crane was sold for 77,315 guilders to Ebenezer."


@both
def test_an_invented_figure_is_marked_and_is_no_source_one_level_up(call_style: CallStyle) -> None:
    good = summarising_model()

    def answer(messages: list[BaseMessage]) -> str:
        said = f"{good.invoke(messages).text}\n".replace("\n</summary>", f"\n{INVENTED}\n</summary>")
        return said if INVENTED in said else f"{said}{INVENTED}"

    events: list[Any] = []
    clock = FrozenClock()
    with open_memory(model=ScriptedModel(answers=answer), clock=clock) as memory:
        memory.subscribe(events.append)
        made = spoken(memory, clock, call_style)
        assert max(one.level for one in made if not one.by_rules) >= 2
        named = [one for one in made if "77,315" in one.text]
        assert any(one.level == 1 for one in named)
        for one in named:
            told = [line for line in one.text.splitlines() if "77,315" in line]
            assert all("[not in the source: 77,315" in line for line in told), one.text
        profile_of = [event for event in events if event.name == "summary_unsourced"]
        assert profile_of
        assert not any("77,315" in event.reason for event in profile_of)
