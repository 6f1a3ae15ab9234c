"""What of a job a condensing model is shown: output of tools in short, and a job larger than its window in parts.

Most of an agent's history is files that were read, listings and logs, of which a summary says what was looked at and
what came of it. A model is shown the head and the tail of each, and asked for less; what people and the assistant say
stays whole. What stands there twice is shown once: a sentence that tools repeat, and what a call that edits leaves as
it is. The transcript, facts, search and the audit, which mends what a summary dropped, have everything.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import without_kept
from langchain_tiered_memory.summaries.tree.sizing import LEAST_TOKENS, target_and_cap
from langchain_tiered_memory.summaries.writers.extractive_calls import call_start, split_at_calls
from langchain_tiered_memory.summaries.writers.jobs import NOTES, CondenseJob, SourceText
from langchain_tiered_memory.summaries.writers.ranking import is_filler
from langchain_tiered_memory.text.readings import READ_CHARS
from langchain_tiered_memory.text.sentences import pieces, split_passages
from langchain_tiered_memory.text.truncation import GAP, head_and_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from langchain_tiered_memory.settings import TreeSettings
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, Part

LEFT_OUT = f"{GAP} the middle is left out ...]"
"""Between head and tail. Without a figure, which a model might repeat as if somebody had said it."""
SAME = f"{GAP}]"
"""In the place of what is shown before, or of what an edit leaves as it is."""
_REPEATED_WORDS = 8
"""A line of a tool's output with so many words is a sentence, not code: where another output has it too, it is what the
tool always says."""
_NAMES_ARGUMENT = re.compile(r"[A-Za-z_]\w{0,63}[=:]|\)$")
_TOLD_TOKENS = 60
"""Of one output, or of the calls of one message, so much counts for the length that a summary is asked for: what was
looked at and what came of it is told in a line, however long it is. What it may have at most goes by what is shown."""


class Shortening:
    """What a condensing model is shown of the jobs of one call.

    Of a tool's output, and of the calls of one message, `tool_tokens` at most; the sizes of summaries, of `tree`, go by
    what is shown.
    """

    def __init__(self, *, tool_tokens: int, tree: TreeSettings, count_text: Callable[[str], int]) -> None:
        self._tool_tokens = tool_tokens
        self._tree = tree
        self._count_text = count_text

    def of(self, parts: Sequence[Part]) -> list[Part]:
        """The parts of a call as a model is shown them; what merges others goes by their sizes without their notes."""
        seen = set[str]()
        shown: list[Part] = []
        for part in parts:
            if part.job.strategy == NOTES:
                job = part.job
            elif part.job.level == 1:
                job = self._of(part.job, seen)
            else:
                below = {one: shown[place].job.target_tokens for one, place in part.below.items()}
                job = self._sized(part.job, sum(below.get(one.id, self._noted(one)) for one in part.job.sources))
            shown.append(replace(part, job=job))
        return shown

    def _of(self, job: CondenseJob, seen: set[str]) -> CondenseJob:
        sources = tuple(self._source(source, seen) for source in job.sources)
        told = sum(self._told(source) for source in sources)
        size = target_and_cap(self._tree.level(1), sum(source.tokens for source in sources))
        target = self._sized(job, told).target_tokens
        if sources == job.sources and target == job.target_tokens:
            return job
        return replace(
            job, sources=sources, target_tokens=target, max_tokens=max(target, min(job.max_tokens, size.max_tokens))
        )

    def _sized(self, job: CondenseJob, told: int) -> CondenseJob:
        """`job`, asked for no more than what is worth telling of it is worth."""
        asked = max(target_and_cap(self._tree.level(job.level), told).target_tokens, LEAST_TOKENS)
        return job if asked >= job.target_tokens else replace(job, target_tokens=asked)

    def _noted(self, source: SourceText) -> int:
        """Tokens of a summary without what is listed beside it."""
        said = without_kept(source.text)
        return source.tokens if said == source.text else self._count_text(said)

    def _told(self, source: SourceText) -> int:
        """Tokens by which the length goes that is asked for: what is said without small talk, and a line of tools."""
        start = _machine_start(source)
        said = source.text[:start]
        told = [one.text for one in pieces(said[:READ_CHARS]) if one.kind == "sentence"]
        filler = sum(self._count_text(sentence) for sentence in told if is_filler(sentence))
        if start is None:
            return max(source.tokens - filler, 0)
        spoken = self._count_text(said) - filler if said else 0
        return min(source.tokens, max(spoken, 0) + _TOLD_TOKENS)

    def _source(self, source: SourceText, seen: set[str]) -> SourceText:
        start = _machine_start(source)
        if start is None:
            return source
        said, rest = source.text[:start], source.text[start:]
        shown = _new_lines(rest, seen) if source.role == "tool" else rest
        if self._count_text(shown) > self._tool_tokens:
            shown = _changed_lines(shown) if source.role == "assistant" else shown
            shown = head_and_tail(shown, max_tokens=self._tool_tokens, count=self._count_text, line=LEFT_OUT)
        if shown == rest:
            return source
        text = said + shown
        return replace(source, text=text, tokens=self._count_text(text))


def _machine_start(source: SourceText) -> int | None:
    """Where a tool's output, or the calls of tools, begin; `None` where there are none."""
    if source.role == "assistant":
        return call_start(source.text)
    return 0 if source.role == "tool" else None


