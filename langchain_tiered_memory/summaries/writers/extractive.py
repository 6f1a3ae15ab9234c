"""The extractive condenser, which needs neither key nor download: it keeps the sentences that tell most.

Deterministic. Nothing is rephrased, so nothing can be invented; what is kept says who said it and, where its words
are relative ("yesterday"), when. From level 2 on the sources are sectioned texts, and are merged section by section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.summaries.tree.sizing import cut_at_sentence
from langchain_tiered_memory.summaries.writers.extractive_render import CONCISE, CONCISE_POINTS, Form, line_of
from langchain_tiered_memory.summaries.writers.extractive_sources import units_of
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.driver import Flow

_SLACK = 1.5  # sentences looked at beyond the target: the estimate of their tokens may be high
_CONCISE_SHARE = 0.6  # of the target
_PLANNED = 0.92  # of the target, for the first guess at how many sentences fit
_BULLET_TOKENS = 2  # what a sentence takes beside its words, on average
_STEP = 4  # a first guess is rarely farther off than this


class ExtractiveCondenser:
    """Implements `jobs.Condenser` without a model.

    Args:
        count_text: Tokens of a text. Called some ten times for a job, never for each sentence.
    """

    def __init__(self, count_text: Callable[[str], int]) -> None:
        self._count_text = count_text

    @property
    def name(self) -> str:
        """Who signs the summaries."""
        return "extractive"

    def condense(self, job: CondenseJob) -> Flow[Condensed]:
        """The sentences of `job` that tell most, within its target.

        Raises:
            CondensationError: when not even a word fits into `max_tokens`.
        """
        yield from ()
        cap = min(job.max_tokens, max(1, job.source_tokens))
        target = min(job.target_tokens, cap)
        units = list(units_of(job))
        text = self._fitting(job, units, target, cap) if units else self._nothing_said(job, cap)
        if not text:
            message = (
                f"no words of the {len(job.sources)} sources fit into {cap} tokens;"
                " raise the level's max_tokens or condense more messages at once"
            )
            raise CondensationError(message, reason=FailureReason.CONTEXT_GREW)
        return Condensed(text=text, tokens=self._count_text(text), model=self.name)

    def _nothing_said(self, job: CondenseJob, cap: int) -> str:
        return cut_at_sentence(
            f"({job.message_count} messages without text)", max_tokens=cap, count_text=self._count_text
        )

    def _fitting(self, job: CondenseJob, units: Sequence[Unit], target: int, cap: int) -> str:
        """The longest of the texts made from the best one, two, three ... sentences that stays within the target."""
        dull = frozenset(word.casefold() for name in job.participants for word in (name, *name.split()))
        # Nobody who asks for a concise text wants as much as fits.
        target = max(1, round(target * _CONCISE_SHARE)) if job.strategy == CONCISE else target
        order: list[int] = []
        spent = 0.0
        for index in in_order_of_worth(units, dull=dull):
            order.append(index)
            spent += units[index].tokens
            if spent > target * _SLACK or (job.strategy == CONCISE and len(order) == CONCISE_POINTS):
                break
        form = Form(job, target, [units[index] for index in order], dull)
        low, high, best = 0, len(order), ""
        guess = _within([units[index].tokens for index in order], target)
        while low < high:
            text = form.written([units[index] for index in sorted(order[:guess])])
            if self._count_text(text) <= target:
                low, best = guess, text
            else:
                high = guess - 1
            guess = min(low + _STEP, (low + high + 1) // 2) if best else (low + high + 1) // 2
        if best:
            return best
        return cut_at_sentence(line_of([units[order[0]]]), max_tokens=min(target, cap), count_text=self._count_text)


def _within(tokens: Sequence[float], target: int) -> int:
    """How many of the first sentences should fit, by their estimates; at least one."""
    room = target * _PLANNED
    for number, size in enumerate(tokens):
        room -= size + _BULLET_TOKENS
        if room < 0:
            return max(1, number)
    return max(1, len(tokens))
