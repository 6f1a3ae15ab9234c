"""The sessions of a user, read together; one method, one transaction.

Every statement names the keys of sessions that were found by their owner: nothing here counts, weighs or gives a row
of anybody else's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import and_, func, select, tuple_

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.entry_rows import ENTRY_COLUMNS
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.schema import digest_of, entries, facts, packed, sessions, unpacked
from langchain_tiered_memory.summaries.facts.rows import fact_of
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.entry_reads import entry_or_again
from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement

    from langchain_tiered_memory.types.records import Entry, Fact, SessionRef

MOST_SESSIONS = 500
"""Sessions of a user that are read together, those spoken in last; older ones are found by their ids alone."""
Stamp: TypeAlias = tuple[Any, ...]
_MOST_FACTS = 5000
_MOST_UNREAD = 1000


class Across(Room):
    """Reads the sessions of a user."""

    def sessions(self, user: str, *, besides: str | None = None) -> list[SessionRef]:
        """The user's sessions that have messages, those spoken in last first, without the one named `besides`."""
        query = select(sessions).where(_of_user(user, besides)).order_by(sessions.c.last_at.desc(), sessions.c.key)
        with self.database.read() as connection:
            found = connection.execute(query.limit(MOST_SESSIONS)).mappings()
            return readable(connection, found, rows.session_ref)

    def stamp(self, user: str, *, besides: str) -> tuple[Any, ...]:
        """Another one when a session of the user begins or goes, or something in one is edited or removed."""
        figures = (func.count(), func.sum(sessions.c.epoch), func.sum(sessions.c.key), func.max(sessions.c.key))
        with self.database.read() as connection:
            return tuple(connection.execute(select(*figures).where(_of_user(user, besides))).one())

    def stamps(self, user: str) -> list[tuple[SessionRef, Stamp]]:
        """The sessions as of `sessions`, each with another stamp whenever `facts` or `unread` of it may differ."""
        mine = _of_user(user, None)
        listed = select(sessions).where(mine).order_by(sessions.c.last_at.desc(), sessions.c.key).limit(MOST_SESSIONS)
        figures = (facts.c.status, func.count(), func.sum(facts.c.weight), func.sum(facts.c.mentions))
        stated = facts.c.session_key.in_(select(sessions.c.key).where(mine))
        counted = select(facts.c.session_key, *figures).where(stated).group_by(facts.c.session_key, facts.c.status)
        with self.database.read() as connection:
            of_facts: dict[int, list[tuple[Any, ...]]] = {}
            for key, *rest in connection.execute(counted):
                of_facts.setdefault(key, []).append(tuple(rest))
            return readable(
                connection,
                connection.execute(listed).mappings(),
                lambda row: (
                    rows.session_ref(row),
                    (row["epoch"], row["next_seq"], *sorted(of_facts.get(row["key"], ()))),
                ),
            )

    def facts(self, refs: Sequence[SessionRef]) -> list[tuple[SessionRef, Fact]]:
        """What users said that holds in these sessions, the weightiest first."""
        by_key = {ref.key: ref for ref in refs}
        found: list[tuple[SessionRef, Fact]] = []
        with self.database.read() as connection:
            for part in chunks(list(by_key)):
                said = and_(facts.c.track == packed(DEFAULT_TRACK), facts.c.status == "active", facts.c.by == "user")
                query = select(facts).where(facts.c.session_key.in_(part), said).order_by(facts.c.weight.desc())
                read = readable(
                    connection,
                    connection.execute(query.limit(_MOST_FACTS)).mappings(),
                    lambda row: (by_key[row["session_key"]], fact_of(row)),
                )
                found += read
        return found

    def unread(self, refs: Sequence[SessionRef]) -> list[tuple[SessionRef, Entry]]:
        """What users said in these sessions that no summary stands for, whose facts are no rows yet; in its order."""
        by_key = {ref.key: ref for ref in refs}
        said = and_(entries.c.track == packed(DEFAULT_TRACK), entries.c.role == "user", entries.c.summary_id.is_(None))
        columns = [entries.c.session_key.label("owner_key"), *ENTRY_COLUMNS]
        found: list[tuple[SessionRef, Entry]] = []
        with self.database.read() as connection:
            read = partial(entry_or_again, connection)
            for part in chunks(list(by_key)):
                query = select(*columns).where(entries.c.session_key.in_(part), said).order_by(entries.c.at.desc())
                listed = connection.execute(query.limit(_MOST_UNREAD)).all()
                found += readable(connection, listed, lambda row: (by_key[row[0]], read(row[1:])))
        return sorted(found, key=lambda one: (one[0].key, one[1].seq))

    def message_ids(self, places: Collection[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The ids of messages by the keys of their sessions and their numbers there."""
        columns = (entries.c.session_key, entries.c.seq)
        found: dict[tuple[int, int], str] = {}
        with self.database.read() as connection:
            for part in chunks(sorted(places)):
                query = select(*columns, entries.c.message_id).where(tuple_(*columns).in_(part))
                found |= {(key, seq): unpacked(message_id) for key, seq, message_id in connection.execute(query)}
        return found


def _of_user(user: str, besides: str | None) -> ColumnElement[bool]:
    mine = and_(sessions.c.owner_digest == digest_of(user), sessions.c.entries > 0)
    return mine if besides is None else and_(mine, sessions.c.digest != digest_of(besides))
