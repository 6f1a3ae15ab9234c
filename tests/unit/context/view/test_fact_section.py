"""The list of facts beside summaries: what these state is not told again, and a former value stands corrected."""

from __future__ import annotations

from dataclasses import replace

from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.context.view.fact_section import corrections_of
from tests.fact_builders import facts_of
from tests.memory_builders import open_memory, quick_settings

SAID = (
    "The port of the gateway is 8080.",
    "The port of the gateway is 8443 now, not 8080.",
    "Correction: the port of the gateway is 9000, not 8443.",
)


def test_a_chain_of_corrections_leads_to_what_holds() -> None:
    first, second, third = facts_of(*SAID)
    corrected = [
        replace(first, status="superseded", superseded_by=second.id),
        replace(second, status="superseded", superseded_by=third.id),
    ]
    assert corrections_of(corrected, f"## Overview\n- user: {SAID[0]}") == {third.id}
    assert corrections_of(corrected, "## Overview\n- They spoke of the weather.") == frozenset()
    assert corrections_of([], SAID[0]) == frozenset()


def test_rows_that_supersede_each_other_in_a_circle_end() -> None:
    first, second, _ = facts_of(*SAID)
    corrected = [
        replace(first, status="superseded", superseded_by=second.id),
        replace(second, status="superseded", superseded_by=first.id),
    ]
    assert corrections_of(corrected, SAID[0]) <= {first.id, second.id}


def test_what_the_line_of_a_summary_says_is_not_listed_again() -> None:
    towns = ("Ghent", "Bruges", "Namur", "Dinant", "Leuven", "Tournai", "Mons", "Aalst", "Ypres", "Durbuy")
    with open_memory(settings=quick_settings()) as memory:
        session = memory.session("s")
        for number in range(60):
            town, rent = towns[number % 10], 400 + 7 * number
            said = HumanMessage(f"My cousin Maria{number} moved to {town} and pays {rent} euros of rent there.")
            session.add_messages([said, AIMessage("That sounds good.")])
            if number % 5 == 4:
                session.context("", max_tokens=1000)
        context = session.context("", max_tokens=1000)
    history, facts = context.section("history"), context.section("facts")
    assert history is not None
    assert facts is not None
    listed = [line for line in facts.text.splitlines() if line.startswith("My cousin")]
    assert listed
    assert not [line for line in listed if line in history.text]
