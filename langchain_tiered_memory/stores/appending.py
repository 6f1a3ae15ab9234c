"""How messages are written: new ones numbered, grouped and counted, known ones revised; in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, and_, bindparam, insert, select, update

from langchain_tiered_memory.records import Draft
from langchain_tiered_memory.stores import rows
from langchain_tiered_memory.stores.ancestry import mark_ancestors_stale
from langchain_tiered_memory.stores.file_rows import touch_values, write_touches
from langchain_tiered_memory.stores.index_rows import drop_passages
from langchain_tiered_memory.stores.schema import (
    digest_of,
    entries,
    files,
    packed,
    passages,
    revisions,
    sessions,
    unpacked,
)
from langchain_tiered_memory.stores.session_rows import advance_epoch, insert_all

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from langchain_tiered_memory.drafts import Incoming

GroupRule: TypeAlias = Callable[[Sequence[Draft], int, Mapping[tuple[str, str], int]], list[int]]
"""New messages, the first one's number, and the group that waits for each open (track, call): a group for each."""

_KNOWN = select(
    entries.c.id_digest,
    entries.c.seq,
    entries.c.digest,
    entries.c.payload,
    entries.c.tokens,
    entries.c.revision,
    entries.c.summary_id,
    entries.c.track,
    entries.c.at,
).where(entries.c.session_key == bindparam("session"), entries.c.id_digest.in_(bindparam("digests", expanding=True)))
_GROWN = (
    update(sessions)
    .where(sessions.c.key == bindparam("session"))
    .values(
        next_seq=bindparam("next"),
        entries=sessions.c.entries + bindparam("new"),
        tokens=sessions.c.tokens + bindparam("new_tokens"),
        passages=sessions.c.passages + bindparam("new_passages"),
        terms=sessions.c.terms + bindparam("new_terms"),
        last_at=bindparam("last"),
    )
)
IN_CHUNK = 500
"""Values in one `IN (...)`: SQLite's oldest limit on variables is 999."""
OPEN_HEADS = 200
"""Unanswered groups that a late tool result may still join; aborted runs leave such groups behind."""


def chunks(values: list[Any]) -> list[list[Any]]:
    """`values` in pieces that fit one `IN (...)`."""
    return [values[start : start + IN_CHUNK] for start in range(0, len(values), IN_CHUNK)]


def rounds_of(incoming: Sequence[Incoming]) -> list[list[Incoming]]:
    """`incoming` in rounds with each id once: an id that comes twice in one call is the message and then its edit."""
    rounds: list[list[Incoming]] = []
    seen: dict[str, int] = {}
    for item in incoming:
        number = seen.get(item.draft.id, 0)
        seen[item.draft.id] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(item)
    return rounds


def write_round(
    connection: Connection, session: RowMapping, incoming: Sequence[Incoming], group_rule: GroupRule, *, now: float
) -> tuple[int, list[str]]:
    """Write messages with distinct ids to a locked session. Returns how many were new, and the ids of the edited."""
    key = session["key"]
    known = _known(connection, key, [item.draft.id for item in incoming])
    fresh: list[Incoming] = []
    revised: list[str] = []
    for item in incoming:
        stored = known.get(digest_of(item.draft.id))
        if stored is None:
            fresh.append(item)
        elif stored["digest"] != item.draft.digest:
            _revise(connection, key, stored, item, now=now)
            revised.append(item.draft.id)
        elif stored["payload"] != item.draft.payload:
            mine = and_(entries.c.session_key == key, entries.c.seq == stored["seq"])
            connection.execute(update(entries).where(mine).values(payload=item.draft.payload))
    if fresh:
        _insert_new(connection, session, fresh, group_rule)
    return len(fresh), revised


