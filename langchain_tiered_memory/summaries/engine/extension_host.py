"""Hosts a user's extensions, for the engine and for views: each is called safely, a nonsensical answer is skipped.

Each call runs in a thread of its own with a deadline, and in the context (tracing, variables) of whoever asks. What
raises, hangs or answers nonsense is reported and passed over. One that hung is not called again before it came back,
so that no more than one thread hangs on it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from langchain_tiered_memory.driver import in_time
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.extensions import (
    CondensationHook,
    CondensationValidator,
    PromptGenerator,
    TelemetryCollector,
    ValidatingPlugin,
    Verdict,
)
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.summaries.checks.measures import BuiltInValidator
from langchain_tiered_memory.summaries.prompts.building import default_instructions
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
from langchain_tiered_memory.summaries.writers.sections import FORMS
from langchain_tiered_memory.types.outcomes import FailureReason
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.extensions import (
        CondensationContext,
        CondensationPlugin,
        ThresholdQuestion,
        ThresholdResolver,
        TruncationQuestion,
        TruncationSelector,
    )
    from langchain_tiered_memory.settings import CondensationSettings


T = TypeVar("T")
U = TypeVar("U")


class Report(Protocol):
    """Says that something happened; `Runtime.report` is one."""

    def __call__(self, name: EventName, reason: str, **details: Any) -> None:  # noqa: ANN401 - plain JSON values of any kind
        """Say it; `details` must be plain JSON values."""
        ...


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """What an extension answered."""

    value: T


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why there is no answer. It was reported."""

    why: str
    hung: bool = False
    error: BaseException | None = None
    """What it raised."""


class ExtensionCaller:
    """Calls extensions, never on an event loop: flows ask for it as `Work`.

    One may take so many seconds; each that is passed over is reported as `extension_failed`.
    """

    def __init__(self, *, seconds: float, report: Report) -> None:
        self.seconds = seconds
        """How long one may take from now on."""
        self.report = report
        self._lock = forks.Lock()
        self._hanging: dict[tuple[int, str], threading.Event] = {}

    def ask(
        self,
        who: str,
        call: Callable[[], object],
        accept: Callable[[object], T | None],
        *,
        owner: object,
        session_id: str | None = None,
    ) -> Given[T] | Skipped:
        """The answer of one call, or why there is none.

        `who` names the extension and its method in events, and `owner` is the extension itself: names need not be
        unique. `accept` gives the answer as it may be used, `None` where it is nonsense.
        """
        answer = self._answer((id(owner), who), call)
        if isinstance(answer, Given):
            try:
                accepted = accept(answer.value)
            except Exception as error:  # noqa: BLE001 - the seam: its answer's own methods may raise
                answer = Skipped(f"its answer raised {type(error).__name__}: {error}")
            else:
                if accepted is not None:
                    return Given(accepted)
                answer = Skipped(f"answered nonsense: {_shown(answer.value)}")
        self.report(
            EventName.EXTENSION_FAILED,
            f"{who} {answer.why}; it is skipped",
            session_id=session_id,
            extension=who,
            hung=answer.hung,
        )
        return answer

    def value(
        self,
        who: str,
        call: Callable[[], object],
        accept: Callable[[object], T | None],
        *,
        owner: object,
        otherwise: U,
        session_id: str | None = None,
    ) -> T | U:
        """As `ask`, with `otherwise` where there is no answer."""
        answer = self.ask(who, call, accept, owner=owner, session_id=session_id)
        return answer.value if isinstance(answer, Given) else otherwise

    def _answer(self, who: tuple[int, str], call: Callable[[], object]) -> Given[object] | Skipped:
        with self._lock:
            before = self._hanging.get(who)
            if before is not None and not before.is_set():
                return Skipped("still hangs from an earlier call", hung=True)
            self._hanging.pop(who, None)
        ended = threading.Event()

        def called() -> Given[object] | Skipped:
            try:
                return Given(call())
            except BaseException as error:  # noqa: BLE001 - the seam: whatever it is, it must not take the turn along
                return Skipped(f"raised {type(error).__name__}: {error}", error=error)
            finally:
                ended.set()

        try:
            return in_time(called, seconds=self.seconds, name="tiered-memory-extension")
        except TimeoutError:
            with self._lock:
                self._hanging[who] = ended
            return Skipped(f"gave no answer within {self.seconds:g} seconds", hung=True)


_SHOWN_CHARS = 80


def _shown(value: object) -> str:
    """The answer's type and beginning: its own `repr` is somebody else's code."""
    said = value[:_SHOWN_CHARS] if isinstance(value, str) else ""
    return f"{type(value).__name__} {said!r}" if said else type(value).__name__


Registered: TypeAlias = Literal["hooks", "collectors", "validators"]
_KINDS: dict[Registered, type] = {
    "hooks": CondensationHook, "collectors": TelemetryCollector, "validators": CondensationValidator,
}  # fmt: skip


