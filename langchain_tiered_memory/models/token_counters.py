"""Token counters for `TieredMemory.open(token_counter=...)`: tiktoken's, callables' and the choice among them.

tiktoken downloads an encoding at first use, without a timeout. This module asks it for an encoding only after finding
the file with the expected content in its cache, so no count ever waits for a network.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tiktoken
from langchain_core.messages import HumanMessage

from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.messages.message_text import safe_text
from langchain_tiered_memory.models.downloads import Download, put
from langchain_tiered_memory.models.message_counting import EstimatingCounter, FramedCounter
from langchain_tiered_memory.protocols import TokenCounter
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.messages import BaseMessage

_BLOB_URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
_BYTES = {"cl100k_base": 1_681_126, "o200k_base": 3_613_922}
_DEFAULT_ENCODING = "o200k_base"
_CHUNK_CHARS = 50_000
_LONGEST_RUN = 400  # tiktoken merges the bytes of an unbroken run in quadratic time
_LONG_RUN = re.compile(rf"\S{{{_LONGEST_RUN + 1},}}|\s{{{_LONGEST_RUN + 1},}}")
_SHORT_RUNS = re.compile(
    rf"(?:(?=\S{{1,{_LONGEST_RUN}}}+(?!\S)|\s{{1,{_LONGEST_RUN}}}+(?!\s))(?:\S{{1,{_LONGEST_RUN}}}+|\s{{1,{_LONGEST_RUN}}}+))*+"
)
"""Matches all of nearly every text. It looks at each character once, while `_LONG_RUN` starts again at each."""
_WORD_BORDER = re.compile(r"\s(?=\S)")
_LOADING = forks.Section("the loading of an encoding")
_PROBE = "The quick brown fox jumps over the lazy dog, again and again and again."


def encoding_file(name: str) -> Path | None:
    """The file of an encoding, in tiktoken's cache or in ours. `None` if neither has it with the right content."""
    if name not in _SHA256:
        return None
    return next((place for place in _places_of(name) if _has(place, name)), None)


def encoding_downloads() -> list[Download]:
    """The missing encodings, for `setup` to download into a folder of ours that survives restarts."""
    return [
        Download(
            name=f"tiktoken's encoding {name}",
            url=_BLOB_URL.format(name=name),
            sha256=_SHA256[name],
            target=_own_folder() / _cache_key(name),
            about_bytes=_BYTES[name],
        )
        for name in _SHA256
        if encoding_file(name) is None
    ]


def _own_folder() -> Path:
    return Path.home() / ".cache" / "langchain-tiered-memory" / "tiktoken"


