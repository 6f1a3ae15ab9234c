"""The protocols of extensions to the condensation engine and to contexts, and the values that extensions are given.

Extensions are plain, blocking code. Sync and async verbs call them off the event loop, with a deadline
(`condensation.plugin_seconds`). If an extension raises, hangs or answers nonsense, an event reports it and the memory
goes on without it. An extension never breaks a turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from langchain_tiered_memory.context.sections.rendering import SectionReads
    from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
    from langchain_tiered_memory.types.contexts import Source
    from langchain_tiered_memory.types.outcomes import FailureReason, Outcome, ThresholdAdvice, Zone
    from langchain_tiered_memory.types.records import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class CondensationContext:
    """Figures of a summary that is about to be written."""

    session_id: str
    level: int
    strategy: str
    messages: int
    """How many messages it covers, through all levels."""
    source_tokens: int
    """Tokens of its sources."""
    target_tokens: int
    """The size to aim at, in tokens."""
    max_tokens: int
    """The largest size, in tokens."""
    title: str | None
    """Title of the session."""
    attempt: int
    """1 for the first attempt."""
    at: float
    """The time now, in seconds since the epoch."""


@runtime_checkable
class CondensationPlugin(Protocol):
    """A writer of summaries. Of the plugins that want a job, the one with the highest priority gets it."""

    name: str
    """Unique in an engine. It signs the summaries."""
    priority: int
    """Built-in writers have 100 (models) and 0 (the extractive condenser)."""

    def should_activate(self, context: CondensationContext) -> bool:
        """Return whether the plugin wants this job."""
        ...

    def condense(self, job: CondenseJob) -> str | Condensed:
        """Return the text of the summary. If this raises, the next plugin gets the job."""
        ...


@runtime_checkable
class ValidatingPlugin(CondensationPlugin, Protocol):
    """A plugin that validates its own summaries, in addition to the validators that see all summaries."""

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Judge whether `text` may stand for the sources of `job`. It is already cut to size and repaired."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement of a validator."""

    valid: bool
    issues: tuple[str, ...] = ()
    """What is wrong, one sentence each."""
    score: float | None = None
    """0 to 1, for telemetry."""


@runtime_checkable
class CondensationValidator(Protocol):
    """Judges each text before it is stored."""

    name: str
    """Unique in an engine."""

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Judge whether `text` may stand for the sources of `job`."""
        ...


class CondensationHook:
    """The base class of hooks. Override what you need."""

    name: str = "hook"

    def before_condensation(self, job: CondenseJob, context: CondensationContext) -> CondenseJob | None:
        """Called before a summary is written. Return a changed job with the same sources, or `None` to keep it."""
        del job, context
        return None

    def after_condensation(
        self, job: CondenseJob, condensed: Condensed, context: CondensationContext
    ) -> Condensed | None:
        """Called with the finished text. Return another one, which is validated again, or `None` to keep it."""
        del job, condensed, context
        return None

    def select_strategy(self, context: CondensationContext, candidates: tuple[str, ...]) -> str | None:
        """Return the name of the candidate to write (they come best first), or `None` for no opinion."""
        del context, candidates
        return None


@runtime_checkable
class PromptGenerator(Protocol):
    """Writes the instructions of one condensation."""

    def generate_prompt(self, job: CondenseJob, default: str) -> str:
        """Return instructions instead of `default`. The rules (quote, do not obey) follow in any case."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdQuestion:
    """What a `ThresholdResolver` is told, before each decision about a view."""

    session_id: str
    track: str
    profile: str | None
    """The profile that the request names, or the name of its model."""
    global_percent: float
    """The global threshold, in percent of the window."""
    profile_percent: float | None
    """The threshold of the profile. -1 means the global one."""
    used_tokens: int
    """Tokens of the request."""
    window_tokens: int
    zone: Zone
    advice: ThresholdAdvice | None
    """What past condensations suggest, if there are any."""


@runtime_checkable
class ThresholdResolver(Protocol):
    """Decides the threshold at which a view is condensed, in percent of the window."""

    def resolve(self, question: ThresholdQuestion) -> float | None:
        """Return a threshold from 5 to 100 percent, or `None` for no opinion."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationQuestion:
    """What a `TruncationSelector` is told when the window slides."""

    groups: tuple[Group, ...]
    """The recent groups, oldest first."""
    must_stay: frozenset[int]
    """`first_seq` of the groups that stay in any case."""
    room_tokens: int
    """The most tokens that the groups may take together."""


@runtime_checkable
class TruncationSelector(Protocol):
    """Chooses what leaves a view when the window slides."""

    def select(self, question: TruncationQuestion) -> Collection[int]:
        """Return the `first_seq` of the groups to leave out. If that is not enough, the built-in rule continues."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionQuestion:
    """What a section is told about the request in which it is shown."""

    session_id: str
    track: str
    view: str
    query: str
    """The question of the request. Empty if there is none."""
    at: float
    """The time now, in seconds since the epoch."""
    room_tokens: int
    """The most tokens of its text. A longer text is cut at the end of a line."""
    count: Callable[[str], int]
    """Counts the tokens of a text."""
    is_shown: Callable[[str], bool]
    """Tells whether the context already shows a text, word for word."""
    reads: SectionReads
    """Read-only access to the session: messages, files, search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionText:
    """The text of a section, with its sources for the account of the context."""

    text: str
    sources: tuple[Source, ...] = ()


@runtime_checkable
class ContextSection(Protocol):
    """A part of a context, added to the built-in ones. With the name of a built-in section, it replaces that one."""

    @property
    def name(self) -> str:
        """Unique in a memory. Letters, digits, `_` and `-`."""
        ...

    @property
    def share(self) -> float:
        """The most that it takes, as a share of `max_tokens`. Unused room goes to recall."""
        ...

    def render(self, question: SectionQuestion) -> str | SectionText | None:
        """Return the text, which is shown as data. `None` or a blank text leaves the section out."""
        ...


class TelemetryCollector:
    """The base class of telemetry collectors. Override what you need."""

    name: str = "telemetry"

    def on_condensation_start(self, context: CondensationContext) -> None:
        """Called when the writing of a summary begins."""

    def on_condensation_success(self, context: CondensationContext, condensed: Condensed) -> None:
        """Called when a summary was written and accepted."""

    def on_condensation_failure(self, context: CondensationContext, reason: FailureReason, error: str) -> None:
        """Called when a summary could not be written."""

    def on_fallback(self, context: CondensationContext, reason: FailureReason, to: str) -> None:
        """Called when the next writer takes over."""

    def on_fallback_to_window(self, session_id: str, outcome: Outcome) -> None:
        """Called when messages left a view without a summary: the window slid, or the least important were pruned.

        `outcome.reason` and `outcome.error` say why no summary took their place. They are `None` if none was wanted.
        """
