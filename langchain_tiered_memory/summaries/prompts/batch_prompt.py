"""Builds the prompt that asks for several summaries in one call.

The instructions stand once, at the front, the same bytes each time. Of what stands around each message as little as
tells who spoke and when: where messages are short, framing and instructions would be most of what a model reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.summaries.marks import as_merged
from langchain_tiered_memory.summaries.prompts.building import (
    is_plain,
    kept_block,
    not_taken,
    packaged_text,
    shared_rules,
)
from langchain_tiered_memory.summaries.writers.sections import FORMS
from langchain_tiered_memory.text.fencing import MAX_NAME_CHARS, neutralised_part, plain_label, plain_name
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, Part, SourceText

_ALWAYS = ("thematic", "executive")
"""Strategies of higher levels that are told whether or not a part has them, so that the bytes stay the same."""
_NEWS_SECONDS = 3600.0
"""The time of a message is told where so much passed since the one before it, or another day began."""
_ALIKE = "(nearly the same as an earlier message)"
_RECORD = "the parts"
_EARLIER = "earlier"


def batch_instructions(strategies: Sequence[str]) -> str:
    """The fixed part of the prompt, for parts of these strategies; that of messages first."""
    forms = "\n".join(
        f"Headings of `{strategy}`: {', '.join(f'## {section.heading}' for section in FORMS[strategy])}."
        for strategy in dict.fromkeys((*strategies[:1], *_ALWAYS, *strategies))
    )
    return packaged_text("batch").replace("{rules}", shared_rules(_RECORD)).replace("{forms}", forms)


def build_batch(parts: Sequence[Part]) -> list[BaseMessage]:
    """System and human message that ask for all of `parts`."""
    jobs = [part.job for part in parts]
    text = "\n".join([*about(jobs), *kept_block(jobs), *(_part(part, number) for number, part in enumerate(parts, 1))])
    return [SystemMessage(batch_instructions([job.strategy for job in jobs])), HumanMessage(text)]


def about(jobs: Sequence[CondenseJob]) -> list[str]:
    """What is told of the session, in a line; none where there is nothing."""
    title = next((job.title for job in jobs if job.title), None)
    people = dict.fromkeys(plain_name(one) for job in jobs for one in job.participants)
    lines = [
        f"Title: {plain_label(title, max_chars=MAX_NAME_CHARS)}" if title else "",
        f"Participants: {', '.join(people)}" if people else "",
    ]
    said = [line for line in lines if line]
    return [f"<session>{'; '.join(said)}</session>"] if said else []


def _part(part: Part, number: int) -> str:
    lines = merged_lines(part) if part.job.level > 1 else message_lines(part.job.sources)
    return "\n".join([part_tag(part, number), *lines, *asked_again(part.job), "</part>"])


def part_tag(part: Part, number: int) -> str:
    """The line that opens a part: its number, its form, what it merges, its size."""
    job = part.job
    form = "plain" if is_plain(job) else job.strategy
    of = ""
    if job.level > 1:
        earlier = [_EARLIER] if len(part.below) < len(job.sources) else []
        of = f' of="{" ".join([*earlier, *(str(place + 1) for place in part.below.values())])}"'
    return f"<part {number} {form}{of} aim={job.target_tokens} most={job.max_tokens}>"


def merged_lines(part: Part) -> list[str]:
    """Of what a part merges, those that were written before."""
    given = (as_merged(one.text) for one in part.job.sources if one.id not in part.below)
    return [f"<{_EARLIER}>\n{neutralised_part(text)}" for text in given]


def asked_again(job: CondenseJob) -> list[str]:
    """Why it is asked for once more; none where it is the first time."""
    return [f"<again>{not_taken(job)}</again>"] if job.refused else []


def message_lines(sources: Sequence[SourceText]) -> list[str]:
    """Messages, each behind a tag with its speaker, and with its time where that changed."""
    lines: list[str] = []
    last: float | None = None
    for source in sources:
        when = ""
        if is_news(last, source.at):
            when = f" {utc(source.at):%Y-%m-%d %H:%M}"
            last = source.at
        text = _ALIKE if source.same_as is not None else neutralised_part(source.text)
        lines.append(f"<m {_speaker(source)}{when}>{text}")
    return lines


def is_news(last: float | None, at: float) -> bool:
    """Whether the time of a message is told: the first, one long after the one before it, one of another day."""
    return last is None or at - last >= _NEWS_SECONDS or utc(at).date() != utc(last).date()


def _speaker(source: SourceText) -> str:
    said_by = plain_name(source.speaker, source.role) or source.role
    marked = source.role in ("tool", "system") and said_by != source.role
    return f"{source.role} {said_by}" if marked else said_by
