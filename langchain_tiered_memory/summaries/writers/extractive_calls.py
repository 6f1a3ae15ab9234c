"""Tells the tool calls of a message: where they begin, each in a line, and the long texts that they carry."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile

from langchain_tiered_memory.summaries.marks import USED
from langchain_tiered_memory.text.statements import clause_cut

_CALL = re.compile(r"^(?P<name>[A-Za-z_][\w.-]{0,63})\((?P<rest>\)|[A-Za-z_]\w{0,63}[=:].*\)|)$", re.MULTILINE)
_LONG_ARGUMENT = re.compile(r"^[A-Za-z_]\w{0,63}:$")
_MAX_CALL_CHARS = 200


def call_start(text: str) -> int | None:
    """Where the calls of an assistant's message begin, behind its words; `None` where it has none."""
    first = _CALL.search(text)
    return first.start() if first is not None else None


def split_at_calls(calls: str) -> list[str]:
    """The calls of a message, each as it stands there."""
    starts = [match.start() for match in _CALL.finditer(calls)]
    return [calls[start:stop].rstrip("\n") for start, stop in pairwise([*starts, len(calls)])]


def split_calls(text: str) -> tuple[str, list[str], list[str]]:
    """The words of an assistant's message, a line for each call behind them, and the long texts of these calls."""
    found = list(_CALL.finditer(text))
    if not found:
        return text, [], []
    starts = [match.start() for match in found]
    told, written = [], list[str]()
    for call, (start, stop) in zip(found, pairwise([*starts, len(text)]), strict=True):
        # One that ends on its line has no arguments on others: words may stand behind it, where it was a line of code.
        whole = call[0] if call["rest"] else text[start:stop].rstrip("\n")
        name, *lines = whole.removesuffix(")").split("\n")
        short = list(takewhile(lambda line: not _LONG_ARGUMENT.match(line), lines))
        shown = [line for line in short if line] + ["\u2026"] * (len(short) < len(lines))
        told.append(clause_cut(f"{USED}{name}{', '.join(shown)})", most_chars=_MAX_CALL_CHARS))
        for line in lines[len(short) :]:
            if _LONG_ARGUMENT.match(line):
                written.append("")
            else:
                written[-1] += f"{line}\n"
    return text[: starts[0]].rstrip(), told, written
