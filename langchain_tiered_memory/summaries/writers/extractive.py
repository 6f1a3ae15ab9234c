"""The extractive condenser, which needs neither key nor download: it keeps the statements that tell most.

Deterministic. Nothing is rephrased, so nothing can be invented: whole statements, framed by few fixed words of ours.
Work with tools has an overview in front that can stand alone. What is kept says who said it, which question it answers
and, where its words are relative ("yesterday"), when. From level 2 on the sources are such texts, and are merged kind
by kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.summaries.marks import RULES
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size
from langchain_tiered_memory.summaries.writers.extractive_render import CONCISE, CONCISE_POINTS, Form, line_of
from langchain_tiered_memory.summaries.writers.extractive_sources import speakers_of, units_of
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.summaries.writers.sections import ItemKind

_SLACK = 1.8  # sentences looked at beyond the target: the estimate of their tokens may be high
_STRESS: dict[str, dict[ItemKind, float]] = {
    "technical": {"technical": 1.6},
    "handoff": {"progress": 1.3, "open": 1.4, "action": 1.4},
}
"""What else a kind of statement is worth where a strategy is about it."""
_SPREAD = 0.3  # from level 2 on: what each statement of a part takes from the worth of its others
_CONCISE_SHARE = 0.6  # of the target
_PLANNED = 0.92  # of the target, for the first guess at how many sentences fit
_BULLET_TOKENS = 2  # what a sentence takes beside its words, on average
_TRIES = 5
_FULL = 0.96  # of the target: nearer is not worth another count
_MOST_GROWTH = 1.6  # of the room from one try to the next
_CAUTION = 0.98


class ExtractiveCondenser:
    """Implements `jobs.Condenser` without a model.

    Tokens are counted some ten times for a job, never for each sentence.
    """

    def __init__(self, count_text: Callable[[str], int]) -> None:
        self._count_text = count_text

    @property
    def name(self) -> str:
        """Who signs the summaries."""
        return RULES

    def condense(self, job: CondenseJob) -> Flow[Condensed]:
        """The sentences of `job` that tell most, within its target."""
        yield from ()
        cap = min(job.max_tokens, max(1, job.source_tokens))
        target = min(job.target_tokens, cap)
        stress = _STRESS.get(job.strategy, {})
        if job.level > 1:
            job = replace(
                job,
                participants=tuple(dict.fromkeys((*job.participants, *speakers_of(one.text for one in job.sources)))),
            )
        units = [
            replace(unit, weight=unit.weight * stress[unit.kind]) if unit.kind in stress else unit
            for unit in units_of(job)
        ]
        text = self._fitting(job, units, target, cap) if units else self._nothing_said(job, cap)
        if not text:
            message = (
                f"no words of the {len(job.sources)} sources fit into {cap} tokens;"
                " raise the level's max_tokens or condense more messages at once"
            )
            raise CondensationError(message, reason=FailureReason.CONTEXT_GREW)
        return Condensed(text=text, tokens=self._count_text(text), model=self.name)

    def _nothing_said(self, job: CondenseJob, cap: int) -> str:
        return cut_to_size(
            f"({job.message_count} messages without text)", max_tokens=cap, count_text=self._count_text
        ).text

    def _fitting(self, job: CondenseJob, units: Sequence[Unit], target: int, cap: int) -> str:
        """The longest text made from the statements that tell most and that stays within the target, in a few tries."""
        dull = frozenset(word.casefold() for name in job.participants for word in (name, *name.split()))
        # Nobody who asks for a concise text wants as much as fits.
        target = max(1, round(target * _CONCISE_SHARE)) if job.strategy == CONCISE else target
        order: list[int] = []
        spent = 0.0
        for index in in_order_of_worth(units, dull=dull, spread=_SPREAD if job.level > 1 else 0.0):
            order.append(index)
            spent += units[index].tokens
            if spent > target * _SLACK or (job.strategy == CONCISE and len(order) == CONCISE_POINTS):
                break
        form = Form(job, target, units)
        best, most, room = "", 0, target * _PLANNED
        for _ in range(_TRIES):
            chosen = _within(units, order, room)
            text = form.written([units[index] for index in sorted(chosen)])
            tokens = self._count_text(text)
            if most < tokens <= target:
                best, most = text, tokens
            if target * _FULL <= tokens <= target or (tokens <= target and len(chosen) == len(order)):
                break
            # What the estimates are wrong by, and what the form takes beside the words, is in the count.
            held = min(room, sum(units[index].tokens + _BULLET_TOKENS for index in chosen))
            if tokens > target:
                room = held * target / tokens * _CAUTION
            else:
                room = min(room * _MOST_GROWTH, held * target / max(1, tokens))
        if best:
            return best
        limit = min(target, cap)
        alone = line_of([replace(units[order[0]], asked="")])
        if self._count_text(alone) > limit:
            alone = line_of([replace(units[order[0]], asked="", when="")])
        return cut_to_size(alone, max_tokens=limit, count_text=self._count_text).text


def _within(units: Sequence[Unit], order: Sequence[int], room: float) -> list[int]:
    """Those of `order` that fit into `room` by their estimates, one after the other; at least the first."""
    chosen: list[int] = []
    for index in order:
        size = units[index].tokens + _BULLET_TOKENS
        if size <= room:
            chosen.append(index)
            room -= size
    return chosen or list(order[:1])
