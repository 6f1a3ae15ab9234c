"""Items, each a value under a namespace and a name, and whose they are; in SQL with their vectors.

One method, one transaction.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, or_, select, true, update

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE, insert_all, insert_if_absent
from langchain_tiered_memory.sql.schema import digest_of, item_vectors, items, packed, unpacked
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


Namespace: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[Namespace, str]
"""A namespace, and the name of an item in it."""
_SECONDS_OF_A_MINUTE = 60.0
_END = "\n"
"""Ends each label of a namespace as it is kept; `packed` leaves none in a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An item as it stands in the database."""

    key: int
    namespace: Namespace
    name: str
    value: dict[str, Any]
    created_at: float
    updated_at: float
    expires: bool
    """Whether it was given a time to live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDraft:
    """An item on its way into the database; without a value, one that is to go."""

    namespace: Namespace
    name: str
    value: dict[str, Any] | None
    fields: tuple[str, ...] = ()
    """Paths in the value, as LangGraph spells them, whose texts are searched by meaning."""
    ttl_minutes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Whose items a call may see and change: one user's, or those that belong to nobody; and what is shared."""

    user: str | None = None
    shared: tuple[Namespace, ...] = ()
    """Beginnings of namespaces that every user sees: what stands there belongs to nobody."""

    def owner_in(self, namespace: Namespace) -> str | None:
        """Who owns what is put into a namespace."""
        is_shared = any(namespace[: len(one)] == one for one in self.shared)
        return None if is_shared else self.user

    def digest_at(self, place: Place) -> str:
        """The identity of the item that this user has at a place."""
        namespace, name = place
        return digest_of_place(self.owner_in(namespace), namespace, name)


def digest_of_place(owner: str | None, namespace: Namespace, name: str) -> str:
    """The identity of an item: an owner has one of each name in a namespace."""
    return digest_of(json.dumps([owner, list(namespace), name]))


def expiry_of(ttl_minutes: float | None, since: float) -> float | None:
    """When an item expires that lives so long from a moment on; `None`: never."""
    return None if ttl_minutes is None else since + ttl_minutes * _SECONDS_OF_A_MINUTE


def kept(namespace: Namespace) -> str:
    """A namespace as it is kept: those below it begin with it."""
    return "".join(packed(label) + _END for label in namespace)


def namespace_of(stored: str) -> Namespace:
    """The namespace that `kept` was given."""
    return tuple(unpacked(label) for label in stored.split(_END)[:-1])


