"""What a model may write in one answer is read from wherever its package says it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_tiered_memory.models.chat_models import answer_limit, is_cut_off
from langchain_tiered_memory.testing import ScriptedModel


def model(**profile: Any) -> ScriptedModel:
    return ScriptedModel(profile=profile)


def test_a_profile_tells_it() -> None:
    assert answer_limit(model(max_output_tokens=900)) == 900
    assert answer_limit(model()) is None


def test_what_was_bound_to_the_call_counts_before_what_the_model_could() -> None:
    assert answer_limit(model(max_output_tokens=900).bind(max_tokens=100)) == 100
    assert answer_limit(model(max_output_tokens=900).bind(stop=["x"]).with_retry()) == 900


def test_of_a_model_and_those_that_stand_in_for_it_the_least_counts() -> None:
    both = model(max_output_tokens=900).with_fallbacks([model(max_output_tokens=300)])
    assert answer_limit(both) == 300


@pytest.mark.parametrize("name", ["max_tokens", "max_output_tokens", "num_predict"])
def test_an_attribute_of_the_model_tells_it(name: str) -> None:
    made = type("Made", (ScriptedModel,), {"__annotations__": {name: int}, name: 250})
    assert answer_limit(made(profile={"max_output_tokens": 900})) == 250


@pytest.mark.parametrize("wrong", [-1, 0, None, True, "many"])
def test_what_is_no_limit_is_none(wrong: Any) -> None:
    assert answer_limit(model().bind(max_tokens=wrong)) is None


@pytest.mark.parametrize(
    ("metadata", "cut"),
    [
        ({"finish_reason": "length"}, True),
        ({"finish_reason": "MAX_TOKENS"}, True),
        ({"stop_reason": "max_tokens"}, True),
        ({"done_reason": "length"}, True),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, True),
        ({"finish_reason": "stop"}, False),
        ({"stop_reason": "end_turn", "stop_sequence": None}, False),
        ({"incomplete_details": None}, False),
        ({}, False),
    ],
)
def test_why_an_answer_ended_is_read_in_each_providers_words(metadata: dict[str, Any], *, cut: bool) -> None:
    assert is_cut_off(AIMessage("a text", response_metadata=metadata)) is cut
