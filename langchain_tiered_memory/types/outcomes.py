"""What the guard decided about one request, and why: zones, outcomes, steps, and what their history tells.

Frozen values, as in `records`. Tokens are calibrated if the model is known, else raw counts.
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
    """What the guard did about a view."""

    NOT_NEEDED = "not_needed"
    """The view was small enough."""
    CONDENSED = "condensed"
    """Summaries took the place of older messages."""
    MASKED = "masked"
    """Tool outputs were shortened, and that was enough."""
    TRUNCATED = "truncated"
    """Messages left the view without a summary. The view names them, and they stay in the transcript."""
    FAILED = "failed"
    """Condensing was due and did not work. The view is unchanged, because it still fits."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer of a condensing model that was not accepted."""

    fault: str
    """The fault in a word or two: `too long`, `echo`, `ungrounded`, ..."""
    why: str
    """The reason in words, as the model is told."""


class FailureReason(StrEnum):
    """Why a summary was not written, or a view not condensed."""

    TOO_FEW_MESSAGES = "too_few_messages"
    """Everything in the view must stay, so there is nothing to condense."""
    CONDENSED_RECENTLY = "condensed_recently"
    """No summary was finished since the last condensation."""
    EMPTY_SUMMARY = "empty_summary"
    """The model wrote nothing, or next to nothing."""
    CONTEXT_GREW = "context_grew"
    """The summary is no smaller than its sources."""
    REFUSED = "refused"
    """The model declined."""
    MODEL_ERROR = "model_error"
    """The model call raised an error."""
    TIMEOUT = "timeout"
    """The model took longer than its deadline."""
    VALIDATOR_REJECTED = "validator_rejected"
    """A built-in validator, or one of the user's, rejected the text."""
    UNSOUND = "unsound"
    """The text has too little to do with its sources (the rule `soundness`)."""
    NOT_READY = "not_ready"
    """The summaries that are due are still being written. The next request uses them."""
    CIRCUIT_OPEN = "circuit_open"
    """The model failed so often, or its provider asked for a pause, that it is not called for a while."""
    RATE_LIMITED = "rate_limited"
    """The limit of model calls per minute was reached."""
    UNDONE = "undone"
    """A condensation of this view was undone. It is not repeated while the view fits."""


OF_THE_ANSWER = frozenset({
    FailureReason.EMPTY_SUMMARY, FailureReason.CONTEXT_GREW, FailureReason.REFUSED, FailureReason.VALIDATOR_REJECTED,
    FailureReason.UNSOUND,
})  # fmt: skip
"""Reasons to reject an answer that did arrive. The next call tells the model which one it was."""

StepKind: TypeAlias = Literal["masked", "condensed", "slid", "pruned", "shortened", "minimal", "recovered"]
"""The steps that make a view smaller, in the order in which they can happen. `slid`: the sliding window left messages
out. `shortened`: required messages are shown by their beginning and end. `recovered`: after an overflow, the view was
rebuilt from the last checkpoint with only the essentials."""
CUTTING_STEPS: frozenset[StepKind] = frozenset({"shortened", "minimal", "recovered"})
"""Steps that cut one request and do not change the plan of the view."""

