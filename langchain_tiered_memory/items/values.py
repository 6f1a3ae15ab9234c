"""What an item is: a value under a namespace and a name, whose it is, and who may see it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.sql.schema import digest_of, packed, unpacked

Namespace: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[Namespace, str]
"""A namespace, and the name of an item in it."""
SECONDS_OF_A_MINUTE = 60.0
END = "\n"
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
    return None if ttl_minutes is None else since + ttl_minutes * SECONDS_OF_A_MINUTE


def kept(namespace: Namespace) -> str:
    """A namespace as it is kept: those below it begin with it."""
    return "".join(packed(label) + END for label in namespace)


def namespace_of(stored: str) -> Namespace:
    """The namespace that `kept` was given."""
    return tuple(unpacked(label) for label in stored.split(END)[:-1])


def as_json(draft: ItemDraft) -> str:
    """The value of an item as it is kept."""
    try:
        return json.dumps(draft.value, allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"the item {draft.name!r} cannot be stored, for its value is no JSON ({error}): give it plain values"
        raise InvalidInputError(msg) from error
