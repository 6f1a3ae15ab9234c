"""Builds the prompt that asks for one summary or several in a call.

Of what stands around each message as little as tells who spoke and when: where messages are short, framing and
instructions would be most of what a model reads.

Behind an agent's request nothing in that can be marked, for its bytes must stay. So a stretch of messages is named by
how its first one begins and by how many there are, where no other message begins so; else its texts are quoted.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.marks import as_merged
from langchain_tiered_memory.summaries.prompts.building import (
    about,
    instructions,
    is_plain,
    kept_block,
    packaged_text,
    remarks,
    words_of,
)
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.summaries.writers.jobs import NOTES
from langchain_tiered_memory.text.fencing import neutralised_part, plain_name
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, Part, SourceText


_NEWS_SECONDS = 3600.0
"""The time of a message is told where so much passed since the one before it, or another day began."""
_ALIKE = "(nearly the same as an earlier message)"
_EARLIER = "earlier"

_RULES_BEGIN = "\n- "
"""Where the rules begin that both prompts for several summaries share."""
_QUOTED_CHARS = (40, 80, 160, 320)
"""Of a message's beginning, as many as tell it from the others. Four characters are a token; names of tools and paths
take the first of them in many messages of an agent."""


def build_batch(parts: Sequence[Part]) -> list[BaseMessage]:
    """System and human message that ask for all of `parts`; one that is asked for alone is told more of its form."""
    jobs = [part.job for part in parts]
    alone = len(jobs) == 1 and jobs[0].strategy != NOTES
    told: list[str] = []
    last: float | None = None
    for number, part in enumerate(parts, 1):
        if part.job.level > 1:
            lines = _merged_lines(part)
        else:
            lines, last = _message_lines(part.job.sources, last)
        told.append(_part(part, number, lines))
    text = "\n".join([*about(jobs), *kept_block(jobs), *told])
    return [SystemMessage(instructions(jobs, alone=alone)), HumanMessage(text)]


def _part(part: Part, number: int, lines: Sequence[str]) -> str:
    again = (f"<again>{remark}</again>" for remark in remarks(part.job))
    return "\n".join([_part_tag(part, number), *lines, *again])


def _part_tag(part: Part, number: int) -> str:
    """The line that opens a part: its number, its form, what it merges, its size."""
    job = part.job
    if job.strategy == NOTES:
        has = sum(len(line_of(one).split()) for one in job.kept)
        told = f"The notes in <kept> have {has} words, and room for {words_of(job.target_tokens)}."
        return f"<part {number} {NOTES} words={words_of(job.max_tokens)}>\n{told}"
    form = "" if is_plain(job) else f" {job.strategy}"
    of = ""
    if job.level > 1:
        earlier = [_EARLIER] if len(part.below) < len(job.sources) else []
        of = f' of="{" ".join([*earlier, *(str(place + 1) for place in part.below.values())])}"'
    return f"<part {number}{form}{of} words={words_of(job.target_tokens)}>"


def _merged_lines(part: Part) -> list[str]:
    """Of what a part merges, those that were written before, each with the day that it ends on."""
    given = (one for one in part.job.sources if one.id not in part.below)
    return [f"<{_EARLIER} {day(one.at)}>\n{neutralised_part(as_merged(one.text, one.over))}" for one in given]


def _message_lines(sources: Sequence[SourceText], last: float | None) -> tuple[list[str], float | None]:
    """Messages, each behind a tag with its speaker, and with its time where that is not the `last` one told; that."""
    lines: list[str] = []
    for source in sources:
        when = ""
        if _is_news(last, source.at):
            when = f" {utc(source.at):%Y-%m-%d %H:%M}"
            last = source.at
        text = _ALIKE if source.same_as is not None else neutralised_part(source.text)
        lines.append(f"<m {_speaker(source)}{when}>{text}")
    return lines, last


def _is_news(last: float | None, at: float) -> bool:
    """Whether the time of a message is told: the first, one far from the last that was told, one of another day."""
    return last is None or abs(at - last) >= _NEWS_SECONDS or utc(at).date() != utc(last).date()


def _speaker(source: SourceText) -> str:
    said_by = plain_name(source.speaker, source.role) or source.role
    marked = source.role in ("tool", "system") and said_by != source.role
    return f"{source.role} {said_by}" if marked else said_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The messages of a request as texts, found by id and by how they begin."""

    places: Mapping[str, int]
    """By id."""
    texts: Sequence[str]
    """All that a person would read of each."""
    flat: Sequence[str]
    """Their beginnings on one line."""

    @classmethod
    def of(cls, messages: Sequence[BaseMessage], places: Mapping[str, int]) -> Shown:
        """Read once for a call."""
        texts = [text_of(message) for message in messages]
        return cls(places=places, texts=texts, flat=[flat(text) for text in texts])

    def place_of(self, source: SourceText) -> int | None:
        """Where a source stands word for word; `None` where it does not."""
        place = self.places.get(source.id)
        return place if place is not None and self.texts[place] == source.text else None

    def beginning(self, place: int) -> str | None:
        """How a message begins, as far as tells it from all others; `None` where nothing does."""
        own = self.flat[place]
        for length in _QUOTED_CHARS:
            begins = own[:length].rstrip()
            if begins and sum(one.startswith(begins) for one in self.flat) == 1:
                return begins
            if length >= len(own):
                break
        return None


