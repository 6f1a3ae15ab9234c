"""The words of `Entry.kind`, which is free text, that mean something to pruning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.context.compaction.scoring import Priority
    from langchain_tiered_memory.types.records import Entry

NamedKind: TypeAlias = Literal[
    "system",
    "task",
    "criteria",
    "active_file",
    "code",
    "feedback",
    "error",
    "examples",
    "pull_request",
    "dependency",
    "structure",
    "metric",
    "guideline",
    "link",
    "debug",
    "deprecated",
    "finished",
    "resolved",
    "redundant",
    "recent_history",
    "old_history",
]

_WORDS: dict[NamedKind, str] = {
    "system": "system system_prompt system_role_prompt role_prompt system_message",
    "task": "task task_description current_task current_task_description goal objective mission user_story",
    "criteria": "acceptance_criteria acceptance_criterion current_task_acceptance_criteria criteria definition_of_done",
    "active_file": "active_file active_file_being_edited file_being_edited current_file",
    "code": "code active_code file_content source_code",
    "feedback": "feedback recent_feedback user_feedback review review_comment code_review",
    "error": "error critical_error critical_error_context error_context error_message exception failure stack_trace",
    "examples": "example template example_code code_example example_code_snippet snippet code_snippet few_shot",
    "pull_request": "pr pull_request active_pr active_pr_context merge_request pr_context",
    "dependency": "dependency dependency_information dependency_info",
    "structure": "structure file_structure current_file_structure project_structure file_tree directory_tree",
    "metric": "metric success_metric measurement",
    "guideline": "guideline project_guideline convention style_guide coding_standard",
    "link": "link documentation_link reference_link doc_link url",
    "debug": "debug debug_info debug_output temporary_debug_info temporary_debug_output temporary scratch debug_log",
    "deprecated": "deprecated deprecated_context obsolete outdated superseded",
    "finished": "completed_task completed_task_detail finished_task",
    "resolved": "resolved_error old_error_message",
    "redundant": "redundant redundant_information duplicate",
    "recent_history": "recent_task_history",
    "old_history": "old_task_history",
}
PRIORITIES: dict[NamedKind, Priority] = {
    "system": 1, "task": 1, "criteria": 1, "active_file": 1, "error": 1,
    "recent_history": 2, "pull_request": 2, "dependency": 2, "structure": 2, "feedback": 2,
    "old_history": 3, "metric": 3, "guideline": 3, "examples": 3, "link": 3,
    "finished": 4, "resolved": 4, "deprecated": 4, "debug": 4, "redundant": 4,
}  # fmt: skip
"""The rows of the priority matrix that a caller can name. `code` is in none: where it stands tells."""
_SEPARATORS = re.compile(r"[\s/.-]+")


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


_KINDS: dict[str, NamedKind] = {
    spelt: kind for kind, words in _WORDS.items() for word in words.split() for spelt in (word, _plural(word))
}


def named_kind(kind: str | None) -> NamedKind | None:
    """What a kind given by a caller means here, in singular or plural and however its words are joined."""
    return _KINDS.get(_SEPARATORS.sub("_", kind.strip().lower())) if kind else None


def priority_of(entries: Iterable[Entry]) -> Priority | None:
    """The row of the matrix of messages by the kinds that they were given: the highest; `None` where they have none."""
    named = (named_kind(entry.kind) for entry in entries)
    return min((PRIORITIES[one] for one in named if one in PRIORITIES), default=None)
