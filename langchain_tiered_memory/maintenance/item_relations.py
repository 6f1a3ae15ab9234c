"""What the rows of items of LangGraph's store say of each other: whose they are, when they end, what vectors they have.

An item's digest is over its owner, namespace and name: where it fits, the digest of the owner alone was damaged, and
where it does not, nothing else says which of them was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, RowMapping, select

from langchain_tiered_memory.items.values import digest_of_place, expiry_of, kept, namespace_of
from langchain_tiered_memory.maintenance.remedies import Fault, Remedy, mend
from langchain_tiered_memory.reports import Problem
from langchain_tiered_memory.sql.column_forms import damage_in
from langchain_tiered_memory.sql.rows import unpacked_or_none
from langchain_tiered_memory.sql.schema import digest_of, item_vectors, items, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator


def of_items(connection: Connection) -> Iterator[Fault]:
    """Faults of items, and of vectors that are not theirs; rows with a damaged column are named already."""
    parts: dict[int, list[int]] = {}
    for key, part in connection.execute(select(item_vectors.c.item, item_vectors.c.part)):
        parts.setdefault(key, []).append(part)
    known: set[object] = set()
    for row in connection.execute(select(items).order_by(items.c.key)).mappings():
        known.add(row["key"])
        if not any(damage_in(items, row)):
            yield from _of_owner(row)
            yield from _of_expiry(row)
            yield from _of_vectors(row, sorted(parts.get(row["key"], ()), key=str))
    for key in sorted(parts.keys() - known, key=str):
        yield _fault("wrong_item_vectors", key, "there is no such item", Remedy(item_vectors, {"item": key}, None))


def _of_owner(row: RowMapping) -> Iterator[Fault]:
    owner = unpacked_or_none(row["owner"])
    right = digest_of(owner) if owner is not None else None
    namespace = namespace_of(row["namespace"])
    place = digest_of_place(owner, namespace, unpacked(row["name"]))
    if row["digest"] != place or kept(namespace) != row["namespace"]:
        detail = "its owner, namespace and name are not those that it was put with"
        yield _fault("wrong_item", row["key"], detail, None)
    elif row["owner_digest"] != right:
        detail = "it is not found by its owner"
        yield _fault("wrong_item", row["key"], detail, mend(items, row, {"owner_digest": right}))


def _of_expiry(row: RowMapping) -> Iterator[Fault]:
    given, expires = row["ttl_minutes"], row["expires_at"]
    if (given is None) != (expires is None) or (expires is not None and expires < row["created_at"]):
        right = expiry_of(given, row["updated_at"])
        detail = "when it expires is not what its time to live says"
        yield _fault("wrong_expiry", row["key"], detail, mend(items, row, {"expires_at": right}))


def _of_vectors(row: RowMapping, parts: list[int]) -> Iterator[Fault]:
    if row["embedder"] is None and parts:
        remedy = Remedy(item_vectors, {"item": row["key"]}, None)
        yield _fault("wrong_item_vectors", row["key"], "it has vectors, and is to be read", remedy)
    elif parts != list(range(len(parts))):
        detail = "some of its vectors are missing: it is read again"
        yield _fault("wrong_item_vectors", row["key"], detail, mend(items, row, {"embedder": None}))


def _fault(kind: str, key: object, detail: str, remedy: Remedy | None) -> Fault:
    return Fault(Problem(kind=kind, what=f"item {key}", detail=detail), remedy)
