from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from langchain_tiered_memory.models.circuit_breaker import CircuitBreaker, Pass
from langchain_tiered_memory.summaries.engine.metrics import Tally
from langchain_tiered_memory.summaries.engine.writers import Meter

FAILURES, SECONDS, LONGEST = 3, 60.0, 300.0


def breaker() -> CircuitBreaker:
    return CircuitBreaker(failures=FAILURES, seconds=SECONDS, max_seconds=LONGEST)


def entered(one: CircuitBreaker, now: float) -> Pass:
    given = one.enter(now)
    assert given is not None
    return given


def failed(one: CircuitBreaker, now: float, *, times: int = 1) -> float | None:
    opened = None
    for _ in range(times):
        opened = one.failed(entered(one, now), now)
    return opened


def test_it_opens_after_failures_in_a_row_and_lets_one_through_after_the_wait() -> None:
    one = breaker()
    assert failed(one, 0.0, times=2) is None
    assert failed(one, 0.0) == SECONDS
    assert one.enter(59.9) is None
    assert one.wait_seconds(10.0) == 50.0
    entered(one, 60.0)
    assert one.enter(60.0) is None, "one trial, no more"


def test_a_success_in_between_starts_the_count_anew() -> None:
    one = breaker()
    failed(one, 0.0, times=2)
    assert not one.succeeded(entered(one, 0.0))
    assert failed(one, 0.0, times=2) is None


def test_each_trial_that_fails_doubles_the_wait_up_to_the_longest() -> None:
    one = breaker()
    failed(one, 0.0, times=3)
    now, waits = 0.0, []
    for _ in range(4):
        now += one.wait_seconds(now)
        waits.append(failed(one, now))
    assert waits == [120.0, 240.0, 300.0, 300.0]
    assert one.succeeded(entered(one, now + 300.0))
    assert failed(one, now, times=3) == SECONDS, "after a recovery it begins at the first wait"


def test_a_pause_that_is_asked_for_is_kept_from_the_first_failure_on() -> None:
    one = breaker()
    assert one.failed(entered(one, 0.0), 0.0, wait=20.0) == 20.0
    assert one.enter(19.9) is None
    assert one.failed(entered(one, 20.0), 20.0, wait=30.0) == 30.0
    assert one.failed(entered(one, 50.0), 50.0, wait=10 * LONGEST) == LONGEST
    assert one.succeeded(entered(one, 50.0 + LONGEST))
    assert failed(one, 500.0, times=3) == SECONDS


def test_a_trial_that_was_cancelled_gives_its_place_back() -> None:
    one = breaker()
    failed(one, 0.0, times=3)
    one.left(entered(one, 60.0))
    entered(one, 60.0)


def test_a_trial_that_ends_without_a_word_is_followed_by_another_after_the_same_wait() -> None:
    one = breaker()
    failed(one, 0.0, times=3)
    entered(one, 60.0)
    assert one.wait_seconds(60.0) == SECONDS
    entered(one, 120.0)


def test_what_a_call_says_that_began_before_the_breaker_moved_is_out_of_date() -> None:
    one = breaker()
    slow = entered(one, 0.0)
    failed(one, 0.0, times=3)
    assert one.failed(slow, 1.0) is None
    assert not one.succeeded(slow)
    assert one.wait_seconds(0.0) == SECONDS


def test_a_clock_that_goes_back_makes_no_wait_longer_than_it_is() -> None:
    one = breaker()
    failed(one, 1_000_000.0, times=3)
    assert one.wait_seconds(5.0) == SECONDS
    entered(one, 65.0)


class Breaker(RuleBasedStateMachine):
    """Against a plain account of failures in a row and of the moment it opened."""

    passes = Bundle("passes")

    def __init__(self) -> None:
        super().__init__()
        self.breaker = breaker()
        self.now = 0.0
        self.in_a_row = 0
        self.opened_at: float | None = None
        self.wait = SECONDS
        self.trial: Pass | None = None

    @rule(seconds=st.sampled_from([0.5, 10.0, 60.0, 120.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @property
    def is_closed(self) -> bool:
        return self.opened_at is None

    @rule(goes_well=st.booleans())
    @precondition(lambda self: self.is_closed)
    def a_call_in_the_closed_state(self, *, goes_well: bool) -> None:
        given = self.breaker.enter(self.now)
        assert given is not None
        if goes_well:
            self.breaker.succeeded(given)
            self.in_a_row = 0
            return
        self.in_a_row += 1
        opened = self.breaker.failed(given, self.now)
        assert (opened is not None) == (self.in_a_row >= FAILURES)
        if opened is not None:
            self.opened_at, self.wait = self.now, SECONDS

    @rule(ends=st.sampled_from(["well", "badly", "cancelled"]))
    @precondition(lambda self: not self.is_closed)
    def a_call_in_the_open_state(self, ends: str) -> None:
        assert self.opened_at is not None
        given = self.breaker.enter(self.now)
        assert (given is not None) == (self.now >= self.opened_at + self.wait)
        if given is None:
            return
        assert self.breaker.enter(self.now) is None, "one trial at a time"
        if ends == "well":
            assert self.breaker.succeeded(given)
            self.opened_at, self.in_a_row = None, 0
        elif ends == "badly":
            self.wait = min(self.wait * 2, LONGEST)
            self.opened_at = self.now
            assert self.breaker.failed(given, self.now) == self.wait
        else:
            self.breaker.left(given)

    @invariant()
    def the_wait_is_never_longer_than_the_longest(self) -> None:
        assert 0 <= self.breaker.wait_seconds(self.now) <= LONGEST
        assert self.is_closed == (self.breaker.wait_seconds(self.now) == 0 or self.now < 0) or not self.is_closed


class Rate(RuleBasedStateMachine):
    """No minute has more calls than the bound, and a wait that was given is enough."""

    def __init__(self) -> None:
        super().__init__()
        self.bound = Meter(3, Tally(keep=1))
        self.now = 0.0
        self.made: list[float] = []

    @rule(seconds=st.sampled_from([0.0, 0.25, 7.0, 30.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_call(self) -> None:
        wait = self.bound.take(self.now)
        recent = [moment for moment in self.made if moment > self.now - 60]
        assert (wait == 0) == (len(recent) < 3)
        if not wait:
            self.made.append(self.now)

    @rule()
    def a_call_after_the_wait(self) -> None:
        wait = self.bound.take(self.now)
        if wait:
            self.now += wait
            assert self.bound.take(self.now) == 0
        self.made.append(self.now)

    @invariant()
    def no_minute_has_too_many(self) -> None:
        for moment in self.made:
            assert sum(moment <= other < moment + 60 for other in self.made) <= 3


TestBreaker = Breaker.TestCase
TestBreaker.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestRate = Rate.TestCase
TestRate.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_no_bound_lets_everything_through() -> None:
    free = Meter(None, Tally(keep=1))
    assert [free.take(0.0) for _ in range(1000)] == [0.0] * 1000


def test_a_clock_that_goes_back_holds_the_bound_for_a_minute_and_no_longer() -> None:
    bound = Meter(1, Tally(keep=1))
    assert bound.take(1_000_000.0) == 0
    assert bound.take(10.0) == 60.0
    assert bound.take(70.0) == 0
