"""The few fixed words that frame what is quoted, and how they are read back from a finished summary."""

from __future__ import annotations

import re

from langchain_tiered_memory.types.records import utc

TALKED, ASKED_ABOUT, REQUESTED, WORKED = "talked about", "asked about", "requested:", "used"
"""Verbs of an overview."""

DATE = r"\d{1,2} [A-Z][a-z]{2,8} \d{4}"
OVERVIEW = re.compile(r"^(?:[^:\n]{1,120}? (?:talked about|asked about|requested:) |The assistant used )[^\n]*\.$")
"""The first line of our summaries. Not to be told again one level up: it names what the sentences below it tell."""
SPAN = re.compile(rf"^{DATE}(?: to {DATE})?[.;]")
"""How overviews of earlier versions began."""
DAY_LINE = re.compile(rf"^\*\*((?:up to )?{DATE})\*\*$", re.MULTILINE)
"""The line above what was said on a day, in a chronological summary."""
TOLD_SUBJECTS = re.compile(r"(?:talked about|asked about) (?P<subjects>[^;(\n]{1,200}?)(?:;| \(|\.$)")
TOLD_PEOPLE = re.compile(r"^(?P<people>[^:\n]{1,120}?) (?:talked about|asked about|requested:) ")
TOLD_REQUEST = re.compile(r"^(?P<who>[^:\n]{1,60}?) requested: (?P<request>[^;\n]{1,160})")
CODE = "Code: "
"""Before what a block of code defines."""
OPEN = "Open: "
"""Before a question that nobody answered, where no heading says so."""
SPOKEN = re.compile(
    rf"^(?:Open: )?(?P<speaker>[^:\n]{{1,60}}?)(?: \((?P<when>{DATE})\))?(?P<asked> asked)?: {{1,8}}(?=\S)"
)
ANSWER = re.compile(rf"^(?:Answer|Reply) \((?P<speaker>[^:()\n]{{1,60}}?)(?:, (?P<when>{DATE}))?\): (?=\S)")


def date_of(at: float) -> str:
    """The day of a time, in UTC: `8 May 2023`."""
    day = utc(at)
    return f"{day.day} {day:%b %Y}"


def span_of(first_at: float, last_at: float) -> str:
    """The days of a stretch: `8 May 2023`, or `8 May 2023 to 9 Jun 2023`."""
    first, last = date_of(first_at), date_of(last_at)
    return first if first == last else f"{first} to {last}"


def listed(names: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
