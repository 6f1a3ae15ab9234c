"""A summary at lower resolution: in short, or as a headline.

A view tells of everything that was condensed, and where room is short it tells of it more briefly. Both renderings
are cut from the summary's own text, so they say nothing that it does not, and need no model.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.writers.extractive_calls import USED
from langchain_tiered_memory.summaries.writers.ranking import (
    REPORTED,
    Unit,
    advice_share,
    in_order_of_worth,
    is_filler,
    kind_of,
    telling,
)
from langchain_tiered_memory.summaries.writers.sections import TO_DO, ItemKind, Line, lines_of, without_open
from langchain_tiered_memory.text.fencing import neutralised
from langchain_tiered_memory.text.readings import READ_CHARS, read_once
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.text.statements import MAX_JOINED_CHARS, clause_cut, leans
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

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
_LEAST_SHARE = 0.2
"""What the most telling statement may take behind an overview that took nearly all."""
_HEAD_CHARS = 100
"""Of what rules chose, about what a headline has room for: a short aside would stand for what was asked at length."""
_HEADS = 12
"""Statements looked at for a headline; it shows the first that fit."""
_LATER = 1e-6
"""What a statement loses by each that stands before it: of equals the first is told."""
_ASSISTANT = "assistant"
_BY_ROLE = (_ASSISTANT, "user")
"""How a line begins whose sentences are all one speaker's, colons in them or not."""
_CHARS_PER_TOKEN = 4
_DAYS_BY_MONTH = 45
"""A longer span of time is told by its months."""

_SPAN_AT_END = re.compile(r" \(\d{1,2} [A-Z][a-z]{2,8} \d{4}(?: to \d{1,2} [A-Z][a-z]{2,8} \d{4})?\)\.$")


def short_of(summary: Summary) -> str:
    """What a summary says, within `SHORT_SHARE` of its characters.

    A model put first what would be missed most, under each heading, so the first of each are shown, without what it
    marked, which is listed beside it; of what rules wrote, the statements that tell most.
    """
    return (_short_by_order if _is_of_model(summary) else _short_by_worth)(_told_of(summary))


def whole_of(summary: Summary, *, ends: bool = False) -> str:
    """What a summary says. What was open at the end of what a model merged is told only where that `ends` the record.

    Its text cannot tell what became of it since. A note can be ended, so what is open is marked as one.
    """
    return without_open(summary.text) if summary.level > 1 and _is_of_model(summary) and not ends else summary.text


def _told_of(summary: Summary) -> str:
    """What a briefer form is made of: of what a model wrote, no notes, and nothing that was open then."""
    text = summary.text[:READ_CHARS]
    if not _is_of_model(summary):
        return text
    return without_open(marks.without_kept(text) if summary.level == 1 else text)


def _is_of_model(summary: Summary) -> bool:
    return summary.model not in (None, marks.RULES) and not summary.by_rules


@read_once
def _short_by_order(text: str) -> str:
    return shortened(text, share=SHORT_SHARE, ranked=by_order, in_order=True)


@read_once
def _short_by_worth(text: str) -> str:
    return shortened(text, share=SHORT_SHARE, ranked=by_worth)


def shortened(
    text: str, *, share: float, ranked: Callable[[Sequence[Told]], Iterable[int]], in_order: bool = False
) -> str:
    """The overview of a summary and the statements ranked first, in their order, within `share` of its characters.

    At least one statement, cut between words where it is longer than that; empty for a summary that says nothing.
    With `in_order`, points stay whole and none takes the place of one before it, the overview gives way to the first,
    and what is to be done stands behind its heading, without which it would pass for done.
    What an audit appended is left out: it is a list, for search and for the level above.
    """
    overview, told = read_told(text)
    chars, has_overview = len(text), bool(overview)
    if in_order:
        overview, told = _with_points(overview, told, chars=round(share * chars))
    if not overview and not told:
        return _cut(text.strip(), max(1, round(share * len(text))))
    order = list(ranked(told))
    room = round(share * chars) - len(overview)
    chosen: set[int] = set()
    for place in order:
        size = len(told[place].whole)
        if not chosen and not overview:
            alone = in_order and len(told) == 1 and not has_overview
            room = max(room, size if alone else min(size, round(_LONGEST_SHARE * chars)))
        elif not chosen:
            room = max(room, round(_LEAST_SHARE * chars))
        if size <= room:
            chosen.add(place)
            room -= size
        elif in_order:
            break
    if not chosen and told:
        best = told[order[0]]
        if not overview:
            return _cut(best.whole, max(room, 1))
        return f"{overview}\n{best.bullet}{_cut(best.whole, max(room, 1))}"
    return "\n".join([*([overview] if overview else ()), *_joined([told[place] for place in sorted(chosen)])])


