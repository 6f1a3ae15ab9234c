"""Counting tokens: how a provider frames messages and tools, the estimate without a tokenizer, and calibration.

Framing figures are OpenAI's (Cookbook, "How to count tokens with tiktoken"): 3 tokens around each message, the role, 1
more for a name, and 3 that prime the answer. Media have a fixed cost, whatever their bytes:

| part | tokens | source |
|---|---|---|
| image | 1,105 | OpenAI's vision guide: 85 + 170 for each of at most 6 tiles; Anthropic bills up to about 1,600 |
| image, `detail: low` | 85 | the same |
| audio | 1,000 | half a minute at Gemini's 32 tokens per second |
| video | 8,000 | half a minute at Gemini's 263 tokens per second |
| file | 3,000 | the upper end of what Anthropic names for one page of a PDF |

A provider's compaction counts as its summary does; one that is encrypted, as a text of as many bytes.

The estimate judges a text by the scripts it is written in. Its rates were fitted by least squares of the relative error
to what `o200k_base` and `cl100k_base` give for 36 short texts (`tests/unit/models/token_samples.py`). Measured there:
mean absolute error 7 % and 10 %; at worst 29 and 30 % too low (lines of indentation and single letters; Tamil), 16 and
31 % too high (a diff; Arabic).
"""

from __future__ import annotations

import hashlib
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_tiered_memory.messages.content_blocks import MEDIA, compact_json, parts_of, requested_calls, schema_text
from langchain_tiered_memory.text.readings import Generations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.content_blocks import Part
    from langchain_tiered_memory.protocols import TokenCounter


__all__ = ["PRIMING_TOKENS", "Calibration", "EstimatingCounter", "FramedCounter", "framed_tokens"]

EncodingName: TypeAlias = Literal["cl100k_base", "o200k_base"]

MESSAGE_TOKENS = 4
"""Around each message, its role included."""
NAME_TOKENS = 1
CALL_TOKENS = 8
"""Around each tool call; its name and arguments come on top."""
TOOL_TOKENS = 8
"""Around each tool schema."""
TOOLS_TOKENS = 12
"""Once, where there are tools at all."""
PRIMING_TOKENS = 3
"""Once per request: what makes the model answer."""
IMAGE_TOKENS = 1105
LOW_DETAIL_IMAGE_TOKENS = 85
ENCRYPTED_CHARS_PER_TOKEN = 16 / 3
"""Base64 has four characters for three bytes, and a token of prose is about four bytes."""
MEDIA_TOKENS = {"image": IMAGE_TOKENS, "audio": 1000, "video": 8000, "file": 3000}

_REMEMBERED_TEXTS = 512
LOWEST_RATIO = 0.5
HIGHEST_RATIO = 3.0
"""Beyond these a report measures something else: a cached prompt counted apart, another model, a bug."""
_LEAST_TOKENS = 50  # in shorter requests framing weighs more than text
_LARGEST_STEP = 1.5  # one report moves what was learnt by this factor at most
_LEAST_WEIGHT = 0.15  # of a new report, so that a change of model is learnt in a dozen calls
_RATES = {
    "word": 0.88,
    "long": 0.49,
    "accented": 0.34,
    "digits": 1.37,
    "mark": 0.68,
    "more_marks": 0.24,
    "break": 1.04,
    "blob": 0.62,
    "cyrillic": 0.33,
    "alphabet": 0.4,
    "east_asian": 0.73,
    "other": 1.54,
}
"""Tokens per word, letter beyond the sixth of a word, accented letter, group of up to three digits, run of marks,
further mark in a run, line break or run of spaces, and character of a blob or another script, by `o200k_base`."""
_RATES_OF = {
    "o200k_base": _RATES,
    "cl100k_base": _RATES | {"accented": 1.31, "cyrillic": 0.56, "alphabet": 1.1, "east_asian": 1.07, "other": 2.27},
}
"""For each encoding: the older one takes as much for English and code, and far more for other scripts."""
_SHORT_WORD = 6
_DIGITS_PER_TOKEN = 3
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_BLOB_DIGITS = 20  # a blob has at least one digit among so many characters; a long identifier has not
_WORD = re.compile("[A-Z]?[a-z\u00aa-\u024f\u1e00-\u1eff]+|[A-Z]+(?![a-z])")
_DIGITS = re.compile("[0-9]+")
_MARKS = re.compile(r"[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]+")
_BREAK = re.compile(r"[\n\r]+[ \t]*|[ \t]{2,}")
_ACCENTED = re.compile("[\u00aa-\u024f\u1e00-\u1eff]")
_SCRIPTS = {
    "cyrillic": re.compile("[\u0400-\u052f]"),
    "alphabet": re.compile("[\u0370-\u03ff\u0530-\u109f\u1780-\u17ff\u1f00-\u1fff\ufb50-\ufdff\ufe70-\ufefc]"),
    "east_asian": re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"),
}
_CHUNK_CHARS = 200_000  # bounds the lists that a text of 10 MB makes


