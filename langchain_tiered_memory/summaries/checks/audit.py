"""Audit of a summary: appends what it dropped, in statements that a reader understands.

Where no statement of the text, nor a fact beside it, has a figure, path or code that somebody said, the statement that
says it is appended, as the extractive condenser quotes it: with who said it, a line each. So are calls that wait for
their result, and what somebody said is still open. What a tool said and nobody took up can be looked up again. Nothing
is judged but the form, so it needs no model and no dictionary. It never blocks: what does not fit is left out, what is
worth least first. One level up these lines are read as any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.checks.unsourced import without_marked
from langchain_tiered_memory.summaries.marks import CODE, SAID, STILL_OPEN, TOOL_MARK, WAITING, date_of
from langchain_tiered_memory.summaries.writers.extractive import line_of
from langchain_tiered_memory.summaries.writers.extractive_calls import call_start, is_call
from langchain_tiered_memory.summaries.writers.extractive_sources import units_of
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import folded, identifiers, stated_in, states
from langchain_tiered_memory.text.sentences import ASKS
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.summaries.writers.ranking import Unit

_WORTH = {"user": 4.0, "assistant": 2.0}
_OTHERS_WORTH = 3.0
_MAX_CHARS = 400_000  # of all sources together that are looked at
_MOST = 12
_BEGINNING_CHARS = 40  # of a statement, by which it is found where it was said
_LINE_TOKENS = 6  # what a statement takes beside its own words
_LEAST_WORDS, _LEAST_LETTERS = 3, 0.6
"""Of a statement: below that it is a row of figures, a place in a file, a line of code."""
_UNSPACED_LETTERS = 8
"""Of a statement in a script without blanks."""
_TOLD_SHARE = 0.5
"""Of the terms of an open question, that a summary states which tells it in other words."""
_ESCAPES = ("\\n", "\\t", '\\"')
"""What stands in code or in data, and in nothing that anybody said."""


def audited(
    text: str,
    job: CondenseJob,
    *,
    max_tokens: int,
    count_text: Callable[[str], int],
    share: float,
    decided: bool = False,
    in_statements: bool = False,
) -> str:
    """`text` with what it dropped of its sources, a line for each statement, the most important first.

    Unfinished calls and open questions come first, then statements by what they have that is missing, for their length:
    a user's is worth more than an assistant's. What the facts of `job` say is not dropped. The whole has at most
    `max_tokens`, what is appended at most `share` of them.

    Where a model `decided` what stays of the statements (it marks what must last, or it merges summaries, and what it
    leaves out of these may have been replaced since), only what is unfinished is appended. One that wrote
    `in_statements`, as our prompts ask, was told to say what is open: what somebody asked once is not said to be so.
    """
    own = count_text(text)
    room = min(max_tokens - own, int(max_tokens * share))
    whole, added = text, 0
    if room <= 0 or sum(len(source.text) for source in job.sources) > _MAX_CHARS:
        return text
    for line in _missing(text, job, decided=decided, in_statements=in_statements):
        longer = f"{whole}\n{line}"
        tokens = count_text(longer)
        if tokens <= max_tokens and tokens - own <= room:
            whole = longer
            added += 1
        if added == _MOST:
            break
    return whole


def _missing(text: str, job: CondenseJob, *, decided: bool, in_statements: bool) -> Iterator[str]:
    """Lines that tell what `text` does not, the most important first."""
    whole = folded(text)
    for source in job.sources:
        yield from (f"{STILL_OPEN}{WAITING}{call}" for call in source.open_calls if folded(call) not in whole)
    said = [unit for unit in units_of(job) if not _is_in_a_call(unit, job)]
    units = [unit for unit in said if _is_understood(unit)]
    terms = frozenset(analyse(text))
    for unit in reversed(said):
        if _is_left_open(unit, job, calls_alone=in_statements) and not _is_told(unit, terms):
            yield f"{STILL_OPEN}{line_of([unit])}"
    if not decided:
        yield from _by_worth(units, "\n".join((text, *(fact.text for fact in job.facts))), job)


def _by_worth(units: Sequence[Unit], stated: str, job: CondenseJob) -> Iterator[str]:
    """Statements that have something which nothing has yet, the one with the most of it for its length first."""
    named, whole = identifiers(stated), folded(stated)
    days = {date_of(source.at).casefold() for source in job.sources}
    lacking: dict[int, set[str]] = {}
    for place, unit in enumerate(units):
        keys = {key for key in stated_in(without_marked(unit.told)) - named - days if not states(whole, key)}
        if keys:
            lacking[place] = keys
    while lacking:
        best = max(lacking, key=lambda place: (len(lacking[place]) * _worth(units[place]), -place))
        told = lacking.pop(best)
        yield f"{SAID}{line_of([units[best]])}"
        lacking = {place: left for place, keys in lacking.items() if (left := keys - told)}


def _worth(unit: Unit) -> float:
    """Of each thing that a statement has and the text has not."""
    return _WORTH.get(unit.speaker, _OTHERS_WORTH) * unit.weight / (unit.tokens + _LINE_TOKENS)


def _is_understood(unit: Unit) -> bool:
    """Whether somebody who reads the statement alone knows what it says: no code, no row of figures, no question."""
    if (
        unit.speaker.startswith(TOOL_MARK)
        or unit.text.startswith(CODE)
        or is_call(unit)
        or any(one in unit.text for one in _ESCAPES)
    ):
        return False
    if unit.text.endswith(ASKS) and not unit.asked:
        return False
    said = "".join(unit.text.split())
    letters = sum(map(str.isalpha, said))
    spaced = sum(any(map(str.isalpha, word)) for word in unit.text.split()) >= _LEAST_WORDS
    unspaced = not said.isascii() and letters >= _UNSPACED_LETTERS
    return letters >= _LEAST_LETTERS * len(said) and (spaced or unspaced)


def _is_in_a_call(unit: Unit, job: CondenseJob) -> bool:
    """Whether it stands in what a call carries, and not in the words before it."""
    source = job.sources[unit.source]
    start = call_start(source.text) if source.role == "assistant" else None
    return start is not None and unit.text[:_BEGINNING_CHARS] not in source.text[:start]


def _is_left_open(unit: Unit, job: CondenseJob, *, calls_alone: bool) -> bool:
    """Whether somebody said that something is open, or a call waited; of what summaries tell, the last may still."""
    if job.level > 1 and unit.source < len(job.sources) - 1:
        return False
    waits = unit.kind == "open" and unit.text.startswith(WAITING)
    if waits or calls_alone:
        return waits
    return _is_understood(unit) and cues.QUESTION.search(cues.lowered(unit.text)) is not None


def _is_told(unit: Unit, terms: frozenset[str]) -> bool:
    own = frozenset(analyse(unit.text))
    return len(own & terms) >= _TOLD_SHARE * len(own)
