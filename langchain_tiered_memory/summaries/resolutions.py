"""A summary at lower resolution: in short, or as a headline.

A view tells of everything that was condensed, and where room is short it tells of it more briefly. Both renderings
are cut from the summary's own text, so they say nothing that it does not, and need no model.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.writers.extractive import line_of, runs_of
from langchain_tiered_memory.summaries.writers.extractive_sources import units_of_text, weighed
from langchain_tiered_memory.summaries.writers.ranking import in_order_of_worth
from langchain_tiered_memory.summaries.writers.sections import (
    TO_DO,
    ItemKind,
    Line,
    lines_of,
    sentences_of,
    without_open,
)
from langchain_tiered_memory.text.fencing import neutralised
from langchain_tiered_memory.text.readings import READ_CHARS, read_once
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.text.statements import clause_cut
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_tiered_memory.types.records import Summary

SHORT_SHARE = 0.35
"""Of a summary's text, what its short rendering keeps: with less, level 1 loses more to its header than it says."""
_LONGEST_SHARE = 0.6
"""What the most telling sentence alone may take, where it is longer than the share: a lesser one would say less."""
HEADLINE_TOKENS = 40
"""The most that a headline takes: its span, and one statement of some twenty words."""
JOINT_TOKENS = 64
"""What one line for many neighbours takes at least: it has room for a second statement."""
_LEAST_WORDS = 5
"""Of a statement that is cut to fit into a headline: fewer tell nothing."""
_HEAD_CHARS = 100
"""Of what rules chose, about what a headline has room for: a short aside would stand for what was asked at length."""
_HEADS = 12
"""Statements looked at for a headline; it shows the first that fit."""
_CHARS_PER_TOKEN = 4
_DAYS_BY_MONTH = 45
"""A longer span of time is told by its months."""


def short_of(summary: Summary) -> str:
    """What a summary says, within `SHORT_SHARE` of its characters; at least one statement, cut where it is longer.

    A model put first what would be missed most, under each heading, so the first of each are shown, without what it
    marked, which is listed beside it; of what rules wrote, the statements that tell most. What an audit appended is
    left out: it is a list, for search and for the level above.
    """
    text = _told_of(summary)
    if not any(map(str.isalnum, text)):
        return ""
    short = _points_in_short(text) if _is_of_model(summary) else _statements_in_short(text)
    return short or clause_cut(text, most_chars=max(round(SHORT_SHARE * len(text)), 1))  # a heading alone, or a call


def whole_of(summary: Summary, *, ends: bool = False) -> str:
    """What a summary says. What was open at the end of what a model merged is told only where that `ends` the record.

    Its text cannot tell what became of it since. A note can be ended, so what is open is marked as one.
    """
    return without_open(summary.text) if summary.level > 1 and _is_of_model(summary) and not ends else summary.text


def _told_of(summary: Summary) -> str:
    """What a briefer form is made of: nothing that an audit appended; of a model's, no notes and nothing open then."""
    text = summary.text[:READ_CHARS]
    if _is_of_model(summary):
        text = without_open(marks.without_kept(text) if summary.level == 1 else text)
    text = marks.without_marks(text).strip()
    return "\n".join(line for line in text.splitlines() if not marks.APPENDED.match(line)) or text


def _is_of_model(summary: Summary) -> bool:
    return summary.model not in (None, marks.RULES) and not summary.by_rules


@read_once
def _points_in_short(text: str) -> str:
    """The points of a model's summary that it put first, each whole, and none in the place of one before it."""
    points = list(lines_of(text))
    if not points:
        return ""
    said = [_told(one) for one in points]
    room, chosen = _filled(text, _in_turn([one.kind for one in points]), [len(one) for one in said], stops=True)
    bullets = [f"{points[place].bullet.strip()} ".lstrip() for place in chosen]
    lines = [f"{bullet}{said[place]}" for bullet, place in zip(bullets, chosen, strict=True)]
    return "\n".join(lines) if len(lines) > 1 else "".join(bullets) + _cut(said[chosen[0]], room)


@read_once
def _statements_in_short(text: str) -> str:
    """The statements of a summary that tell most, in their order."""
    units = weighed(list(units_of_text(text)))
    room, chosen = _filled(text, in_order_of_worth(units), [len(line_of([unit])) for unit in units])
    bullet = "- " if any(line.bullet for line in lines_of(text)) else ""
    lines = [line_of(run) for run in runs_of([units[place] for place in chosen])]
    return "\n".join(f"{bullet}{line if len(chosen) > 1 else _cut(line, room)}" for line in lines)


def _filled(text: str, order: Iterable[int], sizes: Sequence[int], *, stops: bool = False) -> tuple[int, list[int]]:
    """The room of the short form of a text, and the first of `order` that fit into it, at least one, in their places.

    With `stops` none takes the place of one before it, and what is all that there is stays whole.
    """
    whole = room = max(round(SHORT_SHARE * len(text)), 1)
    longest = len(text) if stops and len(sizes) == 1 else round(_LONGEST_SHARE * len(text))
    chosen: list[int] = []
    for place in order:
        if not chosen:
            whole = room = max(room, min(sizes[place], longest))
        elif sizes[place] > room:
            if stops:
                break
            continue
        chosen.append(place)
        room -= sizes[place]
    return whole, sorted(chosen)


