"""Reads the dates of conversation files without guessing (what can be read in two ways is an error).

Every turn gets a time: known ones are kept, missing ones filled in, never backwards.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, NoReturn

from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAME = r"(?P<name>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)\.?"
_TIME = re.compile(
    r"(?<!\d)(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<half>[ap])\.?m\b\.?"
    r"|(?<!\d)(?P<hour24>\d{1,2}):(?P<minute24>\d{2})(?::(?P<second24>\d{2})(?:[.,](?P<fraction24>\d{1,9}))?)?(?!\d)",
    re.IGNORECASE,
)
_ZONE = re.compile(
    r"(?:(?P<utc>\b(?:utc|gmt)\b|(?<=\d)\s*z\b)|(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2}))\s*$", re.IGNORECASE
)
_WEEKDAY = re.compile(r"\(?\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b\.?\)?", re.IGNORECASE)
_YEAR_FIRST = re.compile(r"(?<!\d)(?P<year>\d{4})(?P<sep>[-/.])(?P<month>\d{1,2})(?P=sep)(?P<day>\d{1,2})(?!\d)")
_YEAR_LAST = re.compile(r"(?<!\d)(?P<one>\d{1,2})(?P<sep>[-/.])(?P<two>\d{1,2})(?P=sep)(?P<year>\d{4})(?!\d)")
_DAY_MONTH = re.compile(
    rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s,-]*(?:of\s+)?{_MONTH_NAME}[\s,-]*(?P<year>\d{{4}})(?!\d)",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(
    rf"\b{_MONTH_NAME}[\s,-]*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s,-]+(?P<year>\d{{4}})(?!\d)", re.IGNORECASE
)
_EPOCH = re.compile(r"\d{9,16}(?:\.\d+)?")
_LATEST_SECONDS = 1e11
"""Epoch figures above this (the year 5138) are milliseconds; above its thousandfold, microseconds."""
SITTING_PAUSE = dt.timedelta(minutes=30)
"""A pause of this length starts a new sitting, as in the memory's settings (`RecallSettings.sitting_gap_seconds`)."""
_STEP = dt.timedelta(seconds=1)


