"""The form of a summary: which sections each strategy has, and how a finished one is read back into its parts.

Higher levels are built from sectioned texts, ours or a model's in any language, so reading is lenient: a heading
nobody knows holds points, and prose without headings does too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.summaries.marks import (
    ANSWER,
    APPENDED,
    DAY_LINE,
    HEADING,
    MARK_OF_LINE,
    OVERVIEW,
    SPAN,
    SPOKEN,
    STILL_OPEN,
    TOOL_MARK,
    without_marks,
)
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.text.statements import leans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ItemKind: TypeAlias = Literal["overview", "point", "decision", "action", "technical", "progress", "open"]


@dataclass(frozen=True, slots=True)
class SectionForm:
    """One section: its heading, what belongs there (for a prompt), and the kinds of items that go into it."""

    heading: str
    asks: str
    kinds: tuple[ItemKind, ...]


_LEVEL_1 = (
    SectionForm("Overview", "one or two sentences: what this part of the conversation is about", ("overview",)),
    SectionForm(
        "Key points",
        "every fact worth knowing later, with who said it; keep names, numbers and dates",
        ("point", "progress"),
    ),
    SectionForm("Decisions", "what was decided, by whom, and why", ("decision",)),
    SectionForm("Action items", "who will do what, and by when", ("action",)),
    SectionForm(
        "Technical details",
        "files, functions, commands, errors, versions and settings, written exactly",
        ("technical",),
    ),
    SectionForm("Unresolved", "questions without an answer and problems without a solution", ("open",)),
)
_EXECUTIVE = (
    SectionForm("Overview", "two or three sentences: purpose and scope of the whole session", ("overview",)),
    SectionForm(
        "Key outcomes", "what was reached, decided or learned, the weightiest first", ("decision", "progress", "point")
    ),
    SectionForm("Deliverables", "what exists now that did not: files, documents, systems, agreements", ("technical",)),
    SectionForm("Next steps", "what is to happen next, and what is still open", ("action", "open")),
)
_ARTIFACTS = SectionForm("Artifacts", "files, functions, documents and other things made or changed", ("technical",))
_OPEN_ITEMS = SectionForm("Open items", "what remains to be done or answered", ("action", "open"))
FORMS: dict[str, tuple[SectionForm, ...]] = {
    "detailed": _LEVEL_1,
    "concise": _LEVEL_1,
    "thematic": (
        SectionForm(
            "Themes",
            "three to five themes, each with what was said about it in all the parts together",
            ("point", "overview"),
        ),
        SectionForm("Major decisions", "decisions that hold now, with reasons and consequences", ("decision",)),
        _ARTIFACTS,
        SectionForm("Progress and outcomes", "what was accomplished, and what failed", ("progress",)),
        _OPEN_ITEMS,
    ),
    "chronological": (
        SectionForm(
            "Course of events",
            "what happened, in order, each step with its date where one is known",
            ("point", "overview", "progress"),
        ),
        SectionForm(
            "Major decisions",
            "decisions in the order they were taken, with reasons; say which replaced which",
            ("decision",),
        ),
        _ARTIFACTS,
        _OPEN_ITEMS,
    ),
    "executive": _EXECUTIVE,
    "technical": (
        _EXECUTIVE[0],
        SectionForm(
            "Technical state",
            "architecture, files, interfaces, versions, settings and errors as they stand now",
            ("technical",),
        ),
        SectionForm(
            "Key outcomes", "what was built, fixed or decided, with the reason", ("decision", "progress", "point")
        ),
        _EXECUTIVE[3],
    ),
    "handoff": (
        SectionForm(
            "Previous conversation",
            "the whole exchange in outline: what the user asked for, and how it went",
            ("overview", "point"),
        ),
        SectionForm("Current work", "what was being worked on just before this summary, in detail", ("progress",)),
        SectionForm(
            "Key technical concepts",
            "technologies, conventions, constraints and decisions that matter for going on",
            ("decision",),
        ),
        SectionForm(
            "Relevant files and code",
            "each file looked at or changed, why it matters, and the code that counts",
            ("technical",),
        ),
        SectionForm(
            "Problem solving", "problems met, what solved them, and what is still being looked into", ("open",)
        ),
        SectionForm(
            "Pending tasks and next steps",
            "what the user asked for that is not done, and the very next step",
            ("action",),
        ),
    ),
}
"""The sections of each strategy, in their order."""

COMPLETE = frozenset({"handoff"})
"""Strategies of which every section has to stand there, an empty one too: whoever takes over must see that there is
nothing, not wonder. The others leave out what would be empty."""
FLAT_TOKENS = 90
"""Below this target, headings would take more room than they are worth."""

_KINDS_BY_HEADING: tuple[tuple[re.Pattern[str], ItemKind | None], ...] = (
    (re.compile(r"\bfacts\b"), None),  # they travel beside the text
    (re.compile(r"decisi[o\u00f3]n|d\u00e9cision|entscheid|decis\u00e3o|[\u51b3\u6c7a][\u5b9a\u7b56]"), "decision"),
    (re.compile(r"action|next step|to[- ]?do|pending|tasks?\b|prochaine|n\u00e4chste|aufgaben|pr\u00f3ximo"), "action"),
    (re.compile("\u4e0b\u4e00\u6b65|\u5f85\u529e"), "action"),
    (re.compile(r"unresolved|\bopen\b|question|problem|offen|ouvert|abiert|\u672a\u89e3|\u95ee\u9898"), "open"),
    (re.compile(r"techni|technolog|art[ie]fact|deliverable|files?\b|code|t\u00e9cnic|\u6280\u672f"), "technical"),
    (re.compile(r"progress|outcome|accomplish|results?\b|current work|fortschritt|ergebnis|progr\u00e8s"), "progress"),
    (re.compile(r"overview|summary|\u00fcberblick|aper\u00e7u|resumen|\u6982[\u8ff0\u8981]"), "overview"),
)
_MAX_LEANING_CHARS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One statement of a finished summary."""

    text: str
    """Without bullet, without who says it, and without what it answers."""
    kind: ItemKind
    line: int
    bullet: str = ""
    heading: str = ""
    """Under which it stands."""
    day: str = ""
    """Under which it stands, in a chronological summary."""
    label: str = ""
    """Who said it and when, with a colon and a blank; empty where nobody is named."""
    speaker: str = ""
    when: str = ""
    asked: str = ""
    """The question that it answers."""
    asker: str = ""
    framed: str = ""
    """An answer with its question, as they stand there."""
    appended: bool = False
    """Whether an audit appended it."""

    @property
    def whole(self) -> str:
        """As it stands alone."""
        return f"{self.label}{self.text}"


