"""Reads the messages of a job, or the finished summaries below it, into the statements that a summary chooses from."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.rendering import speaker_label
from langchain_tiered_memory.summaries.writers.extractive_calls import USED, is_call, split_calls
from langchain_tiered_memory.summaries.writers.ranking import (
    REPORTED,
    Unit,
    advice_share,
    is_event,
    is_filler,
    kind_of,
    telling,
)
from langchain_tiered_memory.summaries.writers.sections import ItemKind, Line, lines_of
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import PATH, SYMBOL
from langchain_tiered_memory.text.sentences import asks, pieces
from langchain_tiered_memory.text.statements import (
    MAX_CHARS,
    Statement,
    clause_cut,
    plain,
    shown_lines,
    statements,
    without_fields,
)
from langchain_tiered_memory.text.truncation import first_chars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText

_ROLES = frozenset({"user", "assistant", "tool", "system", "other"})
_TOOL_SEPARATOR = "; "
_FACTS = "Facts"
"""Of the list that earlier versions put below a summary; facts travel beside the text."""
_BYGONE_WEIGHT = 0.3  # a question that ended an earlier stretch: the conversation went on


def units_of_summary(source: SourceText, index: int, participants: Sequence[str], *, is_last: bool) -> Iterator[Unit]:
    """The items of a summary, with the speaker that ours begin with carried over to each of their sentences.

    Our own overview is left out. What an audit appended is read as what it quotes. `participants` are names that may
    stand before a colon. What the last summary leaves open may be open still. A call that nothing answered is told
    where it was made, and no further up.
    """
    known = {*participants, *_ROLES}
    for line in lines_of(marks.without_marks(source.text)):
        for unit in _units_of(line, index, known):
            by_itself = unit.kind == "open" and unit.text.startswith(marks.WAITING)
            if not (by_itself or unit.text.startswith(marks.NOT_ANSWERED)):
                yield _closed(unit, is_last=is_last)


def _closed(unit: Unit, *, is_last: bool) -> Unit:
    if unit.kind != "open" or is_last or cues.QUESTION.search(cues.lowered(unit.text)):
        return unit
    return replace(unit, kind="point", weight=_BYGONE_WEIGHT) if asks(unit.text) else unit


def _units_of(line: Line, index: int, known: set[str]) -> list[Unit]:
    """The statements of a line, an answer with the question before it."""
    units: list[Unit] = []
    speaker = when = ""
    asking = calling = False
    for place, sentence in enumerate(() if line.is_overview or line.heading == _FACTS else _sentences_of(line)):
        if calling and place:  # a command may have dots in it
            continue
        text, goes_on, answers = sentence, asking, False
        if not (place and speaker.startswith(marks.TOOL_MARK)):  # a tool may imitate a speaker within its line
            spoken = marks.SPOKEN.match(text)
            answer = marks.ANSWER.match(text) if place else None
            if answer and answer["speaker"] in known:
                speaker, when, text, answers = answer["speaker"], answer["when"] or "", text[answer.end() :], True
                asking = goes_on = False
            elif spoken and (spoken["speaker"] in known or spoken["speaker"].startswith(marks.TOOL_MARK)):
                speaker, when, text = spoken["speaker"], spoken["when"] or "", text[spoken.end() :]
                asking, goes_on = bool(spoken["asked"]), False
        is_tool, calling = speaker.startswith(marks.TOOL_MARK), text.startswith(USED)
        kind: ItemKind = "technical" if is_tool else line.kind
        for said in text.split(_TOOL_SEPARATOR) if is_tool else [plain(text)]:
            if not any(char.isalnum() for char in said):
                continue
            unit = Unit(said, kind, index, 0.0, line.number, speaker=speaker, when=when, day=line.day)
            before = units.pop() if units and (goes_on or answers) else None
            if before and goes_on:
                unit = replace(before, text=f"{before.text} {said}")
            elif before:
                unit = replace(unit, asked=before.text, asker=before.speaker, kind=before.kind)
            units.append(unit)
    return units


def _sentences_of(line: Line) -> list[str]:
    return [line.whole] if line.is_code else [piece.text for piece in pieces(line.words)]


def speakers_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Names that our summaries quote by: they stand before a day or `asked`, or begin several lines."""
    found: Counter[str] = Counter()
    for line in (line for text in texts for line in text.splitlines() if not marks.OVERVIEW.match(line)):
        said = marks.SPOKEN.match(marks.BULLET.sub("", line, count=1))
        if said is not None and said["speaker"] not in _ROLES and not said["speaker"].startswith(marks.TOOL_MARK):
            found[said["speaker"]] += 1 + bool(said["when"] or said["asked"])
    return tuple(name for name, times in found.items() if times > 1)


