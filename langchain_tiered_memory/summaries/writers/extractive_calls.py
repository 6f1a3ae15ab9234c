"""Tells the tool calls of a message in words: which tool, on which file, with what."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.identifiers import PATH
from langchain_tiered_memory.text.statements import clause_cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.summaries.writers.ranking import Unit

USED = "used "
"""How a sentence begins that tells a call."""
_NOWHERE = "/dev/null"

_CALL = re.compile(r"^(?P<name>[A-Za-z_][\w.-]{0,63})\((?P<rest>\)|[A-Za-z_]\w{0,63}[=:].*\)|)$", re.MULTILINE)
_ARGUMENT = re.compile(
    r"(?:^|, )(?P<name>[A-Za-z_]\w{0,63})="
    r"(?P<value>\"(?:[^\"\\]|(?=\\.)\\.)*+\"|\[[^\]]{0,400}\]|\{[^}]{0,400}\}|[^,\"\[{]{1,200})"
)
_LINE_ARGUMENT = re.compile(r"^(?P<name>[A-Za-z_]\w{0,63})(?P<mark>=|:$)(?P<value>.*)$")
_FILE_ARGUMENTS = frozenset({"path", "file_path", "file", "filename", "notebook_path", "url", "directory", "dir"})
_MAX_CALL_CHARS = 320
_MAX_VALUE_CHARS = 110
_MAX_ARGUMENTS = 8


def call_start(text: str) -> int | None:
    """Where the calls of an assistant's message begin, behind its words; `None` where it has none."""
    first = _CALL.search(text)
    return first.start() if first is not None else None


def split_at_calls(calls: str) -> list[str]:
    """The calls of a message, each as it stands there."""
    starts = [match.start() for match in _CALL.finditer(calls)]
    return [calls[start:stop].rstrip("\n") for start, stop in pairwise([*starts, len(calls)])]


def split_calls(text: str) -> tuple[str, list[str], list[str]]:
    """The words of an assistant's message, a sentence for each call behind them, and the long texts of these calls."""
    begin = call_start(text)
    if begin is None:
        return text, [], []
    told, written = [], list[str]()
    for call in split_at_calls(text[begin:]):
        first, _, block = call.partition("\n")
        name, _, rest = first.partition("(")
        if rest:
            arguments = [(one["name"], _unquoted(one["value"])) for one in _ARGUMENT.finditer(rest[:-1])]
        else:
            arguments = _in_lines(block)
        told.append(_told(name, arguments))
        written += (value for _, value in arguments if "\n" in value)
    return text[:begin].rstrip(), told, written


def long_arguments(call: str) -> list[list[str]]:
    """The lines of each argument that stands behind its name on lines of its own."""
    texts: list[list[str]] = []
    for line in call.removesuffix("\n)").split("\n"):
        match = _LINE_ARGUMENT.match(line)
        if match and match["mark"] != "=" and not match["value"]:
            texts.append([])
        elif texts:
            texts[-1].append(line)
    return texts


def _in_lines(block: str) -> list[tuple[str, str]]:
    """Arguments that stand on lines of their own, one of several lines behind `name:`."""
    found: list[tuple[str, list[str]]] = []
    is_long = False
    for line in block.strip("\n").removesuffix("\n)").splitlines():
        match = _LINE_ARGUMENT.match(line)
        if match and (match["mark"] == "=" or not match["value"]) and not (is_long and match["mark"] != "="):
            is_long = match["mark"] != "="
            found.append((match["name"], [] if is_long else [_unquoted(match["value"])]))
        elif found:
            found[-1][1].append(line)
    return [(name, "\n".join(lines)) for name, lines in found]


def _unquoted(value: str) -> str:
    if value[:1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value.strip('"')
    return value


def _told(name: str, arguments: Sequence[tuple[str, str]]) -> str:
    files = [value for key, value in arguments if key in _FILE_ARGUMENTS and "\n" not in value]
    others = [(key, value) for key, value in arguments if key not in _FILE_ARGUMENTS or "\n" in value]
    text = f"{USED}{name}"
    if files:
        text += f" on {' and '.join(files[:2])}"
    if others:
        text += ": " + ", ".join(f"{key} {_shown(value)}" for key, value in others[:_MAX_ARGUMENTS])
    return clause_cut(text, most_chars=_MAX_CALL_CHARS)


def _shown(value: str) -> str:
    lines = [line.strip() for line in value.splitlines() if line.strip()]
    if len(lines) > 1:
        return f"of {len(lines)} lines"
    value = lines[0] if lines else ""
    if len(value) > _MAX_VALUE_CHARS:
        value = value[:_MAX_VALUE_CHARS].rsplit(" ", 1)[0] + "\u2026"
    return f"`{value}`" if " " in value and not value.startswith(("[", "{")) else value


def is_call(unit: Unit) -> bool:
    """Whether a statement tells a call."""
    return unit.text.startswith(USED)


def files_named(text: str) -> list[str]:
    """The files and addresses that a sentence about a call names, by their last part."""
    paths = (match[0].rstrip("/") for match in PATH.finditer(text))
    return [path.rpartition("/")[2] for path in paths if path != _NOWHERE]


def tool_named(text: str) -> str:
    """The tool of a sentence that tells a call."""
    return text.removeprefix(USED).partition(" ")[0].rstrip(":.")
