"""What a budget is filled with."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.recall.filling import Chosen, Offer, PassageOffer, fill
from langchain_tiered_memory.text.sentences import Span

OFFERS = st.lists(
    st.builds(
        Offer,
        sequence=st.integers(0, 200),
        score=st.floats(0, 5),
        tokens=st.integers(0, 900),
        sitting=st.integers(0, 3),
        passages=st.lists(
            st.builds(PassageOffer, score=st.floats(0, 1), tokens=st.integers(0, 200), span=st.just(Span(0, 0))),
            max_size=4,
        ).map(
            lambda passages: partial(tuple, [replace(one, span=Span(at, at + 1)) for at, one in enumerate(passages)])
        ),
    ),
    max_size=25,
    unique_by=lambda offer: offer.sequence,
)
HEADERS = st.dictionaries(st.integers(0, 3), st.integers(0, 20))
BUDGETS = st.integers(-5, 3000)


def offer(sequence: int, score: float, tokens: int, *passages: PassageOffer, sitting: int = 0) -> Offer:
    return Offer(sequence=sequence, score=score, tokens=tokens, sitting=sitting, passages=lambda: passages)


def passage(at: int, score: float, tokens: int, *, told: float = 0.0) -> PassageOffer:
    return PassageOffer(score=score, tokens=tokens, span=Span(at, at + 1), told=told)


def told_within(start: int, stop: int, told: Sequence[float], *, tokens: int) -> PassageOffer:
    """A passage with its lines, and those beside it, each of a character and of 12 tokens."""
    lines = tuple(passage(at, 0, 12, told=each) for at, each in enumerate(told))
    return PassageOffer(
        score=0.5, tokens=tokens, span=Span(start, stop), told=sum(told[start:stop]), lines=lambda: lines
    )


def sequences(chosen: Chosen) -> list[int]:
    return list(chosen)


def cost_of(chosen: Chosen, offers: list[Offer], headers: dict[int, int]) -> int:
    by_sequence = {each.sequence: each for each in offers}
    cost = sum(headers.get(sitting, 0) for sitting in {by_sequence[sequence].sitting for sequence in chosen})
    for sequence, passages in chosen.items():
        entry = by_sequence[sequence]
        cost += (
            entry.tokens
            if passages is None
            else sum({each.span: each.tokens for each in entry.passages()}[span] for span in passages)
        )
    return cost


@given(OFFERS, HEADERS, BUDGETS)
def test_what_is_shown_never_costs_more_than_the_budget(
    offers: list[Offer], headers: dict[int, int], max_tokens: int
) -> None:
    chosen = fill(offers, max_tokens=max_tokens, header_tokens=headers)
    assert cost_of(chosen, offers, headers) <= max(max_tokens, 0)


@given(OFFERS, HEADERS, BUDGETS, st.randoms(use_true_random=False))
def test_the_order_of_the_offers_does_not_matter(
    offers: list[Offer], headers: dict[int, int], max_tokens: int, random: object
) -> None:
    shuffled = offers.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fill(shuffled, max_tokens=max_tokens, header_tokens=headers) == fill(
        offers, max_tokens=max_tokens, header_tokens=headers
    )


@given(OFFERS, BUDGETS)
def test_entries_are_shown_once_and_in_the_order_of_the_conversation(offers: list[Offer], max_tokens: int) -> None:
    shown = sequences(fill(offers, max_tokens=max_tokens))
    assert shown == sorted(set(shown))


@given(OFFERS)
def test_everything_is_shown_whole_where_there_is_room(offers: list[Offer]) -> None:
    chosen = fill(offers, max_tokens=1_000_000)
    assert chosen == dict.fromkeys(sorted(each.sequence for each in offers))


@given(OFFERS, BUDGETS)
def test_what_is_left_out_does_not_fit_any_more(offers: list[Offer], max_tokens: int) -> None:
    chosen = fill(offers, max_tokens=max_tokens)
    left = max_tokens - cost_of(chosen, offers, {})
    assert all(each.tokens > left for each in offers if each.sequence not in chosen)


def test_a_cheap_entry_beats_a_slightly_better_expensive_one() -> None:
    assert sequences(fill([offer(1, 1.2, 900), offer(2, 1.0, 80)], max_tokens=950)) == [2]


def test_a_very_short_entry_gains_nothing_by_being_short() -> None:
    assert sequences(fill([offer(1, 0.5, 3), offer(2, 0.6, 50)], max_tokens=50)) == [2]


def test_an_entry_that_does_not_fit_is_passed_over() -> None:
    assert sequences(fill([offer(1, 9, 500), offer(2, 1, 50), offer(3, 1, 60)], max_tokens=120)) == [2, 3]


def test_a_header_is_paid_once_for_its_sitting() -> None:
    offers = [offer(1, 1, 50), offer(2, 1, 50)]
    assert sequences(fill(offers, max_tokens=110, header_tokens={0: 10})) == [1, 2]
    assert sequences(fill(offers, max_tokens=109, header_tokens={0: 10})) == [1]


def test_an_expensive_entry_is_shown_by_its_best_passages() -> None:
    long = offer(1, 3, 2000, *(passage(at, score, 40) for at, score in enumerate((0.1, 0.9, 0.5))))
    assert fill([long, offer(2, 0.1, 300)], max_tokens=1000) == {1: (Span(1, 2), Span(2, 3)), 2: None}


def test_a_passage_without_any_score_is_not_shown() -> None:
    long = offer(1, 3, 2000, passage(0, 0, 40), passage(1, 0, 40))
    assert fill([long], max_tokens=1000) == {}


def test_no_budget_shows_nothing() -> None:
    assert fill([offer(1, 1, 10)], max_tokens=0) == {}


def test_of_what_answers_best_lines_are_shown_where_no_passage_has_room() -> None:
    best = offer(1, 3, 185, told_within(0, 5, (0, 1, 6, 0, 0), tokens=95))._replace(place=0)
    short = offer(2, 9, 20)
    assert fill([best, short], max_tokens=100)[1] == (Span(0, 5),)
    assert fill([best, short], max_tokens=60)[1] == (Span(1, 4),)
    assert fill([best, short], max_tokens=27) == {2: None}


def test_what_matches_at_the_end_of_a_passage_is_shown_with_what_follows_it() -> None:
    best = offer(1, 3, 300, told_within(4, 8, (0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0), tokens=64))._replace(place=0)
    assert fill([best], max_tokens=100) == {1: (Span(6, 10),)}


def test_parts_of_one_entry_that_overlap_are_shown_as_one() -> None:
    told = (0, 0, 2, 6, 0, 0, 0)
    best = offer(1, 3, 400, told_within(0, 3, told, tokens=64), told_within(3, 7, told, tokens=64))._replace(place=0)
    assert fill([best], max_tokens=300) == {1: (Span(1, 6),)}


def test_what_answers_second_best_is_narrowed_to_what_the_best_left() -> None:
    best = offer(1, 3, 45)._replace(place=0)
    second = offer(2, 3, 185, told_within(0, 4, (0, 6, 1, 1), tokens=90))._replace(place=1)
    assert fill([best, second], max_tokens=78)[2] == (Span(1, 2),)