def _told(line: Line) -> str:
    """A point as it stands alone: behind its heading where that alone says that it is not done."""
    return f"{line.heading}: {line.words}" if line.kind in TO_DO and line.heading else line.words


def _in_turn(kinds: Sequence[ItemKind]) -> list[int]:
    """The first of each kind of section, an overview last, then the second of each."""
    seen = Counter[ItemKind]()
    turns: list[tuple[int, bool, int]] = []
    for place, kind in enumerate(kinds):
        turns.append((seen[kind], kind == "overview", place))
        seen[kind] += 1
    return [place for *_, place in sorted(turns)]


def headline_of(summary: Summary, *, count_text: Callable[[str], int]) -> str:
    """One line of at most `HEADLINE_TOKENS` tokens: messages and dates of a summary, and what tells most of it.

    A counter that counts more than words and marks may find the span alone longer.
    """
    span = f"[{summary.first_seq}-{summary.last_seq}, {_dates(summary.first_at, summary.last_at)}]"
    return _with_statements(span, _heads(summary), most=HEADLINE_TOKENS, count_text=count_text)


def joint_headline(
    summaries: Sequence[Summary],
    *,
    span: tuple[int, int],
    count: int,
    untold: int,
    count_text: Callable[[str], int],
    most: int = JOINT_TOKENS,
) -> str:
    """One line for neighbours that have no room for a line each.

    What tells most of each of `summaries`, oldest first, is told within `most` tokens; `span` is the first and the last
    message, `count` how many all of them stand for, `untold` how many between them no summary stands for.
    """
    dates = _dates(min(one.first_at for one in summaries), max(one.last_at for one in summaries))
    missing = f", {untold} more not told" if untold else ""
    head = f"[{span[0]}-{span[1]}, {dates}, {count} messages{missing}]"
    heads = [_heads(one) for one in summaries]
    turns = [mine[place] for place in range(_HEADS) for mine in heads if place < len(mine)]
    told = [one for mine in heads for one in mine]
    return _with_statements(head, list(dict.fromkeys(turns)), most=most, count_text=count_text, order=told.index)


def _heads(summary: Summary) -> tuple[str, ...]:
    """The statements of a summary that tell most, each on one line with who said it, the best first."""
    text = _told_of(summary)
    said = _points_for_a_line(text) if _is_of_model(summary) else _statements_for_a_line(text)
    return tuple(" ".join(one.split()) for one in said)


@read_once
def _points_for_a_line(text: str) -> tuple[str, ...]:
    said = [(line.kind, one) for line in lines_of(text) if not line.is_code for one in sentences_of(_told(line))]
    return tuple(said[place][1] for place in _in_turn([kind for kind, _ in said])[:_HEADS])


@read_once
def _statements_for_a_line(text: str) -> tuple[str, ...]:
    units = weighed(list(units_of_text(text)))
    best = (units[place] for place in islice(in_order_of_worth(units), _HEADS))
    return tuple(line_of([replace(one, text=clause_cut(one.text, most_chars=_HEAD_CHARS))]) for one in best)


def _with_statements(
    head: str,
    found: Sequence[str],
    *,
    most: int,
    count_text: Callable[[str], int],
    order: Callable[[str], int] = lambda _: 0,
) -> str:
    """`head` with the first statements behind it that `most` tokens allow; with a part of the first, if none fits."""
    chosen: list[str] = []
    for one in found:
        longer = sorted([*chosen, one], key=order)
        if count_text(" ".join([head, *longer])) <= most:
            chosen = longer
    line = " ".join([head, *chosen])
    words = found[0].split() if found and line == head else []
    for kept in range(min(len(words) - 1, most), _LEAST_WORDS - 1, -1):
        cut = f"{head} {' '.join(words[:kept])}\u2026"
        if count_text(cut) <= most:
            return neutralised(cut)
    return neutralised(line)


def _dates(first_at: float, last_at: float) -> str:
    """Two days, as an interval of ISO 8601: of the second, what differs; months alone where it is long."""
    first, last = utc(first_at), utc(last_at)
    if (last - first).days > _DAYS_BY_MONTH:
        return f"{first:%Y-%m}/{last:%m}" if first.year == last.year else f"{first:%Y-%m}/{last:%Y-%m}"
    if first.date() == last.date():
        return f"{first:%Y-%m-%d}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first:%Y-%m-%d}/{last:%d}"
    return f"{first:%Y-%m-%d}/{last:%m-%d}" if first.year == last.year else f"{first:%Y-%m}/{last:%Y-%m}"


def _cut(line: str, chars: int) -> str:
    """The beginning of a line: its first sentences where they fit, else between words where it has any."""
    if len(line) <= chars:
        return line
    ends = [
        place for place in itertools.accumulate(len(piece.text) + 1 for piece in pieces(line)) if place - 1 <= chars
    ]
    if ends and line[ends[-1] - 1 : ends[-1]] == " ":
        return line[: ends[-1] - 1]
    head = line[:chars]
    return f"{head.rsplit(' ', 1)[0] if ' ' in head else head}\u2026"
