"""A summary at lower resolution: in short, or as a headline.

A view tells of everything that was condensed, and where room is short it tells of it more briefly. Both renderings
are cut from the summary's own text, so they say nothing that it does not, and need no model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.writers.ranking import Unit, cue_weight, in_order_of_worth, kind_of
from langchain_tiered_memory.text.fencing import neutralised, plain_label, short_id
from langchain_tiered_memory.text.identifiers import names
from langchain_tiered_memory.text.noun_phrases import subjects
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.types.records import Summary

SHORT_SHARE = 0.35
"""Of a summary's text, what its short rendering keeps: with less, level 1 loses more to its header than it says."""
_LONGEST_SHARE = 0.6
"""What the most telling sentence alone may take, where it is longer than the share: a lesser one would say less."""
HEADLINE_TOKENS = 25
"""The most that a headline takes: hundreds of messages then fit into a share of a small window."""
_JOINT_TOKENS = 48
"""The most that one line for many neighbours takes: it names more topics."""
_HEADLINE_ID_CHARS = 6
"""Of an id in a headline: enough to expand it by, and half the tokens of what is shown above a summary."""
_NAMED_IDS = 3
"""Summaries that a joint line names."""
_LONG_LINE_CHARS = 240
"""A longer line is prose, and is cut into its sentences; a shorter one stays whole."""
_MOST_CHARS = 20_000
"""Looked at of one summary: one is hardly longer, and what a user's own writer gives may be."""
_TOPICS = 12
"""Words looked at for a headline; it shows those that fit."""
_CHARS_PER_TOKEN = 4
_DAYS_BY_MONTH = 45
"""A longer span of time is told by its months."""
_WORD = re.compile(r"[^\W_][\w.-]{2,40}\b")
_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+\S|\*\*[^*\n]{1,80}\*\*:?[ \t]*$)")
_SPEAKERS = frozenset({"user", "assistant", "system", "tool", "other", "facts", "figures", "topics", "said"})


def short_of(summary: Summary, *, share: float = SHORT_SHARE) -> str:
    """The most telling sentences and bullets of a summary within `share` of its characters, in their order.

    At least one, cut between words where it is longer than that; empty for a summary that says nothing.
    """
    lines = _lines(summary.text[:_MOST_CHARS])
    chars = sum(len(line) for line, _ in lines)
    room = round(share * chars)
    units = [
        Unit(text=line, kind=kind_of(line), source=place, tokens=len(line) / _CHARS_PER_TOKEN, weight=cue_weight(line))
        for place, (line, _) in enumerate(lines)
    ]
    chosen: set[int] = set()
    first: int | None = None
    for place in in_order_of_worth(units):
        if first is None:
            first, room = place, max(room, min(len(lines[place][0]), round(_LONGEST_SHARE * chars)))
        if len(lines[place][0]) <= room:
            chosen.add(place)
            room -= len(lines[place][0])
    if not chosen and first is not None:
        return _cut(lines[first][0], max(room, 1))
    return _joined([lines[place] for place in sorted(chosen)])


def headline_of(summary: Summary, *, count_text: Callable[[str], int]) -> str:
    """One line of at most `HEADLINE_TOKENS` tokens: messages, dates and id of a summary, and what it is about.

    A counter that counts more than words and marks may find the span alone longer.
    """
    span = f"{summary.first_seq}-{summary.last_seq}, {_dates(summary.first_at, summary.last_at)}"
    head = f"[{span}, {short_id(summary.id, max_chars=_HEADLINE_ID_CHARS)}"
    return _with_topics(head, topics_of([summary.text]), most=HEADLINE_TOKENS, count_text=count_text)


def joint_headline(
    summaries: Sequence[Summary],
    *,
    span: tuple[int, int],
    count: int,
    untold: int,
    ids: Sequence[str],
    count_text: Callable[[str], int],
) -> str:
    """One line for neighbours that have no room for a line each.

    Args:
        summaries: Those whose words may be named, oldest first; at least one.
        span: The first and the last message.
        count: Messages that all of them stand for.
        untold: Messages between them that no summary stands for.
        ids: All of the summaries.
        count_text: Counts a text.
    """
    dates = _dates(min(one.first_at for one in summaries), max(one.last_at for one in summaries))
    named = " ".join(short_id(one, max_chars=_HEADLINE_ID_CHARS) for one in ids[-_NAMED_IDS:])
    more = f" and {len(ids) - _NAMED_IDS} before" if len(ids) > _NAMED_IDS else ""
    missing = f", {untold} more not told" if untold else ""
    head = f"[{span[0]}-{span[1]}, {dates}, {count} messages{missing}, ids {named}{more}"
    return _with_topics(head, topics_of([one.text for one in summaries]), most=_JOINT_TOKENS, count_text=count_text)


def topics_of(texts: Sequence[str]) -> list[str]:
    """Words that tell what texts are about, the most telling first: what comes up again, then names."""
    lines = [line for text in texts for line, _ in _lines(text[: _MOST_CHARS // len(texts)])]
    units = [Unit(text=line, kind="point", source=place, tokens=1.0) for place, line in enumerate(lines)]
    shared = subjects(lines, dull=_SPEAKERS, count=_TOPICS)
    named = [name for line in lines for name in names(line) if name.casefold() not in _SPEAKERS]
    rare = [word for place in list(in_order_of_worth(units))[:1] for word in _WORD.findall(lines[place])]
    found = dict.fromkeys(plain_label(word, max_chars=40) for word in (*shared[:4], *named, *shared[4:], *rare))
    return [word for word in found if word and word.casefold() not in _SPEAKERS][:_TOPICS]


def _with_topics(head: str, found: Sequence[str], *, most: int, count_text: Callable[[str], int]) -> str:
    """`head` with as many topics behind it as `most` tokens allow."""
    line, shown = f"{head}]", 0
    for word in found:
        longer = f"{line[:-1]}{', ' if shown else ': '}{word}]"
        if count_text(longer) <= most:
            line, shown = longer, shown + 1
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
    return f"{first:%Y-%m-%d}/{last:%m-%d}" if first.year == last.year else f"{first:%Y-%m-%d}/{last:%Y-%m-%d}"


def _lines(text: str) -> list[tuple[str, bool]]:
    """What a short rendering chooses from: bullets and sentences, and whether each stands on a line of its own."""
    found: list[tuple[str, bool]] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or _HEADING.match(line):
            continue
        if len(stripped) <= _LONG_LINE_CHARS:
            found.append((stripped, True))
            continue
        mark = _BULLET.match(line)
        for place, piece in enumerate(pieces(stripped)):
            own = place == 0
            found.append((f"{mark[0].strip()} {piece.text}" if own and mark is not None else piece.text, own))
    return found


def _joined(chosen: Sequence[tuple[str, bool]]) -> str:
    """Bullets and first sentences on lines of their own, sentences of the same prose side by side."""
    text = ""
    for line, own in chosen:
        text += line if not text else f"\n{line}" if own or _BULLET.match(text.rsplit("\n", 1)[-1]) else f" {line}"
    return text


def _cut(line: str, chars: int) -> str:
    """The beginning of a line, between words where it has any."""
    if len(line) <= chars:
        return line
    head = line[:chars]
    return f"{head.rsplit(' ', 1)[0] if ' ' in head else head}\u2026"
