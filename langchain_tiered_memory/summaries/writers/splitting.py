"""Splits a job that is larger than the condensing model's window, so that nothing is dropped unseen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText
from langchain_tiered_memory.text.passages import split_passages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
