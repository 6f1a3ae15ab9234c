"""The notes of a list that has no room for all of them, said in fewer words by the model that keeps it.

A list of notes grows as long as a conversation does: plans that came to something, five notes on one matter. Who reads
the messages tells which belong together. A note that joins others is a fact like them, says nothing that they do not,
and stands only while each of them does: an edit, a branch or a removal brings the others back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.facts.reading import fact_id
from langchain_tiered_memory.summaries.facts.related import SAME, alike
from langchain_tiered_memory.summaries.facts.signs import PARTICULAR
from langchain_tiered_memory.summaries.facts.statements import read
from langchain_tiered_memory.summaries.facts.supersession import AUTHORITY
from langchain_tiered_memory.summaries.facts.written import MAX_CHARS, MOST_UNMARKED, labelled
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.text.identifiers import folded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Fact


def joining(text: str, kept: Sequence[Fact]) -> list[Fact]:
    """The notes of a model's answer that each say others in fewer words, or end them.

    A line that names no others, is no shorter than they are, is longer than a note, or has a figure that neither they
    nor their days have, is left out. A note of something else than the line which names it, or with a code or a figure
    that the line lacks, stays as it is.

    Args:
        text: Bullets as `[instead of 3 7] [keep] ...`.
        kept: The notes that the model was shown, in the order of their numbers from 1 on.
    """
    found: dict[str, Fact] = {}
    taken: set[str] = set()
    for line in text.splitlines():
        mark = marks.BULLET.match(line)
        said = line[mark.end() :] if mark else line
        words = marks.without_marks(said).removeprefix(marks.TOOL_MARK).strip()
        if not any(map(str.isalnum, words)):
            continue
        places = [number - 1 for number in marks.instead_of(said) if 0 < number <= len(kept)]
        named, shares = [kept[place] for place in places], alike(words, kept) if places else []
        same = [kept[place] for place in places if shares[place] >= SAME]
        olds = [one for one in same if one.id not in taken and _has_figures(words, one)]
        by_tool = bool(olds) and all(one.by == "tool" for one in olds)
        olds = [one for one in olds if by_tool or one.by != "tool"]
        most = min(sum(len(one.text) for one in olds) - 1, MAX_CHARS)
        if len(words) > most or _figures(words) - _figures(*(f"{one.text} {day(one.at)}" for one in named)):
            continue
        joined = _joined(words, olds, lasts=marks.is_kept(said))
        if joined.id not in {one.id for one in kept}:
            found[joined.id] = joined
            taken.update(joined.joins)
    return list(found.values())


def _joined(words: str, olds: Sequence[Fact], *, lasts: bool) -> Fact:
    """One note in the place of others: of their newest message, on the word of whoever of them has the least say.

    What is not marked again is listed no more.
    """
    newest, said = max(olds, key=lambda one: (one.seq, one.id)), read(words)
    by = min(olds, key=lambda one: AUTHORITY[one.by])
    return replace(
        newest,
        id=fact_id(newest.seq, newest.kind, words),
        text=words,
        by=by.by,
        speaker=by.speaker,
        subject=labelled(words) or newest.subject,
        attribute="",
        value=said.value,
        sources=tuple(sorted({seq for one in olds for seq in (one.sources or (one.seq,))})),
        weight=max(one.weight for one in olds) if lasts else MOST_UNMARKED,
        mentions=max(one.mentions for one in olds),
        instead_of=(),
        ends=(),
        joins=tuple(one.id for one in olds),
    )


def _has_figures(words: str, old: Fact) -> bool:
    """Whether a line has the value of a note where that is a code, a path or a figure."""
    value = read(old.text)
    is_exact = value.shape in PARTICULAR and value.shape != "date"
    stated = _figures(value.value) if is_exact else frozenset()
    return frozenset(one for one in _figures(old.text) if any(part in one for part in stated)) <= _figures(words)


def _figures(*texts: str) -> frozenset[str]:
    """What has a digit in it, each with what belongs to it: a code, a path, a time."""
    return frozenset(one.strip(".,;:()[]'\"") for text in texts for one in folded(text).split() if _has_digit(one))


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