def kind_of_heading(heading: str) -> ItemKind | None:
    """The kind of what stands under `heading`: points where nobody knows it, `None` for the list of facts."""
    return next((kind for pattern, kind in _KINDS_BY_HEADING if pattern.search(heading.casefold())), "point")


def read_told(text: str, known: Collection[str] | None = None) -> Iterator[Told]:
    """The statements of a finished summary, in their order, without our own overview and a list of facts.

    Where `known` is given, only these, and tools, stand before a colon as who says it: all else is a subject.
    """
    kind: ItemKind | None = "point"
    heading = day = ""
    for number, line in enumerate(without_marks(text).splitlines()):
        dated, head, lead = DAY_LINE.match(line), HEADING.match(line), APPENDED.match(line)
        if dated:
            day = dated[1]
        elif head:
            if head["marked"]:  # a bold line names a theme: what stands below it keeps its kind
                heading = head["marked"].strip(" :#")
                kind = kind_of_heading(heading)
        elif lead:
            opens = lead[0] == STILL_OPEN
            base = Told(text="", kind="open" if opens else "point", line=number, label=lead[0], day=day, appended=True)
            mark = f"{TOOL_MARK} " if lead[0].startswith(TOOL_MARK) else ""
            yield from _of_line(f"{mark}{line[lead.end() :]}", base, known)
        elif kind is not None and not SPAN.match(line) and not (number == 0 and OVERVIEW.match(line)):
            mark_of_line = MARK_OF_LINE.match(line)
            bullet = f"{mark_of_line[0].strip()} " if mark_of_line else ""
            base = Told(text="", kind=kind, line=number, bullet=bullet, heading=heading, day=day)
            yield from _of_line(line[mark_of_line.end() :] if mark_of_line else line, base, known)


def _of_line(line: str, base: Told, known: Collection[str] | None) -> Iterator[Told]:
    """The statements of one line: each with its speaker, an answer with its question. A tool's line is one."""
    rest = line.strip()
    spoken = SPOKEN.match(rest)
    is_tool = rest.startswith(TOOL_MARK)
    asks = False
    if spoken and (is_tool or known is None or spoken["speaker"] in known):
        base = replace(
            base, label=f"{base.label}{spoken[0].rstrip()} ", speaker=spoken["speaker"], when=spoken["when"] or ""
        )
        rest, asks = rest[spoken.end() :], bool(spoken["asked"])
    if is_tool:
        yield replace(base, text=rest, kind=base.kind if base.appended else "technical")
        return
    question: list[str] = []
    for place, text in enumerate(sentences_of(rest)):
        answer, other = ANSWER.match(text), SPOKEN.match(text)
        if answer and (known is None or answer["speaker"] in known):
            asked, asker, label = " ".join(question), base.speaker, base.label
            speaker, when = answer["speaker"], answer["when"] or ""
            base = replace(base, label=f"{speaker} ({when}): " if when else f"{speaker}: ", speaker=speaker, when=when)
            pair = replace(base, asked=asked, asker=asker, framed=f"{label}{asked} {text}") if asked else base
            yield replace(pair, text=text[answer.end() :])
            asks, question = False, []
        elif asks:
            question.append(text)
        elif place and other and (known is None or other["speaker"] in known):
            yield replace(base, text=text, label="", speaker="", when="")  # it begins with a subject of its own
        else:
            yield replace(base, text=text)
    if question:
        yield replace(base, text=" ".join(question))


def sentences_of(text: str) -> Iterator[str]:
    """Sentences, one that leans on the one before it with that."""
    waiting = ""
    for piece in pieces(text):
        joins = waiting and leans(piece.text) and len(waiting) + len(piece.text) < _MAX_LEANING_CHARS
        if waiting and not joins:
            yield waiting
        waiting = f"{waiting} {piece.text}" if joins else piece.text
    if waiting:
        yield waiting
