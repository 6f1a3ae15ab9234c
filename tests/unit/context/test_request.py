"""What a request for a context is, and what is read for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory.context.request import Request, read_inputs
from langchain_tiered_memory.context.view.plan import standing_before
from langchain_tiered_memory.models.window_budget import ModelProfile
from langchain_tiered_memory.settings import CondensationSettings, Settings, TreeSettings
from tests.memory_builders import conversation, open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.runtime import Runtime

TOOL = {"type": "function", "function": {"name": "consult", "description": "Ask.", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """Of a memory with one session."""
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(30))
        yield memory.core.runtime


def inputs_of(runtime: Runtime, **asked: Any) -> Inputs:
    request: dict[str, Any] = {
        "track": "main",
        "query": None,
        "max_tokens": 2000,
        "system": None,
        "tools": (),
        "model": ModelProfile(name="m"),
        "view": "default",
    }
    return read_inputs(runtime, "s", Request(**request | asked))


@pytest.mark.parametrize(
    ("asked", "is_same"),
    [
        ({}, True),
        ({"view": "minimal"}, True),
        ({"profile": "quick"}, True),
        ({"tools": (TOOL,)}, True),
        ({"view": "compact"}, False),
        ({"max_tokens": 3000}, False),
        ({"model": ModelProfile(name="n")}, False),
        ({"off": frozenset({3})}, False),
        ({"alone": True}, False),
        ({"query": ""}, False),
        ({"query": "Where is it?"}, False),
    ],
)
def test_requests_have_one_plan_where_they_may_show_the_same_view(
    runtime: Runtime, asked: dict[str, Any], *, is_same: bool
) -> None:
    assert (inputs_of(runtime, **asked).name == inputs_of(runtime).name) is is_same


def test_what_is_said_of_a_request_follows_from_what_was_asked(runtime: Runtime) -> None:
    plain = inputs_of(runtime)
    assert (plain.says_it, inputs_of(runtime, query="Where is it?").says_it) == (True, False)
    assert (plain.profile, inputs_of(runtime, profile="quick").profile) == ("m", "quick")
    with_tool = inputs_of(runtime, tools=(TOOL,))
    assert with_tool.policy.fixed - plain.policy.fixed == runtime.counter.count_tools([TOOL]) > 0
    assert replace(plain, margin=100).room == plain.room - 100


@pytest.mark.parametrize(("seconds", "background", "waits"), [(None, True, 0), (None, False, 30), (5.0, True, 5)])
def test_a_view_waits_for_summaries_that_nobody_else_makes_and_a_preview_never(
    *, seconds: float | None, background: bool, waits: int
) -> None:
    condensation = CondensationSettings(foreground_seconds=seconds)
    settings = Settings(condensation=condensation, tree=TreeSettings(background=background))
    with open_memory(settings=settings) as memory:
        inputs = inputs_of(memory.core.runtime)
        assert inputs.foreground_seconds == waits
        assert replace(inputs, forced=True).foreground_seconds == 0


@pytest.mark.parametrize(
    ("condensation", "tree", "slides"),
    [
        ({}, {}, False),
        ({}, {"enabled": False}, True),
        ({"strategies": {"primary": "truncation"}}, {}, True),
    ],
)
def test_a_window_slides_where_no_summary_may_stand_for_messages(
    condensation: dict[str, Any], tree: dict[str, Any], *, slides: bool
) -> None:
    settings = Settings(condensation=CondensationSettings(**condensation), tree=TreeSettings(background=False, **tree))
    with open_memory(settings=settings) as memory:
        assert inputs_of(memory.core.runtime).slides_only is slides


def test_the_recent_messages_that_will_stand_are_fewer_where_the_view_still_grows(runtime: Runtime) -> None:
    inputs = inputs_of(runtime)
    tail = inputs.entries(limit=99)[::-1]
    stays = max(inputs.policy.stays, inputs.policy.recent_least)
    for grows_by in (0, stays // 2, 10 * stays):
        before = standing_before(inputs, tail, grows_by=grows_by)
        kept = [one.tokens for one in tail if one.seq > before]
        following = next(one.tokens for one in tail if one.seq == before)
        assert sum(kept) <= max(stays - grows_by, 0) < sum(kept) + following
    assert standing_before(inputs_of(runtime, view="compact"), tail) == tail[-6].seq
