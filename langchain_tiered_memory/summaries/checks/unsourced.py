"""Marks figures, codes, dates and addresses of a summary that nothing in its sources explains.

Marked rather than cut: a mark that is wrong costs a few tokens, a sentence that is wrongly cut is lost. The mark stands
at the end of the sentence and names what it marks, so that it can be read back: one level up, that is no source for
anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.checks.figure_sources import FigureSources, figure_sources, figures_in
from langchain_tiered_memory.summaries.marks import NOTE, NOTED
from langchain_tiered_memory.text.identifiers import CODE, DATE, EMAIL, NUMBER, PATH, URL
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_CLOSES = "]"
_BETWEEN = "; "
_CLOSINGS = " \t.!?\u2026\u3002\uff01\uff1f\"'\u201d\u2019)*"
_MAX_CHARS = 1_000_000
_MIN_DIGITS = 2
_YEAR = re.compile(r"\b\d{4}\b")
_CLOCK = re.compile(r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2})?\b")
_NOT_ALNUM = re.compile(r"[\W_]+")
_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]|(?:[-*+] |\d{1,3}[.)] )?\*\*[^*\n]{1,80}\*\*:?[ \t]*$)")
_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3})")
_COUNTING = re.compile(r"^[ \t]*\(?\d{1,3}[.)][ \t]")


@dataclass(frozen=True)
class Evidence:
    """What some sources state, ready to be asked."""

    texts: tuple[str, ...]
    times: tuple[float, ...]
    known: tuple[str, ...] = ()
    """Names, a title, facts: what the writer was told beside the sources."""

    @cached_property
    def figures(self) -> FigureSources:
        """Their figures, and what follows from them."""
        return figure_sources(self._all, self.times)

    @cached_property
    def years(self) -> frozenset[int]:
        """In which they were said, and those beside them: relative dates lead there."""
        said = {utc(at).year for at in self.times}
        return frozenset(year + step for year in said for step in (-1, 0, 1))

    @cached_property
    def letters(self) -> str:
        """All of it without blanks and punctuation, casefolded."""
        return _letters("\n".join(self._all))

    @property
    def _all(self) -> tuple[str, ...]:
        return (*self.texts, *self.known)


def evidence(texts: Sequence[str], times: Sequence[float], known: Iterable[str] = ()) -> Evidence | None:
    """What sources state; `None` where they are too long to be looked at whole: then nothing may be called unsourced.

    `times` are when each was said, in seconds since the epoch; `known` is what the writer was told beside them.
    """
    if sum(map(len, texts)) > _MAX_CHARS:
        return None
    return Evidence(tuple(without_marked(text) for text in texts), tuple(times), tuple(known))


def without_marked(text: str) -> str:
    """`text` without what is marked in it: it is no source for anything."""
    return "\n".join(map(_without_marked, text.split("\n"))) if NOTE in text else text


def _without_marked(line: str) -> str:
    """A line without its mark, and without what that names."""
    named = _named_in(line)
    line = NOTED.sub("", line) if named else line
    for one in named:
        line = line.replace(one, "")
    return line


def _named_in(line: str) -> list[str]:
    marks = (mark[0].lstrip().removeprefix(NOTE).removesuffix(_CLOSES) for mark in NOTED.finditer(line))
    return [one for mark in marks for one in mark.split(_BETWEEN)]


def marked(text: str, found: Evidence) -> tuple[str, tuple[str, ...]]:
    """`text` with a mark in every sentence that names a figure or code which `found` does not explain; and those.

    Headings, numbers of list items, blocks of code and figures of one digit are left alone.
    """
    lines: list[str] = []
    all_marked: list[str] = []
    in_code = False
    for line in text.splitlines():
        fence = _FENCE.match(line) is not None
        in_code ^= fence
        if in_code or fence or _HEADING.match(line):
            lines.append(line)
            continue
        spans = _first_of_each_place([*((*mark.span(), False) for mark in NOTED.finditer(line)), *_spans(line, found)])
        before = set(_named_in(line))
        new = [span for *span, is_strange in spans if is_strange and line[slice(*span)] not in before]
        all_marked += [line[start:stop] for start, stop in new]
        lines.append(_with_marks(line, new) if new else line)
    return "\n".join(lines), tuple(dict.fromkeys(all_marked))


def _with_marks(line: str, spans: Sequence[Sequence[int]]) -> str:
    """A line with a mark before the stop of each sentence that has some of these spans."""
    ends, at = list[int](), 0
    for piece in pieces(line):
        found = line.find(piece.text, at)
        if found >= 0:
            at = found + len(piece.text)
            ends.append(len(line[:at].rstrip(_CLOSINGS)))
    named: dict[int, dict[str, None]] = {}
    for start, stop in spans:
        end = next((end for end in ends if end >= stop), len(line.rstrip()))
        named.setdefault(end, {})[line[start:stop]] = None
    kept, at = "", 0
    for end, names in sorted(named.items()):
        kept += f"{line[at:end]} {NOTE}{_BETWEEN.join(names)}{_CLOSES}"
        at = end
    return kept + line[at:]


def _spans(line: str, found: Evidence) -> Iterator[tuple[int, int, bool]]:
    """What a line names, with whether it is strange to the sources; what comes first hides what overlaps it."""
    shapes: tuple[tuple[re.Pattern[str], Callable[[str, Evidence], bool]], ...] = (
        (URL, _code_is_known), (EMAIL, _code_is_known), (PATH, _path_is_known), (DATE, _date_is_known),
        (CODE, _code_is_known), (NUMBER, _figure_is_known),
    )  # fmt: skip
    counting = _COUNTING.match(line)
    if counting:
        yield 0, counting.end(), False
    for pattern, is_known in shapes:
        for match in pattern.finditer(line):
            shown = match[0].rstrip(".,;:!?'\")]}")
            if shown and not set(shown) & set("[]"):
                yield match.start(), match.start() + len(shown), not is_known(shown, found)


def _first_of_each_place(spans: Sequence[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Spans in the order of the line, without those that overlap one that was named before."""
    chosen: list[tuple[int, int, bool]] = []
    taken = bytearray(max((stop for _, stop, _ in spans), default=0))
    for start, stop, is_strange in spans:
        if not any(taken[start:stop]):
            taken[start:stop] = b"\x01" * (stop - start)
            chosen.append((start, stop, is_strange))
    return sorted(chosen)


