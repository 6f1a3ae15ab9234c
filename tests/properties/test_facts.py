from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.summaries.facts.listing import facts_list
from langchain_tiered_memory.summaries.facts.selection import chosen_facts
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.types.records import Fact
from tests.fact_builders import facts_of, words

SENTENCES = st.builds(
    "{} {} {} {}.".format,
    st.sampled_from(["The", "Actually the", "Our", "Correction: the", "For the"]),
    st.sampled_from(["api port", "harbour ferry", "budget for the api port", "loom"]),
    st.sampled_from(["is", "is now", "costs", "gets", "isn't"]),
    st.sampled_from(["8080", "9000 euros", "40 metres", "Imke Hallberg", "a/b.md, not a/c.md", "zinc tiles"]),
)
FACTS = st.lists(SENTENCES, max_size=14).map(lambda texts: facts_of(*texts))


@given(FACTS, st.randoms(use_true_random=False))
def test_what_holds_depends_on_the_set_of_facts_alone(facts: list[Fact], chance: object) -> None:
    shuffled = list(facts)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    gone = superseded(facts)
    assert superseded(shuffled) == gone
    numbers = {one.id: one.seq for one in facts}
    assert all(numbers[old] <= numbers[new] and old != new for old, new in gone.items())


@given(FACTS, st.integers(0, 60))
def test_chosen_facts_fit_as_listed_in_any_order_of_the_candidates(facts: list[Fact], room: int) -> None:
    chosen = chosen_facts(facts, room=room, count_text=words)
    assert words(facts_list(chosen)) <= room
    assert chosen == chosen_facts(facts[::-1], room=room, count_text=words)
    assert {one.id for one in chosen} <= {one.id for one in facts}
