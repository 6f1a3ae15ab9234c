"""Builds the message that asks for several summaries of what stands in the request before it.

Nothing in that request can be marked, for its bytes must stay. So a stretch of messages is named by how its first one
begins and by how many there are, where no other message begins so; else its texts are quoted, as in any other prompt.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import HumanMessage

from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.summaries.prompts.batch_prompt import (
    about,
    asked_again,
    batch_instructions,
    is_news,
    merged_lines,
    message_lines,
    part_tag,
)
from langchain_tiered_memory.summaries.prompts.building import kept_block, packaged_text
from langchain_tiered_memory.text.fencing import neutralised_part
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, Part, SourceText

_RULES_BEGIN = "\n- "
"""Where the rules begin that both prompts for several summaries share."""
_QUOTED_CHARS = (40, 80, 160, 320)
"""Of a message's beginning, as many as tell it from the others. Four characters are a token; names of tools and paths
take the first of them in many messages of an agent."""


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


def behind_instructions(strategies: Sequence[str]) -> str:
    """The fixed part of the message."""
    _, _, rules = batch_instructions(strategies).partition(_RULES_BEGIN)
    return f"{packaged_text('behind')}\n{_RULES_BEGIN}{rules}"


def build_behind(parts: Sequence[Part], shown: Shown) -> HumanMessage | None:
    """The message that stands behind a request; `None` where that shows nothing of what is asked for."""
    jobs = [part.job for part in parts]
    bodies = [_body(part, shown) for part in parts]
    if not any(body.stretches for body in bodies):
        return None
    lines = [behind_instructions([job.strategy for job in jobs]), *about(jobs), *kept_block(jobs)]
    for number, (part, body) in enumerate(zip(parts, bodies, strict=True), 1):
        lines += [part_tag(part, number), *body.lines, *asked_again(part.job), "</part>"]
    return HumanMessage("\n".join(lines))


@dataclass(frozen=True, slots=True)
class _Body:
    lines: list[str]
    stretches: int


def _body(part: Part, shown: Shown) -> _Body:
    job = part.job
    if job.level > 1:
        return _Body(merged_lines(part), 0)
    lines: list[str] = []
    stretches = at = 0
    last: float | None = None
    while at < len(job.sources):
        count = _standing(job, at, shown)
        begins = shown.beginning(shown.places[job.sources[at].id]) if count else None
        if begins is None:
            count = max(count, 1)
            lines += message_lines(job.sources[at : at + count])
        else:
            said_at = job.sources[at].at
            when = f" {utc(said_at):%Y-%m-%d %H:%M}" if is_news(last, said_at) else ""
            lines.append(f"<stretch count={count}{when}>{neutralised_part(begins)}")
            stretches += 1
        at += count
        last = job.sources[at - 1].at
    return _Body(lines, stretches)


def _standing(job: CondenseJob, start: int, shown: Shown) -> int:
    """How many sources from `start` on stand there one behind the other, until one whose time is to be told."""
    first = shown.place_of(job.sources[start])
    if first is None:
        return 0
    count = 1
    for before, source in itertools.pairwise(job.sources[start:]):
        if is_news(before.at, source.at) or shown.place_of(source) != first + count:
            break
        count += 1
    return count
