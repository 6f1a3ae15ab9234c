"""What a memory tells of itself: events, findings, receipts, figures. Frozen values, as in `records`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.display.shown import Shown

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened which a person may want to know."""

    id: str
    """Stable: a repeated delivery carries the same one."""
    name: str
    session_id: str | None
    at: float
    reason: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that `verify()` found wrong."""

    kind: str
    what: str
    """Where: a session, message, summary or passage id."""
    detail: str
    about: str = ""
    """Id of the summary or passage that has to be mended, where it is not the last part of `what`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a long check or repair is."""

    step: str
    """`check` (messages looked at), `rows` (messages whose derived rows are made anew) or `vectors` (passages)."""
    done: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerifyReport(Shown, sheet="records.verify_report"):
    """What `verify()` looked at and what it found."""

    sessions: int
    entries: int
    summaries: int
    passages: int
    vectors: int
    problems: tuple[Problem, ...]
    pending_vectors: int = 0
    """Passages that wait for their vector."""
    notes: tuple[str, ...] = ()
    """What a person may want to know and is no fault: counts of another counter, vectors that are still to be made."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DoctorReport(Shown, sheet="records.doctor_report"):
    """What `doctor()` found, and what became of it."""

    found: tuple[Problem, ...]
    mended: tuple[Problem, ...]
    left: tuple[Problem, ...]
    """Still wrong afterwards: a damaged file, a message that cannot be read, Chroma out of reach."""
    notes: tuple[str, ...] = ()
    """As `VerifyReport.notes`, afterwards; and files that more people may read than the settings say."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong any more."""
        return not self.left


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Receipt(Shown, sheet="records.receipt"):
    """What `forget()` removed, and what it cannot promise."""

    session_ids: tuple[str, ...]
    entries: int
    revisions: int
    summaries: int
    passages: int
    vectors: int
    may_remain: tuple[str, ...]
    """Places where bytes of the forgotten text may outlive this call, LangGraph's checkpointer among them where one was
    seen with the session; empty where a scan finds nothing."""
    at: float
    facts: int = 0
    files: int = 0
    """Kept files of runs."""
    checkpoints: int = 0
    """Of runs: `MemoryCheckpoint`s."""
    items: int = 0
    """Of the user in `TieredStore`, and in the store of LangGraph that was handed in."""
    threads: int = 0
    """Deleted in LangGraph's checkpointer that was handed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushReport:
    """What `flush()` finished."""

    summaries: int
    """Made now."""
    vectors: int
    """Embedded now."""
    pending: int
    """Work still left: failed attempts waiting for their back-off, or the timeout came first. Where it did, what is due
    and not begun counts as one piece for each session."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryStatus(Shown, sheet="records.status"):
    """What a memory is made of on this machine, and what it lacks there."""

    versions: dict[str, str]
    """Of this package and of those that its behaviour depends on most."""
    database: str
    """The file, or the URL without its password."""
    sessions: int
    embedder: str | None
    """`None` where search is by words alone."""
    counter: str
    """What counts tokens."""
    counts_are_estimates: bool
    chroma: str | None
    """Where the vectors are; `None` where there are none."""
    vectors: int
    """Passages that were embedded."""
    passages: int
    """Passages that search knows, by words or by meaning."""
    gaps: tuple[str, ...]
    """What works with less than it could: what, why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelMetrics:
    """One level of a session's tree."""

    level: int
    summaries: int
    tokens: int
    source_tokens: int
    seconds: float

    @property
    def ratio(self) -> float:
        """Share of the sources' tokens that condensing saved (0 to 1)."""
        return 1 - self.tokens / self.source_tokens if self.source_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """What people called the summaries that one writer made of one level, by `Session.rate`."""

    level: int
    writer: str
    """A model's name, or `extractive`."""
    good: int = 0
    wrong: int = 0
    incomplete: int = 0

    @property
    def good_share(self) -> float:
        """Share of the rated ones that were called good (0 to 1)."""
        return self.good / (self.good + self.wrong + self.incomplete)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SessionMetrics(Shown, sheet="records.metrics"):
    """Sizes, costs, ratios."""

    session_id: str
    messages: int
    tokens: int
    levels: tuple[LevelMetrics, ...]
    overall_ratio: float
    """Share of the transcript's tokens that the present cover saves (0 to 1)."""
    tokens_saved: int
    spent: Spent
    cost: float | None
    """Money spent on condensing, in the price table's currency; `None` without a price."""
    saved_cost_per_call: float | None
    """Money that one full-history call would cost more than one over the cover; `None` without a price."""
    failed: int
    degraded: int
    stale: int
    kept_identifiers: float | None
    information_loss: float | None
    """Mean over the level-1 summaries; see `Summary.information_loss`."""
    ratings: tuple[Ratings, ...] = ()
