"""Calls that have no result yet: a row for each, so that a result costs the same beside one call and beside thousands.

`open_calls` of a message's own row says only that some are left: what reads messages asks no more. All of it in the
caller's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, exists, insert, select, update

from langchain_tiered_memory.sql.schema import WAITS, digest_of, entries, open_calls, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_tiered_memory.types.records import Draft

_IN_CHUNK = 500
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
    for start in range(0, len(digests), _IN_CHUNK):
        part = digests[start : start + _IN_CHUNK]
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
