"""Values between flows and stores: drafts of messages, plans of summaries, filters."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from langchain_tiered_memory.types.outcomes import FailureReason
    from langchain_tiered_memory.types.records import Draft, Fact, PassageDraft, SessionRef, Spent
    from langchain_tiered_memory.types.runs import FileOperation


TOUCHING_ROLES = ("assistant", "tool")
"""Roles whose messages touch files: calls name files, and results of searches and listings find them."""
FINDING = ("search", "list")
"""The operations whose results name files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTouch:
    """A file that a tool call names."""

    path: str
    operation: FileOperation
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message to be stored, with its passages for the text index."""

    draft: Draft
    passages: tuple[PassageDraft, ...]
    touches: tuple[FileTouch, ...] = ()
    """Files that its tool calls touch."""


class Follows(NamedTuple):
    """The message that new ones on its track follow. They are written only if it has not changed."""

    message_id: str
    seq: int
    epoch: int
    """The session's epoch at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The result of one write."""

    ref: SessionRef
    new: int
    revised: tuple[str, ...]
    """Ids of messages that came back with other content."""
    is_taken: bool = False
    """Whether an id that had to be new already existed, or the message that they follow has changed. Nothing was
    written."""
    left_out: frozenset[int] = frozenset()
    """Places of forgotten messages that were not written again."""
    behind: int = 0
    """Number of the session's newest message before the write. The new ones follow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEntry:
    """The parts of a message without a summary that a trigger needs."""

    seq: int
    group: int
    tokens: int
    at: float
    waits: bool
    """Whether it made calls without a result so far."""
    ends_task: bool = False
    """Whether a task was finished after it, before the next message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPlan:
    """A summary to be made: what it covers, and how to write it."""

    id: str
    level: int
    strategy: str
    track: str | None = None
    source_seqs: tuple[int, ...] = ()
    """Level 1: the entries."""
    source_ids: tuple[str, ...] = ()
    """Above: the summaries of the level below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A finished text, ready to be committed."""

    text: str
    tokens: int
    facts: tuple[Fact, ...]
    """At level 1, what its messages and this text state."""
    model: str
    spent: Spent
    kept_identifiers: float | None
    source_digest: str
    passages: tuple[PassageDraft, ...]
    degraded: bool = False
    by_rules: bool = False
    """Whether a model must rewrite it when a view needs it."""
    error: str | None = None
    """Why a fallback wrote it."""
    retry_at: float | None = None
    """When to make a degraded summary again."""
    information_loss: float | None = None
    """See `Summary.information_loss`."""
    from_tools: bool = False
    """See `Summary.from_tools`."""
    reason: FailureReason | None = None
    """Why a fallback wrote it."""
    counter: str = ""
    """Fingerprint of the counter of its tokens. Empty if it is not known."""
    taken_up: tuple[str, ...] = ()
    """Above level 1: ids of facts that this text states."""
    beside: tuple[str, ...] = ()
    """Ids of what its writer read besides its sources: summaries that the same call wrote from messages it read, and
    notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """Which passages a search may find, in addition to their session and level."""

    tracks: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A removal that has begun and is not finished."""

    key: int
    targets: tuple[int, ...] = ()
    """Keys of sessions that still have what is to be removed. None if only traces are left in files or in Chroma."""
    is_erased: bool = False
    """Whether no trace is left in the database's own files."""


def digest_of_summary(text: str) -> str:
    """Identity of a summary's content: its text, and a former list of facts, which is always empty now."""
    return hashlib.sha256(json.dumps([text, []]).encode("ascii")).hexdigest()


def counter_mark(fingerprint: str) -> int:
    """A small number that is stored with each count and identifies the counter that made it."""
    return int.from_bytes(hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).digest()[:4]) >> 1
