"""Facts as rows, in the caller's transaction: written, removed, and given their standing.

A row belongs to the level-1 summary whose condensation read it, and comes and goes with it. Whether a fact holds
depends on the facts that there are, and on nothing else: whatever comes or goes, the standing of all the session's
facts is worked out anew, so that the order of chunks, edits and readings leaves no trace.

Whoever calls these has locked the session.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, delete, func, or_, select, update

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.rows import from_json, insert_all
from langchain_tiered_memory.sql.schema import beside_index, entries, packed, storable, unpacked
from langchain_tiered_memory.sql.schema import facts as table
from langchain_tiered_memory.summaries.facts.supersession import near, superseded, words_to_seek
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.records import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.sql.column_forms import Columns

_NEWEST_SEQS = 400
"""Messages before those that are new, of whose facts all subjects are read: most words are found often enough there."""
_MOST_WORDS = 60
"""More words than these are not looked for by the database: then all subjects are read."""
_PACKED, _NUMBERS = ("speaker", "track"), ("sources", "instead_of")
_PLAIN = tuple(
    one.name for one in fields(Fact) if one.name not in {*_PACKED, *_NUMBERS, "by_model"} and one.name in table.c
)
"""Columns of facts, by the form in which they keep a field."""
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
    values: dict[str, Any] = {name: row[name] for name in _PLAIN}
    values |= {name: unpacked(row[name]) for name in _PACKED}
    values |= {name: from_json(table, row, name, tuple[int, ...]) for name in _NUMBERS}
    return Fact(**values, by_model=bool(row["by_model"]))


def write_facts(connection: Connection, key: int, summary_id: str, found: Sequence[Fact]) -> None:
    """Have these be the facts of a level-1 summary, in the place of those that it had.

    How often a fact was taken up by summaries above is kept where it is read again.
    """
    mine = and_(table.c.session_key == key, table.c.summary_id == summary_id)
    mentions = {row.id: row.mentions for row in connection.execute(select(table.c.id, table.c.mentions).where(mine))}
    new = {fact.id: as_stored(fact) for fact in found}
    newest = connection.scalar(select(func.max(table.c.seq)).where(table.c.session_key == key))
    is_behind = not mentions and isinstance(newest, int) and all(fact.seq > newest for fact in new.values())
    _remove(connection, key, [*mentions, *new])
    values = [_values(key, summary_id, fact, least_mentions=_count(mentions.get(fact.id))) for fact in new.values()]
    insert_all(connection, table, values)
    if mentions or new:
        stand_anew(connection, key, after=newest if is_behind else None)


def drop_facts_of_summaries(connection: Connection, summary_ids: Sequence[str]) -> None:
    """Remove the facts that were read for these summaries, of whichever session."""
    found: dict[int, list[str]] = {}
    for part in chunks(list(summary_ids)):
        query = select(table.c.session_key, table.c.id).where(table.c.summary_id.in_(part))
        for key, fact in connection.execute(query):
            found.setdefault(key, []).append(fact)
    for key, ids in found.items():
        _remove(connection, key, ids)
        stand_anew(connection, key)


def drop_facts_of_messages(connection: Connection, key: int, seqs: Sequence[int]) -> None:
    """Remove the facts that any of these messages states, alone or with others."""
    ids = stated_by(connection, key, seqs)
    if ids:
        _remove(connection, key, ids)
        stand_anew(connection, key)


def stated_by(connection: Connection, key: int, seqs: Sequence[int]) -> list[str]:
    """The ids of the facts that any of these messages states, alone or with others."""
    wanted = frozenset(seqs)
    ids: dict[str, None] = {}
    for part in chunks(sorted(wanted)):
        # The facts of a message stand under its summary: no other message of the session is looked at.
        covered = and_(entries.c.session_key == key, entries.c.seq.in_(part), entries.c.summary_id.is_not(None))
        owners = list(dict.fromkeys(connection.scalars(select(entries.c.summary_id).where(covered))))
        for some in chunks(owners):
            beside = select(table.c.id, table.c.sources).where(table.c.summary_id.in_(some))
            found = connection.execute(beside.where(beside_index(table.c.session_key) == key))
            ids |= dict.fromkeys(row.id for row in found if not wanted.isdisjoint(_numbers(row.sources)))
    return list(ids)


def take_up(connection: Connection, key: int, ids: Iterable[str]) -> None:
    """Count that a summary states these facts."""
    for part in chunks(list(dict.fromkeys(ids))):
        mine = and_(table.c.session_key == key, table.c.id.in_(part))
        connection.execute(update(table).where(mine).values(mentions=table.c.mentions + 1))


def stand_anew(connection: Connection, key: int, *, after: int | None = None) -> None:
    """Work out anew which of a session's facts hold.

    Where all that was written since stands behind message `after`, the standing of what came before is right without
    it; `None` where facts came or went among the others.
    """
    if after is None:
        facts = all_facts(connection, key)
        gone = superseded(facts)
    else:
        facts = _concerned(connection, key, after)
        before = {one.id: one.superseded_by for one in facts if one.seq <= after and one.superseded_by is not None}
        gone = superseded(facts, settled=before, after=after)
    changed = [
        {"session": key, "fact": fact.id, "now_status": status, "now_by": gone.get(fact.id)}
        for fact in facts
        if (fact.status, fact.superseded_by)
        != (status := "superseded" if fact.id in gone else "active", gone.get(fact.id))
    ]
    if changed:
        connection.execute(_STANDING, changed)


def _concerned(connection: Connection, key: int, after: int) -> list[Fact]:
    """The facts behind a message, and those before it that they may concern.

    Of the newest messages the subjects of all are read; of what is older, which grows with the session, only those that
    have a word of which there were too few.
    """
    columns = (table.c.id, table.c.kind, table.c.seq, table.c.subject, table.c.instead_of)
    query = select(*columns).where(table.c.session_key == key)
    known = connection.execute(query.where(table.c.seq > after - _NEWEST_SEQS)).all()
    new = [one for one in known if one.seq > after]
    before = [one for one in known if one.seq <= after]
    words = words_to_seek(new, before)
    if words:
        older = query.where(table.c.seq <= after - _NEWEST_SEQS)
        if len(words) <= _MOST_WORDS:
            older = older.where(or_(*(table.c.subject.contains(word, autoescape=True) for word in sorted(words))))
        before += connection.execute(older).all()
    beside = near(new, before)
    named = frozenset(seq for one in new for seq in _numbers(one.instead_of))
    of_named: list[str] = []
    for part in chunks(sorted(named)):
        of_named += connection.scalars(select(table.c.id).where(table.c.session_key == key, table.c.seq.in_(part)))
    return facts_with(connection, key, list(dict.fromkeys([*of_named, *(one.id for one in (*beside, *new))])))


def all_facts(connection: Connection, key: int) -> list[Fact]:
    """Every fact of a session, in their order in the conversation; damaged ones left out."""
    query = select(table).where(table.c.session_key == key)
    found = readable(connection, connection.execute(query).mappings(), fact_of)
    return sorted(found, key=lambda one: (one.seq, one.id))


def facts_with(connection: Connection, key: int, ids: Sequence[str]) -> list[Fact]:
    """The facts with these ids, in their order in the conversation; damaged ones left out."""
    found: list[Fact] = []
    for part in chunks(list(ids)):
        mine = and_(table.c.session_key == key, table.c.id.in_(part))
        found += readable(connection, connection.execute(select(table).where(mine)).mappings(), fact_of)
    return sorted(found, key=lambda one: (one.seq, one.id))


def _remove(connection: Connection, key: int, ids: Sequence[str]) -> None:
    for part in chunks(list(dict.fromkeys(ids))):
        connection.execute(delete(table).where(table.c.session_key == key, table.c.id.in_(part)))


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
        **{name: getattr(fact, name) for name in (*_PLAIN, "by_model")},
        **{name: packed(getattr(fact, name)) for name in _PACKED},
        **{name: json.dumps(list(getattr(fact, name))) for name in _NUMBERS},
        "session_key": key,
        "summary_id": summary_id,
        "mentions": max(fact.mentions, least_mentions),
        "status": "active",
        "superseded_by": None,
    }