class FramedCounter(ABC):
    """Counts messages and tools, given a way to count a bare text."""

    def __init__(self) -> None:
        self._count_tool = lru_cache(maxsize=_REMEMBERED_TEXTS)(self.count_text)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names the way of counting; kept with the counts, so that another counter is noticed."""

    @abstractmethod
    def count_text(self, text: str) -> int:
        """Tokens of a bare text."""

    def count_message(self, message: BaseMessage) -> int:
        """Tokens of `message` with its framing: content, reasoning, calls and name; media at their fixed cost.

        Artifacts, ids and metadata are not sent, and do not count.
        """
        return framed_tokens(message, self.count_text)

    def count_tools(self, tools: Sequence[Any]) -> int:
        """Tokens of tool schemas, counted as JSON: somewhat more than OpenAI's own notation takes, never less.

        Equal tools are counted once, whichever objects they are.
        """
        if not tools:
            return 0
        return TOOLS_TOKENS + sum(TOOL_TOKENS + self._count_tool(schema_text(tool)) for tool in tools)


class EstimatingCounter(FramedCounter):
    """Estimates from the scripts that a text is written in, without any tokenizer; the module tells its error.

    Args:
        encoding: Whose counts to come close to.
    """

    def __init__(self, encoding: EncodingName = "o200k_base") -> None:
        super().__init__()
        self._encoding: EncodingName = encoding

    @property
    def fingerprint(self) -> str:
        """Changes with the rates."""
        return f"estimate/{self._encoding}/2"

    def count_text(self, text: str) -> int:
        """Tokens of a bare text, about right for prose, code and most scripts. Never raises."""
        return estimated_tokens(text, self._encoding)


def framed_tokens(message: BaseMessage, count_text: Callable[[str], int]) -> int:
    """Tokens of `message` by way of a text counter, framing included."""
    tokens = MESSAGE_TOKENS + sum(_part_tokens(part, count_text) for part in parts_of(message.content))
    for call in requested_calls(message):
        arguments = call.raw if call.raw is not None else compact_json(call.args)
        tokens += CALL_TOKENS + count_text(call.name) + count_text(arguments)
    for key in ("reasoning_content", "function_call", "refusal"):
        sent = message.additional_kwargs.get(key)
        if sent:
            tokens += count_text(sent if isinstance(sent, str) else compact_json(sent))
    if message.name:
        tokens += NAME_TOKENS + count_text(message.name)
    return tokens


def _part_tokens(part: Part, count_text: Callable[[str], int]) -> int:
    if part.kind == "call":
        return 0  # counted with the message's calls
    if part.kind in MEDIA:
        return LOW_DETAIL_IMAGE_TOKENS if part.low_detail else MEDIA_TOKENS[part.kind]
    if part.kind == "compaction":
        return count_text(part.sent) + math.ceil(part.encrypted_chars / ENCRYPTED_CHARS_PER_TOKEN)
    return count_text(part.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What to multiply raw counts by, for one model.

    A moving average of clipped reports: no single one can spoil it.
    """

    ratio: float = 1.0
    samples: int = 0
    """Reports that went into `ratio`."""

    def observe(self, estimated: int, reported: int) -> Calibration:
        """This calibration after one more report.

        Args:
            estimated: Raw tokens that we counted for the request.
            reported: Input tokens that the provider billed for it, cached ones included.
        """
        if estimated < _LEAST_TOKENS or reported < 1:
            return self
        seen = min(max(reported / estimated, LOWEST_RATIO), HIGHEST_RATIO)
        if self.samples:
            seen = min(max(seen, self.ratio / _LARGEST_STEP), self.ratio * _LARGEST_STEP)
        weight = max(1 / (self.samples + 1), _LEAST_WEIGHT)
        # Averaged as logarithms: twice as much and half as much cancel out.
        ratio = math.exp((1 - weight) * math.log(self.ratio) + weight * math.log(seen))
        return Calibration(ratio=min(max(ratio, LOWEST_RATIO), HIGHEST_RATIO), samples=self.samples + 1)

    def apply(self, tokens: int) -> int:
        """`tokens` as this provider would bill them, rounded up."""
        return math.ceil(tokens * self.ratio - 1e-9)


