from collections import Counter
from dataclasses import replace

import pytest

from langchain_tiered_memory.summaries.facts import selection
from langchain_tiered_memory.summaries.facts.reading import read_facts
from langchain_tiered_memory.summaries.facts.selection import chosen_facts
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.summaries.facts.written import facts_written
from langchain_tiered_memory.text.terms import analyse
from tests.fact_builders import entry, facts_of, said, words

FACTS = [
    f"The gate code of hall {name} is {number}." for number, name in ((4000, "Alder"), (4001, "Birch"), (4002, "Cedar"))
]
TALK = ["We will see what they say tomorrow."] * 30


def test_what_is_said_once_goes_before_what_is_said_all_the_time() -> None:
    facts = facts_of(*TALK, *FACTS, *TALK)
    assert said(chosen_facts(facts, room=33, count_text=words)) == FACTS


@pytest.mark.parametrize(
    ("statement", "remark"),
    [
        pytest.param(
            "Barley deliveries arrive around half twelve.", "Barley deliveries delight around old sheds.", id="figures"
        ),
        pytest.param("No sesame in my bakery or my shed.", "Much sesame in my bakery and my shed.", id="a ban"),
        pytest.param(
            "Whoever opens the hall resets the alarm.", "Somebody opens the hall and resets the alarm.", id="all"
        ),
        pytest.param("The kiln belongs to the pottery club.", "The kiln moments stir the pottery soul.", id="feelings"),
    ],
)
def test_a_rule_and_a_figure_in_words_go_before_a_remark_in_as_rare_words(statement: str, remark: str) -> None:
    facts = facts_of(*TALK, statement, remark, *TALK)
    assert said(chosen_facts(facts, room=15, count_text=words)) == [statement]


def test_the_name_of_who_is_spoken_to_tells_nothing() -> None:
    stranger, partner = "Clementine gets the corner desk.", "Bartholomew gets the corner desk."
    ann = facts_of(stranger, partner, name="Ann")
    ben = facts_of("I work at the harbour office.", first=9, name="Bartholomew")
    shown = said(chosen_facts([*ann, *ben], room=28, count_text=words))
    assert stranger in shown
    assert partner not in shown


def said_later(*texts: str) -> list[tuple[int, int]]:
    facts = facts_of(*texts)
    terms = [frozenset(analyse(one.text)) for one in facts]
    seen = Counter(term for mine in terms for term in mine)
    return selection._said_later(facts, terms, seen, dict.fromkeys(seen, 1.0))


def test_alike_facts_are_held_against_a_few_and_not_against_each_other() -> None:
    def pairs(count: int) -> int:
        return len(said_later(*[f"The invoice of hall {n} is {1000 + n} euros now." for n in range(count)]))

    assert 0 < pairs(400) <= 2.2 * pairs(200)


def test_who_did_something_waits_for_who_took_it_over() -> None:
    older = "Felicity does the payroll, ask her and nobody else."
    later = "Felicity went part-time, now Hamish is the one for wages."
    assert said_later(older, later) == [(0, 1)]
    assert said_later(older, "Felicity sings in the choir of the harbour.") == []


def test_how_rare_words_are_is_counted_among_all_that_was_said() -> None:
    usual, rare = "The courier leaves the parcel at the gate.", "The cellist keeps her bow in the attic."
    everything = facts_of(*[usual] * 30, rare)
    likely = facts_of(usual, rare)
    assert said(chosen_facts(likely, room=17, count_text=words, among=everything)) == [rare]


def test_an_old_figure_waits_for_the_new_one_however_many_share_its_words() -> None:
    older, later = "The invoice is 1,280 euros.", "After all that writing to and fro the invoice came down to 1,190."
    others = [f"The invoice of {name} went to the printer." for name in ("Oda", "Per", "Ute", "Ivo", "Jan")]
    everything = facts_of(older, *others, later, *["The courier leaves the parcel at the gate."] * 200)
    shown = said(chosen_facts(facts_of(older, *others, later), room=17, count_text=words, among=everything))
    assert older not in shown


def test_a_statement_that_is_repeated_is_told_once() -> None:
    facts = facts_of(FACTS[0], FACTS[0], FACTS[1])
    assert len(chosen_facts(facts, room=99, count_text=words)) == 2


def test_a_sentence_that_another_of_its_message_takes_along_is_told_once() -> None:
    helps, allergic = facts_of("My sister Elena helps. She is allergic to nuts.")
    understood = replace(allergic, text=f"{helps.text} {allergic.text}")
    assert said(chosen_facts([helps, understood], room=99, count_text=words)) == [understood.text]
    elsewhere = replace(understood, seq=understood.seq + 1)
    assert len(chosen_facts([helps, elsewhere], room=99, count_text=words)) == 2


