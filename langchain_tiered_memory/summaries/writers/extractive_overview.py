"""The first line of an extractive summary: one sentence that says who, about what, and what came of it.

It stands alone and can serve as a headline, so it holds no more than fits into one: names, two to four noun phrases, a
request or a decision in its own words, the days.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import TOOL_MARK
from langchain_tiered_memory.summaries.writers.extractive_calls import files_named, is_call, tool_named
from langchain_tiered_memory.summaries.writers.extractive_phrases import (
    ASKED_ABOUT,
    REQUESTED,
    TALKED,
    TOLD_REQUEST,
    TOLD_SUBJECTS,
    WORKED,
    listed,
    span_of,
)
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.noun_phrases import subjects
from langchain_tiered_memory.text.sentences import ASKS
from langchain_tiered_memory.text.statements import clause_cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.summaries.writers.ranking import Unit

LEAST_TOKENS = 60
"""Below this target there is room for a sentence or two, and the first of them is the headline."""

_DATED_TOKENS = 250  # from here on there is room for the days
_FULL_TOKENS = 160  # from here on there is room for all subjects
_SUBJECTS_SMALL, _SUBJECTS = 2, 4
_MAX_REQUEST_CHARS = 130
_LEAST_BLANKS = 5  # of a request that is worth a headline
_MAX_PEOPLE, _MAX_TOOLS, _MAX_FILES = 3, 3, 3


def overview_of(job: CondenseJob, target: int, units: Sequence[Unit], dull: frozenset[str]) -> str:
    """The sentence for `units`, the statements that tell most, in the order of the job; empty where nothing is sure."""
    if target < LEAST_TOKENS:
        return ""
    spoken = [unit for unit in units if not unit.speaker.startswith(TOOL_MARK) and unit.speaker != "system"]
    calls, words = [unit for unit in spoken if is_call(unit)], [unit for unit in spoken if not is_call(unit)]
    people = list(dict.fromkeys(name for unit in words for name in (unit.asker, unit.speaker) if name))
    has_assistant = any(unit.speaker == "assistant" for unit in spoken)
    asker = next((name for name in people if name != "assistant"), "") if has_assistant else ""
    above = job.level > 1
    count = (_SUBJECTS if target >= _FULL_TOKENS else _SUBJECTS_SMALL) + above
    said = _of_talk(words, people, asker, count=count, dull=dull)
    if calls:
        told = TOLD_REQUEST.match(job.sources[0].text) if above else None
        said = _with_calls(calls, told["request"] if told else _request(words, asker), asker, said)
    dated = target >= (_FULL_TOKENS if above else _DATED_TOKENS)
    return f"{said}{f' ({span_of(job.first_at, job.last_at)})' if dated else ''}." if said else ""


def _of_talk(words: Sequence[Unit], people: list[str], asker: str, *, count: int, dull: frozenset[str]) -> str:
    theirs = [
        unit.asked if unit.asker == asker and unit.asked else unit.text
        for unit in words
        if asker in (unit.speaker, unit.asker)
    ]
    named = subjects(theirs if asker else [unit.told for unit in words], dull=dull, count=count)
    if asker and len(named) < _SUBJECTS_SMALL:
        named = subjects([unit.told for unit in words], dull=dull, count=count)
    if not named or not people:
        return ""
    asks = asker and any(unit.asker == asker or _is_request(unit.text) for unit in words)
    who = (
        _person(asker) if asks else listed([_person(name, first=place == 0) for place, name in enumerate(_few(people))])
    )
    return f"{who} {ASKED_ABOUT if asks else TALKED} {listed(named)}"


def subjects_told(text: str) -> list[str]:
    """The subjects that the overview of a finished summary of ours names."""
    told = TOLD_SUBJECTS.search(text.partition("\n")[0])
    return told["subjects"].replace(" and ", ", ").split(", ") if told else []


def _few(people: list[str]) -> list[str]:
    return (
        people
        if len(people) <= _MAX_PEOPLE
        else [*people[: _MAX_PEOPLE - 1], f"{len(people) - _MAX_PEOPLE + 1} others"]
    )


def _with_calls(calls: Sequence[Unit], request: str, asker: str, talk: str) -> str:
    tools = [name for name, _ in Counter(tool_named(unit.text) for unit in calls).most_common(_MAX_TOOLS)]
    files = [
        name for name, _ in Counter(one for unit in calls for one in files_named(unit.text)).most_common(_MAX_FILES)
    ]
    used = f"{WORKED} {listed(tools)}" + (f" on {listed(files)}" if files else "")
    if request and asker:
        shown = clause_cut(request, most_chars=_MAX_REQUEST_CHARS).rstrip(".")
        return f"{_person(asker)} {REQUESTED} {shown}; the assistant {used}"
    return f"{talk}; the assistant {used}" if talk and asker else f"The assistant {used}"


def _request(words: Sequence[Unit], asker: str) -> str:
    """What `asker` asks for first at some length; empty for nothing."""
    asked = (unit.asked if unit.asker == asker else unit.text for unit in words if asker in (unit.asker, unit.speaker))
    return next((one for one in asked if one.count(" ") >= _LEAST_BLANKS and _is_request(one)), "")


def _is_request(text: str) -> bool:
    low = cues.lowered(text)
    return text.endswith(ASKS) or bool(cues.GOAL.search(low) or cues.IMPERATIVE.match(low) or cues.ORDER.match(low))


def _person(name: str, *, first: bool = True) -> str:
    if name in ("user", "assistant", "other"):
        return f"{'The' if first else 'the'} {name if name != 'other' else 'speaker'}"
    return name
