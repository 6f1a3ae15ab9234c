"""Words of ours in a summary, by which it is read back: marks before a line, and the few that frame what is quoted."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.fencing import plain_name
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from langchain_tiered_memory.types.records import Role

TOOL_MARK = "[tool]"
"""Stands before what a program or a web page said, at every level: it is a find, not anybody's wish or word."""

_MAX_TOOL_NAME_CHARS = 40

WAITING = "call "
"""Before a call without a result, behind the words of ours that say so."""
STILL_OPEN, NOT_ANSWERED, SAID = "Still open: ", "Not answered: ", "Also said: "
TOOL_SAID = f"{TOOL_MARK} also said: "
RULES = "extractive"
"""Who signs what rules wrote; any other name is a model's, or a writer's of a user's own."""
PERSON = "person"
"""Who signs a text that a person wrote."""
CORRECTED = "- A person says: "
"""How the line begins that a person's remark becomes."""

APPENDED = re.compile(rf"(?:{STILL_OPEN}|{SAID}|{re.escape(TOOL_SAID)})")
"""How a line begins that an audit appended."""

NOTHING_HOLDS = "What was noted of them is over."
"""Of the messages of a summary, where every point of it is."""

KEEP_MARK = "[keep]"
"""Stands before what a model says must be known when all the rest is forgotten: such a statement weighs most among the
facts. It is kept in the stored text, and shown to nobody but who writes the summary above."""
_KEEP = re.compile(r"\[keep\][: \t]*", re.IGNORECASE)
INSTEAD = re.compile(r"\[instead of ([^\[\]\n]{1,400})\][: \t]*", re.IGNORECASE)
"""Before a statement that stands in the place of others: as a model writes it, with their places in the list that it
was shown; as it is stored, with their ids, and in earlier versions the numbers of their messages."""
_NUMBER = re.compile(r"(?<!\w)(?!(?<=#)[0-9a-f]{8}\b)\d{1,12}\b")
_ID_CHARS = 8
_ID = re.compile(r"#([0-9a-f]{8})\b")
_LEADING = re.compile(
    r"^(?P<bullet>[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)"
    r"(?P<marks>(?:`?\[(?:keep|tool|instead of [^\[\]\n]{1,400})\]`?:?[ \t]*)+)",
    re.IGNORECASE | re.MULTILINE,
)
_WITHOUT_BULLET = re.compile(r"^(?=`?\[(?:keep|instead of [^\[\]\n]{1,400})\])", re.IGNORECASE | re.MULTILINE)
HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+(?P<marked>\S.*)|\*\*(?P<bold>[^*\n]{1,80})\*\*:?[ \t]*$)")
"""A line that names a section (`marked`) or a theme (`bold`)."""
BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+")
"""How a line begins that is a point."""
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


def plain(answer: str) -> str:
    """A model's answer with the marks before its points as they are meant: not set as code, and behind a bullet."""
    answer = _WITHOUT_BULLET.sub("- ", answer)
    return _LEADING.sub(lambda one: one["bullet"] + one["marks"].replace("`", ""), answer) if "`[" in answer else answer


def as_merged(text: str, over: Collection[str] = ()) -> str:
    """A summary as its merger reads it: with the marks of what must last, which is listed beside it."""
    return without_over(without_name_notes(without_instead(text)), over)


def without_over(text: str, over: Collection[str]) -> str:
    """A summary without the points, in their words, that are over: another statement took their place since."""
    if not over:
        return text
    return "\n".join(_told(line for line in text.splitlines() if _words_of(line) not in over)) or NOTHING_HOLDS


def _words_of(line: str) -> str:
    """A point without its bullet and marks."""
    mark = BULLET.match(line)
    return without_marks(line[mark.end() :] if mark else line).removeprefix(TOOL_MARK).strip()


def without_kept(text: str) -> str:
    """A summary without the points that must last, which are listed beside it; where it has no others, as it is.

    A point is a bullet with what is indented below it. One that only leads to those below it stays.
    """
    others: list[str] = []
    goes = False
    for line in text.splitlines() if is_kept(text) else ():
        if not line[:1].isspace() and BULLET.match(line):
            goes = is_kept(line) and not line.rstrip().endswith(":")
        elif HEADING.match(line) or not line[:1].isspace():
            goes = False
        if not goes:
            others.append(line)
    return "\n".join(_told(others)) or text


def _told(lines: Iterable[str]) -> Iterator[str]:
    """Lines without headings that nothing stands under, and blank ones."""
    said = [line for line in lines if line.strip()]
    for line, following in itertools.pairwise([*said, "#"]):
        if not (HEADING.match(line) and _ends(following)):
            yield line


def _ends(line: str) -> bool:
    return line == "#" or HEADING.match(line) is not None


def without_instead(
    text: str, listed: Sequence[str] = (), *, meant: Callable[[str], Collection[int]] | None = None
) -> str:
    """A text without marks of what it stands in the place of.

    Where a model was shown a list of notes, `listed` has their ids, in its order: its places, from 1 on, become the
    beginnings of these, and a place that it does not have goes. So does one that is not among those, counted from 0,
    which the rest of the line may be `meant` to replace.
    """

    def left(mark: re.Match[str]) -> str:
        said = without_marks(text[mark.end() :].partition("\n")[0])
        allowed = meant(said) if meant is not None else range(len(listed))
        places = [one for one in instead_of(mark[0]) if 0 < one <= len(listed) and one - 1 in allowed]
        return f"[instead of {' '.join(f'#{listed[one - 1][:_ID_CHARS]}' for one in places)}] " if places else ""

    return INSTEAD.sub(left, text)


def instead_of(line: str) -> tuple[int, ...]:
    """The numbers that a line of a model's text names as those of what it stands in the place of."""
    return tuple(dict.fromkeys(int(one) for marked in INSTEAD.findall(line) for one in _NUMBER.findall(marked)))


def ends(line: str) -> tuple[str, ...]:
    """The beginnings of the ids of the notes that a line of a stored text stands in the place of."""
    return tuple(dict.fromkeys(one for marked in INSTEAD.findall(line) for one in _ID.findall(marked)))


def is_marked(line: str) -> bool:
    """Whether a line of a model's text says what must last, or what stands in the place of that."""
    return is_kept(line) or INSTEAD.search(line) is not None


def is_kept(line: str) -> bool:
    """Whether a line of a model's text has the mark of what must last."""
    return _KEEP.search(line) is not None


DATE = r"\d{1,2} [A-Z][a-z]{2,8} \d{4}"
USED = "used "
"""How a sentence begins that tells a call."""
CODE = "Code: "
"""Before what a block of code defines."""
SPOKEN = re.compile(
    rf"^(?:Open: )?(?P<speaker>[^:\n]{{1,60}}?)(?: \((?P<when>{DATE})\))?(?P<asked> asked)?: {{1,8}}(?=\S)"
)
ANSWER = re.compile(rf"^(?:Answer|Reply) \((?P<speaker>[^:()\n]{{1,60}}?)(?:, (?P<when>{DATE}))?\): (?=\S)")


def date_of(at: float) -> str:
    """The day of a time, in UTC: `8 May 2023`."""
    day = utc(at)
    return f"{day.day} {day:%b %Y}"


def speaker_label(name: str | None, role: Role) -> str:
    """Who said it, a tool behind its mark, on one line and without a colon, so that it reads back as one speaker."""
    if role != "tool":
        return plain_name(name, role) or role
    plain = plain_name((name or "").removeprefix(TOOL_MARK))
    plain = plain if plain != "tool" else ""
    return f"{TOOL_MARK} {plain[:_MAX_TOOL_NAME_CHARS]}".strip()
