"""Messages as rows of `ltm_entries`, and back; their seals; the rows of calls without a result."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, get_args

from sqlalchemy import Connection, bindparam, delete, exists, insert, select, update

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.sql.column_forms import Columns, check, damage_in
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE, names_in, names_to_json, packed_or_none
from langchain_tiered_memory.sql.schema import WAITS, digest_of, entries, open_calls, packed, storable, unpacked
from langchain_tiered_memory.types.drafts import counter_mark
from langchain_tiered_memory.types.records import EARLIEST, LATEST, Entry, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import RowMapping

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


def entry_again(row: Iterable[Any], reread: Callable[[str], Draft | None]) -> Entry:
    """A row of `ENTRY_COLUMNS` whose derived columns are made again from its payload, as far as that can be read.

    Raises:
        DamagedRowError: when what is damaged is no derived column: a message without a place cannot be shown.
    """
    values = dict(zip(_ENTRY_NAMES, row, strict=True))
    payload = values["payload"] = values["payload"] if isinstance(values["payload"], str) else ""
    draft = reread(payload)
    if draft is not None:
        derived = entry_values(draft)
        values |= {name: derived[name] for name in ("role", "name", "text", "digest", "tokens", "calls", "answers")}
    else:
        values["digest"] = values["digest"] if isinstance(values["digest"], str) else ""
        text = values["text"] = values["text"] if isinstance(values["text"], str) else ""
        values["role"] = values["role"] if values["role"] in ROLES else "other"
        # Bytes are never fewer than tokens: a view with it stays within its budget.
        values["tokens"] = len(text.encode("utf-8", "replace"))
        values["calls"] = None
    for name, otherwise in (("group_seq", values["seq"]), ("at", 0.0), ("revision", 0), ("summary_id", None)):
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
            f"the {what}'s name takes {len(found)} characters, at most {_MAX_NAME_CHARS} can be looked up by (one "
            f"outside ASCII takes up to 10): give the {what} a short name"
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


_WAITING_FOR = (
    select(open_calls.c.seq, open_calls.c.track, open_calls.c.call)
    .where(
        open_calls.c.session_key == bindparam("session"),
        open_calls.c.call_digest.in_(bindparam("digests", expanding=True)),
    )
    .order_by(open_calls.c.seq)
)
_ANSWERED = delete(open_calls).where(
    open_calls.c.session_key == bindparam("session"),
    open_calls.c.call_digest == bindparam("digest"),
    open_calls.c.seq == bindparam("head"),
)
_ALL_ANSWERED = (
    update(entries)
    .where(
        entries.c.session_key == bindparam("session"),
        entries.c.seq == bindparam("head"),
        ~exists().where(open_calls.c.session_key == bindparam("session"), open_calls.c.seq == bindparam("head")),
    )
    .values(open_calls=None)
)


def waiting_for(connection: Connection, key: int, drafts: Sequence[Draft]) -> dict[tuple[str, str], int]:
    """Which stored message waits for each call that `drafts` answer: (track, call) to the latest one's number."""
    digests = list(dict.fromkeys(digest_of(draft.answers) for draft in drafts if draft.answers is not None))
    found: dict[tuple[str, str], int] = {}
    for start in range(0, len(digests), ROWS_AT_ONCE):
        part = digests[start : start + ROWS_AT_ONCE]
        for seq, track, call in connection.execute(_WAITING_FOR, {"session": key, "digests": part}):
            found[unpacked(track), unpacked(call)] = seq
    return found


def write_open(connection: Connection, key: int, seq: int, *, track: str, calls: Iterable[str]) -> str | None:
    """Say anew which calls of a message have no result; what its own row has to say of that."""
    connection.execute(delete(open_calls).where(open_calls.c.session_key == key, open_calls.c.seq == seq))
    values = open_values(key, seq, track=track, calls=calls)
    if values:
        connection.execute(insert(open_calls), values)
    return WAITS if values else None


def open_values(key: int, seq: int, *, track: str, calls: Iterable[str]) -> list[dict[str, Any]]:
    """The rows of a message's calls without a result."""
    return [
        {"session_key": key, "seq": seq, "track": packed(track), "call": packed(call), "call_digest": digest_of(call)}
        for call in dict.fromkeys(calls)
    ]


def close_calls(connection: Connection, key: int, answered: Mapping[int, Sequence[str]]) -> None:
    """Note that calls of stored messages got their results: the calls by the number of the message that made them."""
    gone = [
        {"session": key, "digest": digest_of(call), "head": head} for head, calls in answered.items() for call in calls
    ]
    if not gone:
        return
    connection.execute(_ANSWERED, gone)
    connection.execute(_ALL_ANSWERED, [{"session": key, "head": head} for head in answered])


def unanswered(connection: Connection, key: int, head: int, calls: Sequence[str]) -> list[str]:
    """Those of a message's calls that no message of its group answers."""
    if not calls:
        return []
    query = select(entries.c.answers).where(entries.c.session_key == key, entries.c.group_seq == head)
    answered = set(connection.scalars(query))
    return [call for call in calls if packed(call) not in answered]


def drop_open(connection: Connection, key: int, seqs: Sequence[int]) -> None:
    """Nothing waits for the calls of messages that are removed."""
    connection.execute(delete(open_calls).where(open_calls.c.session_key == key, open_calls.c.seq.in_(list(seqs))))
