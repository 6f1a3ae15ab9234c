from hypothesis import given
from hypothesis import strategies as st

from benchmarks.asked_conversations import WINDOW
from benchmarks.evidence import priced
from benchmarks.simple_methods import HALF, USER_ONLY, choose, embedded, index_turns
from tests.embedders import HashingEmbeddings
from tests.unit.evaluation.conversation_builders import conversation, count_words, priced_words

words = st.lists(
    st.sampled_from(["rain", "snow", "tea", "coffee", "the", "train", "Berlin", "1984"]), min_size=1, max_size=6
)
sittings = st.lists(st.lists(words.map(" ".join), min_size=1, max_size=6), min_size=1, max_size=4)


def chosen(
    question: str, *texts: list[str], budget: int, speakers: tuple[str, ...] = ("Ann", "Bo")
) -> dict[str, set[int]]:
    embeddings = HashingEmbeddings()
    turns = priced(conversation(*texts, speakers=speakers), count_words)
    vector = embedded(embeddings, [question])[0]
    found = choose(index_turns(turns, embeddings), question, [budget], vector=vector, seed=1)
    return {method: set(by_budget[budget]) for method, by_budget in found.items()}


@given(sittings, words.map(" ".join), st.integers(0, 600))
def test_no_method_ever_spends_more_than_its_budget(texts: list[list[str]], question: str, budget: int) -> None:
    turns = priced_words(*texts)
    for method, taken in chosen(question, *texts, budget=budget).items():
        assert turns.price(taken) <= budget, method


def test_the_window_is_the_longest_end_that_fits() -> None:
    assert chosen("x", ["a b c", "d"], ["e f"], budget=90)[WINDOW] == {1, 2}


def test_bm25_takes_what_shares_words_first_and_then_the_latest() -> None:
    texts = ["the cat sleeps", "it rains", "we had tea", "good night"]
    assert chosen("what about the cats", texts, budget=60)["BM25 stemmed"] == {0}
    assert chosen("what about the cats", texts, budget=90)["BM25 stemmed"] == {0, 3}


def test_stems_find_what_words_do_not() -> None:
    texts = ["two cats", "tea", "snow", "rain"]
    assert chosen("cat", texts, budget=50)["BM25"] == {3}
    assert chosen("cat", texts, budget=50)["BM25 stemmed"] == {0}


def test_neighbours_come_from_the_same_sitting_only() -> None:
    texts = (["morning", "hello"], ["cat", "yes"], ["evening"])
    assert chosen("cat", *texts, budget=60)["fused ±1"] == {2, 3}


def test_full_sessions_are_whole_or_absent() -> None:
    taken = chosen("cat", ["tea", "milk"], ["cat", "yes"], budget=70)["full sessions"]
    assert taken == {2, 3}


def test_half_the_budget_goes_to_the_latest_turns() -> None:
    texts = ["cat one two", *["filler words here"] * 8]
    taken = chosen("cat", texts, budget=240)[HALF]
    assert 8 in taken
    assert 0 in taken


def test_user_turns_only_is_there_where_somebody_is_a_user() -> None:
    assert USER_ONLY not in chosen("cat", ["a", "b"], budget=100)
    taken = chosen("cat", ["cat", "cat cat", "tea"], budget=990, speakers=("user", "assistant"))[USER_ONLY]
    assert taken == {0, 2}


def test_without_an_embedder_there_are_no_dense_methods() -> None:
    found = choose(index_turns(priced_words(["cat", "tea"]), None), "cat", [90], vector=None, seed=0)
    assert list(found) == ["random turns", WINDOW, "BM25", "BM25 stemmed"]


def test_the_same_seed_draws_the_same_random_turns() -> None:
    first, second = (chosen("x", ["a", "b", "c", "d", "e"], budget=90)["random turns"] for _ in range(2))
    assert first == second
