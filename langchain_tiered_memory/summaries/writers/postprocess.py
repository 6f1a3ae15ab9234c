"""Post-processes what a writer gave into a summary: cut to size, audited, labelled.

It is seen by hooks, held against its sources, cut to its size, mended by the audit and judged by validators.

The audit appends what it dropped, in statements that a reader understands. Where no statement of the text, nor a fact
beside it, has a figure, path or code that somebody said, the statement that says it is appended, as the extractive
condenser quotes it: with who said it, a line each. So are calls that wait for their result, and what somebody said is
still open. What a tool said and nobody took up can be looked up again. Nothing is judged but the form, so it needs no
model and no dictionary. It never blocks: what does not fit is left out, what is worth least first. One level up these
lines are read as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.checks.answers import FAULTS
from langchain_tiered_memory.summaries.checks.measures import BuiltInValidator
from langchain_tiered_memory.summaries.checks.trust import labelled
from langchain_tiered_memory.summaries.checks.unsourced import evidence, marked, without_marked
from langchain_tiered_memory.summaries.facts.clauses import LEAST_WORDS
from langchain_tiered_memory.summaries.facts.related import may_replace
from langchain_tiered_memory.summaries.facts.written import has_statements
from langchain_tiered_memory.summaries.marks import (
    NOT_ANSWERED,
    SAID,
    STILL_OPEN,
    WAITING,
    date_of,
    ends,
    instead_of,
    is_kept,
    without_instead,
)
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size, most_tokens
from langchain_tiered_memory.summaries.writers.extractive import line_of
from langchain_tiered_memory.summaries.writers.extractive_sources import units_of
from langchain_tiered_memory.summaries.writers.jobs import UnsoundSummaryError
from langchain_tiered_memory.summaries.writers.ranking import in_order_of_worth
from langchain_tiered_memory.summaries.writers.sections import FORMS
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import folded, identifiers, stated_in, states
from langchain_tiered_memory.text.readings import MEASURED_CHARS
from langchain_tiered_memory.text.sentences import asks
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.types.outcomes import FailureReason, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.settings import CondensationSettings
    from langchain_tiered_memory.summaries.engine.extension_host import Extensions, Report
    from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
    from langchain_tiered_memory.summaries.writers.ranking import Unit

_HEADINGS = frozenset(section.heading.casefold() for form in FORMS.values() for section in form)


@dataclass(slots=True, kw_only=True)
class Finish:
    """The last steps of one engine. Blocking."""

    settings: CondensationSettings
    extensions: Extensions
    count_text: Callable[[str], int]
    report: Report

    def taken(
        self, job: CondenseJob, written: Condensed, context: CondensationContext, *, quotes: bool = False
    ) -> Condensed:
        """The summary as it may stand for the sources.

        A hook's text that is not taken is passed over; the text before it counts. Where the writer only `quotes` its
        sources, with their labels, there is nothing to hold against them, unless a hook changed the text.

        Raises:
            UnsoundSummaryError: when the text has too little to do with its sources.
            CondensationError: when it is not taken for another reason.
        """
        for hook in self.extensions.hooks_with("after_condensation"):
            changed = self.extensions.after(hook, job, written, context)
            if changed.text == written.text:
                continue
            wrong = self._unsound(job, changed) or self._rejection(job, self._finished(job, changed))
            if wrong is None:
                written, quotes = changed, False
                continue
            said = f"hook {hook.name} returned a text that was refused ({wrong[1]}); the earlier text is used"
            self.report(
                EventName.EXTENSION_FAILED, said, session_id=job.session_id, extension=f"hook {hook.name}", hung=False
            )
        wrong = None if quotes else self._unsound(job, written)
        summary = written
        if wrong is None:
            summary = self._mended(job, written, own_tokens=None) if quotes else self._finished(job, written)
            wrong = self._rejection(job, summary)
        if wrong is None:
            return summary
        message = f"{written.model}'s summary was refused: {wrong[1]}"
        written = replace(written, refused=(*written.refused, Refused(wrong[0].value, wrong[1])))
        if wrong[0] is FailureReason.UNSOUND:
            raise UnsoundSummaryError(message, written=written)
        raise CondensationError(message, spent=written.spent, reason=wrong[0], refused=written.refused)

    def stopgap(self, job: CondenseJob, error: UnsoundSummaryError) -> Condensed | None:
        """An unsound text as it may stand until a better one is written, degraded; `None` where it may not."""
        summary = self._finished(job, error.written)
        if self._rejection(job, summary) is not None:
            return None
        return replace(summary, degraded=True, reason=error.reason, error=str(error))

    def _unsound(self, job: CondenseJob, written: Condensed) -> tuple[FailureReason, str] | None:
        if not _says_something(written.text):
            return FailureReason.EMPTY_SUMMARY, "it says nothing"
        found = job.unsound(written.text, self.settings.validation)
        return FAULTS[found] if found is not None else None

    def _finished(self, job: CondenseJob, written: Condensed) -> Condensed:
        """With marks on what is in no source, labels on what a tool said, within its size, and with what it dropped."""
        ids = [fact.id for fact in job.kept] if job.level == 1 else []
        own = without_instead(written.text.strip(), ids, meant=partial(may_replace, job.kept))
        stay = sum(len(instead_of(line)) for line in written.text.splitlines())
        stay -= sum(len(ends(line)) for line in own.splitlines())
        if stay > 0:
            said = f"{written.model} would replace {stay} notes that are not listed or not mentioned: they stay"
            self.report(EventName.NOTE_NOT_REPLACED, said, session_id=job.session_id, level=job.level, notes=stay)
        text = own
        times = (job.first_at, job.last_at, *(source.at for source in job.sources))
        beside = (*(source.text for source in job.beside), *written.shown)
        found = evidence([source.text for source in job.sources], times, job.known, beside)
        if found is not None:
            text, strange = marked(text, found)
            if strange:
                said = f"{len(strange)} figures or codes of {written.model}'s summary are in no source: they are marked"
                self.report(
                    EventName.SUMMARY_UNSOURCED, said, session_id=job.session_id, level=job.level, marked=len(strange)
                )
        noted = (fact.text for fact in job.kept if fact.by != "tool")
        told = labelled(text, job.sources, _HEADINGS, job.beside, noted)
        return self._mended(job, replace(written, text=told), own_tokens=self.count_text(own))

    def _mended(self, job: CondenseJob, written: Condensed, *, own_tokens: int | None) -> Condensed:
        """Within its size, and with what it dropped.

        `own_tokens` is what it had without marks and labels, where there are any: no writer is refused for what we
        added.
        """
        text = written.text.strip()
        cap = most_tokens(text, max_tokens=job.max_tokens, source_tokens=job.source_tokens)
        tokens = self.count_text(without_instead(text))
        own = tokens if own_tokens is None else own_tokens
        if tokens > cap and (own <= job.source_tokens or not self._judges_size()):
            cut = cut_to_size(text, max_tokens=cap, count_text=self.count_text)
            text, tokens = cut.text, cap
            written = replace(written, cut_lines=written.cut_lines + cut.lines)
        if self.settings.validation.audit and _says_something(text) and tokens <= cap:
            worded = own_tokens is not None
            stated = worded and has_statements(text)
            if stated and job.level == 1:
                job = replace(job, facts=())  # no rule reads its messages again: what the text leaves out is dropped
            text = audited(
                text,
                job,
                max_tokens=cap,
                count_text=self.count_text,
                decided=worded and (job.level > 1 or bool(job.kept) or written.marks or is_kept(text)),
                in_statements=stated,
            )
        return replace(written, text=text, tokens=self.count_text(text))

    def _judges_size(self) -> bool:
        return any(isinstance(one, BuiltInValidator) and one.name == "size" for one in self.extensions.validators)

    def _rejection(self, job: CondenseJob, summary: Condensed) -> tuple[FailureReason, str] | None:
        if not _says_something(summary.text):
            # Whatever the settings say: nothing can stand for messages that says nothing.
            return FailureReason.EMPTY_SUMMARY, "it says nothing"
        return self.extensions.rejection(job, summary.text)


def _says_something(text: str) -> bool:
    return any(char.isalnum() for char in text)


_AUDIT_SHARE = 0.25
"""Of a summary's size, what the audit may append where its text leaves room."""
_MOST = 12
_LEAST_LETTERS = 0.6
"""Of a statement: below that it is a row of figures, a place in a file, a line of code."""
_UNSPACED_LETTERS = 8
"""Of a statement in a script without blanks."""
_TOLD_SHARE = 0.5
"""Of the terms of an open question, that a summary states which tells it in other words."""
_ESCAPES = ("\\n", "\\t", '\\"')
"""What stands in code or in data, and in nothing that anybody said."""


