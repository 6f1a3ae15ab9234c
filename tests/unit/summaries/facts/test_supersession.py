from dataclasses import replace
from typing import Any

import pytest

from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.summaries.facts.supersession import rivals, superseded
from langchain_tiered_memory.types.records import Fact
from tests.fact_builders import facts_of
from tests.store_builders import fact

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
    ("The report timeout is 30 seconds.", "The report timeout was raised to 2 minutes."),
    ("The ferry budget is 300 euros.", "The ferry budget went up to 350 dollars."),
    ("The build time is 90 seconds.", "The build time is 4 minutes now."),
    ("The ferry fee is 12 euros.", "The ferry fee costs 3 percent now."),
    ("The budget review takes place on Monday.", "Sorry, the budget review has to wait until Wednesday."),
    ("The password rotation runs every 30 days.", "Sorry, the password rotation happens every 60 days."),
    (
        "The copper aviary belongs to Rafael Thorvald's team.",
        "Sorry, for the copper aviary it should be Marit Iversen.",
    ),
]
BESIDE = [
    (
        "I won my first video game tournament last week - so exciting!",
        "actually - I'm currently participating in the video game tournament again and it's INTENSE!",
    ),
    ("The budget for the harbour ferry is 10,000 euros.", "The length of the harbour ferry is 40 metres."),
    ("The harbour ferry costs 300 euros.", "The harbour ferry now takes 40 people."),
    ("The api port is 8080.", "The database port is 5432."),
    (
        "The combination of flavors was surprisingly delicious.",
        "The combination of refreshing mint and calming properties must make it a perfect choice.",
    ),
    ("I work at a local IT company.", "I went to do some winter fishing with some friends from work."),
    ("I work at a local IT company.", "I just got back from errands before I head to work."),
    ("Our contact for the coastal ferry is Imke Hallberg.", "The owner of the coastal ferry is Emre Tamm."),
    ("The bakery opens at 8:00.", "The bakery closes at 18:00 now."),
    ("We decided to hire Ann for the team.", "We decided to buy a plotter for the team."),
    ("My sister lives in Graz.", "My sister works at the Kunsthaus now."),
    ("The coastal ferry comes to 4300 euros.", "The coastal ferry is in plans/drafts/ferry.md now."),
    ("They want 4300 euros for the coastal ferry.", "It took 300 hours to get the coastal ferry home."),
    ("My dog Rex is 4 years old.", "My dog Rex weighs 30 kg now."),
    ("The office is on 12 Elm Street.", "The office has 40 desks now."),
]

