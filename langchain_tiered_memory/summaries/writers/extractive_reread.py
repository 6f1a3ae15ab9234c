"""Reads a finished summary, ours or a model's, back into the statements that the summary above it chooses from."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import (
    ANSWER,
    APPENDED,
    DAY_LINE,
    OVERVIEW,
    SPAN,
    SPOKEN,
    STILL_OPEN,
    TOOL_MARK,
    without_marks,
)
from langchain_tiered_memory.summaries.writers.ranking import Unit
from langchain_tiered_memory.summaries.writers.sections import Item, ItemKind, read_items
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.sentences import ASKS
from langchain_tiered_memory.text.statements import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import SourceText

_ROLES = frozenset({"user", "assistant", "tool", "system", "other"})
_TOOL_SEPARATOR = "; "
_ANSWERED_WEIGHT = 0.3  # a question that ended an earlier stretch: the conversation went on

_BULLET = re.compile(r"[-*+] ")


def units_of_summary(source: SourceText, index: int, participants: Sequence[str], *, is_last: bool) -> Iterator[Unit]:
    """The items of a summary, with the speaker that ours begin with carried over to each of their sentences.

    Our own overview is left out. What an audit appended is read as what it quotes. `participants` are names that may
    stand before a colon. What the last summary leaves open may be open still.
    """
    waiting: Unit | None = None
    for unit, answers, asks_on in _read(source, index, {*participants, *_ROLES}):
        if asks_on and waiting:
            waiting = replace(waiting, text=f"{waiting.text} {unit.text}")
            continue
        if answers and waiting:
            waiting = replace(unit, asked=waiting.text, asker=waiting.speaker, kind=waiting.kind)
            continue
        if waiting:
            yield _closed(waiting, is_last=is_last)
        waiting = unit
    if waiting:
        yield _closed(waiting, is_last=is_last)


def _closed(unit: Unit, *, is_last: bool) -> Unit:
    if unit.kind != "open" or is_last or cues.QUESTION.search(cues.lowered(unit.text)):
        return unit
    return replace(unit, kind="point", weight=_ANSWERED_WEIGHT) if unit.text.endswith(ASKS) else unit


def _read(source: SourceText, index: int, known: set[str]) -> Iterator[tuple[Unit, bool, bool]]:
    """Units, each with whether it answers the one before it, and whether it belongs to the same question."""
    speaker = when = ""
    skipped = asking = False
    for place, (day, item) in enumerate(_dated_items(source.text)):
        is_overview = place == 0 and OVERVIEW.match(source.text.partition("\n")[0]) is not None
        skipped = is_overview or (skipped and item.follows)
        if skipped or SPAN.match(item.text):
            continue
        text, answers = item.text, False
        asks_on = asking = asking and item.follows
        if not (item.follows and speaker.startswith(TOOL_MARK)):  # a tool may imitate a speaker within its line
            spoken = SPOKEN.match(text)
            answer = ANSWER.match(text) if item.follows else None
            if answer and answer["speaker"] in known:
                speaker, when, text, answers = answer["speaker"], answer["when"] or "", text[answer.end() :], True
                asking = asks_on = False
            elif spoken and (spoken["speaker"] in known or spoken["speaker"].startswith(TOOL_MARK)):
                speaker, when, text = spoken["speaker"], spoken["when"] or "", text[spoken.end() :]
                asking = bool(spoken["asked"])
                asks_on = False
            elif not item.follows:
                speaker = when = ""
        is_tool = speaker.startswith(TOOL_MARK)
        kind: ItemKind = "technical" if is_tool else item.kind
        for said in text.split(_TOOL_SEPARATOR) if is_tool else [plain(text)]:
            if any(char.isalnum() for char in said):
                yield Unit(said, kind, index, 0.0, speaker=speaker, when=when, day=day), answers, asks_on


def _without_lead(item: Item) -> Item:
    """An item without the words of ours by which an audit appended it."""
    lead = APPENDED.match(item.text)
    if lead is None:
        return item
    mark = f"{TOOL_MARK} " if lead[0].startswith(TOOL_MARK) else ""
    kind: ItemKind = "open" if lead[0].startswith(STILL_OPEN) else "point"
    return replace(item, text=f"{mark}{item.text[lead.end() :]}", kind=kind)


def _dated_items(text: str) -> Iterator[tuple[str, Item]]:
    """Items with the day that they stand under, in a chronological summary."""
    before, *dated = DAY_LINE.split(without_marks(text))
    for day, block in zip(["", *dated[::2]], [before, *dated[1::2]], strict=True):
        for item in read_items(block):
            yield day, _without_lead(item)


def speakers_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Names that our summaries quote by: they stand before a day or `asked`, or begin several lines."""
    found: Counter[str] = Counter()
    for line in (line for text in texts for line in text.splitlines() if not OVERVIEW.match(line)):
        said = SPOKEN.match(_BULLET.sub("", line, count=1))
        if said is not None and said["speaker"] not in _ROLES and not said["speaker"].startswith(TOOL_MARK):
            found[said["speaker"]] += 1 + bool(said["when"] or said["asked"])
    return tuple(name for name, times in found.items() if times > 1)
