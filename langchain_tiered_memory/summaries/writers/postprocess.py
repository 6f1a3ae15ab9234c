"""Post-processes what a writer gave into a summary: cut to size, audited, labelled.

It is seen by hooks, held against its sources, cut to its size, mended by the audit and judged by validators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.checks.answers import FAULTS
from langchain_tiered_memory.summaries.checks.audit import audited
from langchain_tiered_memory.summaries.checks.measures import BuiltInValidator
from langchain_tiered_memory.summaries.checks.trust import labelled
from langchain_tiered_memory.summaries.checks.unsourced import evidence, marked
from langchain_tiered_memory.summaries.facts.written import has_statements
from langchain_tiered_memory.summaries.marks import is_kept, without_instead
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size, most_tokens
from langchain_tiered_memory.summaries.writers.jobs import UnsoundSummaryError
from langchain_tiered_memory.summaries.writers.sections import FORMS
from langchain_tiered_memory.types.outcomes import FailureReason, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.settings import CondensationSettings
    from langchain_tiered_memory.summaries.engine.extension_host import Extensions, Report
    from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob

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
            said = f"hook {hook.name} gave a text that is not taken ({wrong[1]}); the one before it counts"
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
        message = f"{written.model}'s summary was not taken: {wrong[1]}"
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
        own = without_instead(written.text.strip(), [fact.seq for fact in job.kept])
        text, notes = own, written.notes
        found = None
        if self.settings.validation.mark_unsourced:
            times = (job.first_at, job.last_at, *(source.at for source in job.sources))
            found = evidence([source.text for source in job.sources], times, job.known)
        if found is not None:
            text, strange = marked(text, found)
            if strange:
                notes = (*notes, "marked")
                said = f"{len(strange)} figures or codes of {written.model}'s summary are in no source: they are marked"
                self.report(
                    EventName.SUMMARY_UNSOURCED, said, session_id=job.session_id, level=job.level, marked=len(strange)
                )
        told = labelled(text, job.sources, _HEADINGS)
        if told != text:
            notes = (*notes, "labelled")
        return self._mended(job, replace(written, text=told, notes=notes), own_tokens=self.count_text(own))

    def _mended(self, job: CondenseJob, written: Condensed, *, own_tokens: int | None) -> Condensed:
        """Within its size, and with what it dropped.

        `own_tokens` is what it had without marks and labels, where there are any: no writer is refused for what we
        added.
        """
        text, notes = written.text.strip(), written.notes
        cap = most_tokens(text, max_tokens=job.max_tokens, source_tokens=job.source_tokens)
        tokens = self.count_text(text)
        own = tokens if own_tokens is None else own_tokens
        if tokens > cap and (own <= job.source_tokens or not self._judges_size()):
            cut = cut_to_size(text, max_tokens=cap, count_text=self.count_text)
            text, notes, tokens = cut.text, (*notes, "cut"), cap
            written = replace(written, cut_lines=written.cut_lines + cut.lines)
        if self.settings.validation.audit and _says_something(text) and tokens <= cap:
            share = self.settings.validation.audit_share
            worded = own_tokens is not None
            stated = worded and has_statements(text)
            if stated and job.level == 1:
                job = replace(job, facts=())  # no rule reads its messages again: what the text leaves out is dropped
            mended = audited(
                text,
                job,
                max_tokens=cap,
                count_text=self.count_text,
                share=share,
                decided=worded and (job.level > 1 or bool(job.kept) or is_kept(text)),
                in_statements=stated,
            )
            text, notes = mended, (*notes, "mended") if mended != text else notes
        return replace(written, text=text, tokens=self.count_text(text), notes=tuple(dict.fromkeys(notes)))

    def _judges_size(self) -> bool:
        own = (one.name for one in self.extensions.validators if isinstance(one, BuiltInValidator))
        return self.settings.validation.enabled and "size" in own

    def _rejection(self, job: CondenseJob, summary: Condensed) -> tuple[FailureReason, str] | None:
        if not _says_something(summary.text):
            # Whatever the settings say: nothing can stand for messages that says nothing.
            return FailureReason.EMPTY_SUMMARY, "it says nothing"
        return self.extensions.rejection(job, summary.text)


def _says_something(text: str) -> bool:
    return any(char.isalnum() for char in text)
