"""The built-in judges of a summary: its size, that it says something, and what it kept of its sources' identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.extensions import Verdict
from langchain_tiered_memory.text.identifiers import kept_share
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.extensions import CondensationValidator
    from langchain_tiered_memory.settings import ValidationSettings
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob


class SizeValidator:
    """Not more tokens than the sources have, nor than the job allows.

    Args:
        count_text: Tokens of a text.
    """

    name = "size"
    reason = FailureReason.CONTEXT_GREW

    def __init__(self, count_text: Callable[[str], int]) -> None:
        self._count_text = count_text

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Compare the tokens of `text` with both bounds."""
        tokens = self._count_text(text)
        if tokens > job.source_tokens:
            return Verdict(valid=False, issues=(f"it has {tokens} tokens, its sources only {job.source_tokens}",))
        if tokens > job.max_tokens:
            return Verdict(valid=False, issues=(f"it has {tokens} tokens, at most {job.max_tokens} are allowed",))
        return Verdict(valid=True)


class EmptinessValidator:
    """At least one letter or digit."""

    name = "emptiness"
    reason = FailureReason.EMPTY_SUMMARY

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Look for something that is neither space nor punctuation."""
        del job
        said = any(char.isalnum() for char in text)
        return Verdict(valid=said, issues=() if said else ("it says nothing",))


class IdentifierValidator:
    """Enough of the sources' identifiers, numbers and paths, in the text or in the facts beside it.

    Args:
        least: Share that must be kept, 0 to 1.
    """

    name = "identifiers"
    reason = FailureReason.VALIDATOR_REJECTED

    def __init__(self, least: float) -> None:
        self._least = least

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Measure the share; it is the verdict's score."""
        if not self._least:
            return Verdict(valid=True)
        kept = kept_share(
            [source.text for source in job.sources], "\n".join((text, *(fact.text for fact in job.facts)))
        )
        lost = f"it keeps {kept:.0%} of the identifiers of its sources, {self._least:.0%} are asked for"
        return Verdict(valid=kept >= self._least, issues=() if kept >= self._least else (lost,), score=kept)


BUILT_IN = (SizeValidator, EmptinessValidator, IdentifierValidator)


def built_in_validators(
    settings: ValidationSettings, *, count_text: Callable[[str], int]
) -> list[CondensationValidator]:
    """Those that the settings name."""
    known: dict[str, CondensationValidator] = {
        "size": SizeValidator(count_text),
        "emptiness": EmptinessValidator(),
        "identifiers": IdentifierValidator(settings.least_kept_identifiers),
    }
    return [known[rule] for rule in settings.rules]


def reason_of(validator: CondensationValidator) -> FailureReason:
    """The failure reason of a validator's refusal."""
    return validator.reason if isinstance(validator, BUILT_IN) else FailureReason.VALIDATOR_REJECTED
