"""Invariant 8: what a turn costs does not grow with the length of the session. Counted, not timed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from langchain_tiered_memory.settings import Settings, TreeSettings
from tests.memory_builders import NOW, conversation, open_memory, quick_settings, store_of, turn
from tests.spread import EXHAUSTIVE

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session, TieredMemory

pytestmark = pytest.mark.slow

_STEP = 20
_LATE = 2130 if EXHAUSTIVE else 1330
"""Turns before the late ones: four times as many as before the early ones, or twice."""


@dataclass(kw_only=True)
class Meter:
    """What the database did: statements, and steps of SQLite's virtual machine, which visit the rows."""

    statements: int = 0
    steps: int = 0

    @classmethod
    def on(cls, memory: TieredMemory) -> Meter:
        """A meter on a memory whose database is in memory: its one connection."""
        meter = cls()
        engine = store_of(memory).database.engine

        @event.listens_for(engine, "before_cursor_execute")
        def _count(*_: object) -> None:
            meter.statements += 1

        def stepped() -> int:
            meter.steps += _STEP
            return 0

        raw = engine.raw_connection()
        raw.driver_connection.set_progress_handler(stepped, _STEP)  # type: ignore[union-attr]
        raw.close()
        return meter

    def reset(self) -> None:
        self.statements = self.steps = 0


def dearest(meter: Meter, session: Session, *, start: int, turns: int) -> tuple[int, int, int, int]:
    """The most that any of some turns cost: statements and steps of adding, statements and steps of a context."""
    session.context("", max_tokens=2000)
    session.flush()
    session.context("", max_tokens=2000)
    found: list[tuple[int, int, int, int]] = []
    for number in range(start, start + turns):
        meter.reset()
        session.add_messages(turn(number))
        added = (meter.statements, meter.steps)
        meter.reset()
        session.context("", max_tokens=2000)
        found.append((*added, meter.statements, meter.steps))
        if number % 5 == 0:
            session.flush()
    return tuple(max(column) for column in zip(*found, strict=True))  # type: ignore[return-value]


@pytest.mark.seldom(2)
def test_a_turn_costs_the_same_in_a_session_that_is_much_longer() -> None:
    # A checkpoint is due by the clock too: it stands still, however long a loaded machine takes.
    memory = open_memory(None, settings=quick_settings(messages=10, sources=5), clock=lambda: NOW)
    session = memory.session("s")
    meter = Meter.on(memory)
    session.add_messages(conversation(900))  # from here on there are as many facts as a view looks at
    session.flush()
    early = dearest(meter, session, start=900, turns=30)
    for start in range(930, _LATE, 200):
        session.add_messages(conversation(200, start=start))
        session.flush()
    late = dearest(meter, session, start=_LATE, turns=30)
    add_statements, add_steps, context_statements, context_steps = zip(early, late, strict=True)
    assert add_statements[1] <= add_statements[0]
    assert add_steps[1] <= 1.3 * add_steps[0]
    # A cover made anew looks into one summary more for each further level.
    assert context_statements[1] <= context_statements[0] + 12
    assert context_steps[1] <= 1.5 * context_steps[0]


def test_adding_a_message_runs_as_many_statements_after_600_messages_as_after_20() -> None:
    memory = open_memory(None, settings=quick_settings(enabled=False))
    session = memory.session("s")
    meter = Meter.on(memory)
    session.add_messages(conversation(10))
    costs = []
    for number in (20, 400):
        meter.reset()
        session.add_messages(turn(number))
        costs.append((meter.statements, meter.steps))
        session.add_messages(conversation(300, start=1000))
    assert costs[0][0] == costs[1][0]
    assert costs[1][1] <= 1.5 * costs[0][1]


@pytest.mark.parametrize("view", ["default", "recall"])
@pytest.mark.sweep(1)
def test_a_context_where_nothing_is_condensed_costs_no_more_in_a_session_four_times_as_long(view: str) -> None:
    def cost(turns: int) -> list[tuple[int, int]]:
        settings = Settings(tree=TreeSettings(enabled=False, background=False))
        with open_memory(settings=settings) as memory:
            session = memory.session("s")
            session.add_messages(conversation(turns))
            meter = Meter.on(memory)
            found = []
            # The first makes a plan; another budget makes another; after more messages the window slides.
            for number, budget in enumerate((2000, 2000, 3000, 2000, 2000)):
                meter.reset()
                session.context("", max_tokens=budget, view=view)
                found.append((meter.statements, meter.steps))
                session.add_messages(conversation(6, start=10_000 + 6 * number))
            return found

    for (short_statements, short_steps), (long_statements, long_steps) in zip(cost(1500), cost(6000), strict=True):
        assert long_statements <= short_statements + 2
        assert long_steps <= short_steps * 1.3 + 1000


def test_what_is_left_out_uncondensed_is_counted_as_it_is_in_one_track() -> None:
    with open_memory(settings=Settings(tree=TreeSettings(enabled=False, background=False))) as memory:
        session = memory.session("s")
        session.add_messages(conversation(1200))
        shown = session.context("", max_tokens=2000)
        missing = 2400 - len(shown.entry_ids)
        said = " ".join(message.text for message in shown.messages)
        # The goal and the last questions stand inside the span, and are shown all the same.
        assert 0 <= sum(map(int, re.findall(r"(\d+) not shown", said))) - missing <= 4
