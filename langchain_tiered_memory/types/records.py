"""Entries, summaries, facts and hits: frozen values that every other module passes around.

Times are seconds since the epoch in UTC. Tokens are the counter's raw figures unless a name says otherwise.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from langchain_tiered_memory.display.shown import Listing, Shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Sum = TypeVar("Sum", bound="DataclassInstance")

Role: TypeAlias = Literal["system", "user", "assistant", "tool", "other"]
"""Who speaks: LangChain's message types folded to the five that matter to a provider."""

DEFAULT_TRACK = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRef:
    """A session as the stores know it: `key` is the database's small number, `session_id` the caller's name."""

    key: int
    session_id: str
    user: str | None = None
    title: str | None = None
    epoch: int = 0
    """Grows with every edit, pin and removal: a plan made under another epoch is made anew."""
    ended_at: float | None = None
    begun_by: str | None = None
    """The place in a graph of the sub-agent that began it on the main track; `None` for anything else."""
    checkpointer: str | None = None
    """Class of the LangGraph checkpointer that keeps the session's thread too; `None` where none was seen."""
    has_forgotten: bool = False
    """Whether something of it, or one of its name, was forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message on its way into the transcript: read and counted, not yet numbered."""

    id: str
    role: Role
    text: str
    """What a reader would read: the content rendered to plain text. Search and condensation work on this."""
    payload: str
    """The message itself, as JSON that gives an equal message back."""
    digest: str
    """Identity of what the message says: content and calls, without its usage metadata."""
    tokens: int
    at: float
    counter: str = ""
    """Fingerprint of what counted them; empty where nobody says."""
    name: str | None = None
    track: str = DEFAULT_TRACK
    kind: str | None = None
    task: str | None = None
    calls: tuple[str, ...] = ()
    """Ids of the tool calls that this message makes."""
    answers: str | None = None
    """The tool call that this message is the result of."""
    reported: tuple[str, int] | None = None
    """Model name and input tokens that the provider reported with this message, for calibration."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Entry(Shown, sheet="records.entry"):
    """One stored message."""

    seq: int
    """Its place in the session: 1 for the first, without gaps until something is forgotten."""
    id: str
    role: Role
    text: str
    payload: str
    digest: str
    tokens: int
    at: float
    name: str | None
    track: str
    kind: str | None
    task: str | None
    calls: tuple[str, ...]
    answers: str | None
    group: int
    """`seq` of the first entry of its group: an assistant's message and the results of its calls share one."""
    pinned: bool
    revision: int
    """0 until the message is edited."""
    summary_id: str | None
    """The level-1 summary that stands for it (planned, being made or finished)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Entries that a provider needs together, in order. Never split."""

    entries: tuple[Entry, ...]

    @property
    def first_seq(self) -> int:
        """`seq` of its first entry."""
        return self.entries[0].seq

    @property
    def last_seq(self) -> int:
        """`seq` of its last entry."""
        return self.entries[-1].seq

    @property
    def tokens(self) -> int:
        """Raw tokens of all its entries."""
        return sum(entry.tokens for entry in self.entries)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Ids of calls that have no result yet, in the order they were made."""
        answered = {entry.answers for entry in self.entries}
        return tuple(call for entry in self.entries for call in entry.calls if call not in answered)


class SummaryState(StrEnum):
    """The life of a summary."""

    PENDING = "pending"
    """A trigger fired; nobody works on it."""
    GENERATING = "generating"
    """Somebody holds its lease."""
    ACTIVE = "active"
    """Finished, and the highest that stands for what it covers."""
    FAILED = "failed"
    """The last attempt failed; it is tried again after its back-off."""
    SUPERSEDED = "superseded"
    """Finished and covered by a finished higher level; still used for detail and search."""
    ARCHIVED = "archived"
    """As active, in a session that was closed."""

    @property
    def finished(self) -> bool:
        """Whether it has a text that a view may show."""
        return self in (SummaryState.ACTIVE, SummaryState.SUPERSEDED, SummaryState.ARCHIVED)


FactKind: TypeAlias = Literal["goal", "constraint", "decision", "identifier", "number", "path", "question", "statement"]
FactStatus: TypeAlias = Literal["active", "superseded"]
Verdict: TypeAlias = Literal["good", "wrong", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Fact(Shown, sheet="records.fact"):
    """A durable statement of the conversation, with the messages that state it; a correction supersedes it."""

    kind: FactKind
    text: str
    """A short clause that stands alone: its source's own words, what adds nothing left out; or a model's."""
    seq: int
    """The entry that says it."""
    at: float
    by: Role = "other"
    """Who says it: the label that tells a user's word from an assistant's or a tool's."""
    speaker: str = ""
    """The name of who says it, where its message has one: whom "I" and "my" mean."""
    subject: str = ""
    """What it is about, normalised: a later fact of the same kind and subject supersedes an earlier one."""
    attribute: str = ""
    """Which of the subject's properties it tells (`budget`, `contact`), where its words name one."""
    value: str = ""
    """What it says of that: the figure, name, path or choice, as it was said."""
    track: str = ""
    id: str = ""
    """Stable: a digest of the message's number, the kind and the text."""
    sources: tuple[int, ...] = ()
    """Numbers of all entries that state it; empty: `seq` alone."""
    weight: float = 0.0
    """How much it is worth showing, as read: 0 to 1."""
    by_model: bool = False
    """Whether a condensing model worded it, as a sentence that stands by itself; else it is a clause of its source."""
    instead_of: tuple[int, ...] = ()
    """Numbers of earlier messages whose statements it changes, finishes or withdraws, as its writer says."""
    mentions: int = 1
    """How often it was said, or taken up in a summary."""
    status: FactStatus = "active"
    superseded_by: str | None = None
    """The fact that took its place."""
    message_ids: tuple[str, ...] = ()
    """Ids of the messages that state it, where `Session.facts` gives it."""
    session_id: str = ""
    """The session that states it, where `TieredMemory.facts` gives it."""


