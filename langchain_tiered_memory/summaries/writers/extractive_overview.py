"""The first line of an extractive summary: one sentence that says who, about what, and what came of it.

It stands alone and can serve as a headline, so it holds no more than fits into one: names, two to four noun phrases, a
request or a decision in its own words, the days.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import TOOL_MARK
from langchain_tiered_memory.summaries.writers.extractive_calls import USED, files_named, tool_named
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
from langchain_tiered_memory.summaries.writers.ranking import ANNOUNCES
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.noun_phrases import subjects
from langchain_tiered_memory.text.sentences import ASKS
from langchain_tiered_memory.text.statements import clause_cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.summaries.writers.ranking import Unit

LEAST_TOKENS = 60
"""Below this target there is room for a sentence or two, and the first of them is the headline."""

_DATED_TOKENS, _OUTCOME_TOKENS = 250, 250  # from here on there is room for the days, and for what came of it
_SUBJECTS_SMALL, _SUBJECTS = 2, 4
_MORE_SUBJECTS = 1  # of a stretch that summaries were made of
_FULL_TOKENS = 160  # from here on there is room for all subjects
_MAX_REQUEST_CHARS, _MAX_OUTCOME_CHARS = 130, 100
_LEAST_BLANKS = 5  # of a request that is worth a headline
_MAX_PEOPLE, _MAX_TOOLS, _MAX_FILES = 3, 3, 3
_WORD = re.compile(r"[\w+'-]+")
_VAGUE = 0.6  # of a subject in one plain word


def overview_of(job: CondenseJob, target: int, units: Sequence[Unit], dull: frozenset[str]) -> str:
    """The sentence for `units`, the statements that tell most, in the order of the job; empty where nothing is sure."""
    if target < LEAST_TOKENS:
        return ""
    spoken = [unit for unit in units if not unit.speaker.startswith(TOOL_MARK) and unit.speaker != "system"]
    calls = [unit for unit in spoken if unit.text.startswith(USED)]
    words = [unit for unit in spoken if not unit.text.startswith(USED)]
    people = list(dict.fromkeys(name for unit in words for name in (unit.asker, unit.speaker) if name))
    has_assistant = "assistant" in {unit.speaker for unit in spoken}
    asker = next((name for name in people if name != "assistant"), "") if has_assistant else ""
    earlier = [source.text for source in job.sources] if job.level > 1 else []
    count = _SUBJECTS if target >= _FULL_TOKENS else _SUBJECTS_SMALL
    count += _MORE_SUBJECTS if earlier else 0
    talk = _of_talk(words, people, asker, count=count, dull=dull, earlier=earlier)
    said = _with_calls(calls, words, asker, talk, earlier) if calls else talk
    if not said:
        return ""
    outcome = _outcome(words, said) if target >= _OUTCOME_TOKENS else ""
    when = (
        f" ({span_of(job.first_at, job.last_at)})"
        if target >= _DATED_TOKENS or (earlier and target >= _FULL_TOKENS)
        else ""
    )
    return f"{said}{outcome}{when}."


def _of_talk(
    words: Sequence[Unit], people: list[str], asker: str, *, count: int, dull: frozenset[str], earlier: Sequence[str]
) -> str:
    theirs = [
        unit.asked if unit.asker == asker and unit.asked else unit.text
        for unit in words
        if asker in (unit.speaker, unit.asker)
    ]
    texts = theirs if asker else [unit.told for unit in words]
    named = _named_before(earlier, count, dull) or subjects(texts, dull=dull, count=count)
    if asker and len(named) < _SUBJECTS_SMALL:
        named = subjects([unit.told for unit in words], dull=dull, count=count)
    if not named or not people:
        return ""
    asks = asker and any(unit.asker == asker or _is_request(unit.text) for unit in words)
    who = (
        _person(asker) if asks else listed([_person(name, first=place == 0) for place, name in enumerate(_few(people))])
    )
    return f"{who} {ASKED_ABOUT if asks else TALKED} {listed(named)}"


def _named_before(below: Sequence[str], count: int, dull: frozenset[str]) -> list[str]:
    """The subjects that overviews one level below name: what most of these parts speak of, and something of each."""
    found = [subjects_told(text) for text in below]
    if sum(map(bool, found)) * 2 < len(below):
        return []
    words = [frozenset(_WORD.findall(text.casefold())) for text in below]
    spoken_of = {one: _heads_in(one, words) for names in found for one in names}
    turns = [names[place] for place in range(count) for names in found if place < len(names)]
    named: list[str] = []
    said = set(dull)
    for one in sorted(dict.fromkeys(turns), key=lambda one: -spoken_of[one]):
        if said.isdisjoint(one.casefold().split()) and len(named) < count:
            said.update(one.casefold().split())
            named.append(one)
    return named


def _heads_in(phrase: str, texts: Sequence[frozenset[str]]) -> float:
    """In how many texts a subject's last word stands; what two words say is worth more than what one says."""
    head = phrase.casefold().rpartition(" ")[2]
    return sum(head in words for words in texts) * (1.0 if " " in phrase or not phrase.islower() else _VAGUE)


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


