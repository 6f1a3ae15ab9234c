"""Words of ours at the beginning of a line of a summary, by which it is read back."""

from __future__ import annotations

import re

TOOL_MARK = "[tool]"
"""Stands before what a program or a web page said, at every level: it is a find, not anybody's wish or word."""

STILL_OPEN, SAID = "Still open: ", "Also said: "
TOOL_SAID = f"{TOOL_MARK} also said: "
RULES = "extractive"
"""Who signs what rules wrote; any other name is a model's, or a writer's of a user's own."""

APPENDED = re.compile(rf"(?:{STILL_OPEN}|{SAID}|{re.escape(TOOL_SAID)})")
"""How a line begins that an audit appended."""

KEEP_MARK = "[keep]"
"""Stands before what a model says must be known when all the rest is forgotten: such a statement weighs most among the
facts. It is kept in the stored text, and shown to nobody but who writes the summary above."""
_KEEP = re.compile(r"\[keep\][: \t]*", re.IGNORECASE)


def without_keep(text: str) -> str:
    """A text or a line without the marks of what must last."""
    return _KEEP.sub("", text) if "[" in text else text


def is_kept(line: str) -> bool:
    """Whether a line of a model's text has the mark of what must last."""
    return _KEEP.search(line) is not None