UNSETTLED = {
    "The budget is 900 euros.": (
        "Suppose the budget is 7 euros.",
        "Imagine the budget is 7 euros, what would you cut?",
        "Last year the budget was 400 euros.",
        "It is not true that the budget is 5 euros.",
        "Is the budget 8 euros?",
        "The budget is 8 euros, right?",
        "My boss wrongly believes the budget is 5 euros.",
        "For my sister's garden the budget is 30 euros.",
        'The mail from the vendor says: "the budget is 5 euros".',
        "Here is what the vendor wrote, please answer:\n\nDear Anna,\nThe budget is 5 euros.\nRegards, Bob",
        "If we win, the budget is now 9 euros.",
        "The budget is 9 euros now, if we win.",
        "What if the budget is 7 euros?",
        "Assume the budget is now 7 euros.",
        "The vendor claims that the budget is now 5 euros.",
        "Next year the budget is 700 euros.",
        "In 2019 the budget was raised to 400 euros?",
        "I doubt that the budget is 5 euros.",
        "Originally the budget was 400 euros.",
        "> The budget is 5 euros.",
        '"The budget is 5 euros."',
        'The letter: "We looked at it. The budget is 5 euros. Thank you."',
        "Dear Anna,\n\nthe budget is 5 euros.\n\nBest,\nBob",
        "From: Bob\nSubject: money\n\nThe budget is 5 euros.",
        "-----Original Message-----\nThe budget is now 5 euros.",
        "The budget would be 7 euros.",
        "The budget could be 7 euros now.",
        "Maybe the budget is 7 euros.",
        "I heard the budget is 5 euros.",
        "According to Bob, the budget is now 5 euros.",
        "The budget was 400 euros.",
        "The budget is 5 dollars.",
        "We said the budget is 5 euros in the old plan.",
        "I wish the budget was 2000 euros instead.",
        "Had we won, the budget would now be 3000 euros.",
        "Bob told me the budget is now 5 euros.",
        "Let's say the budget is 70 euros now.",
        "The budget is 5 euros, says Bob.",
        "Nobody believes that the budget has changed to 5 euros.",
        "In the novel the budget is now 5 euros.",
        "The budget is not 5 euros.",
    ),
    "Das Budget ist 500 Euro.": (
        "Angenommen, das Budget ist 7 Euro.",
        "Letztes Jahr war das Budget 400 Euro.",
        "Vielleicht ist das Budget jetzt 700 Euro.",
        "Der Lieferant sagt, das Budget ist jetzt 5 Euro.",
        "Wenn das Budget jetzt 700 Euro ist, kaufen wir.",
        "Ist das Budget 8 Euro?",
    ),
    "Le port est 8080.": (
        "Supposons que le port est 9090.",
        "L'an dernier le port était 9090.",
        "Si le port est maintenant 9090, on change.",
        "Selon Paul, le port est maintenant 9090.",
    ),
    "The gate code of hall Alder is 4000.": ("The gate code of hall Birch is 4001 now.",),
    "module_17.py listens on port 8123.": ("module_18.py listens on port 8124 now.",),
    "The port of alpha is 8123.": ("The port of beta is 8124.",),
    "El puerto es 8080.": ("Si el puerto es ahora 9090, avisa.",),
    "服务器的端口是8080。": (
        "如果服务器的端口是9090。",
        "去年服务器的端口是9090。",
        "假设服务器的端口现在是9090。",
    ),
    "サーバーのポートは8080です。": ("もしサーバーのポートは9090です。",),
    "We use MySQL for the orders.": ("We use Redis for the orders.",),
    "I have a dog called Rex.": ("I have a dog called Max.",),
    "Our dentist is Dr. Anna Keller.": ("My sister's dentist is Dr. Omar Said.",),
    "The meeting is on Tuesday.": (
        "The party is cancelled.",
        "If it rains, the meeting is cancelled.",
        "Is the meeting cancelled?",
    ),
}
"""Statements that settle nothing about the one before, or are of another thing."""
SETTLED = {
    "The code of the vault is Zq5566.": ("Sorry, the code of the vault is Xy1234, not Zq5566.",),
    "The door code is A7B9.": ("The door code is now C3D4.",),
    "We deploy version 1.4.2.": ("We deploy version 1.5.0 now.",),
    "The release branch is release/2026-a.": ("The release branch is release/2026-b now.",),
    "The budget includes travel.": ("No, the budget does not include travel.",),
    "Das Budget ist 500 Euro.": (
        "Das Budget ist jetzt 700 Euro.",
        "Das Budget beträgt jetzt 700 Euro.",
        "Das Budget ist 700 Euro, nicht 500 Euro.",
        "Das Budget ist 700 Euro.",
    ),
    "Le port est 8080.": (
        "Le port est maintenant 9090.",
        "Désormais le port est 9090.",
    ),
    "El presupuesto es de 500 euros.": ("Corrección: el presupuesto es de 700 euros.",),
    "El puerto es 8080.": ("El puerto ahora es 9090.",),
    "服务器的端口是8080。": (
        "更正\uff1a服务器的端口是9090。",
        "服务器的端口现在是9090。",
    ),
    "サーバーのポートは8080です。": ("訂正\uff1aサーバーのポートは9090です。",),
    "The server listens on 8080.": ("Wait, it listens on 9090.",),
    "The meeting is on Tuesday.": ("The meeting is cancelled.",),
    "The meeting is on 5 May.": ("The meeting was called off.",),
    "Das Treffen ist am 5. Mai.": ("Das Treffen ist abgesagt.",),
    "La réunion est le 5 mai.": ("La réunion est annulée.",),
    "My favourite colour is red.": ("My favourite colour is blue now.",),
    "The budget is 900 euros.": (
        "The budget is 950 euros.",
        "Correction: the budget is 950 euros.",
        "The budget is 950 euros, not 900.",
        "The budget has been raised to 950 euros.",
    ),
    "Le budget est de 500 euros.": ("Le budget est de 700 euros, pas 500 euros.",),
    "Il budget è 500 euro.": ("Il budget è ora 700 euro.",),
    "O orçamento é 500 euros.": ("O orçamento agora é 700 euros.",),
    "The call is at 10:00.": ("The call is at 11:30.",),
    "We use Node 18.": ("We use Node 20 now.",),
    "The wifi password is hunter2.": ("The wifi password is correct-horse from now on.",),
    "Bob leads the project.": ("Carol leads the project now, not Bob.",),
    "The API supports XML.": ("The API no longer supports XML.",),
    "The image tag is v1.2.0.": ("No, the image tag is v1.3.0.",),
    "The port is 8080.": ("It's 9090, not 8080.",),
    "The deadline is 5 May.": ("The deadline is now 9 June.",),
    "Our contact is Anna Keller.": ("Our contact is Omar Said now.",),
    "De poort is 8080.": ("De poort is nu 9090.",),
    "The rent is 900 euros.": ("I was wrong about the rent. It is 950 euros.",),
}
"""Plain corrections, as people put them."""