_MAX_CODE_CHARS = 160
_COMMAND_LINES = 3  # a block of no more lines and no definition is a command
_MAX_BLOCK_CHARS = 6000
_MAX_WRITTEN = 8  # of a message's calls, texts of several lines
_LEAST_BLANKS = 4  # of an answer that tells alone what it is about
_MAX_STEPS = 12  # messages with calls and their results between a question and its answer
_MAX_QUESTION_CHARS = 160  # of one that is told with its answer
_MAX_STATEMENTS = 2000  # of one message that are weighed: a pasted file of megabytes must not take a minute
_MAX_CUE_CHARS = 2000
_FEW_STATEMENTS = 6
"""A message of no more is told at its worth; of a longer one each is one of many, and worth less."""
_UNSPOKEN_WEIGHT = 0.5  # of what a tool printed, of code, and of a system prompt: nobody said it
_FIRST_WEIGHT, _FAILURE_WEIGHT = 1.1, 1.2
_CALL_WEIGHT = 0.8
_ASKING_WEIGHT = 1.25  # of what the person says whom an assistant helps
_OPEN_WEIGHT = 4.0  # of the question that a stretch ends with: whoever goes on must know it
_WANTED_WEIGHT, _ANSWERED_WEIGHT = 1.2, 1.5  # of a summary's statements
_DEFINITION = re.compile(
    r"^[ \t]*+(?:export |public |async |static ){0,4}"
    r"(?:(?:def|class|func|function|fn|interface|type|struct|enum|export const) ++\(?[\w.]"
    r"|(?:CREATE TABLE|create table) ++[\w.]).*",
    re.MULTILINE,
)


def units_of(job: CondenseJob) -> Iterator[Unit]:
    """The statements of all sources that say something new, with their estimated tokens."""
    told = set[tuple[str, bool]]()
    made = _of_messages(job.sources) if job.level == 1 else _of_summaries(job)
    for source, unit in made:
        key = (unit.text.casefold(), unit.speaker.startswith(marks.TOOL_MARK))  # a person's word is not a tool's
        if key in told and not unit.asked:
            continue
        told.add(key)
        yield replace(unit, tokens=len(unit.told) * source.tokens / len(source.text))


def _of_summaries(job: CondenseJob) -> Iterator[tuple[SourceText, Unit]]:
    """The statements of summaries that tell something alone, with the day that they were said on where it is known."""
    last = len(job.sources) - 1
    has_assistant = "assistant" in job.participants or any("assistant: " in source.text for source in job.sources)
    is_long = marks.date_of(job.first_at) != marks.date_of(job.last_at)
    read = [
        (source, unit)
        for index, source in enumerate(job.sources)
        if source.same_as is None and source.text
        for unit in units_of_summary(source, index, job.participants, is_last=index == last)
    ]
    works = any(unit.speaker.startswith(marks.TOOL_MARK) or is_call(unit) for _, unit in read)
    advice = advice_share([unit.speaker == "assistant" for _, unit in read], works=works)
    made = [
        (source, _weighed(unit, unit.day if is_long else "", has_assistant=has_assistant, advice=advice))
        for source, unit in read
    ]
    yield from [one for one in made if not _is_spoken(one[1]) or not is_filler(one[1].told)] or made


