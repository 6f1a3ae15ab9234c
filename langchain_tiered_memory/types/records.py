"""Entries, summaries, facts and hits: the frozen values that all other modules pass around.

Times are seconds since the epoch in UTC. Tokens are the counter's raw figures unless a name says otherwise.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

from langchain_tiered_memory.display.shown import Listing, Shown

Role: TypeAlias = Literal["system", "user", "assistant", "tool", "other"]
"""Who speaks: LangChain's message types reduced to the five that matter to a provider."""

DEFAULT_TRACK = "main"


UNKNOWN_EPOCH = -1
"""Of a session whose row is damaged there, until something is written to it: no plan was made under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRef:
    """A session as the stores know it. `key` is its number in the database, `session_id` the caller's name for it."""

    key: int
    session_id: str
    user: str | None = None
    title: str | None = None
    epoch: int = 0
    """Grows with every edit, pin and removal. A plan from another epoch is made again."""
    ended_at: float | None = None
    begun_by: str | None = None
    """The place in a graph of the sub-agent that began it on the main track, else `None`."""
    checkpointer: str | None = None
    """Class of the LangGraph checkpointer that also keeps the session's thread. `None` if none was seen."""
    has_forgotten: bool = False
    """Whether something of it, or a session of the same name, was forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message on its way into the transcript: read and counted, not yet numbered."""

    id: str
    role: Role
    text: str
    """The content as plain text. Search and condensation work on it."""
    payload: str
    """The message as JSON, from which an equal message can be made."""
    digest: str
    """Digest of what the message says: its content and calls, without usage metadata."""
    tokens: int
    at: float
    counter: str = ""
    """Fingerprint of their counter. Empty if it is not known."""
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
    """Its number in the session, from 1. There are no gaps until something is forgotten."""
    id: str
    role: Role
    text: str
    """The content as plain text."""
    payload: str
    """The message as JSON."""
    digest: str
    """Digest of its content and calls."""
    tokens: int
    at: float
    """When it was said, in seconds since the epoch."""
    name: str | None
    """The speaker's name, if the message has one."""
    track: str
    kind: str | None
    """What kind of message the caller said it is, such as `design_decision`."""
    task: str | None
    """The task that it belongs to."""
    calls: tuple[str, ...]
    """Ids of the tool calls that it makes."""
    answers: str | None
    """Id of the tool call that it answers."""
    group: int
    """`seq` of the first entry of its group. An assistant's message and the results of its calls form one group."""
    pinned: bool
    revision: int
    """How often it was edited."""
    summary_id: str | None
    """The level-1 summary that covers it, whether planned, being made or finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Entries that a provider needs together, in order. A group is never split."""

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
        """Tokens of all its entries together, uncalibrated."""
        return sum(entry.tokens for entry in self.entries)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Ids of calls without a result so far, in the order in which they were made."""
        answered = {entry.answers for entry in self.entries}
        return tuple(call for entry in self.entries for call in entry.calls if call not in answered)


class SummaryState(StrEnum):
    """The states of a summary."""

    PENDING = "pending"
    """It is due, and nobody works on it yet."""
    GENERATING = "generating"
    """A worker is writing it and holds its lease."""
    ACTIVE = "active"
    """Finished, with no finished summary above it."""
    FAILED = "failed"
    """The last attempt failed. The next one follows after a back-off."""
    SUPERSEDED = "superseded"
    """Finished, with a finished summary above it. Search and `expand` still use it."""
    ARCHIVED = "archived"
    """Active when its session ended."""

    @property
    def finished(self) -> bool:
        """Whether it has a text that a view can show."""
        return self in FINISHED


FINISHED = (SummaryState.ACTIVE, SummaryState.SUPERSEDED, SummaryState.ARCHIVED)
ROOT = (SummaryState.ACTIVE, SummaryState.ARCHIVED)
"""States of finished summaries that no finished one covers."""


FactKind: TypeAlias = Literal["goal", "constraint", "decision", "identifier", "number", "path", "question", "statement"]
FactStatus: TypeAlias = Literal["active", "superseded", "joined"]
Verdict: TypeAlias = Literal["good", "wrong", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Fact(Shown, sheet="records.fact"):
    """A lasting statement from the conversation, with the messages that make it. A correction supersedes it."""

    kind: FactKind
    text: str
    """A short clause that makes sense on its own, in the words of its source or of a model."""
    seq: int
    """Number of the entry that says it."""
    at: float
    """When it was said, in seconds since the epoch."""
    by: Role = "other"
    """The role of the speaker: it tells a user's word from an assistant's or a tool's."""
    speaker: str = ""
    """The speaker's name, if the message has one: the person that "I" and "my" mean."""
    subject: str = ""
    """What it is about, normalised. A later fact of the same kind and subject supersedes an earlier one."""
    attribute: str = ""
    """The property of the subject, such as `budget` or `contact`, if its words name one."""
    value: str = ""
    """The value of that property: the figure, name, path or choice, as it was said."""
    track: str = ""
    id: str = ""
    """A stable digest of the message's number, the kind and the text."""
    sources: tuple[int, ...] = ()
    """Numbers of all entries that state it. If empty, `seq` is the only one."""
    weight: float = 0.0
    """How much it is worth showing, from 0 to 1."""
    by_model: bool = False
    """Whether a condensing model worded it. Otherwise it is a clause of its source."""
    instead_of: tuple[int, ...] = ()
    """Numbers of earlier messages whose statements it changes, finishes or withdraws, according to its writer."""
    ends: tuple[str, ...] = ()
    """Beginnings of the ids of the model's notes that it changes, finishes or withdraws, according to its writer."""
    joins: tuple[str, ...] = ()
    """Ids of the model's notes that it says in fewer words, because a list had no room for all of them."""
    mentions: int = 1
    """How often it was said, or repeated in a summary."""
    status: FactStatus = "active"
    """`superseded`: another holds in its place. `joined`: it holds, and another says it together with others."""
    superseded_by: str | None = None
    """Id of the fact that took its place, or that says it too."""
    message_ids: tuple[str, ...] = ()
    """Ids of the messages that state it. `Session.facts` fills them in."""
    session_id: str = ""
    """The session that states it. `TieredMemory.facts` fills it in."""


