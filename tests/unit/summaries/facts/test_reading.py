from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.summaries.facts import clauses
from langchain_tiered_memory.summaries.facts.reading import MAX_FACTS_PER_ENTRY, fact_id, is_quoted, read_facts
from langchain_tiered_memory.types.records import Fact
from tests.fact_builders import entry, facts_of, said


def read(*texts: str) -> list[Fact]:
    return read_facts([entry(seq, text) for seq, text in enumerate(texts, 2)])


@pytest.mark.parametrize(
    ("text", "subject", "value"),
    [
        ("Imke Hallberg looks after the coastal ferry.", "coastal ferry", "Imke Hallberg"),
        ("They want 4300 euros for the coastal ferry.", "coastal ferry", "4300 euros"),
        ("See plans/ferry_12.md before our board meeting.", "board meeting", "plans/ferry_12.md"),
        ("By the way, the billing service runs version 2.4.1.", "billing service", "2.4.1"),
        ("The deadline for the youth grant is March 3.", "youth grant", "March 3"),
    ],
)  # fmt: skip
def test_a_statement_has_its_subject_and_its_value(text: str, subject: str, value: str) -> None:
    (found,) = read(text)
    assert (found.subject, found.value) == (subject, value)


def test_a_statement_without_any_cue_is_read() -> None:
    assert said(read("My sister Ana keeps bees behind the chapel.")) == ["My sister Ana keeps bees behind the chapel."]


def test_what_stands_below_a_heading_or_a_block_of_code_is_read() -> None:
    for above in ("## The grant", "```\nx = 1\n```", f"- {'word ' * 900}"):
        (found,) = read(f"{above}\nThe deadline for the youth grant is March 3.")
        assert found.value == "March 3"


def test_what_is_particular_weighs_more_than_talk() -> None:
    (fact,) = read("The gate code at the garden hall is 4471.")
    talk = read("It is so nice that you always make time for the people around you!")
    assert all(one.weight < fact.weight / 2 for one in talk)


@pytest.mark.parametrize(
    "text", ["How have you been?", "Wow, thanks!", "What does the harbour ferry cost?", "Here is:"]
)
def test_questions_and_greetings_state_nothing(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I love old films, the Star Wars saga, and the Marvel Cinematic Universe movies of the last ten years.", None),
        ('In Graz there is this charming little caf\u00e9 called "Caf\u00e9 Serenity." They roast their own.', None),
        ("Besides the Hunger Games series, I'm a fan of science fiction and fantasy movies.", None),
        ("I graduated from the University of Michigan in 2012, and since then that is all I know of it.", None),
        ("Last Tuesday, my friend, Toby, and I had a really awesome night with the board games.", None),
        (
            "Spider-Man has always been a favorite of mine - I mean, who doesn't love his struggles with the Goblin?",
            "Spider-Man has always been a favorite of mine - I mean",
        ),
    ],
)
def test_a_statement_is_not_cut_where_it_goes_on(text: str, stated: str | None) -> None:
    first = said(read(text))[0]
    assert first == (stated or text.partition(" They roast")[0])


def test_a_long_answers_lists_labels_and_derivations_are_advice_and_no_facts() -> None:
    lines = [
        "**End Date**: May 15, 2024, then review the 3 budgets with Anna Lindqvist.",
        "- Ask Anna Lindqvist about the 3 budgets of the ferry",
        "| Internet | $100 |",
        "\\( \\angle A = 40^\\circ \\)",
    ]
    told = "The harbour office of Piran opens at 9:30 on weekdays."
    at_length = "\n".join([*lines, told, *("This is worth a thought." for _ in range(30))])
    assert said(read_facts([entry(2, at_length, role="assistant")])) == [told]


@pytest.mark.parametrize(
    "asked",
    [
        "Why is it so damp in the caravan we live in?",
        "How do I tell my foreman Osric that I want fewer hours?",
        "Since we marry in Lecce next June, who should carry the rings?",
        "Is there any way to heat the caravan I've bought in Leiden?",
    ],
)
def test_what_a_question_says_of_whoever_asks_it_is_read(asked: str) -> None:
    (fact,) = read(f"Let us see. {asked}")
    assert (fact.text, fact.kind, fact.value) == (asked, "question", "")


