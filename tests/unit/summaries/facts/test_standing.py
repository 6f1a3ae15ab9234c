import pytest

from langchain_tiered_memory.summaries.facts.clauses import points_back
from langchain_tiered_memory.summaries.facts.listing import standing_alone
from langchain_tiered_memory.summaries.facts.reading import read_facts
from tests.fact_builders import entry


def alone(text: str, about: str, *, before: str = "") -> str | None:
    """The fact of `text` that has the words `about`, as it is listed."""
    said = entry(2, text, name="Caroline")
    fact = next(one for one in read_facts([said], goal_seq=9) if about in one.text)
    found = standing_alone(fact, said, entry(1, before, name="Melanie") if before else None)
    return found.rstrip(".") if found else None


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("A friend made it for my 18th birthday", True),
        ("Her name's Coco", True),
        ("I chose them because they help families", True),
        ("I painted this after the trip", True),
        ("I called Anna Keller and she will come", False),
        ("Just type v2 for Marta's visa and it opens", False),
        ("I moved to Oslo in May", False),
    ],
)
def test_a_statement_points_back_that_does_not_name_what_it_speaks_of(text: str, *, points: bool) -> None:
    assert points_back(text) is points


def test_what_points_back_stands_behind_the_sentence_before_it() -> None:
    text = "I keep a hand-painted bowl from Lund. A friend made it for my 18th birthday ten years ago."
    assert alone(text, "18th birthday") == text.removesuffix(".")


def test_a_new_value_is_told_whatever_it_points_back_to() -> None:
    assert alone("They changed her train, it's 15:40 now.", "15:40") == "They changed her train, it's 15:40 now"
    assert alone("They took her train, it was 15:40 sharp.", "15:40") is None


def test_a_brief_answer_stands_with_its_question() -> None:
    found = alone("Since I was 17 or so.", "17", before="How long have you been playing the guitar?")
    assert found == "Since I was 17 or so (Melanie asked: How long have you been playing the guitar?)"


@pytest.mark.parametrize(
    ("text", "about"), [("Wow! They have 40 rooms in Varna.", "40 rooms"), ("I take it like 2 hours prior", "2 hours")]
)
def test_what_points_back_to_nothing_is_not_listed(text: str, about: str) -> None:
    assert alone(text, about) is None


def test_a_statement_is_given_the_words_before_it_and_no_subject_of_ours() -> None:
    said = "Anna says her true home is the harbour. The next gaming tournament begins soon. It's gonna be my 4th one."
    assert alone(said, "4th one") == said.partition(". ")[2].removesuffix(".")


def test_what_stands_by_itself_stays_as_it_is() -> None:
    said = "I moved to Oslo with Ingrid Berg in May"
    assert alone(f"Great news! {said}.", "Oslo", before="What is new?") == said


def test_an_item_stands_with_its_list_and_what_announces_it() -> None:
    found = alone("My smoothie takes:\n- 60 g plain yogurt\n- 20 g raspberries\n- 80 g strawberries\n", "20 g")
    assert found is not None
    assert found.startswith("My smoothie takes: 60 g plain yogurt; 20 g raspberries")


def test_an_item_of_a_list_that_has_no_room_keeps_its_own_words() -> None:
    items = "; ".join(
        f"the {name} stands in the northern hall of the old mill" for name in ("lathe", "loom", "press", "kiln")
    )
    found = alone(f"Here is where things are: {items}; the pager number is 555-0199.", "555-0199")
    assert found is not None
    assert "555-0199" in found


def test_a_greeting_is_no_question_that_a_statement_answers() -> None:
    found = alone("For seven years at the harbour school.", "seven", before="Hey, how have you been doing lately?")
    assert found is not None
    assert "asked" not in found


def test_what_was_decided_is_listed_whoever_they_are() -> None:
    assert alone("They decided to use Postgres for billing.", "Postgres") == "They decided to use Postgres for billing"