class Facts(Listing[Fact], sheet="records.facts"):
    """Statements, as `Session.facts` gives them."""

    __slots__ = ()


def added(one: Sum, other: Sum) -> Sum:
    """A record of figures, each field the sum of both."""
    names = [field.name for field in fields(one)]
    return type(one)(**{name: getattr(one, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What model calls took."""

    calls: int = 0
    input_tokens: int = 0
    """As billed: of what a provider read from its cache, for a call that begins with an agent's last request, so many
    as cost the same uncached."""
    output_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        return added(self, other)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Summary(Shown, sheet="records.summary"):
    """A node of level 1 or more. It names exactly what it covers."""

    id: str
    level: int
    track: str | None
    """Of level 1; `None` where a level merges tracks."""
    state: SummaryState
    sources: tuple[str, ...]
    """Level 1: the ids of the messages it covers. Above: the ids of the summaries of the level below."""
    source_digest: str
    """Digest over what its sources said when it was made."""
    first_seq: int
    last_seq: int
    entry_count: int
    """Messages covered, all the way down."""
    first_at: float
    last_at: float
    source_tokens: int
    """Tokens of its direct sources."""
    parent_id: str | None
    strategy: str
    text: str = ""
    facts: tuple[Fact, ...] = ()
    tokens: int = 0
    """Of `text` and its facts as rendered."""
    degraded: bool = False
    """Written by a fallback, to be made again; never condensed upward."""
    stale: bool = False
    """A message below it was edited after it was made."""
    by_rules: bool = False
    """Written by the extractive condenser until a view needs it: then the condensing model writes it."""
    attempts: int = 0
    error: str | None = None
    model: str | None = None
    """Who wrote it: a model's name, or `extractive`."""
    spent: Spent = field(default_factory=Spent)
    kept_identifiers: float | None = None
    """Share of the sources' identifiers, numbers and paths that the text still states (0 to 1)."""
    information_loss: float | None = None
    """Share of what its sources say that it does not, by weighted terms and identifiers (0 to 1)."""
    from_tools: bool = False
    """Whether anything that it stands for came from a tool: then its text is a report of what was found, not of what
    was said."""
    reason: str | None = None
    """A `FailureReason` where the last attempt failed, or a fallback wrote it."""
    created_at: float = 0.0
    verdict: Verdict | None = None
    """What a person called it, by `Session.rate`; a text that was made since does not take it away."""
    verdict_note: str | None = None
    """What the person said was wrong or missing: every text that is made of it holds that."""


class Expanded(Listing[Summary | Entry], sheet="records.detail"):
    """What a summary stands for, as `Session.expand` gives it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageDraft:
    """A piece of a text on its way into the search indexes."""

    part: int
    start: int
    stop: int
    terms: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of an entry or a summary as the search indexes know it."""

    id: int
    session_key: int
    level: int
    """0: of a message; 1 and more: of a summary of that level."""
    seq: int
    """The entry's, or the last entry's that the summary covers."""
    summary_id: str | None
    part: int
    start: int
    """Character offsets into the owner's text."""
    stop: int
    terms: str
    """Analysed terms, in order, separated by spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStatistics:
    """What BM25 needs to know of a session besides its candidates."""

    passages: int
    average_terms: float
    document_frequency: dict[str, int]
    """By query term; at most `ceiling`."""
    ceiling: int
    """Counting stopped here: a term at the ceiling is common."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Hit(Shown, sheet="records.hit"):
    """One thing that a search found."""

    level: int
    id: str
    """A message id at level 0, a summary id above."""
    text: str
    """The whole text of the message or summary."""
    passage: str
    """The piece of it that matched best."""
    score: float
    """Higher is better; comparable within one search only."""
    seq: int
    at: float
    track: str
    role: Role | None = None
    kind: str | None = None
    name: str | None = None
    tokens: int = 0
    session_id: str = ""
    """The session that it stands in, where `TieredMemory.search` gives it."""


class Hits(Listing[Hit], sheet="records.hits"):
    """What a search found, best first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that a context does not show, and why."""

    what: str
    """An id of a message or a summary, or a span such as `12-40`."""
    reason: str
    tokens: int = 0


def utc(seconds: float) -> dt.datetime:
    """A time of ours as an aware `datetime`."""
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC)


def seconds_of(moment: dt.datetime | None) -> float | None:
    """A moment as seconds since the epoch; one without a zone is UTC."""
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()
