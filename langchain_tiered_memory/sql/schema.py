"""The tables, for every database, in SQLAlchemy Core: each column with its kind, which says what it can hold.

Names start with `ltm_`, so that the tables may live beside others. Texts that come from outside (ids, names, tracks)
pass through `packed`, which keeps any string storable: NUL bytes and lone surrogates become escapes.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Computed,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
    text,
)

from langchain_tiered_memory.messages.message_text import safe_text

if TYPE_CHECKING:
    from sqlalchemy.schema import SchemaItem
    from sqlalchemy.types import TypeEngine

metadata = MetaData()

FORGETTING_KEY = "forgetting_key"
"""Name of the row of `ltm_meta` with the key of the digests of what was forgotten: it never leaves the database."""

BigKey = BigInteger().with_variant(Integer, "sqlite")
_KEPT_AS: dict[str, TypeEngine[Any]] = {
    kind: sql_type
    for kinds, sql_type in (
        ("auto key order serial", BigKey),
        ("count place signed whole", BigInteger()),
        ("amount moment number said share", Float()),
        ("counts json name names numbers waits words zones", Text()),
        # Namespaces below another one are a range: PostgreSQL must sort them as SQLite does.
        ("namespace", Text().with_variant(Text(collation="C"), "postgresql")),
        ("flag", Boolean()),
        ("bytes keyed_digest", LargeBinary()),
        ("content_form tier", String(8)),
        ("failure id", String(32)),
        ("sha256 sha256_or_empty", String(64)),
    )
    for kind in kinds.split()
}
"""The SQL type of each kind of value; words of ours have 16 characters. What a kind can hold: `column_forms.py`."""
_GIVEN_ONCE = ("auto", "order")
"""Kinds of keys that the database gives, none of them twice."""
_NUMBERED = (*_GIVEN_ONCE, "serial")
"""Kinds of keys that the database gives."""


def _column(declared: str) -> Column[Any]:
    """A column from `name:kind/size`, marks, `=` and a default, `~` and what it begins anew with if it is damaged.

    Marks are `*` key, `?` may be empty, `!` unique, `&` indexed, `^` given: left as it is where it is damaged, for
    somebody to look at. The size is that of a text that is not kept as its kind is, or `int` for a small number.
    """
    declared, begins_anew, anew = declared.partition("~")
    named, has_default, default = declared.partition("=")
    name, _, rest = named.rstrip("*?!&^").partition(":")
    kind, _, size = rest.partition("/")
    sized = Integer() if size == "int" else String(int(size or 16))
    sql_type = sized if size else _KEPT_AS.get(kind, sized)
    is_key, may_be_empty = "*" in named or kind in _NUMBERED, "?" in named
    begins: tuple[object, ...] = (None,) if may_be_empty else ()
    if begins_anew or has_default or kind == "flag":
        value = anew if begins_anew else default
        begins = (value == "true" if kind == "flag" else sql_type.python_type(value),)
    elif kind == "moment" and not may_be_empty:
        begins = (0.0,)
    return Column(
        name,
        sql_type,
        primary_key=is_key,
        autoincrement=kind in _NUMBERED,
        nullable=may_be_empty,
        unique="!" in named or None,
        index="&" in named or None,
        server_default=text("false") if kind == "flag" else default if has_default else None,
        info={"kind": kind, "begins": () if is_key or "^" in named else begins},
    )


def _computed(name: str, condition: str) -> Column[bool]:
    return Column(name, Boolean, Computed(condition, persisted=True), info={"kind": "flag", "begins": ()})


def _table(name: str, *parts: str | SchemaItem, is_given: bool = False) -> Table:
    """A table from columns, as `_column` reads them, several in a text, and whatever else it has.

    With `is_given` it has what was given, and none of its rows goes for a damaged column.
    """
    items = [item for part in parts for item in (map(_column, part.split()) if isinstance(part, str) else [part])]
    is_numbered = any(isinstance(item, Column) and item.info["kind"] in _GIVEN_ONCE for item in items)
    info = {"is_given": is_given}
    return Table(f"ltm_{name}", metadata, *items, sqlite_autoincrement=is_numbered, info=info)


def _partial_index(name: str, table: Table, columns: str, *, where: ColumnElement[bool]) -> None:
    Index(name, *(table.c[column] for column in columns.split()), sqlite_where=where, postgresql_where=where)


meta = _table(
    "meta",
    "name:words/64* value:words",
    is_given=True,
)

migrations = _table(
    "migrations",
    "number:place/int* name:words/128 applied_at:moment",
    is_given=True,
)

sessions = _table(
    "sessions",
    "key:auto digest:id! session_id:name owner_digest:id?& owner:name?^ title:name? next_seq:place=1 epoch:count=0",
    "entries:count=0 tokens:count=0 passages:count=0 terms:count=0 last_at:said? created_at:moment",
    "ended_at:moment? begun_by:name? checkpointer:words? forgotten:place?",
    is_given=True,
)

WAITS = "*"
"""In a message's row, while a call of it has no result in its group."""
KEYED_DIGEST_BYTES = 12
"""Of what was forgotten. 96 bits: two of a million messages have the same one with a chance of 1 in 10^17."""
WORKS = "works"
"""Stands for the role of a forgotten assistant's message with calls: clients without tool work never resend it."""
ENTRY_ID = "ltm_entries_id"
"""The constraint that a message's id stands once on a track."""

