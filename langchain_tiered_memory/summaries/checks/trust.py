"""Trust labels: marks the lines of a summary that come from tools or web pages.

A model is asked to carry these labels, and may not. So each sentence is traced: to the stretch of a source that shares
most with it, rare words above all. Where that is a tool's by a clear margin, and much of the sentence
is what no person said at all, it stands in a line of its own behind the label, as the extractive condenser writes it.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.checks.soundness import FRAME
from langchain_tiered_memory.summaries.marks import HEADING, TOOL_MARK, speaker_label
from langchain_tiered_memory.text.sentences import FENCE, pieces
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import SourceText

_STRETCH = re.compile(r"[^\n]{1,400}")
"""As much of a source as one sentence of a summary is made from."""
_MAX_TOOL_CHARS = 600_000
"""Of all tools together that are read. Beyond it, what no person said is taken for a tool's: nobody hides by length."""
_MARGIN, _MARGIN_OF_SOMEBODY = 1.25, 2.0
"""How much more than any person a tool must share with a sentence; with one that names a person as who did it."""
_LEAST_SHARE = 0.25
"""Of a sentence's weight, that the stretch it comes from must share."""
_LEAST_ALONE = 2
"""Terms of a sentence that tools alone have: one may be anybody's word."""
_MARK = re.compile(
    r"^(?P<bullet>[ \t]*(?:(?:[-*+\u2022]|\(?\d{1,3}[.)])[ \t]+)?"
    r"(?:\[(?:keep|instead of [^\[\]\n]{1,400})\][: \t]*){0,4})(?P<lead>\*\*[^*\n]{0,80}\*\*:?[ \t]*)?",
    re.IGNORECASE,
)
"""Of a line, what stands before its words: the bullet with the marks of what must last, then a bold lead-in."""
_OF_SOMEBODY = re.compile(
    r"(?:[^:(\n]{1,80}\()?(?:the )?(?:assistant|user)\b|[^\n]{1,80}?: (?:the )?(?:assistant|user)\b(?!:)", re.IGNORECASE
)
"""How a sentence begins that tells what one of them did or said, or a note that names who did, in brackets or behind
its colon: programs repeat that, with figures of their own."""
_COMMIT = re.compile(r"\b(?=[0-9]{0,11}[a-f])(?=[a-f]{0,11}[0-9])[0-9a-f]{7,12}\b")
"""The short name of a commit. It is left out where a sentence is traced: what somebody did is theirs, whatever a
program called the outcome."""
_NAMED_TOOL = re.compile(rf"{re.escape(TOOL_MARK)}(?: \S{{1,60}}(?=:(?:\s|$)))?")
"""The label of a line, with the tool that it names. A model's own label names none: what follows is the find."""


@dataclass
class _Stretches:
    """Stretches of sources by term; a weight for each term by how few of them have it."""

    by_term: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    labels: list[str] = field(default_factory=list)
    """Of each stretch; empty where a person said it."""
    is_cut: bool = False
    """Whether a part of what tools said was not read."""

    def add(self, text: str, label: str) -> None:
        """Read a stretch."""
        for term in set(analyse(text)):
            self.by_term[term].append(len(self.labels))
        self.labels.append(label)

    def rarity(self, term: str) -> float:
        """More for what few stretches have."""
        return math.log(1 + len(self.labels) / max(1, len(self.by_term.get(term, ()))))

    def label_of(self, sentence: str) -> str:
        """The label that a sentence must carry; empty for none."""
        terms = (
            set(analyse(_COMMIT.sub(" ", sentence))) - FRAME
        )  # that somebody asked or said something is nobody's find
        weights = {term: self.rarity(term) for term in sorted(terms)}  # of equal tools always the same
        scores: Counter[int] = Counter()
        for term, weight in weights.items():
            for place in self.by_term.get(term, ()):
                scores[place] += weight  # type: ignore[assignment] # a Counter of weights
        said = max((score for place, score in scores.items() if not self.labels[place]), default=0.0)
        best = max((place for place in scores if self.labels[place]), key=lambda place: scores[place], default=None)
        least = _LEAST_SHARE * sum(weights.values())
        margin = _MARGIN_OF_SOMEBODY if _OF_SOMEBODY.match(sentence) else _MARGIN
        if best is not None and scores[best] > margin * said and scores[best] >= least and self._is_alone(terms):
            return self.labels[best]
        return TOOL_MARK if self.is_cut and terms and said < least else ""

    def _is_alone(self, terms: Iterable[str]) -> bool:
        """Whether tools have what no person has in any stretch: a figure, or more than a word that anybody may use."""
        alone = [term for term in terms if (places := self.by_term.get(term)) and all(self.labels[at] for at in places)]
        return len(alone) >= _LEAST_ALONE or any(char.isdigit() for term in alone for char in term)


