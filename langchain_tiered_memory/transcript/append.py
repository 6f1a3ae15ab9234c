"""Appends messages in the caller's transaction: new ones numbered, grouped and counted, known ones revised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, and_, bindparam, insert, literal, select, update

from langchain_tiered_memory.messages.groups import assign_groups
from langchain_tiered_memory.sql import entry_rows
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.entry_rows import mark_of, waiting_calls
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE, advance_epoch, insert_all
from langchain_tiered_memory.sql.schema import (
    WAITS,
    digest_of,
    entries,
    files,
    packed,
    passages,
    revisions,
    sessions,
    summaries,
    tasks,
    unpacked,
)
from langchain_tiered_memory.transcript.derived_rows import (
    ancestors,
    drop_passages,
    outdated,
    passage_values,
    touch_values,
    write_touches,
)

if TYPE_CHECKING:
    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.drafts import Follows, Incoming

DropFacts: TypeAlias = Callable[[Connection, int, Sequence[int]], None]
"""The transaction, a session's key and numbers of messages: removes the facts that these messages state."""

_OF_KNOWN = (
    "id_digest", "message_id", "seq", "digest", "payload", "tokens", "revision", "summary_id", "track", "at"
)  # fmt: skip
CURRENT_TASK = (
    select(tasks.c.task_id)
    .where(tasks.c.session_key == bindparam("session"), tasks.c.state == "active", tasks.c.track == bindparam("track"))
    .order_by(tasks.c.started_at.desc())
    .limit(1)
)
"""The active task of a track that was started last."""
_ONCE = select(literal(1).label("once")).subquery()
_THERE = and_(
    entries.c.session_key == bindparam("session"),
    entries.c.track == bindparam("track"),
    entries.c.id_digest.in_(bindparam("digests", expanding=True)),
)
_KNOWN = select(
    CURRENT_TASK.scalar_subquery().label("current_task"), *(entries.c[name] for name in _OF_KNOWN)
).select_from(_ONCE.outerjoin(entries, _THERE))
"""One row at least, for the task; the rest of it is empty where nothing is known."""
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


_ANSWERED = (
    update(entries)
    .where(entries.c.session_key == bindparam("session"), entries.c.seq == bindparam("head"))
    .values(open_calls=None)
)


def chunks(values: list[Any]) -> list[list[Any]]:
    """`values` in pieces that fit one `IN (...)`."""
    return [values[start : start + ROWS_AT_ONCE] for start in range(0, len(values), ROWS_AT_ONCE)]


def rounds_of(incoming: Sequence[Incoming]) -> list[list[Incoming]]:
    """`incoming` in rounds with each id once on a track: one that comes twice in one call is a message and its edit."""
    rounds: list[list[Incoming]] = []
    seen: dict[tuple[str, str], int] = {}
    for item in incoming:
        named = (item.draft.track, item.draft.id)
        number = seen.get(named, 0)
        seen[named] = number + 1
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(item)
    return rounds


def write_round(
    connection: Connection,
    session: Columns,
    incoming: Sequence[Incoming],
    drop_facts: DropFacts,
    *,
    now: float,
    joins_task: bool = False,
    follows: Follows | None = None,
) -> tuple[int, list[str]] | None:
    """Write messages with distinct ids to a locked session. Returns how many were new, and the ids of the edited.

    With `joins_task` those without a task are of the one that was started last on their track. `None`, and nothing
    written, where they are of a track on which what they follow has not its number.
    """
    key = session["key"]
    before = [] if follows is None else [(incoming[0].draft.track, follows.message_id)]
    known, current = _known(connection, key, [*((one.draft.track, one.draft.id) for one in incoming), *before])
    if follows is not None and (before[0] not in known or known[before[0]]["seq"] != follows.seq):
        return None
    if joins_task and any(current.values()):
        incoming = [_of_task(item, current[item.draft.track]) for item in incoming]
    fresh: list[Incoming] = []
    revised: list[str] = []
    for item in incoming:
        stored = known.get((item.draft.track, item.draft.id))
        if stored is None:
            fresh.append(item)
        elif stored["digest"] != item.draft.digest:
            _revise(connection, session, stored, item, now=now)
            if stored["summary_id"] is not None:
                drop_facts(connection, key, [stored["seq"]])
                above = update(summaries).where(summaries.c.id == stored["summary_id"])
                connection.execute(above.values(facts_read=0))
            revised.append(item.draft.id)
        elif stored["payload"] != item.draft.payload:
            mine = and_(entries.c.session_key == key, entries.c.seq == stored["seq"])
            connection.execute(update(entries).where(mine).values(payload=item.draft.payload))
    if fresh:
        _insert_new(connection, session, fresh)
    return len(fresh), revised


