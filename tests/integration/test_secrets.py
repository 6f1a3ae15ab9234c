"""A provider's, driver's or server's error that repeats a key: it reaches no log, event, row or message of ours."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text as sql

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.errors import CondensationError, IndexUnavailableError, StorageError, TieredMemoryError
from langchain_tiered_memory.settings import CondensationSettings, StrategySettings
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
