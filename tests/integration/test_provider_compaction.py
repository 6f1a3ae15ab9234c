"""A provider's own compaction is kept, counted and passed back as it came, and may do the condensing."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.messages.content_blocks import compacts
from langchain_tiered_memory.settings import CondensationSettings, Settings, StrategySettings, TreeSettings
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import built, open_memory, said
from tests.anthropic_server import AnthropicServer, blocks_of
from tests.call_styles import CALL_STYLES, CallStyle
from tests.responses_server import ResponsesServer, called
from tests.responses_server import said as said_item

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.contexts import Context

anthropic = pytest.importorskip("langchain_anthropic")
openai = pytest.importorskip("langchain_openai")

pytestmark = pytest.mark.slow
_TURNS = 16
_TRIGGER = 900
_BUDGET = 4000
_BLOCK = {"type": "compaction", "content": "They ordered 40 bolts for hall 7.", "encrypted_content": "sealed+1/" * 40}


def by_provider(**choices: Any) -> Settings:
    """Settings that leave condensing to the provider, with everything done in the foreground."""
    strategies = StrategySettings(primary="provider")
    return Settings(
        tree=TreeSettings(background=False), condensation=CondensationSettings(strategies=strategies, **choices)
    )


def _anthropic_answer(body: dict[str, Any]) -> list[dict[str, Any]]:
    last = body["messages"][-1]["content"]
    if isinstance(last, list) and any(one["type"] == "tool_result" for one in last):
        return [{"type": "text", "text": "It is due on Monday, and needs bolts."}]
    number = sum(len(one) for one in str(body["messages"]))
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "look_up", "input": {"order": number}}]


def _openai_answer(body: dict[str, Any]) -> list[dict[str, Any]]:
    number = len(str(body["input"]))
    if body["input"][-1].get("type") == "function_call_output":
        return [said_item("It is due on Monday, and needs bolts.", number=number)]
    return [called("look_up", {"order": number}, number=number)]


def claude_model(server: AnthropicServer, *, trigger: int = _TRIGGER) -> Any:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": trigger}}
    return anthropic.ChatAnthropic(
        model="claude-loopback",
        api_key="none",
        base_url=server.url,
        max_tokens=100,
        max_retries=0,
        betas=["compact-2026-01-12"],
        context_management={"edits": [edit]},
    )


def gpt_model(server: ResponsesServer, *, threshold: int = _TRIGGER) -> Any:
    return openai.ChatOpenAI(
        model="loopback",
        api_key="none",
        base_url=server.url,
        max_retries=0,
        store=False,
        output_version="responses/v1",
        context_management=[{"type": "compaction", "compact_threshold": threshold}],
    )


def talked(call_style: CallStyle, agent: Any, turns: int = _TURNS) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for turn in range(turns):
        state = said(
            call_style, agent, f"Where is order {turn}? Somebody from hall {turn * 7} asked for it twice today."
        )
    return state


def contexts(call_style: CallStyle, session: Session, **choices: Any) -> Context:
    if call_style == "sync":
        return session.context(**choices)
    return asyncio.run(session.acontext(**choices))


def events_of(memory: TieredMemory) -> list[str]:
    heard: list[str] = []
    memory.subscribe(lambda event: heard.append(event.name))
    return heard


def in_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in blocks_of(body) if "role" in one]


def in_input(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in body["input"] if one.get("role") not in {"system", "developer"}]


def compacted_at(blocks: list[dict[str, Any]]) -> list[int]:
    return [at for at, one in enumerate(blocks) if one.get("type") == "compaction"]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_compaction_comes_back_as_it_was_with_nothing_before_it(call_style: CallStyle, provider: str) -> None:
    condensing = ScriptedModel(answers=["nobody is to be asked"])
    server: Any = AnthropicServer(_anthropic_answer) if provider == "anthropic" else ResponsesServer(_openai_answer)
    with server, open_memory(settings=by_provider(), model=condensing) as memory:
        heard = events_of(memory)
        model = claude_model(server) if provider == "anthropic" else gpt_model(server)
        state = talked(call_style, built(memory, model, max_tokens=_BUDGET, recall=False))
        memory.flush()
        assert condensing.calls == 0
        assert "provider_not_compacted" not in heard
        session = memory.session("alice")
        assert session.messages() == state["messages"]
        assert "order 0?" in session.search("hall 0 order 0")[0].text
        assert memory.verify().healthy
    asked = [in_messages(body) if provider == "anthropic" else in_input(body) for body in server.bodies]
    places = [compacted_at(blocks) for blocks in asked]
    assert len(server.compactions) > 2
    assert [0] in places
    assert all(place in ([], [0]) for place in places)  # the servers refuse a block that is not as they gave it
    first = next(at for at, place in enumerate(places) if place)
    assert all(places[first:])  # once there is one, each request has one


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_whole_history_is_sent_until_the_provider_compacts(call_style: CallStyle) -> None:
    with AnthropicServer(_anthropic_answer) as server, open_memory(settings=by_provider()) as memory:
        talked(call_style, built(memory, claude_model(server, trigger=2000), max_tokens=_BUDGET, recall=False), 8)
        asked = [str(in_messages(body)) for body in server.bodies]
        whole = [text for text in asked if "sealed+" not in text]
        assert server.compactions
        assert len(whole) > 8
        assert all("Where is order 0?" in text for text in whole)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_provider_that_does_not_compact_in_time_is_stood_in_for_and_told_of(call_style: CallStyle) -> None:
    condensing = ScriptedModel(answers=["nobody is to be asked"])
    with (
        AnthropicServer(_anthropic_answer) as server,
        open_memory(settings=by_provider(), model=condensing) as memory,
    ):
        heard = events_of(memory)
        talked(call_style, built(memory, claude_model(server, trigger=100_000), max_tokens=_BUDGET, recall=False), 30)
        context = contexts(call_style, memory.session("alice"), max_tokens=_BUDGET)
        assert condensing.calls == 0
        assert context.tokens <= _BUDGET
        assert context.summary_ids
    assert not server.compactions
    assert "provider_not_compacted" in heard
    assert "view_condensed" in heard


def history_with(block: dict[str, Any], *, before: int = 6, behind: int = 24) -> list[BaseMessage]:
    """A history with a provider's compaction in the middle, whose message calls a tool."""
    call = {"name": "look_up", "args": {"order": 7}, "id": "call_c"}
    messages: list[BaseMessage] = []
    for turn in range(before):
        messages += [HumanMessage(f"What of order {turn}?"), AIMessage(f"Order {turn} has {turn + 40} bolts.")]
    messages.append(HumanMessage("And order 7?"))
    messages.append(AIMessage([block, {"type": "text", "text": "I look."}], tool_calls=[call], id="compacted"))
    messages.append(ToolMessage("Order 7 is due on Monday.", tool_call_id="call_c"))
    for turn in range(behind):
        long = f"The foreman of hall {turn} wants {turn + 3} bolts and {turn + 90} nuts before noon. " * 3
        messages += [AIMessage(f"Noted as entry {turn}. {long}"), HumanMessage(f"Now hall {turn}. {long}")]
    return messages


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("primary", ["llm", "truncation", "hybrid", "provider"])
@pytest.mark.parametrize(
    "block",
    [
        _BLOCK,
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "q" * 900},
        {"type": "non_standard", "value": _BLOCK},
    ],
    ids=["anthropic", "openai", "standard content"],
)
def test_a_compaction_stays_first_and_whole_however_a_view_is_made_smaller(
    call_style: CallStyle, primary: Any, block: dict[str, Any]
) -> None:
    condensation = CondensationSettings(strategies=StrategySettings(primary=primary))
    settings = Settings(tree=TreeSettings(background=False), condensation=condensation)
    with open_memory(settings=settings) as memory:
        session = memory.session("alice")
        for number, message in enumerate(history_with(block), 1):
            session.add_messages([message])
            if number % 8 or number < 15:
                continue
            context = contexts(call_style, session, max_tokens=2500, system=SystemMessage("You keep the register."))
            shown = [one for one in context.messages if not isinstance(one, SystemMessage)]
            assert shown[0].id == "compacted"
            assert shown[0].content == [block, {"type": "text", "text": "I look."}]
            assert isinstance(shown[1], ToolMessage)
            assert not check_valid(context.messages)
            assert context.tokens <= 2500
            gone = {one.reason for section in context.sections for one in section.left_out}
            assert "compacted by the provider" in gone
        assert session.messages()[13].content[0] == block