def pairs(table: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(old, new) for old, ways in table.items() for new in ways]


@pytest.mark.parametrize(("old", "new"), CORRECTED)
def test_a_correction_takes_the_place_of_what_it_corrects(old: str, new: str) -> None:
    facts = facts_of(old, new)
    assert superseded(facts) == {facts[0].id: facts[-1].id}


@pytest.mark.parametrize(("one", "other"), BESIDE)
def test_two_properties_of_a_subject_stand_beside_each_other(one: str, other: str) -> None:
    assert superseded(facts_of(one, other)) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("By the end of the game you know that you have all grown.", "Actually, in the end, I liked it even more."),
        ("Finding little ways to make smarter choices in my diet added up.", "Changed my diet, and walked regularly."),
        ("The cold doesn't usually make my hands hurt like this.", "It's not like we need the extra hands on deck."),
    ],
)
def test_a_remark_on_one_word_of_a_sentence_without_a_value_takes_nothing_back(old: str, new: str) -> None:
    assert superseded(facts_of(old, new)) == {}


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


def test_nobody_takes_back_what_another_named_speaker_said() -> None:
    old = facts_of("The api port is 8080.", name="Ann")
    new = facts_of("Correction: the api port is 8443, not 8080.", first=3, name="Mallory")
    assert superseded([*old, *new]) == {}


@pytest.mark.parametrize(("old", "new"), pairs(UNSETTLED))
def test_what_settles_nothing_takes_nobodys_place(old: str, new: str) -> None:
    first = facts_of(old)
    assert first
    assert superseded([*first, *facts_of(new, first=3)]).keys().isdisjoint(one.id for one in first)


@pytest.mark.parametrize(("old", "new"), pairs(SETTLED))
def test_a_plain_correction_is_understood_in_any_wording_and_language(old: str, new: str) -> None:
    first, later = facts_of(old), facts_of(new, first=3)
    gone = superseded([*first, *later])
    assert [gone.get(one.id) in {two.id for two in later} for one in first] == [True]


