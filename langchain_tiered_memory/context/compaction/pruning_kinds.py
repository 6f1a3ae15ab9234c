"""The words of `Entry.kind`, which is free text, that mean something to pruning."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

NamedKind: TypeAlias = Literal[
    "system",
    "task",
    "criteria",
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
]

_WORDS: dict[NamedKind, str] = {
    "system": "system system_prompt system_role_prompt role_prompt system_message",
    "task": "task task_description current_task current_task_description goal objective mission user_story",
    "criteria": "acceptance_criteria acceptance_criterion current_task_acceptance_criteria criteria definition_of_done",
    "code": "code active_code active_file active_file_being_edited file_content source_code",
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
}
_SEPARATORS = re.compile(r"[\s/.-]+")


def _plural(word: str) -> str:
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


_KINDS: dict[str, NamedKind] = {
    spelt: kind for kind, words in _WORDS.items() for word in words.split() for spelt in (word, _plural(word))
}


def named_kind(kind: str | None) -> NamedKind | None:
    """What a kind given by a caller means here, in singular or plural and however its words are joined."""
    return _KINDS.get(_SEPARATORS.sub("_", kind.strip().lower())) if kind else None
