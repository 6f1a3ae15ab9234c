"""The condensation engine: the best writer writes a summary, validators judge it, and if it fails the next one writes.

It stands between `summaries/tree/condense.py` and the writers. First, hooks may change the job and name a writer. Then
each candidate in turn passes its circuit breaker and writes within the limit on model calls. Hooks see its text, the
audit repairs it, and validators judge it. If the text is refused, the next candidate writes. A user's extensions are
called through `extension_host.ExtensionCaller` and never break the turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence  # noqa: TC003 - read at the border
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, Unpack

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.errors import CondensationError, SettingsError
from langchain_tiered_memory.extensions import (
    CondensationContext,
    CondensationHook,
    CondensationPlugin,
    CondensationValidator,
    PromptGenerator,
    TelemetryCollector,
)
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.settings import CondensationSettings  # noqa: TC001 - read at the border
from langchain_tiered_memory.summaries.checks.measures import built_in_validators, measures_of
from langchain_tiered_memory.summaries.engine.chain import Chain, Prepared
from langchain_tiered_memory.summaries.engine.extension_host import ExtensionCaller, Extensions, Report, ViewExtensions
from langchain_tiered_memory.summaries.engine.metrics import EngineMetrics, Tally
from langchain_tiered_memory.summaries.engine.writers import (
    EXTRACTIVE_PRIORITY,
    MODEL_PRIORITY,
    CondenserPlugin,
    Writers,
    is_built_in_rules,
)
from langchain_tiered_memory.summaries.writers.jobs import Condenser
from langchain_tiered_memory.summaries.writers.postprocess import Finish
from langchain_tiered_memory.types.arguments import Count, Name, Seconds, Such

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.events import EventName
    from langchain_tiered_memory.summaries.engine.metrics import CondensationRecord
    from langchain_tiered_memory.summaries.writers.behind import Standing
    from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
    from langchain_tiered_memory.summaries.writers.model import ModelCondenser
    from langchain_tiered_memory.types.outcomes import Outcome

_MAX_OPEN_SECONDS = 3600.0
Writer: TypeAlias = Annotated[
    Condenser,
    Such(
        "a condenser, with a `name` and `condense(job)`",
        lambda one: isinstance(getattr(one, "name", None), str) and callable(getattr(one, "condense", None)),
    ),
]


class EngineChoices(TypedDict, total=False):
    """Optional arguments of `CondensationEngine`, explained there."""

    count_text: Callable[[str], int] | None
    clock: Callable[[], float] | None
    attempts: Count
    max_open_seconds: Seconds
    prompt_generator: PromptGenerator | None


class CondensationEngine:
    """Writes summaries with plugins, validators and hooks. It serves one open memory and is thread-safe.

    `create` makes one with the built-in plugins and validators. `create_custom` makes one with only what you give it.

    Args:
        settings: Circuit breaker, limit of model calls, validation, monitoring, prompts and deadlines.
        count_text: Counts the tokens of a text. With `None`, the memory's counter does.
        clock: Returns seconds since the epoch. With `None`, the memory's clock does.
        attempts: How often models may fail before the extractive condenser writes instead.
        max_open_seconds: The longest time that a model is not called after failures, in seconds.
        prompt_generator: Writes the instructions for models.
    """

    def __init__(
        self,
        settings: CondensationSettings,
        *,
        count_text: Callable[[str], int] | None = None,
        clock: Callable[[], float] | None = None,
        attempts: int = 1,
        max_open_seconds: float = _MAX_OPEN_SECONDS,
        prompt_generator: PromptGenerator | None = None,
    ) -> None:
        self._settings = settings
        self._own_count, self._own_clock = count_text, clock
        self._count = count_text if count_text is not None else EstimatingCounter().count_text
        self._clock: Callable[[], float] = clock if clock is not None else time.time
        self._report: Report = _unheard
        caller = ExtensionCaller(seconds=settings.plugin_seconds, report=self._say)
        self.views = ViewExtensions(caller)
        """The threshold resolver and the truncation selector: set them there."""
        self._tally = Tally(keep=settings.monitoring.history)
        self._extensions = Extensions(settings, caller, prompt_generator=prompt_generator)
        self._caller = caller
        self._built_in = False
        self._writers = Writers(settings, caller, self._tally, max_open_seconds=max_open_seconds)
        self._finish = Finish(
            settings=settings, extensions=self._extensions, count_text=self._count_text, report=self._say
        )
        self._chain = Chain(
            writers=self._writers,
            finish=self._finish,
            extensions=self._extensions,
            tally=self._tally,
            report=self._say,
            now=self._now,
            attempts=attempts,
        )

    @classmethod
    @checked(SettingsError)
    def create(
        cls,
        settings: CondensationSettings,
        *,
        models: Sequence[Writer] = (),
        extractive: Writer | None = None,
        **choices: Unpack[EngineChoices],
    ) -> CondensationEngine:
        """Make an engine with the built-in plugins and the validators that the settings name.

        Args:
            settings: As for the class.
            models: Condensing models, the first choice first. Their names must differ.
            extractive: The condenser that needs no model. `None` leaves it out.
            **choices: The other arguments of the class.

        Raises:
            SettingsError: if two of them have the same name.
        """
        engine = cls(settings, **choices)
        for place, model in enumerate(models):
            engine.register_plugin(CondenserPlugin(model, priority=MODEL_PRIORITY - place, uses_model=True))
        if extractive is not None:
            engine.register_plugin(CondenserPlugin(extractive, priority=EXTRACTIVE_PRIORITY, uses_model=False))
        engine._built_in = True
        engine.configure(settings)
        return engine

    @classmethod
    @checked(SettingsError)
    def create_custom(
        cls,
        settings: CondensationSettings,
        plugins: Iterable[CondensationPlugin] = (),
        validators: Iterable[CondensationValidator] = (),
        *,
        hooks: Iterable[CondensationHook] = (),
        telemetry: Iterable[TelemetryCollector] = (),
        **choices: Unpack[EngineChoices],
    ) -> CondensationEngine:
        """Make an engine with only what you give it: no model, no extractive condenser, no built-in validator.

        Raises:
            SettingsError: if two plugins or two validators have the same name.
        """
        engine = cls(settings, **choices)
        for plugin in plugins:
            engine.register_plugin(plugin)
        for validator in validators:
            engine.register_validator(validator)
        for hook in hooks:
            engine.register_hook(hook)
        for collector in telemetry:
            engine.register_telemetry(collector)
        return engine

    @property
    def name(self) -> str:
        """The name of the writer with the highest priority. It signs the summaries while all is well."""
        plugins = self._writers.plugins
        return plugins[0].name if plugins else "nobody"

    @property
    def plugins(self) -> tuple[CondensationPlugin, ...]:
        """All plugins, the highest priority first."""
        return self._writers.plugins

    @checked(SettingsError)
    def configure(self, settings: CondensationSettings) -> None:
        """Use other settings from now on: limits, and what is validated, measured and reported.

        Plugins, hooks, validators, collectors and the models' options stay. When views are condensed does not change
        either, because the memory decides that.
        """
        self._settings = settings
        self._caller.seconds = settings.plugin_seconds
        self._writers.configure(settings)
        self._finish.settings = settings
        self._tally.keep(settings.monitoring.history)
        judges = built_in_validators(settings.validation, count_text=self._count_text)
        self._extensions.configure(settings, judges if self._built_in else None)

    def attach(
        self,
        *,
        count_text: Callable[[str], int],
        clock: Callable[[], float],
        report: Report,
    ) -> None:
        """Serve a memory: use its counter and clock unless others are set, and report as it does."""
        self._count = self._own_count if self._own_count is not None else count_text
        self._clock = self._own_clock if self._own_clock is not None else clock
        self._report = report

    def register_plugin(self, plugin: CondensationPlugin) -> None:
        """Register a plugin.

        Raises:
            SettingsError: if the name is taken, or it is not a plugin.
        """
        self._writers.register(plugin)

    @checked(SettingsError)
    def unregister_plugin(self, name: Name) -> bool:
        """Remove a plugin, even a built-in one. Returns whether there was one with that name."""
        return self._writers.unregister(name)

    def register_validator(self, validator: CondensationValidator) -> None:
        """Register a validator.

        Raises:
            SettingsError: if the name is taken, or it is not a validator.
        """
        self._extensions.add("validators", validator)

    def register_hook(self, hook: CondensationHook) -> None:
        """Register a hook.

        Raises:
            SettingsError: if it is not a `CondensationHook`.
        """
        self._extensions.add("hooks", hook)

    def register_telemetry(self, collector: TelemetryCollector) -> None:
        """Register a telemetry collector.

        Raises:
            SettingsError: if it is not a `TelemetryCollector`.
        """
        self._extensions.add("collectors", collector)

    def use_prompt_generator(self, generator: PromptGenerator | None) -> None:
        """Let `generator` write the instructions for models. With `None`, the settings or the built-in ones do.

        Raises:
            SettingsError: if it is not a `PromptGenerator`.
        """
        self._extensions.use_prompts(generator)

    def metrics(self) -> EngineMetrics:
        """Return figures of the engine's work since it was made."""
        return self._tally.metrics(self._writers.open_seconds(self._clock()))

    def history(self) -> tuple[CondensationRecord, ...]:
        """Return the last attempts at summaries, oldest first, up to `condensation.monitoring.history`."""
        return self._tally.records()

    def tell_of_window(self, session_id: str, outcome: Outcome) -> None:
        """Tell the collectors that messages left a view without a summary. This blocks."""
        self._extensions.tell("on_fallback_to_window", session_id, outcome)

    @property
    def writes_later(self) -> bool:
        """Whether rules may write at once what a built-in model writer writes later, when it is needed."""
        plugins = self._writers.plugins
        if self._settings.strategies.primary == "provider":
            return False
        by_model = any(isinstance(one, CondenserPlugin) and one.uses_model for one in plugins)
        return by_model and any(is_built_in_rules(one) for one in plugins)

    def room(self) -> int:
        """Tokens that one call for several summaries may read and write, as its model's window allows."""
        model = self._together()
        return model.room() if model is not None else 0

    def answer_room(self) -> int | None:
        """Tokens that one answer to such a call may have. `None` if that is not known."""
        model = self._together()
        return model.answer_room() if model is not None else None

    def asks(self, model: object, *, by_name: bool = False) -> bool:
        """Whether the first choice is this very model or wraps it. With `by_name`, the same name is enough."""
        first = self._together()
        return first is not None and first.asks(model, by_name=by_name)

    def _together(self) -> ModelCondenser | None:
        """The first model that can write several summaries in one call."""
        built_in = (one for one in self._writers.plugins if isinstance(one, CondenserPlugin))
        return next((one.together for one in built_in if one.together is not None), None)

    def condense(self, job: CondenseJob, *, later: bool = False) -> Flow[Condensed]:
        """The summary of `job` by the first writer whose text is accepted. Below `model_from_level`, only rules write.

        Args:
            job: The summary to write.
            later: Whether rules write it now if the first choice is a built-in model writer, which is then called when
                a view needs it. The result says that it is by rules. If their text is refused, the model is called now.

        Raises:
            CondensationError: if there is none. `retry_after_seconds` is set if no writer failed now, because the
                limit on model calls was reached or no writer may be called for a while.
        """
        return (yield from self.finish(self.prepare(job), later=later))

    def prepare(self, job: CondenseJob) -> Prepared:
        """The job after hooks and prompt settings, and its plugins: for `write_together`, then `finish`."""
        self._tally.add("started")
        self._extensions.tell("on_condensation_start", self._context(job))
        job = self._extensions.before(job, self._context(job))
        context = self._context(job)
        if job.instructions is None:
            job = self._extensions.instructed(job)
        candidates = self._writers.candidates(context)
        names = tuple(plugin.name for plugin in candidates)
        chosen = self._extensions.selected(context, names) if len(names) > 1 else None
        candidates.sort(key=lambda plugin: plugin.name != chosen)
        return Prepared(job=job, context=context, candidates=tuple(candidates))

    def write_together(
        self,
        prepared: Sequence[Prepared],
        below: Sequence[Mapping[str, int]],
        *,
        standing: Standing | None = None,
        review: CondenseJob | None = None,
    ) -> Flow[tuple[list[Condensed | None], str | None]]:
        """The results of one model call for several jobs. `None` for a job that needs its own call.

        `below` and `standing` are as for `Chain.several_of`. The answer to a `review` of the kept notes, which is not a
        summary, is returned beside them, and its cost is part of the first one's. It is `None` if no call answered.

        Raises:
            CondensationError: if no model answered. As for `condense`.
        """
        try:
            asked = [*prepared, replace(prepared[0], job=review)] if review is not None else prepared
            given = yield from self._chain.several_of(asked, [*below, {}][: len(asked)], standing=standing)
        except CondensationError as error:
            for one in prepared:
                self._failed(one, error)
            raise
        said = given.pop() if review is not None else None
        found = next(((place, one) for place, one in enumerate(given) if one is not None), None)
        if said is None or found is None:
            return given, "" if found is not None else None
        first, kept = found
        given[first] = replace(kept, spent=kept.spent + said.spent)
        return given, said.text

    def finish(
        self, prepared: Prepared, given: Condensed | None = None, *, later: bool | None = None
    ) -> Flow[Condensed]:
        """The summary of a prepared job: the result of a call for several if it is accepted, else as for `condense`.

        `later` is as there. With `None`, rules do not write it instead of an available model.
        """
        job, context = prepared.job, prepared.context
        is_below = job.level < self._settings.model_from_level
        rules = _stand_ins(prepared.candidates) if later or (is_below and later is not None) else ()
        with suppress(CondensationError):
            if rules:
                condensed, by = yield from self._chain.first_of(rules, job, context)
                return self._taken(prepared, replace(condensed, by_rules=not is_below), by)
        try:
            condensed, by = yield from self._chain.first_of(prepared.candidates, job, context, part=given)
        except CondensationError as error:
            self._failed(prepared, error)
            raise
        return self._taken(prepared, condensed, by)

    def stands_in(self) -> None:
        """Count a text by rules that replaces a model's because the model failed too often."""
        self._tally.add("degraded")

    def _failed(self, prepared: Prepared, error: CondensationError) -> None:
        context = prepared.context
        self._tally.add("failed", why=error.reason)
        self._tally.note(context, reason=error.reason, error=str(error))
        self._extensions.tell("on_condensation_failure", context, error.reason, str(error))

    def _taken(self, prepared: Prepared, condensed: Condensed, by: CondensationPlugin) -> Condensed:
        job, context = prepared.job, prepared.context
        self._tally.add("succeeded", by.name)
        self._tally.add("degraded", times=int(condensed.degraded))
        wanted = self._settings.validation.metrics
        measures = measures_of(job, condensed.text, wanted) if wanted else {}
        self._tally.note(
            context,
            writer=by.name,
            tokens=condensed.tokens,
            degraded=condensed.degraded,
            reason=condensed.reason,
            error=condensed.error,
            measures=measures,
        )
        self._extensions.tell("on_condensation_success", context, condensed)
        return condensed

    def _context(self, job: CondenseJob) -> CondensationContext:
        return CondensationContext(
            session_id=job.session_id,
            level=job.level,
            strategy=job.strategy,
            messages=job.message_count,
            source_tokens=job.source_tokens,
            target_tokens=job.target_tokens,
            max_tokens=job.max_tokens,
            title=job.title,
            attempt=job.attempt,
            at=self._clock(),
        )

    def _now(self) -> float:
        return self._clock()

    def _count_text(self, text: str) -> int:
        return self._count(text)

    def _say(self, name: EventName, reason: str, **details: Any) -> None:  # noqa: ANN401 - plain JSON values of any kind
        self._report(name, reason, **details)


def _stand_ins(candidates: Sequence[CondensationPlugin]) -> tuple[CondensationPlugin, ...]:
    """Built-in rules that may write until a model does, if the first choice is a built-in model writer."""
    first = candidates[0] if candidates else None
    if not isinstance(first, CondenserPlugin) or not first.uses_model:
        return ()
    return tuple(one for one in candidates if is_built_in_rules(one))


def _unheard(name: EventName, reason: str, **details: Any) -> None:  # noqa: ANN401 - plain JSON values of any kind
    """Reports nothing, for an engine outside a memory."""
