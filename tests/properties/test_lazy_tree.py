"""Whatever order views, flushes, edits, removals, crashes and a model's moods come in, the tree stays whole."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, in_parts, summarising_model
from tests.memory_builders import counted, open_memory, quick_settings, summaries_of, turn
from tests.writers import doubled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory

ASKED = r"^<m user[^>]*>What do we know about the \w+ of order \d+"
"""A message in a part of level 1; in the text of a summary no tag stands before it."""
NARROW, WIDE = 1100, 100_000
TURNS = 4

STEPS = st.one_of(
    st.tuples(st.just("say"), st.integers(1, TURNS)),
    st.tuples(st.just("say"), st.integers(1, TURNS)),
    st.tuples(st.just("ask"), st.sampled_from((NARROW, 2 * NARROW, WIDE))),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("edit"), st.integers(0, 30)),
    st.tuples(st.just("forget"), st.integers(0, 30)),
    st.tuples(st.just("crash"), st.integers(1, 12)),
    st.tuples(st.just("mood"), st.sampled_from(("good", "down", "loses parts", "no parts"))),
    st.tuples(st.just("wait"), st.sampled_from((70, 5000))),
)
pytestmark = pytest.mark.slow
QUIETLY = settings(max_examples=4)


class Moody:
    """A model whose answers go by its mood; counts the summaries that it was asked for."""

    def __init__(self) -> None:
        self.mood = "good"
        self._good = summarising_model()
        self.model = ScriptedModel(answers=self._answer)

    def _answer(self, messages: Sequence[BaseMessage]) -> Any:
        assert callable(self._good.answers)
        if self.mood == "down":
            return RuntimeError("503")
        said: str = self._good.answers(messages)
        if in_parts(messages, lambda _: "") is None:
            return said
        if self.mood == "loses parts":
            return re.sub(r"<summary (\d*[13579])>", "<summary 0>", said)
        return "They spoke of orders." if self.mood == "no parts" else said


def prepared(steps: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The steps behind a history that has something to condense."""
    return [
        ("say", 4),
        ("say", 4),
        ("say", 4),
        ("ask", NARROW),
        ("flush", 0),
        ("say", 4),
        ("say", 4),
        ("say", 4),
        *steps,
    ]


class Play:
    """One session, step by step."""

    def __init__(self, memory: TieredMemory, moody: Moody, clock: FrozenClock) -> None:
        self.memory, self.moody, self.clock = memory, moody, clock
        self.session: Session = memory.session("s")
        self.turns = 0
        self.changed: set[str] = set()

    def do(self, step: str, figure: int) -> None:
        match step:
            case "say":
                for _ in range(figure):
                    self.session.add_messages(turn(self.turns))
                    self.turns += 1
            case "ask":
                assert self.session.context("", max_tokens=figure).tokens <= figure
            case "flush":
                self.session.flush()
            case "edit" if figure < self.turns and f"a{figure}" not in self.changed:
                self.session.add_messages([turn(figure)[1].model_copy(update={"content": f"It needs {figure} bolts."})])
                self.changed.add(f"a{figure}")
            case "forget" if figure < self.turns and f"q{figure}" not in self.changed:
                self.session.forget(message_ids=[f"q{figure}"])
                self.changed.add(f"q{figure}")
            case "crash":
                self._crash(after=figure)
            case "wait":
                self.clock.advance(figure)

    def _crash(self, *, after: int) -> None:
        """A flush that is dropped after so many requests of its flow."""
        flow = self.memory.core.flush("s", None)
        try:
            request: Any = flow.send(None)
            for _ in range(after):
                if not hasattr(request, "model"):
                    request = flow.send(None)
                    continue
                try:
                    answer = request.model.invoke(request.messages, **request.options)
                except RuntimeError as error:
                    request = flow.throw(error)
                else:
                    request = flow.send(answer)
        except StopIteration:
            return
        finally:
            flow.close()


def check(session: Session, memory: TieredMemory) -> None:
    """What holds after every step."""
    made = summaries_of(session)
    by_id = {one.id: one for one in made}
    assert doubled(session) == []
    for one in made:
        below = [by_id[source] for source in one.sources if source in by_id]
        if one.level > 1 and one.state.finished and not one.by_rules and one.model != "extractive":
            # What a model wrote stands on what a model wrote.
            assert not [under for under in below if under.by_rules]
    assert memory.verify().problems == ()


@QUIETLY
@given(steps=st.lists(STEPS, min_size=4, max_size=9))
@example(steps=[("ask", NARROW), ("crash", 3), ("flush", 0), ("ask", NARROW), ("flush", 0)])
@example(steps=[("ask", NARROW), ("edit", 2), ("flush", 0), ("forget", 3), ("ask", NARROW), ("flush", 0)])
def test_any_order_of_needs_crashes_edits_and_removals_leaves_the_tree_whole(steps: list[tuple[str, Any]]) -> None:
    clock, moody = FrozenClock(), Moody()
    with open_memory(None, model=moody.model, clock=clock, settings=quick_settings()) as memory:
        play = Play(memory, moody, clock)
        for step, figure in prepared(steps):
            if step == "mood":
                moody.mood = figure
            else:
                play.do(step, figure)
            check(play.session, memory)
        moody.mood = "good"
        for _ in range(6):
            clock.advance(4000)
            play.session.flush()
        check(play.session, memory)
        assert not [one for one in summaries_of(play.session) if one.degraded or not one.state.finished]


@QUIETLY
@given(turns=st.integers(4, 24), every=st.integers(1, 7), share=st.floats(0.02, 0.74))
def test_a_history_that_fits_its_window_never_asks_a_model(turns: int, every: int, share: float) -> None:
    moody = Moody()
    said = [message for number in range(turns) for message in turn(number)]
    window = round(counted(said) / share)
    with open_memory(None, model=moody.model, settings=quick_settings()) as memory:
        session = memory.session("s")
        for number in range(turns):
            session.add_messages(turn(number))
            session.context("", max_tokens=window)
            if number % every == 0:
                session.flush()
        session.flush()
        assert moody.model.calls == 0
        assert {one.model for one in summaries_of(session)} <= {"extractive"}


@QUIETLY
@given(batch=st.lists(st.integers(1, 5), min_size=6, max_size=10))
def test_a_model_writes_each_summary_once(batch: list[int]) -> None:
    moody = Moody()
    with open_memory(None, model=moody.model, settings=quick_settings()) as memory:
        session = memory.session("s")
        number = 0
        for size in batch:
            for _ in range(size):
                session.add_messages(turn(number))
                session.context("", max_tokens=NARROW)
                number += 1
            session.flush()
        asked = Counter(
            text for prompt in moody.model.prompts for text in re.findall(ASKED, str(prompt[-1].text), re.MULTILINE)
        )
        assert not [text for text, times in asked.items() if times > 1]
