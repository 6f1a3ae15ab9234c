"""Agents on Anthropic's and Ollama's protocols: answers in pieces, calls of tools, and what is kept of both."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, HumanMessage

from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from tests.agent_builders import look_up, open_memory
from tests.answering import text_of
from tests.anthropic_server import AnthropicServer
from tests.ollama_server import OllamaServer

pytestmark = [pytest.mark.service, pytest.mark.slow]

THREAD: Any = {"configurable": {"thread_id": "alice"}}
QUESTIONS = ("When is order 4711 due?", "Where did we put the crane?", "Thanks, that is all.")
ANSWER = "It is due on Monday, and it needs bolts."


def _wanted(body: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The call that a model makes of what the user just said; none of a tool's result."""
    last = body["messages"][-1]
    said = text_of(last)
    if last["role"] != "user" or "tool_result" in str(last):
        return None
    if QUESTIONS[0] in said:
        return "look_up", {"order": 4711}
    return ("recall", {"query": "order 4711"}) if QUESTIONS[1] in said else None


def _anthropic(body: dict[str, Any]) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": ANSWER}]
    call = _wanted(body)
    if call is None:
        return text
    return [*text, {"type": "tool_use", "id": f"toolu_{len(body['messages'])}", "name": call[0], "input": call[1]}]


def _ollama(body: dict[str, Any]) -> str | list[tuple[str, dict[str, Any]]]:
    call = _wanted(body)
    return [call] if call is not None else ANSWER


def _on_anthropic(server: AnthropicServer) -> Any:
    module = pytest.importorskip("langchain_anthropic")
    return module.ChatAnthropic(model_name="claude-sonnet-5", api_key="made-up", base_url=server.url, max_retries=0)


def _on_ollama(server: OllamaServer) -> Any:
    module = pytest.importorskip("langchain_ollama")
    return module.ChatOllama(model="llama3.2", base_url=server.url, num_ctx=8192)


@pytest.mark.parametrize("style", ["sync", "async"])
@pytest.mark.parametrize("provider", ["anthropic", "ollama"])
async def test_what_is_streamed_and_called_is_kept_once_and_in_order(provider: str, style: str) -> None:
    server: Any = AnthropicServer(_anthropic) if provider == "anthropic" else OllamaServer(_ollama)
    pieces: list[list[str]] = []
    with server, open_memory() as memory:
        model = _on_anthropic(server) if provider == "anthropic" else _on_ollama(server)
        hints = provider == "anthropic"
        middleware = TieredMemoryMiddleware(memory, tools=True, cache_hints=hints)
        agent = create_agent(model, [look_up], system_prompt="Be brief.", middleware=[middleware])
        for said in QUESTIONS:
            asked: Any = {"messages": [HumanMessage(said)]}
            if style == "async":
                told = [one async for one in agent.astream(asked, THREAD, stream_mode="messages")]
            else:
                told = list(agent.stream(asked, THREAD, stream_mode="messages"))
            pieces.append([one.text for one, _ in told if isinstance(one, AIMessageChunk) and one.text])
        kept = memory.session("alice").messages()
    assert [one.type for one in kept] == ["human", "ai", "tool", "ai", "human", "ai", "tool", "ai", "human", "ai"]
    assert all(len(one) > 3 for one in pieces), "answers come in pieces"
    assert all("".join(one).endswith(ANSWER) for one in pieces)
    assert [one.text for one in kept if one.type == "ai" and not one.tool_calls] == [ANSWER] * len(QUESTIONS)
    assert [call["name"] for one in kept for call in getattr(one, "tool_calls", ())] == ["look_up", "recall"]
    assert all(body.get("stream", True) for body in server.bodies)
    assert "Order 4711 is due on Monday" in str(server.bodies[-1]["messages"])
