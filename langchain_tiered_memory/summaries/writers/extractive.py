"""The extractive condenser, which needs neither key nor download: it keeps the statements that tell most.

Deterministic. Nothing is rephrased, so nothing can be invented: whole statements, framed by few fixed words of ours.
What is kept says who said it, which question it answers and, where its words are relative ("yesterday"), when. From
level 2 on the sources are such texts, and are merged kind by kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size
from langchain_tiered_memory.summaries.writers.extractive_sources import units_of
from langchain_tiered_memory.summaries.writers.jobs import Condensed
from langchain_tiered_memory.summaries.writers.ranking import in_order_of_worth, within
from langchain_tiered_memory.summaries.writers.sections import FLAT_TOKENS, FORMS
from langchain_tiered_memory.text.sentences import STOPS, asks
from langchain_tiered_memory.text.truncation import most_fitting
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.summaries.writers.ranking import Unit


_CHRONOLOGICAL, _CONCISE = "chronological", "concise"
_CONCISE_SHARE = 0.6  # of the target: whoever asks for a concise text does not want as much as fits
_ENDED = (*STOPS, *(f"{stop}{close}" for stop in STOPS for close in "\"')\u201d"))
_MAX_LINE_CHARS = 420  # of neighbours in one line: a longer one is a wall
_SLACK = 2.0  # statements looked at beyond the target: the estimate of their tokens may be high
_SPREAD = 0.3  # from level 2 on: what each statement of a part takes from the worth of its others


class ExtractiveCondenser:
    """Implements `jobs.Condenser` without a model.

    Tokens are counted some ten times for a job, never for each sentence.
    """

    def __init__(self, count_text: Callable[[str], int]) -> None:
        self._count_text = count_text

    @property
    def name(self) -> str:
        """Who signs the summaries."""
        return marks.RULES

    def condense(self, job: CondenseJob) -> Flow[Condensed]:
        """The sentences of `job` that tell most, within its target."""
        yield from ()
        cap = min(job.max_tokens, max(1, job.source_tokens))
        target = min(job.target_tokens, cap)
        if job.strategy == _CONCISE:
            target = max(1, round(target * _CONCISE_SHARE))
        units = list(units_of(job))
        text = self._fitting(job, units, target) if units else f"({job.message_count} messages without text)"
        text = cut_to_size(text, max_tokens=target if units else cap, count_text=self._count_text).text
        if not text:
            message = (
                f"no words of the {len(job.sources)} sources fit into {cap} tokens;"
                " raise the level's max_tokens or condense more messages at once"
            )
            raise CondensationError(message, reason=FailureReason.CONTEXT_GREW)
        return Condensed(text=text, tokens=self._count_text(text), model=self.name)

    def _fitting(self, job: CondenseJob, units: Sequence[Unit], target: int) -> str:
        """The text of the statements that tell most, as many as the target allows; one alone may be longer."""
        speakers = {unit.speaker for unit in units}
        dull = frozenset(word.casefold() for name in speakers for word in (name, *name.split()))
        order: list[int] = []
        spent = 0.0
        for index in in_order_of_worth(units, dull=dull, spread=_SPREAD if job.level > 1 else 0.0):
            order.append(index)
            spent += units[index].tokens
            if spent > target * _SLACK:
                break

        def of(room: int) -> str:
            return written([units[index] for index in within(units, order, room)], job, target)

        # What the estimates are wrong by, and what the form takes beside the words, is in the count.
        room = most_fitting(round(target * _SLACK), lambda room: self._count_text(of(room)) <= target)
        if text := of(room):
            return text
        alone = replace(units[order[0]], asked="")
        dated = line_of([alone])
        return dated if self._count_text(dated) <= target else line_of([replace(alone, when="")])


def written(units: Sequence[Unit], job: CondenseJob, target: int) -> str:
    """Statements, in the order of the job, in the sections of its strategy, empty ones left out."""
    if target < FLAT_TOKENS:
        return "\n".join(line_of(run) for run in runs_of(units))
    if job.strategy == _CHRONOLOGICAL:
        units = [replace(unit, when=unit.when or _day_of(unit, job)) for unit in units]
    sections = FORMS.get(job.strategy, FORMS["detailed"])
    home = {kind: number for number, form in enumerate(sections) for kind in form.kinds}
    homes = {home.get(unit.kind, 0) for unit in units}
    blocks: list[str] = []
    for number, section in enumerate(sections):
        if number in homes:
            alone = len(homes) == 1 and "point" in section.kinds  # its heading would only repeat what it is
            mine = [unit for unit in units if home.get(unit.kind, 0) == number]
            blocks += [*([] if alone else [f"## {section.heading}"]), *(f"- {line_of(run)}" for run in runs_of(mine))]
    return "\n".join(blocks)


def _day_of(unit: Unit, job: CondenseJob) -> str:
    """The day of a message, or of a summary of a single one."""
    source = job.sources[unit.source]
    first, last = (marks.date_of(at) for at in (source.first_at or source.at, source.at))
    return last if first == last else ""


def runs_of(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Neighbours by the same speaker in the same source, told in one line unless they need different dates."""
    run: list[Unit] = []
    for unit in units:
        if run and not _goes_on(run, unit):
            yield run
            run = []
        run.append(unit)
    if run:
        yield run


def _goes_on(run: Sequence[Unit], unit: Unit) -> bool:
    last, whole = run[-1], (*run, unit)
    alike = (unit.speaker, unit.is_call, asks(unit.text)) == (last.speaker, last.is_call, asks(last.text))
    near = unit.is_call or (unit.source, unit.line) == (last.source, last.line)
    is_short = sum(len(one.text) for one in whole) <= _MAX_LINE_CHARS
    return alike and near and is_short and not unit.asked and len({one.when for one in whole if one.when}) <= 1


def line_of(run: Sequence[Unit]) -> str:
    """Statements of one speaker as one line, with the date that their words need and the question that they answer."""
    first = run[0]
    told = _told(run)
    if not first.speaker:
        return told
    date = next((unit.when for unit in run if unit.when), "")
    if first.asked:
        by = f"{first.speaker}, {date}" if date else first.speaker
        # Between people who write at will, what comes next need not answer: it replies.
        word = "Answer" if "assistant" in (first.speaker, first.asker) else "Reply"
        return f"{first.asker} asked: {first.asked} {word} ({by}): {told}"
    who = f"{first.speaker} ({date})" if date else first.speaker
    verb = " asked" if asks(first.text) and not first.by_tool else ""
    return f"{who}{verb}: {told}"


def _told(run: Sequence[Unit]) -> str:
    if run[0].by_tool or run[0].is_call:
        return _ended("; ".join(unit.text.rstrip(";,.") for unit in run))
    return " ".join(_ended(unit.text) for unit in run)


def _ended(text: str) -> str:
    return text if text.endswith(_ENDED) else f"{text.rstrip(':;,')}."