entries = _table(
    "entries",
    "session_key:key* seq:place* id_digest:id message_id:name track:name role:role~other name:name? kind:name?",
    "task:name? text:words~ payload:words digest:sha256 tokens:count/int~0 counter:count/int? at:said calls:names?",
    "open_calls:waits?",
    _computed("waits", "open_calls IS NOT NULL"),
    "answers:name? group_seq:place pinned:flag revision:count/int=0 summary_id:id? seal:id?",
    UniqueConstraint("session_key", "id_digest", "track", name=ENTRY_ID),
    Index("ltm_entries_role", "session_key", "track", "role", "seq"),
    Index("ltm_entries_track", "session_key", "track", "seq"),
    Index("ltm_entries_group", "session_key", "group_seq"),
    Index("ltm_entries_summary", "summary_id"),
    is_given=True,
)
# SQLite's planner keeps no figures of its own and takes the index with the most equal columns: what these partial ones
# are partial by stands among their columns, or they would lose to an index over all messages.
_partial_index(
    "ltm_entries_uncovered", entries, "session_key summary_id track seq", where=entries.c.summary_id.is_(None)
)
_partial_index("ltm_entries_open", entries, "session_key waits track seq", where=entries.c.waits.is_(True))
_partial_index("ltm_entries_pinned", entries, "session_key pinned seq", where=entries.c.pinned.is_(True))
KINDS_INDEX = "ltm_entries_kinds"
_partial_index(KINDS_INDEX, entries, "session_key track seq", where=entries.c.kind.is_not(None))

revisions = _table(
    "revisions",
    "session_key:key* seq:place* revision:count/int* payload:words digest:sha256 replaced_at:moment",
    is_given=True,
)

passages = _table(
    "passages",
    "id:auto session_key:key level:count/int seq:place summary_id:id? part:count/int start:count/int stop:count/int",
    "track:name kind:name? at:said scope:words/32 terms:words vector:words/32?",
    Index("ltm_passages_owner", "session_key", "level", "seq", "part"),
    Index("ltm_passages_summary", "summary_id"),
)
_pending = passages.c.vector.is_(None)
_partial_index("ltm_passages_pending", passages, "session_key id", where=_pending)
_partial_index("ltm_passages_queue", passages, "id", where=_pending)

removed_vectors = _table(
    "removed_vectors",
    "passage_id:key*",
)