def test_what_the_prose_states_is_not_said_again() -> None:
    told = "They settled the rest, and the gate code of hall Alder is 4000."
    assert said(chosen_facts(facts_of(*FACTS[:2]), room=99, count_text=words, told=told)) == FACTS[1:2]


@pytest.mark.parametrize(
    "talk",
    [
        "Totally agree, Iris.",
        "Thanks Iris, really appreciate your kind words!",
        "Long time no talk!",
        "Patience is everything.",
        "Here's a pic of it.",
        "Here it is!",
        "That's so sweet of you.",
        "[shares an image: a photo of a lamp on a table]",
        "<local-command-stdout>Connected to Visual Studio Code.</local-command-stdout>",
        "You really shine.",
        "I'm gonna keep it up.",
        "Laughter brings joy.",
        "They sure are.",
    ],
)
def test_talk_is_left_out_however_much_room_there_is(talk: str) -> None:
    assert chosen_facts(facts_of(talk), room=999, count_text=words) == []


@pytest.mark.parametrize(
    "fact",
    [
        "I just signed up for a welding class yesterday.",
        "My brother works at the harbour office.",
        "I'm allergic to shellfish.",
        "We adopted a second cat last week.",
        "I'm a big fan of rowing.",
        "We're thinking of moving to the coast.",
        "The gate code is 4471.",
        "I am pregnant and due in May.",
    ],
)
def test_what_somebody_tells_of_their_life_has_its_place(fact: str) -> None:
    assert len(chosen_facts(facts_of(fact), room=99, count_text=words)) == 1


def test_a_correction_that_must_stand_is_taken_before_what_is_worth_more() -> None:
    facts = facts_of("The bench stands by the old boat.", *FACTS[:1], "Our contact Imke Hallberg signs on 4 June.")
    least = facts[0]
    assert least not in chosen_facts(facts, room=27, count_text=words)
    assert least in chosen_facts(facts, room=27, count_text=words, first={least.id})


def test_an_old_value_is_not_shown_where_what_took_its_place_has_no_room() -> None:
    facts = facts_of(
        "Our tutor for the harbour exam is Odhran Halloran.",
        "Since Halloran retired the new tutor of all the evening courses at the harbour school is called Nwosu.",
    )
    assert said(chosen_facts(facts, room=20, count_text=words)) == []
    assert chosen_facts(facts, room=99, count_text=words) == facts
    assert said(chosen_facts(facts[:1], room=20, count_text=words)) == [facts[0].text]


@pytest.mark.parametrize(
    ("older", "later"),
    [
        ("Grandma's train gets in at 14:05.", "It seems that her train of that Friday evening pulls in at 15:40."),
        ("The invoice is 1,280 euros.", "After all that writing to and fro the invoice came down to 1,190."),
    ],
)
def test_a_figure_is_not_shown_where_a_later_one_of_its_form_has_no_room(older: str, later: str) -> None:
    facts = facts_of(older, later)
    assert said(chosen_facts(facts, room=14, count_text=words)) == []
    assert facts[1] in chosen_facts(facts, room=99, count_text=words)
    assert said(chosen_facts(facts[:1], room=14, count_text=words)) == [older]


def test_figures_of_another_form_take_nothing_s_place() -> None:
    facts = facts_of("Grandma's train gets in at 14:05.", "It seems that this train of hers is made up of 12 coaches.")
    assert said(chosen_facts(facts, room=14, count_text=words)) == [facts[0].text]


def test_a_seldom_word_is_worth_more_than_the_wording_of_a_fact() -> None:
    around = facts_of(*(f"We decided on {number} chairs for the hall." for number in range(20, 40)))
    rare = facts_of("She cannot have peanuts, hospital last time.", first=90)
    assert rare[0] in chosen_facts([*around, *rare], room=30, count_text=words)


def test_what_must_not_be_done_is_shown_before_what_was_done() -> None:
    facts = facts_of("I ate bread with gluten, it wrecked me.", "I never eat bread with gluten, it wrecks me.")
    assert said(chosen_facts(facts, room=17, count_text=words)) == [facts[1].text]


