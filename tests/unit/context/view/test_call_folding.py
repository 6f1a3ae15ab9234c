"""Many calls beside each other, some of them shown: never more than the room, however they are counted and named."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_tiered_memory.context.view.call_folding import folded_calls
from tests.memory_builders import entries_of, open_memory, quick_settings


@pytest.mark.parametrize(
    "name", ["look", "\u8aad" * 60, "a_tool_with_a_name_of_its_own_" * 2], ids=["short", "ideographs", "long"]
)
@pytest.mark.parametrize("words", ["", "found qqq " * 20], ids=["bare", "long"])
def test_note_message_and_results_together_never_take_more_than_their_room(name: str, words: str) -> None:
    made = [{"name": f"{name}{at % 5}", "args": {"q": f"q{at}"}, "id": f"c{at}"} for at in range(200)]
    results = [ToolMessage(f"found q{at} {words}", tool_call_id=f"c{at}", name=f"{name}{at % 5}") for at in range(200)]
    with open_memory(settings=quick_settings(enabled=False)) as memory:
        session = memory.session("s")
        session.add_messages([AIMessage("I look.", tool_calls=made), *results])
        head, *answers = entries_of(session)
        counter = memory.core.runtime.counter
        shown = 0
        for room in range(60, 3000, 97):
            pieces = folded_calls(head, answers, room=room, counter=counter, expands=True)
            if pieces is not None:
                assert sum(piece.tokens for piece in pieces) <= room
                assert sum(counter.count_message(piece.message) for piece in pieces) <= room
                shown += 1
        assert shown > 20
