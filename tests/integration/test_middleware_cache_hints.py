"""Providers are told what of a request comes again, where that is wanted, and only where they understand it."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import AgentMiddleware

from tests.agent_builders import built, look_up, open_memory, openai_model, said
from tests.anthropic_server import AnthropicServer, blocks_of
from tests.call_styles import CALL_STYLES, CallStyle
from tests.openai_server import OpenAIServer, calls

if TYPE_CHECKING:
    from collections.abc import Iterator

anthropic = pytest.importorskip("langchain_anthropic")
anthropic_middleware = pytest.importorskip("langchain_anthropic.middleware")

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("call_style", CALL_STYLES)]

_TURNS = 12
_BUDGET = 1500


def _answer(body: dict[str, Any]) -> list[dict[str, Any]]:
    """A call of the tool for each word of the user, then an answer."""
    last = body["messages"][-1]["content"]
    if isinstance(last, list) and any(one["type"] == "tool_result" for one in last):
        return [{"type": "text", "text": "It is due on Monday, and needs bolts."}]
    number = len(body["messages"])
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "look_up", "input": {"order": number}}]


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with AnthropicServer(_answer) as running:
        yield running


def model_of(server: AnthropicServer, **choices: Any) -> Any:
    return anthropic.ChatAnthropic(
        model="claude-loopback", api_key="none", base_url=server.url, max_tokens=100, max_retries=0, **choices
    )


def talked(call_style: CallStyle, agent: Any) -> None:
    for turn in range(_TURNS):
        said(call_style, agent, f"Where is order {turn}? Somebody from hall {turn * 7} asked me for it twice today.")


def plain(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key != "cache_control"} for one in blocks]


def ends_of(blocks: list[dict[str, Any]]) -> list[int]:
    return [at + 1 for at, one in enumerate(blocks) if "cache_control" in one]


def test_most_of_each_request_ends_at_a_breakpoint_that_the_one_before_had(
    call_style: CallStyle, server: AnthropicServer
) -> None:
    with open_memory() as memory:
        talked(call_style, built(memory, model_of(server), max_tokens=_BUDGET, cache_hints=True))
    requests = [blocks_of(body) for body in server.bodies]
    assert len(requests) == 2 * _TURNS
    assert all(1 <= len(ends_of(one)) <= 4 for one in requests)
    served: list[float] = []
    for before, after in pairwise(requests):
        same = [end for end in ends_of(before) if plain(before[:end]) == plain(after[:end])]
        served.append(max(same, default=0) / len(after))
    loops = served[0::2]  # the second request of each turn goes on from the whole first one
    assert median(loops) > 0.7  # but for those between which the view was condensed
    assert min(served) > 0  # tools and the system prompt at least


def test_tools_end_with_a_breakpoint_where_no_system_prompt_follows_them(
    call_style: CallStyle, server: AnthropicServer
) -> None:
    with open_memory() as memory:
        agent = built(memory, model_of(server), max_tokens=_BUDGET, cache_hints=True, agent={"system_prompt": None})
        talked(call_style, agent)
    for body in server.bodies:
        assert "cache_control" in body["tools"][-1]
        assert len(ends_of(blocks_of(body))) <= 4
        assert not body.get("system")


def test_nothing_is_hinted_unless_it_is_wanted(call_style: CallStyle, server: AnthropicServer) -> None:
    with open_memory() as memory:
        talked(call_style, built(memory, model_of(server), max_tokens=_BUDGET))
    assert not any(ends_of(blocks_of(body)) for body in server.bodies)


def test_breakpoints_of_somebody_else_are_left_alone(call_style: CallStyle, server: AnthropicServer) -> None:
    caching = anthropic_middleware.AnthropicPromptCachingMiddleware()
    with open_memory() as memory:
        agent = built(memory, model_of(server), before=[caching], max_tokens=_BUDGET, cache_hints=True)
        said(call_style, agent, "Where is order 1?")
    hinted = [ends_of(blocks_of(body)) for body in server.bodies]
    with AnthropicServer(_answer) as other, open_memory() as memory:
        agent = built(memory, model_of(other), before=[caching], max_tokens=_BUDGET)
        said(call_style, agent, "Where is order 1?")
        assert hinted == [ends_of(blocks_of(body)) for body in other.bodies]


def test_what_is_remembered_has_no_hints(call_style: CallStyle, server: AnthropicServer) -> None:
    with open_memory() as memory:
        agent = built(memory, model_of(server), max_tokens=_BUDGET, cache_hints=True)
        state = said(call_style, agent, "Where is order 1?")
        assert "cache_control" not in str(memory.session("alice").messages())
        assert "cache_control" not in str(state["messages"])


class Named(AgentMiddleware):
    """Tells the provider who asks."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(model_settings={"user": "ann"}))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(model_settings={"user": "ann"}))


def test_openai_gets_one_key_for_a_conversation_and_another_for_another(call_style: CallStyle) -> None:
    script = [calls("look_up", {"order": 1}), "Done.", "Fine.", "Fine."]
    with OpenAIServer(script=script) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=[look_up], before=[Named()], cache_hints=True)
        said(call_style, agent, "Where is order 1?")
        said(call_style, agent, "And the other one?", {"configurable": {"thread_id": "bob"}})
        assert all(one.body.get("user") == "ann" for one in server.requests), "what others set stays"
        keys = [one.body.get("prompt_cache_key") for one in server.requests]
    assert len(keys) == 3
    assert keys[0] == keys[1] != keys[2]
    assert all(key and "alice" not in key and len(key) <= 64 for key in keys)
