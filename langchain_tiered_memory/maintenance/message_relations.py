"""What a session's row says of its messages, what those say of each other, their calls and revisions; and items."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, RowMapping, and_, select

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.items.store import digest_of_place, expiry_of, kept, namespace_of
from langchain_tiered_memory.maintenance.remedies import Fault, Known, change, fault, fits, largest, mend
from langchain_tiered_memory.messages.codec import digest_of_payload
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import damage_in
from langchain_tiered_memory.sql.entry_rows import seal_of_row
from langchain_tiered_memory.sql.rows import names_in, unpacked_or_none
from langchain_tiered_memory.sql.schema import digest_of, item_vectors, items, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_SEALED = ("track", "at", "kind", "task", "digest")
"""Columns of a message that its seal covers and others tell, besides its place."""


def of_the_session(known: Known) -> Iterator[Fault]:
    """Of its names, the next number and the epoch."""
    row, sessions = known.session, schema.sessions
    named = digest_of(unpacked(row["session_id"]))
    if row["digest"] != named:
        is_sealed = any(one["seal"] is not None for one in known.rows(schema.entries))
        detail = "its digest is not that of its id: it is not found by its name"
        is_right = known.sealed_with == named or not is_sealed
        remedy = mend(sessions, row, {"digest": named}) if is_right else None
        yield known.fault("wrong_session_digest", "", detail, remedy)
    owner = digest_of(unpacked(row["owner"])) if row["owner"] is not None else None
    if row["owner_digest"] != owner:
        remedy = mend(sessions, row, {"owner_digest": owner}) if owner is not None else None
        yield known.fault("wrong_owner_digest", "", "its owner's digest is not that of its owner", remedy)
    newest = largest(known.connection, schema.entries, "seq", row["key"])
    if isinstance(row["next_seq"], int) and row["next_seq"] <= newest:
        detail = f"its next message would get the number {row['next_seq']}, and {newest} is taken"
        yield known.fault("wrong_next_number", "", detail, mend(sessions, row, {"next_seq": newest + 1}))
    made = largest(known.connection, schema.plans, "epoch", row["key"])
    if isinstance(row["epoch"], int) and row["epoch"] < made:
        detail = f"its epoch is {row['epoch']}, and a plan was made under {made}"
        yield known.fault("wrong_epoch", "", detail, mend(sessions, row, {"epoch": made + 1}))


def _digest_or_none(payload: str) -> str | None:
    try:
        return digest_of_payload(payload)
    except UnknownMessageError:
        return None


def of_messages(known: Known) -> Iterator[Fault]:
    """Of seals, ids, groups, revisions and calls without a result."""
    entries = schema.entries
    revised = Counter(row["seq"] for row in known.rows(schema.revisions, "payload"))
    heads: dict[Any, Any] = {}
    answered: dict[Any, set[str]] = {}
    yield from _of_revisions(known)
    for row in known.rows(entries, "payload", "text"):
        heads[row["seq"]] = row["track"]
        answered.setdefault(row["group_seq"], set()).add(row["answers"])
    for row in known.rows(entries, sound=False):
        what = unpacked(row["message_id"])
        if row["seal"] is not None and not fits(known.sealed_with, row):
            detail = "its place, time, track, kind, task, id or digest is not the original one"
            values = _unsealed(known, row)
            yield known.fault("message_moved", what, detail, mend(entries, row, values) if values else None)
            continue  # which of its columns is to be believed is not known
        if any(damage_in(entries, row)):
            continue
        named = {"id_digest": digest_of(what)}
        yield from known.differing(entries, row, named, kind="wrong_id_digest", what=what, why="is not that of its id")
        left = [one for one in names_in(entries, row, "calls") if packed(one) not in answered[row["group_seq"]]]
        mark = {"open_calls": schema.WAITS if left else None}
        why = f"does not say that {len(left)} of its calls have no result"
        yield from known.differing(entries, row, mark, kind="wrong_open_calls", what=what, why=why)
        group = row["group_seq"]
        if group != row["seq"] and (group > row["seq"] or heads.get(group, row["track"]) != row["track"]):
            detail = f"it cannot belong to the group {group}"
            yield known.fault("wrong_group", what, detail, mend(entries, row, {"group_seq": row["seq"]}))
        kept = {"revision": revised[row["seq"]]}
        yield from known.differing(
            entries, row, kept, kind="wrong_revision", what=what, why="is not the number of those kept"
        )
    for seq in sorted(set(revised) - set(heads)):
        yield known.fault("orphan_revision", seq, "a revision exists of a message that is gone or cannot be read")


def _of_revisions(known: Known) -> Iterator[Fault]:
    """Of what former wordings say, and of their numbers, which begin with 0 and leave none out."""
    numbers: dict[Any, list[int]] = {}
    for row in known.rows(schema.revisions):
        numbers.setdefault(row["seq"], []).append(row["revision"])
        if _digest_or_none(row["payload"]) != row["digest"]:
            detail = "an earlier wording does not match its digest"
            yield known.fault("revision_changed", f"{row['seq']}/{row['revision']}", detail)
    for seq, found in numbers.items():
        if found != list(range(len(found))):
            yield known.fault("wrong_revision", seq, f"its earlier wordings have the numbers {found}")


def _unsealed(known: Known, row: dict[str, Any]) -> dict[str, Any] | None:
    """The one column that, set to what another table says of the message, makes the seal fit: what was damaged."""
    passages, entries = schema.passages, schema.entries
    mine = and_(passages.c.session_key == row["session_key"], passages.c.level == 0, passages.c.seq == row["seq"])
    copies = [dict(one) for one in known.connection.execute(select(passages).where(mine)).mappings()]
    others = select(entries.c.track, entries.c.kind, entries.c.task).distinct()
    others = others.where(entries.c.session_key == row["session_key"])
    says = _digest_or_none(str(row["payload"]))
    told: list[Mapping[Any, Any]] = [*copies, *known.connection.execute(others).mappings()]
    told += [
        {"kind": None, "task": None, "digest": says},
        *({"task": one["task_id"]} for one in known.rows(schema.tasks)),
    ]
    for name in _SEALED:
        for value in dict.fromkeys(one[name] for one in told if name in one):
            if fits(known.sealed_with, row | {name: value}):
                return {name: value}
    agreed = [(one["track"], one["at"], one["kind"]) == (row["track"], row["at"], row["kind"]) for one in copies]
    if copies and all(agreed) and says == row["digest"] and not any(damage_in(schema.entries, row)):
        return {"seal": seal_of_row(known.sealed_with, row)}  # everything else speaks against the seal alone
    return None


def of_items(connection: Connection) -> Iterator[Fault]:
    """Faults of items, and of vectors that are not theirs; rows with a damaged column are named already."""
    parts: dict[int, list[int]] = {}
    for key, part in connection.execute(select(item_vectors.c.item, item_vectors.c.part)):
        parts.setdefault(key, []).append(part)
    known: set[object] = set()
    for row in connection.execute(select(items).order_by(items.c.key)).mappings():
        known.add(row["key"])
        if not any(damage_in(items, row)):
            yield from _of_item(row, sorted(parts.get(row["key"], ()), key=str))
    for key in sorted(parts.keys() - known, key=str):
        yield fault(
            "wrong_item_vectors", f"item {key}", "there is no such item", change(item_vectors, {"item": key}, None)
        )


def _of_item(row: RowMapping, parts: list[int]) -> Iterator[Fault]:
    """Of its place, its end, and the numbers of its vectors."""
    what, owner, namespace = f"item {row['key']}", unpacked_or_none(row["owner"]), namespace_of(row["namespace"])
    right = digest_of(owner) if owner is not None else None
    is_original = row["digest"] == digest_of_place(owner, namespace, unpacked(row["name"]))
    if not is_original or kept(namespace) != row["namespace"]:
        yield fault("wrong_item", what, "its owner, namespace and name are not the original ones")
    elif row["owner_digest"] != right:
        yield fault("wrong_item", what, "it is not found by its owner", mend(items, row, {"owner_digest": right}))
    given, expires = row["ttl_minutes"], row["expires_at"]
    if (given is None) != (expires is None) or (expires is not None and expires < row["created_at"]):
        remedy = mend(items, row, {"expires_at": expiry_of(given, row["updated_at"])})
        yield fault("wrong_expiry", what, "its expiry does not match its time to live", remedy)
    if (row["embedder"] is None and parts) or parts != list(range(len(parts))):
        detail = "it has vectors but is marked unread, or some are missing: it is read again"
        anew = (mend(items, row, {"embedder": None}), change(item_vectors, {"item": row["key"]}, None))
        yield fault("wrong_item_vectors", what, detail, anew)