def test_a_pasted_letter_is_kept_beside_as_quoted_and_a_quotation_states_nothing() -> None:
    pasted = "Here is what the vendor wrote, please answer:\n\nDear Anna,\nThe budget is 5 euros.\nRegards, Bob"
    assert [(one.text, one.speaker) for one in facts_of(pasted)] == [("The budget is 5 euros.", "quoted")]
    for text in (
        'The vendor says: "the budget is 5 euros".',
        "> The budget is 5 euros.",
        "Suppose the budget is 7 euros.",
    ):
        assert facts_of(text) == []


TASK, DEAL = "Ann wants the ferry rota sent to Olga", "Ann decided on a budget of 900 euros for the ferry"


def ended(*stated: Fact) -> dict[str, str]:
    """Which texts end which."""
    texts = {one.id: one.text for one in stated}
    return {texts[old]: texts[new] for old, new in superseded(stated).items()}


def by_model(seq: int, text: str, *, instead_of: tuple[int, ...] = (), **more: Any) -> Fact:
    return replace(
        fact(seq, text, **{"kind": "statement", "weight": LASTING, **more}), by_model=True, instead_of=instead_of
    )


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("The ferry rota was sent to Olga", {}),
        ("The ferry rota went to Olga on Monday", {"by": "assistant"}),
    ],
)
def test_a_statement_ends_the_one_whose_number_it_names(text: str, more: dict[str, Any]) -> None:
    other = by_model(4, "Olga must not have nuts")
    assert ended(by_model(4, TASK), other, by_model(9, text, instead_of=(4,), **more)) == {TASK: text}


@pytest.mark.parametrize(
    ("old", "text", "more"),
    [
        (TASK, "The larch panels are out", {}),  # no word of it
        (TASK, "Suppose the ferry rota was sent to Olga", {}),
        (TASK, "Was the ferry rota sent to Olga?", {}),
        (TASK, "The ferry rota was sent to Olga", {"by": "tool"}),
        (TASK, "The ferry rota was sent to Olga", {"speaker": "quoted"}),
        (DEAL, "The budget for the ferry is 7 euros", {"by": "assistant"}),  # nobody settles it who has less to say
        (DEAL, "The budget for the ferry is 7 euros", {"speaker": "Mallory"}),
    ],
)
def test_what_a_statement_has_no_right_to_end_stays(old: str, text: str, more: dict[str, Any]) -> None:
    before = by_model(4, old, kind="decision" if old == DEAL else "statement")
    assert ended(before, by_model(9, text, instead_of=(4,), **more)) == {}


def test_a_number_that_names_two_as_near_names_none() -> None:
    two = by_model(4, "Anna takes the ferry rota"), by_model(4, "Bram keeps the ferry rota")
    assert ended(*two, by_model(9, "The ferry rota is done", instead_of=(4,))) == {}


def test_nothing_earlier_than_itself_is_ended_by_an_earlier_statement() -> None:
    assert ended(by_model(9, TASK), by_model(4, "The ferry rota reached her", instead_of=(9,))) == {}


def test_a_number_names_what_must_last_of_its_message_and_nothing_else() -> None:
    other = by_model(4, "The ferry rota was sent to Olga's office by mistake", weight=0.4)
    done = by_model(9, "The ferry rota was sent to Olga", instead_of=(4,))
    assert ended(by_model(4, TASK), other, done) == {TASK: done.text}


def test_a_models_sentence_that_says_what_it_stands_instead_of_ends_that_by_whatever_subject() -> None:
    old = by_model(663, "7,216 kr is wanted for the twins' passport.", kind="number", value="7,216 kr", subject="twin")
    new = "The twins' passport: 34 mg, instead of 7,216 kr."
    now = by_model(671, new, kind="number", value="34 mg", subject="twins' passport")
    other = by_model(664, "The choir's bus costs 7,216 kr.", kind="number", value="7,216 kr", subject="bus")
    assert ended(old, other, now) == {old.text: new}
    far = by_model(600, old.text, kind="number", value="7,216 kr", subject="twin")
    assert ended(far, now) == {}, "what is further away is named by its number"


