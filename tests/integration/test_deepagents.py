"""The middleware in `create_deep_agent`, which puts middlewares of its own on both sides of it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import look_up, open_memory, said
from tests.call_styles import CALL_STYLES, CallStyle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed: pip install deepagents")
files = pytest.importorskip("deepagents.backends.utils", reason="this deepagents keeps its files elsewhere")

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("call_style", CALL_STYLES)]

LONG = "The bolts of this order came late, and the register has to say so. " * 14
WINDOW = 16_000


class Windowed(ScriptedModel):
    """Takes tools, counts them, and refuses what is over its window."""

    profile: Any = None
    sizes: list[int] = Field(default_factory=list)
    """Tokens of its requests."""

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.bind(tools=list(tools), **options)

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> Any:
        counter = EstimatingCounter()
        tokens = sum(counter.count_message(one) for one in messages) + counter.count_tools(options.get("tools") or ())
        self.sizes.append(tokens)
        if tokens > WINDOW - 1000:
            msg = f"This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {tokens}"
            raise ValueError(msg)
        return super()._reply(messages, options)


def windowed(answers: Any, window: int = WINDOW) -> Windowed:
    return Windowed(
        answers=answers, profile={"max_input_tokens": window, "max_output_tokens": 1000, "tool_calling": True}
    )


def calling(name: str, number: int, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"c{number}", "type": "tool_call"}])


def test_what_its_memory_files_take_is_set_aside(call_style: CallStyle) -> None:
    model = windowed(lambda _: f"Noted. {LONG}")
    held = {"/AGENTS.md": files.create_file_data("RULE: keep the register in order.\n" * 500)}
    with open_memory() as memory:
        agent = deepagents.create_deep_agent(
            model=model,
            tools=[],
            memory=["/AGENTS.md"],
            middleware=[TieredMemoryMiddleware(memory)],
            checkpointer=InMemorySaver(),
        )
        for turn in range(25):
            said(call_style, agent, {"messages": [("user", f"Order {turn}: {LONG}")], "files": held})
        assert WINDOW / 2 < max(model.sizes) <= WINDOW - 1000
        assert "keep the register in order" in str(model.prompts[-1][0].content)


@pytest.mark.parametrize("name", ["TieredMemoryMiddleware", "SummarizationMiddleware"])
def test_one_of_the_name_of_its_summarisation_takes_its_place(call_style: CallStyle, name: str) -> None:
    numbers = iter(range(1, 1000))

    def reply(messages: Sequence[BaseMessage]) -> str | AIMessage:
        if len(messages) == 1 and "summar" in str(messages[0].content).lower():
            return "DEEPSUMMARY"
        number = next(numbers)
        return calling("look_up", number, order=number) if number % 6 else "Done."

    model = windowed(reply, window=14_000)
    with open_memory() as memory, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        agent = deepagents.create_deep_agent(
            model=model,
            tools=[look_up],
            middleware=[TieredMemoryMiddleware(memory, name=name)],
            checkpointer=InMemorySaver(),
        )
        for turn in range(10):
            said(call_style, agent, f"Task {turn}: {LONG}")
        summarised = sum(any("DEEPSUMMARY" in str(one.content) for one in prompt) for prompt in model.prompts)
        told = sum("SummarizationMiddleware" in str(one.message) for one in caught)
        assert (summarised > 0, told) == ((False, 0) if name == "SummarizationMiddleware" else (True, 1))


def test_its_general_purpose_sub_agent_has_the_one_of_that_name_too(call_style: CallStyle) -> None:
    def reply(messages: Sequence[BaseMessage]) -> str | AIMessage:
        if messages[-1].type == "tool":
            return "Done."
        if "Look for it" in str(messages[-1].content):
            return "It is in the shed."
        return calling("task", 1, description="Look for it.", subagent_type="general-purpose")

    with open_memory() as memory:
        agent = deepagents.create_deep_agent(
            model=windowed(reply),
            tools=[],
            middleware=[TieredMemoryMiddleware(memory, name="SummarizationMiddleware")],
            checkpointer=InMemorySaver(),
        )
        said(call_style, agent, "Where is it?")
        assert memory.session("alice").search("the shed")
        mine = [str(one.text) for one in memory.session("alice").messages()]
        assert (mine[0], mine[-1]) == ("Where is it?", "Done.")
        assert "Look for it." not in mine


def test_a_sub_agents_track_has_its_name(call_style: CallStyle) -> None:
    subs = [
        {"name": name, "description": name, "system_prompt": f"You are the {name}."} for name in ("researcher", "main")
    ]

    def reply(messages: Sequence[BaseMessage]) -> str | AIMessage:
        if messages[-1].type == "tool":
            return "Done."
        if "Look for it" in str(messages[-1].content):
            return "It is in the shed."
        tasks = [("researcher", "Look for it in the barn."), ("main", "Look for it in the yard.")]
        return AIMessage(
            "",
            tool_calls=[
                {"name": "task", "args": {"description": what, "subagent_type": who}, "id": f"c{number}"}
                for number, (who, what) in enumerate(tasks)
            ],
        )

    with open_memory() as memory:
        for one in subs:
            one["middleware"] = [TieredMemoryMiddleware(memory)]
        agent = deepagents.create_deep_agent(
            model=windowed(reply),
            tools=[],
            subagents=subs,
            middleware=[TieredMemoryMiddleware(memory)],
            checkpointer=InMemorySaver(),
            name="boss",
        )
        said(call_style, agent, "Where is it?")
        said(call_style, agent, "And now?")
        assert sorted(memory.session("alice").tracks()) == ["main", "researcher", "tools"]
        there = [str(one.text) for one in memory.session("alice", track="researcher").messages()]
        assert there == ["Look for it in the barn.", "It is in the shed."] * 2
        assert [str(one.text) for one in memory.session("alice").messages()].count("Done.") == 2


def test_what_its_file_tools_did_is_what_is_listed(call_style: CallStyle) -> None:
    steps = [
        calling("write_file", 1, file_path="/crane.py", content="def lift(load):\n    return load\n"),
        calling("write_file", 2, file_path="/the plan.md", content="The crane lifts what the hook holds."),
        calling("read_file", 3, file_path="/crane.py"),
        calling("edit_file", 4, file_path="/crane.py", old_string="return load", new_string="return load * 2"),
        calling("read_file", 5, file_path="/winch.py"),
        calling("delete", 6, file_path="/the plan.md"),
    ]

    def reply(messages: Sequence[BaseMessage]) -> str | AIMessage:
        made = sum(one.type == "tool" for one in messages)
        return steps[made] if made < len(steps) else "Done."

    with open_memory() as memory:
        agent = deepagents.create_deep_agent(
            model=windowed(reply), tools=[], middleware=[TieredMemoryMiddleware(memory)], checkpointer=InMemorySaver()
        )
        said(call_style, agent, "Mend the crane.")
        session = memory.session("alice")
        assert "Deleted /the plan.md" in str(session.messages()[-2].content)
        touched = [(one.path, one.operation) for one in session.accessed_files()]
        assert touched == [("/crane.py", "write")]
