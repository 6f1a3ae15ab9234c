"""Marks figures, codes, dates and addresses of a summary that nothing in its sources explains.

Marked rather than cut: a mark that is wrong costs a few tokens, a sentence that is wrongly cut is lost. The mark stands
at the end of the sentence and names what it marks, so that it can be read back: one level up, that is no source for
anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import HEADING, INSTEAD, NOTE, NOTED
from langchain_tiered_memory.text.identifiers import CODE, DATE, EMAIL, NUMBER, PATH, TAKEN, URL, folded, states, taken
from langchain_tiered_memory.text.readings import MEASURED_CHARS
from langchain_tiered_memory.text.sentences import FENCE, pieces
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


_NUMBER = re.compile(
    r"(?<![\w.,])[+-]?(?P<digits>\d{1,15}(?:[,.\u00a0\u2009'\u2019]\d{1,15}){0,5})(?P<scale>[ -]?[A-Za-z]{1,9})?"
)
_POINT = re.compile(r"[.,]")
_SPACED = re.compile("[\u00a0\u2009'\u2019]")
_ANY_DIGITS = re.compile(r"\d{1,15}(?:[.,]\d{1,15}){0,5}")
_SCALES = {
    "k": 1e3, "thousand": 1e3, "m": 1e6, "mio": 1e6, "million": 1e6, "millions": 1e6, "bn": 1e9, "b": 1e9,
    "billion": 1e9, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}  # fmt: skip
_UNITS_TEXT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_WRITTEN = {word: number for number, word in enumerate(_UNITS_TEXT.split())}
_WRITTEN |= {word: 10 * number for number, word in enumerate(_TENS_TEXT.split(), 2)}
_WRITTEN |= {"dozen": 12, "couple": 2, "half": 50, "quarter": 25, "third": 33, "hundred": 100, "thousand": 1000}
_WORD = re.compile(r"[a-z]{3,9}")
_HALF_DAY = re.compile(r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?[ \u00a0]?(?P<half>[ap])\.?m\b", re.IGNORECASE)
_HOUR = re.compile(r"(?<!\d)(\d{1,2})[ \u00a0]?(?:[\u6642\u65f6\u70b9\u9ede\uc2dc]|Uhr\b|h\b)")
"""An hour as many languages write it: whoever says three in the afternoon may be told as saying 15."""
_HAN_DIGITS = {char: at for at, char in enumerate("\u3007\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d")}
_HAN_DIGITS |= {"\u96f6": 0, "\u4e24": 2, "\u5169": 2}
_HAN_TENS = {"\u5341": 10, "\u767e": 100, "\u5343": 1000}
_HAN_MYRIADS = {"\u4e07": 10**4, "\u842c": 10**4, "\u4ebf": 10**8, "\u5104": 10**8}
_HAN_NUMBER = re.compile(f"[{''.join((*_HAN_DIGITS, *_HAN_TENS, *_HAN_MYRIADS))}]{{1,16}}")
_PAIRED = 64
"""Of the distinct figures of all sources, the first so many are added, subtracted and divided with each other: of more,
chance would explain anything."""
_PERCENT = 100.0
_NEAR = 1e-9
_LEAST_PAIRED = 10.0
"""Smaller sums and counts are explained by anything, and are never judged."""


@dataclass(frozen=True)
class Evidence:
    """What some sources state, ready to be asked: which figures and codes they give reason to state.

    A summary may round, add up, count, convert a date or a time, or write a number out: none of that is invented. So
    what is asked is not whether a figure stands in the sources but whether nothing there explains it.
    """

    texts: tuple[str, ...]
    """With what the writer was told beside the sources: names, a title, facts."""
    times: tuple[float, ...]
    beside: tuple[str, ...] = ()
    """Other stretches of the same session that the writer knows. They explain what stands there as it is written, and
    nothing else: so much text has a figure for anything."""

    def quotes(self, shown: str) -> bool:
        """Whether `shown` stands beside the sources as it is."""
        return states(self._beside, folded(shown))

    @cached_property
    def _beside(self) -> str:
        return folded("\n".join(self.beside))

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Figures that stand there, and of the moments at which it was said; first those of the texts."""
        values = dict.fromkeys(value for text in self.texts for value in values_in(text))
        for at in self.times:
            moment = utc(at)
            values |= dict.fromkeys(map(float, (moment.year, moment.month, moment.day, moment.hour, moment.minute)))
        return tuple(values | dict.fromkeys((float(len(self.texts)),)))

    @cached_property
    def _stated(self) -> list[float]:
        return sorted(self.values)

    @cached_property
    def _following(self) -> list[float]:
        """Sums, differences, shares in percent, products with 60, 24, 7 and 12, in their order."""
        return sorted(_derived(self.values[:_PAIRED]))

    @cached_property
    def years(self) -> frozenset[int]:
        """In which they were said, and those beside them: relative dates lead there."""
        said = {utc(at).year for at in self.times}
        return frozenset(year + step for year in said for step in (-1, 0, 1))

    @cached_property
    def letters(self) -> str:
        """All of it without blanks and punctuation, casefolded."""
        return _letters("\n".join(self.texts))

    def state(self, value: float) -> bool:
        """Whether `value` itself stands there."""
        return _near(self._stated, value, _NEAR)

    def explain(self, value: float, *, places: int) -> bool:
        """Whether a source states `value`, or more exactly what it rounds, or two figures that it follows from.

        `places` is the last significant place of `value` as a power of ten: 3 for 12,000, -1 for 4.5.
        """
        tolerance = 10.0**places / 2 + _NEAR
        return _near(self._stated, value, tolerance) or _near(self._following, value, min(tolerance, 0.5 + _NEAR))