def flat(text: str) -> str:
    """The beginning of a text on one line, as it is quoted."""
    return " ".join(text[: 2 * _QUOTED_CHARS[-1]].split())[: _QUOTED_CHARS[-1]]


def behind_instructions(jobs: Sequence[CondenseJob]) -> str:
    """The part of the message that tells how to write `jobs`."""
    _, _, rules = instructions(jobs).partition(_RULES_BEGIN)
    return f"{packaged_text('behind')}\n{_RULES_BEGIN}{rules}"


def build_behind(parts: Sequence[Part], shown: Shown) -> HumanMessage | None:
    """The message that stands behind a request; `None` where that shows nothing of what is asked for."""
    jobs = [part.job for part in parts]
    bodies = [_body(part, shown) for part in parts]
    if not any(stretches for _, stretches in bodies):
        return None
    lines = [behind_instructions(jobs), *about(jobs), *kept_block(jobs)]
    for number, (part, (body, _)) in enumerate(zip(parts, bodies, strict=True), 1):
        lines.append(_part(part, number, body))
    return HumanMessage("\n".join(lines))


def _body(part: Part, shown: Shown) -> tuple[list[str], int]:
    """The lines of a part, and how many stretches of the request they name."""
    job = part.job
    if job.level > 1:
        return _merged_lines(part), 0
    lines: list[str] = []
    stretches = at = 0
    last: float | None = None
    while at < len(job.sources):
        count = _standing(job, at, shown)
        begins = shown.beginning(shown.places[job.sources[at].id]) if count else None
        if begins is None:
            count = max(count, 1)
            lines += _message_lines(job.sources[at : at + count], None)[0]
        else:
            said_at = job.sources[at].at
            when = f" {utc(said_at):%Y-%m-%d %H:%M}" if _is_news(last, said_at) else ""
            lines.append(f"<stretch count={count}{when}>{neutralised_part(begins)}")
            stretches += 1
        at += count
        last = job.sources[at - 1].at
    return lines, stretches


def _standing(job: CondenseJob, start: int, shown: Shown) -> int:
    """How many sources from `start` on stand there one behind the other, until one whose time is to be told."""
    first = shown.place_of(job.sources[start])
    if first is None:
        return 0
    count = 1
    for before, source in itertools.pairwise(job.sources[start:]):
        if _is_news(before.at, source.at) or shown.place_of(source) != first + count:
            break
        count += 1
    return count
