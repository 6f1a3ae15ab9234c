from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simple_methods import Basket
from tests.unit.evaluation.conversation_builders import priced_words

TURNS = priced_words(["one two", "three"], ["four five six"])


def test_a_turn_costs_its_line_and_the_first_of_a_sitting_its_date() -> None:
    assert TURNS.costs == (30, 20, 40)
    assert TURNS.header_costs == (20, 20)
    assert TURNS.price({0}) == 50
    assert TURNS.price({0, 1}) == 70
    assert TURNS.price({0, 2}) == 110
    assert TURNS.tokens == 130


def test_a_turn_that_does_not_fit_leaves_the_basket_as_it_was() -> None:
    basket = Basket(TURNS, 50)
    assert not basket.offer([2])
    assert basket.offer([0])
    assert (basket.taken, basket.left) == ({0}, 0)


def test_a_turn_that_is_in_the_basket_costs_nothing_again() -> None:
    basket = Basket(TURNS, 70)
    assert basket.offer([0, 1])
    assert basket.offer([0])
    assert basket.left == 0


@given(st.integers(0, 200), st.lists(st.lists(st.integers(0, 2), max_size=3)))
def test_a_basket_never_costs_more_than_its_budget(budget: int, offers: list[list[int]]) -> None:
    basket = Basket(TURNS, budget)
    for offer in offers:
        basket.offer(offer)
    assert TURNS.price(basket.taken) == budget - basket.left <= budget
