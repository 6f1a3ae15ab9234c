"""Settings that stand in the environment: read where none are passed, named where they cannot be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory import Settings, SettingsError, TieredMemory
from langchain_tiered_memory.settings import (
    ContextSettings,
    GuardSettings,
    LevelSettings,
    RecallSettings,
    TierSettings,
    TreeSettings,
    ValidationSettings,
    settings_from_environment,
)

if TYPE_CHECKING:
    from langchain_tiered_memory.settings.base import Frozen


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


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (ContextSettings, "goal_share"),
        (GuardSettings, "masks"),
        (RecallSettings, "quota_messages"),
        (TierSettings, "roots"),
        (TreeSettings, "higher"),
        (ValidationSettings, "least_grounded"),
    ],
)
def test_a_setting_that_went_is_refused_by_name(group: type[Frozen], name: str) -> None:
    with pytest.raises(SettingsError, match=f"{group.__name__}: there is no {name!r}: (did you mean|known are)"):
        group(**{name: 1})


@given(st.integers(1, 6), st.integers(1, 12))
def test_levels_that_are_not_named_are_as_by_default_and_the_last_stands_for_all_above(named: int, level: int) -> None:
    given_levels = tuple(
        LevelSettings(messages=9, sources=2 + at, strategy="concise", target_ratio=0.5, max_tokens=99)
        for at in range(named)
    )
    found, usual = TreeSettings(levels=given_levels).level(level), TreeSettings()
    if level <= named:
        assert found == given_levels[level - 1]
    elif level <= 3:
        assert found == usual.levels[level - 1]
    else:
        last = given_levels[-1] if named >= 3 else usual.levels[-1]
        assert (found.messages, found.sources) == (None, last.sources)


def test_the_last_quota_counts_for_every_level_above() -> None:
    assert [RecallSettings().quota(level) for level in range(6)] == [10, 5, 3, 1, 1, 1]
    with pytest.raises(SettingsError, match="quotas"):
        RecallSettings(quotas=())


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
        ("TIERED_MEMORY_CONTEXT_MAX_TOKENS", "777", "did you mean 'context__max_tokens'?"),
        ("TIERED_MEMORY_CONDENSATION_STRATEGIES_FALBACK", "x", "did you mean 'condensation__strategies__fallback'?"),
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
