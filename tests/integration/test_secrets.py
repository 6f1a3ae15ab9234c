"""A provider's, driver's or server's error that repeats a key: it reaches no log, event, row or message of ours."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from sqlalchemy import text as sql

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.errors import CondensationError, IndexUnavailableError, StorageError, TieredMemoryError
from langchain_tiered_memory.settings import CondensationSettings, Settings, StrategySettings
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory, quick_settings, shown_within, store_of, summaries_of

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-" + "proj-Zk4q8Lw" * 3
SAID = f"401 Incorrect API key provided: {KEY}; header Authorization: Bearer {KEY}"
both = pytest.mark.parametrize("call_style", CALL_STYLES)


@both
def test_a_providers_error_with_a_key_is_kept_without_it(
    call_style: CallStyle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="langchain_tiered_memory")
    events: list[Any] = []
    path = tmp_path / "memory.db"
    clock = FrozenClock()
    model = ScriptedModel(answers=[RuntimeError(SAID)])
    settings = quick_settings(attempts=2)
    with open_memory(path, model=model, clock=clock, settings=settings) as memory:
        memory.subscribe(events.append)

        def broken(event: Any) -> None:
            raise RuntimeError(SAID + event.name)

        memory.subscribe(broken)
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(12))
        shown_within(session, 300, call_style)
        clock.advance(4000)
        told(call_style, session.flush)
        errors = [one.error for one in summaries_of(session) if one.error]
        assert errors
        assert any("RuntimeError" in error and "***" in error for error in errors)
        assert not any(KEY in error for error in errors)
        told(call_style, session.context, max_tokens=300)
        assert KEY not in str(told(call_style, session.outcomes))
        with store_of(memory).database.read() as connection:
            rows = [str(row) for row in connection.execute(sql("SELECT error FROM ltm_summaries"))]
    assert not any(KEY in row for row in rows)
    assert any("***" in event.reason for event in events)
    assert not any(KEY in f"{event.reason}{event.details}" for event in events)
    assert "***" in caplog.text
    assert KEY not in caplog.text
    assert KEY.encode() not in path.read_bytes()


@both
def test_a_condensation_that_must_not_fail_says_why_without_the_key(call_style: CallStyle) -> None:
    condensation = CondensationSettings(eager=True, strategies=StrategySettings(fallback="error"), foreground_seconds=5)
    settings = quick_settings(attempts=9).model_copy(update={"condensation": condensation})
    with open_memory(model=ScriptedModel(answers=[RuntimeError(SAID)]), settings=settings) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(30))
        with pytest.raises(CondensationError) as raised:
            told(call_style, session.context, max_tokens=400)
        assert KEY not in str(raised.value)


def test_an_error_with_a_key_is_raised_by_no_class_of_ours() -> None:
    for error in (CondensationError(SAID), IndexUnavailableError(SAID), StorageError(SAID)):
        assert KEY not in f"{error}{error!r}{error.args}"


@pytest.mark.parametrize("address", [f"http://user:{KEY}@127.0.0.1:9", f"http://127.0.0.1:9/?token={KEY}"])
def test_a_servers_address_with_a_token_is_not_told(address: str, caplog: pytest.LogCaptureFixture) -> None:
    said = ""
    try:
        with open_memory(embeddings=HashingEmbeddings(), chroma=address) as memory:
            memory.session("s").add_messages(conversation(2))
            said = f"{memory.rebuild_index()}"
    except TieredMemoryError as error:
        said = f"{error}{error.args}"
    assert said
    assert KEY not in said
    assert KEY not in caplog.text


def test_a_databases_address_with_a_password_is_not_told() -> None:
    with pytest.raises(StorageError) as raised:
        TieredMemory.open(f"postgresql+psycopg://maria:{KEY}@127.0.0.1:9/memory?connect_timeout=2", embeddings=None)
    assert KEY not in str(raised.value)


_SECRET = "4111111111111111"
_OWN_NAMES = ("id", "type", "role", "class", "index", "v", "$t", "tool_call_id", "signature", "data")


@pytest.mark.parametrize(
    "said",
    [
        AIMessage("", tool_calls=[{"name": "pay", "args": {name: _SECRET}, "id": "c1"}])
        for name in (*_OWN_NAMES, "amount")
    ]
    + [
        ToolMessage("Paid.", tool_call_id="c1", artifact=artifact)
        for artifact in (
            {"id": _SECRET},
            (_SECRET,),
            {_SECRET},
            {5: _SECRET},
            "\ud83d\ude00" + _SECRET,
            Document(_SECRET, id=_SECRET, metadata={"type": _SECRET}),
        )
    ]
    + [
        AIMessage([{"type": "tool_use", "id": "c1", "name": "pay", "input": {"id": _SECRET}}]),
        ToolMessage([{"type": "json", "json": {"id": _SECRET}}], tool_call_id="c1"),
        HumanMessage([{"type": "document", "source": {"type": "text", "data": _SECRET}}]),
        HumanMessage([{"type": "image_url", "image_url": {"url": f"data:image/png;base64, {_SECRET}"}}]),
        HumanMessage([{"type": "form", "signature": _SECRET}]),
        HumanMessage([{"type": "document", "data": f"Paid with {_SECRET}."}]),
        ToolMessage([{"type": "text", "text": _SECRET, "schema": {"type": ["string", "null"]}}], tool_call_id="c1"),
    ],
    ids=repr,
)
def test_what_is_redacted_is_nowhere_in_a_message(said: BaseMessage) -> None:
    settings = Settings(redact=lambda text: text.replace(_SECRET, "[card]"))
    with open_memory(settings=settings) as memory:
        memory.session("s").add_messages([said])
        kept = memory.session("s").messages()[0]
        assert _SECRET not in repr(kept)
        assert "[card]" in repr(kept)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": _SECRET, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_SECRET}"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": _SECRET}},
        {"type": "thinking", "thinking": "Well.", "signature": _SECRET},
        {"type": "redacted_thinking", "data": _SECRET},
        {"type": "reasoning", "reasoning": "Well.", "extras": {"signature": _SECRET}},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": _SECRET},
    ],
    ids=repr,
)
def test_redacting_leaves_what_a_provider_would_refuse_changed(block: dict[str, Any]) -> None:
    settings = Settings(redact=lambda text: text.replace(_SECRET, "[card]"))
    signatures = {"__gemini_function_call_thought_signatures__": {"c1": _SECRET}}
    said = AIMessage([block, {"type": "text", "text": "Well."}], additional_kwargs=signatures, id="a")
    with open_memory(settings=settings) as memory:
        memory.session("s").add_messages([said])
        assert memory.session("s").messages() == [said]