WindowSource: TypeAlias = Literal["model", "setting", "learned", "budget"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How many tokens one request may take.

    If only a budget is known, that is what is allowed, and the window is derived from it.
    """

    tokens: int
    """The model's context window, in tokens."""
    reserved_tokens: int
    """Tokens kept free for the answer."""
    buffer_share: float = 0.1
    """Share of the window that is also kept free, because counts are not exact."""
    source: WindowSource = "model"
    """Where the window was found."""
    most: int | None = None
    """The most tokens that a request may take, if that is less than the window allows."""

    @property
    def limit(self) -> int:
        """The window minus the tokens reserved for the answer."""
        return max(self.tokens - self.reserved_tokens, 1)

    @property
    def allowed(self) -> int:
        """The tokens that a request may take: the limit minus the buffer, or `most` if that is less."""
        allowed = max(math.floor(self.tokens * (1 - self.buffer_share) + 1e-9) - self.reserved_tokens, 1)
        return allowed if self.most is None else min(allowed, self.most)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outcome(Shown, sheet="contexts.outcome"):
    """One decision about a view. `Session.outcomes()` returns those that changed the view or tried to."""

    id: str
    """Stable, and the same as the id of its event. Empty for `NOT_NEEDED`, which is not stored."""
    kind: OutcomeKind
    reason: FailureReason | None = None
    """Why it failed. For `TRUNCATED`, why the view was not condensed instead."""
    why: str = ""
    """What triggered it: a sentence with figures."""
    at: float = 0.0
    """When it was decided, in seconds since the epoch."""
    track: str = "main"
    last_seq: int = 0
    """Number of the newest message at that time."""
    messages_before: int = 0
    """How many messages the view showed in their own place before."""
    messages_after: int = 0
    """How many it showed afterwards."""
    tokens_before: int = 0
    """Tokens of the whole request before anything was done."""
    tokens_after: int = 0
    """Tokens of the whole request afterwards."""
    summary_ids: tuple[str, ...] = ()
    """Ids of the summaries that the view gained."""
    left_out: tuple[LeftOut, ...] = ()
    """What left the view, and why. `Session.ledger()` lists the same."""
    steps: tuple[StepKind, ...] = ()
    """The steps that were taken, in order."""
    spent: Spent = field(default_factory=Spent)
    """What writing those summaries consumed."""
    cost: float | None = None
    """The same as money, in the currency of the price table. `None` without a price."""
    error: str | None = None
    breaks_prefix: bool = False
    """Whether the provider's prompt cache of this view was lost."""
    undone_at: float | None = None
    """When it was undone, in seconds since the epoch."""


class Outcomes(Listing[Outcome], sheet="contexts.outcomes"):
    """Decisions about views, newest first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Says that a view entered a fuller zone."""

    zone: Zone
    used_tokens: int
    limit_tokens: int
    recommendation: str
    """What a person or program can do about it."""

    @property
    def ratio(self) -> float:
        """`used / limit`."""
        return self.used_tokens / self.limit_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardReport:
    """What the guard measured and did for one request: `Context.guard`."""

    window: Window
    used_tokens: int
    """Tokens of the request before anything was done to it."""
    zone: Zone
    """The zone of `used_tokens`."""
    outcome: Outcome
    steps: tuple[StepKind, ...] = ()
    """The steps that were taken, in order."""
    alert: Alert | None = None
    """Set if this request entered a fuller zone than the one before."""
    checkpoint_id: str | None = None
    """The checkpoint that was saved for this request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A run of older messages, and how a view tells of it."""

    first_seq: int
    last_seq: int
    messages: int
    shown: Literal["whole", "short", "headline", "joined", "untold"]
    """The form: the text of the summary, its short form, its headline, one headline for several summaries, or a line
    that only names the messages."""
    summary_ids: tuple[str, ...] = ()
    tokens: int = 0
    """Tokens that it takes in the view."""
    reason: str = ""
    """Why no summary tells of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """What a view shows between two condensations. Each request adds its prompt, tools and recall to it.

    Messages are named by their `seq`, groups by the `seq` of their first message.
    """

    stretches: tuple[Stretch, ...]
    """The older history, in order."""
    whole_from: int
    """From this `seq` on, messages are shown whole, except for what the next three fields name."""
    left_groups: tuple[int, ...] = ()
    """Groups from `whole_from` on that are left out."""
    kept_groups: tuple[int, ...] = ()
    """Groups before `whole_from` that are shown all the same."""
    cut: tuple[int, ...] = ()
    """Tool outputs that are shown by their beginning and end."""
    quoted: tuple[int, ...] = ()
    """Older messages that are quoted as far as they fit: the user's requests, and messages that their kind keeps."""
    facts: str = ""
    """The list of facts, word for word."""
    files: str = ""
    """The list of files, word for word."""
    parts: str = ""
    """The parts of files, word for word."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ViewDiff(Shown, sheet="contexts.view_diff"):
    """What a condensation changed in a view, or, from `preview`, would change. Messages are named by their `seq`."""

    outcome: Outcome
    left: tuple[LeftOut, ...] = ()
    """Messages and summaries that left the view."""
    came: tuple[LeftOut, ...] = ()
    """Summaries and lines that came instead. `reason` says what each stands for."""
    text_before: str = ""
    """The text for older history before."""
    text_after: str = ""
    """The text for older history afterwards."""
    before: ShownView | None = None
    """The view before. `None` if it had no plan yet, so that every message was shown, or if the plan is not known."""
    after: ShownView | None = None
    """The view afterwards. `None` if it did not change, or if the plan is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """Something that left a view, and why. It is still in the transcript."""

    outcome_id: str
    at: float
    """When it left, in seconds since the epoch."""
    track: str
    what: str
    """Id of a message or summary, or a span of message numbers such as `12-40`."""
    reason: str
    tokens: int
    undone: bool = False
    """Whether the outcome was undone, so that it came back."""


class Ledger(Listing[LedgerRow], sheet="contexts.ledger"):
    """What left the views of a session, newest first."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """One condensation, and whether it paid off."""

    outcome_id: str
    at: float
    """When it happened, in seconds since the epoch."""
    spent: Spent
    spent_cost: float | None
    """`spent` as money, in the currency of the price table. `None` without a price."""
    saved_tokens_per_call: int
    calls_since: int
    """How many model calls (messages of the assistant) used the smaller view."""
    saved_tokens: int
    saved_cost: float | None
    """`saved_tokens` as money. `None` without a price."""
    breaks_even_after: float | None
    """How many calls it takes to save what was spent, in money if there is a price, else in tokens. `None` if nothing
    is saved."""

    @property
    def paid(self) -> bool:
        """Whether it has saved at least what it cost."""
        return self.breaks_even_after is not None and self.calls_since >= self.breaks_even_after


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CostLedger(Shown, sheet="contexts.costs"):
    """What condensing a session cost, and what it saved."""

    rows: tuple[CostRow, ...]
    spent: Spent
    """Everything spent on summaries, including those that no view shows yet."""
    spent_cost: float | None
    """`spent` as money, in the currency of the price table. `None` without a price."""
    saved_tokens: int
    saved_cost: float | None
    """`saved_tokens` as money. `None` without a price."""
    prefix_breaks: int
    """How often the provider's prompt cache was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdAdvice:
    """A threshold that the past condensations of a session suggest."""

    percent: float
    """The suggested threshold, in percent of the window."""
    present_percent: float
    """The threshold now."""
    samples: int
    """How many condensations it is based on."""
    because: str
    """The reason, in words."""