def as_json(draft: ItemDraft) -> str:
    """The value of an item as it is kept."""
    try:
        return json.dumps(draft.value, allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"the item {draft.name!r} cannot be stored, because its value is not JSON ({error}): give it plain values"
        raise InvalidInputError(msg) from error


_NEWEST_FIRST = (items.c.updated_at.desc(), items.c.key.desc())


class Items(Room):
    """Reads and writes items."""

    def read(self, reach: Reach, places: Sequence[Place], *, now: float) -> dict[Place, StoredItem]:
        """The items at these places that are there and have not expired."""
        found: dict[Place, StoredItem] = {}
        with self.database.read() as connection:
            for part in chunks([reach.digest_at(place) for place in places]):
                query = select(items).where(items.c.digest.in_(part), _alive(now))
                for one in readable(connection, connection.execute(query).mappings(), _item):
                    found[one.namespace, one.name] = one
        return found

    def below(
        self,
        reach: Reach,
        namespace: Namespace,
        *,
        now: float,
        limit: int | None = None,
        offset: int = 0,
        keys: Sequence[int] | None = None,
    ) -> list[StoredItem]:
        """The items of a namespace and of those below it, the last written first; of `keys` alone, where given."""
        wanted = select(items).where(_visible(reach, namespace, now)).order_by(*_NEWEST_FIRST)
        found: list[StoredItem] = []
        with self.database.read() as connection:
            for part in [None] if keys is None else chunks(list(keys)):
                query = wanted if part is None else wanted.where(items.c.key.in_(part))
                query = query.limit(limit).offset(offset) if limit is not None else query
                found += readable(connection, connection.execute(query).mappings(), _item)
        return found

    def namespaces(self, reach: Reach, *, now: float) -> list[Namespace]:
        """Every namespace that has an item, sorted."""
        query = select(items.c.namespace).where(_visible(reach, (), now)).distinct()
        with self.database.read() as connection:
            return sorted(namespace_of(stored) for stored in connection.scalars(query))

    def write(
        self,
        reach: Reach,
        drafts: Sequence[ItemDraft],
        *,
        vectors: Mapping[Place, Sequence[bytes]] | None,
        embedder: str | None,
        now: float,
    ) -> None:
        """Put items, and take out those without a value, all or none; what has expired goes too.

        Each place comes once. `vectors` are of the texts of each, in their order, by `embedder`; `None`: they
        are to be made later.
        """
        by_digest = {reach.digest_at((one.namespace, one.name)): one for one in drafts}
        payloads = {digest: as_json(one) for digest, one in by_digest.items() if one.value is not None}
        with self.database.write() as connection:
            _drop(connection, and_(items.c.expires_at.is_not(None), items.c.expires_at <= now))
            for part in chunks(sorted(by_digest.keys() - payloads.keys())):
                _drop(connection, items.c.digest.in_(part))
            for digest in sorted(payloads):  # in one order, so that two writers never wait for each other in a circle
                draft = by_digest[digest]
                made = vectors.get((draft.namespace, draft.name), ()) if vectors is not None else None
                values = {
                    "payload": payloads[digest],
                    "fields": rows.names_to_json(draft.fields),
                    "embedder": embedder if made is not None else None,
                    "updated_at": now,
                    "ttl_minutes": draft.ttl_minutes,
                    "expires_at": expiry_of(draft.ttl_minutes, now),
                }
                owner = reach.owner_in(draft.namespace)
                named = {
                    "digest": digest,
                    "owner": rows.packed_or_none(owner),
                    "owner_digest": digest_of(owner) if owner is not None else None,
                    "namespace": kept(draft.namespace),
                    "name": packed(draft.name),
                    "created_at": now,
                }
                connection.execute(insert_if_absent(connection, items).values(named | values))
                mine = items.c.digest == digest
                connection.execute(update(items).where(mine).values(values))
                key = connection.scalar(select(items.c.key).where(mine)) or 0
                _keep_vectors(connection, key, made or ())

    def refresh(self, keys: Sequence[int], *, now: float) -> None:
        """Have these items live on from now, as long as each was given."""
        expires = now + items.c.ttl_minutes * _SECONDS_OF_A_MINUTE
        with self.database.write() as connection:
            for part in chunks(sorted(keys)):
                lasting = and_(items.c.key.in_(part), items.c.ttl_minutes.is_not(None))
                connection.execute(update(items).where(lasting).values(expires_at=expires))

    def sweep(self, *, now: float) -> int:
        """Take out what has expired; returns how many items."""
        with self.database.write() as connection:
            return _drop(connection, and_(items.c.expires_at.is_not(None), items.c.expires_at <= now))

    def without_vectors(
        self, reach: Reach | None, namespace: Namespace, *, embedder: str, now: float, limit: int
    ) -> list[tuple[StoredItem, tuple[str, ...]]]:
        """Items that this embedder has yet to read, the last written first, with the paths of what is to be read.

        Everybody's where `reach` is `None`.
        """
        seen = true() if reach is None else _visible(reach, namespace, now)
        unread = and_(items.c.fields != "[]", or_(items.c.embedder.is_(None), items.c.embedder != embedder))
        query = select(items).where(seen, unread).order_by(*_NEWEST_FIRST).limit(limit)
        with self.database.read() as connection:
            found = connection.execute(query).mappings()
            return readable(connection, found, lambda row: (_item(row), rows.names_in(items, row, "fields")))

    def settle(self, vectors: Mapping[int, tuple[float, Sequence[bytes]]], *, embedder: str) -> None:
        """Keep vectors of items by their keys, each with when it was written: one that was written since has none."""
        with self.database.write() as connection:
            for key, (updated_at, made) in sorted(vectors.items()):
                mine = and_(items.c.key == key, items.c.updated_at == updated_at)
                if connection.execute(update(items).where(mine).values(embedder=embedder)).rowcount:
                    _keep_vectors(connection, key, made)

    def unsettle(self) -> None:
        """Have every item read again by whoever embeds."""
        with self.database.write() as connection:
            connection.execute(update(items).values(embedder=None))
            connection.execute(delete(item_vectors))

    def vectors(
        self, reach: Reach, namespace: Namespace, *, embedder: str, now: float
    ) -> Iterator[list[tuple[int, bytes | None]]]:
        """Page by page, each item that may be found by its key with a vector, once for each; `None` for none."""
        after = 0
        while page := self._vectors(reach, namespace, embedder=embedder, now=now, after=after):
            yield page
            after = page[-1][0]

    def _vectors(
        self, reach: Reach, namespace: Namespace, *, embedder: str, now: float, after: int
    ) -> list[tuple[int, bytes | None]]:
        wanted = and_(_visible(reach, namespace, now), items.c.key > after)
        page = select(items.c.key, items.c.embedder).where(wanted).order_by(items.c.key).limit(ROWS_AT_ONCE).subquery()
        beside = and_(item_vectors.c.item == page.c.key, page.c.embedder == embedder)
        query = select(page.c.key, item_vectors.c.vector).outerjoin(item_vectors, beside).order_by(page.c.key)
        with self.database.read() as connection:
            return [(key, vector) for key, vector in connection.execute(query)]


def drop_items_of(connection: Connection, user: str) -> int:
    """Take out every item of a user; returns how many."""
    return _drop(connection, items.c.owner_digest == digest_of(user))


def _drop(connection: Connection, which: ColumnElement[bool]) -> int:
    connection.execute(delete(item_vectors).where(item_vectors.c.item.in_(select(items.c.key).where(which))))
    return connection.execute(delete(items).where(which)).rowcount


def _keep_vectors(connection: Connection, key: int, vectors: Sequence[bytes]) -> None:
    connection.execute(delete(item_vectors).where(item_vectors.c.item == key))
    made = [{"item": key, "part": part, "vector": vector} for part, vector in enumerate(vectors)]
    insert_all(connection, item_vectors, made)


def _alive(now: float) -> ColumnElement[bool]:
    return or_(items.c.expires_at.is_(None), items.c.expires_at > now)


def _below(namespace: Namespace) -> ColumnElement[bool]:
    if not namespace:
        return true()
    start = kept(namespace)
    return and_(items.c.namespace >= start, items.c.namespace < start[:-1] + chr(ord(_END) + 1))


def _visible(reach: Reach, namespace: Namespace, now: float) -> ColumnElement[bool]:
    """What may be seen of a namespace and of those below it."""
    nobodys = items.c.owner_digest.is_(None)
    if reach.user is None:
        return and_(nobodys, _below(namespace), _alive(now))
    own = items.c.owner_digest == digest_of(reach.user)
    shared = [and_(nobodys, _below(one)) for one in reach.shared]
    return and_(or_(own, *shared), _below(namespace), _alive(now))


def _item(row: RowMapping) -> StoredItem:
    columns = ("key", "namespace", "created_at", "updated_at")
    check(items, {name: row[name] for name in columns})
    return StoredItem(
        key=row["key"],
        namespace=namespace_of(row["namespace"]),
        name=unpacked(row["name"]),
        value=rows.from_json(items, row, "payload", dict[str, Any]),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        expires=row["ttl_minutes"] is not None,
    )