def figures_in(text: str) -> Iterator[tuple[float, int]]:
    """The values of the numbers in `text`, each with its last significant place."""
    for match in _NUMBER.finditer(text):
        scale = _SCALES.get((match["scale"] or "").strip(" -").casefold(), 1.0)
        for value, place in _readings(match["digits"]):
            yield value * scale, place + (len(f"{scale:.0f}") - 1)


def values_in(text: str) -> Iterator[float]:
    """Every figure that `text` may be said to state, in whichever form: digits, words, hours of the afternoon."""
    for match in _ANY_DIGITS.finditer(text):
        for value, _ in _readings(match[0]):
            yield value
        for part in _POINT.split(match[0]):
            yield float(part)
    yield from (value for value, _ in figures_in(text))
    for match in _HALF_DAY.finditer(text):
        yield float(int(match["hour"]) % 12 + (12 if match["half"] in "pP" else 0))
    for match in _HOUR.finditer(text):
        yield float(int(match[1]) % 12 + 12)
    for match in _HAN_NUMBER.finditer(text):
        yield _han(match[0])
    words = _WORD.findall(text.casefold())
    written = [_WRITTEN.get(word) for word in words]
    yield from (float(one) for one in written if one is not None)
    for first, second in pairwise(written):
        if first is not None and second is not None:
            yield float(first * second if second >= _PERCENT else first + second)


def _han(number: str) -> float:
    """A number in Chinese characters, by place (twenty-one hundred) or digit by digit (two zero two six)."""
    if all(char in _HAN_DIGITS for char in number):
        return float("".join(str(_HAN_DIGITS[char]) for char in number))
    total = section = digit = 0
    for char in number:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif char in _HAN_TENS:
            section += (digit or 1) * _HAN_TENS[char]
            digit = 0
        else:
            total += (section + digit or 1) * _HAN_MYRIADS[char]
            section = digit = 0
    return float(total + section + digit)


def _readings(digits: str) -> Iterator[tuple[float, int]]:
    """A number as either way of writing it reads: `1,234` may be a thousand, or one and a bit."""
    plain = _SPACED.sub("", digits)
    whole = _POINT.sub("", plain)
    yield float(whole), len(whole) - len(whole.rstrip("0")) if whole.strip("0") else 0
    if len(_POINT.findall(plain)) == 1:
        head, _, tail = plain.replace(",", ".").partition(".")
        yield float(f"{head}.{tail}"), -len(tail)


