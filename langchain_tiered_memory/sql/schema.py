"""The tables, for every database, in SQLAlchemy Core.

Names start with `ltm_`, so that the tables may live beside others. Texts that come from outside (ids, names, tracks)
pass through `packed`, which keeps any string storable: NUL bytes and lone surrogates become escapes.
"""

from __future__ import annotations

import hashlib
import json
import re

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

metadata = MetaData()

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

FORGETTING_KEY = "forgetting_key"
"""Name of the row of `ltm_meta` with the key of the digests of what was forgotten: it never leaves the database."""

BigKey = BigInteger().with_variant(Integer, "sqlite")


def _partial_index(name: str, table: Table, columns: str, *, where: ColumnElement[bool]) -> None:
    Index(name, *(table.c[column] for column in columns.split()), sqlite_where=where, postgresql_where=where)


meta = Table("ltm_meta", metadata, Column("name", String(64), primary_key=True), Column("value", Text, nullable=False))

migrations = Table(
    "ltm_migrations",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("name", String(128), nullable=False),
    Column("applied_at", Float, nullable=False),
)

sessions = Table(
    "ltm_sessions",
    metadata,
    Column("key", BigKey, primary_key=True, autoincrement=True),
    Column("digest", String(32), nullable=False, unique=True),
    Column("session_id", Text, nullable=False),
    Column("owner_digest", String(32), index=True),
    Column("owner", Text),
    Column("title", Text),
    Column("next_seq", BigInteger, nullable=False, server_default="1"),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("entries", BigInteger, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("passages", BigInteger, nullable=False, server_default="0"),
    Column("terms", BigInteger, nullable=False, server_default="0"),
    Column("last_at", Float),
    Column("created_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("begun_by", Text),
    Column("checkpointer", Text),
    Column("forgotten", BigInteger),
    sqlite_autoincrement=True,
)

WAITS = "*"
"""In a message's row, while calls of it have no result: they stand in `ltm_open_calls`."""
KEYED_DIGEST_BYTES = 12
"""Of what was forgotten. 96 bits: two of a million messages have the same one with a chance of 1 in 10^17."""
WORKS = "works"
"""Stands for the role of a forgotten assistant's message with calls: clients without tool work never resend it."""
ENTRY_ID = "ltm_entries_id"
"""The constraint that a message's id stands once on a track."""

entries = Table(
    "ltm_entries",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("id_digest", String(32), nullable=False),
    Column("message_id", Text, nullable=False),
    Column("track", Text, nullable=False),
    Column("role", String(16), nullable=False),
    Column("name", Text),
    Column("kind", Text),
    Column("task", Text),
    Column("text", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("counter", Integer),
    Column("at", Float, nullable=False),
    Column("calls", Text),
    Column("open_calls", Text),
    Column("waits", Boolean, Computed("open_calls IS NOT NULL", persisted=True)),
    Column("answers", Text),
    Column("group_seq", BigInteger, nullable=False),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("summary_id", String(32)),
    Column("seal", String(32)),
    UniqueConstraint("session_key", "id_digest", "track", name=ENTRY_ID),
    Index("ltm_entries_role", "session_key", "track", "role", "seq"),
    Index("ltm_entries_track", "session_key", "track", "seq"),
    Index("ltm_entries_group", "session_key", "group_seq"),
    Index("ltm_entries_summary", "summary_id"),
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

open_calls = Table(
    "ltm_open_calls",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("call_digest", String(32), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("track", Text, nullable=False),
    Column("call", Text, nullable=False),
    Index("ltm_open_calls_head", "session_key", "seq"),
)

revisions = Table(
    "ltm_revisions",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("payload", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("replaced_at", Float, nullable=False),
)

passages = Table(
    "ltm_passages",
    metadata,
    Column("id", BigKey, primary_key=True, autoincrement=True),
    Column("session_key", BigKey, nullable=False),
    Column("level", Integer, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("summary_id", String(32)),
    Column("part", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("stop", Integer, nullable=False),
    Column("track", Text, nullable=False),
    Column("kind", Text),
    Column("at", Float, nullable=False),
    Column("scope", String(32), nullable=False),
    Column("terms", Text, nullable=False),
    Column("vector", String(32)),
    Index("ltm_passages_owner", "session_key", "level", "seq", "part"),
    Index("ltm_passages_summary", "summary_id"),
    sqlite_autoincrement=True,
)
_pending = passages.c.vector.is_(None)
_partial_index("ltm_passages_pending", passages, "session_key id", where=_pending)
_partial_index("ltm_passages_queue", passages, "id", where=_pending)

removed_vectors = Table(
    "ltm_removed_vectors", metadata, Column("passage_id", BigKey, primary_key=True, autoincrement=False)
)

summaries = Table(
    "ltm_summaries",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("session_key", BigKey, nullable=False),
    Column("level", Integer, nullable=False),
    Column("track", Text),
    Column("state", String(16), nullable=False),
    Column("unfinished", Boolean, Computed("state IN ('pending', 'generating', 'failed')", persisted=True)),
    Column("sources", Text, nullable=False),
    Column("source_digest", String(64), nullable=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("entry_count", Integer, nullable=False),
    Column("first_at", Float, nullable=False),
    Column("last_at", Float, nullable=False),
    Column("source_tokens", Integer, nullable=False),
    Column("parent_id", String(32)),
    Column("strategy", Text, nullable=False),
    Column("text", Text, nullable=False, server_default=""),
    Column("text_digest", String(64), nullable=False, server_default=""),
    Column("facts", Text, nullable=False, server_default="[]"),
    Column("facts_read", Integer, nullable=False, server_default="0"),
    Column("tokens", Integer, nullable=False, server_default="0"),
    Column("counter", Integer),
    Column("degraded", Boolean, nullable=False, server_default=text("false")),
    Column("stale", Boolean, nullable=False, server_default=text("false")),
    Column("touched", Boolean, nullable=False, server_default=text("false")),
    Column("by_rules", Boolean, nullable=False, server_default=text("false")),
    Column("wanted", Boolean, nullable=False, server_default=text("false")),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("model", Text),
    Column("calls", Integer, nullable=False, server_default="0"),
    Column("input_tokens", BigInteger, nullable=False, server_default="0"),
    Column("output_tokens", BigInteger, nullable=False, server_default="0"),
    Column("seconds", Float, nullable=False, server_default="0"),
    Column("kept_identifiers", Float),
    Column("information_loss", Float),
    Column("reason", String(32)),
    Column("from_tools", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", Float, nullable=False),
    Column("lease_owner", Text),
    Column("lease_until", Float),
    Column("retry_at", Float),
    Column("verdict", String(16)),
    Column("verdict_note", Text),
    Column("verdict_writer", Text),
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
BY_RULES_INDEX = "ltm_summaries_by_rules"
_partial_index(
    BY_RULES_INDEX, summaries, "session_key level track wanted last_seq", where=summaries.c.by_rules.is_(True)
)
# A planner only takes an index that is partial by a value where the query names that value itself, not a parameter.
UNREAD = summaries.c.facts_read == literal_column("0")
"""Of a summary whose facts are to be read: a condition, as the index of them has it."""
UNREAD_INDEX = "ltm_summaries_unread"
_partial_index(UNREAD_INDEX, summaries, "session_key facts_read first_seq", where=UNREAD)

facts = Table(
    "ltm_facts",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("id", String(16), primary_key=True),
    Column("summary_id", String(32), nullable=False),
    Column("track", Text, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("subject", Text, nullable=False),
    Column("attribute", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("by", String(16), nullable=False),
    Column("speaker", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", Float, nullable=False),
    Column("sources", Text, nullable=False),
    Column("weight", Float, nullable=False),
    Column("by_model", Boolean, nullable=False, server_default=text("false")),
    Column("instead_of", Text, nullable=False, server_default="[]"),
    Column("mentions", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("superseded_by", String(16)),
    Index("ltm_facts_worth", "session_key", "status", "weight", "mentions", "seq", "id"),
    Index("ltm_facts_seq", "session_key", "seq"),
    Index("ltm_facts_summary", "summary_id"),
)

plans = Table(
    "ltm_plans",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("name", String(64), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("border", BigInteger, nullable=False, server_default="0"),
    Column("payload", Text, nullable=False),
    Column("written_at", Float, nullable=False),
)

runs = Table(
    "ltm_runs",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("phase", Text),
    Column("finished_tasks", Integer, nullable=False, server_default="0"),
    Column("zones", Text, nullable=False, server_default="{}"),
    Column("started_at", Float, nullable=False),
    Column("checkpoint_at", Float),
    Column("checkpoint_seq", BigInteger),
)

tasks = Table(
    "ltm_tasks",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("task_digest", String(32), primary_key=True),
    Column("task_id", Text, nullable=False),
    Column("track", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("depends_on", Text, nullable=False, server_default="[]"),
    Column("started_at", Float, nullable=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("finished_at", Float),
    Column("last_seq", BigInteger),
    Column("number", Integer, nullable=False, server_default="0"),
    Index("ltm_tasks_state", "session_key", "state", "number"),
    Index("ltm_tasks_ends", "session_key", "track", "last_seq"),
)

checkpoints = Table(
    "ltm_checkpoints",
    metadata,
    Column("key", BigKey, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("session_key", BigKey, nullable=False),
    Column("track", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("reasons", Text, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("langgraph_id", Text),
    Column("digest", String(64), nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("archived", Boolean, nullable=False, server_default=text("false")),
    Column("alone", Boolean, nullable=False, server_default=text("false")),
    Index("ltm_checkpoints_session", "session_key", "key"),
    sqlite_autoincrement=True,
)

outcomes = Table(
    "ltm_outcomes",
    metadata,
    Column("key", BigKey, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("session_key", BigKey, nullable=False),
    Column("view", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("at", Float, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("payload", Text, nullable=False),
    Column("plan_before", Text),
    Column("plan_after", Text),
    Column("undone_at", Float),
    Index("ltm_outcomes_session", "session_key", "key"),
    sqlite_autoincrement=True,
)

events = Table(
    "ltm_events",
    metadata,
    Column("key", BigKey, primary_key=True, autoincrement=True),
    Column("id", String(80), nullable=False, unique=True),
    Column("session_key", BigKey, nullable=False, index=True),
    Column("name", String(64), nullable=False),
    Column("at", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("deliveries", Integer, nullable=False, server_default="0"),
    sqlite_autoincrement=True,
)

files = Table(
    "ltm_files",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("path_digest", String(32), primary_key=True),
    Column("track", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("operation", String(16), nullable=False),
    Column("tool", Text, nullable=False),
    Column("at", Float, nullable=False),
    Index("ltm_files_track", "session_key", "track", "seq"),
)
_partial_index("ltm_files_written", files, "session_key operation path_digest", where=files.c.operation == "write")

file_tiers = Table(
    "ltm_file_tiers",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("next_order", BigInteger, nullable=False, server_default="1"),
    Column("collected_at", Float),
    Column("optimised_at", Float),
    Column("crowded_at", Float),
    Column("figures", Text, nullable=False, server_default="{}"),
    Column("report", Text),
)

kept_files = Table(
    "ltm_kept_files",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("path_digest", String(32), primary_key=True),
    Column("path", Text, nullable=False),
    Column("tier", String(8), nullable=False),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("kind", String(16), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("modified_ns", BigInteger),
    Column("checksum", String(64), nullable=False),
    Column("dependencies", Text, nullable=False, server_default="[]"),
    Column("changed_at", Float, nullable=False),
    Column("accessed_at", Float, nullable=False),
    Column("access_order", BigInteger, nullable=False),
    Column("accesses", BigInteger, nullable=False, server_default="1"),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Index("ltm_kept_files_tier", "session_key", "tier", "access_order"),
    Index("ltm_kept_files_content", "session_key", "checksum"),
)

file_contents = Table(
    "ltm_file_contents",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("checksum", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("form", String(8), nullable=False),
    Column("dictionary", BigInteger),
    Column("payload", LargeBinary, nullable=False),
)

file_dictionaries = Table(
    "ltm_file_dictionaries",
    metadata,
    Column("session_key", BigKey, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

# What was forgotten is known again by keyed digests: nothing in these two tables can be read, or guessed from outside.
forgotten_sessions = Table(
    "ltm_forgotten_sessions",
    metadata,
    Column("key", BigKey, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("next_seq", BigInteger, nullable=False, server_default="1"),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("checkpointer", Text),
)

forgotten = Table(
    "ltm_forgotten",
    metadata,
    Column("forgotten_session", BigKey, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("role", String(16), nullable=False),
    Column("track_digest", LargeBinary, nullable=False),
    Column("id_digest", LargeBinary),
    Column("words_digest", LargeBinary),
    Column("said_digest", LargeBinary),
    Index("ltm_forgotten_id", "forgotten_session", "id_digest"),
    Index("ltm_forgotten_said", "forgotten_session", "said_digest"),
)

REMOVED_BESIDES = ("facts", "files", "checkpoints", "items")
"""What a removal counts since the seventh schema."""

# Removals that were begun: numbers alone. What is not finished is taken up by the next open, forget or doctor.
removals = Table(
    "ltm_removals",
    metadata,
    Column("key", BigKey, primary_key=True, autoincrement=True),
    Column("begun_at", Float, nullable=False),
    Column("erased_at", Float),
    Column("finished_at", Float),
    Column("entries", BigInteger, nullable=False, server_default="0"),
    Column("revisions", BigInteger, nullable=False, server_default="0"),
    Column("summaries", BigInteger, nullable=False, server_default="0"),
    Column("passages", BigInteger, nullable=False, server_default="0"),
    *(Column(name, BigInteger, nullable=False, server_default="0") for name in REMOVED_BESIDES),
)

removal_targets = Table(
    "ltm_removal_targets",
    metadata,
    Column("removal", BigKey, primary_key=True, autoincrement=False),
    Column("target", BigKey, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
)

windows = Table(
    "ltm_windows",
    metadata,
    Column("model", String(200), primary_key=True),
    Column("tokens", BigInteger, nullable=False),
    Column("learned_at", Float, nullable=False),
)

# Items of LangGraph's store. Namespaces below another one are a range: PostgreSQL must sort them as SQLite does.
items = Table(
    "ltm_items",
    metadata,
    Column("key", BigKey, primary_key=True, autoincrement=True),
    Column("digest", String(32), nullable=False, unique=True),
    Column("owner_digest", String(32)),
    Column("owner", Text),
    Column("namespace", Text().with_variant(Text(collation="C"), "postgresql"), nullable=False),
    Column("name", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("fields", Text, nullable=False, server_default="[]"),
    Column("embedder", String(32)),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("ttl_minutes", Float),
    Column("expires_at", Float),
    Index("ltm_items_namespace", "owner_digest", "namespace", "updated_at"),
    sqlite_autoincrement=True,
)
_partial_index("ltm_items_expiring", items, "expires_at", where=items.c.expires_at.is_not(None))

item_vectors = Table(
    "ltm_item_vectors",
    metadata,
    Column("item", BigKey, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("vector", LargeBinary, nullable=False),
)

calibrations = Table(
    "ltm_calibrations",
    metadata,
    Column("model", String(200), primary_key=True),
    Column("counter", String(100), primary_key=True),
    Column("ratio", Float, nullable=False),
    Column("samples", Integer, nullable=False),
)


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
    return _UNSTORABLE.sub("\ufffd", value if isinstance(value, str) else str(value))


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
