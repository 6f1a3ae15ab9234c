"""What can be measured of a summary, and the built-in validators that judge one by it.

Measured is what it lost; judged are its size, too, and that it says something. It is the text that is shown, not the
facts that are kept beside it: a view shows few of those.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.extensions import Verdict
from langchain_tiered_memory.summaries.checks.soundness import soundness
from langchain_tiered_memory.summaries.marks import without_instead
from langchain_tiered_memory.summaries.tree.sizing import most_tokens
from langchain_tiered_memory.summaries.writers.ranking import IDENTIFIER_WEIGHT
from langchain_tiered_memory.text.identifiers import folded, identifiers, kept_share, states
from langchain_tiered_memory.text.readings import MEASURED_CHARS
from langchain_tiered_memory.text.terms import analyse, rarity
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from langchain_tiered_memory.extensions import CondensationValidator
    from langchain_tiered_memory.settings import ValidationSettings
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob


def measures_of(job: CondenseJob, text: str, wanted: Collection[str]) -> dict[str, float]:
    """The measures of `wanted` that can be taken of a summary.

    Args:
        job: What it was written for.
        text: The summary.
        wanted: Of `identifiers` (share of the sources' that it keeps), `grounded` and `covered` (see
            `ValidationSettings`) and `loss` (see `Summary.information_loss`).
    """
    texts = [source.text for source in job.sources]
    found: dict[str, float | None] = {}
    if "identifiers" in wanted:
        found["identifiers"] = kept_share(texts, text)
    if "loss" in wanted:
        found["loss"] = information_loss(texts, text)
    if {"grounded", "covered"} & set(wanted):
        shares = soundness(text, texts, job.known, target_tokens=job.target_tokens, are_messages=job.level == 1)
        found |= {name: getattr(shares, name) for name in ("grounded", "covered") if name in wanted}
    return {name: float(value) for name, value in found.items() if value is not None}


def information_loss(sources: Sequence[str], summary: str) -> float:
    """Share (0 to 1) of what the sources say that the summary does not state.

    Counted in terms as the text index knows them (stemmed, without function words), each once however often it occurs.
    A term weighs by its rarity among the lines of the sources, `log(1 + n / lines with it) / log(1 + n)`: what is said
    once is lost for good, what is said everywhere is easily guessed (inverse document frequency, after Spaerck Jones
    1972). Identifiers, figures and names, which no other word can stand for, weigh threefold.

    0 where the summary says everything or there is nothing to say, 1 where it shares nothing. Adding a line to the
    summary never raises it. Word order, negations and paraphrases are not seen: compare it between summaries of equal
    size of the same sources, not between texts of different kinds. Of all sources together the first 400,000 characters
    are measured.
    """
    lines = [line for line in "\n".join(sources)[:MEASURED_CHARS].splitlines() if line.strip()]
    words = Counter(term for line in lines for term in set(analyse(line)))
    named = Counter(one for line in lines for one in identifiers(line))
    if not words and not named:
        return 0.0
    said = summary.splitlines()
    stated = {term for line in said for term in analyse(line)}
    stated_names = frozenset[str]().union(*(identifiers(line) for line in said))
    text = "\n".join(map(folded, said))
    told = [(rarity(count, len(lines)), term in stated) for term, count in words.items()]
    told += [
        (IDENTIFIER_WEIGHT * rarity(count, len(lines)), name in stated_names or states(text, name))
        for name, count in named.items()
    ]
    # Sums that do not depend on the order of sets, which is another in each process.
    lost = math.fsum(weight for weight, is_kept in told if not is_kept)
    return min(1.0, lost / math.fsum(weight for weight, _ in told))


@dataclass(slots=True)
class BuiltInValidator:
    """A judge of ours: its name, as what its refusal counts, and how it judges."""

    name: str
    reason: FailureReason
    validate: Callable[[CondenseJob, str], Verdict]
    """Whether a text may stand for the sources of a job."""


def built_in_validators(
    settings: ValidationSettings, *, count_text: Callable[[str], int]
) -> list[CondensationValidator]:
    """Those that the settings name. A least share of 0 takes anything, and measures nothing.

    Soundness is not among them: it is judged before the audit.
    """

    def size(job: CondenseJob, text: str) -> Verdict:
        tokens = count_text(without_instead(text))  # ids in marks are ours
        if tokens > job.source_tokens:
            return _verdict(f"it has {tokens} tokens, its sources only {job.source_tokens}", holds=False)
        most = most_tokens(text, max_tokens=job.max_tokens, source_tokens=job.source_tokens)
        return _verdict(f"it has {tokens} tokens, at most {most} are allowed", holds=tokens <= most)

    def emptiness(_: CondenseJob, text: str) -> Verdict:
        return _verdict("it says nothing", holds=any(char.isalnum() for char in text))

    def kept(job: CondenseJob, text: str) -> Verdict:
        least = settings.least_kept_identifiers
        if not least:
            return Verdict(valid=True)
        share = kept_share([source.text for source in job.sources], text)
        lost = f"it keeps {share:.0%} of the identifiers of its sources, {least:.0%} are asked for"
        return _verdict(lost, holds=share >= least, score=share)

    known = {
        "size": (FailureReason.CONTEXT_GREW, size),
        "emptiness": (FailureReason.EMPTY_SUMMARY, emptiness),
        "identifiers": (FailureReason.VALIDATOR_REJECTED, kept),
    }
    return [BuiltInValidator(rule, *known[rule]) for rule in settings.rules if rule in known]


def _verdict(issue: str, *, holds: bool, **score: float) -> Verdict:
    return Verdict(valid=holds, issues=() if holds else (issue,), **score)
