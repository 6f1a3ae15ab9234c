"""Which kept statements a model is shown beside new messages: those that these may change come first."""

from dataclasses import replace

import pytest

from langchain_tiered_memory.summaries.facts.related import alike_in_form, form_of, in_turn, may_replace, related
from langchain_tiered_memory.summaries.facts.written import labelled
from langchain_tiered_memory.types.records import Fact

KEPT = (
    "Grandma's train: gets in at 14:05",
    "Our hotel: Hotel Marisol",
    "API key: rotates every 30 days",
    "Ben's dinner: for eight people",
    "The workshop: training for dogs, signed up",
    "Ben's fear of flying: trains instead",
    "Committee page limit: ten pages, picked by the board",
    "Book club: picked The Wall for February",
    "Kitchen budget: 9,000",
    "Anna's hall paint: sage",
    "Nate's recipes: started teaching people",
)

DATED = ("Ada's thesis: due at the end of April", "Ada's therapist: on Mondays")


def kept() -> list[Fact]:
    return [
        Fact(kind="statement", text=text, seq=number, at=0.0, subject=text.partition(":")[0], by_model=True)
        for number, text in enumerate(KEPT, 1)
    ]


def nearest(message: str) -> str | None:
    found = related(kept(), [message])
    return KEPT[max(found, key=lambda one: found[one])] if found else None


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        ("Lovely walk. They changed her train, it's 15:40 now.", KEPT[0]),
        ("Marisol was full so it's the Alcazar now.", KEPT[1]),
        ("Rotation is weekly now, security changed it.", KEPT[2]),
        ("Two cancelled, we're six for dinner.", KEPT[3]),
        ("Kitchen's going to be 11,500, the bank said yes.", KEPT[8]),
        ("We decided to get started. No sage paint, they only had moss, so moss in the hall.", KEPT[9]),
    ],
)
def test_what_a_message_may_change_comes_first(message: str, statement: str) -> None:
    assert nearest(message) == statement


def test_words_that_say_that_something_changes_name_nothing() -> None:
    assert nearest("We picked a new one now, since they changed it.") is None
    assert nearest("What a day it was!") is None


def test_a_figure_has_its_form_whatever_stands_behind_it() -> None:
    assert form_of("11,500, the bank said yes") == form_of("9,000.") == "0,0"


@pytest.mark.parametrize(
    ("message", "statement"),
    [
        ("They granted me the extension, I hand in mid-July.", "Ada's thesis: due at the end of April"),
        ("I see her Thursdays instead.", "Ada's therapist: on Mondays"),
        ("It runs to 11,200 with the fees.", KEPT[8]),
    ],
)
def test_what_has_a_measure_of_the_same_form_may_be_changed_without_a_common_word(message: str, statement: str) -> None:
    known = [*kept(), *(Fact(kind="statement", text=text, seq=99, at=0.0) for text in DATED)]
    found = alike_in_form(known, [message])
    assert statement in {known[place].text for place, told in found.items() if told == max(found.values())}


def test_rankings_are_taken_in_turn_and_each_place_once() -> None:
    assert list(in_turn(kept(), {1: 2.0, 3: 1.0}, {3: 0.5, 4: 0.9}, {0: 1.0})) == [1, 4, 0, 3]
    assert list(in_turn(kept(), {1: 1.0, 2: 1.0})) == [2, 1], "of equals the newest"


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("Ben's fear of flying: instead a ship now", {5}),
        ("Our hotel: the Alcazar, as Marisol was full", {1}),
        ("Grandma's train: 15:40", {0}),
        ("The porcelain: sold", set()),
        ("It changed, decided instead", set()),
    ],
)
def test_a_line_may_replace_what_it_tells_of_and_nothing_that_shares_a_word(line: str, places: set[int]) -> None:
    assert may_replace(kept(), line) == places


def test_what_replaces_one_note_replaces_no_other() -> None:
    lines = {KEPT[0]: "Grandma's train: 15:40", KEPT[1]: "Our hotel: the Alcazar", KEPT[8]: "Kitchen budget: 11,500"}
    for note, line in lines.items():
        assert may_replace(kept(), line) == {KEPT.index(note)}


def test_a_line_may_replace_what_it_names_though_another_note_is_more_alike() -> None:
    notes = [
        "ticket 12 head: 9ab77c1 on `lanterns`, pushed, with the wording of the comments",
        "ticket 12: merged into `trunk` as 4f1e2a0",
        "ticket 14: waits for a reviewer",
        "order of work: the ferry before the harbour",
    ]
    known = [Fact(kind="statement", text=one, subject=labelled(one), seq=1, at=0.0) for one in notes]
    assert may_replace(known, "ticket 12: merged into `trunk` as 4f1e2a0") == {0, 1}
    assert may_replace(known, "Ticket 12 is merged into `trunk`.") == {0, 1}


def test_a_subject_of_common_words_alone_is_named_by_them() -> None:
    known = [replace(kept()[0], text="Importer: written in Go, decided", subject="Importer"), kept()[1]]
    assert may_replace(known, "Importer: rewritten in Kotlin, given up on that after two weeks") == {0}