def _tiktoken_folder() -> Path | None:
    """Where tiktoken 0.14 looks. An empty setting turns its cache off."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    return Path(folder) if folder else None


def _places_of(name: str) -> list[Path]:
    # Without a cache of its own tiktoken would fetch an encoding anew each time: then none is at hand.
    theirs = _tiktoken_folder()
    return [theirs / _cache_key(name), _own_folder() / _cache_key(name)] if theirs is not None else []


def _cache_key(name: str) -> str:
    return hashlib.sha1(_BLOB_URL.format(name=name).encode(), usedforsecurity=False).hexdigest()


def _has(path: Path, name: str) -> bool:
    try:
        stat = path.stat()
        return _digest(str(path), stat.st_mtime_ns, stat.st_size) == _SHA256[name]
    except OSError:
        return False


def _hand_over(name: str) -> None:
    """Copy an encoding that only our folder has to where tiktoken looks."""
    theirs, found = _tiktoken_folder(), encoding_file(name)
    if theirs is None or found is None or found.parent == theirs:
        return
    put(found.read_bytes(), theirs / found.name)


@lru_cache(maxsize=16)
def _digest(path: str, _modified_ns: int, _size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class TiktokenCounter(FramedCounter):
    """Counts with one of tiktoken's encodings, loaded at the first count.

    Unbroken runs of more than 400 characters (a line of 10 MB) are counted piece by piece, so the count may be a token
    too high for each piece. Other long texts are cut before a space, which rarely changes a count.

    Args:
        encoding: `cl100k_base`, `o200k_base`, or a `tiktoken.Encoding` of your own.

    Raises:
        SettingsError: if the encoding is missing. Nothing is downloaded.
    """

    def __init__(self, encoding: str | tiktoken.Encoding = _DEFAULT_ENCODING) -> None:
        super().__init__()
        self._encoding = None if isinstance(encoding, str) else encoding
        self._name = encoding if isinstance(encoding, str) else encoding.name
        if self._encoding is None:
            self._require()

    @property
    def fingerprint(self) -> str:
        """Names the encoding."""
        return f"tiktoken/{self._name}/1"

    def count_text(self, text: str) -> int:
        """Tokens of a bare text. Special tokens such as `<|endoftext|>` count as text. Never raises on odd text."""
        encoding = self._encoding or self._load()
        if len(text) <= _LONGEST_RUN:
            return len(encoding.encode_ordinary(text))
        return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))

    def _load(self) -> tiktoken.Encoding:
        self._require()
        _hand_over(self._name)
        with _LOADING:  # tiktoken reads it under a lock of its own
            self._encoding = tiktoken.get_encoding(self._name)
        return self._encoding

    def _require(self) -> None:
        if encoding_file(self._name) is None:
            msg = (
                f"tiktoken's encoding {self._name!r} is missing, and is never downloaded without asking: run"
                " `tiered-memory setup` once with a network, or set TIKTOKEN_CACHE_DIR to its folder"
            )
            raise SettingsError(msg)


def best_counter(model_name: str | None = None) -> TokenCounter:
    """The tiktoken counter if its encoding is present, else the estimate. Reads at most a file; never downloads.

    Args:
        model_name: Such as `gpt-4o` or `openai:gpt-5-mini`. For models that tiktoken does not know, `o200k_base` is
            used; calibration learns the difference from what the provider reports.
    """
    wanted = _encoding_name(model_name)
    found = next(
        (name for name in dict.fromkeys([wanted, *reversed(_SHA256)]) if encoding_file(name) is not None), None
    )
    if found:
        return TiktokenCounter(found)
    return EstimatingCounter("cl100k_base" if wanted == "cl100k_base" else "o200k_base")


def adapt_counter(value: object) -> TokenCounter:
    """The counter for a user's choice.

    Args:
        value: `None` (the best one available), a `TokenCounter`, the name of an encoding, a `tiktoken.Encoding`, a
            callable that counts a text, or one that counts a list of messages, as LangChain's `trim_messages` takes
            them. A callable is tried on a short text to see which of the two it is.

    Raises:
        SettingsError: if it is none of these, or a callable that does not return whole numbers.
    """
    if value is None:
        return best_counter()
    if isinstance(value, str | tiktoken.Encoding):
        return TiktokenCounter(value)
    if isinstance(value, TokenCounter) and not isinstance(value, type):
        return value
    if not callable(value):
        msg = (
            f"token_counter cannot be a {type(value).__name__}: give None, an encoding's name, a counter or a callable"
        )
        raise SettingsError(msg)
    short, long = HumanMessage("a"), HumanMessage(_PROBE)
    # A callable such as `len` takes both; it counts messages only if a longer message is more.
    if _grows(value, [short], [long]):
        return _MessageFunctionCounter(value)
    if _grows(value, "a", _PROBE):
        return _TextFunctionCounter(value)
    msg = (
        "token_counter was called with a text and with a list of messages, and returned no growing whole numbers for "
        "either: it must be `str -> int` or `list[BaseMessage] -> int`"
    )
    raise SettingsError(msg)


class _TextFunctionCounter(FramedCounter):
    """A user's `str -> int`, with a provider's framing around it."""

    def __init__(self, count: Callable[[Any], Any]) -> None:
        super().__init__()
        self._count = count

    @property
    def fingerprint(self) -> str:
        return f"text/{_name_of(self._count)}"

    def count_text(self, text: str) -> int:
        return _answer(self._count, safe_text(text))


class _MessageFunctionCounter(FramedCounter):
    """A user's `list[BaseMessage] -> int`, which knows its own framing."""

    def __init__(self, count: Callable[[Any], Any]) -> None:
        super().__init__()
        self._count = count
        self._framing = _answer(count, [HumanMessage("")])

    @property
    def fingerprint(self) -> str:
        return f"messages/{_name_of(self._count)}"

    def count_text(self, text: str) -> int:
        return max(0, _answer(self._count, [HumanMessage(safe_text(text))]) - self._framing)

    def count_message(self, message: BaseMessage) -> int:
        return _answer(self._count, [message])


def _answer(count: Callable[[Any], Any], argument: object) -> int:
    try:
        tokens = count(argument)
    except Exception as error:
        msg = f"the token_counter {_name_of(count)} raised {type(error).__name__}: {error}"
        raise SettingsError(msg) from error
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
        msg = f"the token_counter {_name_of(count)} returned {tokens!r}; a count is a whole number, 0 or more"
        raise SettingsError(msg)
    return tokens


def _grows(count: Callable[[Any], Any], short: object, long: object) -> bool:
    try:
        return _answer(count, short) < _answer(count, long)
    except SettingsError:
        return False


def _name_of(count: object) -> str:
    return f"{getattr(count, '__module__', '')}.{getattr(count, '__qualname__', type(count).__qualname__)}"


def _encoding_name(model_name: str | None) -> str:
    try:
        return tiktoken.encoding_name_for_model((model_name or "").rpartition(":")[2].rpartition("/")[2])
    except KeyError:
        return _DEFAULT_ENCODING


def _pieces(text: str) -> Iterator[str]:
    """`text` in pieces that tiktoken counts in linear time, cut at word boundaries if there are any."""
    start = 0
    for run in _LONG_RUN.finditer(text) if _SHORT_RUNS.fullmatch(text) is None else ():
        yield from _cut(text[start : run.start()])
        for at in range(run.start(), run.end(), _LONGEST_RUN):
            yield text[at : min(at + _LONGEST_RUN, run.end())]
        start = run.end()
    yield from _cut(text[start:])


def _cut(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _CHUNK_CHARS:
        # The encoding keeps a space with the word behind it, so a cut before it changes no token.
        border = _WORD_BORDER.search(text, start + _CHUNK_CHARS)
        stop = border.start() if border else len(text)
        yield text[start:stop]
        start = stop
    if start < len(text):
        yield text[start:]
