"""What a memory reports about itself: events, findings, receipts, figures. Frozen values, as in `records`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.display.shown import Shown

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened and that a person may want to know about."""

    id: str
    """Stable: if the event is delivered again, it has the same id."""
    name: str
    """One of the names in the table of events."""
    session_id: str | None
    at: float
    """When it happened, in seconds since the epoch."""
    reason: str
    """What happened, in words."""
    details: dict[str, Any] = field(default_factory=dict)
    """The same as values, by event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that `verify()` found wrong."""

    kind: str
    what: str
    """The id of a session, message, summary or passage."""
    detail: str
    """What is wrong, in words."""
    about: str = ""
    """Id of the summary or passage to repair, if it is not the last part of `what`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a long check or repair has come."""

    step: str
    """`check` (messages examined), `rows` (messages whose derived rows were made again) or `vectors` (passages)."""
    done: int
    of: int
    """How many there are in all."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerifyReport(Shown, sheet="records.verify_report"):
    """How much `verify()` examined, and what it found."""

    sessions: int
    entries: int
    summaries: int
    passages: int
    vectors: int
    problems: tuple[Problem, ...]
    pending_vectors: int = 0
    """Passages without a vector so far."""
    notes: tuple[str, ...] = ()
    """What a person may want to know although it is not a fault: counts of another counter, vectors still to be
    made."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DoctorReport(Shown, sheet="records.doctor_report"):
    """What `doctor()` found and repaired."""

    found: tuple[Problem, ...]
    mended: tuple[Problem, ...]
    left: tuple[Problem, ...]
    """What is still wrong: a damaged file, a message that cannot be read, Chroma out of reach."""
    notes: tuple[str, ...] = ()
    """As `VerifyReport.notes`, after the repair. Also names files that more people can read than the settings say."""

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong now."""
        return not self.left


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Receipt(Shown, sheet="records.receipt"):
    """What `forget()` removed, and where traces may remain."""

    session_ids: tuple[str, ...]
    entries: int
    """Messages."""
    revisions: int
    """Earlier wordings of edited messages."""
    summaries: int
    passages: int
    vectors: int
    may_remain: tuple[str, ...]
    """Places where bytes of the forgotten text may remain, such as a LangGraph checkpointer that the session was used
    with. Empty if a scan found nothing."""
    at: float
    """When it was done, in seconds since the epoch."""
    facts: int = 0
    files: int = 0
    """Kept files of runs."""
    checkpoints: int = 0
    """Checkpoints of runs."""
    items: int = 0
    """The user's items in `TieredStore`, and in the LangGraph store that the caller passed."""
    threads: int = 0
    """Threads deleted in the LangGraph checkpointer that the caller passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushReport:
    """What `flush()` finished."""

    summaries: int
    """Summaries written by this call."""
    vectors: int
    """Passages embedded by this call."""
    pending: int
    """Work that is left: failed attempts that wait for their back-off, and work that the timeout cut off. All work of a
    session that was not begun counts as one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryStatus(Shown, sheet="records.status"):
    """The parts of a memory on this machine, and what is missing."""

    versions: dict[str, str]
    """Versions of this package and of those that matter most to it."""
    database: str
    """The file, or the URL without its password."""
    sessions: int
    embedder: str | None
    """The embedding model. `None` if search is by words alone."""
    counter: str
    """What counts tokens."""
    counts_are_estimates: bool
    chroma: str | None
    """Where the vectors are. `None` if there are none."""
    vectors: int
    """How many passages have a vector."""
    passages: int
    """How many passages search knows."""
    gaps: tuple[str, ...]
    """What could work better: what is missing, why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelMetrics:
    """One level of a session's tree of summaries."""

    level: int
    summaries: int
    tokens: int
    """Tokens of its summaries."""
    source_tokens: int
    """Tokens of what they were made from."""
    seconds: float
    """Time that models took to write them."""

    @property
    def ratio(self) -> float:
        """Share of the sources' tokens that condensing saved, from 0 to 1."""
        return 1 - self.tokens / self.source_tokens if self.source_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """People's verdicts (`Session.rate`) on the summaries of one level by one writer."""

    level: int
    writer: str
    """A model's name, or `extractive`."""
    good: int = 0
    wrong: int = 0
    incomplete: int = 0

    @property
    def good_share(self) -> float:
        """Share of the verdicts that are `good`, from 0 to 1."""
        return self.good / (self.good + self.wrong + self.incomplete)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SessionMetrics(Shown, sheet="records.metrics"):
    """Sizes, costs and ratios of a session."""

    session_id: str
    messages: int
    tokens: int
    """Tokens of the transcript."""
    levels: tuple[LevelMetrics, ...]
    overall_ratio: float
    """Share of the transcript's tokens that the present cover saves, from 0 to 1."""
    tokens_saved: int
    """Tokens that the present cover saves."""
    spent: Spent
    """What condensing consumed."""
    cost: float | None
    """Money spent on condensing, in the currency of the price table. `None` without a price."""
    saved_cost_per_call: float | None
    """Money that one call with the cover saves over one with the whole history. `None` without a price."""
    failed: int
    """Summaries whose last attempt failed."""
    degraded: int
    """Summaries that a fallback wrote."""
    stale: int
    """Summaries with a message that was edited since."""
    kept_identifiers: float | None
    """Mean of `Summary.kept_identifiers` over the level-1 summaries."""
    information_loss: float | None
    """Mean of `Summary.information_loss` over the level-1 summaries."""
    ratings: tuple[Ratings, ...] = ()