def _new_lines(text: str, seen: set[str]) -> str:
    """`text` with a mark in the place of each run of sentences that an output before it has too."""
    lines = text.split("\n")
    sentences = {line.strip() for line in lines if len(line.split()) >= _REPEATED_WORDS}
    sentences = {line for line in sentences if not line.endswith(":")}  # it says whose words follow
    again = sentences & seen
    seen |= sentences
    return _marked(lines, again)


def _changed_lines(calls: str) -> str:
    """Calls without the lines that stand twice in one: what an edit replaces and what it puts there have them both.

    One that only changes their places is shown as it is.
    """
    shown: list[str] = []
    for call in split_at_calls(calls):
        lines = call.split("\n")
        again = {line for line, count in Counter(map(str.strip, lines)).items() if count > 1}
        changes = any(line.strip() not in again and not _NAMES_ARGUMENT.match(line) for line in lines[1:])
        shown.append(_marked(lines, again) if changes else call)
    return "\n".join(shown)


def _marked(lines: Sequence[str], again: Collection[str]) -> str:
    """Lines with a mark in the place of each run of those that are known."""
    shown = [SAME if line.strip() in again else line for line in lines]
    return "\n".join(line for before, line in pairwise(["", *shown]) if not line == before == SAME)


_PIECE_WORDS = 60
_FENCE_TOKENS = 24  # of the tags around a source
_MIN_PART_TARGET = 100  # a smaller part would be all headings


def split_job(job: CondenseJob, *, room_tokens: int, count_text: Callable[[str], int]) -> list[CondenseJob]:
    """Jobs over consecutive parts of the sources, each with at most `room_tokens` of them.

    A source that is larger alone is cut into pieces. A part aims at its share of the target, doubled: merging needs
    something to choose from.
    """
    pieces = [piece for source in job.sources for piece in _pieces(source, room_tokens, count_text)]
    parts = list(_packed(pieces, room_tokens))
    total = sum(piece.tokens for piece in pieces) or 1
    return [_part(job, part, total) for part in parts]


def merge_job(job: CondenseJob, summaries: Sequence[tuple[CondenseJob, str, int]]) -> CondenseJob:
    """The job over the finished parts (job, text, tokens) that gives the summary of the whole."""
    sources = tuple(
        SourceText(
            id=f"part-{number}",
            text=text,
            tokens=tokens,
            at=part.last_at,
            seq=part.sources[-1].seq,
            speaker=f"summary of part {number} of {len(summaries)}",
        )
        for number, (part, text, tokens) in enumerate(summaries, 1)
    )
    return replace(job, sources=sources)


def _part(job: CondenseJob, sources: tuple[SourceText, ...], total: int) -> CondenseJob:
    tokens = sum(source.tokens for source in sources)
    share = max(2 * job.target_tokens * tokens // total, _MIN_PART_TARGET)
    target = max(1, min(share, tokens // 2, job.max_tokens))
    return replace(
        job,
        sources=sources,
        target_tokens=target,
        max_tokens=max(target, min(tokens, target + target // 2)),
        first_at=min(source.at for source in sources),
        last_at=max(source.at for source in sources),
        message_count=max(1, job.message_count * len(sources) // max(1, len(job.sources))),
    )


def _packed(pieces: Sequence[SourceText], room_tokens: int) -> Iterator[tuple[SourceText, ...]]:
    part: list[SourceText] = []
    used = 0
    for piece in pieces:
        if part and used + piece.tokens + _FENCE_TOKENS > room_tokens:
            yield tuple(part)
            part, used = [], 0
        part.append(piece)
        used += piece.tokens + _FENCE_TOKENS
    if part:
        yield tuple(part)


def _pieces(source: SourceText, room_tokens: int, count_text: Callable[[str], int]) -> Iterator[SourceText]:
    room_tokens -= _FENCE_TOKENS
    if source.tokens <= room_tokens:
        yield source
        return
    texts = list(_cut(source.text, room_tokens, count_text))
    for number, (text, tokens) in enumerate(texts, 1):
        speaker = f"{source.speaker or source.role} (piece {number} of {len(texts)})"
        yield replace(source, id=f"{source.id}#{number}", text=text, tokens=tokens, speaker=speaker, same_as=None)


def _cut(text: str, room_tokens: int, count_text: Callable[[str], int]) -> Iterator[tuple[str, int]]:
    """Pieces of at most `room_tokens`, at sentences where there are any; together they are the whole text."""
    start, used, stop = 0, 0, 0
    for span in split_passages(text, max_words=_PIECE_WORDS):
        passage = text[span.start : span.stop]
        tokens = count_text(passage) + 1
        if used + tokens > room_tokens and stop > start:
            yield text[start:stop], used
            start, used = span.start, 0
        if tokens > room_tokens and len(passage) > 1:
            half = len(passage) // 2
            yield from _cut(passage[:half], room_tokens, count_text)
            yield from _cut(passage[half:], room_tokens, count_text)
            start, used = span.stop, 0
        else:
            used += tokens
        stop = span.stop
    if stop > start:
        yield text[start:stop], used