class Facts(Listing[Fact], sheet="records.facts"):
    """A list of facts, as `Session.facts` returns it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What model calls consumed."""

    calls: int = 0
    input_tokens: int = 0
    """Tokens as billed. If a call begins with the agent's last request, its cached tokens count as the number of
    uncached tokens that cost the same."""
    output_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        """The sum of both."""
        return Spent(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Summary(Shown, sheet="records.summary"):
    """A summary of level 1 or higher. It names exactly what it covers."""

    id: str
    level: int
    track: str | None
    """The track of a level-1 summary. `None` if a higher level merges tracks."""
    state: SummaryState
    sources: tuple[str, ...]
    """At level 1, the ids of the messages that it covers. Above, the ids of the summaries one level below."""
    source_digest: str
    """Digest of what its sources said when it was made."""
    first_seq: int
    """Number of the first message that it covers."""
    last_seq: int
    """Number of the last message that it covers."""
    entry_count: int
    """How many messages it covers, through all levels."""
    first_at: float
    """Time of the first message, in seconds since the epoch."""
    last_at: float
    """Time of the last message, in seconds since the epoch."""
    source_tokens: int
    """Tokens of its direct sources."""
    parent_id: str | None
    """The summary above it."""
    strategy: str
    text: str = ""
    tokens: int = 0
    """Tokens of `text`."""
    degraded: bool = False
    """Whether a fallback wrote it. It is made again later, and not condensed further until then."""
    stale: bool = False
    """Whether one of its messages was edited since it was made."""
    by_rules: bool = False
    """Whether the extractive condenser wrote it for now. The condensing model writes it when a view needs it."""
    attempts: int = 0
    error: str | None = None
    """What went wrong at the last attempt."""
    model: str | None = None
    """Its writer: a model's name, or `extractive`."""
    spent: Spent = field(default_factory=Spent)
    """What writing it consumed."""
    kept_identifiers: float | None = None
    """Share of the sources' identifiers, numbers and paths that the text still states, from 0 to 1."""
    information_loss: float | None = None
    """Share of what its sources say that the text does not, by weighted terms and identifiers, from 0 to 1."""
    from_tools: bool = False
    """Whether any of its sources came from a tool. Then it reports what was found, not what was said."""
    reason: str | None = None
    """A `FailureReason`, if the last attempt failed or a fallback wrote it."""
    created_at: float = 0.0
    """When it was made, in seconds since the epoch."""
    verdict: Verdict | None = None
    """A person's verdict from `Session.rate`. It outlives a new text."""
    verdict_note: str | None = None
    """What that person said was wrong or missing. Every later text of this summary says it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SummaryTree(Shown, sheet="records.tree"):
    """All summaries of a session, or of one track of it, as they are now."""

    session_id: str
    summaries: tuple[Summary, ...]
    """Sorted by level, then by place. Unfinished ones are included."""
    messages: int
    """How many messages the transcript has."""
    tokens: int
    """Tokens of these messages."""

    @property
    def height(self) -> int:
        """The highest level, or 0 if there is no summary."""
        return max((one.level for one in self.summaries), default=0)

    @property
    def roots(self) -> tuple[Summary, ...]:
        """The summaries without a summary above them, by place."""
        known = {one.id for one in self.summaries}
        tops = (one for one in self.summaries if one.parent_id not in known)
        return tuple(sorted(tops, key=lambda one: (one.first_seq, one.last_seq)))

    @property
    def raw_messages(self) -> int:
        """How many messages no level-1 summary covers, not even an unfinished one."""
        return self.messages - sum(one.entry_count for one in self.level(1))

    def level(self, number: int) -> tuple[Summary, ...]:
        """The summaries of one level, by place."""
        return tuple(one for one in self.summaries if one.level == number)

    def children(self, summary_id: str) -> tuple[Summary, ...]:
        """The summaries directly below one, by place. None for level 1, whose `sources` are messages."""
        return tuple(one for one in self.summaries if one.parent_id == summary_id)


class Expanded(Listing[Summary | Entry], sheet="records.detail"):
    """What a summary covers, as `Session.expand` returns it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageDraft:
    """A piece of a text on its way into the search indexes."""

    part: int
    start: int
    stop: int
    terms: str


class Passage(NamedTuple):
    """A piece of an entry or a summary as the search indexes know it: a question reads a thousand."""

    id: int
    session_key: int
    level: int
    """0 for a message, 1 and more for a summary of that level."""
    seq: int
    """Number of the entry, or of the last entry that the summary covers."""
    part: int
    start: int
    """Character offsets into the owner's text."""
    stop: int
    terms: str
    """Analysed terms, in order, separated by spaces."""
    summary_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStatistics:
    """What BM25 needs to know about a session besides its candidates."""

    passages: int
    average_terms: float
    document_frequency: dict[str, int]
    """Counts by query term, at most `ceiling` each."""
    ceiling: int
    """Where counting stops. A term that reaches the ceiling is common."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Hit(Shown, sheet="records.hit"):
    """One search result: a message or a summary."""

    level: int
    """0 for a message, else the level of the summary."""
    id: str
    """Id of the message or summary."""
    text: str
    """The whole text of the message or summary."""
    passage: str
    """The part of it that matched best."""
    score: float
    """Higher is better. Scores are comparable within one search only."""
    seq: int
    """Number of the message, or of the last message that the summary covers."""
    at: float
    """Its time, in seconds since the epoch."""
    track: str
    role: Role | None = None
    """Of a message."""
    kind: str | None = None
    """Of a message."""
    name: str | None = None
    """The speaker's name, if the message has one."""
    tokens: int = 0
    """Tokens of `text`."""
    session_id: str = ""
    """The session that it is in. `TieredMemory.search` fills it in."""


class Hits(Listing[Hit], sheet="records.hits"):
    """Search results, best first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that a context does not show, and why."""

    what: str
    """Id of a message or a summary, a span of message numbers such as `12-40`, or a name, such as that of a section."""
    reason: str
    tokens: int = 0
    """Its tokens; 0 if they are not known."""


EARLIEST = dt.datetime(1, 1, 1, tzinfo=dt.UTC).timestamp()
LATEST = dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC).timestamp()
"""All our times are between these, so each has a date."""


def utc(seconds: float) -> dt.datetime:
    """A time of ours as an aware `datetime`."""
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC)


def seconds_of(moment: dt.datetime | None) -> float | None:
    """A time as seconds since the epoch. Without a zone it is UTC."""
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()
