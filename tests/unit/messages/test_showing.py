"""Arguments of calls that are cut say so inside the string that is cut."""

import pytest
from langchain_core.messages import AIMessage

from langchain_tiered_memory.messages.showing import with_shorter_calls
from langchain_tiered_memory.models.message_counting import estimated_tokens

OLD = '\tconst logo = colour.bold.cyan("quay") +\n' * 6
NEW = '\tconst logo = theme.bold(theme.fg("accent", "quay")) +\n' * 6


@pytest.mark.parametrize(
    "pointer", ["", 'expand "412" for the whole', 'expand "a-long-id-of-one-message-of-a-run-0123456789" for the whole']
)
@pytest.mark.parametrize("excess", [20, 60, 120, 2000])
def test_each_argument_that_is_cut_says_so(pointer: str, excess: int) -> None:
    args = {"path": "src/tui.ts", "old": OLD, "edits": [{"new": NEW}]}
    message = AIMessage("", tool_calls=[{"name": "edit", "args": args, "id": "c"}])
    cut = with_shorter_calls(message, excess_tokens=excess, count=estimated_tokens, pointer=pointer)
    assert isinstance(cut, AIMessage)
    (call,) = cut.tool_calls
    shown = call["args"]
    assert shown["path"] == "src/tui.ts"
    strings = [(OLD, shown["old"]), (NEW, shown["edits"][0]["new"])]
    assert any(whole != part for whole, part in strings)
    for whole, part in strings:
        assert part == whole or "\u2026" in part or "tokens left out" in part
