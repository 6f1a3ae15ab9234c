"""What a writer gave becomes a summary: cut to its size, seen by hooks, mended by the audit, judged by validators."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.condensers.validators import SizeValidator
from langchain_tiered_memory.decisions.audit import audited
from langchain_tiered_memory.decisions.sizing import cut_at_sentence
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.condensers.attending import Extensions
    from langchain_tiered_memory.condensers.guarded import Report
    from langchain_tiered_memory.condensers.jobs import Condensed, CondenseJob
    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.settings import CondensationSettings


class Finish:
    """The last steps of one engine. Blocking.

    Args:
        settings: Which of them are switched on.
        extensions: Hooks and validators.
        count_text: Tokens of a text.
        report: Told of hooks whose text is not taken.
    """

    def __init__(
        self,
        settings: CondensationSettings,
        extensions: Extensions,
        *,
        count_text: Callable[[str], int],
        report: Report,
    ) -> None:
        self._settings = settings
        self._extensions = extensions
        self._count = count_text
        self._report = report

    def taken(self, job: CondenseJob, written: Condensed, context: CondensationContext) -> Condensed:
        """The summary as it may stand for the sources.

        A hook's text that validators do not take is passed over; the text before it counts.

        Raises:
            CondensationError: when the text is not taken.
        """
        for hook in self._extensions.after_hooks():
            changed = self._extensions.after(hook, job, written, context)
            if changed.text == written.text:
                continue
            wrong = self._rejection(job, self._mended(job, changed), context)
            if wrong is None:
                written = changed
                continue
            said = f"hook {hook.name} gave a text that is not taken ({wrong[1]}); the one before it counts"
            self._report("extension_failed", said, session_id=job.session_id, extension=f"hook {hook.name}", hung=False)
        summary = self._mended(job, written)
        wrong = self._rejection(job, summary, context)
        if wrong is None:
            return summary
        message = f"{written.model}'s summary was not taken: {wrong[1]}"
        raise CondensationError(message, spent=written.spent, reason=wrong[0])

    def _mended(self, job: CondenseJob, written: Condensed) -> Condensed:
        """Within its size, and with what it dropped."""
        cap = max(1, min(job.max_tokens, job.source_tokens))
        text, notes = written.text.strip(), written.notes
        tokens = self._count(text)
        if tokens > cap and (tokens <= job.source_tokens or not self._judges_size()):
            text, notes = cut_at_sentence(text, max_tokens=cap, count_text=self._count), (*notes, "cut")
            tokens = cap
        if self._settings.validation.audit and _says_something(text) and tokens <= cap:
            share = self._settings.validation.audit_share
            mended = audited(text, job.sources, job.facts, max_tokens=cap, count_text=self._count, share=share)
            text, notes = mended.text, (*notes, "mended") if mended.added else notes
        return replace(written, text=text, tokens=self._count(text), notes=tuple(dict.fromkeys(notes)))

    def _judges_size(self) -> bool:
        validators = self._extensions.validators
        return self._settings.validation.enabled and any(isinstance(one, SizeValidator) for one in validators)

    def _rejection(
        self, job: CondenseJob, summary: Condensed, context: CondensationContext
    ) -> tuple[FailureReason, str] | None:
        if not _says_something(summary.text):
            # Whatever the settings say: nothing can stand for messages that says nothing.
            return FailureReason.EMPTY_SUMMARY, "it says nothing"
        return self._extensions.rejection(job, summary.text, context)


def _says_something(text: str) -> bool:
    return any(char.isalnum() for char in text)
