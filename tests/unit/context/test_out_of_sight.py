"""What of the messages found is out of sight in a view: before its recent part, masked, left out, or elsewhere."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.context.recall_budget import _hidden_by
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.recall.finding import find
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, open_memory, ref_of


def test_what_is_before_the_recent_part_masked_left_out_or_on_another_track_is_out_of_sight() -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage(f"The vault has code {number}.") for number in range(1, 6)])
        memory.session("s", track="sub").add_messages([HumanMessage("The vault has code 6.")])
        session.add_messages([HumanMessage("Which code has the vault?"), AIMessage("The vault has code 8.")])
        runtime, ref = session.core.runtime, ref_of(session)
        found = find(runtime, ref, "Which code has the vault?")
        seqs = sorted(found.entries)
        assert seqs == [1, 2, 3, 4, 5, 6, 7, 8]
        last = found.entries[7]
        plan = ViewPlan(border=0, tail_from=3, masked=((4, 60),), left=(found.entries[5].group,))
        assert [seq for seq in seqs if _hidden_by(plan, found, last)(seq)] == [1, 2, 4, 5, 6]
        behind = ViewPlan(border=0, tail_from=9)  # the recent part never begins behind what the user said last
        assert [seq for seq in seqs if _hidden_by(behind, found, last)(seq)] == [1, 2, 3, 4, 5, 6]
