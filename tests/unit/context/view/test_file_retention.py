"""Parts of files give way before messages do: fewer of them in less room, none where there is none, the rest as is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.compaction.need import filled_as_pays
from langchain_tiered_memory.context.request import Request, read_inputs
from langchain_tiered_memory.context.view.file_retention import with_fewer_parts
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.rendered_view import RenderedView, render_view
from langchain_tiered_memory.models.window_budget import ModelProfile
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, open_memory, ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.context.request import Inputs

_BUDGET = 4000


def _work(number: int) -> list[BaseMessage]:
    """The agent writes into one file of five, or reads it."""
    path = f"harbour/part_{number % 5}.py"
    if number % 3:
        arguments, name = {"file_path": path}, "Read"
        result = "\n".join(f"line {line} of {path} at step {number}" for line in range(30))
    else:
        arguments = {"file_path": path, "old_string": f"old {number}", "new_string": f"def step_{number}(): ..."}
        result, name = "done", "Edit"
    call = {"name": name, "args": arguments, "id": f"c{number}"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=f"c{number}")]


@pytest.fixture(scope="module")
def shown() -> Iterator[tuple[Inputs, RenderedView]]:
    """The inputs of a request and the view that stands for it, with parts of files."""
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        request = Request(
            track=session.core.track,
            query="",
            max_tokens=_BUDGET,
            system=None,
            tools=(),
            model=ModelProfile(),
            view="default",
        )
        session.add_messages([HumanMessage("Mend the harbour's cranes.")])
        for number in range(1, 50):
            session.add_messages(_work(number))
        session.flush()
        session.context("", max_tokens=_BUDGET)
        runtime, ref = session.core.runtime, ref_of(session)
        inputs = read_inputs(runtime, "s", request)
        plan = ViewPlan.from_json(runtime.store.transcript.kept_view(ref, inputs.name).plan or "")
        assert plan is not None
        assert plan.parts
        yield inputs, render_view(inputs, plan)


def test_a_view_that_fits_keeps_its_parts(shown: tuple[Inputs, RenderedView]) -> None:
    inputs, view = shown
    assert with_fewer_parts(inputs, view, room=view.tokens) is view


@pytest.mark.parametrize("less", [1, 60, 300, 600])
def test_parts_give_way_to_the_room_and_nothing_else_does(shown: tuple[Inputs, RenderedView], less: int) -> None:
    inputs, view = shown
    smaller = with_fewer_parts(inputs, view, room=view.tokens - less)
    assert smaller.tokens <= view.tokens - less
    assert smaller.plan.parts != view.plan.parts
    assert smaller.tail == view.tail
    others = [piece for piece in view.head if piece.part != "parts"]
    assert [piece for piece in smaller.head if piece.part != "parts"] == others
    assert with_fewer_parts(inputs, view, room=view.tokens - less).plan == smaller.plan


def test_parts_that_give_way_leave_a_view_room_to_grow(shown: tuple[Inputs, RenderedView]) -> None:
    inputs, view = shown
    filled = view.tokens - 300
    smaller = with_fewer_parts(replace(inputs, fill=filled), view, room=view.tokens - 1)
    assert smaller.tokens <= filled
    assert smaller.plan.parts


def test_a_view_is_filled_as_if_recall_had_its_whole_share(shown: tuple[Inputs, RenderedView]) -> None:
    inputs, view = shown
    sparing = replace(inputs, policy=replace(inputs.policy, spared=400))
    whole, less = (filled_as_pays(one, view, percent=math.inf).fill for one in (inputs, sparing))
    assert whole is not None
    assert less is not None
    assert 200 < whole - less <= 400


def test_where_the_rest_fills_the_room_no_part_is_left(shown: tuple[Inputs, RenderedView]) -> None:
    inputs, view = shown
    smaller = with_fewer_parts(inputs, view, room=view.tail_tokens)
    assert not smaller.plan.parts
    assert with_fewer_parts(inputs, smaller, room=0) is smaller