def _code_is_known(shown: str, found: Evidence) -> bool:
    """Whether it stands there, however it is punctuated; or, of a code, its figure does ("F-12": "invoice 12")."""
    letters = _letters(shown)
    digits = "".join(char for char in shown if char.isdigit())
    return letters in found.letters or (0 < len(digits) < len(letters) and "/" not in shown and digits in found.letters)


def _path_is_known(shown: str, found: Evidence) -> bool:
    """Whether its last part stands there: a summary may write a path out. `/week` behind a unit is a rate."""
    if shown.startswith("/") and shown[1:].isalpha():
        return True
    name = _letters(shown.rstrip("/\\").replace("\\", "/").rpartition("/")[2])
    return not name or name in found.letters or _letters(shown) in found.letters


def _date_is_known(shown: str, found: Evidence) -> bool:
    """Whether its year and its clock time are explained. A day or month may be worked out from "last week"."""
    for year in _YEAR.findall(shown):
        if int(year) not in found.years and not found.figures.explain(float(year), places=0):
            return False
    clock = _CLOCK.search(shown)
    if clock is None:
        return True
    hour, minute = int(clock["hour"]), int(clock["minute"])
    hours = any(found.figures.state(float(one)) for one in (hour, (hour + 12) % 24, hour % 12))
    return hours and (minute in (0, 30) or found.figures.state(float(minute)))


def _figure_is_known(shown: str, found: Evidence) -> bool:
    if sum(char.isdigit() for char in shown) < _MIN_DIGITS:
        return True
    if _letters(shown) in found.letters:
        return True
    readings = list(figures_in(shown))
    return not readings or any(
        found.figures.explain(value, places=place) or (value == int(value) and int(value) in found.years)
        for value, place in readings
    )


def _letters(text: str) -> str:
    return _NOT_ALNUM.sub("", text.casefold())