def test_orders_alike_but_for_a_number_are_no_facts_and_alike_statements_are_behind_what_is_said_once() -> None:
    orders = facts_of(
        *(f"Please look at module_{number}.py and tell me what it does." for number in range(30)), first=2
    )
    ports = facts_of(*(f"module_{number}.py listens on port {8000 + number}." for number in range(30)), first=50)
    once = facts_of("The budget of the ferry is 4300 euros.", "Our contact is Imke Hallberg.", first=100)
    shown = chosen_facts([*orders, *ports, *once], room=60, count_text=words)
    assert {one.id for one in once} < {one.id for one in shown}
    assert {one.id for one in shown} <= {one.id for one in (*ports, *once)}
    assert superseded(ports) == {}


def test_where_a_model_marks_what_must_last_nothing_else_of_it_is_listed() -> None:
    text = "- [keep] The gate code of hall Alder is 4000.\n- Hall Birch still needs a gate code, 4001 is free."
    talk = (entry(2, "The gate code of hall Alder is 4000. Hall Birch still needs a gate code, 4001 is free."),)
    marked, open_point = facts_written(text, talk)
    assert chosen_facts([marked, open_point], room=99, count_text=words) == [marked]
    assert chosen_facts([open_point], room=99, count_text=words) == [open_point]
    by_rules = facts_of("The gate code of hall Cedar is 4002.", first=5)
    assert chosen_facts([marked, open_point, *by_rules], room=99, count_text=words) == [marked, *by_rules]


def test_a_model_that_marks_hardly_anything_does_not_say_what_to_leave_out() -> None:
    numbers = range(4000, 4020)
    talk = tuple(entry(code, f"The code of hall {code % 97} is {code}.") for code in numbers)
    facts = facts_written("- [keep] " + "\n- ".join(one.text for one in talk), talk)
    assert len(chosen_facts(facts, room=999, count_text=words)) == len(numbers)


def test_what_only_says_that_a_note_is_over_is_not_listed_but_beside_prose_that_tells_the_note() -> None:
    numbers = range(4000, 4020)
    talk = tuple(entry(code, f"The code of hall {code % 97} is {code}.") for code in numbers)
    *facts, last = facts_written("- " + "\n- ".join(one.text for one in talk), talk)
    over = replace(last, ends=(facts[0].id[:8],))
    assert over not in chosen_facts([*facts, over], room=999, count_text=words)
    assert over in chosen_facts([*facts, over], room=999, count_text=words, first={over.id})


def test_what_a_note_says_with_more_is_not_said_beside_it() -> None:
    talk = (entry(1, "Help me pack the larch panels for Oslo"),)
    (goal,) = read_facts(talk, goal_seq=1)
    (note,) = facts_written("- [keep] The user's task: help to pack the larch panels for Oslo", talk)
    assert chosen_facts([goal, note], room=99, count_text=words) == [note]


def test_what_one_person_says_stands_beside_what_another_says_with_more() -> None:
    one = entry(1, "My visa is valid until 3 May.", name="Ana")
    other = entry(2, "My visa for Portugal is not valid until 3 May.", name="Ben")
    shown = chosen_facts(read_facts([one, other], goal_seq=9), room=99, count_text=words)
    assert {fact.speaker for fact in shown} == {"Ana", "Ben"}


@pytest.mark.parametrize("first", [0, 1])
def test_of_what_a_model_marked_goes_first_what_it_put_first(first: int) -> None:
    talk = [
        entry(number, f"The gate code of hall {name} is 400{number}.") for number, name in ((1, "Alder"), (2, "Birch"))
    ]
    notes = ["Hall Alder's gate code: 4001", "Hall Birch's gate code: 4002"]
    put = notes[first:] + notes[:first]
    marked = facts_written("\n".join(f"- [keep] {note}" for note in put), talk)
    assert said(chosen_facts(marked, room=16, count_text=words)) == put[:1]
    assert len(chosen_facts(marked, room=99, count_text=words)) == 2


def test_that_something_is_over_is_not_said_beside_what_says_it_and_more() -> None:
    said = ("Lane 89 was merged into the main lane as bec67da.", "Lane 89 is merged.", "The tide gauge is mended.")
    talk = tuple(entry(seq, text) for seq, text in enumerate(said, 1))
    written = (
        "- [keep] lane 89: merged into the main lane as bec67da\n- done: lane 89 is merged\n- done: gauge is mended"
    )
    merged, *ending = facts_written(written, talk)
    over, other = (replace(one, ends=("1a2b3c4d",)) for one in ending)
    shown = chosen_facts([merged, over, other], room=999, count_text=words, first={over.id, other.id})
    assert shown == [merged, other]
    told = "The lane 89 was merged into the main lane by noon."
    assert over not in chosen_facts([over, other], room=999, count_text=words, first={over.id, other.id}, told=told)