def parse_date(value: str | float) -> dt.datetime:
    """The moment that `value` names, aware; UTC where it names no zone, midnight where it names no time.

    Reads ISO 8601, epoch seconds (also milliseconds and microseconds), and dates with a named month, a leading year,
    or dots: "1:56 pm on 8 May, 2023", "March-15-2024", "2023/05/20 (Sat) 06:13", "29.12.2023, 22:42:04".

    Raises:
        InvalidInputError: when it is not a date, or one that can be read in two ways ("05/06/2024").
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        _refuse(value, "give text or seconds since the epoch")
    if not isinstance(value, str):
        return _from_epoch(value)
    text = value.strip()
    if _EPOCH.fullmatch(text):
        return _from_epoch(float(text))
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        zone, rest = _take_zone(text)
        clock, rest = _take_time(rest, text)
        year, month, day = _day_of(_WEEKDAY.sub(" ", rest), text)
        try:
            return dt.datetime.combine(dt.date(year, month, day), clock, tzinfo=zone)
        except ValueError as error:
            _refuse(text, error)
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _refuse(value: object, why: object) -> NoReturn:
    msg = f"{value!r} is not a date: {why}"
    raise InvalidInputError(msg) from None


def _from_epoch(number: float) -> dt.datetime:
    seconds = float(number)
    for _ in range(2):
        if abs(seconds) > _LATEST_SECONDS:
            seconds /= 1000
    try:
        return dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    except (OverflowError, OSError, ValueError):
        _refuse(number, "out of range for seconds since the epoch")


def _take_zone(text: str) -> tuple[dt.timezone, str]:
    """The zone at the end of `text` (a time must stand before an offset), and what stands before it."""
    match = _ZONE.search(text)
    if match is None or (match["sign"] and not _TIME.search(text[: match.start()])):
        return dt.UTC, text
    if match["utc"] is not None:
        return dt.UTC, text[: match.start()]
    offset = dt.timedelta(hours=int(match["hours"]), minutes=int(match["minutes"]))
    try:
        return dt.timezone(-offset if match["sign"] == "-" else offset), text[: match.start()]
    except ValueError as error:
        _refuse(text, error)


def _take_time(text: str, whole: str) -> tuple[dt.time, str]:
    match = _TIME.search(text)
    if match is None:
        return dt.time(), text
    half = match["half"]
    tail = "" if half else "24"
    hour, minute, second = (int(match[part + tail] or 0) for part in ("hour", "minute", "second"))
    if half:
        if not 1 <= hour <= 12:  # noqa: PLR2004 - hours on a clock's face
            _refuse(whole, f"there is no {hour} {half}m")
        hour = hour % 12 + (12 if half in "pP" else 0)
    microsecond = int((match["fraction" + tail] or "0").ljust(6, "0")[:6])
    try:
        return dt.time(hour, minute, second, microsecond), text[: match.start()] + " " + text[match.end() :]
    except ValueError as error:
        _refuse(whole, error)


def _day_of(text: str, whole: str) -> tuple[int, int, int]:
    if match := _YEAR_FIRST.search(text):
        return int(match["year"]), int(match["month"]), int(match["day"])
    for pattern in (_DAY_MONTH, _MONTH_DAY):
        if match := pattern.search(text):
            return int(match["year"]), _MONTHS.index(match["name"][:3].lower()) + 1, int(match["day"])
    if match := _YEAR_LAST.search(text):
        one, two, year = int(match["one"]), int(match["two"]), int(match["year"])
        if match["sep"] == "." or one > 12:  # noqa: PLR2004 - months; dots mean day first wherever they are used
            return year, two, one
        if two > 12 or one == two:  # noqa: PLR2004 - months
            return year, one, two
        forms = f"{year}-{one:02}-{two:02} or {year}-{two:02}-{one:02}"
        msg = f"{whole!r} can be read in two ways: write the year first, as {forms}"
        raise InvalidInputError(msg)
    msg = f"{whole!r} is not a date that can be read: write it as 2024-03-15 or 2024-03-15T13:56:00Z"
    raise InvalidInputError(msg)


def place_in_time(
    starts: Sequence[dt.datetime | None], times: Sequence[Sequence[dt.datetime | None]]
) -> list[list[dt.datetime | None]]:
    """A time for each turn of each sitting; all `None` where nothing is dated at all.

    A dated turn keeps its time, and an undated one is a second after the turn before it. Time never runs backwards: a
    turn or sitting dated before the one it follows is moved up to it. A sitting without times of its own that would
    touch the one before it starts after a pause, so that both remain sittings of their own.
    """
    known = [moment for start, turns in zip(starts, times, strict=True) for moment in (start, *turns) if moment]
    if not known:
        return [[None for _ in turns] for turns in times]
    placed: list[list[dt.datetime | None]] = []
    last: dt.datetime | None = None
    for start, turns in zip(starts, times, strict=True):
        row: list[dt.datetime | None] = []
        for index, own in enumerate(turns):
            earliest = last
            if last is not None and own is None:
                earliest = last + (SITTING_PAUSE if index == 0 else _STEP)
            wish = own or (start if index == 0 else None) or earliest or known[0]
            last = max(wish, earliest) if earliest else wish
            row.append(last)
        placed.append(row)
    return placed


def split_by_pauses(times: Sequence[dt.datetime | None]) -> list[int]:
    """For each turn the number of its sitting: a pause of `SITTING_PAUSE` or more starts the next one."""
    sitting, numbers, last = 0, list[int](), None
    for moment in times:
        if moment and last and moment - last >= SITTING_PAUSE:
            sitting += 1
        numbers.append(sitting)
        last = moment or last
    return numbers