def _weighed(unit: Unit, day: str, *, has_assistant: bool, advice: float) -> Unit:
    """A statement of a summary with its worth one level up, without a question that it does not need."""
    if (not has_assistant or unit.asker == "assistant") and _tells_alone(unit):
        unit = replace(unit, asked="", asker="")
    low = cues.lowered(unit.text)
    advised = unit.speaker == "assistant"
    weight = unit.weight * telling(unit.text) * (advice if advised else 1.0)
    kind = unit.kind
    if unit.speaker.startswith(marks.TOOL_MARK) or (is_call(unit) and kind != "open"):
        weight *= REPORTED
    elif has_assistant and not advised:
        weight *= _WANTED_WEIGHT  # what somebody wants outlasts what was advised
    elif has_assistant and unit.asked:
        weight *= _ANSWERED_WEIGHT
    elif not has_assistant and kind == "decision" and cues.DECISION.search(low) is None:
        kind = "point"  # between people "it must be nice" decides nothing
    when = unit.when or (day if day and not advised and is_event(unit.text) else "")
    return replace(unit, text=_shortened(unit.text), weight=weight, kind=kind, when=when)


def _is_spoken(unit: Unit) -> bool:
    """Whether a statement is what somebody said in words: no call, no code, nothing that is open."""
    by_tool = unit.speaker.startswith(marks.TOOL_MARK)
    return unit.kind != "open" and not by_tool and not unit.text.startswith((marks.CODE, USED))


def _tells_alone(unit: Unit) -> bool:
    """Whether an answer says without its question what it is about."""
    return bool(unit.asked) and unit.text.count(" ") >= _LEAST_BLANKS and telling(unit.text) >= 1.0


def _of_messages(sources: Sequence[SourceText]) -> Iterator[tuple[SourceText, Unit]]:
    """Statements, each question with the answer that the next message gives."""
    shown = [(source, index) for index, source in enumerate(sources) if source.same_as is None and source.text]
    said = [one for one in shown if not one[0].states_nothing] or shown
    read = [(source, list(_of_message(source, index))) for source, index in said]
    for place, (_, units) in enumerate(read):
        asked = _last_question(units)
        if asked is None:
            continue
        if place == len(read) - 1:
            units[asked] = replace(units[asked], kind="open", weight=units[asked].weight * _OPEN_WEIGHT)
            continue
        following = _reply_to(read, place)
        answer = _first_answer(following)
        if answer is not None and not _asks_before(read, place):
            question = units.pop(asked)
            before = units[asked - 1].text if asked else ""
            words = f"{before} {question.text}"
            if asks(before) and len(words) < _MAX_QUESTION_CHARS:  # asked in one breath
                units.pop(asked - 1)
            else:
                words = clause_cut(question.text, most_chars=_MAX_QUESTION_CHARS)
            following[answer] = replace(following[answer], asked=words, asker=question.speaker)
    has_assistant = any(source.role == "assistant" for source in sources)
    for source, units in read:
        for unit in units:
            wanted = has_assistant and source.role == "user"
            yield source, replace(unit, weight=unit.weight * _ASKING_WEIGHT) if wanted else unit


def _reply_to(read: Sequence[tuple[SourceText, list[Unit]]], place: int) -> list[Unit]:
    """What the next message says that is somebody else's; an assistant's after the tools that it asked first."""
    asker = read[place][0]
    for source, units in read[place + 1 : place + 1 + _MAX_STEPS]:
        if source.role == "tool" or (source.role == "assistant" and units and all(map(is_call, units))):
            continue
        return units if (source.speaker, source.role) != (asker.speaker, asker.role) else []
    return []


def _asks_before(read: Sequence[tuple[SourceText, list[Unit]]], place: int) -> bool:
    """Whether the same person asked something else just before: nobody knows which of the two is answered."""
    asker = read[place][0]
    for source, units in reversed(read[:place]):
        if (source.speaker, source.role) != (asker.speaker, asker.role):
            return False
        if _last_question(units) is not None:
            return True
    return False


