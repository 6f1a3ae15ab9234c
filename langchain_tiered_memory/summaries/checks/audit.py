"""Audit of a summary: appends what it dropped of identifiers, figures, open questions and unfinished calls.

Nothing is judged but the form, so it needs no model and no dictionary; what is appended stands word for word in a
source. It never blocks: what does not fit is left out, the least important first. Lines that it wrote are read back one
level up, where the next audit takes from them what still matters. What came from a tool stands in a line of its own,
marked, at every level.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.checks.unsourced import without_marked
from langchain_tiered_memory.summaries.marks import APPENDED, SAID, STILL_OPEN, TOOL_MARK, TOOL_SAID
from langchain_tiered_memory.summaries.writers.extractive_phrases import DATE, date_of
from langchain_tiered_memory.summaries.writers.speakers import is_name_of
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifier_spans import Finding, findings
from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.noun_phrases import CALENDAR
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import SourceText
    from langchain_tiered_memory.types.records import Fact, Role

_CALL = "call "

_SEPARATOR = "; "
_LINE = re.compile(
    rf"^(?:{STILL_OPEN}(?P<open>.*?)(?:\. (?={SAID})|$))?(?:{SAID}(?P<said>.*))?$|^{re.escape(TOOL_SAID)}(?P<tool>.*)$"
)
_SPOKEN = re.compile(r"^(?:[-*+] )?(?P<role>user|assistant|\[tool\])[^:\n]{0,60}: ")
_WORTH: dict[Role, int] = {"user": 4, "other": 3, "assistant": 2, "tool": 1, "system": 0}
_NAME_RANK = 2
_MAX_CHARS = 400_000  # of all sources together that are looked at
_MAX_SOURCE_CHARS = 60_000  # of one, half from each end: a pasted file names more than anybody can keep
_MAX_QUESTION_CHARS = 160
_MAX_OPEN = 6
_MAX_MISSES = 12  # items in a row that are too long for the room left: then it is full
_NO_NOUN = re.compile(r"^[\d.,]{1,20}[ -]\w{2,30}(?:ly|ed|ing)$")
_OUR_DAY = re.compile(DATE)
_ASKS = ("?", "\uff1f", "\u061f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A summary after its audit."""

    text: str
    """The text that came in, where it says everything."""
    added: tuple[str, ...] = ()
    """What was appended, the most important first."""


@dataclass(frozen=True, slots=True)
class _Item:
    text: str
    role: Role
    is_open: bool = False


def audited(
    text: str,
    sources: Sequence[SourceText],
    facts: Sequence[Fact],
    *,
    max_tokens: int,
    count_text: Callable[[str], int],
    share: float,
    people: Sequence[str] = (),
) -> Audited:
    """`text` with what it dropped of its sources, in one line or two, three where a tool and an open question meet.

    Unfinished calls and open questions come first. Then what the user said before what the assistant said before what
    a tool said, what several sources say before what one says, figures with their noun before bare ones.

    Args:
        text: The summary.
        sources: What it was made from.
        facts: The facts that stand beside it: what they say is not dropped.
        max_tokens: The most that the whole may have.
        count_text: Tokens of a text. Called once for each item considered, some fifty times at most beyond those
            that are appended.
        share: Of `max_tokens`, the most for what is appended (0 to 1).
        people: Who takes part: their names and nicknames tell nothing.
    """
    room = min(max_tokens - count_text(text), int(max_tokens * share))
    if room <= 0:
        return Audited(text=text)
    beside = "\n".join((text, *(fact.text for fact in facts)))
    chosen: list[_Item] = []
    misses = 0
    left = room - count_text(f"\n{SAID}")
    for item in _missing(sources, beside, people):
        if any(_states(_folded(other.text), _folded(item.text)) for other in chosen):
            continue  # a name within a phrase that stands there already
        tokens = count_text(item.text + _SEPARATOR)
        misses = 0 if tokens <= left else misses + 1
        if tokens <= left:
            chosen.append(item)
            left -= tokens
        elif misses >= _MAX_MISSES:
            break
    while chosen:
        whole = f"{text}\n{_lines(chosen)}"
        tokens = count_text(whole)
        if tokens <= max_tokens and tokens - count_text(text) <= room:
            return Audited(text=whole, added=tuple(item.text for item in chosen))
        chosen.pop()
    return Audited(text=text)


def _lines(chosen: Sequence[_Item]) -> str:
    still_open = _SEPARATOR.join(item.text for item in chosen if item.is_open)
    said = _SEPARATOR.join(item.text for item in chosen if not item.is_open and item.role != "tool")
    found = _SEPARATOR.join(item.text for item in chosen if not item.is_open and item.role == "tool")
    own = ". ".join((*([STILL_OPEN + still_open] if still_open else ()), *([SAID + said] if said else ())))
    return "\n".join((*([own] if own else ()), *([TOOL_SAID + found] if found else ())))


def _missing(sources: Sequence[SourceText], beside: str, people: Sequence[str]) -> Iterator[_Item]:
    """What `beside` does not state, the most important first."""
    folded = _folded(beside)
    for item in _still_open(sources)[:_MAX_OPEN]:
        if _folded(item.text.removeprefix(_CALL)) not in folded:
            yield item
    stated = identifiers(beside)
    known = _Known(sources, people)
    ranked: dict[str, tuple[int, int, Finding, Role]] = {}
    for role, part in _parts(sources):
        seen = set[str]()
        for finding in findings(part, bare=role != "tool"):
            if finding.key in seen:
                continue
            seen.add(finding.key)
            # Names are worth less than what nobody can guess: they count as if one step further away said them.
            worth = _WORTH[role] - (finding.rank >= _NAME_RANK)
            before = ranked.get(finding.key)
            if before is None:
                ranked[finding.key] = (worth, 1, finding, role)
            else:
                first = before if before[0] >= worth else (worth, 0, finding, role)
                ranked[finding.key] = (first[0], before[1] + 1, first[2], first[3])
    order = sorted(enumerate(ranked.values()), key=lambda one: (-one[1][0], -one[1][1], one[1][2].rank, one[0]))
    for _, (_, times, finding, role) in order:
        if known.tells_little(finding, times):
            continue
        if finding.key not in stated and not _states(folded, finding.key):
            yield _Item(finding.text, role)


