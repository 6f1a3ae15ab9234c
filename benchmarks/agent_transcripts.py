"""Transcripts of agent runs, with probes: what the agent demonstrably needed next, and where it had seen it.

A folder holds, for a transcript `NAME`:

- `NAME.json`: a list of OpenAI-style messages, each with an optional `timestamp`;
- `NAME.probes.json`: a list of `{at, kind, needle, sources, gap}`. Before the call that wrote message `at`, the text
  `needle` stood in the messages `sources`, the latest of them `gap` tokens earlier;
- `NAME.files.json`, if there is one: a list of `{msg, path}`, the files that the run touched.

Needles are looked for after line numbers were dropped and white space was collapsed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.conversations.dates import parse_date
from langchain_tiered_memory.conversations.turns import message_of
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.messages.content_blocks import requested_calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

_PROBES = ".probes.json"
_BEGINS_AT = 1_704_103_200.0  # 2024-01-01 10:00 UTC
_SECONDS_BETWEEN = 20.0
_LINE_NUMBER = re.compile(r"^\s*\d+(?:→|\t|\|)\s?", re.MULTILINE)
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Something that an agent needed before its next call."""

    at: int
    """The message that it wrote then: what is before it may be shown."""
    kind: str
    needle: str
    sources: frozenset[int]
    """Messages that have the needle."""
    gap: int
    """Tokens since the latest of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One run."""

    name: str
    messages: tuple[BaseMessage, ...]
    times: tuple[float, ...]
    probes: tuple[Probe, ...]
    touched: tuple[tuple[int, str], ...] = ()
    """Number of a message and a path that it touched."""


def read_transcripts(folder: Path, *, names: Sequence[str] = ()) -> list[Transcript]:
    """The transcripts of a folder that have probes; with `names` only those.

    Raises:
        InvalidInputError: when there is none, or one cannot be read.
    """
    found = sorted(path.name.removesuffix(_PROBES) for path in folder.glob(f"*{_PROBES}"))
    wanted = [name for name in found if not names or name in names]
    missing = set(names) - set(found)
    if not wanted or missing:
        what = f"no probes of {', '.join(sorted(missing))}" if missing else f"no file *{_PROBES}"
        msg = f"{folder}: {what}"
        raise InvalidInputError(msg)
    return [_read(folder, name) for name in wanted]


def _read(folder: Path, name: str) -> Transcript:
    rows = _rows(folder / f"{name}.json")
    probes = _rows(folder / f"{name}{_PROBES}")
    files = folder / f"{name}.files.json"
    try:
        return Transcript(
            name=name,
            messages=tuple(message_of(row | {"id": f"m{place}"}) for place, row in enumerate(rows)),
            times=_times(rows),
            probes=tuple(
                Probe(
                    at=int(row["at"]),
                    kind=str(row["kind"]),
                    needle=str(row["needle"]),
                    sources=frozenset(int(place) for place in row["sources"]),
                    gap=int(row["gap"]),
                )
                for row in probes
            ),
            touched=tuple((int(row["msg"]), str(row["path"])) for row in _rows(files)) if files.exists() else (),
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{folder / name}: {type(error).__name__}: {error}"
        raise InvalidInputError(msg) from error


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path}: {error}"
        raise InvalidInputError(msg) from error
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        msg = f"{path}: expected a list of objects"
        raise InvalidInputError(msg)
    return found


def _times(rows: Sequence[dict[str, Any]]) -> tuple[float, ...]:
    """Each message's own time, never before the last; 20 seconds apart where there is none."""
    times: list[float] = []
    last = _BEGINS_AT - _SECONDS_BETWEEN
    for row in rows:
        stamp = row.get("timestamp")
        at = parse_date(stamp).timestamp() if stamp is not None else last + _SECONDS_BETWEEN
        last = max(at, last) if times else at
        times.append(last)
    return tuple(times)


def plain(text: str) -> str:
    """`text` as needles are compared: without line numbers, its white space collapsed."""
    return _BLANKS.sub(" ", _LINE_NUMBER.sub("", text)).strip()


def searchable(message: BaseMessage) -> str:
    """All that a model reads of a message, as needles are compared: its text, its calls and their arguments."""
    parts = [str(message.text)]
    for call in requested_calls(message):
        parts += [call.name, *([call.raw] if call.raw is not None else _strings(call.args))]
    return plain("\n".join(parts))


def _strings(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