def _known(connection: Connection, key: int, message_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    for part in chunks([digest_of(one) for one in message_ids]):
        found = connection.execute(_KNOWN, {"session": key, "digests": part}).mappings()
        known |= {row["id_digest"]: dict(row) for row in found}
    return known


def _open_heads(connection: Connection, key: int, tracks: Sequence[str]) -> list[tuple[int, str, list[str]]]:
    """Entries of these tracks with calls that have no result yet, newest first, as (seq, track, calls)."""
    found: list[tuple[int, str, list[str]]] = []
    for track in tracks:
        query = (
            select(entries.c.seq, entries.c.open_calls)
            .where(entries.c.session_key == key, entries.c.waits.is_(True), entries.c.track == packed(track))
            .order_by(entries.c.seq.desc())
            .limit(OPEN_HEADS)
        )
        found += [(seq, track, rows.names_from_json(calls)) for seq, calls in connection.execute(query)]
    return found


def _insert_new(
    connection: Connection, session: RowMapping, incoming: Sequence[Incoming], group_rule: GroupRule
) -> None:
    key, first_seq = session["key"], session["next_seq"]
    drafts = [item.draft for item in incoming]
    # Only a result asks who waits for it.
    heads = _open_heads(connection, key, list(dict.fromkeys(one.track for one in drafts if one.answers is not None)))
    left = {seq: calls for seq, _, calls in heads}
    waiting = {(track, call): seq for seq, track, calls in reversed(heads) for call in calls}
    groups = group_rule(drafts, first_seq, waiting)
    answered: set[int] = set()
    values: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    touched: list[dict[str, Any]] = []
    for seq, (item, group) in enumerate(zip(incoming, groups, strict=True), start=first_seq):
        draft = item.draft
        if draft.answers is not None and draft.answers in left.get(group, ()):
            left[group].remove(draft.answers)
            answered.add(group)
        if draft.calls:
            left.setdefault(group, []).extend(draft.calls)
        values.append(rows.entry_values(draft) | {"session_key": key, "seq": seq, "group_seq": group})
        found += rows.passage_values(
            key, item.passages, level=0, seq=seq, summary_id=None, track=draft.track, kind=draft.kind, at=draft.at
        )
        touched += touch_values(key, track=draft.track, seq=seq, at=draft.at, touches=item.touches)
    for row in values:
        row["open_calls"] = _calls_json(left.get(row["seq"]))
    insert_all(connection, entries, values)
    for head in sorted(answered):
        if head < first_seq:
            mine = and_(entries.c.session_key == key, entries.c.seq == head)
            connection.execute(update(entries).where(mine).values(open_calls=_calls_json(left[head])))
    insert_all(connection, passages, found)
    insert_all(connection, files, touched)
    connection.execute(
        _GROWN,
        {
            "session": key,
            "new": len(values),
            "new_tokens": sum(draft.tokens for draft in drafts),
            "new_passages": len(found),
            "new_terms": _terms_in(found),
            "last": max([draft.at for draft in drafts] + ([] if session["last_at"] is None else [session["last_at"]])),
            "next": first_seq + len(values),
        },
    )


def _calls_json(calls: list[str] | None) -> str | None:
    return rows.names_to_json(calls) if calls else None


def _terms_in(index_rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(row["terms"].count(" ") + 1 for row in index_rows)


def _revise(connection: Connection, key: int, stored: dict[str, Any], item: Incoming, *, now: float) -> None:
    seq, draft = stored["seq"], item.draft
    connection.execute(
        insert(revisions).values(
            session_key=key,
            seq=seq,
            revision=stored["revision"],
            payload=stored["payload"],
            digest=stored["digest"],
            replaced_at=now,
        )
    )
    changed = rows.entry_values(draft)
    for fixed in ("message_id", "id_digest", "track", "at", "answers"):
        # An edit changes what is said, not where and when: its place, time and group stay.
        changed.pop(fixed)
    changed |= {"revision": stored["revision"] + 1, "open_calls": unanswered(connection, key, seq, draft.calls)}
    connection.execute(update(entries).where(entries.c.session_key == key, entries.c.seq == seq).values(changed))
    mine = and_(passages.c.session_key == key, passages.c.level == 0, passages.c.seq == seq)
    passages_before, terms_before = drop_passages(connection, mine)
    found = rows.passage_values(
        key,
        item.passages,
        level=0,
        seq=seq,
        summary_id=None,
        track=unpacked(stored["track"]),
        kind=draft.kind,
        at=stored["at"],
    )
    insert_all(connection, passages, found)
    write_touches(connection, key, track=unpacked(stored["track"]), seq=seq, at=stored["at"], touches=item.touches)
    connection.execute(
        update(sessions)
        .where(sessions.c.key == key)
        .values(
            tokens=sessions.c.tokens + draft.tokens - stored["tokens"],
            passages=sessions.c.passages + len(found) - passages_before,
            terms=sessions.c.terms + _terms_in(found) - terms_before,
        )
    )
    if stored["summary_id"] is not None:
        mark_ancestors_stale(connection, [stored["summary_id"]], now=now)
    advance_epoch(connection, key)


def unanswered(connection: Connection, key: int, head: int, calls: Sequence[str]) -> str | None:
    """Those of a message's calls that no message of its group answers, as the `open_calls` column keeps them."""
    if not calls:
        return None
    query = select(entries.c.answers).where(entries.c.session_key == key, entries.c.group_seq == head)
    answered = set(connection.scalars(query))
    return _calls_json([call for call in calls if packed(call) not in answered])