def labelled(
    text: str,
    sources: Sequence[SourceText],
    headings: frozenset[str] = frozenset(),
    beside: Sequence[SourceText] = (),
    known: Iterable[str] = (),
) -> str:
    """`text` with the label of tools before each sentence that comes from one and does not carry it.

    `headings` stand in any summary: all others are judged as lines are. What people said `beside` the sources, the
    writer knows as well, and the notes of what they said before (`known`): a sentence may rest on it. What tools said
    there is nothing to it.
    """
    read = _read(sources)
    if not any(read.labels) and not read.is_cut:
        return text
    for label, stretch in (one for source in beside for one in _stretches(source)):
        if not label:
            read.add(stretch, label)
    for note in known:
        read.add(note, "")
    return "\n".join(line for given in text.splitlines() for line in _labelled_line(given, read, headings))


def _read(sources: Sequence[SourceText]) -> _Stretches:
    read = _Stretches()
    room = _MAX_TOOL_CHARS
    for source in sources:
        for label, stretch in _stretches(source):
            room -= len(stretch) if label else 0
            if label and room < 0:
                read.is_cut = True
            else:
                read.add(stretch, label)
    return read


def _stretches(source: SourceText) -> Iterator[tuple[str, str]]:
    """The stretches of a message, or the lines of a summary, each with its label; what a user says at once is one.

    None of an answer that refuses a change: a host, or a person through it, speaks there for a tool that did not run.
    """
    if source.is_refusal:
        return
    if source.role == "user":
        yield "", source.text
        return
    if source.role == "tool":
        label = speaker_label(source.speaker, "tool")
        yield from ((label, match[0]) for match in _STRETCH.finditer(source.text))
        return
    for line in source.text.splitlines():
        mark = _MARK.match(line)
        rest = line[mark.end() :] if mark else line
        label = ""
        if not source.speaker and rest.startswith(TOOL_MARK):
            label = _NAMED_TOOL.match(rest)[0]  # type: ignore[index] # it begins with the mark
        yield from ((label, match[0]) for match in _STRETCH.finditer(line))


def _labelled_line(line: str, read: _Stretches, headings: frozenset[str]) -> Iterator[str]:
    marked = HEADING.match(line)
    heading = marked["marked"] if marked else None
    if heading and heading.strip().casefold().rstrip(":") in headings:
        yield line
        return
    mark = _MARK.match(line)
    bullet, lead = (mark["bullet"], mark["lead"] or "") if mark else ("", "")
    rest = line[len(bullet) + len(lead) :]
    is_marked = rest.startswith(TOOL_MARK) or lead.strip(" \t*:").startswith(TOOL_MARK)
    if FENCE.match(line) or not any(char.isalnum() for char in rest) or is_marked:
        yield line
        return
    if heading:
        label = read.label_of(rest)
        yield f"- {_lead(label)}{heading}" if label else line
        return
    for label, said in _runs(rest, read):
        yield f"{bullet}{_lead(label)}{lead}{said}"
        bullet, lead = "- " if bullet.strip() else "", ""


def _lead(label: str) -> str:
    """What stands before a find: its label, and a colon behind the tool that is named."""
    return f"{label} " if label == TOOL_MARK else f"{label}: " if label else ""


def _runs(text: str, read: _Stretches) -> Iterator[tuple[str, str]]:
    """Sentences of a line, neighbours of one label together."""
    label, said = "", list[str]()
    parts: list[str] = []
    for piece in pieces(text):
        if parts and piece.text[:1].islower():  # a full stop that ended no sentence
            parts[-1] += f" {piece.text}"
        else:
            parts.append(piece.text)
    parts = parts or [text]
    labels = [read.label_of(part) for part in parts]
    if not any(labels):
        yield "", text
        return
    for found, part in zip(labels, parts, strict=True):
        if said and found != label:
            yield label, " ".join(said)
            said = []
        label = found
        said.append(part)
    yield label, " ".join(said)