def _derived(values: Sequence[float]) -> Iterator[float]:
    large = [value for value in values if value >= _LEAST_PAIRED]
    total = 0.0
    for place, one in enumerate(large):
        total += one
        yield total
        yield from (one * factor for factor in (7, 12, 24, 60, 1000, 1024))
        yield from (one / factor for factor in (7, 12, 24, 60, 1000, 1024))
        for other in large[:place]:
            yield one + other
            yield abs(one - other)
    for one in values:
        for other in values:
            if other > one > 0:
                yield _PERCENT * one / other
                yield _PERCENT * (other - one) / other


def _near(ordered: Sequence[float], value: float, tolerance: float) -> bool:
    at = bisect_left(ordered, value - tolerance)
    return at < len(ordered) and ordered[at] <= value + tolerance


_CLOSES = "]"
_BETWEEN = "; "
_CLOSINGS = " \t.!?\u2026\u3002\uff01\uff1f\"'\u201d\u2019)*"
_MIN_DIGITS = 2
_YEAR = re.compile(r"\b\d{4}\b")
_CLOCK = re.compile(r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2})?\b")
_NOT_ALNUM = re.compile(r"[\W_]+")
_COUNTING = re.compile(r"^[ \t]*\(?\d{1,3}[.)][ \t]")


def evidence(
    texts: Sequence[str], times: Sequence[float], known: Iterable[str] = (), beside: Iterable[str] = ()
) -> Evidence | None:
    """What sources state; `None` where they are too long to be looked at whole: then nothing may be called unsourced.

    `times` are when each was said, in seconds since the epoch; `known` is what the writer was told beside them, and
    `beside` other stretches of the session.
    """
    if sum(map(len, texts)) > MEASURED_CHARS:
        return None
    return Evidence((*map(without_marked, texts), *known), tuple(times), tuple(map(without_marked, beside)))


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
        fence = FENCE.match(line) is not None
        in_code ^= fence
        if in_code or fence or HEADING.match(line):
            lines.append(line)
            continue
        before = set(_named_in(line))
        new = sorted(span for span in _strange(line, found) if line[slice(*span)] not in before)
        all_marked += [line[start:stop] for start, stop in new]
        lines.append(_with_marks(line, new) if new else line)
    return "\n".join(lines), tuple(dict.fromkeys(all_marked))


def _with_marks(line: str, spans: Sequence[tuple[int, int]]) -> str:
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


def _strange(line: str, found: Evidence) -> Iterator[tuple[int, int]]:
    """Where a line names what is strange to the sources; what one shape took is no other's."""
    left = line
    for pattern in (NOTED, INSTEAD, _COUNTING):
        left = pattern.sub(taken, left)
    for pattern, is_known in _SHAPES:
        for match in pattern.finditer(left):
            shown = match[0].rstrip(".,;:!?'\")]}")
            if not shown or set(shown) & set("[]"):
                continue
            start, stop = match.start(), match.start() + len(shown)
            left = f"{left[:start]}{TAKEN * len(shown)}{left[stop:]}"
            if not is_known(shown, found) and not found.quotes(shown):
                yield start, stop


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
        if int(year) not in found.years and not found.explain(float(year), places=0):
            return False
    clock = _CLOCK.search(shown)
    if clock is None:
        return True
    hour, minute = int(clock["hour"]), int(clock["minute"])
    hours = any(found.state(float(one)) for one in (hour, (hour + 12) % 24, hour % 12))
    return hours and (minute in (0, 30) or found.state(float(minute)))


def _figure_is_known(shown: str, found: Evidence) -> bool:
    if sum(char.isdigit() for char in shown) < _MIN_DIGITS:
        return True
    if _letters(shown) in found.letters:
        return True
    readings = list(figures_in(shown))
    return not readings or any(
        found.explain(value, places=place) or (value == int(value) and int(value) in found.years)
        for value, place in readings
    )


def _letters(text: str) -> str:
    return _NOT_ALNUM.sub("", text.casefold())


_SHAPES: tuple[tuple[re.Pattern[str], Callable[[str, Evidence], bool]], ...] = (
    (URL, _code_is_known), (EMAIL, _code_is_known), (PATH, _path_is_known), (DATE, _date_is_known),
    (CODE, _code_is_known), (NUMBER, _figure_is_known),
)  # fmt: skip
