"""Takes the answer to a call for one summary or several apart, and checks each.

Models answer sloppily: they forget closing tags, number parts in headings, or stop half-way. What can
be told apart is taken, each part is checked by itself, and what is missing is somebody else's to ask for again.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.checks.answers import (
    CUT_UP_TO,
    FAULTS,
    HALF,
    explained,
    fault,
    missing_sections,
    summary_text,
)
from langchain_tiered_memory.summaries.checks.soundness import shares
from langchain_tiered_memory.summaries.marks import is_kept, plain
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size, most_tokens
from langchain_tiered_memory.summaries.writers.jobs import NOTES, Condensed, Part, without_text
from langchain_tiered_memory.text.fencing import as_said
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.types.outcomes import FailureReason, Refused
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.settings import ValidationSettings
    from langchain_tiered_memory.summaries.writers.model_calls import Answer

_TAGS = tuple(
    re.compile(rf"<[ \t]{{0,4}}(/?)[ \t]{{0,4}}{name}(?![^\W\d_])([^<>\n]{{0,80}})>", re.IGNORECASE)
    for name in ("summary", "part")
)
"""Around a summary, as it was asked for, and as the part of the prompt that it is of."""
_LINE = re.compile(
    r"^[#*\[( \t]{0,8}(?:summary|part)()[ \t]{0,4}(\d{1,4})[\])*: \t]{0,8}$", re.IGNORECASE | re.MULTILINE
)
"""Above a summary, as in `## Part 3`."""
_NUMBER = re.compile(r"\d{1,4}")
ENDED = "cut off"
"""The fault of a part that is missing because the answer ended before it was whole."""
CUT_OFF = (ENDED, "the answer ended before it was whole")
CLEARLY = 0.2
"""More of a summary's terms in another stretch than in its own. Of summaries under the number of another part it and
the usual checks find 138 of 157 (those alone 68); one of 161 is taken for such wrongly: `benchmarks/mixed_parts.py`."""
_MISSING = ("missing", "it was not in the answer, or not between tags of its own")


def taken_apart(
    answer: Answer,
    parts: Sequence[Part],
    *,
    writer: str,
    count_text: Callable[[str], int],
    validation: ValidationSettings,
) -> list[Condensed]:
    """What an answer of `writer` has for each of `parts`, checked, with its share of what the call took."""
    found = texts_by_number(answer.text, len(parts), cut_off=answer.cut_off)
    texts = [_as_meant(found.get(number, "")) for number in range(1, len(parts) + 1)]
    tokens = [count_text(text) if text else 0 for text in texts]
    spent = split_spent(answer.spent, [part.job.source_tokens for part in parts], [max(one, 1) for one in tokens])
    marks = any(map(is_kept, texts))
    judged: list[Condensed] = []
    for part, text, size, its in zip(parts, texts, tokens, spent, strict=True):
        given = Condensed(text=text, tokens=size, model=writer, spent=its, marks=marks)
        if text:
            beside = (other.job for other in parts if other is not part and other.job.level == 1)
            others = [[one.text for one in job.sources] for job in beside]
            taken = checked(given, part, count_text=count_text, validation=validation)
            judged.append(of_its_own(taken, part, others))
        else:
            said, why = CUT_OFF if answer.cut_off else _MISSING
            judged.append(without_text(given, said, why, FailureReason.EMPTY_SUMMARY))
    return judged


def checked(
    given: Condensed,
    part: Part,
    *,
    count_text: Callable[[str], int],
    validation: ValidationSettings,
    is_last: bool = False,
) -> Condensed:
    """The text as it may be used: cut, where it is a little too long; without its text, where it cannot be used.

    Of the answer that `is_last`, for it is not asked for again, more is cut, and half of the sections are enough.
    """
    job = part.job
    if job.strategy == NOTES:
        return given  # each of its lines is judged by itself
    cap = most_tokens(given.text, max_tokens=job.max_tokens, source_tokens=job.source_tokens)
    # What the same call wrote below it is not among the sources yet: it is judged when it is.
    judged = None if part.below else validation
    wrong = fault(given.text, job, tokens=given.tokens, max_tokens=cap, validation=judged)
    taken = given
    if wrong == "too long" and (is_last or given.tokens <= cap * CUT_UP_TO):
        taken = cut_to(given, cap, count_text=count_text)
        wrong = None if taken.text else wrong
    elif wrong == "sections" and is_last and missing_sections(given.text, job) <= HALF:
        wrong = None
    if wrong is not None:
        return without_text(given, wrong, explained(wrong, tokens=given.tokens, max_tokens=cap), FAULTS[wrong][0])
    return taken


def of_its_own(answer: Condensed, part: Part, others: Sequence[Sequence[str]]) -> Condensed:
    """The answer without its text, where another stretch of the conversation has clearly more of its words.

    A model that has several stretches before it may mix up their numbers, which the usual checks take for sound in six
    cases of ten, for one conversation has many words in common.
    """
    if not answer.text or part.job.level > 1 or part.job.strategy == NOTES:
        return answer
    own = [source.text for source in part.job.sources]
    found = shares(answer.text, [[*own, *part.job.known], *others])
    if found is None or max(found) <= found[0] + CLEARLY:
        return answer
    return without_text(answer, "another part", "it tells of another part", FailureReason.UNSOUND)


def cut_to(given: Condensed, max_tokens: int, *, count_text: Callable[[str], int]) -> Condensed:
    """A text within its size; empty where not a word fits."""
    cut = cut_to_size(given.text, max_tokens=max_tokens, count_text=count_text)
    return replace(given, text=cut.text, tokens=count_text(cut.text), cut_lines=given.cut_lines + cut.lines)


def text_alone(answer: Answer) -> tuple[str, bool]:
    """What an answer says that was asked for one summary, and whether that is all of it.

    It stands between its tags, else it is the whole answer. Of one that was cut off, what it ended in is none of it.
    """
    found = _by_marks(answer.text, 1, _TAGS, cut_off=answer.cut_off).get(1)
    if found is not None:
        return _as_meant(found), True
    text = _as_meant(_TAGS[0].sub("", answer.text))
    if not answer.cut_off:
        return text, True
    whole, _, last = text.rpartition("\n")
    return whole or " ".join(piece.text for piece in pieces(last)[:-1]), False


def _as_meant(text: str) -> str:
    """A summary without a fence around it, in the words and with the marks that its writer meant."""
    return plain(as_said(summary_text(text)))


def texts_by_number(answer: str, count: int, *, cut_off: bool = False) -> dict[int, str]:
    """The texts of an answer that has several, by the numbers of the parts (1 and up) that they are for.

    What a `cut_off` answer ended in is none of them.
    """
    return _by_marks(answer, count, (*_TAGS, _LINE), cut_off=cut_off)


def _by_marks(answer: str, count: int, marks: Sequence[re.Pattern[str]], *, cut_off: bool) -> dict[int, str]:
    """Of an answer whose parts stand between tags or under lines, by the first of `marks` that tells them apart."""
    return next((found for mark in marks if (found := _parted(answer, count, mark, cut_off=cut_off))), {})


def _parted(answer: str, count: int, mark: re.Pattern[str], *, cut_off: bool) -> dict[int, str]:
    """Of an answer whose parts have such marks; what stands within one decides no other.

    A part may quote a tag. Where every tag is closed, what is nested is told by that. Else a number that is opened
    twice is nobody's, and so is the part before it.
    """
    tags = list(mark.finditer(answer))
    openings = [tag for tag in tags if not tag[1]]
    outer, closes = _outermost(tags), len(openings) < len(tags)
    if outer is not None:
        spans = outer
    else:
        stops = [*(tag.start() for tag in tags[1:]), len(answer)][: len(tags)]
        spans = [(tag, stop) for tag, stop in zip(tags, stops, strict=True) if not tag[1]]
        if spans and tags[-1] is spans[-1][0] and (closes or cut_off):
            spans[-1] = (tags[-1], tags[-1].end())  # others end and this one does not: the answer was broken off in it
    begins = {tag.start() for tag, _ in spans} if outer is None else set[int]()
    return _sure(
        [(_number_of(tag, place), answer[tag.end() : stop]) for place, (tag, stop) in enumerate(spans, 1)],
        count,
        ends_at_next=[stop in begins for _, stop in spans],
    )


def _sure(read: Sequence[tuple[int, str]], count: int, *, ends_at_next: Sequence[bool]) -> dict[int, str]:
    """Which texts are certainly the ones of their numbers.

    A number that stands twice is nobody's, for one of the two is quoted; and so is the part before it, in which that
    may be. Where a part ends only because the next begins, the next has a higher number. Some count from 0.
    """
    given = {number for number, _ in read}
    from_0 = 0 in given and count not in given
    read = [(number + from_0, text) for number, text in read]
    numbers = [number for number, _ in read]
    times = Counter(numbers)
    found: dict[int, str] = {}
    for (number, text), following, is_open in zip(read, [*numbers[1:], None], ends_at_next, strict=False):
        is_sure = times[number] == 1 and 1 <= number <= count
        if following is not None:
            is_sure = is_sure and times[following] == 1 and (not is_open or number < following <= count)
        if is_sure and text.strip():
            found[number] = text.strip()
    return found


def _outermost(tags: Sequence[re.Match[str]]) -> list[tuple[re.Match[str], int]] | None:
    """The openings that stand in no other element, each with where it ends; `None` where the tags do not pair up."""
    found: list[tuple[re.Match[str], int]] = []
    nested: list[re.Match[str]] = []
    for tag in tags:
        if not tag[1]:
            nested.append(tag)
        elif not nested:
            return None
        else:
            opening = nested.pop()
            if not nested:
                found.append((opening, tag.start()))
    return found if found and not nested else None


def _number_of(tag: re.Match[str], place: int) -> int:
    """The part that an opening tag is for: its number, or its place where it has none."""
    number = _NUMBER.search(tag[2])
    return int(number[0]) if number is not None else place


def nothing(parts: Sequence[Part], writer: str, spent: Spent, why: str = "") -> list[Condensed]:
    """Of a call that brought nothing: the parts without text, with what it took and why, if that is told."""
    shares = split_spent(spent, [part.job.source_tokens for part in parts], [1 for _ in parts])
    refused = (Refused("no answer", why),) if why else ()
    reason = FailureReason.EMPTY_SUMMARY
    return [Condensed(text="", tokens=0, model=writer, spent=its, refused=refused, reason=reason) for its in shares]


def split_spent(spent: Spent, read: Sequence[int], written: Sequence[int]) -> list[Spent]:
    """What a call took, split over its parts: what it read and took in time by `read`, what it wrote by `written`.

    The shares add up to the whole; the call itself is counted with the first part.
    """
    inputs, outputs = _split(spent.input_tokens, read), _split(spent.output_tokens, written)
    total = max(sum(read), 1)
    return [
        Spent(
            calls=spent.calls if place == 0 else 0,
            input_tokens=inputs[place],
            output_tokens=outputs[place],
            seconds=spent.seconds * read[place] / total,
        )
        for place in range(len(read))
    ]


def _split(whole: int, weights: Sequence[int]) -> list[int]:
    """`whole` in parts of the given weights, by what each further part adds to the sum: nothing is lost by rounding."""
    total, before, past = max(sum(weights), 1), 0, 0
    found: list[int] = []
    for weight in weights:
        past += weight
        reached = whole * past // total
        found.append(reached - before)
        before = reached
    if found:
        found[-1] += whole - before
    return found
