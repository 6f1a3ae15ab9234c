"""Which times are found in a question, measured from Sunday, 21 January 2024."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text.time_expressions import find_intervals

NOW = datetime(2024, 1, 21, 22, 4, tzinfo=UTC)


def found(text: str) -> list[tuple[str, str]]:
    return [(f"{one.start:%Y-%m-%d}", f"{one.stop:%Y-%m-%d}") for one in find_intervals(text, now=NOW)]


@pytest.mark.parametrize(
    ("text", "start", "stop"),
    [
        ("What happened on 7 May 2023?", "2023-05-07", "2023-05-08"),
        ("on May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("the 7th of May", "2023-05-07", "2023-05-08"),
        ("on 2023-05-07", "2023-05-07", "2023-05-08"),
        ("on 2023/05/07", "2023-05-07", "2023-05-08"),
        ("on 21.01.2024", "2024-01-21", "2024-01-22"),
        ("in 2023-05", "2023-05-01", "2023-06-01"),
        ("April 6-7", "2023-04-06", "2023-04-08"),
        ("in January", "2024-01-01", "2024-02-01"),
        ("last May", "2023-05-01", "2023-06-01"),
        ("as of December 2023", "2023-12-01", "2024-01-01"),
        ("in mid-August 2023", "2023-08-01", "2023-09-01"),
        ("the first week of June", "2023-06-01", "2023-07-01"),
        ("in summer", "2023-06-01", "2023-09-01"),
        ("in the spring of 2022", "2022-03-01", "2022-06-01"),
        ("in 2022", "2022-01-01", "2023-01-01"),
        ("two weeks ago", "2024-01-01", "2024-01-08"),
        ("3 days ago", "2024-01-18", "2024-01-19"),
        ("a month ago", "2023-12-01", "2024-01-01"),
        ("last year", "2023-01-01", "2024-01-01"),
        ("last week", "2024-01-08", "2024-01-15"),
        ("last weekend", "2024-01-13", "2024-01-15"),
        ("this month", "2024-01-01", "2024-02-01"),
        ("last Friday", "2024-01-19", "2024-01-20"),
        ("last Sunday", "2024-01-14", "2024-01-15"),
        ("yesterday", "2024-01-20", "2024-01-21"),
        ("today", "2024-01-21", "2024-01-22"),
    ],
)
def test_a_time_is_resolved(text: str, start: str, stop: str) -> None:
    assert found(text) == [(start, stop)]


@pytest.mark.parametrize(
    "text",
    [
        "May I ask you something?",
        "a few years ago",
        "recently",
        "3/4/23",
        "2000 dollars",
        "version 2023.01.02",
        "in a second",
    ],
)
def test_what_is_not_sure_gives_nothing(text: str) -> None:
    assert found(text) == []


def test_several_times_come_in_order() -> None:
    assert found("between June 2023 and May 2022") == [("2022-05-01", "2022-06-01"), ("2023-06-01", "2023-07-01")]


def test_a_day_that_its_month_lacks_counts_as_the_month() -> None:
    assert found("on February 30, 2023") == [("2023-02-01", "2023-03-01")]


def test_a_range_of_days_that_runs_backwards_is_left_alone() -> None:
    assert found("April 7-6") == []


@given(st.datetimes(), st.text(alphabet=" 0123456789-./dehlmnorstuwy", max_size=40))
def test_odd_dates_never_raise_and_start_before_they_stop(now: datetime, text: str) -> None:
    texts = [text, f"on {text} May {text}", f"{text} years ago", "last year", "next week", f"in {text}", "last winter"]
    assert all(one.start < one.stop for each in texts for one in find_intervals(each, now=now))


def test_intervals_are_in_the_time_zone_of_now() -> None:
    assert all(one.start.tzinfo is UTC for one in find_intervals("yesterday, or in May 2023", now=NOW))
