import pytest

from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.facts.selection import chosen_facts
from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.summaries.facts.written import facts_written, has_statements, stated_in
from langchain_tiered_memory.summaries.marks import ends, instead_of, without_instead
from langchain_tiered_memory.types.records import Entry
from tests.fact_builders import entry, words

ANN, BOT, TOOL = 1, 2, 3
TALK = (
    entry(ANN, "Our budget for the ferry is 640 euros, and my sister Mia cannot bear nuts.", name="Ann"),
    entry(BOT, "Then the larch panels are out. I will ask the harbour office on Monday.", role="assistant"),
    entry(TOOL, "harbour office: closed on Mondays", role="tool"),
)


def of(text: str, entries: tuple[Entry, ...] = TALK) -> list[tuple[str, int, str, bool]]:
    return [(one.text, one.seq, one.by, one.weight >= LASTING) for one in facts_written(text, entries)]


def test_each_bullet_is_a_fact_of_the_message_that_it_comes_from() -> None:
    text = "- [keep] The budget for the ferry is 640 euros.\n- The larch panels are out."
    assert of(text) == [
        ("The budget for the ferry is 640 euros.", ANN, "user", True),
        ("The larch panels are out.", BOT, "assistant", False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- [tool] The harbour office is closed on Mondays.",
        "Still open: call search(harbour)",
        "Not answered: call search(harbour)",
        "## Key points",
        "## Overview\nThey talked about the ferry and the budget.",
        "- The ferry costs 900 euros [not in the source: 900].",
        "```\nbudget = 640\n```",
        "- [keep]",
    ],
)
def test_what_a_tool_said_or_no_source_has_is_no_fact(text: str) -> None:
    assert of(text) == []


def test_what_only_tools_said_states_nothing() -> None:
    assert of("- The harbour office is closed.", TALK[2:]) == []


def test_what_is_rather_a_tools_word_is_nobodys_fact() -> None:
    tool = entry(TOOL, "Limit 9000 applies to berth 17 of pier north", role="tool")
    assert of("- [keep] Limit 9000 applies to berth 17 for Ann", (*TALK, tool)) == []


def test_a_name_that_was_said_elsewhere_takes_nothing_away() -> None:
    text = "- [keep] Mia cannot bear nuts, nor can Leo [not in the source: Leo]."
    assert [one for one, *_ in of(text)] == ["Mia cannot bear nuts, nor can Leo."]


def test_a_note_with_a_figure_that_nothing_explains_is_listed_and_says_so() -> None:
    text = "- [keep] Ann's grandmother: ninety on 14 June [not in the source: 14]"
    assert [one for one, *_ in of(text)] == ["Ann's grandmother: ninety on 14 June [not in the source: 14]"]


def test_a_bullet_below_another_is_read_with_it() -> None:
    text = "- [keep] Ann's sister:\n  - [keep] Mia cannot bear nuts"
    assert [one for one, *_ in of(text)] == ["Ann's sister: Mia cannot bear nuts"]


def test_a_section_tells_the_kind_of_its_statements() -> None:
    text = "## Decisions\n- The larch panels are out\n\n## Unresolved\n- Whether the harbour office opens on Monday"
    assert [one.kind for one in facts_written(text, TALK)] == ["decision", "question"]


def test_what_shares_no_word_with_any_message_rests_on_all_of_them() -> None:
    (fact,) = facts_written("- [keep] Le prix convenu reste secret", TALK[:2])
    assert (fact.sources, fact.by) == ((ANN, BOT), "assistant"), "on nobody's authority but the least"


def test_the_same_text_gives_the_same_facts() -> None:
    text = "- [keep] The budget for the ferry is 640 euros.\n- [keep] Mia cannot bear nuts."
    assert facts_written(text, TALK) == facts_written(text, TALK)


def test_what_must_last_comes_first_and_has_room_of_its_own() -> None:
    text = (
        "- [keep] The budget for the ferry is 640 euros.\n- [keep] Mia cannot bear nuts.\n- The larch panels are out."
    )
    facts = facts_written(text, TALK)

    assert chosen_facts(facts, room=0, count_text=words) == []
    lasting = chosen_facts(facts, room=0, lasting_room=40, count_text=words)
    assert {one.text for one in lasting} == {one.text for one in facts[:2]}


def test_prose_is_not_taken_apart() -> None:
    assert has_statements("They talked.\n- [keep] Mia cannot bear nuts")
    assert not has_statements("They talked about the ferry. Mia cannot bear nuts.")


def test_a_statement_says_whose_place_it_takes() -> None:
    text = "- [instead of 7, 12] [keep] The budget for the ferry is 640 euros.\n- [instead of 9] The office was asked."
    budget, office = facts_written(text, TALK)
    assert (budget.instead_of, budget.text) == ((7, 12), "The budget for the ferry is 640 euros.")
    assert (office.instead_of, office.weight >= LASTING) == ((9,), False)


def test_a_find_that_must_last_is_the_tools_and_says_so() -> None:
    (found,) = facts_written("- [instead of 1] [keep] [tool] The harbour office is closed on Mondays.", TALK)
    assert (found.by, found.seq, found.weight >= LASTING) == ("tool", TOOL, True)
    assert line_of(found) == "[tool] The harbour office is closed on Mondays"
    assert facts_written("- [keep] [tool] Zebras graze.", TALK) == ()


def test_a_tools_find_finishes_what_it_names() -> None:
    (found,) = facts_written("- [instead of 2] [tool] The harbour office is done with it.", TALK)
    assert (found.by, found.instead_of, found.weight >= LASTING) == ("tool", (2,), False)


def test_what_names_one_code_of_several_does_not_state_a_note() -> None:
    talk = (entry(BOT, "Stack: #89 (`ann/logs`), then #90 (`ann/chunks`) in this order.", role="assistant"),)
    note = facts_written("- [keep] Stack of Ann, in this order: #89 (`ann/logs`), #90 (`ann/chunks`)", talk)
    assert stated_in("Ann merges #89 and #90 in this order.", note) == [False]
    assert stated_in("The order of Ann's stack: `ann/logs` is #89, `ann/chunks` is #90, in this order.", note) == [True]


def test_a_number_that_nobody_was_shown_takes_no_other_with_it() -> None:
    named = "- [instead of 7 12] [keep] Budget: 640 euros"
    ids = [f"{place:x}" * 16 for place in range(1, 13)]
    assert without_instead(named, ids[:7]) == "- [instead of #77777777] [keep] Budget: 640 euros"
    assert without_instead("- [instead of 7] Done.", ids[:6]) == "- Done."


def test_a_number_may_be_written_as_ids_are() -> None:
    ids = [f"{place:x}" * 16 for place in range(1, 8)]
    stored = without_instead("- [instead of #7] [keep] Budget: 640 euros", ids)
    assert stored == "- [instead of #77777777] [keep] Budget: 640 euros"
    assert (instead_of(stored), ends(stored)) == ((), ("77777777",))


def test_a_place_that_the_line_does_not_mean_goes() -> None:
    told = "- [instead of 1 2] [keep] Budget: 640 euros\n- [instead of 2] Tea is drunk."
    heard: list[str] = []

    def meant(said: str) -> set[int]:
        heard.append(said)
        return {0}

    assert without_instead(told, ["a" * 16, "b" * 16], meant=meant) == (
        "- [instead of #aaaaaaaa] [keep] Budget: 640 euros\n- Tea is drunk."
    )
    assert heard == ["Budget: 640 euros", "Tea is drunk."]