def _last_question(units: Sequence[Unit]) -> int | None:
    """The question that a message ends with; code may stand behind it."""
    for place in reversed(range(len(units))):
        unit = units[place]
        if unit.text.startswith(marks.CODE):
            continue
        waits = asks(unit.text) and not unit.asked and not unit.speaker.startswith(marks.TOOL_MARK)
        return place if waits and len(unit.text) < 2 * _MAX_QUESTION_CHARS else None
    return None


def _first_answer(units: Sequence[Unit]) -> int | None:
    """The first statement of a message that answers: no tool's, no question, none that only says that one comes."""
    for place, unit in enumerate(units[:4]):
        if asks(unit.text) or unit.text.startswith((marks.CODE, USED)):
            return None
        if not unit.text.endswith(":"):
            return place
    return None


def _of_message(source: SourceText, index: int) -> Iterator[Unit]:
    date = marks.date_of(source.at)
    speaker = speaker_label(source.speaker, source.role)
    text, calls, written = split_calls(source.text) if source.role == "assistant" else (source.text, [], [])
    is_tool = source.role == "tool"
    said = [Statement(line) for line in shown_lines(text)] if is_tool else statements(without_fields(text))
    of_role = _UNSPOKEN_WEIGHT if source.role in ("system", "tool") else 1.0
    code = Unit("", "technical", index, 0.0, speaker=speaker, weight=_UNSPOKEN_WEIGHT * of_role)
    at_length = math.sqrt(min(1.0, _FEW_STATEMENTS / max(1, len(said))))
    for place, one in enumerate(said[:_MAX_STATEMENTS]):
        if one.is_code:
            block = "\n".join(one.text.splitlines()[1:-1])
            if quoted := _quoted_code(block):
                yield replace(code, text=f"{marks.CODE}`{quoted}`")
            continue
        shown = _shortened(one.text)
        if not any(char.isalnum() for char in shown):
            continue
        low = cues.lowered(shown)
        weight = 1.0 if is_tool else telling(shown) * at_length
        weight *= _FIRST_WEIGHT if place == 0 else 1.0
        weight *= _FAILURE_WEIGHT if is_tool and cues.FAILURE.search(low) else of_role
        when = date if cues.RELATIVE_TIME.search(low) else ""
        yield Unit(shown, _message_kind(shown, source), index, 0.0, speaker=speaker, when=when, weight=weight)
    yield from (replace(code, text=call, weight=_CALL_WEIGHT) for call in calls)
    for document in written[:_MAX_WRITTEN]:
        if quoted := _quoted_code(document):
            yield replace(code, text=f"{marks.CODE}`{quoted}`")


def _message_kind(text: str, source: SourceText) -> ItemKind:
    if source.role == "tool":
        return "technical"  # whatever its wording: a web page decides nothing, and asks nothing of anybody
    kind = kind_of(text)
    return "technical" if kind == "point" and (PATH.search(text) or SYMBOL.search(text)) else kind


def _quoted_code(block: str) -> str:
    """What a block of code defines, or a command whole; else nothing."""
    block = block[:_MAX_BLOCK_CHARS]
    defined = list(dict.fromkeys(match[0].strip().rstrip("{:").strip() for match in _DEFINITION.finditer(block)))
    lines = [line.strip() for line in block.splitlines() if line.strip()]
    shown = defined or (lines if len(lines) <= _COMMAND_LINES else [])
    return first_chars("; ".join(shown), _MAX_CODE_CHARS)


def _shortened(text: str) -> str:
    """A sentence that is too long to keep whole, around its first cue or from its start."""
    if len(text) < MAX_CHARS or text.startswith((marks.CODE, USED)):
        return text
    text = " ".join(text.split())
    low = cues.lowered(text[:_MAX_CUE_CHARS])
    cue = cues.DECISION.search(low) or cues.CONSTRAINT.search(low) or cues.FAILURE.search(low)
    return clause_cut(text, most_chars=MAX_CHARS + MAX_CHARS // 2, reach=cue.end() if cue else 0)
