"""Reads the sources of a job into the sentences that an extractive summary chooses from."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.checks.audit import APPENDED
from langchain_tiered_memory.summaries.facts import shorten
from langchain_tiered_memory.summaries.rendering import TOOL_MARK, speaker_label
from langchain_tiered_memory.summaries.writers.extractive_render import date_of
from langchain_tiered_memory.summaries.writers.ranking import Unit, cue_weight, kind_of
from langchain_tiered_memory.summaries.writers.sections import ItemKind, read_items
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import PATH, SYMBOL
from langchain_tiered_memory.text.sentences import Piece, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText

_MAX_SENTENCE_WORDS = 60
_MAX_SENTENCE_CHARS = 200  # a shorter one is never cut
_MAX_CODE_CHARS = 160
_MAX_PIECES = 2000  # of one message that are weighed: a pasted file of megabytes must not take a minute
_MAX_CUE_CHARS = 2000
_TOOL_WEIGHT, _CODE_WEIGHT, _FIRST_WEIGHT, _FAILURE_WEIGHT = 0.5, 0.5, 1.1, 1.2
_DEFINITION = re.compile(
    r"^[ \t]*+(?:export |public |async |static ){0,4}"
    r"(?:def|class|func|function|fn|interface|type|struct|enum|const) ++\(?[\w.].*",
    re.MULTILINE,
)
_SPOKEN = re.compile(r"^(?P<speaker>[^:\n]{1,60}?)(?: \((?P<when>\d{1,2} [A-Z][a-z]{2,8} \d{4})\))?: (?=\S)")
_SPAN = re.compile(r"^\d{1,2} [A-Z][a-z]{2,8} \d{4}(?: to \d{1,2} [A-Z][a-z]{2,8} \d{4})?[.;]")


def units_of(job: CondenseJob) -> Iterator[Unit]:
    """The sentences of all sources that say something new, with their estimated tokens."""
    told = set[tuple[str, bool]]()
    for index, source in enumerate(job.sources):
        if source.same_as is None:
            per_char = source.tokens / len(source.text) if source.text else 0.0
            made = _of_message(source, index) if job.level == 1 else _of_summary(source, index, job.participants)
            for unit in made:
                key = (unit.text.casefold(), unit.speaker.startswith(TOOL_MARK))  # a person's word is not a tool's
                if key in told:
                    continue
                told.add(key)
                yield replace(unit, tokens=len(unit.text) * per_char)


def _of_message(source: SourceText, index: int) -> Iterator[Unit]:
    said = _worth_a_look(pieces(source.text))
    date = date_of(source.at)
    speaker = speaker_label(source.speaker, source.role)
    for place, piece in enumerate(said):
        if piece.kind == "heading":
            continue
        text = _quoted_code(piece) if piece.kind == "code" else _shortened(piece.text)
        if not any(char.isalnum() for char in text):
            continue
        if piece.kind == "code":
            kind: ItemKind = "technical"
            weight = _CODE_WEIGHT
        else:
            kind = _message_kind(text, source)
            weight = cue_weight(text) * (_FIRST_WEIGHT if place == 0 else 1.0)
        if source.role == "tool":
            weight *= _FAILURE_WEIGHT if cues.FAILURE.search(cues.lowered(text)) else _TOOL_WEIGHT
        when = date if piece.kind != "code" and cues.RELATIVE_TIME.search(cues.lowered(text)) else ""
        yield Unit(text, kind, index, 0.0, speaker=speaker, when=when, weight=weight)


def _worth_a_look(said: list[Piece]) -> list[Piece]:
    """All pieces of a message, or of a giant one those with the most figures and capitals for their length."""
    if len(said) <= _MAX_PIECES:
        return said
    best = sorted(range(len(said)), key=lambda place: (-_density(said[place].text), place))[:_MAX_PIECES]
    return [said[place] for place in sorted(best)]


def _density(text: str) -> float:
    return sum(char.isdigit() or char.isupper() for char in text[:_MAX_SENTENCE_CHARS]) / (
        len(text) + _MAX_SENTENCE_CHARS
    )


def _message_kind(text: str, source: SourceText) -> ItemKind:
    if source.role == "tool":
        return "technical"  # whatever its wording: a web page decides nothing, and asks nothing of anybody
    kind = kind_of(text)
    if kind == "point" and (PATH.search(text) or SYMBOL.search(text)):
        return "technical"
    if (
        kind == "point"
        and source.role == "assistant"
        and cues.FAILURE.search(cues.lowered(text)) is None
        and cues.DONE.search(cues.lowered(text))
    ):
        return "progress"
    return kind


def _quoted_code(piece: Piece) -> str:
    """What a block of code defines, or how it begins."""
    defined = [match[0].strip().rstrip("{:").strip() for match in _DEFINITION.finditer(piece.text)]
    lines = defined or [line.strip() for line in piece.text.splitlines()[1:-1] if line.strip()][:1]
    return f"`{'; '.join(lines)[:_MAX_CODE_CHARS]}`" if lines else ""


def _shortened(text: str) -> str:
    """A sentence that is too long to keep whole, around its first cue or its start."""
    if len(text) < _MAX_SENTENCE_CHARS:
        return text
    low = cues.lowered(text[:_MAX_CUE_CHARS])
    cue = cues.DECISION.search(low) or cues.CONSTRAINT.search(low) or cues.FAILURE.search(low)
    return shorten(" ".join(text.split()), around=cue.span() if cue else (0, 0), max_words=_MAX_SENTENCE_WORDS)


def _of_summary(source: SourceText, index: int, participants: Sequence[str]) -> Iterator[Unit]:
    """The items of a sectioned text, with the speaker that ours begin with carried over to each of their sentences."""
    speaker = when = ""
    known = {*participants, "user", "assistant", "tool", "system", "other"}
    appended = False
    for item in read_items(source.text):
        # What an audit appended is a list, and would crowd out the prose: the next audit takes from it what matters.
        appended = bool(APPENDED.match(item.text)) or (appended and item.follows)
        if appended or _SPAN.match(item.text):
            continue
        text = item.text
        spoken = _SPOKEN.match(text)
        # A tool's output may imitate another speaker in the middle of its line.
        quoted = item.follows and speaker.startswith(TOOL_MARK)
        if spoken and not quoted and (spoken["speaker"] in known or spoken["speaker"].startswith(TOOL_MARK)):
            speaker, when, text = spoken["speaker"], spoken["when"] or "", text[spoken.end() :]
        elif not item.follows:
            speaker = when = ""
        text = _shortened(text)
        if any(char.isalnum() for char in text):
            kind: ItemKind = "technical" if speaker.startswith(TOOL_MARK) else item.kind
            yield Unit(text, kind, index, 0.0, speaker=speaker, when=when, weight=cue_weight(text))