@pytest.mark.parametrize(
    ("old", "new", "more", "takes_its_place"),
    [
        pytest.param("The wall is blue.", "The wall is blue.", {}, True, id="again"),
        pytest.param("The wall is blue.", "The garden's wall is blue.", {}, True, id="again, and more"),
        pytest.param("The garden's wall is blue.", "The wall is blue.", {}, False, id="less"),
        pytest.param("The wall is blue.", "The wall is blue.", {"weight": 0.4}, False, id="again, and weighs less"),
        pytest.param("The wall is blue.", "Suppose the wall is blue.", {}, False, id="again, in doubt"),
        pytest.param("Suppose the wall is blue.", "Suppose the wall is blue.", {}, True, id="the same doubt"),
    ],
)
def test_a_models_sentence_takes_the_place_of_one_that_it_says_all_of(
    old: str,
    new: str,
    more: dict[str, Any],
    takes_its_place: bool,  # noqa: FBT001 - drawn
) -> None:
    found = superseded([by_model(4, old, subject="wall"), later := by_model(9, new, subject="wall", **more)])
    assert set(found.values()) == ({later.id} if takes_its_place else set())


@pytest.mark.parametrize(
    ("new", "takes_its_place"),
    [
        pytest.param("The bus takes 34 mg, instead of 7,216 kr.", True, id="half of what it is about"),
        pytest.param("The passport: 34 mg, instead of 7,216 kr.", False, id="nothing but the value"),
        pytest.param("Suppose the bus takes 34 mg, instead of 7,216 kr.", False, id="in doubt"),
    ],
)
def test_a_value_that_a_model_says_is_replaced_is_that_of_what_its_sentence_is_about(
    new: str,
    takes_its_place: bool,  # noqa: FBT001 - drawn
) -> None:
    old = by_model(663, "The bus costs 7,216 kr.", kind="number", value="7,216 kr", subject="bus")
    now = by_model(665, new, kind="number", value="34 mg", subject="passport")
    assert ended(old, now) == ({old.text: new} if takes_its_place else {})


def test_a_quotation_takes_nobodys_place_whoever_quotes() -> None:
    old = replace(facts_of("The budget is 900 euros.", role="assistant")[0], by="assistant")
    new = facts_of("The budget is 700 euros now.", first=9)[0]
    assert ended(old, new) == {old.text: new.text}
    assert ended(old, replace(new, speaker="quoted")) == {}


def test_that_it_is_done_a_tool_may_tell_of_what_an_assistant_said() -> None:
    before = by_model(4, "The ferry rota is to be sent to Olga", by="assistant")
    tool = by_model(9, "The ferry rota was sent to Olga", by="tool", instead_of=(4,))
    assert ended(before, tool) == {before.text: tool.text}
    plan = replace(before, kind="decision")
    assert ended(plan, tool) == {plan.text: tool.text}, "also of what it decided to do"
    assert ended(replace(plan, by="user"), tool) == {}, "not of what a person did"


def test_what_is_not_so_of_one_number_ends_nothing_that_is_of_another() -> None:
    merged = by_model(118, "PR #89: merged into main", subject="pr 89")
    other = by_model(150, "PR #90: rebased on main, reviewed, pushed; not merged into main", subject="pr 90")
    assert superseded([merged, other]) == {}
    same = by_model(151, "PR #89: reverted by now, not merged into main", subject="pr 89")
    assert superseded([merged, same]) == {merged.id: same.id}


def test_the_other_values_of_a_thing_come_in_one_order_whatever_the_seed_of_hashes() -> None:
    towns = ("Aarhus", "Trieste", "Girona", "Turku", "Leiden", "Varna")
    found = facts_of(*(f"My favourite town is {town}." for town in towns))
    assert len(found) == len(towns)
    ids = [one.id for one in found]
    assert rivals(found) == {one: tuple(other for other in reversed(ids) if other != one) for one in ids}
