import pytest

from langchain_tiered_memory.summaries.writers.ranking import kind_of
from langchain_tiered_memory.text.sentences import asks, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We chose green tea for the fair. hmm, what else?", ["We chose green tea for the fair.", "hmm, what else?"]),
        ("ouch :) I paid 40 euros for it", ["ouch :)", "I paid 40 euros for it"]),
        ("Wow! :) Thanks so much", ["Wow! :)", "Thanks so much"]),
        ("Love it \U0001f60d\U0001f60d My dog is 5", ["Love it \U0001f60d\U0001f60d", "My dog is 5"]),
        ("Ends e.g. with that. ok", ["Ends e.g. with that.", "ok"]),
        ("It costs approx. ten euros.", ["It costs approx. ten euros."]),
        ("See foo.py. it works", ["See foo.py. it works"]),
        (
            "the register says so. it came up. ten ff. follow",
            ["the register says so.", "it came up.", "ten ff. follow"],
        ),
        ("at 5 p.m. we left", ["at 5 p.m. we left"]),
        ("version 2.3. it is", ["version 2.3. it is"]),
        ("i like it... maybe", ["i like it... maybe"]),
        ("the ratio is 3:D Test", ["the ratio is 3:D Test"]),
        ("Der Termin ist am 4. Mai. Danach essen wir.", ["Der Termin ist am 4. Mai.", "Danach essen wir."]),
        ("Am 31. Dez. um acht. Gut.", ["Am 31. Dez. um acht.", "Gut."]),
        (
            "We need 5. Maintain them. It is 125. April pays.",
            ["We need 5.", "Maintain them.", "It is 125.", "April pays."],
        ),
    ],
)
def test_a_sentence_ends_where_people_who_chat_end_it(text: str, found: list[str]) -> None:
    assert sentences(text) == found


def test_the_initials_of_a_name_end_no_sentence() -> None:
    for said in ("I read a novel by V.E. Schwab.", "We heard Uptown Funk by Mark Ronson ft. Bruno Mars."):
        assert sentences(f"{said} It was good.") == [said, "It was good."]


@pytest.mark.parametrize(
    "said",
    [
        "Which harbour?",
        "哪个港口\uff1f",
        "أي ميناء\u061f",
        "Ποιο λιμάνι\u037e",
        "Which harbour?!",
        "(Which harbour?)",
        "Which? 🙂",
    ],
)
def test_a_question_ends_with_the_mark_of_its_script_whatever_stands_behind(said: str) -> None:
    assert asks(said)
    assert not asks(f"{said} The old one.")
    assert kind_of(f"No more than 5: {said}") == "point"
