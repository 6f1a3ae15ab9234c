"""The built-in judges of a summary: its size, that it says something, its identifiers and its meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from langchain_tiered_memory.extensions import Verdict
from langchain_tiered_memory.summaries.checks.measures import similar_meaning
from langchain_tiered_memory.text.identifiers import kept_share
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from langchain_tiered_memory.extensions import CondensationValidator
    from langchain_tiered_memory.settings import ValidationSettings
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob


Embed: TypeAlias = Callable[[list[str]], list[list[float]] | None]


class SizeValidator:
    """Not more tokens than the sources have, nor than the job allows."""

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
    """Enough of the sources' identifiers, numbers and paths in the text.

    `least` is the share of them, 0 to 1.
    """

    name = "identifiers"
    reason = FailureReason.VALIDATOR_REJECTED

    def __init__(self, least: float) -> None:
        self._least = least

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Measure the share; it is the verdict's score."""
        if not self._least:
            return Verdict(valid=True)
        kept = kept_share([source.text for source in job.sources], text)
        lost = f"it keeps {kept:.0%} of the identifiers of its sources, {self._least:.0%} are asked for"
        return Verdict(valid=kept >= self._least, issues=() if kept >= self._least else (lost,), score=kept)


class MeaningValidator:
    """Near enough to its sources in meaning, by an embedder; anything where there is none.

    `least` is the cosine that is asked for; 0 asks for none, and embeds nothing.
    """

    name = "meaning"
    reason = FailureReason.VALIDATOR_REJECTED

    def __init__(self, least: float, embed: Embed) -> None:
        self._least = least
        self._embed = embed

    def validate(self, job: CondenseJob, text: str) -> Verdict:
        """Measure the cosine; it is the verdict's score."""
        found = similar_meaning(text, [source.text for source in job.sources], self._embed) if self._least else None
        if found is None:
            return Verdict(valid=True)
        far = f"its meaning has a cosine of {found:.2f} with that of its sources, {self._least:.2f} is asked for"
        return Verdict(valid=found >= self._least, issues=() if found >= self._least else (far,), score=max(found, 0.0))


BUILT_IN = (SizeValidator, EmptinessValidator, IdentifierValidator, MeaningValidator)


def built_in_validators(
    settings: ValidationSettings, *, count_text: Callable[[str], int], embed: Embed
) -> list[CondensationValidator]:
    """Those that the settings name."""
    known: dict[str, CondensationValidator] = {
        "size": SizeValidator(count_text),
        "emptiness": EmptinessValidator(),
        "identifiers": IdentifierValidator(settings.least_kept_identifiers),
        "meaning": MeaningValidator(settings.least_meaning, embed),
    }
    return [known[rule] for rule in settings.rules]


def reason_of(validator: CondensationValidator) -> FailureReason:
    """The failure reason of a validator's refusal."""
    return validator.reason if isinstance(validator, BUILT_IN) else FailureReason.VALIDATOR_REJECTED
