"""Overflow errors as providers word them, and the budget of the retry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.errors import ContextOverflowError
from langchain_tiered_memory.models.overflow import Overflow, is_overflow, overflow_in, smaller_budget

SAID = [
    (
        "openai",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        8192,
        9001,
    ),
    ("openai responses", "Your input exceeds the context window of this model.", None, None),
    ("openai input", "Input tokens exceed the configured limit of 272000 tokens.", 272_000, None),
    ("a code in brackets", "invalid params, context window exceeds limit (2013)", None, None),
    ("a status", "Request failed with 413: context length exceeded", None, None),
    ("a status of a request", "Bad Request (400): context_length_exceeded", None, None),
    ("anthropic", "prompt is too long: 208310 tokens > 200000 maximum", 200_000, 208_310),
    (
        "anthropic with answer",
        "input length and `max_tokens` exceed context limit: 198,000 + 8,192 > 200,000",
        200_000,
        None,
    ),
    (
        "google",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        1_048_576,
        1_100_000,
    ),
    (
        "mistral",
        "Prompt contains 40001 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32_768,
        40_001,
    ),
    ("bedrock", "ValidationException: Input is too long for requested model.", None, None),
    (
        "vllm",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 of them read).",
        4096,
        5000,
    ),
    ("llama.cpp", "the request (9000 tokens) exceeds the available context size (8192 tokens)", 8192, 9000),
    ("ollama", "prompt too long; exceeded max context length by 12 tokens", None, None),
    ("xai", "This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 131_072, 140_000),
    ("text generation", "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 4096, 5000),
]


@pytest.mark.parametrize(("message", "limit", "sent"), [row[1:] for row in SAID], ids=[row[0] for row in SAID])
def test_each_providers_words_are_understood(message: str, limit: int | None, sent: int | None) -> None:
    error = ValueError(f"Error code: 400 - {message}")
    assert is_overflow(error)
    assert overflow_in(error) == Overflow(limit_tokens=limit, sent_tokens=sent)


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000. Request too large",
        "You exceeded your current quota; too many tokens this month",
        "The server had an error while processing your request",
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "",
    ],
)
def test_other_errors_are_none(message: str) -> None:
    assert not is_overflow(ValueError(message))


def test_the_class_and_the_code_tell_without_any_words() -> None:
    class AnthropicContextOverflowError(Exception):
        """As integrations name theirs."""

    class CodedError(Exception):
        code = "context_length_exceeded"

    assert is_overflow(AnthropicContextOverflowError())
    assert is_overflow(CodedError("no"))


def test_our_own_overflow_is_no_providers() -> None:
    assert not is_overflow(ContextOverflowError("the context length cannot be met"))


@given(
    sent=st.integers(2, 2_000_000),
    limit=st.none() | st.integers(16, 2_000_000),
    counted=st.none() | st.integers(16, 4_000_000),
)
def test_the_retry_is_strictly_smaller(sent: int, limit: int | None, counted: int | None) -> None:
    budget = smaller_budget(sent, Overflow(limit_tokens=limit, sent_tokens=counted))
    assert 1 <= budget < sent
    if limit is not None:
        assert budget <= max(limit, 1)
