"""Facts as rows, in the caller's transaction: written, removed, and given their standing.

A row belongs to the level-1 summary whose condensation read it, and comes and goes with it. Whether a fact holds
depends on the facts that there are, and on nothing else: whatever comes or goes, the standing of all that it may
concern is worked out anew, so that the order of chunks, edits and readings leaves no trace.

Whoever calls these has locked the session.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import Connection, Row, and_, bindparam, delete, func, or_, select, update

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.rows import from_json, insert_all, names_to_json
from langchain_tiered_memory.sql.schema import beside_index, entries, packed, storable, unpacked
from langchain_tiered_memory.sql.schema import facts as table
from langchain_tiered_memory.summaries.facts.supersession import near, standing, words_to_seek
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.records import Fact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.summaries.facts.supersession import Named
    from langchain_tiered_memory.types.records import FactStatus

Listed = TypeVar("Listed", int, str)
Placed: TypeAlias = "Row[*tuple[Any, ...]]"
"""A row of some columns of a fact."""
_NEWEST_SEQS = 400
"""Messages before those that are new, of whose facts all subjects are read: most words are found often enough there."""
_MOST_WORDS = 60
"""More words than these are not looked for by the database: then all subjects are read."""
_PACKED, _NUMBERS, _IDS = ("speaker", "track"), ("sources", "instead_of"), ("ends", "joins")
IS_READ = table.c.joins == "[]"
"""Of a fact that is read in messages or in the text of their summary. Others join notes, and go with any of these."""
_IN_OTHER_FORMS = {*_PACKED, *_NUMBERS, *_IDS, "by_model"}
_TELLING = (table.c.id, table.c.kind, table.c.seq, table.c.subject, table.c.by_model)
"""Which fact a row is, and which others it may concern."""
_PLAIN = tuple(one.name for one in fields(Fact) if one.name not in _IN_OTHER_FORMS and one.name in table.c)
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
    row = dict(row)
    check(table, row)
    values: dict[str, Any] = {name: row[name] for name in _PLAIN}
    values |= {name: unpacked(row[name]) for name in _PACKED}
    values |= {name: from_json(table, row, name, tuple[int, ...]) for name in _NUMBERS}
    values |= {name: from_json(table, row, name, tuple[str, ...]) for name in _IDS}
    return Fact(**values, by_model=bool(row["by_model"]))


def write_facts(connection: Connection, key: int, summary_id: str, found: Sequence[Fact]) -> None:
    """Have these be the facts of a level-1 summary, in the place of those that it had.

    How often a fact was taken up by summaries above is kept where it is read again.
    """
    mine = and_(table.c.session_key == key, table.c.summary_id == summary_id, IS_READ)
    mentions = {row.id: row.mentions for row in connection.execute(select(table.c.id, table.c.mentions).where(mine))}
    new = {fact.id: as_stored(fact) for fact in found}
    newest = connection.scalar(select(func.max(table.c.seq)).where(table.c.session_key == key))
    is_behind = not mentions and isinstance(newest, int) and all(fact.seq > newest for fact in new.values())
    gone = drop_facts(connection, key, [*mentions, *new], again=new)
    kept = {one: count for one, count in mentions.items() if type(count) is int}
    insert_all(
        connection,
        table,
        [_values(key, summary_id, fact, least_mentions=kept.get(fact.id, 1)) for fact in new.values()],
    )
    if mentions or new:
        if is_behind:
            _stand_behind(connection, key, after=newest)
        else:
            stand_anew(connection, key, [*gone, *new.values()])


def write_joining(connection: Connection, key: int, joining: Sequence[Fact], *, beside: Sequence[str] = ()) -> int:
    """Add notes that join others, under the summary of the newest, where all hold; how many are joined.

    `beside` are the summaries that the same call wrote, and the notes that it was shown. Words that a note of the same
    message has already, which holds no more, are not said again.
    """
    mine = table.c.session_key == key
    held = and_(mine, table.c.status == "active")
    values: list[dict[str, Any]] = []
    joined = 0
    said = (select(table.c.id).where(mine, table.c.id.in_(part)) for part in chunks([one.id for one in joining]))
    there = {one for query in said for one in connection.scalars(query)}
    new = [as_stored(one) for one in joining if one.id not in there]
    for fact in new:
        query = select(table.c.summary_id).where(held, table.c.id.in_(fact.joins)).order_by(table.c.seq, table.c.id)
        hosts = connection.scalars(query).all()
        if len(hosts) == len(fact.joins):
            values.append(_values(key, hosts[-1], fact, least_mentions=1) | {"beside": names_to_json(beside)})
            joined += len(hosts)
    insert_all(connection, table, values)
    if values:
        stand_anew(connection, key, new)
    return joined


def drop_facts_of_summaries(connection: Connection, summary_ids: Sequence[str]) -> list[Placed]:
    """Remove the facts that were read for these summaries, of whichever session, as `drop_facts` does."""
    found: dict[int, list[str]] = {}
    for part in chunks(list(summary_ids)):
        query = select(table.c.session_key, table.c.id).where(table.c.summary_id.in_(part))
        for key, fact in connection.execute(query):
            found.setdefault(key, []).append(fact)
    return [one for key, ids in found.items() for one in drop_facts(connection, key, ids)]


def drop_facts_of_messages(connection: Connection, key: int, seqs: Sequence[int]) -> None:
    """Remove the facts that any of these messages states, alone or with others, and say anew which others hold."""
    ids = stated_by(connection, key, seqs)
    if ids:
        stand_anew(connection, key, drop_facts(connection, key, ids))


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
            ids |= dict.fromkeys(row.id for row in found if not wanted.isdisjoint(listed(row.sources, int)))
    return list(ids)


def told_elsewhere(connection: Connection, key: int, seqs: Sequence[int], fact_ids: Sequence[str]) -> list[str]:
    """Summaries of other messages whose writer was shown notes of these, and says what stands in their place.

    Their words may be those notes' words.
    """
    naming = and_(table.c.session_key == key, table.c.by_model, or_(table.c.instead_of != "[]", table.c.ends != "[]"))
    wanted = frozenset(seqs)
    query = select(table.c.summary_id, table.c.instead_of, table.c.ends).where(naming)
    return [row.summary_id for row in connection.execute(query) if _names(row, wanted, fact_ids)]


def joined_beside(connection: Connection, key: int, read: Collection[str]) -> list[str]:
    """The notes that a model joined where it wrote or was shown any of these, or nobody knows what."""
    wanted = frozenset(read)
    joining = select(table.c.id, table.c.beside).where(table.c.session_key == key, ~IS_READ)
    found = connection.execute(joining).all() if wanted else ()
    return [row.id for row in found if row.beside is None or not wanted.isdisjoint(listed(row.beside, str))]


def take_up(connection: Connection, key: int, ids: Iterable[str]) -> None:
    """Count that a summary states these facts."""
    for part in chunks(list(dict.fromkeys(ids))):
        mine = and_(table.c.session_key == key, table.c.id.in_(part))
        connection.execute(update(table).where(mine).values(mentions=table.c.mentions + 1))


def stand_anew(connection: Connection, key: int, changed: Sequence[Named] | None = None) -> None:
    """Work out anew which of a session's facts hold; `changed` are those that came or went, where that is known.

    Judged anew is what they may concern, and what is concerned by what turns out to stand otherwise than before. What
    the others took the place of is settled.
    """
    if changed is None:
        facts = all_facts(connection, key)
        _write_standing(connection, key, facts, standing(facts))
    if not changed:
        return
    columns = (*_TELLING, table.c.superseded_by, *(table.c[name] for name in ("instead_of", "ends", "joins")))
    query = select(*columns).where(table.c.session_key == key).order_by(table.c.seq)
    known = {row.id: row for row in connection.execute(query) if _is_placed(row)}
    moved = [one for one in changed if _is_placed(one)]
    gone = {one.id for one in changed} - known.keys()
    freed = [row for row in known.values() if row.superseded_by in gone]
    if freed:
        connection.execute(_STANDING, [_stood(key, row.id, ("active", None)) for row in freed])
    moved += freed
    while True:
        judged, needed = _hanging(known, moved)
        facts = facts_with(connection, key, needed)
        settled = {one.id: one.superseded_by for one in facts if one.superseded_by and one.superseded_by not in judged}
        stands = standing(facts, settled=settled, judged=judged)
        other = [one for one in facts if (one.status, one.superseded_by) != stands[one.id]]
        ids = {one.id for one in moved}
        if ids.issuperset(one.id for one in other):
            _write_standing(connection, key, facts, stands)
            return
        moved += (one for one in other if one.id not in ids)


def _hanging(known: Mapping[str, Placed], moved: Sequence[Named]) -> tuple[set[str], list[str]]:
    """The facts that are judged otherwise, maybe, where these came, went or changed, and all that is looked at then."""
    ids, seqs = {one.id for one in moved}, frozenset(one.seq for one in moved)
    others = [row for name, row in known.items() if name not in ids]
    judged = {one.id for one in near(moved, others, ahead=True)} | (ids & known.keys())
    judged |= {row.id for row in others if _names(row, seqs, ids)}
    named, ends = set[int](), set[str]()
    for name in judged:
        named.update(listed(known[name].instead_of, int))
        ends.update(listed(known[name].ends, str))
    needed = judged | {one.id for one in near([known[name] for name in judged], list(known.values()))}
    needed |= {row.id for row in known.values() if row.seq in named or row.id.startswith(tuple(ends))}
    for row in known.values():
        joins = listed(row.joins, str) if row.joins != "[]" else []
        if row.id in ids or not ids.isdisjoint(joins):
            needed.update((row.id, *joins))
    return judged, [*needed, *(by for name in needed & known.keys() if (by := known[name].superseded_by) is not None)]


def _names(row: Placed, seqs: frozenset[int], ids: Collection[str]) -> bool:
    """Whether a fact says that it changes, finishes or withdraws what these messages, or some of these facts, say."""
    ends = tuple(listed(row.ends, str))
    return not seqs.isdisjoint(listed(row.instead_of, int)) or any(one.startswith(ends) for one in ids if ends)


def _is_placed(one: Named) -> bool:
    """Whether a row tells which fact it is, and what it may concern; a damaged one does not."""
    return type(one.seq) is int and isinstance(one.subject, str)


def _stood(key: int, fact_id: str, stands: tuple[FactStatus, str | None]) -> dict[str, Any]:
    return {"session": key, "fact": fact_id, "now_status": stands[0], "now_by": stands[1]}


def _write_standing(
    connection: Connection, key: int, facts: Sequence[Fact], stands: Mapping[str, tuple[FactStatus, str | None]]
) -> None:
    changed = [
        _stood(key, fact.id, stands[fact.id]) for fact in facts if (fact.status, fact.superseded_by) != stands[fact.id]
    ]
    if changed:
        connection.execute(_STANDING, changed)


def _stand_behind(connection: Connection, key: int, *, after: int) -> None:
    """Work out which facts hold where all that were added stand behind message `after`."""
    facts = _concerned(connection, key, after)
    before = {one.id: one.superseded_by for one in facts if one.seq <= after and one.superseded_by is not None}
    later = {one.id for one in facts if one.seq > after}
    _write_standing(connection, key, facts, standing(facts, settled=before, judged=later))


def _concerned(connection: Connection, key: int, after: int) -> list[Fact]:
    """The facts behind a message, and those before it that they may concern.

    Of the newest messages the subjects of all are read; of what is older, which grows with the session, only those that
    have a word of which there were too few.
    """
    columns = (*_TELLING, table.c.instead_of, table.c.ends)
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
    named = frozenset(seq for one in new for seq in listed(one.instead_of, int))
    of_named: list[str] = []
    for part in chunks(sorted(named)):
        of_named += connection.scalars(select(table.c.id).where(table.c.session_key == key, table.c.seq.in_(part)))
    for part in chunks(sorted({begin for one in new for begin in listed(one.ends, str)})):
        begins = or_(*(table.c.id.startswith(begin, autoescape=True) for begin in part))
        of_named += connection.scalars(select(table.c.id).where(table.c.session_key == key, begins))
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
        found += readable(connection, connection.execute(select(table).where(mine)).mappings().all(), fact_of)
    return sorted(found, key=lambda one: (one.seq, one.id))


def drop_facts(connection: Connection, key: int, ids: Sequence[str], *, again: Collection[str] = ()) -> list[Placed]:
    """Remove facts, and what joins one of them that does not come `again`: it says what they said. Gives their rows.

    Which of the others hold is for the caller to say anew.
    """
    gone = list(dict.fromkeys(ids))
    dropped: list[Placed] = []
    while gone:
        for part in chunks(gone):
            mine = and_(table.c.session_key == key, table.c.id.in_(part))
            dropped += connection.execute(select(*_TELLING).where(mine)).all()
            connection.execute(delete(table).where(mine))
        lost = set(gone).difference(again)
        joining = select(table.c.id, table.c.joins).where(table.c.session_key == key, ~IS_READ) if lost else None
        found = connection.execute(joining).all() if joining is not None else ()
        gone = [row.id for row in found if not lost.isdisjoint(listed(row.joins, str))]
    return dropped


def listed(column: object, kind: type[Listed]) -> list[Listed]:
    """What a column lists of this kind; nothing of one that is empty or damaged."""
    try:
        return [one for one in json.loads(str(column)) if isinstance(one, kind)]
    except (ValueError, TypeError):
        return []  # a damaged row, which `verify` names


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
        **{name: json.dumps(list(getattr(fact, name))) for name in (*_NUMBERS, *_IDS)},
        "session_key": key,
        "summary_id": summary_id,
        "mentions": max(fact.mentions, least_mentions),
        "status": "active",
        "superseded_by": None,
    }
