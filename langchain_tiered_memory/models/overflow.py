"""Tells from an error that a request did not fit the model's window, and what it says of the window.

Newer LangChain integrations raise a class of their own for it (`ContextOverflowError`); the others hand on what the
provider wrote, each in its own words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import TieredMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"})
"""Error codes of OpenAI and those who speak its protocol, of llama.cpp, and of Bedrock and Anthropic."""
_SIGNS = (
    "context length",  # OpenAI, vLLM, DeepSeek, Together: "maximum context length is 8192 tokens"
    "context_length",  # OpenAI's code, in errors that are handed on as text
    "context window",  # OpenAI Responses, Bedrock, LiteLLM: "exceeds the context window"
    "context size",  # llama.cpp and LM Studio: "exceeds the available context size"
    "maximum context",  # OpenRouter and proxies
    "max_model_len",  # vLLM
    "too many tokens",  # Cohere
    "too large for model with",  # Mistral: "too large for model with 32768 maximum context length"
    "prompt is too long",  # Anthropic: "prompt is too long: 208310 tokens > 200000 maximum"
    "prompt too long",  # Ollama: "prompt too long; exceeded max context length"
    "input is too long",  # Bedrock: "Input is too long for requested model"
    "input too long",  # Ollama, proxies
    "input length and `max_tokens` exceed",  # Anthropic, where the answer is counted too
    "exceeds the maximum number of tokens",  # Google: "The input token count (1) exceeds the maximum number of ..."
    "input token count",  # Google
    "input tokens exceed",  # OpenAI: "Input tokens exceed the configured limit of 272000 tokens"
    "maximum prompt length",  # xAI: "This model's maximum prompt length is 131072"
    "reduce the length of the messages",  # Groq and others after OpenAI
    "`inputs` tokens + `max_new_tokens`",  # Text Generation Inference
)
_NOT_SIGNS = ("tokens per min", "tokens per day", "rate limit", "rate_limit", "quota")
"""A limit on tokens in a time is no limit on the request: a smaller one helps no more than waiting does."""

_NUMBER = r"(?<!\d)(\d[\d,_]{0,30}+)"
_LIMITS = (
    re.compile(rf"(?:>|<=) {_NUMBER}"),
    re.compile(
        r"(?:(?:(?:context|prompt) (?:length|size|window)|max_model_len|allowed)(?: is| of|:)?[ (]+"
        rf"|limit(?: is| of|:)? |with (?=[\d,_]{{1,31}} maximum)){_NUMBER}",
        re.IGNORECASE,
    ),
)
"""A comparison says it surely; else it is the number behind a word for a bound, and no code of an error, as in "limit
(2013)" and "failed with 413"."""
_SENT = re.compile(
    r"(?:(?:resulted in|requested(?: about)?|has|contains|too long:|given:) |token count \("
    rf"|request \((?=[\d,_]{{1,31}} tokens)){_NUMBER}",
    re.IGNORECASE,
)
_LEAST_PLAUSIBLE_TOKENS = 16
"""A smaller figure is a list's number or a version, not a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """What an error says of the window that a request did not fit."""

    limit_tokens: int | None = None
    """The most that the model takes, as the provider counts."""
    sent_tokens: int | None = None
    """What was sent, as the provider counts."""


def is_overflow(error: BaseException) -> bool:
    """Whether a provider refused a request as larger than its model's window; our own errors are none."""
    if isinstance(error, TieredMemoryError):
        return False
    if any("ContextOverflow" in kind.__name__ for kind in type(error).__mro__):
        return True
    if getattr(error, "code", None) in _CODES:
        return True
    said = str(error).casefold()
    return any(sign in said for sign in _SIGNS) and not any(sign in said for sign in _NOT_SIGNS)


def overflow_in(error: BaseException) -> Overflow:
    """The figures in an overflow error; `None` for those that it does not tell."""
    said = str(error)
    limit = next(_numbers(_LIMITS, said), None)
    return Overflow(limit_tokens=limit, sent_tokens=next(_numbers((_SENT,), said), None))


def smaller_budget(sent_tokens: int, overflow: Overflow) -> int:
    """The budget of the one retry: strictly below what was sent, and 70 % of it where the provider gave no figures."""
    wanted = int(sent_tokens * _RETRY_SHARE)
    limit, counted = overflow.limit_tokens, overflow.sent_tokens
    if limit is not None:
        ratio = max(counted / sent_tokens, 1.0) if counted and sent_tokens else 1.0
        told = int(limit * _OF_A_TOLD_LIMIT / ratio)
        wanted = told if counted else min(told, wanted)
    return max(min(wanted, sent_tokens - 1), 1)


_RETRY_SHARE = 0.7
"""Of what was sent, where nothing tells how much less would do."""
_OF_A_TOLD_LIMIT = 0.85
"""Counts of one request say little of the next: what is cut differs in kind from what stays."""


def _numbers(patterns: tuple[re.Pattern[str], ...], said: str) -> Iterator[int]:
    for pattern in patterns:
        for match in pattern.finditer(said):
            number = int(match[1].replace(",", "").replace("_", ""))
            if number >= _LEAST_PLAUSIBLE_TOKENS:
                yield number