def _with_calls(calls: Sequence[Unit], words: Sequence[Unit], asker: str, talk: str, earlier: Sequence[str]) -> str:
    tools = [name for name, _ in Counter(tool_named(unit.text) for unit in calls).most_common(_MAX_TOOLS)]
    files = [
        name for name, _ in Counter(one for unit in calls for one in files_named(unit.text)).most_common(_MAX_FILES)
    ]
    used = f"{WORKED} {listed(tools)}" + (f" on {listed(files)}" if files else "")
    asked = [one for one in _requests(words, asker) if one.count(" ") >= _LEAST_BLANKS]
    if earlier:
        asked = [match["request"] for match in map(TOLD_REQUEST.match, earlier[:1]) if match]
    if asked and asker:
        request = clause_cut(asked[0], most_chars=_MAX_REQUEST_CHARS).rstrip(".")
        return f"{_person(asker)} {REQUESTED} {request}; the assistant {used}"
    return f"{talk}; the assistant {used}" if talk and asker else f"The assistant {used}"


def _requests(words: Sequence[Unit], asker: str) -> Iterator[str]:
    """What `asker` asks for, with the sentence before it where both fit: it may say what "it" is."""
    for place, unit in enumerate(words):
        if asker and unit.asker == asker:
            yield unit.asked
        elif asker and unit.speaker == asker and _is_request(unit.text):
            before = words[place - 1] if place else None
            both = f"{before.text} {unit.text}" if before and before.source == unit.source else unit.text
            if not cues.SMALL_TALK.match(cues.lowered(unit.text)):
                yield both if len(both) <= _MAX_REQUEST_CHARS else unit.text


def _is_request(text: str) -> bool:
    low = cues.lowered(text)
    return text.endswith(ASKS) or bool(cues.GOAL.search(low) or cues.IMPERATIVE.match(low) or cues.ORDER.match(low))


def _outcome(words: Sequence[Unit], said: str) -> str:
    """What was decided last, or done last, or is open, in its own words."""
    for kind, frame in (("decision", "decided"), ("progress", "done"), ("open", "open")):
        found = [
            unit
            for unit in words
            if unit.kind == kind and unit.text not in said and len(unit.text) <= _MAX_OUTCOME_CHARS and _shows(unit)
        ]
        if found:
            return f"; {frame}: {found[-1].text.rstrip('.')}"
    return ""


def _shows(unit: Unit) -> bool:
    """Whether a statement's own words say that something was decided, done or left open, whatever its heading says."""
    low = cues.lowered(unit.text)
    if ANNOUNCES.match(low):
        return False
    cue = {"decision": cues.DECISION, "progress": cues.DONE}.get(unit.kind, cues.QUESTION)
    return cue.search(low) is not None or (unit.kind == "open" and unit.text.endswith(ASKS))


def _person(name: str, *, first: bool = True) -> str:
    if name in ("user", "assistant", "other"):
        return f"{'The' if first else 'the'} {name if name != 'other' else 'speaker'}"
    return name
