"""Finds the days, months and years that a question names, so that what was said then can be preferred.

Few patterns, each sure: numeric dates with a four-digit year, days and months by their English names, seasons, and
simple distances from now ("two weeks ago", "last May"). "Recently", "a few years ago" or `3/4/23` mean too much or too
many things, and give nothing. An expression without a year means its latest occurrence that has begun by `now`. Seasons
are northern.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {word: number for number, word in enumerate(_NUMBERS, start=1)}
_COUNTS |= {"a": 1, "an": 1, "a couple of": 2}
_UNIT_DAYS = {"day": 1, "week": 7, "weekend": 7}
_NAMED_DAYS = {"today": 0, "tonight": 0, "this morning": 0, "the day before yesterday": 2}
_DISTANCES = frozenset({"unit", "weekday", "named"})
"""Parts of an expression that is measured from now."""

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_OF_YEAR = rf"(?:,?\s*(?:of\s+)?{_YEAR})?"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_SEASON = r"(?P<season>spring|summer|autumn|fall|winter)\b"
_TO_DAY = r"(?:\s*(?:-|\u2013|to)\s*(?P<last_day>[0-3]?\d)(?:st|nd|rd|th)?)?"
_COUNT = r"(?P<count>\d{1,3}|a couple of|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_IN = r"(?:in|on|of|during|since|for|by|until|before|after|around|throughout|last|this|past)"
_LEAD = (
    r"(?:(?:early|mid|late|beginning of|start of|middle of|end of)[\s-]*(?:the\s+)?"
    rf"|{_IN}\s+(?:the\s+)?(?:year\s+)?)"
)


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A stretch of time from `start` up to, but without, `stop`; in the time zone of the `now` it was resolved by."""

    start: datetime
    stop: datetime


def find_intervals(text: str, *, now: datetime) -> list[Interval]:
    """The times that `text` names, in order and without repetition; empty where none is sure.

    `now` is the latest time of the conversation: what "yesterday" and "in May" are measured from.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    found: set[Interval] = set()
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < stop and start < match.end() for start, stop in taken):
                continue
            said = {name: part.casefold() for name, part in match.groupdict().items() if part}
            try:
                interval = _distance(said, midnight) if said.keys() & _DISTANCES else _date(said, midnight)
            except (ValueError, OverflowError):  # 31 February, or outside the years 1 to 9999
                continue
            if interval.start < interval.stop:
                found.add(interval)
            taken.append(match.span())
    return sorted(found)


def _date(said: dict[str, str], midnight: datetime) -> Interval:
    """The day, days, month, season or year that is named; without a year the latest that has begun."""
    day, months = int(said.get("day", 1)), 12
    month = 1
    if "season" in said:
        month, months = _SEASONS[said["season"]], 3
    elif "number" in said or "month" in said:
        month = int(said["number"]) if "number" in said else _MONTHS.index(said["month"][:3]) + 1
        months = 1
    year = int(said["year"]) if "year" in said else midnight.year - ((month, day) > (midnight.month, midnight.day))
    start = midnight.replace(year=year, month=month, day=day)
    if "day" not in said:
        return Interval(start, _month_after(start, months))
    return Interval(start, start.replace(day=int(said.get("last_day", day))) + timedelta(days=1))


def _distance(said: dict[str, str], midnight: datetime) -> Interval:
    """What is so many days, weeks, months or years before `midnight`, or the last day of that name."""
    if "unit" not in said:
        back = _NAMED_DAYS.get(said.get("named", ""), 1)
        if "weekday" in said:
            back = (midnight.weekday() - _WEEKDAYS.index(said["weekday"][:3]) - 1) % 7 + 1
        return Interval(midnight - timedelta(days=back), midnight - timedelta(days=back - 1))
    unit = said["unit"]
    count = said.get("count", "0" if said.get("which") == "this" else "1")
    before = _COUNTS.get(count) or int(count)
    if unit in {"month", "year"}:
        months = 1 if unit == "month" else 12
        start = midnight.replace(day=1) if unit == "month" else midnight.replace(month=1, day=1)
        return Interval(_month_after(start, -months * before), _month_after(start, -months * (before - 1)))
    days = _UNIT_DAYS[unit]
    start = midnight - timedelta(days=(midnight.weekday() if days > 1 else 0) + days * before)
    return Interval(start + timedelta(days=5 if unit == "weekend" else 0), start + timedelta(days=days))


def _month_after(start: datetime, months: int) -> datetime:
    """The first of the month, `months` later than the first of the month `start`."""
    index = start.year * 12 + start.month - 1 + months
    return start.replace(year=index // 12, month=index % 12 + 1)


def _pattern(expression: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{expression})", re.IGNORECASE)


_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"

_PATTERNS = (
    # An earlier pattern takes its words from the later ones.
    _pattern(rf"{_YEAR}[-/](?P<number>[01]\d)(?:[-/](?P<day>[0-3]\d))?(?!\d)"),
    _pattern(rf"(?P<day>[0-3]?\d)\.(?P<number>[01]?\d)\.{_YEAR}"),
    _pattern(rf"{_DAY}\s+(?:of\s+)?{_MONTH}{_OF_YEAR}"),
    _pattern(rf"{_MONTH}\s+{_DAY}{_TO_DAY}(?!\d){_OF_YEAR}"),
    _pattern(rf"{_LEAD}(?:{_MONTH}|{_SEASON}){_OF_YEAR}"),
    _pattern(rf"(?:{_MONTH}|{_SEASON}),?\s+(?:of\s+)?{_YEAR}"),
    _pattern(rf"{_LEAD}{_YEAR}"),
    _pattern(rf"{_COUNT}\s+(?P<unit>day|week|weekend|month|year)s?\s+ago\b"),
    _pattern(r"(?P<which>last|this|past|previous)\s+(?P<unit>week|weekend|month|year)\b(?!\s+of)"),
    _pattern(rf"(?:last|past)\s+{_WEEKDAY}"),
    _pattern(r"(?P<named>the day before yesterday|yesterday|last night|today|tonight|this morning)\b"),
)
