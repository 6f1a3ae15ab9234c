"""Who writes a summary: the fallback chain of the writers of one, and one call of a model for several."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, get_args

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.models.circuit_breaker import Pass
from langchain_tiered_memory.summaries.checks.soundness import Unsound
from langchain_tiered_memory.summaries.engine.writers import CondenserPlugin, is_built_in_rules
from langchain_tiered_memory.summaries.writers.batches import ENDED
from langchain_tiered_memory.summaries.writers.jobs import Condensed, Part, UnsoundSummaryError, with_spent
from langchain_tiered_memory.summaries.writers.sections import COMPLETE
from langchain_tiered_memory.types.outcomes import FailureReason, Refused
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.extensions import CondensationContext, CondensationPlugin
    from langchain_tiered_memory.summaries.engine.extension_host import Extensions, Report
    from langchain_tiered_memory.summaries.engine.metrics import Tally
    from langchain_tiered_memory.summaries.engine.writers import Writers
    from langchain_tiered_memory.summaries.writers.behind import Standing
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.summaries.writers.postprocess import Finish


_UNSOUND = frozenset[str](get_args(Unsound))
_TWICE = 2
"""The second time, a model was told why."""
LEAST_PARTS = 2
"""Of a call for several: a single summary is asked for alone, which tells more of its form."""
_AT_A_LOSS = 3
"""Calls for several in a row that brought nothing that could be used, or failed, as where all of it takes too long: the
model is asked for one at a time then, until it wrote as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job as hooks and prompt settings left it, and who wants it, in their order."""

    job: CondenseJob
    context: CondensationContext
    candidates: tuple[CondensationPlugin, ...]

    @property
    def leader(self) -> CondenserPlugin | None:
        """The built-in model that is the first choice, where this may be one of several in a call."""
        first = self.candidates[0] if self.candidates else None
        if not isinstance(first, CondenserPlugin) or first.together is None:
            return None
        # Instructions of a user's own are about one summary, and so are sections that must all stand there.
        return first if self.job.instructions is None and self.job.strategy not in COMPLETE else None


@dataclass(slots=True)
class _Tried:
    """How far one attempt came."""

    who: str = "writer"
    """Of whom each is asked."""
    lost: Spent = field(default_factory=Spent)
    """By writers whose text was not taken."""
    failure: CondensationError | None = None
    """Of the last writer that was asked."""
    closed_seconds: float | None = None
    """Until the first of the writers that are left alone may be asked again."""
    asked_model: bool = False
    again: CondensationPlugin | None = None
    """Who wrote it in a call for several: asked alone, it takes over from nobody."""
    unsound: tuple[UnsoundSummaryError, CondensationPlugin] | None = None
    """The last text that was refused as unsound, and whose it is."""

    @property
    def anybody(self) -> bool:
        """Whether somebody came before."""
        return self.failure is not None or self.closed_seconds is not None

    def leave_alone(self, seconds: float) -> None:
        """A writer is left alone for so long."""
        self.closed_seconds = min(seconds, self.closed_seconds or seconds)

    def note(self, error: CondensationError, plugin: CondensationPlugin) -> None:
        """A writer gave nothing that could be taken."""
        self.lost += error.spent
        if error.reason is FailureReason.RATE_LIMITED:  # the bound on all of them
            raise with_spent(error, self.lost) from error
        if error.retry_after_seconds is not None:
            self.leave_alone(error.retry_after_seconds)
            return
        self.failure = error
        if isinstance(error, UnsoundSummaryError):
            self.unsound = error, plugin
        self.asked_model |= isinstance(plugin, CondenserPlugin) and plugin.uses_model

    def error(self) -> CondensationError:
        """What to say where nobody wrote it."""
        if self.failure is not None:
            return with_spent(self.failure, self.lost)
        if self.closed_seconds is not None:
            said = f"every {self.who} failed repeatedly or asks for a pause, and is not called"
            said += f" for {self.closed_seconds:.0f} seconds"
            return CondensationError(said, reason=FailureReason.CIRCUIT_OPEN, retry_after_seconds=self.closed_seconds)
        return CondensationError("no plugin wants this summary: register one, or use CondensationEngine.create")


@dataclass(slots=True, kw_only=True)
class Chain:
    """Asks candidates in turn, and built-in models for several summaries at once. Safe for threads.

    Models that fail are asked in `attempts` attempts before rules write in their stead.
    """

    writers: Writers
    finish: Finish
    extensions: Extensions
    tally: Tally
    report: Report
    now: Callable[[], float]
    attempts: int
    _unusable: Counter[str] = field(default_factory=Counter, init=False)
    """By model: its latest calls for several that brought nothing."""
    _alone: Counter[str] = field(default_factory=Counter, init=False)
    """By model: how many summaries it has yet to write one at a time before it is asked for several again."""

    def first_of(
        self,
        candidates: Sequence[CondensationPlugin],
        job: CondenseJob,
        context: CondensationContext,
        *,
        part: Condensed | None = None,
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
        wrote = next((one for one in candidates if part is not None and one.name == part.model), None)
        tried = _Tried(again=wrote)
        first = [(-1, wrote)] if wrote is not None else []
        for place, plugin in (*first, *_to_ask(candidates, part)):
            stands_in = place > 0 and is_built_in_rules(plugin)
            if stands_in and (job.remake or (tried.asked_model and job.attempt < self.attempts)):
                continue  # a text is there, or the models are asked again later
            try:
                if part is not None and place < 0:
                    condensed: Condensed | None = self._of_part(part, plugin, job, context)
                else:
                    condensed = yield from self._by(plugin, tried, job, context)
            except CondensationError as error:
                self._tell_refused(error.refused, plugin, context)
                tried.note(error, plugin)
                job = replace(job, refused=error.refused[-1].why if error.refused else job.refused)
                continue
            if condensed is None:
                continue
            self._tell_refused(condensed.refused, plugin, context)
            condensed = replace(condensed, spent=condensed.spent + tried.lost)
            if stands_in and tried.anybody:
                why = tried.error()
                condensed = replace(condensed, degraded=True, reason=why.reason, error=str(why))
            if part is None:
                self._alone[plugin.name] -= 1
            return condensed, plugin
        return self._stopgap(tried, job)

    def _stopgap(self, tried: _Tried, job: CondenseJob) -> tuple[Condensed, CondensationPlugin]:
        """An unsound text, where there is one and nothing better stands already or may come at the next attempt."""
        if tried.unsound is not None and not job.remake and job.attempt >= self.attempts:
            unsound, plugin = tried.unsound
            stopgap = self.finish.stopgap(job, unsound)
            if stopgap is not None:
                return replace(stopgap, spent=tried.lost), plugin
        raise tried.error() from tried.failure

    def _by(
        self, plugin: CondensationPlugin, tried: _Tried, job: CondenseJob, context: CondensationContext
    ) -> Flow[Condensed | None]:
        """The text of one writer, where it is taken; its breaker hears of it. `None` where it is left alone."""
        given = self.writers.enter(plugin, self.now())
        if not isinstance(given, Pass):
            tried.leave_alone(given)
            return None
        if tried.anybody and plugin is not tried.again:
            self._fell_back(tried.error(), plugin, context)
        with self.writers.breaks(plugin, given, self.now):
            written = yield from self.writers.write(plugin, job, context, self.now)
            condensed = self.finish.taken(job, written, context, quotes=is_built_in_rules(plugin))
            self._ask_itself(plugin, job, condensed)
        return condensed

    def _of_part(
        self, part: Condensed, plugin: CondensationPlugin, job: CondenseJob, context: CondensationContext
    ) -> Condensed:
        """The summary made of what a call for several gave. Its breaker heard of the call as a whole."""
        if not part.text:
            why = part.refused[-1].why if part.refused else "it is missing"
            said = f"{plugin.name} gave no usable summary in a call for several: {why}"
            reason = part.reason or FailureReason.EMPTY_SUMMARY
            raise CondensationError(said, spent=part.spent, reason=reason, refused=part.refused)
        condensed = self.finish.taken(job, part, context)
        self._ask_itself(plugin, job, condensed)
        return condensed

    def _ask_itself(self, plugin: CondensationPlugin, job: CondenseJob, condensed: Condensed) -> None:
        """A plugin may refuse what became of its text."""
        wrong = self.extensions.own_rejection(plugin, job, condensed.text)
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

    def several_of(
        self, prepared: Sequence[Prepared], below: Sequence[Mapping[str, int]], *, standing: Standing | None = None
    ) -> Flow[list[Condensed | None]]:
        """What one call gives for each of these, or a few; `None` for what has to be asked for alone.

        What an answer that ended too soon lacks is asked for in another call; so is what could not be used, once, with
        the reason, where that is more than one part. After an answer of which nothing can be used, each is asked for
        alone; a model that gives several of those in a row is asked for one at a time, until it wrote as many.

        The jobs come lower levels first; `below` has of each those of its sources (by id) that are among the others, as
        places. `standing` is the last request of the session's agent, where it may be used.

        Raises:
            CondensationError: when no model answered; `retry_after_seconds` is set where none was at fault now.
        """
        given: list[Condensed | None] = [None for _ in prepared]
        untold = Spent()
        waiting = _together(prepared, below)
        # Behind a request that a provider has in its cache, one is asked for as well as several are.
        least = LEAST_PARTS if standing is None else 1
        while len(waiting) >= least:
            models = self._models(prepared[waiting[0]].candidates)
            places = _in_hand(waiting, below, given) if models else []
            if not places:
                break
            waiting = [place for place in waiting if place not in places]
            if len(places) < least:
                continue
            try:
                asked = _parts(prepared, below, places, given)
                answers, lost = yield from self._first_model(models, asked, standing)
            except CondensationError as error:
                found = next(((place, one) for place, one in enumerate(given) if one is not None), None)
                if found is None:
                    raise with_spent(error, untold + error.spent) from error
                first, kept = found
                # What came before is kept; the others are asked for alone, within breakers and bound.
                given[first] = replace(kept, spent=kept.spent + untold + error.spent)
                break
            untold += lost
            if not answers:
                continue  # one that is asked for alone
            if any(answer.text for answer in answers):
                waiting = _to_ask_again(places, answers, given, least=least) + waiting
            for place, answer in zip(places, answers, strict=True):
                before = given[place] or replace(answer, spent=Spent(), refused=())
                spent, untold = before.spent + untold + answer.spent, Spent()
                given[place] = replace(answer, spent=spent, refused=(*before.refused, *answer.refused))
        return given

    def _models(self, candidates: Sequence[CondensationPlugin]) -> list[CondenserPlugin]:
        """The built-in models that are asked before anybody who writes one summary at a time."""
        found: list[CondenserPlugin] = []
        for plugin in candidates:
            if is_built_in_rules(plugin):
                continue  # what stands there already is by them
            if not isinstance(plugin, CondenserPlugin) or plugin.together is None:
                break
            if self._alone[plugin.name] > 0:
                break
            found.append(plugin)
        return found

    def _first_model(
        self, models: Sequence[CondenserPlugin], parts: Sequence[Part], standing: Standing | None
    ) -> Flow[tuple[list[Condensed], Spent]]:
        """What the first model says that answers, and what those before it took; breakers hear of a call as a whole."""
        tried = _Tried(who="model")
        for plugin in models:
            allowed = self.writers.enter(plugin, self.now())
            if not isinstance(allowed, Pass):
                tried.leave_alone(allowed)
                continue
            if tried.anybody:
                why = tried.error()
                self.report(
                    EventName.NEXT_WRITER, f"{plugin.name} takes over: {why}", writer=plugin.name, cause=why.reason
                )
            try:
                with self.writers.breaks(plugin, allowed, self.now):
                    answers = yield from self.writers.write_together(plugin, parts, self.now, standing=standing)
                    # Of nothing usable each is asked for alone: that says whether the model is at fault.
                    allowed.well = any(answer.text for answer in answers)
            except CondensationError as error:
                tried.note(error, plugin)
                if error.retry_after_seconds is None:  # a pause is asked for whatever a call is for
                    self._learn(plugin, parts, well=False)
                continue
            self._learn(plugin, parts, well=allowed.well)
            return answers, tried.lost
        raise tried.error() from tried.failure

    def _learn(self, plugin: CondenserPlugin, parts: Sequence[Part], *, well: bool) -> None:
        """Whether a model can be asked for several; a single one tells nothing of that."""
        if len(parts) >= LEAST_PARTS:
            in_a_row = self._unusable[plugin.name] = 0 if well else self._unusable[plugin.name] + 1
            self._alone[plugin.name] = in_a_row if in_a_row >= _AT_A_LOSS else 0


def _to_ask(candidates: Sequence[CondensationPlugin], part: Condensed | None) -> list[tuple[int, CondensationPlugin]]:
    """The candidates with their places, where others are without one whose text of the part was unsound twice."""
    placed = list(enumerate(candidates))
    if part is None or sum(one.fault in _UNSOUND for one in part.refused) < _TWICE:
        return placed
    return [(place, plugin) for place, plugin in placed if plugin.name != part.model] or placed


def _in_hand(
    waiting: Sequence[int], below: Sequence[Mapping[str, int]], given: Sequence[Condensed | None]
) -> list[int]:
    """Those whose sources are written by now, or will be in the same call."""
    chosen: list[int] = []
    for place in waiting:
        if all(under in chosen or ((one := given[under]) and one.text) for under in below[place].values()):
            chosen.append(place)
    return chosen


def _to_ask_again(
    places: Sequence[int], answers: Sequence[Condensed], before: Sequence[Condensed | None], *, least: int
) -> list[int]:
    """What an answer that ended too soon lacks; and what could not be used, once.

    A single part is asked for alone, with the reason.
    """
    given = list(zip(places, answers, strict=True))
    lacking = [
        (place, [one.fault for one in answer.refused[-1:]] == [ENDED]) for place, answer in given if not answer.text
    ]
    ended = [place for place, is_ended in lacking if is_ended]
    wrong = [place for place, is_ended in lacking if not is_ended and not _refused(before[place])]
    return sorted([*ended, *wrong]) if len(wrong) >= max(least, LEAST_PARTS) else ended


def _refused(before: Condensed | None) -> tuple[Refused, ...]:
    return before.refused if before is not None else ()


def _together(prepared: Sequence[Prepared], below: Sequence[Mapping[str, int]]) -> list[int]:
    """Places of those that one call may be asked for: of the same first choice, with all that stands below them."""
    leader = prepared[0].leader if prepared else None
    chosen: list[int] = []
    if leader is None:
        return chosen
    for place, one in enumerate(prepared):
        if one.leader is leader and not one.job.is_alone and all(under in chosen for under in below[place].values()):
            chosen.append(place)
    return chosen


def _parts(
    prepared: Sequence[Prepared],
    below: Sequence[Mapping[str, int]],
    places: Sequence[int],
    given: Sequence[Condensed | None],
) -> list[Part]:
    """The parts of one call; what a call before it wrote stands in them as a source, and why it is asked again."""
    order = {place: number for number, place in enumerate(places)}
    parts: list[Part] = []
    for place in places:
        job, under = prepared[place].job, below[place]
        before = ((one, given[other]) for one, other in under.items() if other not in order)
        written = {one: part for one, part in before if part is not None and part.text}
        sources = tuple(
            replace(one, text=written[one.id].text, tokens=written[one.id].tokens) if one.id in written else one
            for one in job.sources
        )
        here = {one: order[other] for one, other in under.items() if other in order}
        why = next((one.why for one in reversed(_refused(given[place]))), job.refused)
        parts.append(Part(job=replace(job, sources=sources, refused=why), below=here))
    return parts
