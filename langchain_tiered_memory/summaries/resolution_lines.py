"""Reads a finished summary into an overview and statements that can each stand alone, for what is told in short."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import APPENDED, SAID, TOOL_MARK, without_marks
from langchain_tiered_memory.summaries.writers.extractive_phrases import ANSWER, OVERVIEW, SPOKEN
from langchain_tiered_memory.summaries.writers.sections import ItemKind, kind_of_heading
from langchain_tiered_memory.summaries.writers.telling import telling
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.text.statements import clause_cut, leans

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK_OF_LINE = re.compile(r"^[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+")
HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+(?P<marked>\S.*)|\*\*(?P<bold>[^*\n]{1,80})\*\*:?[ \t]*$)")
_SPAN_AT_END = re.compile(r" \(\d{1,2} [A-Z][a-z]{2,8} \d{4}(?: to \d{1,2} [A-Z][a-z]{2,8} \d{4})?\)\.$")
_MAX_OVERVIEW_CHARS = 220
_MAX_QUESTION_CHARS, _MAX_PAIR_CHARS = 120, 260
_MAX_LEANING_CHARS = 240


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

    @property
    def whole(self) -> str:
        """As it stands alone."""
        return f"{self.label}{self.text}"


def read_told(text: str) -> tuple[str, list[Told]]:
    """The overview of a summary, empty where it has none, and what else it says; without what an audit appended."""
    overview: list[str] = []
    told: list[Told] = []
    kind: ItemKind = "point"
    for number, line in enumerate(without_marks(text).splitlines()):
        heading = HEADING.match(line)
        if heading:
            # A bold line names a theme: what stands below it keeps its kind.
            kind = (kind_of_heading(heading["marked"]) or "point") if heading["marked"] else kind
        elif APPENDED.match(line):
            still_open = line.partition(SAID)[0].strip() if not line.startswith((SAID, TOOL_MARK)) else ""
            if still_open:
                told.append(Told(still_open, "", number, "open"))
        elif not number and OVERVIEW.match(line):
            overview.append(_SPAN_AT_END.sub(".", line))
        elif kind == "overview" and not told and sum(map(len, overview)) < _MAX_OVERVIEW_CHARS // 2:
            overview += (piece.text for piece in pieces(line)[:1])
        elif line.strip():
            told += _of_line(line, number, kind)
    return clause_cut(" ".join(overview), most_chars=_MAX_OVERVIEW_CHARS), told


def _of_line(line: str, number: int, kind: ItemKind) -> Iterator[Told]:
    """The statements of one line: each with its speaker, an answer with its question where it needs that."""
    mark = MARK_OF_LINE.match(line)
    bullet = f"{mark[0].strip()} " if mark else ""
    rest = line[mark.end() :].strip() if mark else line.strip()
    if rest.startswith(TOOL_MARK):
        yield Told(clause_cut(rest, most_chars=_MAX_PAIR_CHARS), "", number, "technical", bullet)
        return
    label, question = "", list[str]()
    spoken = SPOKEN.match(rest)
    asks = False
    if spoken:
        label, rest, asks = spoken[0].rstrip() + " ", rest[spoken.end() :], bool(spoken["asked"])
    for text in sentences_of(rest):
        answer = ANSWER.match(text)
        if answer is None:
            if asks:
                question.append(text)
            elif text != rest and SPOKEN.match(text) and not rest.startswith(text):
                yield Told(text, "", number, kind, bullet)  # it begins with a subject or speaker of its own
            else:
                yield Told(text, label, number, kind, bullet)
            continue
        asked = f"{label}{' '.join(question)}" if question else ""
        who = f"{answer['speaker']} ({answer['when']}): " if answer["when"] else f"{answer['speaker']}: "
        said = text[answer.end() :]
        short = len(asked) <= _MAX_QUESTION_CHARS and len(asked) + len(text) <= _MAX_PAIR_CHARS
        if asked and short and (answer["speaker"] == "assistant" or telling(said) < 1.0):
            yield Told(f"{asked} {text}", "", number, kind, bullet)
        else:
            yield Told(said, who, number, kind, bullet)
        label, asks, question = who, False, []
    if question:
        yield Told(" ".join(question), label, number, kind, bullet)


def sentences_of(text: str) -> Iterator[str]:
    """Sentences, one that leans on the one before it with that."""
    waiting = ""
    for piece in pieces(text):
        joins = waiting and leans(piece.text) and len(waiting) + len(piece.text) < _MAX_LEANING_CHARS
        if waiting and not joins:
            yield waiting
        waiting = f"{waiting} {piece.text}" if joins else piece.text
    if waiting:
        yield waiting