def any_known(connection: Connection, key: int, incoming: Sequence[Incoming], ids: frozenset[str]) -> bool:
    """Whether a message with one of these ids is on its track already."""
    names = [(one.draft.track, one.draft.id) for one in incoming if one.draft.id in ids]
    return bool(_known(connection, key, names)[0])


def _known(
    connection: Connection, key: int, names: Sequence[tuple[str, str]]
) -> tuple[dict[tuple[str, str], dict[str, Any]], dict[str, str | None]]:
    """What is stored of the messages of these tracks and ids, by both; and the current task of each of their tracks."""
    known: dict[tuple[str, str], dict[str, Any]] = {}
    current: dict[str, str | None] = {}
    for track in dict.fromkeys(of for of, _ in names):
        named = {digest_of(one): one for of, one in names if of == track}
        for part in chunks(list(named)):
            found = connection.execute(_KNOWN, {"session": key, "track": packed(track), "digests": part}).mappings()
            for row in found:
                current[track] = row["current_task"]
                if row["id_digest"] is not None:
                    known[track, named[row["id_digest"]]] = dict(row)
    return known, current


def _of_task(item: Incoming, task: str | None) -> Incoming:
    if task is None or item.draft.task is not None:
        return item
    return replace(item, draft=replace(item.draft, task=unpacked(task)))


def _insert_new(connection: Connection, session: Columns, incoming: Sequence[Incoming]) -> None:
    check(sessions, {name: session[name] for name in ("key", "next_seq", "last_at")})
    key, first_seq = session["key"], session["next_seq"]
    drafts = [item.draft for item in incoming]
    waiting = waiting_calls(connection, key, drafts)
    groups = assign_groups(drafts, first_seq, {call: head for head, call in waiting})
    left: dict[int, set[str]] = {}
    answered: set[tuple[int, str]] = set()
    values: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    touched: list[dict[str, Any]] = []
    for seq, (item, group) in enumerate(zip(incoming, groups, strict=True), start=first_seq):
        draft = item.draft
        if draft.answers is not None:
            answered.add((group, draft.answers))
            left.get(group, set()).discard(draft.answers)
        left.setdefault(group, set()).update(draft.calls)
        row = entry_rows.entry_values(draft) | {"session_key": key, "seq": seq, "group_seq": group}
        values.append(row | {"seal": entry_rows.seal_of_row(session["digest"], row)})
        found += passage_values(key, item.passages, seq=seq, track=draft.track, kind=draft.kind, at=draft.at)
        touched += touch_values(key, track=draft.track, seq=seq, at=draft.at, touches=item.touches)
    for row in values:
        row["open_calls"] = WAITS if left.get(row["seq"]) else None
    insert_all(connection, entries, values)
    done = {head for head, _ in answered if head < first_seq}
    done -= {head for head, (_, call) in waiting if (head, call) not in answered}
    if done:
        connection.execute(_ANSWERED, [{"session": key, "head": head} for head in sorted(done)])
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


def _terms_in(index_rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(row["terms"].count(" ") + 1 for row in index_rows)


def _revise(connection: Connection, session: Columns, stored: dict[str, Any], item: Incoming, *, now: float) -> None:
    check(entries, {name: stored[name] for name in ("seq", "revision", "tokens", "at")})
    key, seq, track, draft = session["key"], stored["seq"], unpacked(stored["track"]), item.draft
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
    changed = entry_rows.entry_values(draft)
    for fixed in ("message_id", "id_digest", "track", "at", "answers"):
        # An edit changes what is said, not where and when: its place, time and group stay.
        changed.pop(fixed)
    changed |= {"revision": stored["revision"] + 1, "open_calls": mark_of(connection, key, seq, draft.calls)}
    sealed = changed | {name: stored[name] for name in ("seq", "message_id", "track", "at")}
    changed["seal"] = entry_rows.seal_of_row(session["digest"], sealed)
    connection.execute(update(entries).where(entries.c.session_key == key, entries.c.seq == seq).values(changed))
    mine = and_(passages.c.session_key == key, passages.c.level == 0, passages.c.seq == seq)
    passages_before, terms_before = drop_passages(connection, mine)
    found = passage_values(key, item.passages, seq=seq, track=track, kind=draft.kind, at=stored["at"])
    insert_all(connection, passages, found)
    write_touches(connection, key, track=track, seq=seq, at=stored["at"], touches=item.touches)
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
        above = summaries.c.id.in_(ancestors(connection, [stored["summary_id"]]))
        connection.execute(update(summaries).where(above).values(outdated(now)))
    advance_epoch(connection, key)
