"""What the prompts of condensing models say: the rules, the forms, and what is told beside the messages.

One call asks for one summary or for several. Its instructions stand once, at the front, without rules and headings
that nothing in the call has a use for. What is asked for alone is told more of its strategy: what it is for, and what
belongs under each heading, or a user's own instructions in the place of that. The rules stay whatever these say.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.marks import TOOL_MARK
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.summaries.writers.jobs import NOTES
from langchain_tiered_memory.summaries.writers.sections import COMPLETE, FLAT_TOKENS, FORMS
from langchain_tiered_memory.text.fencing import MAX_NAME_CHARS, neutralised_part, plain_label
from langchain_tiered_memory.text.truncation import GAP
from langchain_tiered_memory.types.arguments import MOST_NOTE_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob

WORDS_PER_TOKEN = 0.75
"""Of English prose and of notes."""
_SEVERAL = (
    "You condense parts of one conversation, each by itself. Whoever goes on with it reads your summaries instead of"
    " the messages."
)
_FORM = "\n- Write Markdown bullets; a part of a kind has its `##` headings, "
_EMPTY_GOES = "no empty ones."
_EMPTY_STAYS = 'all of them: "None." stands under one that would be empty.'


@cache
def packaged_text(name: str) -> str:
    """A text of this folder."""
    return resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()


def rules_for(jobs: Sequence[CondenseJob]) -> str:
    """The rules without those on marks that nothing in `jobs` has."""
    sources = [source for job in jobs for source in job.sources]
    unused = {
        "- `[tool]`": not any(one.role in ("tool", "system") or TOOL_MARK in one.text for one in sources),
        "- `<kept>`": not any(job.kept for job in jobs),
        "- `[...]`": not any(GAP in one.text for one in sources),
        "- `of`": not any(job.level > 1 for job in jobs),
    }
    rules = packaged_text("rules").splitlines()
    return "\n".join(rule for rule in rules if not unused.get(rule[: rule.find("`", 3) + 1], False))


def instructions(jobs: Sequence[CondenseJob], *, alone: bool = False) -> str:
    """The part of the prompt that tells how to write `jobs`, or a single one that is asked for `alone`.

    A job's own instructions stand in the place of ours. `{sections}` in them is the list of sections; without it, they
    are taken to describe a form of their own.
    """
    job = jobs[0]
    empty = _EMPTY_STAYS if alone and job.strategy in COMPLETE else _EMPTY_GOES
    has_own_form = alone and job.instructions is not None and "{sections}" not in job.instructions
    text = packaged_text("batch").replace("{rules}", rules_for(jobs))
    text = text.replace("{notes}", f"\n{packaged_text('notes')}" if any(one.strategy == NOTES for one in jobs) else "")
    text = text.replace("{form}", "" if has_own_form else f"{_FORM}{empty}")
    text = text.replace("{forms}", "" if alone else _headings(jobs))
    return text.replace("{purpose}", _purpose(job) if alone else _SEVERAL)


def _headings(jobs: Sequence[CondenseJob]) -> str:
    strategies = dict.fromkeys(job.strategy for job in jobs if not is_plain(job) and job.strategy != NOTES)
    forms = "".join(
        f"`{strategy}`: {', '.join(section.heading for section in FORMS[strategy])}.\n" for strategy in strategies
    )
    return f"\n{forms}" if forms else ""


def _purpose(job: CondenseJob) -> str:
    """What a job that is asked for alone is told of its strategy, or a user's instructions."""
    own = job.instructions if job.instructions is not None else default_instructions(job.strategy)
    form = "\n".join(f"## {section.heading}\n({section.asks})" for section in FORMS[job.strategy])
    sections = "" if is_plain(job) else f"Write these sections, in Markdown, in this order:\n\n{form}"
    return own.strip().replace("{sections}", sections).strip()


def default_instructions(strategy: str) -> str:
    """Our own instructions for `strategy` in the form that custom ones have: a text with `{sections}` in it."""
    return f"{packaged_text(strategy)}\n\n{{sections}}"


def words_of(tokens: int) -> int:
    """A size as a model is told it: it counts words better than tokens."""
    return max(1, round(tokens * WORDS_PER_TOKEN))


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
    return job.target_tokens < FLAT_TOKENS and job.instructions is None and job.strategy not in (*COMPLETE, NOTES)


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


def about(jobs: Sequence[CondenseJob]) -> list[str]:
    """The title of the session, in a line; none where it has none."""
    title = next((job.title for job in jobs if job.title), None)
    return [f"<session>Title: {plain_label(title, max_chars=MAX_NAME_CHARS)}</session>"] if title else []
