"""Passages and summaries as rows, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.rows import from_json, names_in, packed_or_none, unpacked_or_none
from langchain_tiered_memory.sql.schema import packed, passages, scope_of, storable, summaries
from langchain_tiered_memory.types.records import Fact, Passage, PassageDraft, Spent, Summary, SummaryState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.sql.column_forms import Columns


PASSAGE_COLUMNS = (
    passages.c.id,
    passages.c.session_key,
    passages.c.level,
    passages.c.seq,
    passages.c.part,
    passages.c.start,
    passages.c.stop,
    passages.c.terms,
    passages.c.summary_id,
)
"""What `passage_of` wants, in its order: a question reads thousands of passages, and places are faster than names."""
_PASSAGE_NAMES = tuple(column.name for column in PASSAGE_COLUMNS)
_CHECKED_OF_PASSAGE = 8  # columns; whom a summary's id names is seen when that is read


def passage(row: Columns) -> Passage:
    """A row of `ltm_passages`; as `passage_of`."""
    return passage_of([row[name] for name in _PASSAGE_NAMES])


def passage_of(row: Iterable[Any]) -> Passage:
    """A row of `PASSAGE_COLUMNS`.

    Raises:
        DamagedRowError: when a column cannot be read.
    """
    number, session_key, level, seq, part, start, stop, terms, summary_id = values = tuple(row)
    # Nearly every row is sound: the table of forms says what is wrong, if any.
    if not (
        type(number) is type(session_key) is type(level) is type(seq) is type(part) is type(start) is type(stop) is int
        and number > 0
        and session_key > 0
        and seq > 0
        and min(level, part, start, stop) >= 0
        and isinstance(terms, str)
    ):
        check(passages, dict(zip(_PASSAGE_NAMES[:_CHECKED_OF_PASSAGE], values, strict=False)))
    return Passage(
        id=number,
        session_key=session_key,
        level=level,
        seq=seq,
        summary_id=summary_id,
        part=part,
        start=start,
        stop=stop,
        terms=terms,
    )


def passage_values(
    session_key: int,
    drafts: Sequence[PassageDraft],
    *,
    level: int,
    seq: int,
    summary_id: str | None,
    track: str,
    kind: str | None,
    at: float,
) -> list[dict[str, Any]]:
    """Rows of `ltm_passages` for one entry or summary."""
    return [
        {
            "session_key": session_key,
            "level": level,
            "seq": seq,
            "summary_id": summary_id,
            "part": draft.part,
            "start": draft.start,
            "stop": draft.stop,
            "track": packed(track),
            "kind": packed_or_none(kind),
            "at": at,
            "scope": scope_of(session_key, level),
            "terms": storable(draft.terms),
        }
        for draft in drafts
    ]


_CHECKED_OF_SUMMARY = (
    "id", "level", "state", "first_seq", "last_seq", "entry_count", "first_at", "last_at", "source_tokens", "strategy",
    "text", "tokens", "attempts", "calls", "input_tokens", "output_tokens", "seconds", "kept_identifiers",
    "information_loss", "reason", "created_at",
)  # fmt: skip
"""Columns of a summary that somebody reckons with, or that are words of ours."""


def summary(row: Columns) -> Summary:
    """A row of `ltm_summaries`.

    Raises:
        DamagedRowError: when a column cannot be read.
    """
    check(summaries, {name: row[name] for name in _CHECKED_OF_SUMMARY})
    return Summary(
        id=row["id"],
        level=row["level"],
        track=unpacked_or_none(row["track"]),
        state=SummaryState(row["state"]),
        sources=names_in(summaries, row, "sources"),
        source_digest=row["source_digest"],
        first_seq=row["first_seq"],
        last_seq=row["last_seq"],
        entry_count=row["entry_count"],
        first_at=row["first_at"],
        last_at=row["last_at"],
        source_tokens=row["source_tokens"],
        parent_id=row["parent_id"],
        strategy=row["strategy"],
        text=row["text"],
        facts=from_json(summaries, row, "facts", tuple[Fact, ...]),
        tokens=row["tokens"],
        degraded=bool(row["degraded"]),
        stale=bool(row["stale"]),
        by_rules=bool(row["by_rules"]),
        attempts=row["attempts"],
        error=row["error"],
        model=row["model"],
        spent=Spent(
            calls=row["calls"],
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            seconds=row["seconds"],
        ),
        kept_identifiers=row["kept_identifiers"],
        information_loss=row["information_loss"],
        from_tools=bool(row["from_tools"]),
        reason=row["reason"],
        created_at=row["created_at"],
    )
