"""Room that is left free for what others add to a request."""

from __future__ import annotations

from langchain_tiered_memory.integrations.agent.called_models import STEP_TOKENS, Aside, stepped, unseen_in


def test_nothing_is_left_free_before_anything_was_added() -> None:
    assert Aside().tokens == 0
    assert Aside().after(behind=0, unseen=None).tokens == 0


def test_what_was_added_is_left_free_in_whole_steps() -> None:
    assert [stepped(tokens) for tokens in (-3, 0, 1, 512, 513)] == [0, 0, 512, 512, 1024]
    assert Aside().after(behind=5000, unseen=0).tokens == 10 * STEP_TOKENS


def test_what_is_there_now_and_then_moves_the_budget_seldom_and_what_is_gone_is_let_go_of() -> None:
    aside = Aside().after(behind=5000, unseen=None)
    allocation = []
    for _ in range(8):
        aside = aside.after(behind=600, unseen=None)
        allocation.append(aside.tokens)
    assert allocation == [5120] * 7 + [1024]


def test_what_only_the_provider_counts_is_kept_while_nothing_else_is_heard_and_then_let_go_of() -> None:
    aside = Aside().after(behind=600, unseen=3000)
    for _ in range(20):
        aside = aside.after(behind=600, unseen=None)
    assert aside.tokens == 1024 + 3072
    for _ in range(8):
        aside = aside.after(behind=600, unseen=-50)
    assert aside.tokens == 1024


def test_a_count_that_measures_something_else_says_nothing() -> None:
    assert unseen_in(took=0, counted=100) is None
    assert unseen_in(took=10**9, counted=2000) is None
    assert unseen_in(took=1500, counted=2000) == 0
    assert unseen_in(took=5000, counted=2000) == 3000


def test_it_stays_small_however_long_the_session_is() -> None:
    aside = Aside()
    for number in range(100):
        aside = aside.after(behind=number, unseen=number)
    assert (len(aside.behind), len(aside.unseen)) == (8, 8)
