"""What a user may put into the condensation engine: the shapes, and what each is told.

Everything here is plain and blocking on purpose: an extension is called off the event loop, by sync and async verbs
alike, with a deadline (`condensation.plugin_seconds`). One that raises, hangs or answers nonsense is reported as an
event and passed over; it never breaks a turn.
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
    """What is about to be condensed, in figures."""

    session_id: str
    level: int
    strategy: str
    messages: int
    """Messages covered, all the way down."""
    source_tokens: int
    target_tokens: int
    max_tokens: int
    title: str | None
    attempt: int
    """1 for the first."""
    at: float


@runtime_checkable
class CondensationPlugin(Protocol):
    """A way to write a summary. The registry asks the one with the highest priority that wants the job."""

    name: str
    """Unique in a registry; signs the summaries."""
    priority: int
    """The built-in ones have 100 (models) and 0 (the extractive condenser)."""

    def should_activate(self, context: CondensationContext) -> bool:
        """Whether it wants this job."""
        ...

    def condense(self, job: CondenseJob) -> str | Condensed:
        """The summary's text. Raising hands the job to the next one."""
        ...


@runtime_checkable
class ValidatingPlugin(CondensationPlugin, Protocol):
    """A plugin that judges its own summaries, besides the validators that judge everybody's."""

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Whether `text`, cut to its size and mended by the audit, may stand for the sources of `job`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a validator thinks of a text."""

    valid: bool
    issues: tuple[str, ...] = ()
    """Each a sentence that says what is wrong."""
    score: float | None = None
    """0 to 1, for the telemetry."""


@runtime_checkable
class CondensationValidator(Protocol):
    """Judges a text before it counts."""

    name: str

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Whether `text` may stand for the sources of `job`."""
        ...


class CondensationHook:
    """Base of hooks: override what you need."""

    name: str = "hook"

    def before_condensation(self, job: CondenseJob, context: CondensationContext) -> CondenseJob | None:
        """Called before a summary is written; may give another job (its sources must stay). `None`: as it is."""
        del job, context
        return None

    def after_condensation(
        self, job: CondenseJob, condensed: Condensed, context: CondensationContext
    ) -> Condensed | None:
        """Called with the finished text; may give another one, which is validated again. `None`: as it is."""
        del job, condensed, context
        return None

    def select_strategy(self, context: CondensationContext, candidates: tuple[str, ...]) -> str | None:
        """Name which of the candidates (best first) shall write. `None`: no opinion."""
        del context, candidates
        return None


@runtime_checkable
class PromptGenerator(Protocol):
    """Writes the instructions of one condensation."""

    def generate_prompt(self, job: CondenseJob, default: str) -> str:
        """Instructions in the place of `default`; the rules (quote, do not obey) follow in any case."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdQuestion:
    """Asked before each decision about a view."""

    session_id: str
    track: str
    profile: str | None
    """Name of the model, or the profile that the request names."""
    global_percent: float
    profile_percent: float | None
    """As set; -1 inherits."""
    used_tokens: int
    window_tokens: int
    zone: Zone
    advice: ThresholdAdvice | None
    """What past condensations speak for, where there are any."""


@runtime_checkable
class ThresholdResolver(Protocol):
    """Decides at how many percent of the window a view is condensed."""

    def resolve(self, question: ThresholdQuestion) -> float | None:
        """5 to 100; `None`: no opinion."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncationQuestion:
    """Asked when the window slides."""

    groups: tuple[Group, ...]
    """The recent groups, oldest first."""
    must_stay: frozenset[int]
    """`first_seq` of those that stay whatever is said."""
    room_tokens: int
    """What the groups together may take."""


@runtime_checkable
class TruncationSelector(Protocol):
    """Chooses what leaves a view when the window slides."""

    def select(self, question: TruncationQuestion) -> Collection[int]:
        """`first_seq` of the groups to leave out. Where that is not enough, the built-in window goes on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionQuestion:
    """What a section of a context is told of the request that it is shown in."""

    session_id: str
    track: str
    view: str
    query: str
    """What is asked; empty where nothing is."""
    at: float
    room_tokens: int
    """What its text may take: a longer one is cut at the end of a line."""
    count: Callable[[str], int]
    """Tokens of a text."""
    is_shown: Callable[[str], bool]
    """Whether a text stands in the context already, word for word."""
    reads: SectionReads
    """What the session holds: messages, files, search. For reading alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionText:
    """A section's text with what it rests on, for the context's account."""

    text: str
    sources: tuple[Source, ...] = ()


@runtime_checkable
class ContextSection(Protocol):
    """A part of a context beside the built-in ones, or in the place of one whose name it has."""

    @property
    def name(self) -> str:
        """Unique in a registry: letters, digits, `_`, `-`."""
        ...

    @property
    def share(self) -> float:
        """Of `max_tokens`, the most that it takes; unused room goes to recall."""
        ...

    def render(self, question: SectionQuestion) -> str | SectionText | None:
        """Its text, which is shown as data; nothing (`None`, or blank) leaves the section out."""
        ...


class TelemetryCollector:
    """Base of telemetry collectors: override what you need."""

    name: str = "telemetry"

    def on_condensation_start(self, context: CondensationContext) -> None:
        """Somebody begins to write a summary."""

    def on_condensation_success(self, context: CondensationContext, condensed: Condensed) -> None:
        """A summary was written and taken."""

    def on_condensation_failure(self, context: CondensationContext, reason: FailureReason, error: str) -> None:
        """A summary could not be written."""

    def on_fallback(self, context: CondensationContext, reason: FailureReason, to: str) -> None:
        """The next one in the chain takes over."""

    def on_fallback_to_window(self, session_id: str, outcome: Outcome) -> None:
        """Messages left a view without a summary: the window slid, or the least important ones were pruned.

        `outcome.reason` and `outcome.error` say why no summary could take their place; `None` where none was wanted.
        """
