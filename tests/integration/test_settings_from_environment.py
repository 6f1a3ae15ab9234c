"""Settings that stand in the environment: read where none are passed, named where they cannot be used."""

from __future__ import annotations

import pytest

from langchain_tiered_memory import Settings, SettingsError, TieredMemory
from langchain_tiered_memory.settings import ContextSettings, settings_from_environment


def test_a_memory_that_is_given_no_settings_takes_them_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIERED_MEMORY_CONTEXT__MAX_TOKENS", "777")
    monkeypatch.setenv("TIERED_MEMORY_FILE_MODE", "none")
    monkeypatch.setenv("TIERED_MEMORY_PRICES", '{"m": {"input_per_million": 1, "output_per_million": 2.5}}')
    with TieredMemory.open(embeddings=None) as memory:
        settings = memory.core.runtime.settings
        memory.session("s").add_messages(["The crane is yellow."])
        assert memory.session("s").context().max_tokens == 777
    assert settings.file_mode is None
    assert settings.prices["m"].output_per_million == 2.5
    assert type(settings) is Settings


def test_settings_that_are_passed_count_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIERED_MEMORY_CONTEXT__MAX_TOKENS", "777")
    with TieredMemory.open(embeddings=None, settings=Settings(context=ContextSettings(max_tokens=900))) as memory:
        memory.session("s").add_messages(["The crane is yellow."])
        assert memory.session("s").context().max_tokens == 900


def test_without_such_variables_there_are_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINILM_DIR", "DOWNLOAD", "KEY_FILE", "MODEL", "PATH", "TEST_POSTGRES"):
        monkeypatch.setenv(f"TIERED_MEMORY_{name}", "/nowhere")
    assert settings_from_environment() == Settings()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TIERED_MEMORY_CONTEXT__MAX_TOKENS", "many", "max_tokens must be a valid integer, not 'many'"),
        ("TIERED_MEMORY_CONTEXT__MAX_TOKNS", "1", "did you mean 'max_tokens'?"),
        ("TIERED_MEMORY_CONTXT__MAX_TOKENS", "1", "did you mean 'context'?"),
        ("TIERED_MEMORY_BUSY_SECOND", "60", "did you mean 'busy_seconds'?"),
        ("TIERED_MEMORY_BUSY_SECONDS", "-1", "busy_seconds must be greater than 0"),
        ("TIERED_MEMORY_PRICES", "cheap", "lists and mappings are written as JSON"),
        ("TIERED_MEMORY_CONDENSATION__STRATEGIES__FALLBACK", "x", "must be 'truncation' or 'error', not 'x'"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv("TIERED_MEMORY_DEFAULT_WINDOW", "9000")  # in order
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as raised:
        TieredMemory.open(embeddings=None)
    assert str(raised.value).startswith(f"{name}: ")
    assert said in str(raised.value)