def test_what_was_pinned_stands_behind_a_compaction_and_recall_finds_what_it_hides() -> None:
    with open_memory(settings=by_provider()) as memory:
        session = memory.session("alice")
        session.add_messages(history_with(_BLOCK, behind=2))
        session.pin(str(session.messages()[0].id))
        context = session.context("How many bolts has order 3?", max_tokens=3000)
        assert compacts(context.messages[0])
        texts = [str(one.content) for one in context.messages]
        assert any("What of order 0?" in text for text in texts[2:])
        assert any("43 bolts" in text for text in texts[2:])


def test_the_newest_compaction_takes_the_place_of_the_one_before_it() -> None:
    later = {**_BLOCK, "content": "They have 90 bolts."}
    with open_memory(settings=by_provider()) as memory:
        session = memory.session("alice")
        session.add_messages([*history_with(_BLOCK, behind=2), AIMessage([later, {"type": "text", "text": "Well."}])])
        session.add_messages([HumanMessage("Thanks.")])
        shown = session.context(max_tokens=3000).messages
        assert shown[0].content == [later, {"type": "text", "text": "Well."}]
        assert sum(compacts(one) for one in shown) == 1


def test_a_compaction_that_failed_stands_for_nothing() -> None:
    failed = {"type": "compaction", "content": None}
    with open_memory(settings=by_provider()) as memory:
        session = memory.session("alice")
        session.add_messages(history_with(failed, behind=2))
        shown = session.context(max_tokens=4000).messages
        assert shown[0].content == "What of order 0?"
        assert next(one for one in shown if one.id == "compacted").content[0] == failed