summaries = _table(
    "summaries",
    "id:id* session_key:key level:place/int track:name? state:summary_state",
    _computed("unfinished", "state IN ('pending', 'generating', 'failed')"),
    "sources:names source_digest:sha256_or_empty first_seq:place last_seq:place entry_count:place/int",
    "first_at:said last_at:said source_tokens:count/int parent_id:id? strategy:words text:words=",
    "text_digest:sha256_or_empty= facts_read:count/int=0 tokens:count/int=0 counter:count/int?",
    "degraded:flag~true stale:flag~true touched:flag by_rules:flag wanted:flag attempts:count/int=0 error:words?",
    "model:words? calls:count/int=0 input_tokens:count=0 output_tokens:count=0 seconds:amount=0",
    "kept_identifiers:share? information_loss:share? reason:failure? from_tools:flag created_at:moment",
    "lease_owner:words? lease_until:moment? retry_at:moment?~0 verdict:verdict? verdict_note:words?",
    "verdict_writer:words? beside:names?",
    Index("ltm_summaries_waiting", "session_key", "level", "parent_id", "first_seq"),
    Index("ltm_summaries_border", "session_key", "level", "track", "last_seq"),
    Index("ltm_summaries_level", "session_key", "level", "last_seq"),
    Index("ltm_summaries_state", "session_key", "state", "last_seq"),
    Index("ltm_summaries_parent", "parent_id"),
)
_partial_index(
    "ltm_summaries_unfinished",
    summaries,
    "session_key unfinished level track first_seq",
    where=summaries.c.unfinished.is_(True),
)
_partial_index("ltm_summaries_unsettled", summaries, "session_key retry_at", where=summaries.c.retry_at.is_not(None))
_partial_index(
    "ltm_summaries_by_rules",
    summaries,
    "session_key level track wanted last_seq",
    where=summaries.c.by_rules.is_(True),
)
# A planner only takes an index that is partial by a value where the query names that value itself, not a parameter.
UNREAD = summaries.c.facts_read == literal_column("0")
"""Of a summary whose facts are to be read: a condition, as the index of them has it."""
_partial_index("ltm_summaries_unread", summaries, "session_key facts_read first_seq", where=UNREAD)

facts = _table(
    "facts",
    "session_key:key* id:fact_id* summary_id:id track:name kind:fact_kind subject:words attribute:words value:words",
    "text:words by:role speaker:name seq:place at:said sources:numbers weight:share by_model:flag",
    "instead_of:numbers=[] ends:names=[] joins:names=[] mentions:place/int status:fact_status superseded_by:fact_id?",
    "beside:names?",
    Index("ltm_facts_worth", "session_key", "status", "weight", "mentions", "seq", "id"),
    Index("ltm_facts_seq", "session_key", "seq"),
    Index("ltm_facts_summary", "summary_id"),
)

plans = _table(
    "plans",
    "session_key:key* name:id/64* epoch:count border:count=0 payload:json written_at:moment",
)

runs = _table(
    "runs",
    "session_key:key* phase:name? finished_tasks:count/int=0 zones:zones={} started_at:moment checkpoint_at:moment?",
    "checkpoint_seq:count?",
)

tasks = _table(
    "tasks",
    "session_key:key* task_digest:id* task_id:name track:name state:task_state depends_on:names=[]",
    "started_at:moment first_seq:place finished_at:moment? last_seq:count? number:count/int=0",
    Index("ltm_tasks_state", "session_key", "state", "number"),
    Index("ltm_tasks_ends", "session_key", "track", "last_seq"),
)

checkpoints = _table(
    "checkpoints",
    "key:order id:words/32! session_key:key track:name at:moment reasons:names last_seq:count",
    "langgraph_id:name? digest:sha256 payload:bytes archived:flag alone:flag^",
    Index("ltm_checkpoints_session", "session_key", "key"),
    is_given=True,
)

outcomes = _table(
    "outcomes",
    "key:order id:words/32! session_key:key view:id/64 kind:outcome_kind at:moment last_seq:count payload:json",
    "plan_before:json? plan_after:json? undone_at:moment?",
    Index("ltm_outcomes_session", "session_key", "key"),
)

events = _table(
    "events",
    "key:auto id:words/80! session_key:key& name:words/64 at:moment reason:words details:json",
    "deliveries:count/int=0",
)

files = _table(
    "files",
    "session_key:key* seq:place* path_digest:id* track:name path:name operation:operation tool:name at:said",
    Index("ltm_files_track", "session_key", "track", "seq"),
)
_partial_index("ltm_files_written", files, "session_key operation path_digest", where=files.c.operation == "write")

file_tiers = _table(
    "file_tiers",
    "session_key:key* next_order:place=1 collected_at:moment? optimised_at:moment? crowded_at:moment?",
    "figures:counts={} report:json?",
)

kept_files = _table(
    "kept_files",
    "session_key:key* path_digest:id* path:name tier:tier pinned:flag kind:file_kind size:count modified_ns:whole?",
    "checksum:sha256 dependencies:names=[] changed_at:moment accessed_at:moment access_order:place accesses:place=1",
    "deleted:flag",
    Index("ltm_kept_files_tier", "session_key", "tier", "access_order"),
    Index("ltm_kept_files_content", "session_key", "checksum"),
)

