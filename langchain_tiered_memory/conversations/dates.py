"""Reads the dates of conversation files without guessing: a date that can be read in two ways is an error.

Every turn gets a time. Known times are kept and missing ones filled in, and time never runs backwards.
"""

from __future__ import annotations

import datetime as dt
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence


_CLOCK = r"(?<!\d)(\d{1,2}%s:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?%s"
_TIME = re.compile(_CLOCK % ("(?:", r")?)\s*([ap])\.?m\b\.?") + "|" + _CLOCK % ("", r")(?!\d)"), re.IGNORECASE)
_TIME_FORMS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I %p", "%I:%M %p", "%I:%M:%S %p", "%I:%M:%S.%f %p")
_OFFSET = re.compile(r"([+-]\d{2}):?(\d{2})\s*$")
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_DAY = re.compile(
    r"(?<!\d)(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?[\s,-]*(?:of\s+)?{_MONTH}[a-z]*\.?[\s,-]*\d{{4}}"
    rf"|\b{_MONTH}[a-z]*\.?[\s,-]*\d{{1,2}}(?:st|nd|rd|th)?[\s,-]+\d{{4}})(?!\d)",
    re.IGNORECASE,
)
_DAY_PARTS = re.compile(rf"\d+|{_MONTH}", re.IGNORECASE)
_DAY_FORMS = ("%Y %m %d", "%d %b %Y", "%b %d %Y", "%d %m %Y", "%m %d %Y")
_EPOCH = re.compile(r"\d{9,16}(?:\.\d+)?")
_LATEST_SECONDS = 1e11
"""Epoch figures above this (the year 5138) are milliseconds; above its thousandfold, microseconds."""
SITTING_PAUSE = dt.timedelta(minutes=30)
"""The pause between two sittings that a file dates the same. Without sittings, such a pause starts a new one."""
_STEP = dt.timedelta(seconds=1)


def parse_date(value: str | float) -> dt.datetime:
    """The moment that `value` names, as an aware time. Without a zone it is in UTC; without a time it is midnight.

    Reads ISO 8601, epoch seconds (also milliseconds and microseconds), and dates with a named month, a leading year,
    or dots: "1:56 pm on 8 May, 2023", "March-15-2024", "2023/05/20 (Sat) 06:13", "29.12.2023, 22:42:04".

    Raises:
        InvalidInputError: if it is not a date, or can be read in two ways ("05/06/2024").
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
        clock, zone, rest = _time_in(text)
        return dt.datetime.combine(_day_in(rest, text), clock, tzinfo=zone)
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


def _read(text: str, forms: Sequence[str]) -> list[dt.datetime]:
    """`text` read by each of these forms that fits it."""
    found: list[dt.datetime] = []
    for form in forms:
        with suppress(ValueError):
            found.append(dt.datetime.strptime(text, form))  # noqa: DTZ007 - its zone is read apart
    return found


def _time_in(text: str) -> tuple[dt.time, dt.timezone, str]:
    """The time of day that `text` names, the offset after it, and the rest."""
    match = _TIME.search(text)
    if match is None:
        return dt.time(), dt.UTC, text
    clock, _, fraction = (match[1] or match[3]).replace(",", ".").partition(".")
    found = _read(f"{clock}.{fraction[:6]}".rstrip(".") + (f" {match[2]}m" if match[2] else ""), _TIME_FORMS)
    if not found:
        _refuse(text, f"there is no time {match[0]!r}")
    zone, rest = dt.UTC, text[match.end() :]
    if offset := _OFFSET.search(rest):
        hours, minutes = int(offset[1]), int(offset[1][0] + offset[2])
        try:
            zone = dt.timezone(dt.timedelta(hours=hours, minutes=minutes))
        except ValueError as error:
            _refuse(text, error)
        rest = rest[: offset.start()]
    return found[0].time(), zone, f"{text[: match.start()]} {rest}"


def _day_in(text: str, whole: str) -> dt.date:
    match = _DAY.search(text)
    forms = _DAY_FORMS[:-1] if match and match[2] == "." else _DAY_FORMS  # dots mean day first wherever they are used
    found = {one.date() for one in _read(" ".join(_DAY_PARTS.findall(match[0] if match else "")), forms)}
    if not found:
        _refuse(whole, "write it as 2024-03-15 or 2024-03-15T13:56:00Z")
    if len(found) > 1:
        msg = f"{whole!r} can be read in two ways: write the year first, as {' or '.join(map(str, sorted(found)))}"
        raise InvalidInputError(msg)
    return found.pop()


def place_in_time(
    starts: Sequence[dt.datetime | None], times: Sequence[Sequence[dt.datetime | None]]
) -> list[list[dt.datetime | None]]:
    """A time for each turn of each sitting. All are `None` if nothing is dated.

    A dated turn keeps its time. An undated one is a second after the turn before it. Time never runs backwards: a
    turn or sitting dated before its predecessor is moved up to it. If a sitting without its own times would touch the
    one before, it starts after a pause, so that the two stay separate.
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
    """For each turn, the number of its sitting. A pause of `SITTING_PAUSE` or more starts the next one."""
    sitting, numbers, last = 0, list[int](), None
    for moment in times:
        if moment and last and moment - last >= SITTING_PAUSE:
            sitting += 1
        numbers.append(sitting)
        last = moment or last
    return numbers