class Extensions:
    """Hooks, validators, telemetry collectors and the prompt generator of one engine. Blocking; safe for threads."""

    def __init__(
        self,
        settings: CondensationSettings,
        caller: ExtensionCaller,
        *,
        prompt_generator: PromptGenerator | None = None,
    ) -> None:
        self._settings = settings
        self._door = caller
        self.prompts = prompt_generator
        """Writes the instructions for models, where there is one."""
        self._lock = forks.Lock()
        self.hooks: tuple[CondensationHook, ...] = ()
        self.collectors: tuple[TelemetryCollector, ...] = ()
        self.validators: tuple[CondensationValidator, ...] = ()

    def configure(self, settings: CondensationSettings, built_in: list[CondensationValidator] | None) -> None:
        """Other settings from now on; `built_in` validators, where given, in the place of those that are there."""
        with self._lock:
            if built_in is not None:
                own = tuple(one for one in self.validators if not isinstance(one, BuiltInValidator))
                self.validators = (*built_in, *own)
            self._settings = settings

    def add(self, kind: Registered, new: CondensationHook | TelemetryCollector | CondensationValidator) -> None:
        """Call it from now on."""
        what, name = _KINDS[kind].__name__, getattr(new, "name", None)
        if not isinstance(new, _KINDS[kind]):
            msg = f"a {what} is required, and {type(new).__name__} is not one"
            raise SettingsError(msg)
        if not isinstance(name, str) or not name:
            msg = f"a {what} needs a name, a non-empty text; {type(new).__name__} has {name!r}"
            raise SettingsError(msg)
        with self._lock:
            if kind == "validators" and any(one.name == name for one in self.validators):
                msg = f"there is already a validator {name!r}: give each its own name"
                raise SettingsError(msg)
            setattr(self, kind, (*getattr(self, kind), new))

    def use_prompts(self, generator: PromptGenerator | None) -> None:
        """Ask this one from now on."""
        given: object = generator
        if given is not None and not isinstance(given, PromptGenerator):
            msg = f"a PromptGenerator needs generate_prompt, which {type(given).__name__} lacks"
            raise SettingsError(msg)
        self.prompts = generator

    def tell(self, method: str, context: CondensationContext | str, *details: object) -> None:
        """Tell the collectors that override `method`; `context` may be a session's id, where nothing is written."""
        session_id = context if isinstance(context, str) else context.session_id
        if not self._settings.monitoring.telemetry:
            return
        for one in self.collectors:
            if _overrides(one, TelemetryCollector, method):
                call = partial(getattr(one, method), context, *details)
                who = f"collector {one.name}.{method}"
                self._door.ask(who, call, lambda _: True, owner=one, session_id=session_id)

    def before(self, job: CondenseJob, context: CondensationContext) -> CondenseJob:
        """The job as the hooks leave it, one after the other."""
        for hook in self.hooks_with("before_condensation"):
            job = self._of(
                "hook", hook, "before_condensation", job, context, accept=partial(_job_like, job), otherwise=job
            )
        return job

    def selected(self, context: CondensationContext, candidates: tuple[str, ...]) -> str | None:
        """The candidate that the first hook with an opinion names."""

        def named(answer: object) -> str | None:
            return "" if answer is None else str(answer) if answer in candidates else None

        for hook in self.hooks_with("select_strategy"):
            if name := self._of("hook", hook, "select_strategy", context, candidates, accept=named, otherwise=""):
                return name
        return None

    def after(
        self, hook: CondensationHook, job: CondenseJob, condensed: Condensed, context: CondensationContext
    ) -> Condensed:
        """The text as one hook leaves it."""
        accept = partial(rewritten, before=condensed)
        said = (job, condensed, context)
        return self._of("hook", hook, "after_condensation", *said, accept=accept, otherwise=condensed)

    def instructed(self, job: CondenseJob) -> CondenseJob:
        """The job with the instructions that the settings have for its strategy, or the generator writes."""
        custom = self._settings.strategies.custom_prompts.get(job.strategy)
        job = replace(job, instructions=custom)
        generator = self.prompts
        if generator is None:
            return job
        default = custom if custom is not None else default_instructions(job.strategy)
        said = self._door.value(
            "prompt generator",
            lambda: generator.generate_prompt(job, default),
            lambda answer: answer if isinstance(answer, str) and answer.strip() else None,
            owner=generator,
            otherwise=default,
            session_id=job.session_id,
        )
        return job if said == default else replace(job, instructions=said)

    def rejection(self, job: CondenseJob, text: str) -> tuple[FailureReason, str] | None:
        """Why the first validator that says no does not take `text`."""
        for validator in self.validators:
            reason = FailureReason.VALIDATOR_REJECTED
            if isinstance(validator, BuiltInValidator):
                reason, verdict = validator.reason, validator.validate(job, text)
            else:
                verdict = self._verdict("validator", validator, job, text)
            if not verdict.valid:
                return reason, f"{validator.name}: {_why(verdict)}"
        return None

    def own_rejection(self, plugin: CondensationPlugin, job: CondenseJob, text: str) -> str | None:
        """Why a plugin does not take its own text, where it has a say in that."""
        if not isinstance(plugin, ValidatingPlugin):
            return None
        verdict = self._verdict("plugin", plugin, job, text)
        return None if verdict.valid else _why(verdict)

    def _verdict(
        self, kind: str, judge: CondensationValidator | ValidatingPlugin, job: CondenseJob, text: str
    ) -> Verdict:
        """What a judge of a user's own says; one that fails has nothing against a text."""

        def verdict(answer: object) -> Verdict | None:
            return answer if isinstance(answer, Verdict) and isinstance(answer.valid, bool) else None

        return self._of(kind, judge, "validate", job, text, accept=verdict, otherwise=Verdict(valid=True))

    def hooks_with(self, method: str) -> list[CondensationHook]:
        """Those that override `method`, where hooks are called at all."""
        if not self._settings.monitoring.hooks:
            return []
        return [hook for hook in self.hooks if _overrides(hook, CondensationHook, method)]

    def _of(
        self,
        kind: str,
        one: CondensationHook | CondensationValidator | ValidatingPlugin,
        method: str,
        about: CondenseJob | CondensationContext,
        *details: object,
        accept: Callable[[object], T | None],
        otherwise: T,
    ) -> T:
        """What a method gives that is called with what it is about and the details."""
        call = partial(getattr(one, method), about, *details)
        who = f"{kind} {one.name}.{method}"
        return self._door.value(who, call, accept, owner=one, otherwise=otherwise, session_id=about.session_id)


