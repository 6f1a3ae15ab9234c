"""What the guard decided about one request, and why: zones, outcomes, steps, and what is read from their history.

Frozen values, as in `records`. Tokens are those of the model where calibration knows it, else raw counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from langchain_tiered_memory.display.shown import Listing, Shown
from langchain_tiered_memory.types.records import LeftOut, Spent


class Zone(StrEnum):
    """How full the window is: `used / limit`."""

    SAFE = "safe"
    WARNING = "warning"
    DANGER = "danger"
    CRITICAL = "critical"


ZONES = tuple(Zone)
"""From the emptiest to the fullest."""


class OutcomeKind(StrEnum):
    """What became of the question whether to condense a view."""

    NOT_NEEDED = "not_needed"
    """Neither the threshold nor the allowed tokens were reached."""
    CONDENSED = "condensed"
    """Summaries stand for older messages now."""
    MASKED = "masked"
    """Tool outputs gave way to pointers, and that was enough."""
    TRUNCATED = "truncated"
    """Messages were left out of the view without a summary; they are named, and stay in the transcript."""
    FAILED = "failed"
    """Condensing was due and did not work; the view stands as it was, for it still fits."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer of a condensing model that was not taken."""

    fault: str
    """What is wrong with it, in a word or two: `too long`, `echo`, `ungrounded`, ..."""
    why: str
    """The same in words, as the model is told."""


class FailureReason(StrEnum):
    """Why a summary or a condensation of a view did not come about."""

    TOO_FEW_MESSAGES = "too_few_messages"
    """Nothing but what must stay is there to condense."""
    CONDENSED_RECENTLY = "condensed_recently"
    """Nothing new was finished since the last condensation."""
    EMPTY_SUMMARY = "empty_summary"
    """The model said nothing, or next to nothing."""
    CONTEXT_GREW = "context_grew"
    """What was made is not smaller than what it would stand for."""
    REFUSED = "refused"
    """The model declined."""
    MODEL_ERROR = "model_error"
    """The model, or what calls it, raised."""
    TIMEOUT = "timeout"
    """The model took longer than its deadline."""
    VALIDATOR_REJECTED = "validator_rejected"
    """A validator, ours or the user's, did not take the text."""
    UNSOUND = "unsound"
    """The text has too little to do with what it would stand for (`ValidationSettings.least_grounded`)."""
    NOT_READY = "not_ready"
    """Summaries are due and being made; the next request takes them up."""
    CIRCUIT_OPEN = "circuit_open"
    """The model failed so often that it is left alone for a while."""
    RATE_LIMITED = "rate_limited"
    """The bound on model calls per minute was reached."""
    UNDONE = "undone"
    """A condensation of this view was undone; it is not made again while the view fits."""


OF_THE_ANSWER = frozenset({
    FailureReason.EMPTY_SUMMARY, FailureReason.CONTEXT_GREW, FailureReason.REFUSED, FailureReason.VALIDATOR_REJECTED,
    FailureReason.UNSOUND,
})  # fmt: skip
"""Reasons for which an answer that came was not taken: whoever asks again says why."""

StepKind: TypeAlias = Literal["masked", "condensed", "slid", "pruned", "shortened", "minimal", "recovered"]
"""What was done to a view, in the order it can happen. `slid`: the sliding window; `shortened`: messages that must be
shown stand there head and tail; `recovered`: after an overflow, from the last checkpoint, with the essentials alone."""
CUTTING_STEPS: frozenset[StepKind] = frozenset({"shortened", "minimal", "recovered"})
"""Steps that cut one request, and leave the view's plan alone."""

