"""Writes chosen sentences in the form of their level: sections, bullets, who said it and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.writers.ranking import topics
from langchain_tiered_memory.summaries.writers.sections import FLAT_TOKENS, FORMS
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.summaries.writers.ranking import Unit

_OVERVIEW_TOKENS = 250  # from here on there is room to say when it was and what it was about
_TOPICS = 5
_STOPS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f")


class Form:
    """Puts chosen sentences into the sections of a job's strategy, empty ones left out."""

    def __init__(self, job: CondenseJob, target: int, candidates: Sequence[Unit], dull: frozenset[str]) -> None:
        self._sections = FORMS.get(job.strategy, FORMS["detailed"])
        self._home = {kind: number for number, form in enumerate(self._sections) for kind in form.kinds}
        self._flat = target < FLAT_TOKENS
        self._topics = topics(candidates, dull=dull, count=_TOPICS)
        self._overview = _overview(job, self._topics) if target >= _OVERVIEW_TOKENS else ""
        self._themes = job.strategy == "thematic"

    def written(self, units: Sequence[Unit]) -> str:
        """The text of `units`, which are in the order of the job."""
        if self._flat:
            return "\n".join(line_of(run) for run in _runs(units))
        blocks = []
        for number, section in enumerate(self._sections):
            mine = [unit for unit in units if self._home.get(unit.kind, 0) == number]
            lines = [self._overview] if self._overview and "overview" in section.kinds else []
            lines += (
                self._by_theme(mine) if self._themes and number == 0 else [f"- {line_of(run)}" for run in _runs(mine)]
            )
            if lines:
                blocks.append("\n".join([f"## {section.heading}", *lines]))
        return "\n".join(blocks)

    def _by_theme(self, units: Sequence[Unit]) -> list[str]:
        """Points under the topic they share, the rest behind them."""
        lines: list[str] = []
        left = list(units)
        for topic in self._topics:
            mine = [unit for unit in left if topic in unit.text.casefold()]
            if len(mine) > 1:
                left = [unit for unit in left if topic not in unit.text.casefold()]
                lines += [f"**{topic}**", *(f"- {line_of(run)}" for run in _runs(mine))]
        if left and lines:
            lines.append("**more**")
        return lines + [f"- {line_of(run)}" for run in _runs(left)]


def _overview(job: CondenseJob, words: Sequence[str]) -> str:
    first, last = date_of(job.first_at), date_of(job.last_at)
    span = first if first == last else f"{first} to {last}"
    return f"{span}; {job.message_count} messages" + (f". Topics: {', '.join(words)}." if words else ".")


def _runs(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Neighbours by the same speaker in the same source, told in one line unless they need different dates."""
    run: list[Unit] = []
    for unit in units:
        if run and ((unit.source, unit.speaker) != (run[-1].source, run[-1].speaker) or len(_dates([*run, unit])) > 1):
            yield run
            run = []
        run.append(unit)
    if run:
        yield run


def _dates(run: Sequence[Unit]) -> set[str]:
    return {unit.when for unit in run if unit.when}


def line_of(run: Sequence[Unit]) -> str:
    """Sentences of one speaker as one line, with the date that their words need."""
    told = " ".join(unit.text if unit.text[-1:] in _STOPS else f"{unit.text}." for unit in run)
    if not run[0].speaker:
        return told
    date = next(iter(_dates(run)), "")
    return f"{run[0].speaker} ({date}): {told}" if date else f"{run[0].speaker}: {told}"


def date_of(at: float) -> str:
    """The day of a time, in UTC: `8 May 2023`."""
    day = utc(at)
    return f"{day.day} {day:%b %Y}"
