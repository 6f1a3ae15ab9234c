"""What is said once is not crowded out of a view by what is said in every turn, alike but for a number."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import TieredMemory

ONCE = ("The budget of the ferry is 4300 euros.", "Our contact is Imke Hallberg.")


@pytest.mark.slow
def test_what_is_said_once_is_shown_beside_hundreds_of_alike_statements_which_stay_findable() -> None:
    with TieredMemory.open(None, embeddings=None) as memory:
        session = memory.session("s")
        for turn in range(220):
            said = ONCE[turn] if turn < len(ONCE) else f"The port of module_{turn}.py is {8000 + turn}."
            session.add_messages([HumanMessage(said), AIMessage(f"Done with step {turn}.")])
        memory.flush()
        shown = "\n".join(part.text or "" for part in session.context(None, max_tokens=1500).sections)
        assert "4300 euros" in shown
        assert "Imke Hallberg" in shown
        assert all(
            f"is {8000 + turn}" in session.facts(f"port of module_{turn}.py", k=1)[0].text for turn in (3, 77, 210)
        )
