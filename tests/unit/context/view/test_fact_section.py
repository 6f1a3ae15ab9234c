"""A former value that a summary still states is corrected in the list of facts beside it."""

from __future__ import annotations

from dataclasses import replace

from langchain_tiered_memory.context.view.fact_section import corrections_of
from tests.fact_builders import facts_of

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