def audited(
    text: str,
    job: CondenseJob,
    *,
    max_tokens: int,
    count_text: Callable[[str], int],
    share: float = _AUDIT_SHARE,
    decided: bool = False,
    in_statements: bool = False,
) -> str:
    """`text` with what it dropped of its sources, a line for each statement, the most important first.

    Unfinished calls and open questions come first, then statements that have something which is missing, as rules rank
    them. What the facts of `job` say is not dropped. The whole has at most `max_tokens`, what is appended at most
    `share` of them.

    Where a model `decided` what stays of the statements (it marks what must last, or it merges summaries, and what it
    leaves out of these may have been replaced since), only what is unfinished is appended. One that wrote
    `in_statements`, as our prompts ask, was told to say what is open: what somebody asked once is not said to be so.
    """
    own = count_text(text)
    room = min(max_tokens - own, int(max_tokens * share))
    whole, added = text, 0
    if room <= 0 or sum(len(source.text) for source in job.sources) > MEASURED_CHARS:
        return text
    for line in _missing(text, job, decided=decided, in_statements=in_statements):
        longer = f"{whole}\n{line}"
        tokens = count_text(longer)
        if tokens <= max_tokens and tokens - own <= room:
            whole = longer
            added += 1
        if added == _MOST:
            break
    return whole


