"""Messages as rows of `ltm_entries`, and back; their seals; which of their calls wait for a result."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from sqlalchemy import Connection, and_, bindparam, select

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.sql.column_forms import Columns, check, damage_in
from langchain_tiered_memory.sql.damage import readable_or
from langchain_tiered_memory.sql.rows import names_in, names_to_json, packed_or_none
from langchain_tiered_memory.sql.schema import WAITS, digest_of, entries, packed, storable, unpacked
from langchain_tiered_memory.types.drafts import counter_mark
from langchain_tiered_memory.types.records import EARLIEST, LATEST, Entry, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.types.drafts import Incoming
    from langchain_tiered_memory.types.records import Draft


ROLES = frozenset(get_args(Role))

_ENTRY_NAMES = (
    "seq", "message_id", "role", "text", "payload", "digest", "tokens", "at", "name", "track", "kind", "task", "calls",
    "answers", "group_seq", "pinned", "revision", "summary_id",
)  # fmt: skip
ENTRY_COLUMNS = tuple(entries.c[name] for name in _ENTRY_NAMES)
"""What `entry_of` wants, in its order: a context reads hundreds of entries, and places are faster than names."""


def entry(row: RowMapping) -> Entry:
    """A row of `ltm_entries`."""
    return entry_of([row[name] for name in _ENTRY_NAMES])


def entry_of(row: Iterable[Any]) -> Entry:
    """A row of `ENTRY_COLUMNS`."""
    values = tuple(row)
    seq, message_id, role, text, payload, digest, tokens, at, *rest = values
    name, track, kind, task, calls, answers, group, pinned, revision, summary_id = rest
    if not (
        type(seq) is int
        and type(group) is int
        and type(tokens) is int
        and tokens >= 0
        and isinstance(at, float | int)
        and EARLIEST <= at <= LATEST
        and role in ROLES
        and isinstance(text, str)
        and isinstance(payload, str)
        and isinstance(digest, str)
        and isinstance(revision, int)
        and (summary_id is None or isinstance(summary_id, str))
    ):
        check(entries, dict(zip(_ENTRY_NAMES, values, strict=True)))
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
        calls=() if calls is None else names_in(entries, {"seq": seq, "calls": calls}, "calls"),
        answers=None if answers is None else unpacked(answers),
        group=group,
        pinned=bool(pinned),
        revision=revision,
        summary_id=summary_id,
    )


def entry_again(row: Iterable[Any], reread: Callable[[str], Incoming | None]) -> Entry:
    """A row of `ENTRY_COLUMNS` whose derived columns are made again from its payload, as far as that can be read.

    Raises:
        DamagedRowError: when what is damaged is no derived column: a message without a place cannot be shown.
    """
    values = dict(zip(_ENTRY_NAMES, row, strict=True))
    payload = values["payload"] = values["payload"] if isinstance(values["payload"], str) else ""
    again = reread(payload)
    derived = entry_values(again.draft) if again is not None else {}
    if derived:
        values |= {name: derived[name] for name in ("role", "name", "text", "digest", "tokens", "calls")}
    else:
        values["digest"] = values["digest"] if isinstance(values["digest"], str) else ""
        text = values["text"] = values["text"] if isinstance(values["text"], str) else ""
        values["role"] = values["role"] if values["role"] in ROLES else "other"
        # Bytes are never fewer than tokens: a view with it stays within its budget.
        values["tokens"] = len(text.encode("utf-8", "replace"))
        values["calls"] = None
    # An edited message goes on answering the call that it answered, whatever its new words say.
    stored = {
        "group_seq": values["seq"],
        "at": 0.0,
        "revision": 0,
        "summary_id": None,
        "answers": derived.get("answers"),
    }
    for name, otherwise in stored.items():
        if any(damage_in(entries, {name: values[name]})):
            values[name] = otherwise
    return entry_of(values.values())


_MAX_NAME_CHARS = 1000
"""As stored: PostgreSQL indexes no row of more than 2,704 bytes, and tracks and tasks are looked up by an index."""


def short_name(value: str, what: str) -> str:
    """A track's or task's name as stored."""
    found = packed(value)
    if len(found) > _MAX_NAME_CHARS:
        msg = (
            f"the {what}'s name takes {len(found)} characters, and at most {_MAX_NAME_CHARS} can be looked up (one "
            f"outside ASCII takes up to 10): give the {what} a shorter name"
        )
        raise InvalidInputError(msg)
    return found


def entry_values(draft: Draft) -> dict[str, Any]:
    """What an insert or an edit writes for a draft, without its number and group."""
    return {
        "message_id": packed(draft.id),
        "id_digest": digest_of(draft.id),
        "track": short_name(draft.track, "track"),
        "role": draft.role,
        "name": packed_or_none(draft.name),
        "kind": packed_or_none(draft.kind),
        "task": packed_or_none(draft.task),
        "text": storable(draft.text),
        "payload": draft.payload,
        "digest": draft.digest,
        "tokens": draft.tokens,
        "counter": counter_mark(draft.counter) if draft.counter else None,
        "at": draft.at,
        "calls": names_to_json(draft.calls) if draft.calls else None,
        "answers": packed_or_none(draft.answers),
    }


def seal_of_row(session_digest: str, row: Columns) -> str:
    """What proves that a message still stands where, when and as what it was given.

    Over values as they are stored. None of them follows from another: only what was noted when the message came says
    which of two that disagree was damaged.
    """
    given = ("seq", "message_id", "track", "at", "kind", "task", "digest")
    said = [session_digest, *(float(row[name]) if name == "at" else row[name] for name in given)]
    return hashlib.sha256(json.dumps(said, default=repr).encode("ascii")).hexdigest()[:32]


OPEN_HEADS = 200
"""Unanswered groups that a late tool result may still join; aborted runs leave such groups behind."""
_heads = (
    select(entries.c.seq, entries.c.track, entries.c.calls)
    .where(
        entries.c.session_key == bindparam("session"), entries.c.waits.is_(True), entries.c.track == bindparam("track")
    )
    .order_by(entries.c.seq.desc())
    .limit(OPEN_HEADS)
    .subquery()
)
_results = entries.alias()
_WAITING = select(_heads.c.seq, _heads.c.calls, _results.c.answers).select_from(
    _heads.outerjoin(
        _results,
        and_(
            _results.c.session_key == bindparam("session"),
            _results.c.group_seq == _heads.c.seq,
            _results.c.answers.is_not(None),
        ),
    )
)


def waiting_calls(connection: Connection, key: int, drafts: Sequence[Draft]) -> list[tuple[int, tuple[str, str]]]:
    """The calls without a result on the tracks of the results among `drafts`, in their order.

    Each is the number of the message that made it, and what `assign_groups` knows it by: its track and id.
    """
    found: list[tuple[int, tuple[str, str]]] = []
    for track in dict.fromkeys(draft.track for draft in drafts if draft.answers is not None):
        calls: dict[int, tuple[str, ...]] = {}
        answered: set[tuple[int, str]] = set()
        for seq, made, answers in connection.execute(_WAITING, {"session": key, "track": packed(track)}):
            if seq not in calls:
                calls[seq] = stored_calls(connection, {"seq": seq, "calls": made})
            if answers is not None:
                answered.add((seq, unpacked(answers)))
        found += [(seq, (track, call)) for seq in sorted(calls) for call in calls[seq] if (seq, call) not in answered]
    return found


def stored_calls(connection: Connection, row: Columns) -> tuple[str, ...]:
    """The calls of a stored message; none where that column is damaged, which is noted."""
    calls: tuple[str, ...] = readable_or(connection, partial(names_in, entries, row, "calls"), otherwise=())
    return calls


def mark_of(connection: Connection, key: int, head: int, calls: Sequence[str]) -> str | None:
    """What a message's own row has to say of its calls: whether one has no result in its group."""
    if not calls:
        return None
    query = select(entries.c.answers).where(entries.c.session_key == key, entries.c.group_seq == head)
    answered = set(connection.scalars(query))
    return WAITS if any(packed(call) not in answered for call in calls) else None
