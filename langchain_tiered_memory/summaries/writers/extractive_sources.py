"""Reads the messages of a job, or finished summaries, into the statements that a summary chooses from."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.writers.extractive_calls import split_calls
from langchain_tiered_memory.summaries.writers.ranking import (
    REPORTED,
    Unit,
    advice_share,
    is_filler,
    kind_of,
    telling,
)
from langchain_tiered_memory.summaries.writers.sections import ItemKind, Line, lines_of, sentences_of
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import PATH, SYMBOL
from langchain_tiered_memory.text.sentences import asks
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
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText

_TOOL_SEPARATOR = "; "
_MAX_CODE_CHARS = 160
_COMMAND_LINES = 3  # a block of no more lines and no definition is a command
_MAX_BLOCK_CHARS = 6000
_MAX_WRITTEN = 8  # of a message's calls, texts of several lines
_MAX_QUESTION_CHARS = 160  # of one that is told with its answer
_MAX_STATEMENTS = 2000  # of one message that are weighed: a pasted file of megabytes must not take a minute
_MAX_CUE_CHARS = 2000
_FEW_STATEMENTS = 6
"""A message of no more is told at its worth; of a longer one each is one of many, and worth less."""
_UNSPOKEN_WEIGHT = 0.5  # of what a tool printed, of code, calls, and of a system prompt: nobody said it
_FAILURE_WEIGHT = 1.2
_ASKING_WEIGHT = 1.25  # of what the person says whom an assistant helps
_OPEN_WEIGHT = 4.0  # of the question that a stretch ends with: whoever goes on must know it
_DEFINITION = re.compile(
    r"^[ \t]*+(?:export |public |async |static ){0,4}"
    r"(?:(?:def|class|func|function|fn|interface|type|struct|enum|export const) ++\(?[\w.]"
    r"|(?:CREATE TABLE|create table) ++[\w.]).*",
    re.MULTILINE,
)


def units_of(job: CondenseJob) -> Iterator[Unit]:
    """The statements of all sources that say something new, with their worth and their estimated tokens."""
    told = set[tuple[str, bool]]()
    for unit in (_of_messages if job.level == 1 else _of_summaries)(job.sources):
        key = (unit.text.casefold(), unit.by_tool)  # a person's word is not a tool's
        if key in told and not unit.asked:
            continue
        told.add(key)
        source = job.sources[unit.source]
        yield replace(unit, tokens=len(unit.told) * source.tokens / len(source.text))


def _of_summaries(sources: Sequence[SourceText]) -> list[Unit]:
    last = len(sources) - 1
    read = [(index, one.text) for index, one in enumerate(sources) if one.same_as is None and one.text]
    return weighed([unit for index, text in read for unit in units_of_text(text, index, is_last=index == last)])


def units_of_text(text: str, index: int = 0, *, is_last: bool = True) -> Iterator[Unit]:
    """The statements of a finished summary, with the speaker that ours begin with carried over to each sentence.

    What an audit appended is read as what it quotes. What the last of several summaries leaves open may be open still.
    A call that nothing answered is told where it was made, and no further up.
    """
    for line in lines_of(marks.without_marks(text)):
        if line.words.startswith((marks.NOT_ANSWERED, marks.WAITING)):
            continue
        for unit in _of_line(line, index):
            if unit.kind == "open" and not is_last and asks(unit.text) and not _says_open(unit.text):
                yield replace(unit, kind="point")  # the conversation went on
            elif any(map(str.isalnum, unit.text)):
                yield unit


def _says_open(text: str) -> bool:
    return cues.QUESTION.search(cues.lowered(text)) is not None


def _of_line(line: Line, index: int) -> Iterator[Unit]:
    """The statements of a line, an answer with the question before it."""
    spoken = marks.SPOKEN.match(line.words)
    words = line.words[spoken.end() :] if spoken else line.words
    speaker, when, asking = (spoken["speaker"], spoken["when"] or "", spoken["asked"]) if spoken else ("", "", None)
    unit = Unit(words, line.kind, index, 0.0, line.number, speaker=speaker, when=when)
    if unit.by_tool:  # it may imitate a speaker within its line
        yield from (replace(unit, text=one, kind="technical") for one in words.split(_TOOL_SEPARATOR))
        return
    if line.is_code or unit.is_call:  # a command may have dots in it
        yield unit
        return
    question = ""
    for text in sentences_of(words):
        answer = marks.ANSWER.match(text)
        if answer:
            unit = replace(unit, asked=question, asker=unit.speaker, speaker=answer["speaker"])
            unit = replace(unit, when=answer["when"] or "")
            asking, question = None, ""
        elif asking:
            question = f"{question} {plain(text)}".strip()
            continue
        yield replace(unit, text=plain(text[answer.end() :] if answer else text))
        unit = replace(unit, asked="", asker="")
    if question:
        yield replace(unit, text=question)


def weighed(units: Sequence[Unit]) -> list[Unit]:
    """Statements of finished summaries with their worth by now, without fillers where something else was said."""
    units = [one for one in units if _is_reported(one) or one.kind == "open" or not is_filler(one.told)] or units
    works = any(one.by_tool or one.is_call for one in units)
    advice = advice_share([one.speaker == "assistant" for one in units], works=works)
    found: list[Unit] = []
    for one in units:
        worth, by_assistant = telling(one.text), one.speaker == "assistant"
        share = REPORTED if _is_reported(one) else advice if by_assistant else 1.0
        needs_question = by_assistant or worth < 1.0
        asked, asker = (one.asked, one.asker) if needs_question else ("", "")
        text = _shortened(one.text)
        found.append(replace(one, text=text, asked=asked, asker=asker, weight=one.weight * worth * share))
    return found


def _is_reported(unit: Unit) -> bool:
    """Whether nobody said it in words."""
    return unit.by_tool or unit.is_call or unit.is_code


def _of_messages(sources: Sequence[SourceText]) -> Iterator[Unit]:
    """Statements, a question with the answer that the next one who speaks gives."""
    shown = [(source, index) for index, source in enumerate(sources) if source.same_as is None and source.text]
    said = [one for one in shown if not one[0].states_nothing] or shown
    read = [(source, list(_of_message(source, index))) for source, index in said]
    waiting: list[tuple[SourceText, list[Unit]]] = []
    """Messages that end with questions which nobody answered yet."""
    for source, units in read:
        if source.role == "tool" or (source.role == "assistant" and units and all(one.is_call for one in units)):
            continue  # it answers behind these
        if waiting and (waiting[0][0].speaker, waiting[0][0].role) != (source.speaker, source.role):
            if len(waiting) == 1:  # else nobody knows which of them is answered
                _pair(waiting[0][1], units)
            waiting = []
        if _last_question(units) is not None:
            waiting.append((source, units))
    if waiting:
        units = waiting[-1][1]
        asked = _last_question(units)
        if asked is not None:
            units[asked] = replace(units[asked], kind="open", weight=units[asked].weight * _OPEN_WEIGHT)
    has_assistant = any(source.role == "assistant" for source in sources)
    for source, units in read:
        wanted = _ASKING_WEIGHT if has_assistant and source.role == "user" else 1.0
        yield from (replace(unit, weight=unit.weight * wanted) for unit in units)


def _pair(asking: list[Unit], answering: list[Unit]) -> None:
    """Put the question that a message ends with before its answer, the first statement of the next message.

    That is none where it asks itself, or only says that an answer comes.
    """
    asked = _last_question(asking)
    answer = next((place for place, unit in enumerate(answering) if not unit.text.endswith(":")), None)
    if asked is None or answer is None:
        return
    first = answering[answer]
    if not (asks(first.text) or first.is_code or first.is_call):
        question = asking.pop(asked)
        words = clause_cut(question.text, most_chars=_MAX_QUESTION_CHARS)
        if asked and asks(asking[-1].text) and len(asking[-1].text) + len(words) < _MAX_QUESTION_CHARS:
            words = f"{asking.pop().text} {words}"  # asked in one breath
        answering[answer] = replace(first, asked=words, asker=question.speaker)


def _last_question(units: Sequence[Unit]) -> int | None:
    """The question that a message ends with; code may stand behind it."""
    place = next((place for place in reversed(range(len(units))) if not units[place].is_code), None)
    return place if place is not None and asks(units[place].text) and not units[place].by_tool else None


def _of_message(source: SourceText, index: int) -> Iterator[Unit]:
    date = marks.date_of(source.at)
    speaker = marks.speaker_label(source.speaker, source.role)
    text, calls, written = split_calls(source.text) if source.role == "assistant" else (source.text, [], [])
    is_tool = source.role == "tool"
    said = [Statement(line) for line in shown_lines(text)] if is_tool else statements(without_fields(text))
    of_role = _UNSPOKEN_WEIGHT if source.role in ("system", "tool") else 1.0
    code = Unit("", "technical", index, 0.0, speaker=speaker, weight=_UNSPOKEN_WEIGHT * of_role)
    at_length = math.sqrt(min(1.0, _FEW_STATEMENTS / max(1, len(said))))
    for one in said[:_MAX_STATEMENTS]:
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
        weight *= _FAILURE_WEIGHT if is_tool and cues.FAILURE.search(low) else of_role
        when = date if cues.RELATIVE_TIME.search(low) else ""
        yield Unit(shown, _message_kind(shown, source), index, 0.0, speaker=speaker, when=when, weight=weight)
    yield from (replace(code, text=call) for call in calls)
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
    if len(text) < MAX_CHARS or text.startswith((marks.CODE, marks.USED)):
        return text
    text = " ".join(text.split())
    low = cues.lowered(text[:_MAX_CUE_CHARS])
    cue = cues.DECISION.search(low) or cues.CONSTRAINT.search(low) or cues.FAILURE.search(low)
    return clause_cut(text, most_chars=MAX_CHARS + MAX_CHARS // 2, reach=cue.end() if cue else 0)
