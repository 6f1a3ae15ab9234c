"""Finds what a summary must not blur: paths, addresses, numbers with their units, versions, codes, dates and names.

Recognised by form alone, so it works without a dictionary in any language that writes them so. `kept_share` is the
information-loss measure of `SummaryMetrics`: which of the sources' identifiers a summary still states.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from langchain_tiered_memory.text.lexicon import NO_NAMES
from langchain_tiered_memory.text.readings import MEASURED_CHARS, read_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_EXTENSION = (
    "py|pyi|ipynb|ts|tsx|js|jsx|mjs|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|scala|sh|bash|ps1|sql|html?|css|scss|vue|md"
    "|rst|txt|json|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|xml|csv|tsv|xlsx?|docx?|pptx?|pdf|png|jpe?g|gif|svg|mp[34]|zip|gz|tar"
    "|db|sqlite3?|log|parquet|proto|tf|gradle|ya?ml"
)
_UNIT = (
    r"%|\u2030|\u00b0[CF]?|\u20ac|\$|\u00a3|\u00a5|(?:[kKMGT]i?B|[kKmMGT]?bps|[kKMG]?Hz|ms|\u00b5s|ns|k?m/h|mph|km|cm"
    r"|mm|kg|mg|ml|kW|kWh|EUR|USD|GBP|CHF|JPY|px|pt|rpm|rps|qps|fps|GB|MB|KB|TB)\b|(?:seconds?|secs?|minutes?|mins?"
    r"|hours?|hrs?|days?|weeks?|months?|years?|tokens?|rows?|users?|people|dollars?|euros?|pounds?|bytes?|miles?|feet"
    r"|met(?:er|re)s?|percent|items?|files?|requests?|retries|replicas?|workers?|points?|k|am|pm)\b"
)
URL = re.compile(r"\b(?:https?|ftp|wss?|postgres(?:ql)?|redis|s3|file)://[^\s<>\"'`)\]}]+", re.IGNORECASE)
EMAIL = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b")
_PART = r"[\w.@+-]{1,80}"  # bounded, as every repetition here: a blob must not take quadratic time
PATH = re.compile(
    rf"(?<![\w/:.])(?:(?:~|\.{{1,2}})?/(?:{_PART}/){{0,30}}[\w.@+-]{{0,80}}\w"
    rf"|(?:{_PART}/){{1,30}}[\w.@+-]{{0,80}}\.\w{{1,8}}\b|(?:{_PART}/){{2,30}}[\w.@+-]{{0,80}}\w"
    rf"|[A-Za-z]:\\(?:[\w.@ +-]{{1,80}}\\){{0,30}}[\w.@+-]{{0,80}}\w|[\w-][\w.-]{{0,80}}\.(?:{_EXTENSION})\b(?!\())"
)
DATE = re.compile(
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}})?)?\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b(?:,? \d{{4}})?|\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd"
    rf"|th)?\b(?:,? \d{{4}})?"
    rf"|\b{_MONTH} \d{{4}}\b|\b\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?: ?[ap]\.?m\b)?"
    rf"|\d{{1,4}}\u5e74(?:\d{{1,2}}\u6708)?(?:\d{{1,2}}\u65e5)?|\d{{1,2}}\u6708\d{{1,2}}\u65e5",
    re.IGNORECASE,
)
CODE = re.compile(
    r"\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|0x[0-9a-fA-F]{2,128}"
    r"|v\d{1,12}(?:\.\d{1,12}){0,3}(?:[-+][\w.]{1,40})?"
    r"|\d{1,12}\.\d{1,12}\.\d{1,12}(?:[-+.][\w.]{1,40})?|[A-Z]{1,10}[-_]\d{1,20}[A-Z]{0,3}(?:[-_]\d{1,20}){0,8}"
    r"|[A-Z]{1,5}\d{2}[A-Z\d]{0,40}|(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40})\b|(?<!\w)#\d{1,7}\b"
)
SYMBOL = re.compile(
    r"\b(?:[A-Za-z]\w{0,80}+(?:\.[A-Za-z_]\w{0,80}+){0,8}\(\)|[a-zA-Z]\w*_\w+|[a-z]++(?:[A-Z][a-z0-9]+)+"
    r"|(?:[A-Z][a-z0-9]+){2,}|[A-Z][a-z]+[A-Z]{2,}\w*"
    r"|[A-Z]{2,}[a-z]\w+|[A-Za-z]\w++(?:\.[a-z_]\w+){2,})|(?<!\w)--[a-z][\w-]+"
)
NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,])[$\u20ac\u00a3\u00a5]?[+-]?\d++(?:[.,\u00a0\u2009' ]\d{3}(?!\d)){0,8}"
    r"(?:(?=[.,]\d)[.,]\d{1,40}+)?+(?![\w.]{0,40}\d)"
    rf"(?:[ \u00a0-]?(?:{_UNIT}))?"
)
QUOTED = re.compile(
    r"`([^`\n]{2,60})`|\"([^\"\n]{2,60})\"|\u201c([^\u201d\n]{2,60})\u201d|\u300c([^\u300d\n]{1,40})\u300d"
    r"|\u00ab\s?([^\u00bb\n]{2,60}?)\s?\u00bb"
)
NAME = re.compile(
    r"(?:(?<=[^\W_]\s)|(?<=[,;]\s)|(?<=[(\"]))(?:[^\W\d_a-z][^\W\d_]{0,60}[a-z][^\W\d_]{0,60}"
    r"|[A-Z]{2,6})(?:[ -][A-Z][^\W\d_]{1,60}){0,20}\b"
)
_DIGIT = re.compile(r"\d")
_MONTH_SIGN = (
    "[Jj](?:[Aa][Nn]|[Uu][NnLl])|[Ff][Ee][Bb]|[Mm][Aa][RrYy]|[Aa](?:[Pp][Rr]|[Uu][Gg])|[Ss\u017f][Ee][Pp]"
    "|[Oo][Cc][Tt]|[Nn][Oo][Vv]|[Dd][Ee][Cc]"
)
SHAPES: tuple[
    tuple[re.Pattern[str], str | re.Pattern[str]], ...
] = (  # each with the cheapest sign that a line can have one at all: most have none
    (URL, "://"),
    (EMAIL, "@"),
    (PATH, re.compile(rf"[/\\]|[\w.-]\.(?:{_EXTENSION})\b(?!\()")),
    (DATE, re.compile(rf"\d(?:-\d\d-|[./]\d{{1,2}}[./]|:\d\d|[\u5e74\u6708])|{_MONTH_SIGN}")),
    (CODE, re.compile(r"[A-Za-z][-_]?\d|\d[A-Za-z.-]|#\d")),
    (SYMBOL, re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}|\w_|\(\)|--|\w\.\w")),
)
"""Forms that hide one another, in this order: what one of them took is no other's, and no figure or name."""
_OF_DIGITS = (DATE, CODE)
"""None of them is found where there is no digit, which is the cheapest sign."""
_NAME_SIGN = re.compile(r'[\s("][^\W\d_a-z]')
_NAMED_FIRST = re.compile(r"(?:[^\W\d_a-z][^\W\d_]{0,60}[a-z]|[A-Z]{2})")
"""How a line may begin with a name that goes on with the line before it."""
_QUOTES = re.compile('[`"\u201c\u300c\u00ab]')
_TRAILING = ".,;:!?'\"\u2019\u201d)]}"
_MAX_QUOTED_WORDS = 6
_MIN_BARE_DIGITS = 2
TAKEN = "\x00"
"""Stands for a character of what a shape took."""


