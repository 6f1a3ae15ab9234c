"""Builders of what goes into a store, and of stores."""

from __future__ import annotations

import hashlib
import itertools
import json
import uuid
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from langchain_tiered_memory.runtime import SqlStore
from langchain_tiered_memory.sql import encryption, schema
from langchain_tiered_memory.sql.database import Database
from langchain_tiered_memory.summaries.facts.reading import fact_id
from langchain_tiered_memory.types.drafts import Appended, Incoming, SummaryPlan, Written
from langchain_tiered_memory.types.records import Draft, Entry, Fact, FactKind, PassageDraft, SessionRef, Spent, Summary

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence
    from pathlib import Path

NOW = 1_700_000_000.0
_numbers = itertools.count(1)


ENCRYPTED = "memory.encrypted.db"
"""The name of a file that tests open with a key."""


encryption._DERIVATION = ("sha512", 10, 32)
"""Of keys, in tests: no slower than it must be. Whoever opens the same file, in any process, imports this."""


def key_of_tests() -> str:
    return "a key that only tests have"


def open_store(where: str | Path | None = None, *, busy_seconds: float = 20.0) -> SqlStore:
    """A store that groups messages as the memory does, at a standing clock."""
    key = key_of_tests if str(where).endswith(ENCRYPTED) else None
    return SqlStore(Database(where, busy_seconds=busy_seconds, now=lambda: NOW, encryption_key=key))


def open_calls(store: SqlStore, ref: SessionRef) -> dict[int, tuple[str, ...]]:
    """The calls of a session's messages that have no result, by the number of the message."""
    mine = select(schema.entries).where(schema.entries.c.session_key == ref.key)
    with store.database.read() as connection:
        rows = connection.execute(mine.order_by(schema.entries.c.seq)).mappings().all()
    answered = {(row["group_seq"], row["answers"]) for row in rows}
    left = {
        row["seq"]: tuple(
            call for call in sorted(json.loads(row["calls"] or "[]")) if (row["seq"], call) not in answered
        )
        for row in rows
    }
    waiting = {seq: calls for seq, calls in left.items() if calls}
    assert waiting.keys() == {row["seq"] for row in rows if row["open_calls"] is not None}
    return waiting


def forget_messages(
    store: SqlStore, ref: SessionRef, message_ids: Sequence[str], *, track: str = "main"
) -> Counter[str]:
    """Remove messages, as `named` means them; those that are not there are left out."""
    meant = store.transcript.named(ref, message_ids, track=track)
    seqs = sorted(entry.seq for entry in meant.values())
    return _carried_out(store, {ref.key: seqs} if seqs else {})


def forget_session(store: SqlStore, ref: SessionRef) -> Counter[str]:
    """Remove a session whole."""
    return _carried_out(store, {ref.key: ()})


def _carried_out(store: SqlStore, targets: dict[int, Sequence[int]]) -> Counter[str]:
    removal = store.removal.begin(targets, now=NOW)
    for target in targets:
        store.removal.carry_out(removal, target)
    store.removal.mark([removal], now=NOW)
    return store.removal.removed(removal)


def incoming(text: str = "hello", message_id: str | None = None, **changes: object) -> Incoming:
    """A message on its way in; its text is one passage and its words are its terms."""
    number = next(_numbers)
    payload = changes.pop("payload", json.dumps({"content": text}))
    terms = changes.pop("terms", " ".join(text.lower().split()))
    values: dict[str, Any] = {
        "id": message_id if message_id is not None else f"m{number}",
        "role": "user",
        "text": text,
        "payload": payload,
        "digest": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        "tokens": len(text.split()),
        "at": NOW + number,
    } | changes
    passages = (PassageDraft(part=0, start=0, stop=len(text), terms=terms),) if terms else ()
    return Incoming(draft=Draft(**values), passages=passages)


def append(store: SqlStore, session_id: str, *items: Incoming, **changes: object) -> Appended:
    """Write messages."""
    options: dict[str, Any] = {"user": None, "title": None, "now": NOW} | changes
    return store.transcript.append(session_id, items, **options)


def session_with(store: SqlStore, count: int, session_id: str = "s", **changes: object) -> SessionRef:
    """A session of `count` messages `m1`, `m2`, ... that say `word1`, `word2`, ..."""
    items = [incoming(f"word{n} common", f"m{n}", **changes) for n in range(1, count + 1)]
    return append(store, session_id, *items).ref


def plan(level: int, *sources: object, **changes: object) -> SummaryPlan:
    """A plan over sequence numbers (level 1) or summaries (above)."""
    given: dict[str, Any] = (
        {"source_seqs": tuple(sources), "track": "main"}
        if level == 1
        else {"source_ids": tuple(getattr(one, "id", one) for one in sources)}
    )
    values: dict[str, Any] = {"id": uuid.uuid4().hex, "level": level, "strategy": "detailed"} | given
    return SummaryPlan(**values | changes)


def written(text: str = "a summary", **changes: object) -> Written:
    """A finished text; its words are its terms."""
    values: dict[str, Any] = {
        "text": text,
        "tokens": len(text.split()),
        "facts": (),
        "model": "tests",
        "spent": Spent(calls=1, input_tokens=10, output_tokens=5, seconds=0.5),
        "kept_identifiers": 1.0,
        "source_digest": "0" * 64,
        "passages": (PassageDraft(part=0, start=0, stop=len(text), terms=" ".join(text.lower().split())),),
    }
    return Written(**values | changes)


def fact(seq: int, text: str, *, subject: str = "", kind: FactKind = "number", **changes: object) -> Fact:
    """A fact that the message `seq` states."""
    values: dict[str, Any] = {
        "id": fact_id(seq, kind, text),
        "kind": kind,
        "text": text,
        "seq": seq,
        "at": NOW + seq,
        "by": "user",
        "subject": subject,
        "track": "main",
        "sources": (seq,),
        "weight": 0.5,
    }
    return Fact(**values | changes)


def claim(store: SqlStore, ref: SessionRef, what: SummaryPlan, **changes: object) -> Summary | None:
    """Claim a plan."""
    options: dict[str, Any] = {"owner": "w", "now": NOW, "lease_seconds": 60.0} | changes
    return store.tree.claim(ref, what, **options)


def summarised(
    store: SqlStore,
    ref: SessionRef,
    level: int,
    *sources: object,
    text: str = "a summary",
    facts: Sequence[Fact] = (),
    track: str = "main",
    **changes: object,
) -> Summary:
    """A finished summary, as the store gives it back; of level 1 with the facts of its messages."""
    claimed = claim(store, ref, plan(level, *sources, **({"track": track} if level == 1 else {})))
    assert claimed is not None
    assert store.tree.commit(ref, claimed, written(text, facts=tuple(facts), **changes), owner="w", now=NOW)
    return store.tree.by_id(ref, [claimed.id])[0]


def ids(found: list[Any]) -> list[str]:
    """The ids of entries or summaries."""
    return [one.id for one in found]


def pinned(store: SqlStore, ref: SessionRef) -> list[Entry]:
    """The pinned messages of a session, in order."""
    return [one for one in store.transcript.entries(ref) if one.pinned]


def waiting(store: SqlStore, ref: SessionRef, *, track: str) -> tuple[Entry, ...]:
    """Messages of a track with calls that have no result yet, in order."""
    options = {"opening": 1, "users": 1, "newest": 1, "worked_on": 1}
    return store.transcript.required(ref, track=track, off=frozenset(), **options).waiting
