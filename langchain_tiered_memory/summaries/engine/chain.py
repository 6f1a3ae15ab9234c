"""Fallback chain of the writers of one summary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, get_args

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.checks.soundness import Unsound
from langchain_tiered_memory.summaries.engine.bounds import Pass
from langchain_tiered_memory.summaries.engine.writers import CondenserPlugin, is_built_in_rules
from langchain_tiered_memory.summaries.writers.jobs import Condensed, UnsoundSummaryError, with_spent
from langchain_tiered_memory.types.outcomes import FailureReason, Refused
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.extensions import CondensationContext, CondensationPlugin
    from langchain_tiered_memory.summaries.engine.extension_calls import Report
    from langchain_tiered_memory.summaries.engine.extension_host import Extensions
    from langchain_tiered_memory.summaries.engine.metrics import Tally
    from langchain_tiered_memory.summaries.engine.writers import Writers
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, PartAnswer
    from langchain_tiered_memory.summaries.writers.postprocess import Finish


_UNSOUND = frozenset[str](get_args(Unsound))
_TWICE = 2
"""The second time, a model was told why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPart:
    """What a call for several summaries gave for one of them."""

    plugin: CondenserPlugin
    answer: PartAnswer


@dataclass(slots=True)
class _Tried:
    """How far one attempt at a summary came."""

    lost: Spent = field(default_factory=Spent)
    """By writers whose text was not taken."""
    failure: CondensationError | None = None
    """Of the last writer that was asked."""
    closed_seconds: float | None = None
    """Until the first of the writers that are left alone may be asked again."""
    asked_model: bool = False
    unsound: tuple[UnsoundSummaryError, CondensationPlugin] | None = None
    """The last text that was refused as unsound, and whose it is."""

    @property
    def anybody(self) -> bool:
        """Whether somebody came before."""
        return self.failure is not None or self.closed_seconds is not None

    def note(self, error: CondensationError, plugin: CondensationPlugin) -> None:
        """A writer gave nothing that could be taken."""
        self.lost += error.spent
        if error.retry_after_seconds is not None:
            raise with_spent(error, self.lost) from error
        self.failure = error
        if isinstance(error, UnsoundSummaryError):
            self.unsound = error, plugin
        self.asked_model |= isinstance(plugin, CondenserPlugin) and plugin.uses_model

    def error(self) -> CondensationError:
        """What to say where nobody wrote it."""
        if self.failure is not None:
            return with_spent(self.failure, self.lost)
        if self.closed_seconds is not None:
            said = f"every writer failed again and again, and is left alone for {self.closed_seconds:.0f} seconds"
            return CondensationError(said, reason=FailureReason.CIRCUIT_OPEN, retry_after_seconds=self.closed_seconds)
        return CondensationError("no plugin wants this summary: register one, or use CondensationEngine.create")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Asks candidates in turn.

    Models that fail are asked in `attempts` attempts before rules write in their stead.
    """

    writers: Writers
    finish: Finish
    extensions: Extensions
    tally: Tally
    report: Report
    now: Callable[[], float]
    attempts: int

    def first_of(
        self,
        candidates: Sequence[CondensationPlugin],
        job: CondenseJob,
        context: CondensationContext,
        *,
        part: GivenPart | None = None,
    ) -> Flow[tuple[Condensed, CondensationPlugin]]:
        """The first text that is taken, and whose it is.

        Rules that stand behind other candidates stand in for them: at once where no model could be asked, else at the
        last attempt; and never to replace a text that is there. What they write is marked as degraded. Where no rules
        stand behind, so is an unsound text that comes at the last attempt: it stands until a better one is written.
        What a call for several summaries gave for this one, `part`, is taken, or asked for again alone; of what was
        refused twice the next candidate is asked.

        Raises:
            CondensationError: when no text is taken; `retry_after_seconds` is set where this was no attempt.
        """
        tried = _Tried()
        if part is not None:
            self._tell_refused(part.answer.refused, part.plugin, context)
            try:
                return self._of_part(part, job, context), part.plugin
            except CondensationError as error:
                self._tell_refused(error.refused[len(part.answer.refused) :], part.plugin, context)
                tried.note(error, part.plugin)
                job = replace(job, refused=_last_reason(error, job.refused))
        for place, plugin in _to_ask(candidates, part):
            stands_in = place > 0 and is_built_in_rules(plugin)
            if stands_in and self._may_not_stand_in(job, tried):
                continue
            given = self.writers.enter(plugin, self.now())
            if not isinstance(given, Pass):
                tried.closed_seconds = min(given, tried.closed_seconds or given)
                continue
            if tried.anybody and (part is None or plugin is not part.plugin):
                self._fell_back(tried.error(), plugin, context)
            try:
                condensed = yield from self._by(plugin, given, job, context)
            except CondensationError as error:
                self._tell_refused(error.refused, plugin, context)
                tried.note(error, plugin)
                job = replace(job, refused=_last_reason(error, job.refused))
                continue
            self._tell_refused(condensed.refused, plugin, context)
            condensed = replace(condensed, spent=condensed.spent + tried.lost)
            if stands_in and tried.anybody:
                why = tried.error()
                condensed = replace(condensed, degraded=True, reason=why.reason, error=str(why))
            return condensed, plugin
        stopgap = self._stopgap(tried, job, context)
        if stopgap is not None:
            return stopgap
        raise tried.error() from tried.failure

    def _may_not_stand_in(self, job: CondenseJob, tried: _Tried) -> bool:
        """Whether rules have to leave a job to the models: a text is there, or they are asked again later."""
        return job.remake or (tried.asked_model and job.attempt < self.attempts)

    def _stopgap(
        self, tried: _Tried, job: CondenseJob, context: CondensationContext
    ) -> tuple[Condensed, CondensationPlugin] | None:
        """An unsound text, where there is one and nothing better stands already or may come at the next attempt."""
        if tried.unsound is None or job.remake or job.attempt < self.attempts:
            return None
        unsound, plugin = tried.unsound
        stopgap = self.finish.stopgap(job, unsound, context)
        return (replace(stopgap, spent=tried.lost), plugin) if stopgap is not None else None

    def _by(
        self, plugin: CondensationPlugin, given: Pass, job: CondenseJob, context: CondensationContext
    ) -> Flow[Condensed]:
        """The text of one writer, where it is taken; its breaker hears of it in any case."""
        with self.writers.breaks(plugin, given, self.now):
            written = yield from self.writers.write(plugin, job, context, self.now)
            quotes = is_built_in_rules(plugin)
            condensed = self.finish.taken(job, written, context, quotes=quotes)
            self._ask_itself(plugin, job, condensed, context)
        self.writers.succeeded(plugin, given)
        return condensed

    def _of_part(self, part: GivenPart, job: CondenseJob, context: CondensationContext) -> Condensed:
        """The summary made of what a call for several gave. Its breaker heard of the call as a whole."""
        answer, plugin = part.answer, part.plugin
        if not answer.text:
            said = f"{plugin.name} gave no usable summary in a call for several: {answer.wrong or 'it is missing'}"
            raise CondensationError(said, spent=answer.spent, reason=answer.reason, refused=answer.refused)
        condensed = self.finish.taken(job, answer.condensed(plugin.name), context)
        self._ask_itself(plugin, job, condensed, context)
        return condensed

    def _ask_itself(
        self, plugin: CondensationPlugin, job: CondenseJob, condensed: Condensed, context: CondensationContext
    ) -> None:
        """A plugin may refuse what became of its text."""
        wrong = self.extensions.own_rejection(plugin, job, condensed.text, context)
        if wrong is not None:
            said = f"{plugin.name} does not take its own summary: {wrong}"
            reason = FailureReason.VALIDATOR_REJECTED
            refused = (*condensed.refused, Refused(reason.value, wrong))
            raise CondensationError(said, spent=condensed.spent, reason=reason, refused=refused)

    def _tell_refused(
        self, refused: Sequence[Refused], plugin: CondensationPlugin, context: CondensationContext
    ) -> None:
        for one in refused:
            self.tally.add("refused", plugin.name, one.fault)
            said = f"{plugin.name}, level {context.level}: {one.why}"
            self.report(
                EventName.ANSWER_REFUSED, said, session_id=context.session_id, writer=plugin.name, fault=one.fault
            )

    def _fell_back(self, error: CondensationError, to: CondensationPlugin, context: CondensationContext) -> None:
        self.tally.add("fell back")
        said = f"{to.name} takes over: {error}"
        self.report(EventName.NEXT_WRITER, said, session_id=context.session_id, writer=to.name, cause=error.reason)
        self.extensions.tell("on_fallback", context, error.reason, to.name)


def _to_ask(candidates: Sequence[CondensationPlugin], part: GivenPart | None) -> list[tuple[int, CondensationPlugin]]:
    """The candidates with their places, where others are without one whose text of the part was unsound twice."""
    placed = list(enumerate(candidates))
    if part is None or sum(one.fault in _UNSOUND for one in part.answer.refused) < _TWICE:
        return placed
    return [(place, plugin) for place, plugin in placed if plugin is not part.plugin] or placed


def _last_reason(error: CondensationError, before: str) -> str:
    """Why the last answer was not taken, for the next request."""
    return error.refused[-1].why if error.refused else before
