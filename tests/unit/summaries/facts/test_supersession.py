import pytest

from langchain_tiered_memory.summaries.facts.supersession import superseded
from tests.fact_builders import facts_of

CORRECTED = [
    ("The budget for the harbour ferry is 10,000 euros.", "The harbour ferry's budget went up to 12,000 euros."),
    ("Our dentist is Dr. Anna Keller.", "We switched dentists, our dentist is Dr. Omar Said now."),
    ("The meeting is on Tuesday at 10:00.", "The meeting has been moved to 14:30."),
    ("We decided on larch panels for the harbour ferry.", "The harbour ferry gets zinc cladding instead."),
    ("My sister lives in Graz.", "My sister moved to Vienna."),
    ("The deadline for the grant is March 3.", "The deadline for the grant got extended to March 17."),
    ("Imke Hallberg runs the coastal ferry.", "Emre Tamm took over the coastal ferry from Imke Hallberg."),
    ("We use Postgres for the store.", "Let's use SQLite instead of Postgres for the store."),
    ("The wifi password is tulip345.", "They changed the wifi password to gravel778."),
    ("My favourite tea is jasmine tea.", "My favourite tea is now oolong."),
    ("The staging cluster has 12 nodes.", "The staging cluster has 16 nodes now."),
    ("I put the ferry rota into a/b/c.md.", "Scratch what I said about the ferry rota: it is d/e/f.md now."),
    ("We picked Kafka for the billing queue.", "No, for the billing queue we'll go with RabbitMQ."),
    ("The port is 8080.", "Sorry, it's 8443, not 8080."),
    ("I live in Graz.", "I moved to Vienna last month."),
    (
        "The copper aviary belongs to Rafael Thorvald's team.",
        "Sorry, for the copper aviary it should be Marit Iversen.",
    ),
]
BESIDE = [
    ("The budget for the harbour ferry is 10,000 euros.", "The length of the harbour ferry is 40 metres."),
    ("The harbour ferry costs 300 euros.", "The harbour ferry now takes 40 people."),
    ("The api port is 8080.", "The database port is 5432."),
    ("Our contact for the coastal ferry is Imke Hallberg.", "The owner of the coastal ferry is Emre Tamm."),
    ("The bakery opens at 8:00.", "The bakery closes at 18:00 now."),
    ("We decided to hire Ann for the team.", "We decided to buy a plotter for the team."),
    ("My sister lives in Graz.", "My sister works at the Kunsthaus now."),
    ("The coastal ferry comes to 4300 euros.", "The coastal ferry is in plans/drafts/ferry.md now."),
    ("They want 4300 euros for the coastal ferry.", "It took 300 hours to get the coastal ferry home."),
    ("My dog Rex is 4 years old.", "My dog Rex weighs 30 kg now."),
    ("The office is on 12 Elm Street.", "The office has 40 desks now."),
]


@pytest.mark.parametrize(("old", "new"), CORRECTED)
def test_a_correction_takes_the_place_of_what_it_corrects(old: str, new: str) -> None:
    facts = facts_of(old, new)
    assert superseded(facts) == {facts[0].id: facts[-1].id}


@pytest.mark.parametrize(("one", "other"), BESIDE)
def test_two_properties_of_a_subject_stand_beside_each_other(one: str, other: str) -> None:
    assert superseded(facts_of(one, other)) == {}


def test_a_correction_counts_within_one_message() -> None:
    old, new = facts_of("The api port is 8080. Correction: the api port is 8443, not 8080.")
    assert superseded([old, new]) == {old.id: new.id}


def test_a_chain_of_corrections_leaves_the_last() -> None:
    facts = facts_of("The api port is 8080.", "Actually the api port is 8443.", "No wait, the api port is 9000.")
    assert set(superseded(facts)) == {facts[0].id, facts[1].id}


def test_an_assistant_does_not_take_back_what_its_user_said() -> None:
    said = facts_of("The api port is 8080.")
    claims = facts_of("Actually the api port is 8443, not 8080.", role="assistant", first=3)
    assert superseded([*said, *claims]) == {}
    assert list(superseded([*claims, *facts_of("The api port is 8080.", first=4)])) == [claims[0].id]


@pytest.mark.parametrize(
    ("old", "new"),
    [("My sister lives in Graz.", "My sister moved to Vienna."), ("I live in Graz.", "I moved to Linz.")],
)
def test_what_one_says_of_oneself_is_taken_back_by_oneself_alone(old: str, new: str) -> None:
    ann = facts_of(old, name="Ann")
    assert superseded([*ann, *facts_of(new, first=3, name="Bob")]) == {}
    again = facts_of(new, first=4, name="Ann")
    assert superseded([*ann, *again]) == {ann[0].id: again[0].id}


def test_what_is_said_of_a_third_thing_is_taken_back_by_anybody() -> None:
    old = facts_of("The api port is 8080.", name="Ann")
    new = facts_of("Correction: the api port is 8443, not 8080.", first=3, name="Bob")
    assert superseded([*old, *new]) == {old[0].id: new[0].id}