def test_a_compaction_counts_as_much_as_it_says_or_hides() -> None:
    with open_memory() as memory:
        count = memory.core.runtime.counter.count_message
        plain = count(AIMessage([{"type": "text", "text": "Well."}]))
        told = count(
            AIMessage(
                [{**_BLOCK, "content": "bolts " * 500, "encrypted_content": None}, {"type": "text", "text": "Well."}]
            )
        )
        sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "q" * 4000}
        hidden = count(AIMessage([sealed, {"type": "text", "text": "Well."}]))
        assert told - plain > 400
        assert 700 < hidden - plain < 800


def test_redacting_leaves_what_only_the_provider_can_read() -> None:
    settings = Settings(redact=lambda text: text.replace("40", "##").replace("sealed", "opened"))
    with open_memory(settings=settings) as memory:
        session = memory.session("alice")
        session.add_messages([HumanMessage("How many?"), AIMessage([_BLOCK, {"type": "text", "text": "40 of them."}])])
        block, text = session.messages()[1].content
        assert block["encrypted_content"] == _BLOCK["encrypted_content"]
        assert block["content"] == "They ordered ## bolts for hall 7."
        assert text["text"] == "## of them."


def test_a_compaction_outlives_the_process(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    with open_memory(where, settings=by_provider()) as memory:
        session = memory.session("alice")
        session.add_messages(history_with(_BLOCK, behind=30))
        before = session.context(max_tokens=2500).messages
    with open_memory(where, settings=by_provider()) as memory:
        again = memory.session("alice").context(max_tokens=2500).messages
        assert compacts(again[0])
        assert [one.content for one in again] == [one.content for one in before]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("view", ["default", "minimal"])
def test_a_model_of_another_provider_is_shown_the_history_in_the_place_of_the_block(
    call_style: CallStyle, view: str
) -> None:
    models = [
        claude_model(SimpleNamespace(url="http://127.0.0.1:9")),  # nobody is called
        gpt_model(SimpleNamespace(url="http://127.0.0.1:9")),
        None,
    ]
    with open_memory(settings=by_provider()) as memory:
        session = memory.session("alice")
        session.add_messages(history_with(_BLOCK, behind=2))
        own, other, unsaid, again = (
            contexts(call_style, session, model=model, max_tokens=_BUDGET, view=view) for model in (*models, models[0])
        )
    assert again.messages == own.messages == unsaid.messages
    assert not any(compacts(message) for message in other.messages)
    assert not check_valid(other.messages)
    said_to_other = str([message.content for message in other.messages])
    assert "sealed" not in said_to_other
    assert "compaction by the provider" in said_to_other or view == "minimal"
    assert compacts(own.messages[0]) or view == "minimal"
    assert "What of order 0?" in said_to_other
    assert "45 bolts" in said_to_other or view == "minimal"
