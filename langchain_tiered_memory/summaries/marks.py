"""Words of ours at the beginning of a line of a summary, by which it is read back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

TOOL_MARK = "[tool]"
"""Stands before what a program or a web page said, at every level: it is a find, not anybody's wish or word."""

STILL_OPEN, SAID = "Still open: ", "Also said: "
TOOL_SAID = f"{TOOL_MARK} also said: "
RULES = "extractive"
"""Who signs what rules wrote; any other name is a model's, or a writer's of a user's own."""
PERSON = "person"
"""Who signs a text that a person wrote."""
CORRECTED = "- A person says: "
"""How the line begins that a person's remark becomes."""

APPENDED = re.compile(rf"(?:{STILL_OPEN}|{SAID}|{re.escape(TOOL_SAID)})")
"""How a line begins that an audit appended."""

KEEP_MARK = "[keep]"
"""Stands before what a model says must be known when all the rest is forgotten: such a statement weighs most among the
facts. It is kept in the stored text, and shown to nobody but who writes the summary above."""
_KEEP = re.compile(r"\[keep\][: \t]*", re.IGNORECASE)
_INSTEAD = re.compile(r"\[instead of ([^\[\]\n]{1,80})\][: \t]*", re.IGNORECASE)
"""Before a statement that stands in the place of others: the numbers of the messages that these were kept of."""
_NUMBER = re.compile(r"\d{1,12}")
NOTE = "[not in the source: "
"""Begins our note behind a sentence on what it names and nothing explains (`checks.unsourced`)."""
NOTED = re.compile(
    rf" ?{re.escape(NOTE)}(?P<named>[^\[\]\n]{{1,300}})(?:\]|$)", re.MULTILINE
)  # a cut may have ended it


def without_name_notes(text: str) -> str:
    """A text without notes on names: these were mostly said elsewhere. Those on figures and codes stay."""
    return NOTED.sub(lambda one: one[0] if any(map(str.isdigit, one["named"])) else "", text) if NOTE in text else text


def without_marks(text: str) -> str:
    """A text or a line as it is shown: without the marks of what must last and of what it replaces, and name notes."""
    return without_name_notes(without_instead(_KEEP.sub("", text))) if "[" in text else text


def as_merged(text: str) -> str:
    """A summary as its merger reads it: with the marks of what must last, which is listed beside it."""
    return without_name_notes(without_instead(text))


def without_instead(text: str, known: Collection[int] = ()) -> str:
    """A text without marks of what it stands in the place of, but those that name `known` numbers only."""
    return _INSTEAD.sub(lambda one: one[0] if set(instead_of(one[0])) <= {*known} else "", text)


def instead_of(line: str) -> tuple[int, ...]:
    """The numbers of the messages whose statements a line of a model's text stands in the place of."""
    return tuple(dict.fromkeys(int(one) for marked in _INSTEAD.findall(line) for one in _NUMBER.findall(marked)))


def is_kept(line: str) -> bool:
    """Whether a line of a model's text has the mark of what must last."""
    return _KEEP.search(line) is not None