class Marks(NamedTuple):
    """What a line names: read once for everything that asks."""

    left: str
    """The line without its shapes, every other character in its place."""
    stated: frozenset[str]
    """Shapes and figures as `identifiers` gives them."""
    keys: frozenset[str]
    """Quotes, too."""
    named: frozenset[str]
    """All of it, names too."""


@read_once
def marks_of(line: str) -> Marks:
    """What a text without line breaks names."""
    shapes: list[str] = []
    left = line
    has_digits = _DIGIT.search(line) is not None
    for pattern, sign in SHAPES:
        if pattern in _OF_DIGITS and not has_digits:
            continue
        if not (sign in left if isinstance(sign, str) else sign.search(left)):
            continue
        trailing = _TRAILING if pattern is URL else "."
        shapes += [folded(match[0]).rstrip(trailing) for match in pattern.finditer(left)]
        left = pattern.sub(taken, left)  # so that no part of it is found again as a figure or a name
    stated = frozenset((*shapes, *(_figures(left) if has_digits else ())))
    keys = stated.union(_quotes(left)) if _QUOTES.search(left) else stated
    return Marks(left, stated, keys, keys.union(names(left)) if _NAME_SIGN.search(left) else keys)


def stated_in(text: str) -> frozenset[str]:
    """Of `identifiers`, those that are no quote and no name: codes, paths, dates, figures."""
    return frozenset[str]().union(*(marks_of(line).stated for line in text.splitlines()))