@pytest.mark.parametrize(
    "asked",
    [
        "Can I wash a wool carpet on a weekday?",
        "How do we clean the old copper pan?",
        "Why don't we keep the orders in Postgres 16?",
        "Shouldn\u2019t I register the van in Leiden first?",
        "Wie kann ich den Wagen in Leiden anmelden?",
    ],
)
def test_what_only_asks_states_nothing(asked: str) -> None:
    assert read(asked) == []


def test_a_long_message_states_more_than_a_brief_one() -> None:
    things = ("harp", "lathe", "kettle", "anvil", "canoe", "ladder", "saddle", "trumpet", "loom", "rudder", "compass")
    told = [f"The {thing} belongs to the glazier who moved in next door in spring." for thing in things]
    assert said(read(" ".join(told))) == told


def test_of_a_pasted_log_no_more_is_stated_than_somebody_writes() -> None:
    log = "\n".join(f"2026-11-05 12:{n % 60:02}:07 INFO service-{n % 40} answered request {n}." for n in range(20_000))
    assert len(said(read(log))) == 6 * MAX_FACTS_PER_ENTRY


def test_what_leads_to_a_question_states_nothing() -> None:
    assert not said(read("And without Captain America, Iron Man and Black Widow, what is the team left with?"))


def test_a_figure_far_behind_what_it_is_told_of_is_not_cut_away() -> None:
    between = " and ".join(f"the {one} that nobody ever looked at" for one in ("lathe", "loom", "press", "kiln", "saw"))
    found = said(read(f"The pager number of the mill, with {between} all around it, is 555-0199."))
    assert "555-0199" in found[0]


def test_somebody_else_s_sentence_in_quote_marks_is_still_left_out() -> None:
    assert not any("900" in one for one in said(read('Bram wrote "The budget for the ferry is 900 euros." and left.')))


def test_code_that_is_pasted_states_nothing() -> None:
    pasted = (
        "Here is what the vendor sent us for the login:\n\npassword = request.json['password']\nThe port is 8123 now."
    )
    found = read(pasted)
    assert any("8123" in one.text for one in found)
    assert not any("request.json" in one.text for one in found)


def test_what_an_assistant_is_about_to_do_is_no_statement() -> None:
    told = "The harbour ferry sails on port 8123."
    for said_first in ("Wait, let me test the theory of Bram Okafor.", "Hmm, let me read src/ferry.py in full."):
        assert said(read_facts([entry(2, f"{said_first} {told}", role="assistant")])) == [told]


def test_what_an_assistant_writes_with_its_tools_is_no_statement() -> None:
    code = (
        'Write(\npath="src/a.ts"\ncontent:\n// Session A runs on port 8123 for the ferry.\nexport const port = 8123\n)'
    )
    spoken = "The coastal ferry gets Bram Okafor as its pilot."
    calling = replace(entry(2, f"{spoken}\n{code}", role="assistant"), calls=("c1",))
    assert said(read_facts([calling])) == ["The coastal ferry gets Bram Okafor as its pilot."]


def test_what_stands_before_a_question_is_read() -> None:
    assert said(read("My sister Ana lives in Graz, have you ever been there?")) == ["My sister Ana lives in Graz"]


def test_an_answer_is_about_what_was_asked_for() -> None:
    asked = entry(2, "What is the budget for the coastal ferry?", role="assistant")
    (found,) = read_facts([asked, entry(3, "It's 4,300 euros.")])
    assert (found.text, found.subject, found.value, found.seq) == (
        "It's 4,300 euros.",
        "coastal ferry",
        "4,300 euros",
        3,
    )


def test_who_somebody_is_is_read_and_a_common_word_before_a_name_is_no_name() -> None:
    (found,) = read("I'm Marit.")
    assert (found.text, found.value) == ("I'm Marit.", "Marit")
    assert not [one for one in read("I'm OK.", "Thanks Joanna!", "Last Friday I slept.") if " " in one.value]
    (found,) = read("Will Smith runs the harbour ferry.")
    assert found.value == "Will Smith"


