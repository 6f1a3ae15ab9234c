"""Builds the prompt of one condensation.

The system message is the same for every job of a strategy, so a provider's prompt cache can keep it; all that varies
stands in the human message behind it. Sources are fenced in elements that their own text cannot close: what looks
like one of our tags is changed by one character. The fence and the rules stay whatever custom instructions are given.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.marks import TOOL_MARK, as_merged, is_kept
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.summaries.tree.sizing import HEADROOM
from langchain_tiered_memory.summaries.writers.jobs import NOTES
from langchain_tiered_memory.summaries.writers.sections import COMPLETE, FLAT_TOKENS, FORMS
from langchain_tiered_memory.text.fencing import (
    MAX_NAME_CHARS,
    neutralised_part,
    neutralised_source,
    plain_label,
    plain_name,
)
from langchain_tiered_memory.types.arguments import MOST_NOTE_CHARS
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, SourceText

WORDS_PER_TOKEN = 0.75
"""Of English prose and of notes."""
_LEFT_OUT = "[..."
"""How what stands for text that is left out begins."""
_BESIDE_TOOL, _SAID_INSTEAD = ", beside `[tool]` where that stands,", " unless `[instead of ...]` says it"
"""What other rules say of these marks."""
_EMPTY_GOES = "Leave out a section that would be empty."
_PLAIN = " It is short: write plain bullets, without headings."
_NOTED = " Points marked `[keep]` are listed beside your summary: lean on them, do not repeat them, and mark nothing."
_RECORD = "<source> elements"
_EMPTY_STAYS = 'Write every section; where there is nothing to say, write "None." under its heading.'


@cache
def packaged_text(name: str) -> str:
    """A text of this folder."""
    return resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def shared_rules(record: str) -> str:
    """The rules that every prompt has; `record` is what it calls the texts that are condensed."""
    return packaged_text("rules").replace("{record}", record)


def rules_for(jobs: Sequence[CondenseJob], record: str) -> str:
    """The shared rules without those on marks that nothing in `jobs` has."""
    sources = [source for job in jobs for source in job.sources]
    unused = {
        "- `[tool]`": not any(one.role in ("tool", "system") or TOOL_MARK in one.text for one in sources),
        "- `<kept>`": not any(job.kept for job in jobs),
        "- `[...]`": not any(_LEFT_OUT in one.text for one in sources),
    }
    rules = [rule for rule in shared_rules(record).splitlines() if not unused.get(rule[: rule.find("`", 3) + 1], False)]
    told = "\n".join(rules)
    if unused["- `[tool]`"]:
        told = told.replace(_BESIDE_TOOL, "")
    return told.replace(_SAID_INSTEAD, "") if unused["- `<kept>`"] else told


def instructions(strategy: str, *, custom: str | None = None) -> str:
    """The fixed part of the prompt of `strategy`.

    `custom` stands in the place of our text. `{sections}` in it is the list of sections; without it, the text is taken
    to describe its own form. The rules (report, do not follow; the conversation's language) follow in any case.
    """
    empty = _EMPTY_STAYS if strategy in COMPLETE else _EMPTY_GOES
    alone = "Answer with the summary alone: no introduction, no remark about these rules or its size."
    rules = f"Rules:\n{shared_rules(_RECORD)}\n- {empty}\n- {alone}"
    form = "\n".join(f"## {section.heading}\n({section.asks})" for section in FORMS[strategy])
    sections = f"Write these sections, in Markdown, in this order:\n\n{form}"
    if custom is None:
        return f"{packaged_text(strategy)}\n\n{rules}\n\n{sections}"
    return f"{custom.strip().replace('{sections}', sections)}\n\n{rules}"


def default_instructions(strategy: str) -> str:
    """Our own instructions for `strategy` in the form that custom ones have: a text with `{sections}` in it."""
    return f"{packaged_text(strategy)}\n\n{{sections}}"


def build_prompt(job: CondenseJob) -> list[BaseMessage]:
    """System and human message for `job`, by its own instructions where it has some."""
    task = (
        f"Summarise the sources by the rules above. Aim at {job.target_tokens} tokens (about"
        f" {words_of(job.target_tokens)} words), less where little came of it, and never write more than"
        f" {limit_of(job)} tokens."
    )
    if job.level > 1 and any(is_kept(source.text) for source in job.sources):
        task += _NOTED
    if is_plain(job) and job.instructions is None:
        task += _PLAIN
    task += "".join(f"\n{remark}" for remark in remarks(job))
    parts = [
        f"<session>\n{_about(job)}\n</session>",
        *kept_block([job]),
        "<sources>\n" + "\n".join(_fenced(job, number) for number in range(len(job.sources))) + "\n</sources>",
        f"<task>\n{task}\n</task>",
    ]
    return [SystemMessage(instructions(job.strategy, custom=job.instructions)), HumanMessage("\n\n".join(parts))]


def words_of(tokens: int) -> int:
    """A size as a model is told it: it counts words better than tokens."""
    return max(1, round(tokens * WORDS_PER_TOKEN))


def limit_of(job: CondenseJob) -> int:
    """The most tokens that a model is told: a little above its aim. What it writes beyond that is cut at the cap."""
    return min(job.max_tokens, round(job.target_tokens * HEADROOM))


def kept_block(jobs: Sequence[CondenseJob]) -> list[str]:
    """The statements that were kept of earlier messages, each behind its place, from 1 on; none for none.

    Jobs of one call have the same ones, or none.
    """
    kept = next((job.kept for job in jobs if job.kept), ())
    dated = any(job.strategy == NOTES for job in jobs)  # what is past is told by its day
    lines = [
        f"{place}{f' ({day(one.at)})' if dated else ''}: {neutralised_part(line_of(one))}"
        for place, one in enumerate(kept, 1)
    ]
    return ["\n".join(["<kept>", *lines, "</kept>"])] if lines else []


def is_plain(job: CondenseJob) -> bool:
    """Whether headings would take more room than they are worth."""
    return job.target_tokens < FLAT_TOKENS and job.strategy not in (*COMPLETE, NOTES)


def remarks(job: CondenseJob) -> list[str]:
    """Why a job is asked for once more: in a validator's words, which may be a user's own, and in a person's."""
    found: list[str] = []
    if job.refused:
        why = neutralised_part(plain_label(job.refused)).rstrip(".")
        found.append(f"An answer before was not taken: {why}. Write one without that fault.")
    if job.correction:
        said = neutralised_part(plain_label(job.correction, max_chars=MOST_NOTE_CHARS)).rstrip(".")
        found.append(f"A person read the summary before and says: {said}. The new one has to say so.")
    return found


def build_repair(prompt: list[BaseMessage], answer: str, *, wrong: str) -> list[BaseMessage]:
    """The prompt again with the unusable answer and what is wrong with it."""
    return [
        *prompt,
        AIMessage(answer or "(nothing)"),
        HumanMessage(
            f"That cannot be used: {wrong}. Write the summary again, by the same rules, and answer with it alone."
        ),
    ]


def title_and_people(jobs: Sequence[CondenseJob]) -> list[str]:
    """What is known of the session, a line each."""
    title = next((job.title for job in jobs if job.title), None)
    people = dict.fromkeys(plain_name(one) for job in jobs for one in job.participants)
    lines = [f"Title: {plain_label(title, max_chars=MAX_NAME_CHARS)}"] if title else []
    return [*lines, f"Participants: {', '.join(people)}"] if people else lines


def _about(job: CondenseJob) -> str:
    what = "messages" if job.level == 1 else f"summaries of level {job.level - 1}"
    lines = (
        *title_and_people([job]),
        f"Time: {_time(job.first_at)} to {_time(job.last_at)}",
        f"Messages covered: {job.message_count}",
        f"To summarise: {len(job.sources)} {what}",
    )
    return "\n".join(lines)


def _fenced(job: CondenseJob, number: int) -> str:
    source = job.sources[number]
    opening = f'<source n="{number + 1}"{_speaker(source)} time="{_time(source.at)}"'
    if source.same_as is not None:
        earlier = next((place for place, other in enumerate(job.sources, 1) if other.id == source.same_as), None)
        if earlier is not None:
            return f"{opening}>(says nearly the same as source {earlier})</source>"
    text = source.text if job.level == 1 else as_merged(source.text)
    return f"{opening}>\n{neutralised_source(text)}\n</source>"


def _speaker(source: SourceText) -> str:
    said_by = f' speaker="{plain_name(source.speaker, source.role)}"' if source.speaker else ""
    role = f' role="{source.role}"' if source.role in ("tool", "system") else ""
    return said_by + role


def _time(at: float) -> str:
    return f"{utc(at):%Y-%m-%d %H:%M} UTC"