class _Known:
    """What every reader of a summary knows or cannot use: days of messages, who takes part, halves of code."""

    def __init__(self, sources: Sequence[SourceText], people: Sequence[str]) -> None:
        self._people = (*people, *(source.speaker for source in sources if source.role != "tool"))
        self._days = {date_of(source.at).casefold() for source in sources}
        self.are_summaries = any(not source.speaker for source in sources)

    def tells_little(self, finding: Finding, times: int) -> bool:
        """Whether what was found in `times` sources is not worth its tokens in a list without sentences."""
        if finding.key in self._days or (self.are_summaries and _OUR_DAY.fullmatch(finding.text)):
            return True
        if finding.rank == _NAME_RANK and (finding.key in CALENDAR or is_name_of(finding.text, self._people)):
            return True
        if self.are_summaries and (times == 1 if finding.rank >= _NAME_RANK else _NO_NOUN.search(finding.text)):
            return True  # of a long stretch a name without its sentence tells nothing
        halves = (finding.text.count(one) != finding.text.count(other) for one, other in ("()", "[]", "{}"))
        return any(halves) or finding.text.count('"') % 2 == 1


def _parts(sources: Sequence[SourceText]) -> Iterator[tuple[Role, str]]:
    """The sources' text with who said it: whole messages, or lines of summaries by their speaker."""
    room = _MAX_CHARS
    for source in sources:
        text = without_marked(source.text)
        if len(text) > _MAX_SOURCE_CHARS:
            text = f"{text[: _MAX_SOURCE_CHARS // 2]}\n{text[-_MAX_SOURCE_CHARS // 2 :]}"
        room -= len(text)
        if room < 0:
            return
        if source.speaker:
            yield source.role, text
        else:
            yield from _spoken_lines(text)


def _spoken_lines(text: str) -> Iterator[tuple[Role, str]]:
    """Lines of a summary by who said them, neighbours of one speaker together; of our own only what was said."""
    speaker: Role = "other"
    lines: list[str] = []
    for line in text.splitlines():
        own = _LINE.match(line) if APPENDED.match(line) else None
        spoken = _SPOKEN.match(line)
        role: Role = "other"
        if own or spoken:
            said_by = "tool" if own and own["tool"] else spoken["role"] if spoken and not own else "other"
            role = "tool" if said_by in ("tool", TOOL_MARK) else "user" if said_by == "user" else "other"
            role = "assistant" if said_by == "assistant" else role
        if role != speaker and lines:
            yield speaker, "\n".join(lines)
            lines = []
        speaker = role
        lines.append((own["said"] or own["tool"] or "") if own else line)
    if lines:
        yield speaker, "\n".join(lines)


def _still_open(sources: Sequence[SourceText]) -> list[_Item]:
    """Unfinished calls, then open questions, newest first. Summaries tell those that their own audit appended.

    What an earlier summary left open is old: the conversation went on without that call's result, and whoever was asked
    last has answered. Only a question that was named as open may still be so.
    """
    calls: list[str] = []
    questions: list[str] = []
    for place, source in enumerate(reversed(sources)):
        calls += [f"{_CALL}{call}" for call in source.open_calls]
        for item in _open_items(source.text) if not source.speaker else ():
            if place == 0 or cues.QUESTION.search(cues.lowered(item)):
                (calls if item.startswith(_CALL) else questions).append(item)
        for role, part in _parts([source]):
            said = sentences(part) if role not in ("tool", "system") else []
            at_the_end = place == 0 and bool(source.speaker)
            questions += [one for one in said if _is_open(one, last=at_the_end and one is said[-1])]
    return [_Item(_plain(one), "other", is_open=True) for one in dict.fromkeys((*calls, *questions))]


def _open_items(text: str) -> list[str]:
    found = [_LINE.match(line) for line in text.splitlines() if line.startswith(STILL_OPEN)]
    return [item for match in found if match and match["open"] for item in match["open"].split(_SEPARATOR)]


def _is_open(sentence: str, *, last: bool) -> bool:
    """Whether a sentence names an open question, or is one that nobody answered."""
    if len(sentence) > _MAX_QUESTION_CHARS or APPENDED.match(sentence):
        return False
    if last and sentence.rstrip().endswith(_ASKS):
        return not cues.SMALL_TALK.match(cues.lowered(sentence))
    return cues.QUESTION.search(cues.lowered(sentence)) is not None


def _plain(text: str) -> str:
    """An item on one line, without what separates items or ends their sentence."""
    return " ".join(text.replace(";", ",").split()).rstrip(".")


def _states(folded: str, key: str) -> bool:
    """Whether `key` stands in a folded text as a whole word or figure."""
    at = folded.find(key)
    while at >= 0:
        before, after = folded[at - 1 : at], folded[at + len(key) : at + len(key) + 1]
        if not (before.isalnum() and key[0].isalnum()) and not (after.isalnum() and key[-1].isalnum()):
            return True
        at = folded.find(key, at + 1)
    return False


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
