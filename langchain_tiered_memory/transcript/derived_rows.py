"""What is derived from messages as rows: passages, touched files, summaries. All of it in the caller's transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, case, delete, func, select, update

from langchain_tiered_memory.sql.column_forms import Columns, check
from langchain_tiered_memory.sql.rows import (
    insert_all,
    insert_if_absent,
    names_in,
    packed_or_none,
    unpacked_or_none,
)
from langchain_tiered_memory.sql.schema import (
    digest_of,
    entries,
    files,
    packed,
    passages,
    removed_vectors,
    scope_of,
    sessions,
    storable,
    summaries,
    unpacked,
)
from langchain_tiered_memory.types.records import EARLIEST, LATEST, Passage, PassageDraft, Spent, Summary, SummaryState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.types.drafts import FileTouch


PASSAGE_COLUMNS = tuple(passages.c[name] for name in Passage._fields)
"""What `passage_of` wants, in its order: a question reads thousands of passages, and places are faster than names."""
_CHECKED_OF_PASSAGE = 8  # columns; whom a summary's id names is seen when that is read


def passage_of(row: Iterable[Any]) -> Passage:
    """A row of `PASSAGE_COLUMNS`."""
    read = number, session_key, level, seq, part, start, stop, terms, _ = Passage._make(row)
    # Nearly every row is sound: the table of forms says what is wrong, if any.
    if not (
        type(number) is type(session_key) is type(level) is type(seq) is type(part) is type(start) is type(stop) is int
        and number > 0
        and session_key > 0
        and seq > 0
        and min(level, part, start, stop) >= 0
        and isinstance(terms, str)
    ):
        check(passages, dict(zip(Passage._fields[:_CHECKED_OF_PASSAGE], read, strict=False)))
    return read


def passage_values(
    session_key: int,
    drafts: Sequence[PassageDraft],
    *,
    seq: int,
    track: str,
    kind: str | None,
    at: float,
    level: int = 0,
    summary_id: str | None = None,
) -> list[dict[str, Any]]:
    """Rows of `ltm_passages` for one message or summary."""
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


def summary_passages(session_key: int, summary: Summary, drafts: Sequence[PassageDraft]) -> list[dict[str, Any]]:
    """Rows of `ltm_passages` for a summary."""
    place: dict[str, Any] = {"seq": summary.last_seq, "level": summary.level, "summary_id": summary.id}
    return passage_values(session_key, drafts, track=summary.track or "", kind="summary", at=summary.last_at, **place)


_AS_KEPT = (
    "id", "level", "source_digest", "first_seq", "last_seq", "entry_count", "first_at", "last_at", "source_tokens",
    "parent_id", "strategy", "text", "tokens", "attempts", "error", "model", "kept_identifiers", "information_loss",
    "reason", "created_at", "verdict", "verdict_note",
)  # fmt: skip
_FLAGS = ("degraded", "stale", "by_rules", "from_tools")
_CHECKED_OF_SUMMARY = (
    "id", "level", "state", "first_seq", "last_seq", "entry_count", "first_at", "last_at", "source_tokens", "strategy",
    "text", "tokens", "attempts", "calls", "input_tokens", "output_tokens", "seconds", "kept_identifiers",
    "information_loss", "reason", "created_at", "verdict", "verdict_note",
)  # fmt: skip
"""Columns of a summary that somebody reckons with, or that are words of ours."""


def summary(row: Columns) -> Summary:
    """A row of `ltm_summaries`."""
    check(summaries, {name: row[name] for name in _CHECKED_OF_SUMMARY})
    kept: dict[str, Any] = {name: row[name] for name in _AS_KEPT} | {name: bool(row[name]) for name in _FLAGS}
    return Summary(
        **kept,
        track=unpacked_or_none(row["track"]),
        state=SummaryState(row["state"]),
        sources=names_in(summaries, row, "sources"),
        spent=Spent(**{name: row[name] for name in ("calls", "input_tokens", "output_tokens", "seconds")}),
    )


TERM_COUNT = func.length(passages.c.terms) - func.length(func.replace(passages.c.terms, " ", "")) + 1
"""Terms of one passage, counted by the database as `terms.count(" ") + 1` counts them here."""


def drop_passages(connection: Connection, condition: ColumnElement[bool]) -> tuple[int, int]:
    """Remove passages and note their vectors for removal. Returns how many, and how many terms they had."""
    count, terms = connection.execute(
        select(func.count(), func.coalesce(func.sum(TERM_COUNT), 0)).where(condition)
    ).one()
    if count:
        noted = select(passages.c.id).where(condition)
        connection.execute(insert_if_absent(connection, removed_vectors).from_select(["passage_id"], noted))
        connection.execute(delete(passages).where(condition))
    return int(count), int(terms)


def totals_of(connection: Connection, key: int) -> dict[str, Any]:
    """A session's running figures, counted; a time that damage put there is none."""
    newest = func.max(case((entries.c.at.between(EARLIEST, LATEST), entries.c.at))).label("last_at")
    tokens = func.coalesce(func.sum(entries.c.tokens), 0).label("tokens")
    of_messages = select(func.count().label("entries"), tokens, newest).where(entries.c.session_key == key)
    terms = func.coalesce(func.sum(TERM_COUNT), 0).label("terms")
    mine = (passages.c.session_key == key, passages.c.level == 0)
    of_passages = select(func.count().label("passages"), terms).where(*mine)
    counted = (connection.execute(query).mappings().one() for query in (of_messages, of_passages))
    return {name: value for row in counted for name, value in row.items()}


