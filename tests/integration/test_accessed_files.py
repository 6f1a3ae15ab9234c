"""The files that an agent touched lately: by a verb of the session, and in the list of a view."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.testing import FrozenClock
from langchain_tiered_memory.types import Scope
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, open_memory


def used(tool: str, number: int, result: str = "ok", **args: Any) -> list[Any]:
    call = {"name": tool, "args": args, "id": f"c{number}"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=f"c{number}", name=tool)]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_session_tells_which_files_were_touched_lately(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        assert told(call_style, session.accessed_files) == []
        told(call_style, session.add_messages, [HumanMessage("Fix a.py.")])
        told(call_style, session.add_messages, used("edit_file", 1, file_path="/srv/p/src/a.py"))
        told(call_style, session.add_messages, used("read_file", 2, file_path="/srv/p/src/b.py"))
        told(call_style, session.add_messages, [HumanMessage("And c.py.")])
        told(call_style, session.add_messages, used("grep", 3, path="c.py"))
        told(call_style, session.add_messages, used("read_file", 4, file_path="src/a.py"))
        told(call_style, session.add_messages, used("grep", 6, path="/srv/p/src/a.py"))
        told(call_style, memory.session("s", track="other").add_messages, used("read_file", 5, file_path="d.py"))
        found = told(call_style, session.accessed_files)
        assert [(one.path, one.tool, one.operation, one.turn) for one in found] == [
            ("/srv/p/src/a.py", "edit_file", "write", 2),
            ("c.py", "grep", "search", 2),
            ("/srv/p/src/b.py", "read_file", "read", 1),
        ]
        assert found[0].time == dt.datetime.fromtimestamp(NOW, tz=dt.UTC)
        assert told(call_style, session.accessed_files, limit=1) == found[:1]
        alone = memory.session("s", track="other", scope=Scope())
        assert [one.path for one in told(call_style, alone.accessed_files)] == ["d.py"]
        for wrong in (0, -1, True, "5", None):
            with pytest.raises(InvalidInputError, match="limit"):
                told(call_style, session.accessed_files, limit=wrong)


def test_a_changed_file_is_listed_though_the_recent_messages_name_it() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Fix the crane.", id="goal")])
        for number in range(40):
            path = f"src/part_{number % 6}.py"
            tool = "edit_file" if number % 6 == 3 else "read_file"
            session.add_messages(used(tool, number, "a line of it\n" * 30, file_path=path))
        session.flush()
        context = session.context("", max_tokens=2500)
        section = context.section("files")
        assert section is not None
        lines = section.text.splitlines()
        at_work = lines.index("changed:")
        assert lines[at_work + 1] == "src/part_3.py (via edit_file, turn 1)"
        shown = "\n".join(str(getattr(one, "tool_calls", "")) for one in context.messages)
        assert "src/part_3.py" in shown, "it stands in the recent messages, too"
