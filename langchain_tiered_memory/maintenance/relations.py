"""Checks rows of different tables against each other, with the remedy where they disagree.

Nothing here reads a message: what follows from a payload is checked in `summaries/derived_checks.py`. The digests in
tombstones give nothing away: of these only their sessions and numbers are compared, and whether what is to be removed
was left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, func, insert, select

from langchain_tiered_memory.maintenance import derived_relations, message_relations
from langchain_tiered_memory.maintenance.remedies import (
    Fault,
    Known,
    Remedy,
    as_kept,
    change,
    fault,
    fits,
    remedy_for,
)
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import Columns, damage_in, key_of
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE
from langchain_tiered_memory.sql.schema import digest_of, forgotten, forgotten_sessions, removals, sessions, unpacked
from langchain_tiered_memory.transcript.tombstones import as_bytes, digest_of_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from langchain_tiered_memory.types.records import SessionRef


_CHECKS = (
    message_relations.of_the_session,
    derived_relations.of_facts,
    derived_relations.of_the_run,
    derived_relations.of_checkpoints,
    derived_relations.of_files,
    derived_relations.of_kept_files,
    message_relations.of_messages,
    derived_relations.of_plans,
    derived_relations.of_outcomes,
)
"""What one session's rows say of each other, in the order in which it is told."""


def misshapen(connection: Connection) -> Iterator[Fault]:
    """Columns of any row that hold what cannot be there; summaries that nobody can read are discarded."""
    for table in schema.metadata.sorted_tables:
        for row in connection.execute(as_kept(table).execution_options(yield_per=ROWS_AT_ONCE)).mappings():
            for error in damage_in(table, row):
                what = f"{table.name}/{key_of(table, row)}/{error.column}"
                remedy = remedy_for(table, table.c[error.column], row)
                yield fault("damaged_row", what, f"its {error.column} {error.why}", remedy)


def of_no_session(connection: Connection) -> Iterator[Fault]:
    """Rows that name a session which does not exist; and whose key was damaged, where a seal can tell."""
    there = {row["key"]: dict(row) for row in connection.execute(select(sessions)).mappings()}
    for table in schema.OF_A_SESSION:
        for key in sorted(set(connection.scalars(select(table.c.session_key).distinct())) - set(there), key=str):
            detail = f"its rows are of session {key}, which does not exist"
            yield fault("orphan_rows", f"{table.name}/{key}", detail, _brought_home(connection, table, key, there))


def _brought_home(connection: Connection, table: Table, key: object, there: dict[Any, dict[str, Any]]) -> Remedy | None:
    """What becomes of rows of a session that does not exist: its messages say by their seals whose they are."""
    theirs, entries = {"session_key": key}, schema.entries
    row = connection.execute(select(entries).where(entries.c.session_key == key).limit(1)).mappings().one_or_none()
    if row is None:
        return change(table, theirs, None) if table is not schema.revisions else None
    owner = next((one for one in there.values() if fits(one["digest"], row)), None)
    if owner is None:
        return None
    has_others = select(entries.c.seq).where(entries.c.session_key == owner["key"]).limit(1)
    if connection.execute(has_others).first() is None and type(key) is int:
        return change(sessions, {"key": owner["key"]}, {"key": key})
    return change(table, theirs, {"session_key": owner["key"]})


def of_vectors(connection: Connection, fingerprint: str | None) -> Iterator[Fault]:
    """Passages whose vector is said to be in no index that there is; and removals of what is still there."""
    passages, removed = schema.passages, schema.removed_vectors
    marked = select(passages.c.id).where(passages.c.vector.is_not(None), passages.c.vector != str(fingerprint)[:32])
    for one in connection.scalars(marked) if fingerprint is not None else ():
        remedy = change(passages, {"id": one}, {"vector": None})
        yield fault("wrong_vector_mark", one, "no embedder of that name is known", remedy)
    for one in connection.scalars(select(removed.c.passage_id).join(passages, passages.c.id == removed.c.passage_id)):
        detail = "its vector is marked for removal, but its passage exists"
        yield fault("wrong_removal", one, detail, change(removed, {"passage_id": one}, None))


