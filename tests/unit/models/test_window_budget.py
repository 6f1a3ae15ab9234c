"""Which window counts, where a setting, the model and its own refusals say different things."""

import pytest

from langchain_tiered_memory.models.window_budget import ModelProfile, budget_of
from langchain_tiered_memory.settings import Settings


@pytest.mark.parametrize(
    ("window", "learned", "tokens", "source"),
    [
        (10_000, None, 10_000, "model"),
        (10_000, 8_000, 8_000, "learned"),
        (10_000, 12_000, 10_000, "model"),
        (None, 8_000, 8_000, "learned"),
    ],
)
def test_a_window_that_was_learnt_counts_where_none_smaller_is_known(
    window: int | None, learned: int | None, tokens: int, source: str
) -> None:
    told = ModelProfile(window=window, learned=learned)
    found = budget_of(None, told, settings=Settings()).window
    assert (found.tokens, found.source) == (tokens, source)