@pytest.mark.parametrize("opening", ["Now I'm", "Yesterday I", "Luckily I\u2019ve"])
def test_i_behind_a_capital_is_no_name(opening: str) -> None:
    clause = f"{opening} ordering sushi for the whole team"
    assert not clauses.read(clause).named
    assert "full name" not in clauses.read(clause).signs
    assert [one[0] for one in clauses.read(f"{opening} with Anna Keller for the whole week").named] == ["Anna Keller"]


def test_a_person_is_not_called_by_the_thing_that_was_spoken_of() -> None:
    found = read("Who was on the harbour ferry?", "He was absent for 2 days.")
    assert not any(one.text.startswith("the harbour ferry") for one in found)


def test_a_correction_in_two_sentences_is_one_fact() -> None:
    (found,) = read("I was wrong about the coastal ferry. For the coastal ferry it is 40 kilos rather than 30 kilos.")
    assert found.value == "40 kilos"


def test_the_value_that_is_taken_back_is_not_the_value() -> None:
    (found,) = read("We moved the audit queue from 300 seats to 450 seats.")
    assert found.value == "450 seats"


def test_what_a_tool_or_a_system_prompt_says_is_no_fact() -> None:
    texts = [entry(1, "The port is 8080.", role="tool"), entry(2, "The port is 8081.", role="system")]
    assert read_facts(texts) == []


def test_long_advice_of_an_assistant_weighs_little() -> None:
    sentence = "The coastal ferry takes 300 litres of paint."
    advice = sentence + " One could also think about it for a while." * 20
    (short,) = read_facts([entry(2, sentence, role="assistant")])
    assert all(one.weight < short.weight / 2 for one in read_facts([entry(2, advice, role="assistant")]))


def test_the_ask_of_the_first_user_message_is_the_goal() -> None:
    found = read_facts([entry(1, "Hi there! I want to build a billing service for our clinic.")])
    assert [(one.kind, one.weight) for one in found] == [("goal", 1.0)]


def test_a_pasted_log_does_not_crowd_out_the_rest() -> None:
    log = "\n".join(f"the value{letter} is {number}00" for number, letter in enumerate("abcdefghijkl", 1))
    assert len(read(log)) <= MAX_FACTS_PER_ENTRY


@pytest.mark.parametrize(
    "text", ["Die Miete beträgt 950 Euro.", "会议定于2024年3月5日举行。", "Notre budget est de 4 300 €."]
)
def test_other_languages_are_read_by_their_figures(text: str) -> None:
    assert len(read(text)) == 1


@given(st.lists(st.text(max_size=200), max_size=5))
def test_a_fact_is_in_its_messages_words_and_has_a_stable_id(texts: list[str]) -> None:
    entries = [entry(seq, text) for seq, text in enumerate(texts, 2)]
    found = read_facts(entries)
    assert found == read_facts(entries)
    assert len({one.id for one in found}) == len(found)
    for one in found:
        assert one.id == fact_id(one.seq, one.kind, one.text)
        assert len(one.id) == 16
        assert 0 <= one.weight <= 1
        assert one.sources == (one.seq,)


@pytest.mark.parametrize(
    "told", ["I'm vegetarian, and I prefer dark roast coffee.", "I am pregnant.", "I'm a diabetic.", "We got divorced."]
)
def test_what_somebody_says_of_themselves_in_a_word_is_a_fact(told: str) -> None:
    assert facts_of(told)


def test_what_a_host_loads_is_nobodys_decision() -> None:
    text = "Base directory for this skill: /skills/ferry\n\n# Ferry\n\nThe budget of the ferry is 900 euros.\n"
    assert all(map(is_quoted, read_facts([entry(1, "Hello."), entry(2, text)])))
    own = text.partition("\n\n")[2]
    assert not is_quoted(*read_facts([entry(1, "Hello."), entry(2, own)]))
