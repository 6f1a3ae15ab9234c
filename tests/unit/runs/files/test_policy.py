"""The rules of the tiers: limits, order, pins, times; and any order of events keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.errors import PinLimitError, SettingsError
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.accesses import Rest, Returns
from langchain_tiered_memory.runs.files.policy import Tiers
from langchain_tiered_memory.settings import TierRule, TierSettings
from tests.file_builders import small_rules, within_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = small_rules()


def opened(paths: Sequence[str], *, rules: TierSettings = RULES, tiers: Tiers | None = None, now: float = 0.0) -> Tiers:
    """The state after these files were opened, one a second."""
    tiers = tiers if tiers is not None else Tiers({})
    start = max((one.order for one in tiers.files.values()), default=0) + 1
    for number, path in enumerate(paths):
        tiers = policy.access(tiers, path, now=now + number, order=start + number, size=10, rules=rules)
    return tiers


def tier(tiers: Tiers, name: str) -> set[str]:
    return {one.path for one in tiers.files.values() if one.tier == name}


def test_the_limits_and_times_are_those_of_the_seed() -> None:
    rules = TierSettings()
    assert (rules.hot.files, rules.hot.seconds, rules.hot.files_after_cleanup) == (20, 600, 10)
    assert (rules.warm.files, rules.warm.seconds, rules.warm.files_after_cleanup) == (30, 3600, 15)
    assert (rules.collect_seconds, rules.optimise_seconds, rules.log_seconds) == (300, 900, 600)
    assert (rules.optimise_share, rules.alert_share, rules.cleanup_share) == (0.75, 0.80, 0.90)


def test_an_opened_file_is_hot_and_the_one_opened_longest_ago_makes_room() -> None:
    tiers = opened("abcd")
    assert (tier(tiers, "hot"), tier(tiers, "warm")) == ({"b", "c", "d"}, {"a"})
    assert tiers.reasons["a"] == "least_recently_used"
    tiers = opened("b", tiers=tiers)
    tiers = opened("e", tiers=tiers)
    assert (tier(tiers, "hot"), tier(tiers, "warm")) == ({"b", "d", "e"}, {"a", "c"})


def test_a_full_warm_sends_its_oldest_to_cold_and_an_access_brings_it_back() -> None:
    tiers = opened("abcdefgh")
    assert (tier(tiers, "hot"), tier(tiers, "warm"), tier(tiers, "cold")) == (set("fgh"), set("bcde"), {"a"})
    tiers = opened("a", tiers=tiers)
    assert (tier(tiers, "hot"), tier(tiers, "warm"), tier(tiers, "cold")) == (set("gha"), set("cdef"), {"b"})


def test_a_pinned_file_stays_whatever_is_opened_and_one_too_many_is_refused() -> None:
    tiers = policy.pin(opened("a"), "a", RULES)
    tiers = opened("bcdefghijk", tiers=tiers)
    assert "a" in tier(tiers, "hot")
    for path in "bc":
        tiers = policy.pin(tiers, path, RULES)
    assert tier(tiers, "hot") == set("abc")
    with pytest.raises(PinLimitError, match="3 files are pinned, and hot holds at most 3"):
        policy.pin(tiers, "d", RULES)
    again = policy.pin(tiers, "a", RULES)
    assert again.files == tiers.files


def test_where_hot_is_full_of_pins_an_opened_file_goes_to_warm() -> None:
    tiers = opened("abc")
    for path in "abc":
        tiers = policy.pin(tiers, path, RULES)
    tiers = opened("defgh", tiers=tiers)
    assert (tier(tiers, "hot"), tier(tiers, "warm"), tier(tiers, "cold")) == (set("abc"), set("efgh"), {"d"})
    tiers = opened("e", tiers=policy.unpin(tiers, "a"))
    assert tier(tiers, "hot") == set("bce")
    assert "a" in tier(tiers, "warm")


def test_a_collection_sends_down_what_nobody_opened_for_its_time() -> None:
    tiers = opened("abc")
    assert policy.collect(tiers, now=599, rules=RULES).files == tiers.files
    tiers = policy.collect(tiers, now=601, rules=RULES)
    assert (tier(tiers, "hot"), tier(tiers, "warm")) == ({"c"}, {"a", "b"})
    assert {tiers.reasons[path] for path in "ab"} == {"unused"}
    tiers = policy.collect(policy.pin(tiers, "c", RULES), now=3601, rules=RULES)
    assert (tier(tiers, "hot"), tier(tiers, "cold")) == ({"c"}, {"a", "b"})


def test_what_nobody_opened_for_the_time_of_warm_is_cold_though_nobody_looked_for_as_long() -> None:
    tiers = policy.collect(policy.pin(opened("abc"), "c", RULES), now=25 * 3600, rules=RULES)
    assert (tier(tiers, "hot"), tier(tiers, "cold")) == ({"c"}, {"a", "b"})


def test_what_leaves_hot_by_its_time_sends_nobody_out_of_warm_before_his() -> None:
    tiers = opened("abcdefg")
    assert (tier(tiers, "hot"), tier(tiers, "warm")) == (set("efg"), set("abcd"))
    tiers = policy.collect(tiers, now=700, rules=RULES)
    assert (tiers.count("hot"), tiers.count("warm"), tiers.count("cold")) == (3, 4, 0)


def test_of_more_than_is_needed_the_oldest_leaves_and_what_was_opened_often_is_as_if_opened_later() -> None:
    tiers = opened("aabcdefg")
    assert tier(policy.to_rest(tiers, Rest(5), RULES), "cold") == set("bc")
    assert tier(policy.to_rest(tiers, Rest(5, newest_first=True), RULES), "cold") == set("cd")
    assert tier(policy.to_rest(tiers, Rest(0), RULES), "hot") == set("efg")
    late = opened("bcdefg", tiers=opened("aa"), now=1000.0)
    assert tier(policy.to_rest(late, Rest(6), RULES), "cold") == {"a"}
    by_size = small_rules(eviction="largest")
    assert tier(policy.to_rest(tiers, Rest(6), by_size), "cold") == {"a"}


def rest_after(distances: Sequence[int], *, files: int = 50, now: float = 0.0) -> Rest:
    """Where the default tiers rest after files came back over these distances."""
    returns = Returns()
    for distance in distances:
        returns.note(1, at=0.0, distance=distance)
    return returns.rest(1, now=now, files=files, rules=TierSettings())


def test_tiers_rest_where_what_came_back_lately_was_still_there() -> None:
    assert rest_after([], files=40) == Rest(45)  # nothing is known: nothing is let go
    assert rest_after([], files=46) == Rest(45)
    assert rest_after([], files=95) == Rest(35)  # a scan
    assert rest_after([0] * 9) == Rest(35)
    assert rest_after([44, 30, 31]) == Rest(35)  # one that came late is an exception
    assert rest_after([44, 41, 31]) == Rest(42)
    assert rest_after([44, 44, 90, 90]) == Rest(45)
    assert rest_after([90, 90, 25]) == Rest(35)  # out of reach
    assert rest_after([47]) == rest_after([47, 47, 0]) == Rest(45, newest_first=True)
    assert rest_after([44, 44], now=1801.0) == Rest(45)


def test_a_scan_ends_when_something_comes_back() -> None:
    returns, rules = Returns(), TierSettings()
    rests = [returns.rest(1, now=0.0, files=46, rules=rules).files for _ in range(50)]
    assert rests == [45] * 49 + [35]
    assert returns.rest(1, now=0.0, files=40, rules=rules) == Rest(35)
    returns.note(1, at=0.0)
    assert returns.rest(1, now=0.0, files=40, rules=rules) == Rest(45)
    for key in range(2, 300):
        returns.note(key, at=0.0)
    assert len(returns._by_session.items()) == 200


def test_files_are_put_back_into_the_tiers_that_were_named_for_them_and_later_pins_stay() -> None:
    tiers = policy.pin(opened("abcdefghijk"), "k", RULES)
    back = policy.restore(tiers, hot="kab", warm="cdefg", pinned=[], rules=RULES)
    assert (tier(back, "hot"), tier(back, "warm"), tier(back, "cold")) == (set("kab"), set("cdef"), set("ghij"))
    assert {one.path for one in back.files.values() if one.pinned} == {"k"}
    back = policy.restore(tiers, hot="abc", warm="d", pinned="b", rules=RULES)
    assert (tier(back, "hot"), tier(back, "warm")) == (set("kba"), set("cd"))
    assert {one.path for one in back.files.values() if one.pinned} == {"k", "b"}
    assert (back.reasons["k"], back.reasons["a"]) == (tiers.reasons["k"], "restored")
    back = policy.restore(tiers, hot="ab", warm="", pinned="defg", rules=RULES)
    assert (tier(back, "hot"), tier(back, "warm")) == (set("kde"), set("fgab")), "pins come first"
    assert {one.path for one in back.files.values() if one.pinned} == set("kde"), "as far as there is room"


def test_what_came_back_in_the_future_of_a_clock_says_nothing() -> None:
    returns, rules = Returns(), TierSettings()
    for _ in range(3):
        returns.note(1, at=1000.0, distance=48)
    assert returns.rest(1, now=1000.0, files=40, rules=rules) == Rest(45, newest_first=True)
    assert returns.rest(1, now=999.0, files=40, rules=rules) == Rest(45)


def test_a_clock_that_goes_back_sends_nothing_down_and_keeps_the_order() -> None:
    tiers = opened("abc", now=1000.0)
    assert policy.collect(tiers, now=5.0, rules=RULES).files == tiers.files
    tiers = policy.access(tiers, "d", now=1.0, order=9, size=1, rules=RULES)
    assert tier(tiers, "warm") == {"a"}


def test_the_aggressive_cleanup_leaves_what_the_rules_say_and_the_pins() -> None:
    rules = TierSettings()
    tiers = opened([f"f{n}" for n in range(60)], rules=rules)
    cleaned = policy.clean_up(tiers, rules)
    assert (cleaned.count("hot"), cleaned.count("warm"), cleaned.count("cold")) == (10, 15, 35)
    assert tier(cleaned, "hot") == {f"f{n}" for n in range(50, 60)}
    for path in sorted(tier(tiers, "hot"))[:12]:
        tiers = policy.pin(tiers, path, rules)
    cleaned = policy.clean_up(tiers, rules)
    assert (cleaned.count("hot"), cleaned.count("warm")) == (12, 15)
    assert all(one.pinned for one in cleaned.of("hot"))


def test_lowered_limits_are_put_in_force_pins_last() -> None:
    tiers = policy.pin(opened("abcdefg"), "e", RULES)
    fitted = policy.fit(tiers, small_rules(hot=1, warm=2))
    assert (tier(fitted, "hot"), fitted.count("warm")) == ({"e"}, 2)
    pinned = policy.pin(policy.pin(tiers, "f", RULES), "g", RULES)
    fitted = policy.fit(pinned, small_rules(hot=1, warm=1))
    assert sum(one.pinned for one in fitted.files.values()) == 3
    assert (fitted.count("hot"), fitted.count("warm")) == (1, 1)


def test_the_order_of_eviction_is_a_table() -> None:
    tiers = opened("abcbcbc", rules=small_rules(eviction="least_often_used"))
    tiers = opened("d", rules=small_rules(eviction="least_often_used"), tiers=tiers)
    assert tier(tiers, "warm") == {"a"}
    rules = small_rules(eviction="largest")
    sized = Tiers({})
    for order, (path, size) in enumerate([("a", 5), ("b", 500), ("c", 50), ("d", 1)], start=1):
        sized = policy.access(sized, path, now=0.0, order=order, size=size, rules=rules)
    assert tier(sized, "warm") == {"b"}


def test_a_cleanup_that_would_leave_more_than_a_tier_holds_is_no_rule() -> None:
    with pytest.raises(SettingsError, match="cleanup"):
        TierRule(files=3, seconds=1.0, files_after_cleanup=4)
    with pytest.raises(SettingsError, match="each strategy once"):
        TierSettings(strategies=("demote_unused", "demote_unused"))


PATHS = st.sampled_from("abcdefghijkl")
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), PATHS),
        st.tuples(st.just("pin"), PATHS),
        st.tuples(st.just("unpin"), PATHS),
        st.tuples(st.just("wait"), st.sampled_from([-50.0, 1.0, 700.0, 4000.0])),
        st.tuples(st.just("collect"), st.just("")),
        st.tuples(st.just("rest"), st.sampled_from(range(8))),
        st.tuples(st.just("clean"), st.just("")),
        st.tuples(st.just("restore"), PATHS),
    ),
    max_size=60,
)


class Run:
    """The state that events lead to, beside what is known of it without the rules."""

    def __init__(self, rules: TierSettings) -> None:
        self.rules = rules
        self.tiers = Tiers({})
        self.now = 0.0
        self.order = 0
        self.pinned: set[str] = set()
        self.known: set[str] = set()

    def open(self, path: str) -> None:
        self.tiers = policy.access(self.tiers, path, now=self.now, order=self.order, size=self.order, rules=self.rules)
        self.known.add(path)
        has_place = len(self.pinned) < self.rules.hot.files or path in self.pinned
        assert self.tiers.files[path].tier == ("hot" if has_place else "warm")

    def pin(self, path: str) -> None:
        if path not in self.tiers.files:
            return
        if path not in self.pinned and len(self.pinned) == self.rules.hot.files:
            with pytest.raises(PinLimitError):
                policy.pin(self.tiers, path, self.rules)
            return
        self.tiers = policy.pin(self.tiers, path, self.rules)
        self.pinned.add(path)

    def unpin(self, path: str) -> None:
        if path in self.tiers.files:
            self.tiers = policy.unpin(self.tiers, path)
            self.pinned.discard(path)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def collect(self, _: str) -> None:
        self.tiers = policy.collect(self.tiers, now=self.now, rules=self.rules)

    def rest(self, files: int) -> None:
        in_hot = self.tiers.count("hot")
        self.tiers = policy.to_rest(self.tiers, Rest(files, newest_first=bool(files % 2)), self.rules)
        assert self.tiers.count("hot") == in_hot
        assert in_hot + self.tiers.count("warm") <= max(files, in_hot)

    def clean(self, _: str) -> None:
        self.tiers = policy.clean_up(self.tiers, self.rules)

    def restore(self, path: str) -> None:
        self.tiers = policy.restore(self.tiers, hot=[path, "a"], warm=["b", "c", "d"], pinned=[], rules=self.rules)


@given(events=EVENTS, hot=st.integers(1, 4), warm=st.integers(1, 4))
def test_whatever_happens_limits_hold_pins_stay_and_no_file_is_lost(
    events: list[tuple[str, Any]], hot: int, warm: int
) -> None:
    run = Run(small_rules(hot, warm))
    for order, (name, what) in enumerate(events, start=1):
        run.order = order
        getattr(run, name)(what)
        assert within_limits(run.tiers, run.rules)
        assert {one.path for one in run.tiers.files.values() if one.pinned} == run.pinned
        assert all(run.tiers.files[path].tier == "hot" for path in run.pinned)
        assert set(run.tiers.files) == run.known
