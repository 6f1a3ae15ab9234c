"""Who writes, and who next where that one fails: the chain of candidates for one summary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.condensers.breaker import Pass
from langchain_tiered_memory.condensers.registry import CondenserPlugin, is_built_in_rules
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.outcomes import FailureReason
from langchain_tiered_memory.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.condensers.attending import Extensions
    from langchain_tiered_memory.condensers.engine_metrics import Tally
    from langchain_tiered_memory.condensers.finishing import Finish
    from langchain_tiered_memory.condensers.guarded import Report
    from langchain_tiered_memory.condensers.jobs import Condensed, CondenseJob
    from langchain_tiered_memory.condensers.writers import Writers
    from langchain_tiered_memory.extensions import CondensationContext, CondensationPlugin


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

    @property
    def anybody(self) -> bool:
        """Whether somebody came before."""
        return self.failure is not None or self.closed_seconds is not None

    def error(self) -> CondensationError:
        """What to say where nobody wrote it."""
        if self.failure is not None:
            return CondensationError(str(self.failure), spent=self.lost, reason=self.failure.reason)
        if self.closed_seconds is not None:
            said = f"every writer failed again and again, and is left alone for {self.closed_seconds:.0f} seconds"
            return CondensationError(said, reason=FailureReason.CIRCUIT_OPEN, retry_after_seconds=self.closed_seconds)
        return CondensationError("no plugin wants this summary: register one, or use CondensationEngine.create")


class Chain:
    """Asks candidates in turn.

    Args:
        writers: Drives them, within breakers and rate bound.
        finish: Makes a summary of what they give.
        extensions: Told of fallbacks.
        tally: Counts them.
        report: Says so.
        now: Seconds since the epoch.
        attempts: Attempts of models that fail, before rules write in their stead.
    """

    def __init__(
        self,
        *,
        writers: Writers,
        finish: Finish,
        extensions: Extensions,
        tally: Tally,
        report: Report,
        now: Callable[[], float],
        attempts: int,
    ) -> None:
        self._writers = writers
        self._finish = finish
        self._extensions = extensions
        self._tally = tally
        self._report = report
        self._now = now
        self._attempts = attempts

    def first_of(
        self, candidates: Sequence[CondensationPlugin], job: CondenseJob, context: CondensationContext
    ) -> Flow[tuple[Condensed, CondensationPlugin]]:
        """The first text that is taken, and whose it is.

        Rules that stand behind other candidates stand in for them: at once where no model could be asked, else at the
        last attempt; and never to replace a text that is there. What they write is marked as degraded.

        Raises:
            CondensationError: when no text is taken; `retry_after_seconds` is set where this was no attempt.
        """
        tried = _Tried()
        for place, plugin in enumerate(candidates):
            stands_in = place > 0 and is_built_in_rules(plugin)
            if stands_in and (job.remake or (tried.asked_model and job.attempt < self._attempts)):
                continue
            given = self._writers.enter(plugin, self._now())
            if not isinstance(given, Pass):
                tried.closed_seconds = min(given, tried.closed_seconds or given)
                continue
            if tried.anybody:
                yield from self._fell_back(tried.error(), plugin, context)
            try:
                condensed = yield from self._by(plugin, given, job, context)
            except CondensationError as error:
                tried.lost += error.spent
                if error.retry_after_seconds is not None:
                    raise _held_back(error, tried.lost) from error
                tried.failure = error
                tried.asked_model |= isinstance(plugin, CondenserPlugin) and plugin.uses_model
                continue
            condensed = replace(condensed, spent=condensed.spent + tried.lost)
            if stands_in and tried.anybody:
                why = tried.error()
                condensed = replace(condensed, degraded=True, reason=why.reason, error=str(why))
            return condensed, plugin
        raise tried.error() from tried.failure

    def _by(
        self, plugin: CondensationPlugin, given: Pass, job: CondenseJob, context: CondensationContext
    ) -> Flow[Condensed]:
        """The text of one writer, where it is taken; its breaker hears of it in any case."""
        try:
            written = yield from self._writers.write(plugin, job, context, self._now)
            condensed = yield from do(self._finish.taken, job, written, context)
        except CondensationError as error:
            if error.retry_after_seconds is not None:
                self._writers.left(plugin, given)
            else:
                self._writers.failed(plugin, given, reason=error.reason, now=self._now())
            raise
        except BaseException:
            self._writers.left(plugin, given)
            raise
        self._writers.succeeded(plugin, given)
        return condensed

    def _fell_back(self, error: CondensationError, to: CondensationPlugin, context: CondensationContext) -> Flow[None]:
        self._tally.fell_back()
        said = f"{to.name} takes over: {error}"
        self._report("next_writer", said, session_id=context.session_id, writer=to.name, cause=error.reason)
        yield from do(self._extensions.tell, "on_fallback", context, error.reason, to.name)


def _held_back(error: CondensationError, lost: Spent) -> CondensationError:
    return CondensationError(str(error), spent=lost, reason=error.reason, retry_after_seconds=error.retry_after_seconds)
