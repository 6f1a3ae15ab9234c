"""Which outputs of a view are masked: none whose text others lead to, none that a model waits for, giants by share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.compaction.masking import masked_view
from langchain_tiered_memory.context.request import Request, read_inputs
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.rendered_view import RenderedView, render_view
from langchain_tiered_memory.models.window_budget import ModelProfile
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory.context.request import Inputs

_FILE = "\n".join(f"{line:6d}\tvalue_{line} = {line * 7}" for line in range(1, 161))
_BUDGET = 8000


def read(number: int, text: str, path: str = "/srv/a.py") -> list[BaseMessage]:
    call = {"name": "read_file", "args": {"file_path": path}, "id": f"c{number}"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id=f"c{number}", id=f"t{number}")]


def view_of(*said: BaseMessage) -> tuple[Inputs, RenderedView]:
    """A view that shows all of it, before anything is masked."""
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Mend the harbour's cranes."), *said])
        request = Request(
            track=session.core.track,
            query="",
            max_tokens=_BUDGET,
            system=None,
            tools=(),
            model=ModelProfile(),
            view="default",
        )
        inputs = read_inputs(session.core.runtime, "s", request)
        return inputs, render_view(inputs, ViewPlan(border=0, tail_from=0))


def masked(*said: BaseMessage, less: int = 1, ratio: float = 1.0) -> list[tuple[str, str]]:
    inputs, view = view_of(*said)
    inputs = inputs.at(ratio)
    smaller, left = masked_view(inputs, view, target=view.tokens - less)
    assert (smaller.tokens < view.tokens) == bool(left)
    tokens = {entry.id: entry.tokens for entry in view.tail}
    assert all(0 < one.tokens < tokens[one.what] for one in left)
    freed, told = view.tokens - smaller.tokens, sum(one.tokens for one in left)
    assert told <= freed <= 2 * told
    return [(one.what, one.reason) for one in left]


ANSWER = AIMessage("I see.")


def test_a_text_that_a_later_reading_leads_to_stays() -> None:
    assert masked(*read(1, _FILE), ANSWER, *read(2, _FILE), ANSWER) == []


def test_an_earlier_look_at_what_changed_is_masked_and_the_later_stays() -> None:
    assert masked(*read(1, _FILE), ANSWER, *read(2, _FILE.replace("value", "figure")), ANSWER) == [
        ("t1", "masked: replaced tool output")
    ]


def test_what_the_model_has_not_answered_yet_stays() -> None:
    giant = "\n".join([_FILE] * 4)
    assert masked(*read(1, giant), ANSWER) == [("t1", "masked: giant tool output")]
    assert masked(*read(1, giant)) == []


def test_a_view_that_fits_stays_as_it_is() -> None:
    assert masked(*read(1, "\n".join([_FILE] * 4)), ANSWER, less=0) == []


@pytest.mark.parametrize("copies", [3, 4])
def test_an_output_is_a_giant_by_its_share_of_the_request(copies: int) -> None:
    """Half of 8,000 tokens: three files have less, four more."""
    assert bool(masked(*read(1, "\n".join([_FILE] * copies)), ANSWER)) == (copies == 4)


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_a_batch_is_worth_its_broken_prefix_by_what_is_billed(ratio: float) -> None:
    """A tenth of 8,889 tokens: the earlier look frees some 500, which may be billed as twice as many."""
    half = _FILE[: len(_FILE) // 2]
    said = (*read(1, half), ANSWER, *read(2, half.replace("value", "figure")), ANSWER)
    assert bool(masked(*said, ratio=ratio)) == (ratio == 2.0)
