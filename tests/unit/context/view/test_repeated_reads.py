"""Which readings of a file a context leads to the text of one above: the same text of a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.settings import FileSettings, Settings, TreeSettings
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

FILE = "\n".join(f"value_{line} = {line * 7}" for line in range(1, 41))
OTHER = FILE.replace("value", "figure")
FEW = "\n".join(FILE.split("\n")[:6])
TEXT = {"type": "text", "text": FILE}
IMAGE = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
A, WINDOWS = "/srv/a.py", "C:\\srv\\a.py"

Asked = tuple[str, dict[str, Any], Any]
"""A call, and what it gave."""


def read(content: Any = FILE, path: str = A, tool: str = "read_file", **more: Any) -> Asked:
    return tool, {"file_path": path, **more}, content


def shell(command: str, content: str = FILE) -> Asked:
    return "bash", {"command": command}, content


def write(path: str = A, content: str = "ok") -> Asked:
    return "write_file", {"file_path": path, "content": FILE}, content


def spoken(steps: tuple[Asked | list[Asked], ...], *, status: str = "success") -> list[BaseMessage]:
    """A run in which each step is a message with its calls; the id of a result is its place among them."""
    messages: list[BaseMessage] = [HumanMessage("Tidy up.", id="goal")]
    number = 0
    for step in steps:
        asked = step if isinstance(step, list) else [step]
        ids = [str(number + place) for place in range(len(asked))]
        number += len(asked)
        calls = [{"name": name, "args": args, "id": key} for key, (name, args, _) in zip(ids, asked, strict=True)]
        messages += [
            AIMessage("", tool_calls=calls),
            *(
                ToolMessage(content, tool_call_id=key, id=key, name=name, status=status)
                for key, (name, _, content) in zip(ids, asked, strict=True)
            ),
        ]
    return messages


def pointed(
    messages: list[BaseMessage], *, max_tokens: int = 32_000, pinned: str | None = None, **files: Any
) -> dict[int, int]:
    """The results that a context shows as a pointer, each with the one that it leads to."""
    settings = Settings(tree=TreeSettings(background=False), files=FileSettings(**files))
    with open_memory(settings=settings) as memory:
        session = memory.session("s")
        session.add_messages(messages)
        if pinned is not None:
            session.pin(pinned)
        shown = session.context("", max_tokens=max_tokens).messages
    results = [one for one in shown if isinstance(one, ToolMessage)]
    leads = {str(one.id): re.search(r"has the same text as message (\d+) above", one.text) for one in results}
    return {int(key): int(str(messages[int(at[1]) - 1].id)) for key, at in leads.items() if at is not None}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param((read(), read(), shell(f"cat {A}")), {1: 0, 2: 0}, id="the same again"),
        pytest.param((read(), write(), read(), read()), {2: 0, 3: 0}, id="written in between, the same words"),
        pytest.param((read(), read(OTHER), read()), {2: 0}, id="another text in between"),
        pytest.param((read(), read(path="/srv/b.py")), {1: 0}, id="another file with the same text"),
        pytest.param((read("# a.py\n" + FILE), read()), {}, id="a line before it above"),
        pytest.param((read(FEW), read(FEW)), {}, id="too short to save anything"),
        pytest.param((read(), write(content=FILE), read()), {2: 0}, id="a result that is no reading"),
        pytest.param((read(path=WINDOWS), read(path=WINDOWS)), {1: 0}, id="a path of Windows"),
        pytest.param((read([TEXT]), read([FILE]), read()), {1: 0, 2: 0}, id="blocks"),
        pytest.param((read([TEXT, IMAGE]), read([TEXT, IMAGE])), {}, id="an image besides"),
        pytest.param((read([IMAGE]), read([IMAGE])), {}, id="an image alone"),
    ],
)
def test_a_reading_is_pointed_to_where_its_text_stands_above(steps: tuple[Any, ...], expected: dict[int, int]) -> None:
    assert pointed(spoken(steps)) == expected


def test_ids_of_calls_that_come_again_name_the_file_of_their_own_message() -> None:
    asked = (read(), read(path="/srv/b.py"), shell("ls", "none"))
    messages: list[BaseMessage] = [HumanMessage("Tidy up.")]
    for tool, args, content in asked:
        messages.append(AIMessage("", tool_calls=[{"name": tool, "args": args, "id": "call_0"}]))
        messages.append(ToolMessage(content, tool_call_id="call_0", name=tool))
    with open_memory(settings=Settings(tree=TreeSettings(background=False))) as memory:
        memory.session("s").add_messages(messages)
        shown = memory.session("s").context("", max_tokens=32_000).messages
    assert "'/srv/b.py' has the same text as message 3 above" in "\n".join(one.text for one in shown)


def test_errors_pins_and_files_that_nobody_asks_about_stay_whole() -> None:
    steps = (read(), read())
    assert pointed(spoken(steps, status="error")) == {}
    assert pointed(spoken(steps), pinned="1") == {}
    assert pointed(spoken(steps), tools={}) == {}


def test_what_is_shown_in_part_is_pointed_to_by_nothing() -> None:
    large, other = (re.sub("^", "    ", text * 20, flags=re.MULTILINE) for text in (FILE, OTHER))
    messages = spoken((read(large), read(other, path="/srv/b.py"), read(large)))
    assert pointed(messages) == {2: 0}
    assert pointed(messages, max_tokens=2000) == {}


def test_a_result_that_came_late_stands_above_what_it_repeats_and_is_shown_whole() -> None:
    goal, late, result, asked, again = spoken((read(), read()))
    assert pointed([goal, late, HumanMessage("And now?"), asked, again, result]) == {}


def test_it_is_told_once_of_the_result_that_the_model_waits_for() -> None:
    told: list[tuple[str | None, int]] = []
    with open_memory(settings=Settings(tree=TreeSettings(background=False))) as memory:
        memory.subscribe(
            lambda event: (
                told.append((event.details["message_id"], event.details["tokens"]))
                if event.name == "file_offered"
                else None
            )
        )
        session = memory.session("s")
        session.add_messages(spoken((read(), read(), read())))
        saved = [session.context("", max_tokens=32_000).section("recent") for _ in range(2)][-1]
        assert saved is not None
        assert told == [("2", next(one.tokens for one in saved.left_out if one.what == "2"))]
        counts = memory.run("s").report().counts
        assert (counts["offered"], counts["offered_tokens"]) == (1, told[0][1])