def _with_points(overview: str, told: Sequence[Told], *, chars: int) -> tuple[str, tuple[Told, ...]]:
    """The overview where the first point has room beside it, and the statements of each line as one."""
    points = tuple(replace(one, label=f"{one.heading}: ") if one.is_to_do else one for one in _points(told))
    return ("" if points and len(overview) + len(points[0].whole) > chars else overview), points


def _points(told: Sequence[Told]) -> Iterator[Told]:
    """The statements of each line as one."""
    for _, run in groupby(told, key=lambda one: (one.line, one.label)):
        first, *others = run
        yield replace(first, text=" ".join([first.text, *(one.text for one in others)]))


def by_order(told: Sequence[Told]) -> Iterator[int]:
    """The first statement of each kind of section, then the second of each."""
    seen = Counter[ItemKind]()
    turns: list[tuple[int, int]] = []
    for place, one in enumerate(told):
        turns.append((seen[one.kind], place))
        seen[one.kind] += 1
    return (place for _, place in sorted(turns))


def by_worth(told: Sequence[Told]) -> Iterator[int]:
    """The statements that tell most, first; fillers where there is nothing else."""
    places = [place for place, one in enumerate(told) if not is_filler(one.text)] or list(range(len(told)))
    reported = [one.is_reported for one in told]
    advice = advice_share([told[place].is_advice for place in places], works=any(reported))
    units = [
        Unit(
            text=told[place].text,  # who says it tells nothing
            kind=told[place].kind if told[place].kind != "point" else kind_of(told[place].text),
            source=0,
            tokens=len(told[place].whole) / _CHARS_PER_TOKEN,
            weight=telling(told[place].text)
            * (1 - _LATER * place)
            * (REPORTED if reported[place] else advice if told[place].is_advice else 1.0),
        )
        for place in places
    ]
    return (places[index] for index in in_order_of_worth(units))


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
    return (_heads_by_order if _is_of_model(summary) else _heads_by_worth)(_told_of(summary))


@read_once
def _heads_by_order(text: str) -> tuple[str, ...]:
    return _heads_of(text, by_order)


@read_once
def _heads_by_worth(text: str) -> tuple[str, ...]:
    return _heads_of(text, by_worth, most_chars=_HEAD_CHARS)


def _heads_of(
    text: str, ranked: Callable[[Sequence[Told]], Iterable[int]], *, most_chars: int = READ_CHARS
) -> tuple[str, ...]:
    overview, everything = read_told(text)
    in_words = [one for one in everything if not one.text.startswith(marks.CODE)] or everything
    told = [replace(one, text=clause_cut(one.text, most_chars=most_chars)) for one in in_words]
    found = [told[place] for place in islice(ranked(told), _HEADS)]
    said = [" ".join(one.whole.split()) for one in sorted(found, key=lambda one: one.is_reported)]
    # Which tools were used on which files tells less than any words, and more than any call.
    spoken = 0 if marks.REQUESTED in overview else sum(not one.is_reported for one in found)
    return tuple(one for one in (*said[:spoken], overview, *said[spoken:]) if one)


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


def _joined(chosen: Sequence[Told]) -> Iterator[str]:
    """A line for each speaker of a line of the summary, sentences side by side."""
    for _, run in groupby(chosen, key=lambda one: (one.line, one.label)):
        first, *others = run
        yield " ".join([f"{first.bullet}{first.whole}", *(one.text for one in others)])


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