def rewritten(answer: object, before: Condensed) -> Condensed | None:
    """What a hook or plugin made of a text; `None` for nonsense. Who wrote it, and at what cost, stays as it is."""
    if answer is None:
        return before
    if not isinstance(answer, Condensed) or not isinstance(answer.text, str) or not isinstance(answer.spent, Spent):
        return None
    return replace(before, text=answer.text)


def _why(verdict: Verdict) -> str:
    return "; ".join(str(issue) for issue in verdict.issues) or "no reason given"


def _job_like(job: CondenseJob, answer: object) -> CondenseJob | None:
    if answer is None:
        return job
    if not isinstance(answer, CondenseJob) or answer.strategy not in FORMS:
        return None
    same = (answer.sources, answer.session_id, answer.level) == (job.sources, job.session_id, job.level)
    return answer if same and min(answer.target_tokens, answer.max_tokens) > 0 else None


def _overrides(one: object, base: type, method: str) -> bool:
    """Whether there is anything to call: what a base class has does nothing."""
    return getattr(type(one), method, None) is not getattr(base, method) or method in getattr(one, "__dict__", {})


class ViewExtensions:
    """At most one threshold resolver and one truncation selector, called through the door."""

    def __init__(self, caller: ExtensionCaller) -> None:
        self._door = caller
        self.threshold_resolver: ThresholdResolver | None = None
        """Decides at how many percent of the window a view is condensed."""
        self.truncation_selector: TruncationSelector | None = None
        """Chooses what leaves a view when the window slides."""

    def resolve_threshold(self, question: ThresholdQuestion) -> float | None:
        """What the resolver says; `None` where there is none, it has no opinion, or it failed."""
        resolver, about = self.threshold_resolver, question.session_id
        unsaid: tuple[float | None] = (None,)
        return self._of(resolver, "resolve", question, about, accept=_as_percent, otherwise=unsaid)[0]

    def select_truncation(self, question: TruncationQuestion, *, session_id: str) -> Collection[object]:
        """What the selector would leave out; empty where there is none, or it failed."""
        return self._of(self.truncation_selector, "select", question, session_id, accept=_as_collection, otherwise=())

    def _of(
        self,
        one: ThresholdResolver | TruncationSelector | None,
        method: str,
        question: object,
        session_id: str,
        *,
        accept: Callable[[object], T | None],
        otherwise: T,
    ) -> T:
        if one is None:
            return otherwise
        call, who = partial(getattr(one, method), question), f"{type(one).__name__}.{method}"
        return self._door.value(who, call, accept, owner=one, otherwise=otherwise, session_id=session_id)


def _as_percent(answer: object) -> tuple[float | None] | None:
    if answer is None:
        return (None,)
    if isinstance(answer, bool) or not isinstance(answer, int | float) or math.isnan(answer):
        return None
    return (float(answer),)


def _as_collection(answer: object) -> Collection[object] | None:
    return answer if isinstance(answer, Collection) and not isinstance(answer, str | bytes) else None
