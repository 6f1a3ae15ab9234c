"""Parts of files in a view: word for word, within the budget, alike between condensations, gone when forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.summaries.rendering import PARTS_NOTE
from langchain_tiered_memory.testing import FrozenClock
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory import Context

pytestmark = pytest.mark.slow

_BUDGET = 4000
_WRITTEN = "def lower(crane):\n    return crane.hook - 17"


def _work(number: int) -> list[BaseMessage]:
    """One step of a run: the agent writes into one file of a dozen, or reads another."""
    path = f"harbour/part_{number % 12}.py"
    if number % 3 == 0:
        new = _WRITTEN if number == 3 else f"def step_{number}():\n    return {number}"
        arguments = {"file_path": path, "old_string": f"old {number}", "new_string": new}
        result, name = "done", "Edit"
    else:
        arguments, name = {"file_path": path}, "Read"
        result = "\n".join(f"line {line} of {path} at step {number}" for line in range(30))
    call = {"name": name, "args": arguments, "id": f"c{number}"}
    return [
        AIMessage("", tool_calls=[call], id=f"a{number}"),
        ToolMessage(result, tool_call_id=f"c{number}", id=f"r{number}"),
    ]


def _text(context: Context) -> str:
    return "\n".join(str(message.text) for message in context.messages)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_parts_of_files_are_quoted_within_the_budget_and_go_with_their_message(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Mend the harbour's cranes.", id="goal")])
        seen, before = 0, ""
        for number in range(1, 60):
            told(call_style, session.add_messages, _work(number))
            told(call_style, session.flush)
            context = told(call_style, session.context, "", max_tokens=_BUDGET)
            assert context.tokens <= _BUDGET
            assert not check_valid(context.messages)
            quoted = next((str(one.text) for one in context.messages if PARTS_NOTE in str(one.text)), "")
            assert (context.section("parts") is not None) == bool(quoted)
            if before and not context.guard.steps:
                assert quoted == before, "parts change only with a condensation"
            seen, before = seen + bool(quoted), quoted
        assert seen > 10
        shown = told(call_style, session.context, "", max_tokens=_BUDGET)
        assert "part_3.py" in _text(shown)
        told(call_style, session.forget, message_ids=["a3", "r3"])
        assert "crane.hook - 17" not in _text(told(call_style, session.context, "", max_tokens=_BUDGET))


@pytest.mark.parametrize(
    ("command", "is_doubtful"),
    [
        ("git pull", True),
        ("git status", False),
        ("grep -rl crane harbour | xargs sed -i s/crane/hoist/", True),
        ("python - <<'E'\nfrom pathlib import Path\nPath('harbour/part_3.py').write_text('')\nE", True),
    ],
)
def test_lines_known_before_a_command_put_files_into_another_state_say_so(command: str, *, is_doubtful: bool) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Mend the harbour's cranes.", id="goal")])
        for number in range(1, 60):
            session.add_messages(_work(number))
            if number == 20:
                call = {"name": "bash", "args": {"command": command}, "id": "g"}
                done = ToolMessage("Already done.", tool_call_id="g", id="done")
                session.add_messages([AIMessage("", tool_calls=[call], id="git"), done])
                [git] = [entry.seq for entry in session.entries() if entry.id == "git"]
            session.flush()
        told_of = f"may be others since a command in message {git}"
        shown = _text(session.context("", max_tokens=2 * _BUDGET))
        assert PARTS_NOTE in shown
        assert (told_of in shown) is is_doubtful


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_one_call_on_a_file_is_enough_until_the_talk_has_gone_elsewhere(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Mend the harbour's cranes.", id="goal"), *_work(3)])
        shown: list[bool] = []
        for number in range(45):
            says = f"{number}: " + "the crane at the quay waits for its rope, and the yard for its wood. " * 14
            turn = [HumanMessage(says, id=f"q{number}"), AIMessage(f"Noted, {number}.", id=f"n{number}")]
            told(call_style, session.add_messages, turn)
            told(call_style, session.flush)
            context = told(call_style, session.context, "", max_tokens=_BUDGET)
            assert context.tokens <= _BUDGET
            if "condensed" in context.guard.steps:
                shown.append(context.section("parts") is not None and "crane.hook - 17" in _text(context))
        assert shown[0]
        assert not shown[-1]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_a_mask_leaves_free_is_filled_with_parts(call_style: CallStyle) -> None:
    call = {"name": "Bash", "args": {"command": "make"}, "id": "build"}
    built = "\n".join(f"built {line} of the yard" for line in range(450))
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Mend the harbour's cranes.", id="goal")])
        masked = 0
        for number in range(1, 13):
            told(call_style, session.add_messages, _work(number))
            if number == 10:
                asks = AIMessage("", tool_calls=[call], id="asks")
                told(call_style, session.add_messages, [asks, ToolMessage(built, tool_call_id="build", id="built")])
            told(call_style, session.flush)
            context = told(call_style, session.context, "", max_tokens=_BUDGET)
            assert context.tokens <= _BUDGET
            if context.guard.steps == ("masked",):
                masked += 1
                assert context.section("parts") is not None
        assert masked


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_call_that_nothing_answered_does_not_take_the_view(call_style: CallStyle) -> None:
    call = {"name": "Write", "args": {"file_path": "big.py", "content": "a crane of the harbour\n" * 300}, "id": "lost"}
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        first = [HumanMessage("Mend the cranes.", id="goal"), AIMessage("", tool_calls=[call], id="broken")]
        told(call_style, session.add_messages, first)
        told(call_style, session.add_messages, [HumanMessage("Go on with the others.", id="on")])
        for number in range(1, 40):
            told(call_style, session.add_messages, _work(number))
            told(call_style, session.flush)
            context = told(call_style, session.context, "", max_tokens=_BUDGET)
            assert not check_valid(context.messages)
        assert _text(context).count("a crane of the harbour") == 0
        held = [one for one in context.messages if "big.py" in str(getattr(one, "tool_calls", ""))]
        assert not held, "the user has spoken since: it is history"


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_was_read_last_leaves_room_for_what_the_agent_wrote(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Mend the harbour's cranes.", id="goal")])
        for number in range(1, 8):
            told(call_style, session.add_messages, _work(number))
        condensed = 0
        for number in range(20, 32):
            path = f"yard/part_{number}.py"
            read = "\n".join(f"line {line} of {path}, as it was read" for line in range(90))
            call = {"name": "Read", "args": {"file_path": path}, "id": f"c{number}"}
            asks = AIMessage("", tool_calls=[call], id=f"a{number}")
            told(call_style, session.add_messages, [asks, ToolMessage(read, tool_call_id=f"c{number}")])
            told(call_style, session.flush)
            context = told(call_style, session.context, "", max_tokens=_BUDGET)
            assert context.tokens <= _BUDGET
            assert not check_valid(context.messages)
            assert f"line 89 of {path}" in _text(context), "what is news is shown whole"
            if context.guard.steps:
                condensed += 1
                assert context.section("parts") is not None
        assert condensed > 1


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_giant_result_leaves_parts_and_record_what_it_cannot_be_whole_for(call_style: CallStyle) -> None:
    call = {"name": "Bash", "args": {"command": "make"}, "id": "build"}
    built = "\n".join(f"built {line} of the yard" for line in range(2000))
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Mend the harbour's cranes.", id="goal")])
        for number in range(1, 40):
            told(call_style, session.add_messages, _work(number))
        told(call_style, session.flush)
        before = {one.name: one.tokens for one in told(call_style, session.context, "", max_tokens=_BUDGET).sections}
        asks = AIMessage("", tool_calls=[call], id="asks")
        told(call_style, session.add_messages, [asks, ToolMessage(built, tool_call_id="build", id="built")])
        context = told(call_style, session.context, "", max_tokens=_BUDGET)
        now = {one.name: one.tokens for one in context.sections}
        assert context.tokens <= _BUDGET
        assert not check_valid(context.messages)
        assert "shortened" in context.guard.steps
        assert now["recent"] > _BUDGET // 2
        assert now["parts"] > 100
        record = [one["history"] + one.get("facts", 0) for one in (now, before)]
        assert record[0] > 0.8 * record[1]
