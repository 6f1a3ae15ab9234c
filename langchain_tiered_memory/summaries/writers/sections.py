"""The form of a summary: which sections each strategy has, and how a finished one is read back into its parts.

Higher levels are built from sectioned texts, ours or a model's, so reading is lenient: a heading nobody knows holds
points, and prose without headings does too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.text.sentences import FENCE, pieces
from langchain_tiered_memory.text.statements import MAX_JOINED_CHARS, leans

if TYPE_CHECKING:
    from collections.abc import Iterator

ItemKind: TypeAlias = Literal["overview", "point", "decision", "action", "technical", "progress", "open"]


@dataclass(frozen=True, slots=True)
class SectionForm:
    """One section: its heading, what belongs there (for a prompt), and the kinds of items that go into it."""

    heading: str
    asks: str
    kinds: tuple[ItemKind, ...]


_TABLE = """
# detailed concise
overview | Overview | one or two sentences: what this part of the conversation is about
point, progress | Key points | every fact worth knowing later, with who said it; keep names, numbers and dates
decision | Decisions | what was decided, by whom, and why
action | Action items | who will do what, and by when
technical | Technical details | files, functions, commands, errors, versions and settings, written exactly
open | Unresolved | questions without an answer and problems without a solution
# thematic
point, overview | Themes | three to five themes, each with what was said about it in all the parts together
decision | Major decisions | decisions that hold now, with reasons and consequences
technical | Artifacts | files, functions, documents and other things made or changed
progress | Progress and outcomes | what was accomplished, and what failed
action, open | Open items | what remains to be done or answered
# chronological
point, overview, progress | Course of events | what happened, in order, each step with its date where one is known
decision | Major decisions | decisions in the order they were taken, with reasons; say which replaced which
technical | Artifacts | files, functions, documents and other things made or changed
action, open | Open items | what remains to be done or answered
# executive
overview | Overview | two or three sentences: purpose and scope of the whole session
decision, progress, point | Key outcomes | what was reached, decided or learned, the weightiest first
technical | Deliverables | what exists now that did not: files, documents, systems, agreements
action, open | Next steps | what is to happen next, and what is still open
# technical
overview | Overview | two or three sentences: purpose and scope of the whole session
technical | Technical state | architecture, files, interfaces, versions, settings and errors as they stand now
decision, progress, point | Key outcomes | what was built, fixed or decided, with the reason
action, open | Next steps | what is to happen next, and what is still open
# handoff
overview, point | Previous conversation | the whole exchange in outline: what the user asked for, and how it went
progress | Current work | what was being worked on just before this summary, in detail
decision | Key technical concepts | technologies, conventions, constraints and decisions that matter for going on
technical | Relevant files and code | each file looked at or changed, why it matters, and the code that counts
open | Problem solving | problems met, what solved them, and what is still being looked into
action | Pending tasks and next steps | what the user asked for that is not done, and the very next step
"""
"""Under the strategies that have them: of each section the kinds of its items, its heading, and what belongs there."""


def _forms() -> Iterator[tuple[str, tuple[SectionForm, ...]]]:
    for part in _TABLE.split("\n# ")[1:]:
        names, *rows = part.splitlines()
        cells = [row.split(" | ") for row in rows]
        form = tuple(SectionForm(heading, asks, tuple(kinds.split(", "))) for kinds, heading, asks in cells)  # type: ignore[arg-type] # read from the table
        yield from ((name, form) for name in names.split())


FORMS: dict[str, tuple[SectionForm, ...]] = dict(_forms())
"""The sections of each strategy, in their order."""

TO_DO: frozenset[ItemKind] = frozenset({"action", "open"})
"""Kinds whose statements would pass for done without their heading."""
COMPLETE = frozenset({"handoff"})
"""Strategies of which every section has to stand there, an empty one too: whoever takes over must see that there is
nothing, not wonder. The others leave out what would be empty."""
FLAT_TOKENS = 90
"""Below this target, headings would take more room than they are worth."""

_KINDS_BY_WORD: dict[str, ItemKind] = {
    **dict.fromkeys(("decision",), "decision"),
    **dict.fromkeys(("action", "next step", "to do", "to-do", "pending", "task"), "action"),
    **dict.fromkeys(("unresolved", "open", "question", "problem"), "open"),
    **dict.fromkeys(("techn", "artifact", "artefact", "deliverable", "file", "code"), "technical"),
    **dict.fromkeys(("progress", "outcome", "accomplish", "result", "current work"), "progress"),
    **dict.fromkeys(("overview", "summary"), "overview"),
}
"""What headings have in them, which are in English whatever the language of the text."""


def kind_of_heading(heading: str) -> ItemKind:
    """The kind of what stands under `heading`: points where nobody knows it."""
    return next((kind for word, kind in _KINDS_BY_WORD.items() if word in heading.casefold()), "point")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a finished summary that says something, or a block of code, and what it stands under."""

    whole: str
    """As it stands there."""
    number: int
    """Of its place, from 0 on."""
    kind: ItemKind = "point"
    heading: str = ""
    """Of its section."""
    above: str = ""
    """The heading or the name of a theme above it, as it stands there."""
    section: int = 0
    """How many of these stand before it."""
    bullet: str = ""
    """With the blanks around it."""
    lead: str = ""
    """The words of ours by which an audit appended it."""
    is_code: bool = False

    @property
    def words(self) -> str:
        """What it says: without its bullet, and without an audit's words but for the mark of tools."""
        words = self.whole[len(self.bullet) + len(self.lead) :].strip()
        return f"{marks.TOOL_MARK} {words}" if self.lead.startswith(marks.TOOL_MARK) else words

    @property
    def lasts(self) -> bool:
        """Whether a model marked it as what must last."""
        return marks.is_kept(self.whole)

    @property
    def by_tool(self) -> bool:
        """Whether it is a tool's find."""
        return marks.without_marks(self.words).startswith(marks.TOOL_MARK)


