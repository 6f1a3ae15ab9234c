"""Finds the days, months and years that a question names, so that what was said then can be preferred.

Few patterns, each sure: numeric dates with a four-digit year, days and months by their English names, seasons, and
simple distances from now ("two weeks ago", "last May"). "Recently", "a few years ago" or `3/4/23` mean too much or too
many things, and give nothing. An expression without a year means its latest occurrence that has begun by `now`. Seasons
are northern.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {word: number for number, word in enumerate(_NUMBERS, start=1)}
_COUNTS |= {"a": 1, "an": 1, "a couple of": 2}
_UNIT_DAYS = {"day": 1, "week": 7, "weekend": 7}

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
    for pattern, resolve in _PATTERNS:
        for match in pattern.finditer(text):
            if any(match.start() < stop and start < match.end() for start, stop in taken):
                continue
            try:
                intervals = list(resolve(match, midnight))
            except (ValueError, OverflowError):  # 31 February, or outside the years 1 to 9999
                continue
            found.update(one for one in intervals if one.start < one.stop)
            taken.append(match.span())
    return sorted(found)


def _numeric(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    day = match["day"]
    start = midnight.replace(year=int(match["year"]), month=int(match["number"]), day=int(day or 1))
    yield Interval(start, start + timedelta(days=1) if day else _month_after(start, 1))


def _day(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    start = _dated(match, midnight, day=int(match["day"]))
    last = match.groupdict().get("last_day")
    stop = start.replace(day=int(last)) if last else start
    yield Interval(start, stop + timedelta(days=1))


def _month(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    start = _dated(match, midnight, day=1)
    yield Interval(start, _month_after(start, 1))


def _season(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    month = _SEASONS[match["season"].casefold()]
    year = int(match["year"]) if match["year"] else _latest_year(month, 1, midnight)
    start = _year_start(year, midnight).replace(month=month)
    yield Interval(start, _month_after(start, 3))


def _year(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    start = _year_start(int(match["year"]), midnight)
    yield Interval(start, _month_after(start, 12))


def _ago(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    count = match["count"].casefold()
    yield _unit_before(match["unit"].casefold(), _COUNTS.get(count) or int(count), midnight)


def _last_unit(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    yield _unit_before(match["unit"].casefold(), 0 if match["which"].casefold() == "this" else 1, midnight)


def _last_weekday(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    wanted = _WEEKDAYS.index(match["weekday"].casefold()[:3])
    start = midnight - timedelta(days=(midnight.weekday() - wanted - 1) % 7 + 1)
    yield Interval(start, start + timedelta(days=1))


def _named_day(match: re.Match[str], midnight: datetime) -> Iterator[Interval]:
    back = {"today": 0, "tonight": 0, "this morning": 0, "the day before yesterday": 2}.get(match[0].casefold(), 1)
    start = midnight - timedelta(days=back)
    yield Interval(start, start + timedelta(days=1))


def _unit_before(unit: str, count: int, midnight: datetime) -> Interval:
    """The calendar unit `count` units before the current one."""
    if unit in {"month", "year"}:
        months = 1 if unit == "month" else 12
        start = midnight.replace(day=1) if unit == "month" else _year_start(midnight.year, midnight)
        return Interval(_month_after(start, -months * count), _month_after(start, -months * (count - 1)))
    days = _UNIT_DAYS[unit]
    start = midnight - timedelta(days=(midnight.weekday() if days > 1 else 0) + days * count)
    return Interval(start + timedelta(days=5 if unit == "weekend" else 0), start + timedelta(days=days))


def _dated(match: re.Match[str], midnight: datetime, *, day: int) -> datetime:
    """The matched month, in the matched year or else the latest that has begun."""
    month = _MONTHS.index(match["month"].casefold()[:3]) + 1
    year = int(match["year"]) if match["year"] else _latest_year(month, day, midnight)
    return midnight.replace(year=year, month=month, day=day)


def _latest_year(month: int, day: int, midnight: datetime) -> int:
    return midnight.year - ((month, day) > (midnight.month, midnight.day))


def _year_start(year: int, midnight: datetime) -> datetime:
    return midnight.replace(year=year, month=1, day=1)


def _month_after(start: datetime, months: int) -> datetime:
    """The first of the month, `months` later than the first of the month `start`."""
    index = start.year * 12 + start.month - 1 + months
    return start.replace(year=index // 12, month=index % 12 + 1)


def _pattern(expression: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{expression})", re.IGNORECASE)


_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"

_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Iterator[Interval]]], ...] = (
    # An earlier pattern takes its words from the later ones.
    (_pattern(rf"{_YEAR}[-/](?P<number>[01]\d)(?:[-/](?P<day>[0-3]\d))?(?!\d)"), _numeric),
    (_pattern(rf"(?P<day>[0-3]?\d)\.(?P<number>[01]?\d)\.{_YEAR}"), _numeric),
    (_pattern(rf"{_DAY}\s+(?:of\s+)?{_MONTH}{_OF_YEAR}"), _day),
    (_pattern(rf"{_MONTH}\s+{_DAY}{_TO_DAY}(?!\d){_OF_YEAR}"), _day),
    (_pattern(rf"{_LEAD}{_MONTH}{_OF_YEAR}"), _month),
    (_pattern(rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}"), _month),
    (_pattern(rf"{_LEAD}{_SEASON}{_OF_YEAR}"), _season),
    (_pattern(rf"{_SEASON},?\s+(?:of\s+)?{_YEAR}"), _season),
    (_pattern(rf"{_LEAD}{_YEAR}"), _year),
    (_pattern(rf"{_COUNT}\s+(?P<unit>day|week|weekend|month|year)s?\s+ago\b"), _ago),
    (_pattern(r"(?P<which>last|this|past|previous)\s+(?P<unit>week|weekend|month|year)\b(?!\s+of)"), _last_unit),
    (_pattern(rf"(?:last|past)\s+{_WEEKDAY}"), _last_weekday),
    (_pattern(r"(?:the day before yesterday|yesterday|last night|today|tonight|this morning)\b"), _named_day),
)
