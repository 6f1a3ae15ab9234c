"""Wherever a provider compacted, a view begins with its newest compaction, whole, and is valid within its budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.messages.content_blocks import compacts
from langchain_tiered_memory.settings import CondensationSettings, Settings, StrategySettings, TreeSettings
from tests.agent_builders import open_memory

_BUDGET = 1500

steps = st.lists(
    st.one_of(
        st.tuples(st.just("talk"), st.integers(1, 12)),
        st.tuples(st.just("call"), st.integers(1, 12)),
        st.tuples(st.sampled_from(["compacted", "compacted call"]), st.integers(1, 3)),
        st.tuples(st.just("ask"), st.booleans()),
    ),
    min_size=4,
    max_size=24,
)


def _turn(kind: str, size: int, number: int) -> list[BaseMessage]:
    text = f"Hall {number} wants {number + 40} bolts before noon. " * size
    block = {"type": "compaction", "content": f"Summary {number}.", "encrypted_content": f"sealed{number}" * 20}
    parts: list[str | dict[Any, Any]] = [{"type": "text", "text": text}]
    if kind.startswith("compacted"):
        parts.insert(0, block)
    call = {"name": "look_up", "args": {"order": number}, "id": f"call_{number}"}
    calls = [call] if kind.endswith("call") else []
    asked = HumanMessage(f"What of hall {number}? {text}")
    said = AIMessage(parts, tool_calls=calls)
    return [asked, said, *([ToolMessage(text, tool_call_id=call["id"])] if calls else [])]


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps, primary=st.sampled_from(["llm", "provider", "truncation", "hybrid"]))
def test_a_view_begins_with_the_newest_compaction(steps: list[tuple[str, Any]], primary: Any) -> None:
    chosen = Settings(
        tree=TreeSettings(background=False),
        condensation=CondensationSettings(strategies=StrategySettings(primary=primary)),
    )
    with open_memory(settings=chosen) as memory:
        session = memory.session("alice")
        newest: BaseMessage | None = None
        for number, (kind, size) in enumerate(steps):
            if kind != "ask":
                turn = _turn(kind, size, number)
                session.add_messages(turn)
                newest = turn[1] if kind.startswith("compacted") else newest
            query = "How many bolts does hall 1 want?" if kind == "ask" and size else ""
            context = session.context(query, max_tokens=_BUDGET)
            shown = [one for one in context.messages if not isinstance(one, SystemMessage)]
            assert context.tokens <= _BUDGET
            assert not check_valid(context.messages)
            if newest is not None:
                assert shown[0].content == newest.content
            assert sum(compacts(one) for one in shown) == (newest is not None)
        assert memory.verify().healthy
