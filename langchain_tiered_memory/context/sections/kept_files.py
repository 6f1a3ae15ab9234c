"""A ready section: what a run keeps of its files, in the place of reading them again.

It lists the files in hot and warm that were opened and did not change since, the last opened first, and quotes the one
that the question names, where there is room for it and it is not shown already.
"""

from __future__ import annotations

import posixpath
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning_items import LEAST_NAME_CHARS
from langchain_tiered_memory.errors import DamagedFileError
from langchain_tiered_memory.text.fencing import plain_label

if TYPE_CHECKING:
    from langchain_tiered_memory.extensions import SectionQuestion
    from langchain_tiered_memory.types.files import KeptFile

_HEADING = "Files opened before that have not changed since, last opened first:"
_LISTED = 20
"""Files that are looked at: what hot holds."""


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Shows the files that a run keeps. Register it: `memory.sections.register(KeptFiles())`."""

    share: float = 0.05
    name: str = "kept_files"

    def render(self, question: SectionQuestion) -> str | None:
        """The list, and the file that the question names."""
        kept = [one for one in question.reads.kept_files(limit=_LISTED) if one.tier != "cold"]
        fresh = [one for one in kept if question.reads.is_unchanged(one)]
        if not fresh:
            return None
        lines = [_HEADING]
        for file in fresh:
            if question.count("\n".join([*lines, _line(file)])) > question.room_tokens:
                break
            lines.append(_line(file))
        asked = next((one for one in fresh if _is_named(one, question.query)), None)
        quoted = _quoted(asked, question) if asked is not None else ""
        for listed in (lines, lines[:1], []):
            text = "\n".join([*listed, quoted]) if quoted else "\n".join(listed)
            if question.count(text) <= question.room_tokens:
                return text if len(listed) > 1 or quoted else None
        return "\n".join(lines) if len(lines) > 1 else None


def _line(file: KeptFile) -> str:
    given = ", as it was given" if file.modified_ns is None else ""
    return f"- {plain_label(file.path)} ({file.tier}, {file.size:,} bytes{given})"


def _is_named(file: KeptFile, query: str) -> bool:
    name = posixpath.basename(file.path.replace("\\", "/"))
    return len(name) >= LEAST_NAME_CHARS and name in query


def _quoted(file: KeptFile, question: SectionQuestion) -> str:
    """The file's text behind its path; nothing where it is no text, or stands in the context already."""
    if file.kind == "binary":
        return ""
    content = None
    with suppress(DamagedFileError):  # whoever opens it is told
        content = question.reads.kept_content(file.path)
    text = content.decode("utf-8", "replace").strip("\n") if content is not None else ""
    return f"{plain_label(file.path)}:\n{text}" if text.strip() and not question.is_shown(text) else ""
