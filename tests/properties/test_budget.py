"""Invariants 2 and 3: never over budget, always valid for the provider, no entry lost, no group split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.errors import BudgetError
from tests.memory_builders import counted, entries_of, open_memory, quick_settings, summaries_of, tool_turn, turn
from tests.properties.test_cover import distinct, unaccounted
from tests.strategies import broken_histories, healthy_histories, interleaved_histories, odd_text

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow

TOOLS: list[dict[str, Any]] = [
    {"name": "search", "description": "Find things.", "parameters": {"type": "object", "properties": {"q": {}}}},
    {"name": "read", "description": "Read a file " * 8, "parameters": {"type": "object", "properties": {"p": {}}}},
]
histories = st.one_of(
    healthy_histories(max_turns=6),
    interleaved_histories(),
    broken_histories(max_size=14),
    st.lists(st.integers(0, 30), min_size=1, max_size=10, unique=True).map(
        lambda numbers: [
            message for number in numbers for message in (tool_turn(number) if number % 2 else turn(number))
        ]
    ),
)
budgets = st.one_of(st.integers(-1, 120), st.integers(120, 800), st.sampled_from([2000, 8000]))
systems = st.sampled_from([None, "", "Be kind.", SystemMessage("Be brief. " * 20)])
queries = st.one_of(st.none(), st.just(""), st.just("the order to Bergen"), odd_text)
quickly = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def remembered(*tracks: tuple[str, list[BaseMessage]], **choices: Any) -> TieredMemory:
    memory = open_memory(None, **choices)
    for number, (track, messages) in enumerate(tracks):
        memory.session("s", track=track).add_messages(distinct(messages, number))
    return memory


def faults(session: Session, context: Context, *, tools: list[Any]) -> list[str]:
    """What a provider, or whoever pays, would say against a context."""
    found = list(check_valid(context.messages))
    tokens = counted(context.messages, tools=tools)
    if tokens > context.max_tokens:
        found.append(f"{tokens} tokens in a budget of {context.max_tokens}")
    if tokens != context.raw_tokens:
        found.append(f"{tokens} tokens, the context says {context.raw_tokens}")
    texts = {entry.id: entry.text for entry in entries_of(session)}
    found += [f"{one} is not of this session" for one in (*context.entry_ids, *context.passage_ids) if one not in texts]
    return found


@quickly
@given(
    main=histories,
    helper=histories,
    budget=budgets,
    query=queries,
    system=systems,
    tools=st.sampled_from([[], TOOLS]),
    view=st.sampled_from(["default", "default", "recall"]),
    flushes=st.booleans(),
    pin=st.booleans(),
)
def test_a_context_is_within_its_budget_valid_and_accounts_for_every_entry(
    *,
    main: list[BaseMessage],
    helper: list[BaseMessage],
    budget: int,
    query: str | None,
    system: Any,
    tools: list[Any],
    view: Any,
    flushes: bool,
    pin: bool,
) -> None:
    assume(main)
    memory = remembered(("main", main), ("helper", helper), ("main", main))
    session = memory.session("s")
    if flushes:
        session.flush()
    if pin:
        session.pin(entries_of(session)[len(main) // 2].id)
    try:
        context = session.context(query, max_tokens=budget, system=system, tools=tools, view=view)
    except BudgetError as error:
        said = str(error)
        assert str(budget) in said, "the error names the budget"
        assert "max_tokens" in said, "and the remedy"
        return
    assert faults(session, context, tools=tools) == []
    if view == "default":
        assert unaccounted(session, context) == []


@settings(max_examples=4, deadline=None)
@given(st.integers(3, 40), st.booleans())
def test_a_growing_conversation_is_within_every_budget_at_every_turn(every: int, tool_calls: bool) -> None:  # noqa: FBT001
    memory = open_memory(None)
    session = memory.session("s")
    for number in range(14):
        session.add_messages(tool_turn(number) if tool_calls and number % 3 == 0 else turn(number))
        if number % every == 0:
            session.flush()
        for budget in (190, 250, 420, 900):
            context = session.context(max_tokens=budget)
            assert faults(session, context, tools=[]) == []
            assert unaccounted(session, context) == []
            # A question that was answered already may stand word for word in the block before the newest messages.
            said = [str(one.content) for one in context.messages if isinstance(one, HumanMessage)]
            assert any(f"order {1000 + number}" in one for one in said)


@quickly
@given(histories, st.booleans(), st.integers(1, 7), st.integers(200, 900))
def test_no_group_is_ever_split_by_a_summary_or_by_the_border_of_a_view(
    history: list[BaseMessage],
    interleave: bool,  # noqa: FBT001
    size: int,
    budget: int,
) -> None:
    assume(history)
    memory = open_memory(None, settings=quick_settings(messages=size))
    session = memory.session("s")
    messages = distinct(history, 0)
    step = 3 if interleave else len(messages)
    for start in range(0, len(messages), step):
        session.add_messages(messages[start : start + step])
        session.flush()
    session.add_messages(turn(99))
    session.flush()
    summaries = {one.id: one for one in summaries_of(session)}
    groups: dict[int, set[str | None]] = {}
    members: dict[int, set[str]] = {}
    for entry in entries_of(session):
        groups.setdefault(entry.group, set()).add(entry.summary_id)
        members.setdefault(entry.group, set()).add(entry.id)
    late = {entry.group for entry in entries_of(session) if entry.answers and entry.group != entry.seq}
    for group, homes in groups.items():
        finished = {home for home in homes if home is not None and summaries[home].state.finished}
        assert len(homes) == 1 or (group in late and finished), f"group {group} lies in {homes}"
    try:
        context = session.context("", max_tokens=budget)
    except BudgetError:
        return
    recent = context.section("recent")
    shown = {*recent.entry_ids, *recent.passage_ids} if recent is not None else set()
    for group, ids in members.items():
        together = len(groups[group]) == 1
        assert not together or ids <= shown or not ids & shown, f"group {group} is cut by the border of the view"


def test_a_context_shows_a_call_with_all_its_results_or_not_at_all() -> None:
    memory = open_memory(None)
    session = memory.session("s")
    for number in range(20):
        session.add_messages(tool_turn(number, results=3))
    session.flush()
    shown: list[int] = []
    for budget in range(150, 1500, 50):
        context = session.context("", max_tokens=budget)
        assert context.repairs == (), "nothing had to be mended on a healthy history"
        calls = [call["id"] for one in context.messages for call in getattr(one, "tool_calls", ())]
        results = [one.tool_call_id for one in context.messages if isinstance(one, ToolMessage)]
        assert calls == results
        shown.append(len(results))
    assert shown[-1] >= 6, "a wide view has calls of several turns in it"
    assert len(set(shown)) > 1, "and a narrow one has fewer"


def test_interleaved_tracks_that_have_no_room_are_all_named() -> None:
    talk, helper = conversations_of(15, 13), conversations_of(28, 16, 17, 14, 18, 0)
    memory = remembered(("main", talk), ("helper", helper), ("main", talk))
    context = memory.session("s").context("", max_tokens=107)
    assert unaccounted(memory.session("s"), context) == []


def conversations_of(*numbers: int) -> list[BaseMessage]:
    return [message for number in numbers for message in (tool_turn(number) if number % 2 else turn(number))]