def lines_of(text: str) -> Iterator[Line]:
    """The lines of a finished summary, with the kinds of their sections, which a bold line that names a theme keeps."""
    at = Line("", 0)
    code: list[str] = []
    fence = ""
    for number, whole in enumerate(text.splitlines()):
        fenced = FENCE.match(whole)
        if fence or fenced:
            code.append(whole)
            closes = bool(fence and fenced and fenced[1].startswith(fence) and whole.strip() == fenced[1])
            fence = "" if closes else fence or fenced[1]  # type: ignore[index] # one of them is there
            if closes:
                yield replace(at, whole="\n".join(code), number=number, is_code=True)
                code = []
        elif heading := marks.HEADING.match(whole):
            at = replace(at, above=whole, section=at.section + 1)
            if heading["marked"]:
                named = heading["marked"].strip(" :")
                at = replace(at, kind=kind_of_heading(named), heading=named)
        elif whole.strip():
            bullet, lead = marks.BULLET.match(whole), marks.APPENDED.match(whole)
            line = replace(at, whole=whole, number=number, bullet=bullet[0] if bullet else "")
            kind: ItemKind = "open" if lead and lead[0] == marks.STILL_OPEN else "point"
            yield replace(line, lead=lead[0], kind=kind) if lead else line
    if code:
        yield replace(at, whole="\n".join([*code, fence]), number=number, is_code=True)


def without_open(text: str) -> str:
    """A model's summary without what it says is still to be done or answered; as it is where it says nothing else."""
    left: list[str] = []
    goes = False
    for line in text.splitlines():
        heading, lead = marks.HEADING.match(line), marks.APPENDED.match(line)
        if heading and heading["marked"]:
            goes = kind_of_heading(heading["marked"].strip(" :")) in TO_DO
        if not (lead[0] == marks.STILL_OPEN if lead else goes):
            left.append(line)
    told = "\n".join(left).strip()
    return told if any(line.strip() and not marks.HEADING.match(line) for line in left) else text


def sentences_of(text: str) -> Iterator[str]:
    """Sentences, one that leans on the one before it with that."""
    waiting = ""
    for piece in pieces(text):
        joins = waiting and leans(piece.text) and len(waiting) + len(piece.text) < MAX_JOINED_CHARS
        if waiting and not joins:
            yield waiting
        waiting = f"{waiting} {piece.text}" if joins else piece.text
    if waiting:
        yield waiting