WindowSource: TypeAlias = Literal["model", "setting", "learned", "budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The room of one request.

    Where only a budget is known, it is taken for what is allowed, and the window is what would allow it.
    """

    tokens: int
    """Of the model's window."""
    reserved_tokens: int
    """Kept free for the answer."""
    buffer_share: float = 0.1
    """Kept free besides, for counts are not exact."""
    source: WindowSource = "model"
    most: int | None = None
    """What a request may take where that is less than the window allows; `None`: as much as it allows."""

    @property
    def limit(self) -> int:
        """Window minus reserved output."""
        return max(self.tokens - self.reserved_tokens, 1)

    @property
    def allowed(self) -> int:
        """Window without its buffer, minus reserved output, or what was said to be the most."""
        allowed = max(math.floor(self.tokens * (1 - self.buffer_share) + 1e-9) - self.reserved_tokens, 1)
        return allowed if self.most is None else min(allowed, self.most)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outcome(Shown, sheet="contexts.outcome"):
    """One decision about a view. Those that changed it, or tried to, are kept: `Session.outcomes()`."""

    id: str
    """Stable; also the id of the event that tells of it. Empty for `NOT_NEEDED`, which is not kept."""
    kind: OutcomeKind
    reason: FailureReason | None = None
    """Of `FAILED`; of `TRUNCATED` why it was not condensed instead."""
    why: str = ""
    """What made it due: a sentence with figures."""
    at: float = 0.0
    track: str = "main"
    last_seq: int = 0
    """The newest message at that time."""
    messages_before: int = 0
    """Messages of the conversation that the view showed as themselves."""
    messages_after: int = 0
    tokens_before: int = 0
    """Of the whole request, before anything was done."""
    tokens_after: int = 0
    summary_ids: tuple[str, ...] = ()
    """Summaries that came into the view."""
    left_out: tuple[LeftOut, ...] = ()
    """What left the view, and why: the ledger's rows of this outcome."""
    steps: tuple[StepKind, ...] = ()
    spent: Spent = field(default_factory=Spent)
    """What making those summaries took."""
    cost: float | None = None
    """The same in the price table's currency; `None` without a price."""
    error: str | None = None
    breaks_prefix: bool = False
    """Whether a prompt cache of this view had to begin anew."""
    undone_at: float | None = None


class Outcomes(Listing[Outcome], sheet="contexts.outcomes"):
    """Decisions about views, newest first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A view entered a fuller zone."""

    zone: Zone
    used_tokens: int
    limit_tokens: int
    recommendation: str

    @property
    def ratio(self) -> float:
        """`used / limit`."""
        return self.used_tokens / self.limit_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardReport:
    """What the guard saw and did for one request: `Context.guard`."""

    window: Window
    used_tokens: int
    """Of the request before anything was done to it."""
    zone: Zone
    outcome: Outcome
    steps: tuple[StepKind, ...] = ()
    alert: Alert | None = None
    """Where this request entered a fuller zone than the one before."""
    checkpoint_id: str | None = None
    """The checkpoint that was made for this request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of older messages, and how a view tells of it."""

    first_seq: int
    last_seq: int
    messages: int
    shown: Literal["whole", "short", "headline", "joined", "untold"]
    """The summary's text, its short form, its headline; one headline for several summaries; or a line that only names
    the messages."""
    summary_ids: tuple[str, ...] = ()
    tokens: int = 0
    """As rendered in the view."""
    reason: str = ""
    """Why nothing tells of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """What a view shows from one condensation to the next, besides what each request adds: prompt, tools, recall.

    Messages are named by their `seq`s, groups by the `seq` of their first message.
    """

    stretches: tuple[Stretch, ...]
    """What is older, in order."""
    whole_from: int
    """From here on messages stand as themselves, but for what the next three name."""
    left_groups: tuple[int, ...] = ()
    """Groups from there on that are left out."""
    kept_groups: tuple[int, ...] = ()
    """Groups before it that stand as themselves all the same."""
    cut: tuple[int, ...] = ()
    """Tool outputs that stand there by their beginning and end."""
    quoted: tuple[int, ...] = ()
    """Older messages that are quoted as far as their room goes: what the user asked, and what its kind keeps."""
    facts: str = ""
    """The list of facts, word for word; so are the next two."""
    files: str = ""
    parts: str = ""
    """Parts of files."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ViewDiff(Shown, sheet="contexts.view_diff"):
    """What a condensation changed in a view, or (from `preview`) would change. Numbers are messages' `seq`s."""

    outcome: Outcome
    left: tuple[LeftOut, ...] = ()
    """Messages and summaries that the view showed and shows no more."""
    came: tuple[LeftOut, ...] = ()
    """Summaries and lines that stand there instead; `reason` says for what."""
    text_before: str = ""
    """What stood for older history."""
    text_after: str = ""
    before: ShownView | None = None
    """What the view showed; `None` where it had no plan yet, so that every message stood as itself, or where the plan
    is not known any more."""
    after: ShownView | None = None
    """What it shows since; `None` where nothing of it was changed, or as above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """Something that left a view, and why. It is still in the transcript."""

    outcome_id: str
    at: float
    track: str
    what: str
    """Id of a message or summary, or a span of `seq`s such as `12-40`."""
    reason: str
    tokens: int
    undone: bool = False
    """Whether it came back: the outcome was undone."""


class Ledger(Listing[LedgerRow], sheet="contexts.ledger"):
    """What left the views, newest first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One condensation, and whether it paid."""

    outcome_id: str
    at: float
    spent: Spent
    spent_cost: float | None
    saved_tokens_per_call: int
    calls_since: int
    """Model calls (messages of the assistant) that were made with the smaller view."""
    saved_tokens: int
    saved_cost: float | None
    breaks_even_after: float | None
    """Calls until the tokens (with a price: the money) saved are what was spent; `None` where nothing is saved."""

    @property
    def paid(self) -> bool:
        """Whether it saved what it cost."""
        return self.breaks_even_after is not None and self.calls_since >= self.breaks_even_after


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CostLedger(Shown, sheet="contexts.costs"):
    """What condensing a session cost, and what it saved."""

    rows: tuple[CostRow, ...]
    spent: Spent
    """Everything spent on summaries, those that no view shows yet included."""
    spent_cost: float | None
    saved_tokens: int
    saved_cost: float | None
    prefix_breaks: int
    """How often a prompt cache had to begin anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdAdvice:
    """A threshold that past condensations of a session speak for."""

    percent: float
    present_percent: float
    samples: int
    """Condensations that it rests on."""
    because: str
