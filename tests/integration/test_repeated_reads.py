"""What an agent's own file tools show again: once in a request, whole in the transcript; sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.settings import FileSettings, Settings, TreeSettings
from tests.agent_builders import ToolModel, built, open_memory, said
from tests.call_styles import CALL_STYLES, CallStyle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

FILE = "\n".join(f"{line:6d}\tvalue_{line} = {line * 7}" for line in range(1, 81))
OTHER = FILE.replace("value", "figure")
POINTER = "has the same text as message"


def calls(*asked: tuple[str, dict[str, Any]], number: int) -> AIMessage:
    made = [{"name": name, "args": args, "id": f"c{number}-{place}"} for place, (name, args) in enumerate(asked)]
    return AIMessage("", tool_calls=made)


def results(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages if message.type == "tool"]


@pytest.fixture(params=CALL_STYLES)
def call_style(request: pytest.FixtureRequest) -> CallStyle:
    return request.param


class Disk:
    """Two files, and the tools of an agent that works on them."""

    def __init__(self) -> None:
        self.files = {"/srv/a.py": FILE, "/srv/b.py": OTHER}
        self.fails = False

    @property
    def tools(self) -> list[Any]:
        @tool
        def read_file(file_path: str, offset: int = 0, limit: int = 2000) -> str:
            """Read a file."""
            path = file_path if file_path.startswith("/") else f"/srv/{file_path}"
            return "\n".join(self.files[path].split("\n")[offset : offset + limit])

        @tool
        def bash(command: str) -> str:
            """Run a command."""
            return self.files[command.rsplit(maxsplit=1)[-1]]

        @tool
        def edit_file(file_path: str, old_string: str, new_string: str) -> str:
            """Change a file."""
            self.files[file_path] = self.files[file_path].replace(old_string, new_string)
            return "Done."

        @tool
        def fetch_page(url: str) -> str:
            """Read a page; no file."""
            return f"{url} says:\n{FILE}"

        return [read_file, bash, edit_file, fetch_page]


READ_A = ("read_file", {"file_path": "/srv/a.py"})
SHORT_A = ("read_file", {"file_path": "a.py"})
CAT_A = ("bash", {"command": "cat /srv/a.py"})
READ_B = ("read_file", {"file_path": "/srv/b.py"})
EDIT_A = ("edit_file", {"file_path": "/srv/a.py", "old_string": "value_80 = 560", "new_string": "value_80 = 561"})
PART_A = ("read_file", {"file_path": "/srv/a.py", "offset": 10, "limit": 30})
PAGE = ("fetch_page", {"url": "https://example.org"})


@pytest.mark.parametrize(
    ("asked", "pointers"),
    [
        ([READ_A, READ_B, READ_A, READ_B, READ_A], [2, 3, 4]),
        ([READ_A, CAT_A, SHORT_A], [1, 2]),
        ([READ_A, EDIT_A, READ_A, READ_A], [3]),
        ([READ_A, PART_A, PART_A, READ_A], [2, 3]),
        ([READ_A, ("bash", {"command": "touch /srv/b.py && cat /srv/a.py"})], []),
        ([PAGE, PAGE], []),
        ([READ_A, ("bash", {"command": "python run.py; cat /srv/a.py"})], []),
    ],
)
def test_a_request_shows_a_file_once_and_the_transcript_has_it_each_time(
    call_style: CallStyle, asked: list[tuple[str, dict[str, Any]]], pointers: list[int]
) -> None:
    model = ToolModel(answers=[*(calls(one, number=at) for at, one in enumerate(asked)), AIMessage("Done.")])
    with open_memory() as memory:
        agent = built(memory, model, tools=Disk().tools, max_tokens=32_000)
        state = said(call_style, agent, "Work on a.py.")
        shown, kept = results(model.prompts[-1]), results(state["messages"])
        assert [at for at, text in enumerate(shown) if POINTER in text] == pointers
        assert [text for at, text in enumerate(shown) if at not in pointers] == [
            text for at, text in enumerate(kept) if at not in pointers
        ]
        assert kept == results(memory.session("alice").messages())
        assert not any(POINTER in text for text in kept)
        for prompt in model.prompts:
            texts = results(prompt)
            for at, text in enumerate(texts):
                assert POINTER not in text or kept[at] in texts[:at]


def test_files_that_were_read_in_one_message_and_settings_of_ones_own(call_style: CallStyle) -> None:
    page = ("fetch_page", {"url": "docs/page"})
    asked = [calls(READ_A, READ_B, CAT_A, number=0), calls(page, number=1), calls(page, number=2), AIMessage("Done.")]
    chosen = FileSettings(tools={"fetch_page": "read", "read_file": "read"}, path_keys=("url", "file_path"))
    settings = Settings(tree=TreeSettings(background=False), files=chosen)
    model = ToolModel(answers=asked)
    with open_memory(settings=settings) as memory:
        said(call_style, built(memory, model, tools=Disk().tools, max_tokens=32_000), "Work on a.py.")
    assert [POINTER in text for text in results(model.prompts[-1])] == [False, False, True, False, True]


def test_what_a_middleware_clears_is_pointed_to_by_nothing(call_style: CallStyle) -> None:
    asked = [READ_A, READ_B, READ_A, READ_B]
    model = ToolModel(answers=[*(calls(one, number=at) for at, one in enumerate(asked)), AIMessage("Done.")])
    clearing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=500, keep=2, placeholder="[cleared]")])
    with open_memory() as memory:
        said(call_style, built(memory, model, tools=Disk().tools, before=[clearing], max_tokens=32_000), "Work.")
    shown = results(model.prompts[-1])
    assert shown == ["[cleared]", "[cleared]", FILE, OTHER]


def test_where_the_first_reading_left_the_view_a_later_one_stands_whole(call_style: CallStyle) -> None:
    asked = [READ_A, READ_B, *[PAGE] * 3, READ_A, READ_B, READ_A] * 3
    replies = [calls(one, number=at) for at, one in enumerate(asked)]
    model = ToolModel(answers=[*replies, AIMessage("Done.")])
    with open_memory() as memory:
        agent = built(memory, model, tools=Disk().tools, max_tokens=6000)
        state = said(
            call_style, agent, "Work on both.", {"configurable": {"thread_id": "alice"}, "recursion_limit": 99}
        )
    kept = {message.tool_call_id: message.text for message in state["messages"] if message.type == "tool"}
    pointed = 0
    for prompt in model.prompts:
        for at, message in enumerate(prompt):
            if message.type == "tool" and POINTER in message.text:
                pointed += 1
                assert any(kept[message.tool_call_id] == above.text for above in prompt[:at])
    assert pointed
    assert any("c0-0" not in str(prompt) for prompt in model.prompts), "something was condensed"


def test_deepagents_own_tools_show_a_file_once(call_style: CallStyle) -> None:
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed: pip install deepagents")
    utils = pytest.importorskip("deepagents.backends.utils", reason="this deepagents keeps its files elsewhere")
    path = {"file_path": "/a.py"}
    edit = {**path, "old_string": "value_3 = 3", "new_string": "value_3 = 4"}
    asked = [("read_file", path), ("ls", {"path": "/"}), ("read_file", path), ("edit_file", edit), ("read_file", path)]
    model = ToolModel(answers=[*(calls(one, number=at) for at, one in enumerate(asked)), AIMessage("Done.")])
    held = {"/a.py": utils.create_file_data("\n".join(f"value_{line} = {line}" for line in range(1, 81)))}
    with open_memory() as memory:
        agent = deepagents.create_deep_agent(
            model=model,
            tools=[],
            middleware=[TieredMemoryMiddleware(memory, max_tokens=32_000)],
            checkpointer=InMemorySaver(),
        )
        state = said(call_style, agent, {"messages": [("user", "Work on a.py.")], "files": held})
        shown, kept = results(model.prompts[-1]), results(state["messages"])
    assert "value_80 = 80" in shown[0]
    assert POINTER in shown[2]
    assert kept[2] == kept[0]
    assert "value_3 = 4" in shown[4]
    assert shown[4] == kept[4]
