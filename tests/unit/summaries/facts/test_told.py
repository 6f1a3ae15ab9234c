from langchain_tiered_memory.summaries.facts.written import facts_of_summary
from tests.fact_builders import entry, facts_of

SOURCES = [
    entry(2, "we got hold of Imke Hallberg and the coastal ferry will get 40 seats"),
    entry(3, "The port of the api is 9000.", role="tool"),
]


def test_a_fact_that_a_summary_adds_carries_who_said_it() -> None:
    found, taken_up = facts_of_summary("The coastal ferry will get 40 seats.", SOURCES, [])
    assert [(one.text, one.by, one.seq) for one in found] == [("The coastal ferry will get 40 seats.", "user", 2)]
    assert taken_up == []


def test_a_fact_that_a_summary_adds_is_without_the_label_of_who_said_it_and_keeps_what_it_is_about() -> None:
    asked = [entry(2, "please go on with the coastal ferry"), entry(3, "its budget: 640 euros for the coastal ferry")]
    found, _ = facts_of_summary("user: please go on with the coastal ferry", asked, [])
    assert [one.text for one in found if "user" in one.text] == []
    found, _ = facts_of_summary("budget: 640 euros for the coastal ferry", asked, [])
    assert [one.text for one in found] == ["budget: 640 euros for the coastal ferry"]


def test_what_no_person_says_is_not_believed() -> None:
    assert facts_of_summary("The port of the api is 9000. The coastal ferry is 90 years old.", SOURCES, []) == ([], [])


def test_a_known_fact_is_taken_up_and_not_added() -> None:
    known = facts_of(SOURCES[0].text)
    assert facts_of_summary("The coastal ferry will get 40 seats.", SOURCES, known) == ([], [known[0].id])
