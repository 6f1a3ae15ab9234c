"""The extractive condenser, which needs neither key nor download: it keeps the statements that tell most.

Deterministic. Nothing is rephrased, so nothing can be invented: whole statements, framed by few fixed words of ours.
Work with tools has an overview in front that can stand alone. What is kept says who said it, which question it answers
and, where its words are relative ("yesterday"), when. From level 2 on the sources are such texts, and are merged kind
by kind.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size
from langchain_tiered_memory.summaries.writers.extractive_calls import USED, files_named, is_call, tool_named
from langchain_tiered_memory.summaries.writers.extractive_sources import speakers_of, units_of
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob
from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth
from langchain_tiered_memory.summaries.writers.sections import FLAT_TOKENS, FORMS, SectionForm
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.sentences import STOPS, asks
from langchain_tiered_memory.text.statements import clause_cut
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.summaries.writers.ranking import Unit
    from langchain_tiered_memory.summaries.writers.sections import ItemKind


_OVERVIEW_TOKENS = 60  # below this target there is room for a sentence or two, and the first of them is the headline
_DATED_TOKENS, _DATED_TOKENS_ABOVE = 250, 160  # from here on there is room for the days
_MAX_REQUEST_CHARS = 130
_LEAST_BLANKS = 5  # of a request that is worth a headline
_MAX_LISTED = 3


def overview_of(job: CondenseJob, target: int, units: Sequence[Unit]) -> str:
    """One sentence on work with tools: who asked for what first, and which tools were used on which files.

    Empty for talk: a line that names its subjects would take the room of statements, and tell less. `units` are all
    statements of the job. Above level 1 tools and files are those of the overviews below, and of the calls told there.
    """
    spoken = [unit for unit in units if not unit.speaker.startswith(marks.TOOL_MARK) and unit.speaker != "system"]
    calls, words = [unit.text for unit in spoken if is_call(unit)], [unit for unit in spoken if not is_call(unit)]
    firsts = [source.text.partition("\n")[0] for source in job.sources] if job.level > 1 else []
    below = [told for first in firsts if (told := marks.TOLD_USED.search(first))]
    if target < _OVERVIEW_TOKENS or not (calls or below):
        return ""
    people = (name for unit in words for name in (unit.asker, unit.speaker))
    asker = next((name for name in people if name not in ("", "assistant")), "")
    above = job.level > 1
    told = marks.TOLD_REQUEST.match(job.sources[0].text) if above else None
    request = told["request"] if told else _request(words, asker)
    used = Counter(one for told in below for one in marks.unlisted(told["tools"])) + Counter(map(tool_named, calls))
    named = Counter(one for told in below for one in marks.unlisted(told["files"] or ""))
    named += Counter(one for call in calls for one in files_named(call))
    tools, files = ([name for name, _ in found.most_common(_MAX_LISTED)] for found in (used, named))
    said = f"assistant {USED}{marks.listed(tools)}" + (f" on {marks.listed(files)}" if files else "")
    if request and asker:
        shown = clause_cut(request, most_chars=_MAX_REQUEST_CHARS).rstrip(".")
        said = f"{_person(asker)} {marks.REQUESTED} {shown}; the {said}"
    else:
        said = f"The {said}"
    dated = target >= (_DATED_TOKENS_ABOVE if above else _DATED_TOKENS)
    return f"{said}{f' ({marks.span_of(job.first_at, job.last_at)})' if dated else ''}."


def _request(words: Sequence[Unit], asker: str) -> str:
    """What `asker` asks for first at some length; empty for nothing."""
    asked = (unit.asked if unit.asker == asker else unit.text for unit in words if asker in (unit.asker, unit.speaker))
    return next((one for one in asked if one.count(" ") >= _LEAST_BLANKS and _is_request(one)), "")


def _is_request(text: str) -> bool:
    low = cues.lowered(text)
    return asks(text) or bool(cues.GOAL.search(low) or cues.IMPERATIVE.match(low) or cues.ORDER.match(low))


def _person(name: str) -> str:
    return {"user": "The user", "other": "The speaker"}.get(name, name)


CONCISE = "concise"
CONCISE_POINTS = 7
"""The most statements of a concise summary: whoever asks for one wants to take it in at a glance."""

_CONCISE_FORM = (
    SectionForm("Key points", "", ("point", "decision", "progress", "technical", "overview")),
    SectionForm("Open items", "", ("action", "open")),
)
_ENDED = (*STOPS, *(f"{stop}{close}" for stop in STOPS for close in "\"')\u201d"))
_MAX_LINE_CHARS = 420  # of neighbours in one line: a longer one is a wall


class Form:
    """Puts chosen statements into the sections of a job's strategy, empty ones left out."""

    def __init__(self, job: CondenseJob, target: int, units: Sequence[Unit]) -> None:
        self._job = job
        self._sections = _CONCISE_FORM if job.strategy == CONCISE else FORMS.get(job.strategy, FORMS["detailed"])
        self._home = {kind: number for number, form in enumerate(self._sections) for kind in form.kinds}
        self._flat = target < FLAT_TOKENS
        self._overview = overview_of(job, target, units)

    def written(self, units: Sequence[Unit]) -> str:
        """The text of `units`, which are in the order of the job."""
        blocks = [self._overview] if self._overview else []
        units = [unit for unit in units if not self._is_told(unit)]
        if self._flat:
            return "\n".join([*blocks, *(line_of(run, marks_open=True) for run in _runs(units))])
        homes = {self._home.get(unit.kind, 0) for unit in units}
        for number, section in enumerate(self._sections):
            mine = [unit for unit in units if self._home.get(unit.kind, 0) == number]
            if mine:
                alone = len(homes) == 1 and "point" in section.kinds
                heading = [] if alone else [f"## {section.heading}"]  # alone, it would only repeat what it is
                dated = number == 0 and self._job.strategy == "chronological"
                blocks.append("\n".join([*heading, *(_by_day(mine, self._job) if dated else _bullets(mine))]))
        return "\n".join(blocks)

    def _is_told(self, unit: Unit) -> bool:
        """Whether the overview tells it, as what was asked for."""
        return unit.text.count(" ") >= _LEAST_BLANKS and unit.told.rstrip(".") in self._overview


