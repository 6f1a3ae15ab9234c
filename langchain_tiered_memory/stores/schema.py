"""The tables, for every database, in SQLAlchemy Core.

Names start with `ltm_`, so that the tables may live beside others. Texts that come from outside (ids, names, tracks)
pass through `packed`, which keeps any string storable: NUL bytes and lone surrogates become escapes.
"""

from __future__ import annotations

import hashlib
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
    text,
)

metadata = MetaData()

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

BigKey = BigInteger().with_variant(Integer, "sqlite")

meta = Table(
    "ltm_meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

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
    sqlite_autoincrement=True,
)

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
    Column("at", Float, nullable=False),
    Column("calls", Text),
    Column("open_calls", Text),
    Column("waits", Boolean, Computed("open_calls IS NOT NULL", persisted=True)),
    Column("answers", Text),
    Column("group_seq", BigInteger, nullable=False),
    Column("pinned", Boolean, nullable=False, server_default=text("false")),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("summary_id", String(32)),
    UniqueConstraint("session_key", "id_digest", name="ltm_entries_id"),
    Index("ltm_entries_role", "session_key", "track", "role", "seq"),
    Index("ltm_entries_track", "session_key", "track", "seq"),
    Index("ltm_entries_group", "session_key", "group_seq"),
    Index("ltm_entries_summary", "summary_id"),
)
# SQLite's planner keeps no figures of its own and takes the index with the most equal columns: what these partial ones
# are partial by stands among their columns, or they would lose to an index over all messages.
_uncovered = entries.c.summary_id.is_(None)
Index(
    "ltm_entries_uncovered",
    entries.c.session_key,
    entries.c.summary_id,
    entries.c.track,
    entries.c.seq,
    sqlite_where=_uncovered,
    postgresql_where=_uncovered,
)
_open = entries.c.waits.is_(True)
Index(
    "ltm_entries_open",
    entries.c.session_key,
    entries.c.waits,
    entries.c.track,
    entries.c.seq,
    sqlite_where=_open,
    postgresql_where=_open,
)
_pinned = entries.c.pinned.is_(True)
Index(
    "ltm_entries_pinned",
    entries.c.session_key,
    entries.c.pinned,
    entries.c.seq,
    sqlite_where=_pinned,
    postgresql_where=_pinned,
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
Index("ltm_passages_pending", passages.c.session_key, passages.c.id, sqlite_where=_pending, postgresql_where=_pending)
Index("ltm_passages_queue", passages.c.id, sqlite_where=_pending, postgresql_where=_pending)

removed_vectors = Table(
    "ltm_removed_vectors",
    metadata,
    Column("passage_id", BigKey, primary_key=True, autoincrement=False),
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
    Column("tokens", Integer, nullable=False, server_default="0"),
    Column("degraded", Boolean, nullable=False, server_default=text("false")),
    Column("stale", Boolean, nullable=False, server_default=text("false")),
    Column("touched", Boolean, nullable=False, server_default=text("false")),
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
    Index("ltm_summaries_waiting", "session_key", "level", "parent_id", "first_seq"),
    Index("ltm_summaries_border", "session_key", "level", "track", "last_seq"),
    Index("ltm_summaries_level", "session_key", "level", "last_seq"),
    Index("ltm_summaries_state", "session_key", "state", "last_seq"),
    Index("ltm_summaries_parent", "parent_id"),
)
_unfinished = summaries.c.unfinished.is_(True)
Index(
    "ltm_summaries_unfinished",
    summaries.c.session_key,
    summaries.c.unfinished,
    summaries.c.level,
    summaries.c.track,
    summaries.c.first_seq,
    sqlite_where=_unfinished,
    postgresql_where=_unfinished,
)
_unsettled = summaries.c.retry_at.is_not(None)
Index(
    "ltm_summaries_unsettled",
    summaries.c.session_key,
    summaries.c.retry_at,
    sqlite_where=_unsettled,
    postgresql_where=_unsettled,
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
_written = files.c.operation == "write"
Index(
    "ltm_files_written",
    files.c.session_key,
    files.c.operation,
    files.c.path_digest,
    sqlite_where=_written,
    postgresql_where=_written,
)

windows = Table(
    "ltm_windows",
    metadata,
    Column("model", String(200), primary_key=True),
    Column("tokens", BigInteger, nullable=False),
    Column("learned_at", Float, nullable=False),
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
    """The string that `packed` was given."""
    return value.encode("ascii").decode("unicode_escape") if "\\" in value else value


def storable(value: str) -> str:
    """A text of the same length that every database stores: NUL and lone surrogates become U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", value)


def digest_of(value: str) -> str:
    """A short identity of any string: 128 bits of SHA-256 in hexadecimal."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]


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