@dataclass(frozen=True, slots=True)
class Told:
    """One statement of a summary."""

    text: str
    """Without bullet and speaker."""
    label: str
    """Who said it and when, with a colon and a blank; empty where nobody is named."""
    line: int
    kind: ItemKind
    bullet: str = ""
    heading: str = ""
    """Under which it stands."""
    is_advice: bool = False
    """Whether an assistant says it."""

    @property
    def is_reported(self) -> bool:
        """Whether it is a call, or what a tool printed."""
        by_itself = (marks.WAITING, marks.NOT_ANSWERED)
        return self.text.startswith((marks.TOOL_MARK, USED)) or (not self.label and self.text.startswith(by_itself))

    @property
    def is_to_do(self) -> bool:
        """Whether its heading alone says that it is not done."""
        return self.kind in TO_DO and self.heading != "" and not self.label

    @property
    def whole(self) -> str:
        """As it stands alone."""
        return f"{self.label}{self.text}"


@read_once
def read_told(text: str) -> tuple[str, tuple[Told, ...]]:
    """The overview of a summary, empty where it has none, and what else it says; without what an audit appended."""
    overview: list[str] = []
    told: list[Told] = []
    for line in lines_of(marks.without_marks(text)):
        if line.lead:
            still_open = line.whole.partition(marks.SAID)[0].strip()
            if still_open and not line.lead.startswith(marks.TOOL_MARK):
                told.append(Told(still_open, "", line.number, "open"))
        elif line.is_overview:
            overview.append(_SPAN_AT_END.sub(".", line.whole))
        elif line.kind == "overview" and not told and sum(map(len, overview)) < MAX_JOINED_CHARS // 2:
            overview += (piece.text for piece in pieces(line.whole)[:1])
        else:
            told += (replace(one, heading=line.heading) for one in _of_line(line))
    return clause_cut(" ".join(overview), most_chars=MAX_JOINED_CHARS), tuple(told)


def _of_line(line: Line) -> Iterator[Told]:
    """The statements of one line: each with its speaker, an answer with its question where it needs that."""
    bullet = f"{line.bullet.strip()} " if line.bullet else ""
    number, kind, rest = line.number, line.kind, line.words
    if rest.startswith(marks.TOOL_MARK):
        yield Told(clause_cut(rest, most_chars=MAX_JOINED_CHARS), "", number, "technical", bullet)
        return
    label, question = "", list[str]()
    spoken = marks.SPOKEN.match(rest)
    asks = False
    if spoken:
        label, rest, asks = spoken[0].rstrip() + " ", rest[spoken.end() :], bool(spoken["asked"])
    for text in [clause_cut(rest, most_chars=MAX_JOINED_CHARS)] if rest.startswith(USED) else sentences_of(rest):
        answer = marks.ANSWER.match(text)
        if answer is None:
            if asks:
                question.append(text)
            else:  # one that begins with a subject of its own has no other; what a role says has its speaker
                is_said = label.startswith(_BY_ROLE)
                begins = not is_said and marks.SPOKEN.match(text) is not None and not rest.startswith(text)
                is_advice = label.startswith(_ASSISTANT)
                yield Told(text, "" if begins else label, number, kind, bullet, is_advice=is_advice)
            continue
        asked = f"{label}{' '.join(question)}" if question else ""
        who = f"{answer['speaker']} ({answer['when']}): " if answer["when"] else f"{answer['speaker']}: "
        said = text[answer.end() :]
        short = len(asked) + len(text) <= MAX_JOINED_CHARS
        if asked and short and (answer["speaker"] == "assistant" or telling(said) < 1.0):
            yield Told(f"{asked} {text}", "", number, kind, bullet)
        else:
            yield Told(said, who, number, kind, bullet, is_advice=who.startswith(_ASSISTANT))
        label, asks, question = who, False, []
    if question:
        yield Told(" ".join(question), label, number, kind, bullet)


def sentences_of(text: str) -> Iterator[str]:
    """Sentences, one that leans on the one before it with that."""
    waiting = ""
    for piece in pieces(text):
        joins = waiting and leans(piece.text) and len(waiting) + len(piece.text) < MAX_JOINED_CHARS
        if waiting and not joins:
            yield waiting
        waiting = f"{waiting} {piece.text}" if joins else piece.text
    if waiting:
        yield waiting