def _missing(text: str, job: CondenseJob, *, decided: bool, in_statements: bool) -> Iterator[str]:
    """Lines that tell what `text` does not, the most important first."""
    whole = folded(text)
    for source in job.sources:
        # What is condensed has been given up for dead: it waits no more.
        untold = [call for call in source.open_calls if folded(call) not in whole]
        many = f"1 of {len(untold)}: " if len(untold) > 1 else ""
        yield from (f"{NOT_ANSWERED}{WAITING}{many}{call}" for call in untold[:1])
    units = [unit for unit in units_of(job) if _is_understood(unit)]
    terms = frozenset(analyse(text))
    for unit in () if in_statements else reversed(units):
        if _is_left_open(unit, job) and not _is_told(unit, terms):
            yield f"{STILL_OPEN}{line_of([unit])}"
    if not decided:
        yield from _by_worth(units, "\n".join((text, *(fact.text for fact in job.facts))), job)


def _by_worth(units: Sequence[Unit], stated: str, job: CondenseJob) -> Iterator[str]:
    """Statements that have something which nothing has yet, what tells most for its length first."""
    known, whole = {*identifiers(stated), *(date_of(source.at).casefold() for source in job.sources)}, folded(stated)
    for unit in (units[place] for place in in_order_of_worth(units)):
        if lacking := {key for key in stated_in(without_marked(unit.told)) - known if not states(whole, key)}:
            known |= lacking
            yield f"{SAID}{line_of([unit])}"


def _is_understood(unit: Unit) -> bool:
    """Whether somebody who reads the statement alone knows what it says: no code, no row of figures, no question."""
    if unit.by_tool or unit.is_code or unit.is_call or any(one in unit.text for one in _ESCAPES):
        return False
    if asks(unit.text) and not unit.asked:
        return False
    said = "".join(unit.text.split())
    letters = sum(map(str.isalpha, said))
    spaced = sum(any(map(str.isalpha, word)) for word in unit.text.split()) >= LEAST_WORDS
    unspaced = not said.isascii() and letters >= _UNSPACED_LETTERS
    return letters >= _LEAST_LETTERS * len(said) and (spaced or unspaced)


def _is_left_open(unit: Unit, job: CondenseJob) -> bool:
    """Whether somebody said that something is open; of what summaries tell, the last may still."""
    if job.level > 1 and unit.source < len(job.sources) - 1:
        return False
    return cues.QUESTION.search(cues.lowered(unit.text)) is not None


def _is_told(unit: Unit, terms: frozenset[str]) -> bool:
    own = frozenset(analyse(unit.text))
    return len(own & terms) >= _TOLD_SHARE * len(own)