def _bullets(units: Sequence[Unit]) -> list[str]:
    return [f"- {line_of(run)}" for run in _runs(units)]


def _by_day(units: Sequence[Unit], job: CondenseJob) -> list[str]:
    """Points in order of time, each day's under its date."""
    lines: list[str] = []
    ordered = sorted(units, key=lambda unit: (job.sources[unit.source].at, unit.source))
    for day, mine in groupby(ordered, key=lambda unit: _day_of(unit, job)):
        lines += [f"**{day}**", *_bullets(list(mine))]
    return lines


def _day_of(unit: Unit, job: CondenseJob) -> str:
    """The day of a message; of a summary the day that it tells, else the last that it may be from."""
    last = marks.date_of(job.sources[unit.source].at)
    return last if job.level == 1 else unit.day or f"up to {last}"


def _runs(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Neighbours by the same speaker in the same source, told in one line unless they need different dates."""
    run: list[Unit] = []
    chars = 0
    for unit in units:
        if run and not _goes_on(run, unit, chars):
            yield run
            run, chars = [], 0
        run.append(unit)
        chars += len(unit.text)
    if run:
        yield run


def _goes_on(run: Sequence[Unit], unit: Unit, chars: int) -> bool:
    last = run[-1]
    if unit.speaker != last.speaker or unit.asked or asks(last.text) != asks(unit.text):
        return False
    if is_call(last) and is_call(unit):
        return chars + len(unit.text) <= _MAX_LINE_CHARS
    return (
        (unit.source, unit.line) == (last.source, last.line)
        and is_call(last) == is_call(unit)
        and len(_dates([*run, unit])) <= 1
        and chars + len(unit.text) <= _MAX_LINE_CHARS
    )


def _dates(run: Sequence[Unit]) -> set[str]:
    return {unit.when for unit in run if unit.when}


def line_of(run: Sequence[Unit], *, marks_open: bool = False) -> str:
    """Statements of one speaker as one line, with the date that their words need and the question that they answer."""
    first = run[0]
    if not first.speaker:
        return _told(run)
    date = next(iter(sorted(_dates(run))), "")
    if first.asked:
        by = f"{first.speaker}, {date}" if date else first.speaker
        # Between people who write at will, what comes next need not answer: it replies.
        word = "Answer" if "assistant" in (first.speaker, first.asker) else "Reply"
        return f"{first.asker} asked: {first.asked} {word} ({by}): {_told(run)}"
    who = f"{first.speaker} ({date})" if date else first.speaker
    verb = " asked" if asks(first.text) and not first.speaker.startswith(marks.TOOL_MARK) else ""
    mark = marks.OPEN if marks_open and first.kind == "open" and verb else ""
    return f"{mark}{who}{verb}: {_told(run)}"


def _told(run: Sequence[Unit]) -> str:
    if run[0].speaker.startswith(marks.TOOL_MARK):
        return _ended("; ".join(unit.text.rstrip(";,") for unit in run))
    if is_call(run[0]):
        return _ended("; ".join(_merged_calls([unit.text.rstrip(".") for unit in run])))
    return " ".join(_ended(unit.text) for unit in run)


def _merged_calls(calls: Sequence[str]) -> list[str]:
    """Calls of one tool on several files as one."""
    merged: list[str] = []
    files: list[str] = []
    before = ""
    for call in calls:
        head, _, file = call.partition(" on ")
        is_plain = bool(file) and ": " not in call and "\u2026" not in call
        if is_plain and head == before:
            files.append(file)
            merged[-1] = f"{head} on {marks.listed(list(dict.fromkeys(files)))}"
            continue
        merged.append(call)
        before, files = (head, [file]) if is_plain else ("", [])
    return merged


def _ended(text: str) -> str:
    return text if text.endswith(_ENDED) else f"{text.rstrip(':;,')}."


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
        return marks.RULES

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
        if units:
            text = self._fitting(job, units, target, cap)
        else:
            nothing = f"({job.message_count} messages without text)"
            text = cut_to_size(nothing, max_tokens=cap, count_text=self._count_text).text
        if not text:
            message = (
                f"no words of the {len(job.sources)} sources fit into {cap} tokens;"
                " raise the level's max_tokens or condense more messages at once"
            )
            raise CondensationError(message, reason=FailureReason.CONTEXT_GREW)
        return Condensed(text=text, tokens=self._count_text(text), model=self.name)

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