def estimated_tokens(text: str, encoding: EncodingName = "o200k_base") -> int:
    """Tokens of `text`, about as `encoding` would count them. Never raises; 0 only for an empty text."""
    if not text:
        return 0
    chunks = (text[start : start + _CHUNK_CHARS] for start in range(0, len(text), _CHUNK_CHARS))
    return max(1, round(sum(_chunk_tokens(chunk, encoding) for chunk in chunks)))


@lru_cache(maxsize=64)
def _chunk_tokens(text: str, encoding: EncodingName) -> float:
    """Kept for the last few texts: each context counts the same history block as the one before."""
    blobs = [blob for blob in _BLOB.findall(text) if _is_blob(blob)]
    tokens = _RATES["blob"] * sum(map(len, blobs))
    if blobs:
        text = _BLOB.sub(lambda found: " " if _is_blob(found.group()) else found.group(), text)
    words = [len(word) for word in _WORD.findall(text)]
    digits = sum(-(-len(run) // _DIGITS_PER_TOKEN) for run in _DIGITS.findall(text))
    marks = _MARKS.findall(text)
    tokens += (
        _RATES["word"] * len(words)
        + _RATES["long"] * sum(length - _SHORT_WORD for length in words if length > _SHORT_WORD)
        + _RATES["digits"] * digits
        + _RATES["mark"] * len(marks)
        + _RATES["more_marks"] * (sum(map(len, marks)) - len(marks))
        + _RATES["break"] * len(_BREAK.findall(text))
    )
    return tokens if text.isascii() else tokens + _other_scripts(text, _RATES_OF[encoding])


def _other_scripts(text: str, rates: Mapping[str, float]) -> float:
    accented = len(_ACCENTED.findall(text))
    tokens = rates["accented"] * accented
    seen = accented
    for script, letters in _SCRIPTS.items():
        count = len(letters.findall(text))
        tokens += rates[script] * count
        seen += count
    ascii_count = len(text.encode("ascii", "ignore"))
    return tokens + rates["other"] * (len(text) - ascii_count - seen)


def _is_blob(run: str) -> bool:
    digits = sum(map(run.count, "0123456789"))
    return 0 < digits < len(run) and digits * _BLOB_DIGITS >= len(run)


_LEAST_CHARS = 64
"""A shorter text is counted as fast as it is looked up."""
_GENERATION = 8192
"""Counts in each of the two generations: together at most some 2 MB."""


class RememberedCounts:
    """A token counter that counts a text once while it remembers it: requests show most of what those before showed.

    Counts are kept under a digest, so that no word stays in memory on our account.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._is_framed = isinstance(counter, FramedCounter) and (
            type(counter).count_message is FramedCounter.count_message
        )
        self._counts = Generations(_GENERATION)

    @property
    def fingerprint(self) -> str:
        """Names the way of counting."""
        return self.counter.fingerprint

    def count_text(self, text: str) -> int:
        """Tokens of a bare text."""
        if len(text) < _LEAST_CHARS:
            return self.counter.count_text(text)
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return self._counts.get(key, lambda: self.counter.count_text(text))

    def count_message(self, message: BaseMessage) -> int:
        """Tokens of a message with its framing."""
        return framed_tokens(message, self.count_text) if self._is_framed else self.counter.count_message(message)

    def count_tools(self, tools: Sequence[Any]) -> int:
        """Tokens of tool schemas."""
        return self.counter.count_tools(tools)

    def clear(self) -> None:
        """Remember nothing any longer."""
        self._counts.clear()

    def __len__(self) -> int:
        """How many counts are remembered."""
        return len(self._counts)
