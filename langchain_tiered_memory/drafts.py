"""Values on their way into the stores and out of them: what flows and stores say to each other."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.outcomes import FailureReason
    from langchain_tiered_memory.records import Draft, Fact, PassageDraft, SessionRef, Spent
    from langchain_tiered_memory.runs import FileOperation


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTouch:
    """A file that a tool call names."""

    path: str
    operation: FileOperation
    tool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A message on its way in, with its passages for the text index."""

    draft: Draft
    passages: tuple[PassageDraft, ...]
    touches: tuple[FileTouch, ...] = ()
    """Files that its tool calls touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """What one write did."""

    ref: SessionRef
    new: int
    revised: tuple[str, ...]
    """Ids of messages that came again with other content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEntry:
    """As much of a message without a summary as a trigger needs."""

    seq: int
    group: int
    tokens: int
    at: float
    waits: bool
    """Whether it made calls that have no result yet."""
    ends_task: bool = False
    """Whether a task was finished after it, before the next message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPlan:
    """A summary to be made: what it covers, and how it is to be written."""

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
    model: str
    spent: Spent
    kept_identifiers: float | None
    source_digest: str
    passages: tuple[PassageDraft, ...]
    degraded: bool = False
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """Which passages a search may find, beside their session and level."""

    tracks: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """How much one removal took."""

    entries: int = 0
    revisions: int = 0
    summaries: int = 0
    passages: int = 0
    session_ids: tuple[str, ...] = field(default=())

    def __add__(self, other: Removed) -> Removed:
        """Both together."""
        return Removed(
            entries=self.entries + other.entries,
            revisions=self.revisions + other.revisions,
            summaries=self.summaries + other.summaries,
            passages=self.passages + other.passages,
            session_ids=self.session_ids + other.session_ids,
        )


def digest_of_summary(text: str, facts: Sequence[Fact]) -> str:
    """Identity of what a summary says."""
    told = [dataclasses.asdict(fact) for fact in facts]
    for one in told:
        if one["by"] == "other":
            del one["by"]  # as facts were before they had a speaker
    said = json.dumps([text, told])
    return hashlib.sha256(said.encode("ascii")).hexdigest()
