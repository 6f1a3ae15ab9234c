"""Facts as rows, in the caller's transaction: written, removed, and given their standing.

A row belongs to the level-1 summary whose condensation read it, and comes and goes with it. Whether a fact holds
depends on the facts that there are, and on nothing else: whatever comes or goes, the standing of all that is connected
with it is worked out anew, so that the order of chunks, edits and readings leaves no trace. Two facts are connected
that share a key (`supersession.standing_keys`), directly or through others.

Whoever calls these has locked the session.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, delete, select, update

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.rows import from_json
from langchain_tiered_memory.sql.schema import digest_of, fact_keys, packed, storable, unpacked
from langchain_tiered_memory.sql.schema import facts as table
from langchain_tiered_memory.sql.session_rows import insert_all
from langchain_tiered_memory.summaries.facts.supersession import standing_keys, superseded
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.records import Fact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from langchain_tiered_memory.sql.column_forms import Columns

_STANDING = (
    update(table)
    .where(table.c.session_key == bindparam("session"), table.c.id == bindparam("fact"))
    .values(status=bindparam("now_status"), superseded_by=bindparam("now_by"))
)


def fact_of(row: Columns) -> Fact:
    """A row of `ltm_facts`.

    Raises:
        DamagedRowError: when a column cannot be read.
    """
    check(table, row)
    return Fact(
        kind=row["kind"],
        text=row["text"],
        seq=row["seq"],
        at=row["at"],
        by=row["by"],
        subject=row["subject"],
        attribute=row["attribute"],
        value=row["value"],
        track=unpacked(row["track"]),
        id=row["id"],
        sources=from_json(table, row, "sources", tuple[int, ...]),
        weight=row["weight"],
        mentions=row["mentions"],
        status=row["status"],
        superseded_by=row["superseded_by"],
    )


def write_facts(connection: Connection, key: int, summary_id: str, found: Sequence[Fact]) -> None:
    """Have these be the facts of a level-1 summary, in the place of those that it had.

    How often a fact was taken up by summaries above is kept where it is read again.
    """
    mine = and_(table.c.session_key == key, table.c.summary_id == summary_id)
    mentions = {row.id: row.mentions for row in connection.execute(select(table.c.id, table.c.mentions).where(mine))}
    new = {fact.id: as_stored(fact) for fact in found}
    touched = _removed(connection, key, [*mentions, *new])
    values = [_values(key, summary_id, fact, least_mentions=_count(mentions.get(fact.id))) for fact in new.values()]
    insert_all(connection, table, values)
    keys = {fact.id: {digest_of(one) for one in standing_keys(fact)} for fact in new.values()}
    rows = [{"session_key": key, "key_digest": one, "fact_id": fact} for fact, all_ in keys.items() for one in all_]
    insert_all(connection, fact_keys, rows)
    stand_anew(connection, key, touched.union(*keys.values()))


def drop_facts_of_summaries(connection: Connection, summary_ids: Sequence[str]) -> None:
    """Remove the facts that were read for these summaries, of whichever session."""
    found: dict[int, list[str]] = {}
    for part in chunks(list(summary_ids)):
        query = select(table.c.session_key, table.c.id).where(table.c.summary_id.in_(part))
        for key, fact in connection.execute(query):
            found.setdefault(key, []).append(fact)
    for key, ids in found.items():
        stand_anew(connection, key, _removed(connection, key, ids))


def drop_facts_of_messages(connection: Connection, key: int, seqs: Sequence[int]) -> None:
    """Remove the facts that any of these messages states, alone or with others."""
    stand_anew(connection, key, _removed(connection, key, stated_by(connection, key, seqs)))


def stated_by(connection: Connection, key: int, seqs: Sequence[int]) -> list[str]:
    """The ids of the facts that any of these messages states, alone or with others."""
    ids: dict[str, None] = {}
    for part in chunks(list(seqs)):
        mine = and_(table.c.session_key == key, table.c.seq.in_(part))
        ids |= dict.fromkeys(connection.scalars(select(table.c.id).where(mine)))
    wanted = frozenset(seqs)
    several = select(table.c.id, table.c.sources).where(table.c.session_key == key, table.c.sources.contains(","))
    found = (row.id for row in connection.execute(several) if not wanted.isdisjoint(_numbers(row.sources)))
    return list(ids | dict.fromkeys(found))


def take_up(connection: Connection, key: int, ids: Iterable[str]) -> None:
    """Count that a summary states these facts."""
    for part in chunks(list(dict.fromkeys(ids))):
        mine = and_(table.c.session_key == key, table.c.id.in_(part))
        connection.execute(update(table).where(mine).values(mentions=table.c.mentions + 1))


def stand_anew(connection: Connection, key: int, digests: Collection[str]) -> None:
    """Work out anew which of the facts that are connected with these keys hold."""
    facts = connected(connection, key, digests)
    gone = superseded(facts)
    changed = [
        {"session": key, "fact": fact.id, "now_status": status, "now_by": gone.get(fact.id)}
        for fact in facts
        if (fact.status, fact.superseded_by)
        != (status := "superseded" if fact.id in gone else "active", gone.get(fact.id))
    ]
    if changed:
        connection.execute(_STANDING, changed)


def connected(connection: Connection, key: int, digests: Collection[str]) -> list[Fact]:
    """The facts of a session that have one of these keys, and all that are connected with them; damaged ones not."""
    seen: set[str] = set()
    ids: dict[str, None] = {}
    waiting = set(digests)
    while waiting:
        seen |= waiting
        new = [one for one in _ids_with(connection, key, waiting) if one not in ids]
        ids |= dict.fromkeys(new)
        waiting = keys_of(connection, key, new) - seen
    return facts_with(connection, key, list(ids))


def keys_of(connection: Connection, key: int, ids: Sequence[str]) -> set[str]:
    """The digests of the keys of these facts."""
    found: set[str] = set()
    for part in chunks(list(ids)):
        mine = and_(fact_keys.c.session_key == key, fact_keys.c.fact_id.in_(part))
        found.update(connection.scalars(select(fact_keys.c.key_digest).where(mine)))
    return found


def facts_with(connection: Connection, key: int, ids: Sequence[str]) -> list[Fact]:
    """The facts with these ids, in their order in the conversation; damaged ones left out."""
    found: list[Fact] = []
    for part in chunks(list(ids)):
        mine = and_(table.c.session_key == key, table.c.id.in_(part))
        found += readable(connection, connection.execute(select(table).where(mine)).mappings(), fact_of)
    return sorted(found, key=lambda one: (one.seq, one.id))


def _ids_with(connection: Connection, key: int, digests: Collection[str]) -> list[str]:
    found: dict[str, None] = {}
    for part in chunks(sorted(digests)):
        mine = and_(fact_keys.c.session_key == key, fact_keys.c.key_digest.in_(part))
        found |= dict.fromkeys(connection.scalars(select(fact_keys.c.fact_id).where(mine)))
    return list(found)


def _removed(connection: Connection, key: int, ids: Sequence[str]) -> set[str]:
    """Remove facts with their keys. Returns the digests of those."""
    touched = keys_of(connection, key, ids)
    for part in chunks(list(dict.fromkeys(ids))):
        connection.execute(delete(table).where(table.c.session_key == key, table.c.id.in_(part)))
        connection.execute(delete(fact_keys).where(fact_keys.c.session_key == key, fact_keys.c.fact_id.in_(part)))
    return touched


def _numbers(sources: object) -> list[int]:
    try:
        return [one for one in json.loads(str(sources)) if isinstance(one, int)]
    except (ValueError, TypeError):
        return []  # a damaged row, which `verify` names


def _count(kept: object) -> int:
    return kept if type(kept) is int and kept > 0 else 1


def as_stored(fact: Fact) -> Fact:
    """A fact of which every database can keep each column, with all that state it."""
    return replace(
        fact,
        text=storable(fact.text),
        subject=storable(fact.subject),
        attribute=storable(fact.attribute),
        value=storable(fact.value),
        sources=fact.sources or (fact.seq,),
    )


def _values(key: int, summary_id: str, fact: Fact, *, least_mentions: int) -> dict[str, Any]:
    return {
        "session_key": key,
        "id": fact.id,
        "summary_id": summary_id,
        "track": packed(fact.track),
        "kind": fact.kind,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "text": fact.text,
        "by": fact.by,
        "seq": fact.seq,
        "at": fact.at,
        "sources": json.dumps(list(fact.sources)),
        "weight": fact.weight,
        "mentions": max(fact.mentions, least_mentions),
        "status": "active",
        "superseded_by": None,
    }
