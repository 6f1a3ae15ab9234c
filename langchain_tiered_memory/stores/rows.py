"""Rows to records and back: the one place that knows both."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.records import (
    Draft,
    Entry,
    Fact,
    Passage,
    PassageDraft,
    SessionRef,
    Spent,
    Summary,
    SummaryState,
)
from langchain_tiered_memory.stores.schema import digest_of, entries, packed, scope_of, storable, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import RowMapping


def _unpacked_or_none(value: str | None) -> str | None:
    return None if value is None else unpacked(value)


def _packed_or_none(value: str | None) -> str | None:
    return None if value is None else packed(value)


def names_to_json(names: Sequence[str]) -> str:
    """Ids that came from outside, as a list in one column. Packed first: JSON would join halves of a surrogate pair."""
    return json.dumps([packed(name) for name in names])


def names_from_json(value: str | None) -> list[str]:
    """The ids that `names_to_json` was given; none for an empty column."""
    return [unpacked(name) for name in json.loads(value)] if value else []


def session_ref(row: RowMapping) -> SessionRef:
    """A row of `ltm_sessions`."""
    return SessionRef(
        key=row["key"],
        session_id=unpacked(row["session_id"]),
        user=_unpacked_or_none(row["owner"]),
        title=_unpacked_or_none(row["title"]),
        epoch=row["epoch"],
        ended_at=row["ended_at"],
    )


ENTRY_COLUMNS = (
    entries.c.seq,
    entries.c.message_id,
    entries.c.role,
    entries.c.text,
    entries.c.payload,
    entries.c.digest,
    entries.c.tokens,
    entries.c.at,
    entries.c.name,
    entries.c.track,
    entries.c.kind,
    entries.c.task,
    entries.c.calls,
    entries.c.answers,
    entries.c.group_seq,
    entries.c.pinned,
    entries.c.revision,
    entries.c.summary_id,
)
"""What `entry_of` wants, in its order: a context reads hundreds of entries, and places are faster than names."""
_ENTRY_NAMES = tuple(column.name for column in ENTRY_COLUMNS)


def entry(row: RowMapping) -> Entry:
    """A row of `ltm_entries`."""
    return entry_of([row[name] for name in _ENTRY_NAMES])


def entry_of(row: Iterable[Any]) -> Entry:
    """A row of `ENTRY_COLUMNS`."""
    seq, message_id, role, text, payload, digest, tokens, at, *rest = row
    name, track, kind, task, calls, answers, group, pinned, revision, summary_id = rest
    return Entry(
        seq=seq,
        id=unpacked(message_id),
        role=role,
        text=text,
        payload=payload,
        digest=digest,
        tokens=tokens,
        at=at,
        name=None if name is None else unpacked(name),
        track=unpacked(track),
        kind=None if kind is None else unpacked(kind),
        task=None if task is None else unpacked(task),
        calls=tuple(names_from_json(calls)) if calls else (),
        answers=None if answers is None else unpacked(answers),
        group=group,
        pinned=bool(pinned),
        revision=revision,
        summary_id=summary_id,
    )


_MAX_TRACK_CHARS = 1000
"""As stored: PostgreSQL indexes no row of more than 2,704 bytes, and tracks are looked up through an index."""


def _packed_track(track: str) -> str:
    found = packed(track)
    if len(found) > _MAX_TRACK_CHARS:
        msg = (
            f"the track's name takes {len(found)} characters, at most {_MAX_TRACK_CHARS} can be looked up by (one "
            "outside ASCII takes up to 10): give the track a short name"
        )
        raise InvalidInputError(msg)
    return found


def entry_values(draft: Draft) -> dict[str, Any]:
    """What an insert or an edit writes for a draft, without its number and group.

    Raises:
        InvalidInputError: for a track whose name is too long.
    """
    return {
        "message_id": packed(draft.id),
        "id_digest": digest_of(draft.id),
        "track": _packed_track(draft.track),
        "role": draft.role,
        "name": _packed_or_none(draft.name),
        "kind": _packed_or_none(draft.kind),
        "task": _packed_or_none(draft.task),
        "text": storable(draft.text),
        "payload": draft.payload,
        "digest": draft.digest,
        "tokens": draft.tokens,
        "at": draft.at,
        "calls": names_to_json(draft.calls) if draft.calls else None,
        "answers": _packed_or_none(draft.answers),
    }


def passage(row: RowMapping) -> Passage:
    """A row of `ltm_passages`."""
    return Passage(
        id=row["id"],
        session_key=row["session_key"],
        level=row["level"],
        seq=row["seq"],
        summary_id=row["summary_id"],
        part=row["part"],
        start=row["start"],
        stop=row["stop"],
        terms=row["terms"],
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
            "kind": _packed_or_none(kind),
            "at": at,
            "scope": scope_of(session_key, level),
            "terms": storable(draft.terms),
        }
        for draft in drafts
    ]


def facts_to_json(facts: Sequence[Fact]) -> str:
    """Facts as the `facts` column keeps them. Those of before facts had a speaker lack `by`, and get its default."""
    return json.dumps([dataclasses.asdict(fact) for fact in facts])


def summary(row: RowMapping) -> Summary:
    """A row of `ltm_summaries`."""
    return Summary(
        id=row["id"],
        level=row["level"],
        track=_unpacked_or_none(row["track"]),
        state=SummaryState(row["state"]),
        sources=tuple(names_from_json(row["sources"])),
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
        facts=tuple(Fact(**fact) for fact in json.loads(row["facts"])),
        tokens=row["tokens"],
        degraded=bool(row["degraded"]),
        stale=bool(row["stale"]),
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
