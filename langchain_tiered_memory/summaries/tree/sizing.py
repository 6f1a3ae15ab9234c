"""How large a summary should be, and how one that is too large is cut without leaving half a thought.

A cut keeps what is worth most for its tokens, as the extractive condenser weighs statements, wherever it stands: facts,
figures and decisions before chat. Bullets, sentences and blocks of code stay whole, in their order; a heading whose
section has gone goes too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import is_kept, is_marked
from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth, kind_of, telling, within
from langchain_tiered_memory.summaries.writers.sections import Line, lines_of
from langchain_tiered_memory.text.identifiers import names
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.text.truncation import CUT, most_fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.settings import LevelSettings

HEADROOM = 1.15
"""A summary may exceed what its writer is told to aim at by this factor: for a writer that counts badly, for marks and
labels, and for what the audit appends."""

_OF_NOTES = 1.5
"""What a summary with notes that must last may have, in sizes of one without: its writer is told a size in words, and
names, figures and codes have more tokens a word than prose."""

LEAST_TOKENS = 40
"""What a summary of very little may have: in fewer nothing is said."""

_LASTS = 10.0
"""How much more than its wording a line weighs of which its writer says that it must last: the others go first."""
_ORIENTS = 3.0
"""How much more a line of an overview with names weighs: as much as wording such as a decision's adds."""
_MAX_CHARS_PER_TOKEN = 200  # no tokenizer packs more of a real text into one token


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a summary should aim at and what it may not exceed, in tokens."""

    target_tokens: int
    max_tokens: int


def target_and_cap(level: LevelSettings, source_tokens: int) -> Size:
    """The size of a summary of `source_tokens` tokens: its cap with everything in it, and what to aim at below that.

    The cap is the level's ratio of the source, at least `min_tokens`, at most `max_tokens`, and never more than the
    source itself.
    """
    ceiling = max(1, min(level.max_tokens, source_tokens))
    cap = min(max(round(source_tokens * level.target_ratio), level.min_tokens, LEAST_TOKENS), ceiling)
    return Size(target_tokens=max(1, round(cap / HEADROOM)), max_tokens=cap)


def most_tokens(text: str, *, max_tokens: int, source_tokens: int) -> int:
    """What a text that a model wrote may have at most: never more than its sources."""
    return max(1, min(round(_OF_NOTES * max_tokens) if is_kept(text) else max_tokens, source_tokens))


@dataclass(frozen=True, slots=True)
class Cut:
    """A text within its size."""

    text: str
    """Empty where not even a word fits."""
    lines: int = 0
    """Bullets, sentences and blocks that had to go."""


def cut_to_size(text: str, *, max_tokens: int, count_text: Callable[[str], int]) -> Cut:
    """`text`, cut to at most `max_tokens`: what is worth most of it, in its order, no heading without content.

    A single sentence that is too long is cut between words and marked with an ellipsis.
    """
    text = text.strip()
    if count_text(text) <= max_tokens:
        return Cut(text)
    lines = list(_lines(text[: max(1, max_tokens) * _MAX_CHARS_PER_TOKEN]))
    units = [_weighed(line, count_text(line.whole)) for line in lines]
    order = list(in_order_of_worth(units))

    def of(room: int) -> list[Line]:
        return [lines[place] for place in within(units, order, room)]

    chosen = of(most_fitting(max_tokens, lambda room: count_text(_joined(of(room))) <= max_tokens))
    if chosen:
        return Cut(_joined(chosen), len(lines) - len(chosen))
    best = lines[order[0]].whole if order else text
    return Cut(_cut_words(best, max_tokens, count_text), len(lines))


def _weighed(line: Line, tokens: int) -> Unit:
    """A line as the extractive condenser weighs it: by its wording, what it names and the section it stands in.

    What must last comes first, and what ends that, then an overview that names whom or what the rest is about.
    """
    kind = kind_of(line.whole) if line.kind in ("point", "overview") else line.kind
    orients = line.kind == "overview" and names(line.whole)
    more = _LASTS if is_marked(line.whole) else _ORIENTS if orients else 1.0
    return Unit(line.whole, kind, 0, tokens, weight=more * telling(line.whole))


def _lines(text: str) -> Iterator[Line]:
    """What says something: bullets and blocks of code whole, prose by its sentences."""
    for line in lines_of(text):
        whole = line.bullet or line.is_code
        yield from [line] if whole else (replace(line, whole=piece.text) for piece in pieces(line.whole))


def _joined(lines: Sequence[Line]) -> str:
    """The text again: bullets and code on lines of their own, sentences of prose side by side."""
    blocks = list[str]()
    for _, section in groupby(lines, key=lambda line: line.section):
        told = list[str]()
        in_prose, above = False, ""
        for line in section:
            was_prose, in_prose, above = in_prose, not (line.bullet or line.is_code), line.above.strip()
            if in_prose and was_prose:
                told[-1] = f"{told[-1]} {line.whole}"
            else:
                told.append(line.whole.rstrip())
        blocks.append("\n".join([*([above] if above else []), *told]))
    return "\n\n".join(blocks)


def _cut_words(sentence: str, max_tokens: int, count_text: Callable[[str], int]) -> str:
    """As many leading characters as fit, back to the last blank where there is one."""
    low = most_fitting(len(sentence), lambda chars: count_text(sentence[:chars] + CUT) <= max_tokens)
    kept = sentence[:low].rstrip()
    if low < len(sentence) and " " in kept and not sentence[low : low + 1].isspace():
        kept = kept.rpartition(" ")[0].rstrip()
    return kept + CUT if kept else ""
