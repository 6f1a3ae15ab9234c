from langchain_tiered_memory.summaries.facts.worth import chosen_facts
from tests.fact_builders import facts_of, said, words

FACTS = [
    f"The gate code of hall {name} is {number}." for number, name in ((4000, "Alder"), (4001, "Birch"), (4002, "Cedar"))
]
TALK = ["We will see what they say tomorrow."] * 30


def test_what_is_said_once_goes_before_what_is_said_all_the_time() -> None:
    facts = facts_of(*TALK, *FACTS, *TALK)
    assert said(chosen_facts(facts, room=27, count_text=words, now=0.0)) == FACTS


def test_a_statement_that_is_repeated_is_told_once() -> None:
    facts = facts_of(FACTS[0], FACTS[0], FACTS[1])
    assert len(chosen_facts(facts, room=99, count_text=words, now=0.0)) == 2


def test_what_the_prose_states_is_not_said_again() -> None:
    told = "They settled the rest, and the gate code of hall Alder is 4000."
    assert said(chosen_facts(facts_of(*FACTS[:2]), room=99, count_text=words, told=told, now=0.0)) == FACTS[1:2]


def test_a_correction_that_must_stand_is_taken_before_what_is_worth_more() -> None:
    facts = facts_of(*FACTS, "We will see what they say tomorrow about the boat.")
    least = facts[-1]
    assert least not in chosen_facts(facts, room=27, count_text=words, now=0.0)
    assert least in chosen_facts(facts, room=27, count_text=words, now=0.0, first={least.id})
