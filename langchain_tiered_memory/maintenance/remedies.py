"""Remedies for damaged columns: a default value, or the row goes; none where only a person can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.sql import schema

if TYPE_CHECKING:
    from sqlalchemy import Table

    from langchain_tiered_memory.reports import Problem
    from langchain_tiered_memory.sql.column_forms import Columns


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change of one row that mends a fault."""

    table: Table
    key: dict[str, Any]
    """The row, by its columns; several rows where these do not name one alone."""
    values: dict[str, Any] | None
    """What its columns get; `None`: the row goes, for it is made again or was of no use."""
    absent: bool = False
    """The row is not there: it is made, of these values alone."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong, and what mends it, if anything does."""

    problem: Problem
    remedy: Remedy | None
    summary_id: Any = None
    """A summary that is damaged beyond reading: it is discarded with all above it."""


_STARTING: dict[str, dict[str, Any]] = {
    "ltm_sessions": {
        "title": None,
        "ended_at": None,
        "owner_digest": None,
        "entries": 0,
        "tokens": 0,
        "passages": 0,
        "terms": 0,
        "last_at": None,
        "next_seq": 1,
        "epoch": 0,
        "created_at": 0.0,
        "begun_by": None,
        "checkpointer": None,
        "forgotten": None,
    },
    "ltm_entries": {
        "role": "other",
        "name": None,
        "text": "",
        "tokens": 0,
        "counter": None,
        "calls": None,
        "open_calls": None,
        "answers": None,
        "pinned": False,
        "revision": 0,
        "summary_id": None,
        "seal": None,
    },
    "ltm_summaries": {
        "counter": None,
        "degraded": True,
        "stale": True,
        "touched": False,
        "by_rules": False,
        "wanted": False,
        "attempts": 0,
        "error": None,
        "model": None,
        "calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "seconds": 0.0,
        "kept_identifiers": None,
        "information_loss": None,
        "reason": None,
        "from_tools": False,
        "created_at": 0.0,
        "lease_owner": None,
        "lease_until": None,
        "retry_at": 0.0,
        "tokens": 0,
        "facts": "[]",
        "facts_read": 0,
    },
    "ltm_runs": {
        "phase": None,
        "finished_tasks": 0,
        "zones": "{}",
        "started_at": 0.0,
        "checkpoint_at": None,
        "checkpoint_seq": None,
    },
    "ltm_tasks": {"depends_on": "[]", "finished_at": None, "last_seq": None, "number": 0},
    "ltm_outcomes": {"plan_before": None, "plan_after": None, "undone_at": None},
    "ltm_checkpoints": {
        "reasons": "[]",
        "langgraph_id": None,
        "at": 0.0,
        "last_seq": 0,
        "track": "main",
        "archived": False,
    },
    "ltm_file_tiers": {"collected_at": None, "optimised_at": None, "crowded_at": None, "figures": "{}", "report": None},
    "ltm_kept_files": {
        "pinned": False,
        "modified_ns": None,  # the file is read again, and compared
        "dependencies": "[]",
        "accesses": 1,
        "accessed_at": 0.0,
        "changed_at": 0.0,
        "deleted": False,
        "kind": "text",
    },
    "ltm_migrations": {"applied_at": 0.0},
    "ltm_passages": {"vector": None},
    "ltm_forgotten_sessions": {"next_seq": 1, "epoch": 0, "checkpointer": None},
    "ltm_forgotten": {"role": "other"},
    "ltm_removals": {
        "begun_at": 0.0,
        "finished_at": 0.0,  # where something is left to remove it is begun again
        "entries": 0,
        "revisions": 0,
        "summaries": 0,
        "passages": 0,
    },
}
"""Columns whose damage leaves the row of use: what they get. What follows from other rows is counted anew then."""
_DROPPED = frozenset(
    {
        "ltm_passages",
        "ltm_removed_vectors",
        "ltm_plans",
        "ltm_tasks",
        "ltm_outcomes",
        "ltm_files",
        "ltm_facts",
        "ltm_windows",
        "ltm_calibrations",
        "ltm_runs",
        "ltm_open_calls",
        "ltm_events",
        "ltm_removals",
        "ltm_file_tiers",
        "ltm_kept_files",
        "ltm_file_contents",
        "ltm_file_dictionaries",
    }
)
"""Tables whose rows go where another column is damaged: they are made again, or tell nothing any more.

A damaged summary is discarded with all above it, elsewhere. Messages, revisions, the names of sessions, what is known
of the forgotten and what is still to be forgotten stay.
"""


def remedy_for(  # noqa: PLR0911 - a line per rule
    table: Table, key: dict[str, Any], column: str, row: Columns
) -> Remedy | None:
    """What mends the damaged column of a row."""
    if table is schema.entries and column == "at":
        return None
    if table is schema.entries and column == "group_seq":
        return Remedy(table, key, {"group_seq": row["seq"]})
    if table is schema.entries and column == "id_digest":
        return Remedy(table, key, {"id_digest": schema.digest_of(schema.unpacked(row["message_id"]))})
    if table is schema.sessions and column == "digest":
        return Remedy(table, key, {"digest": schema.digest_of(schema.unpacked(row["session_id"]))})
    if table is schema.tasks and column == "state":
        return Remedy(table, key, {"state": "active" if row["finished_at"] is None else "finished"})
    starting = _STARTING.get(table.name, {})
    if column in starting:
        return Remedy(table, key, {column: starting[column]})
    return Remedy(table, key, None) if table.name in _DROPPED else None