file_contents = _table(
    "file_contents",
    "session_key:key* checksum:sha256* size:count form:content_form dictionary:count? payload:bytes",
)

file_dictionaries = _table(
    "file_dictionaries",
    "session_key:key* number:count* digest:sha256 payload:bytes",
)

# What was forgotten is known again by keyed digests: nothing in these two tables can be read, or guessed from outside.
forgotten_sessions = _table(
    "forgotten_sessions",
    "key:serial digest:keyed_digest! next_seq:place=1 epoch:count=0 checkpointer:words?",
    is_given=True,
)

forgotten = _table(
    "forgotten",
    "forgotten_session:key* seq:place* revision:count/int* role:forgotten_role~other track_digest:keyed_digest",
    "id_digest:keyed_digest?^ words_digest:keyed_digest?^ said_digest:keyed_digest?^",
    Index("ltm_forgotten_id", "forgotten_session", "id_digest"),
    Index("ltm_forgotten_said", "forgotten_session", "said_digest"),
    is_given=True,
)

# Removals that were begun: numbers alone. What is not finished is taken up by the next open, forget or doctor.
removals = _table(
    "removals",
    "key:serial begun_at:moment erased_at:moment? finished_at:moment? entries:count=0 revisions:count=0",
    "summaries:count=0 passages:count=0 facts:count=0 files:count=0 checkpoints:count=0 items:count=0",
)

removal_targets = _table(
    "removal_targets",
    "removal:key* target:key* seq:signed*",
    is_given=True,
)

windows = _table(
    "windows",
    "model:words/200* tokens:place learned_at:moment",
)

# Items of LangGraph's store.
items = _table(
    "items",
    "key:auto digest:id! owner_digest:id? owner:name?^ namespace:namespace name:name payload:json fields:names=[]",
    "embedder:words/32? created_at:moment updated_at:moment ttl_minutes:amount? expires_at:number?",
    Index("ltm_items_namespace", "owner_digest", "namespace", "updated_at"),
    is_given=True,
)
_partial_index("ltm_items_expiring", items, "expires_at", where=items.c.expires_at.is_not(None))

item_vectors = _table(
    "item_vectors",
    "item:key* part:count/int* vector:bytes",
)

calibrations = _table(
    "calibrations",
    "model:words/200* counter:words/100* ratio:amount samples:count/int",
)
OF_A_SESSION = tuple(table for table in metadata.sorted_tables if "session_key" in table.c)
"""Tables whose rows go with their session."""


def packed(value: str) -> str:
    """Any string as one that every database stores: plain text stays itself, anything odd becomes escapes."""
    if value.isascii() and value.isprintable() and "\\" not in value:
        return value
    return value.encode("unicode_escape").decode("ascii")


def unpacked(value: str) -> str:
    """The string that `packed` was given. What it never gave, damage that is, comes back as it stands."""
    if not isinstance(value, str):
        return str(value)  # type: ignore[unreachable] # SQLite keeps bytes in a column of texts
    if "\\" not in value:
        return value
    try:
        return value.encode("ascii").decode("unicode_escape")
    except UnicodeError:
        return value


def storable(value: str) -> str:
    """A text of the same length that every database stores: NUL and lone surrogates become U+FFFD."""
    return safe_text(value if isinstance(value, str) else str(value))


def digest_of(value: str) -> str:
    """A short identity of any string: 128 bits of SHA-256 in hexadecimal."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def digest_of_task(track: str, task_id: str) -> str:
    """The identity of a task: its name is one on its track, and may be another task's on another."""
    return digest_of(json.dumps([track, task_id]))


def beside_index(column: ColumnElement[int]) -> ColumnElement[int]:
    """A number that equals `column` and that no index holds: a condition on it checks rows, and never chooses them.

    SQLite's planner takes a session for ten rows, and would walk one from end to end to find twenty rows by their id.
    """
    return column + 0


def scope_of(session_key: int, level: int) -> str:
    """The term that stands with every passage of one level of one session, so that no search leaves its session.

    No analysed term has its colon: it can never be asked for.
    """
    return f"{session_key}:{level}"
