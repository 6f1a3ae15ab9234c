"""What tombstones, their sessions and removals say of each other.

The digests in them give nothing away, so of most columns nothing can be told; what can is that each has its session,
that numbers are never given again, and that nothing which is to be removed was left behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select

from langchain_tiered_memory.maintenance.remedies import Fault, Remedy
from langchain_tiered_memory.reports import Problem
from langchain_tiered_memory.sql.schema import (
    digest_of,
    forgotten,
    forgotten_sessions,
    removal_targets,
    removals,
    sessions,
    unpacked,
)
from langchain_tiered_memory.transcript.tombstones import as_bytes, digest_of_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from langchain_tiered_memory.sql.column_forms import Columns


def of_removals(connection: Connection) -> Iterator[Fault]:
    """Messages that are to be removed, and that no removal will: asked for, and not done."""
    finished = {row.key: row.finished_at for row in connection.execute(select(removals.c.key, removals.c.finished_at))}
    for one in connection.scalars(select(removal_targets.c.removal).distinct()):
        if type(one) is not int or one < 1 or (one in finished and finished[one] is None):
            continue
        key = {"key": one}
        if one in finished:
            detail, remedy = "it is said to be finished, and is not", Remedy(removals, key, {"finished_at": None})
        else:
            detail = "what was to be forgotten is noted, and the removal is gone: it is begun again"
            remedy = Remedy(removals, key, key | {"begun_at": 0.0}, absent=True)
        yield Fault(Problem(kind="wrong_removal", what=f"removal {one}", detail=detail), remedy)


@dataclass(frozen=True, slots=True)
class _Tombstones:
    """What there is of forgotten messages, in short."""

    sessions: Mapping[Any, Mapping[str, Any]]
    """Rows of `ltm_forgotten_sessions`, by their key."""
    by_digest: Mapping[bytes, Any]
    newest: Mapping[Any, int]
    """The highest number of a forgotten message, by the key of its session."""


def of_tombstones(connection: Connection, secret: bytes) -> Iterator[Fault]:
    """Sessions and the tombstones of theirs; nothing without the key of the digests, which is named elsewhere."""
    if not secret:
        return
    kept = {row["key"]: dict(row) for row in connection.execute(select(forgotten_sessions)).mappings()}
    last = select(forgotten.c.forgotten_session, func.max(forgotten.c.seq)).group_by(forgotten.c.forgotten_session)
    there = _Tombstones(
        sessions=kept,
        by_digest={as_bytes(row["digest"]): key for key, row in kept.items()},
        newest={key: seq if type(seq) is int else 0 for key, seq in connection.execute(last)},
    )
    columns = (sessions.c.key, sessions.c.digest, sessions.c.session_id, sessions.c.forgotten, sessions.c.next_seq)
    known: set[Any] = set()
    living: set[Any] = set()
    for row in connection.execute(select(*columns).order_by(sessions.c.key)).mappings():
        session_id = unpacked(row["session_id"])
        known.add(row["forgotten"])
        if row["digest"] != digest_of(session_id):
            continue  # named already: which of the two is right has to be settled first
        digest = digest_of_session(secret, session_id)
        right = there.by_digest.get(digest)
        living.add(right)
        if row["forgotten"] != right:
            detail = "the messages that were forgotten of it are noted under another number"
            problem = Problem(kind="wrong_tombstones", what=session_id, detail=detail)
            yield Fault(problem, _reunited(there, row, right, digest))
        yield from _of_next_number(session_id, sessions, row, there.newest.get(right, 0))
    for key, one in kept.items():
        if key not in living:
            yield from _of_next_number(f"forgotten session {key}", forgotten_sessions, one, there.newest.get(key, 0))
    for key in sorted(set(there.newest) - set(kept) - known, key=str):
        detail = "these messages were forgotten in a session of which nothing is known: they may come back"
        yield Fault(Problem(kind="orphan_tombstones", what=f"ltm_forgotten/{key}", detail=detail), None)


def _reunited(there: _Tombstones, session: Columns, right: object, digest: bytes) -> Remedy:
    """What brings a session and the tombstones of its messages together again."""
    noted = session["forgotten"]
    if right is not None:
        is_renumbered = noted in there.newest and noted not in there.sessions and right not in there.newest
        if is_renumbered:
            return Remedy(forgotten_sessions, {"key": right}, {"key": noted})
    elif noted in there.sessions:
        return Remedy(forgotten_sessions, {"key": noted}, {"digest": digest})
    elif noted in there.newest:
        return Remedy(forgotten_sessions, {"key": noted}, {"key": noted, "digest": digest}, absent=True)
    return Remedy(sessions, {"key": session["key"]}, {"forgotten": right})


def _of_next_number(what: str, table: Any, row: Columns, newest: int) -> Iterator[Fault]:  # noqa: ANN401
    if type(row["next_seq"]) is int and row["next_seq"] <= newest:
        detail = f"its next message would get the number {row['next_seq']}, and {newest} was forgotten"
        problem = Problem(kind="wrong_next_number", what=what, detail=detail)
        yield Fault(problem, Remedy(table, {"key": row["key"]}, {"next_seq": newest + 1}))