def of_session(connection: Connection, ref: SessionRef) -> Iterator[Fault]:
    """What one session's rows say of each other."""
    session = connection.execute(select(sessions).where(sessions.c.key == ref.key)).mappings().one_or_none()
    if session is not None:
        known = Known(connection, dict(session), ref.session_id)
        for check in _CHECKS:
            yield from check(known)


def of_removals(connection: Connection) -> Iterator[Fault]:
    """Messages that are to be removed, and that no removal will: asked for, and not done."""
    finished = {row.key: row.finished_at for row in connection.execute(select(removals.c.key, removals.c.finished_at))}
    for one in connection.scalars(select(schema.removal_targets.c.removal).distinct()):
        if type(one) is not int or one < 1 or (one in finished and finished[one] is None):
            continue
        detail = "messages are marked to be forgotten, but their removal is gone: it is started again"
        remedy: Remedy = insert(removals).values(key=one, begun_at=0.0)
        if one in finished:
            detail = "it is marked as finished, but is not"
            remedy = change(removals, {"key": one}, {"finished_at": None})
        yield fault("wrong_removal", f"removal {one}", detail, remedy)


def of_tombstones(connection: Connection, secret: bytes) -> Iterator[Fault]:
    """Sessions and the tombstones of theirs; without the key of the digests that it is gone."""
    if not secret:
        detail = "the key of what was forgotten is gone or damaged, so it may come back: restore that row from a backup"
        yield fault("lost_forgetting_key", "ltm_meta", detail)
        return
    kept = {row["key"]: dict(row) for row in connection.execute(select(forgotten_sessions)).mappings()}
    last = select(forgotten.c.forgotten_session, func.max(forgotten.c.seq)).group_by(forgotten.c.forgotten_session)
    by_digest = {as_bytes(row["digest"]): key for key, row in kept.items()}
    newest = {key: seq if type(seq) is int else 0 for key, seq in connection.execute(last)}
    columns = (sessions.c.key, sessions.c.digest, sessions.c.session_id, sessions.c.forgotten, sessions.c.next_seq)
    known: set[Any] = set()
    living: set[Any] = set()
    for row in connection.execute(select(*columns).order_by(sessions.c.key)).mappings():
        session_id = unpacked(row["session_id"])
        known.add(row["forgotten"])
        if row["digest"] != digest_of(session_id):
            continue  # named already: which of the two is right has to be settled first
        digest = digest_of_session(secret, session_id)
        right = by_digest.get(digest)
        living.add(right)
        if row["forgotten"] != right:
            detail = "its forgotten messages are recorded under another number"
            yield fault("wrong_tombstones", session_id, detail, _reunited(kept, newest, row, right, digest))
        yield from _of_next_number(session_id, sessions, row, newest.get(right, 0))
    for key, one in kept.items():
        if key not in living:
            yield from _of_next_number(f"forgotten session {key}", forgotten_sessions, one, newest.get(key, 0))
    for key in sorted(set(newest) - set(kept) - known, key=str):
        detail = "these messages were forgotten in an unknown session: they may come back"
        yield fault("orphan_tombstones", f"ltm_forgotten/{key}", detail)


def _reunited(
    kept: Mapping[Any, object], newest: Mapping[Any, int], session: Columns, right: object, digest: bytes
) -> Remedy:
    """What brings a session and the tombstones of its messages together again."""
    noted = session["forgotten"]
    if right is not None:
        is_renumbered = noted in newest and noted not in kept and right not in newest
        if is_renumbered:
            return change(forgotten_sessions, {"key": right}, {"key": noted})
    elif noted in kept:
        return change(forgotten_sessions, {"key": noted}, {"digest": digest})
    elif noted in newest:
        return insert(forgotten_sessions).values(key=noted, digest=digest)
    return change(sessions, {"key": session["key"]}, {"forgotten": right})


def _of_next_number(what: str, table: Any, row: Columns, newest: int) -> Iterator[Fault]:  # noqa: ANN401
    if type(row["next_seq"]) is int and row["next_seq"] <= newest:
        detail = f"its next message would get the number {row['next_seq']}, and {newest} was forgotten"
        yield fault("wrong_next_number", what, detail, change(table, {"key": row["key"]}, {"next_seq": newest + 1}))
