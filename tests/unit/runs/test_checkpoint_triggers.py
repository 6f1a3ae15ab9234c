from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.runs.checkpoints import is_over_share, reasons_to_save
from langchain_tiered_memory.settings import CheckpointSettings
from langchain_tiered_memory.types.outcomes import ZONES, Zone

NEVER: dict[str, Any] = {"tasks": None, "seconds": None, "operations": ()}
WINDOW = {"window_tokens": 1000}

CASES: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    ("a quiet request", {}, {"used_tokens": 100, **WINDOW}, ()),
    ("exactly at the share", {}, {"used_tokens": 800, **WINDOW, "was_over_share": False}, ()),
    ("over the share", {}, {"used_tokens": 801, **WINDOW, "was_over_share": False}, ("context_size",)),
    ("still over the share", {}, {"used_tokens": 990, **WINDOW, "was_over_share": True}, ()),
    (
        "over the share, the last request unknown, in the same zone",
        {},
        {"used_tokens": 850, **WINDOW, "zone": Zone.WARNING, "zone_before": Zone.WARNING},
        (),
    ),
    (
        "over the share, the last request unknown, in a fuller zone",
        {},
        {"used_tokens": 850, **WINDOW, "zone": Zone.WARNING},
        ("context_size",),
    ),
    (
        "a lower share",
        {"window_share": 0.1},
        {"used_tokens": 101, **WINDOW, "was_over_share": False},
        ("context_size",),
    ),
    ("another phase", {}, {"phase_changed": True}, ("phase_transition",)),
    ("the fourth task", {}, {"finished_task": 4}, ()),
    ("the fifth task", {}, {"finished_task": 5}, ("task_milestone",)),
    ("the tenth task", {}, {"finished_task": 10}, ("task_milestone",)),
    ("every task", {"tasks": 1}, {"finished_task": 3}, ("task_milestone",)),
    ("no milestones", {"tasks": None}, {"finished_task": 5}, ()),
    ("no task finished", {}, {"finished_task": None}, ()),
    ("a major refactor", {}, {"operation": "major_refactor"}, ("risky_operation",)),
    ("a large merge", {}, {"operation": "large_merge"}, ("risky_operation",)),
    ("an operation of the user's own", {"operations": ("deploy",)}, {"operation": "deploy"}, ("risky_operation",)),
    ("a harmless operation", {}, {"operation": "rename"}, ()),
    ("half an hour", {}, {"seconds_since_last": 1800.0}, ()),
    ("more than half an hour", {}, {"seconds_since_last": 1800.1}, ("time_interval",)),
    ("a clock that was set back", {}, {"seconds_since_last": -5000.0}, ()),
    ("no interval", {"seconds": None}, {"seconds_since_last": 9999.0}, ()),
    ("entering the warning zone", {}, {"zone": Zone.WARNING}, ()),
    ("entering danger", {}, {"zone": Zone.DANGER, "zone_before": Zone.WARNING}, ("danger",)),
    ("staying in danger", {}, {"zone": Zone.DANGER, "zone_before": Zone.DANGER}, ()),
    ("falling back to danger", {}, {"zone": Zone.DANGER, "zone_before": Zone.CRITICAL}, ()),
    ("entering critical from safe", {}, {"zone": Zone.CRITICAL}, ("critical",)),
    (
        "everything at once",
        {},
        {
            "used_tokens": 990,
            **WINDOW,
            "zone": Zone.CRITICAL,
            "phase_changed": True,
            "finished_task": 5,
            "operation": "large_merge",
            "seconds_since_last": 1e6,
        },
        ("context_size", "phase_transition", "task_milestone", "risky_operation", "time_interval", "critical"),
    ),
    ("switched off", {"enabled": False}, {"phase_changed": True, "finished_task": 5, "zone": Zone.CRITICAL}, ()),
]


@pytest.mark.parametrize(
    ("settings", "given", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_checkpoint_is_saved_for_exactly_these_reasons(
    settings: dict[str, Any], given: dict[str, Any], expected: tuple[str, ...]
) -> None:
    assert reasons_to_save(settings=CheckpointSettings(**settings), **given) == expected


@given(st.lists(st.integers(0, 1200), min_size=1, max_size=30))
def test_the_size_is_a_reason_once_for_each_crossing(sizes: list[int]) -> None:
    settings = CheckpointSettings(**NEVER)
    was_over, reasons = False, 0
    for used in sizes:
        found = reasons_to_save(settings=settings, used_tokens=used, was_over_share=was_over, **WINDOW)
        reasons += "context_size" in found
        was_over = is_over_share(used, 1000, settings=settings)
    over = [size > 800 for size in sizes]
    assert reasons == sum(now and not before for before, now in zip([False, *over], over, strict=False))


@given(st.lists(st.sampled_from(ZONES), min_size=1, max_size=30))
def test_danger_and_critical_are_reasons_once_until_they_are_left_downward(zones: list[Zone]) -> None:
    settings = CheckpointSettings(**NEVER)
    before = Zone.SAFE
    for zone in zones:
        found = reasons_to_save(settings=settings, zone=zone, zone_before=before)
        assert bool(found) == (ZONES.index(zone) > ZONES.index(before) and zone in (Zone.DANGER, Zone.CRITICAL))
        before = zone