def count_anew(connection: Connection, key: int) -> None:
    """Write a session's running figures anew."""
    connection.execute(update(sessions).where(sessions.c.key == key).values(totals_of(connection, key)))


def ancestors(connection: Connection, summary_ids: Sequence[str]) -> list[str]:
    """The given summaries and everything above them, lowest first. A damaged parent is no summary, and left out."""
    found = dict.fromkeys(summary_ids)
    level = list(found)
    while level:
        query = select(summaries.c.parent_id).where(summaries.c.id.in_(level), summaries.c.parent_id.is_not(None))
        level = [one for one in dict.fromkeys(connection.scalars(query)) if isinstance(one, str) and one not in found]
        found |= dict.fromkeys(level)
    return list(found)


def outdated(now: float) -> dict[str, Any]:
    """The columns of a summary that was made from an older text; due for a remake at once.

    `touched` says the same to whoever is making it at this moment: its text will be stale when it is committed.
    """
    return {"stale": True, "touched": True, "retry_at": now}


def touch_values(key: int, *, track: str, seq: int, at: float, touches: Sequence[FileTouch]) -> list[dict[str, Any]]:
    """Rows for one message: one for each path, as it was touched last, but as written where it was written at all."""
    by_path: dict[str, FileTouch] = {}
    for touch in touches:
        known = by_path.get(touch.path)
        if known is None or known.operation != "write":
            by_path[touch.path] = touch
    return [
        {
            "session_key": key,
            "seq": seq,
            "path_digest": digest_of(path),
            "track": packed(track),
            "path": packed(path),
            "operation": touch.operation,
            "tool": packed(touch.tool),
            "at": at,
        }
        for path, touch in by_path.items()
    ]


def write_touches(
    connection: Connection, key: int, *, track: str, seq: int, at: float, touches: Sequence[FileTouch]
) -> None:
    """What an edited message touches takes the place of what it touched before."""
    drop_touches(connection, key, [seq])
    insert_all(connection, files, touch_values(key, track=track, seq=seq, at=at, touches=touches))


def drop_touches(connection: Connection, key: int, seqs: Sequence[int]) -> None:
    """Forget what messages touched; at most as many as fit one `IN (...)`."""
    connection.execute(delete(files).where(files.c.session_key == key, files.c.seq.in_(list(seqs))))


def touched_by(connection: Connection, key: int, seqs: Sequence[int]) -> list[str]:
    """Paths of files that messages read or wrote, as they stand there; at most as many as fit one `IN (...)`."""
    mine = (files.c.session_key == key, files.c.seq.in_(list(seqs)), files.c.operation.in_(("read", "write")))
    return [unpacked(path) for path in dict.fromkeys(connection.scalars(select(files.c.path).where(*mine)))]
