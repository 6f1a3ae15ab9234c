import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.need import alert_for, zone_of
from langchain_tiered_memory.settings import GuardSettings
from langchain_tiered_memory.types.outcomes import ZONES, Alert, Zone

SETTINGS = GuardSettings()


def zone(used: int, limit: int = 100_000) -> Zone:
    return zone_of(used, limit, settings=SETTINGS)


def alerts_of(zones: list[Zone]) -> list[Alert | None]:
    before = [None, *zones[:-1]]
    return [alert_for(now, before=last, used_tokens=1, limit_tokens=2) for now, last in zip(zones, before, strict=True)]


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (0, Zone.SAFE),
        (69_999, Zone.SAFE),
        (70_000, Zone.WARNING),
        (84_999, Zone.WARNING),
        (85_000, Zone.DANGER),
        (94_999, Zone.DANGER),
        (95_000, Zone.CRITICAL),
        (250_000, Zone.CRITICAL),
    ],
)
def test_the_border_belongs_to_the_fuller_zone(used: int, expected: Zone) -> None:
    assert zone(used) is expected


@given(st.integers(1, 10**7), st.sampled_from([(70, Zone.WARNING), (85, Zone.DANGER), (95, Zone.CRITICAL)]))
def test_rounding_moves_no_border_whatever_the_window(hundredth: int, border: tuple[int, Zone]) -> None:
    percent, at_border = border
    assert zone(percent * hundredth, 100 * hundredth) is at_border
    assert zone(percent * hundredth - 1, 100 * hundredth) is ZONES[ZONES.index(at_border) - 1] or hundredth == 1


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(-5, 10**6))
def test_a_fuller_request_is_never_in_an_emptier_zone(used: int, more: int, limit: int) -> None:
    assert ZONES.index(zone(used, limit)) <= ZONES.index(zone(used + more, limit))


def test_the_borders_are_settings() -> None:
    settings = GuardSettings(warning=0.5, danger=0.6, critical=0.61)
    assert [zone_of(used, 100, settings=settings) for used in (49, 50, 60, 61)] == list(ZONES)


def test_a_limit_of_nothing_is_critical_as_soon_as_anything_is_used() -> None:
    assert zone(0, 0) is Zone.SAFE
    assert zone(1, 0) is Zone.CRITICAL


def test_each_zone_alerts_once_until_it_is_left() -> None:
    found = alerts_of([Zone.SAFE, Zone.WARNING, Zone.WARNING, Zone.DANGER, Zone.WARNING, Zone.DANGER, Zone.CRITICAL])
    assert [alert.zone if alert else None for alert in found] == [
        None,
        Zone.WARNING,
        None,
        Zone.DANGER,
        None,
        Zone.DANGER,
        Zone.CRITICAL,
    ]


def test_a_jump_over_a_zone_tells_of_the_fuller_one_alone() -> None:
    assert [alert.zone for alert in alerts_of([Zone.CRITICAL]) if alert] == [Zone.CRITICAL]


def test_each_alert_has_figures_and_a_recommendation_of_its_own() -> None:
    found = [alert_for(one, before=None, used_tokens=90, limit_tokens=100) for one in ZONES[1:]]
    alerts = [alert for alert in found if alert is not None]
    assert len({alert.recommendation for alert in alerts}) == 3
    assert all(alert.recommendation and alert.ratio == 0.9 for alert in alerts)


@given(st.lists(st.sampled_from(ZONES), min_size=1, max_size=30))
def test_an_alert_comes_exactly_where_a_zone_is_fuller_than_the_one_before(zones: list[Zone]) -> None:
    rising = [ZONES.index(now) > ZONES.index(last) for last, now in zip([Zone.SAFE, *zones], zones, strict=False)]
    assert [alert is not None for alert in alerts_of(zones)] == rising