def identifiers(text: str) -> frozenset[str]:
    """Everything in `text` that is recognised by its form, casefolded and without surrounding punctuation.

    Paths, URLs, e-mail addresses, dates and times, versions, hashes and codes, program symbols, numbers (a bare
    single digit is none), quoted names of up to six words, and capitalised names that do not start a sentence.
    """
    return _of_lines(text) if "\n" in text else marks_of(text).named


@read_once
def _of_lines(text: str) -> frozenset[str]:
    found = set[str]()
    before = ""
    for line in text.split("\n"):
        marks = marks_of(line)
        goes_on = before and (before in ",;" or (before != "_" and before.isalnum())) and _NAMED_FIRST.match(marks.left)
        if goes_on:
            # A sentence may go on here: what begins the line is a name as it would be within one.
            found |= marks.keys
            found.update(names(f"{before}\n{marks.left}"))
        else:
            found |= marks.named
        before = marks.left[-1:]
    return frozenset(found)


def kept_share(source_texts: Iterable[str], summary_text: str) -> float:
    """Share (0 to 1) of the sources' identifiers that `summary_text` still states; 1 where they have none.

    Of a source beyond 400,000 characters only the beginning is measured.
    """
    wanted = frozenset[str]().union(*(identifiers(text[:MEASURED_CHARS]) for text in source_texts))
    if not wanted:
        return 1.0
    stated = identifiers(summary_text)
    whole = folded(summary_text)
    return sum(one in stated or states(whole, one) for one in wanted) / len(wanted)


def states(text: str, identifier: str) -> bool:
    """Whether `identifier` stands in a folded text as a whole, not as part of a longer word or number."""
    at = text.find(identifier)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(identifier) : at + len(identifier) + 1]
        if not (before.isalnum() and identifier[0].isalnum()) and not (after.isalnum() and identifier[-1].isalnum()):
            return True
        at = text.find(identifier, at + 1)
    return False


def folded(text: str) -> str:
    """`text` in one case, on one line, with single blanks."""
    return " ".join(text.casefold().split())


def taken(match: re.Match[str]) -> str:
    """What stands in the place of a match: every other character keeps its own."""
    return TAKEN * len(match[0])


def _figures(left: str) -> Iterator[str]:
    for match in NUMBER.finditer(left):
        number = folded(match[0]).strip(_TRAILING)
        if sum(map(str.isdigit, number)) >= _MIN_BARE_DIGITS or not number.lstrip("+-").isdigit():
            yield number


def _quotes(left: str) -> Iterator[str]:
    # With one mark for each shape: what stands in quotes is bounded by its own length.
    for match in QUOTED.finditer(TAKEN.join(filter(None, left.split(TAKEN)))):
        quoted = folded(next(group for group in match.groups() if group)).strip(_TRAILING)
        if quoted and TAKEN not in quoted and len(quoted.split()) <= _MAX_QUOTED_WORDS:
            yield quoted


def names(text: str) -> list[str]:
    """Capitalised names that do not start a sentence, casefolded, in their order."""
    found = (folded(match[0]) for match in NAME.finditer(text))
    return [name for name in found if name not in NO_NAMES and len(name) > 1]
