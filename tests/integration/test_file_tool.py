"""`open_file` of an agent, and a run's pair of nodes: start, end, what is not shown twice; sync and async."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from langchain.agents import create_agent
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.integrations.file_runs import FileRunMiddleware, _page_of, end_run_node, start_run_node
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from tests.agent_builders import THREAD, ToolModel, open_memory
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import ChatState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import TieredMemory

LINES = "".join(f"line {number} = {number * 7}\n" for number in range(1, 61))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "a.py").write_text(LINES)
    (made / "image.bin").write_bytes(b"\x00\x01")
    return made


def asks(*paths: str, **more: Any) -> AIMessage:
    number = "-".join(paths) + str(sorted(more.items()))
    calls = [
        {"name": "open_file", "args": {"path": path, **more}, "id": f"call-{number}-{place}"}
        for place, path in enumerate(paths)
    ]
    return AIMessage("", tool_calls=calls)


def said(call_style: CallStyle, runnable: Any, text: str) -> dict[str, Any]:
    state = {"messages": [HumanMessage(text)]}
    if call_style == "sync":
        found: dict[str, Any] = runnable.invoke(state, THREAD)
        return found
    return asyncio.run(runnable.ainvoke(state, THREAD))


def agent_with(memory: TieredMemory, folder: Path, model: ToolModel, **choices: Any) -> Any:
    files = FileRunMiddleware(memory, roots=[str(folder)], **choices)
    middleware = [files, TieredMemoryMiddleware(memory)]
    return create_agent(model, [], middleware=middleware, checkpointer=InMemorySaver())


def agent_of(memory: TieredMemory, folder: Path, *replies: AIMessage, **choices: Any) -> Any:
    return agent_with(memory, folder, ToolModel(answers=list(replies)), **choices)


def tool_texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages if message.type == "tool"]


def results(state: dict[str, Any]) -> list[str]:
    return tool_texts(state["messages"])


@pytest.fixture(params=CALL_STYLES)
def call_style(request: pytest.FixtureRequest) -> CallStyle:
    return request.param


def test_a_file_that_stands_in_the_request_unchanged_is_pointed_to(folder: Path, call_style: CallStyle) -> None:
    with open_memory() as memory:
        events: list[Any] = []
        memory.subscribe(events.append)
        replies = [asks("a.py"), asks("./a.py"), asks("a.py", again=True), AIMessage("Done.")]
        model = ToolModel(answers=replies)
        kept = results(said(call_style, agent_with(memory, folder, model), "Look at a.py."))
        assert kept[1] == kept[0]
        shown = tool_texts(model.prompts[-1])
        assert "lines 1 to 60 of 60" in shown[0]
        assert shown[0].endswith("line 60 = 420")
        assert "'a.py' has the same text as message 3 above" in shown[1]
        assert len(shown[1]) < len(shown[0]) / 3
        assert "shown once more" in shown[2]
        assert shown[2].split("\n")[1:] == shown[0].split("\n")[1:]
        counts = memory.run("alice").report().counts
        assert counts["offered"] == 1
        assert counts["offered_tokens"] > 100
        names = [one.name for one in events]
        assert names.count("file_offered") == names.count("run_started") == 1


def test_a_run_spans_the_calls_of_an_agent_and_pushes_out_no_checkpoint_of_anybody(
    folder: Path, call_style: CallStyle
) -> None:
    with open_memory() as memory:
        session, events = memory.session("alice"), []
        memory.subscribe(events.append)
        replies = [one for _ in range(4) for one in (asks("a.py"), AIMessage("Done."))]
        agent = agent_of(memory, folder, *replies, critical=["missing.py"])
        for number in range(4):
            said(call_style, agent, f"Turn {number}.")
            if number == 0:
                session.checkpoint("before the great change")
        names = [one.name for one in events]
        assert (names.count("run_started"), names.count("run_ended")) == (1, 0)
        assert [one.reasons for one in session.checkpoints()] == [("before the great change",)]
        report = memory.run("alice").end()
        assert report.timings["new"].count + report.timings["hot"].count == 4
        assert len(report.contexts) == 8  # each request once
        assert report.not_loaded == ("missing.py",)
        for _ in range(30):
            memory.run("alice", background=False).start().end()
        reasons = [one.reasons[0] for one in session.checkpoints()]
        assert (reasons.count("run_end"), reasons.count("before the great change")) == (20, 1)


async def test_a_file_is_opened_on_the_callers_loop_and_off_it(folder: Path) -> None:
    with open_memory() as memory:
        opener = FileRunMiddleware(memory, roots=[str(folder)]).tools[0]
        loops: list[asyncio.AbstractEventLoop] = []

        class Listener(AsyncCallbackHandler):
            async def on_tool_start(self, *_: Any, **__: Any) -> None:
                loops.append(asyncio.get_running_loop())

        config: Any = {**THREAD, "callbacks": [Listener()]}
        with blockbuster_ctx():
            assert "lines 1 to 60" in await opener.ainvoke({"path": "a.py"}, config)
        assert loops == [asyncio.get_running_loop()]


def test_a_page_that_was_not_shown_is_shown_and_one_that_was_is_pointed_to(folder: Path, call_style: CallStyle) -> None:
    with open_memory() as memory:
        pages = [asks("a.py", start_line=line) for line in (1, 8)]
        again = [asks("./a.py", start_line=line) for line in (1, 8)]
        model = ToolModel(answers=[*pages, *again, asks("././a.py"), AIMessage("Done.")])
        said(call_style, agent_with(memory, folder, model, max_tokens=150), "Read a.py.")
        shown = tool_texts(model.prompts[-1])
        assert "lines 1 to" in shown[0]
        assert "lines 8 to" in shown[1]
        for place, number in ((2, 3), (3, 5), (4, 3)):  # never to a message that only points itself
            assert f"has the same text as message {number} above" in shown[place]


def test_a_changed_file_is_shown_again_and_a_deleted_one_as_it_was(folder: Path, call_style: CallStyle) -> None:
    with open_memory() as memory:
        agent = agent_of(
            memory, folder, asks("a.py"), AIMessage("."), asks("a.py"), AIMessage("."), asks("a.py"), AIMessage(".")
        )
        said(call_style, agent, "Look.")
        (folder / "a.py").write_text("changed = True\n" * 60)
        assert "It changed since" in results(said(call_style, agent, "Look again."))[-1]
        (folder / "a.py").unlink()
        last = results(said(call_style, agent, "And again."))[-1]
        assert "It is gone from the disk" in last
        assert "changed = True" in last


def test_another_track_that_opened_a_file_does_not_keep_it_from_this_one(folder: Path, call_style: CallStyle) -> None:
    with open_memory() as memory:
        memory.run("alice", roots=[str(folder)], track="other").open("a.py")
        shown = results(said(call_style, agent_of(memory, folder, asks("a.py"), AIMessage(".")), "Look."))
        assert "lines 1 to 60" in shown[0]


def test_what_cannot_be_opened_is_an_answer_and_a_large_file_comes_in_pages(
    folder: Path, call_style: CallStyle
) -> None:
    with open_memory() as memory:
        replies = [
            asks("../secret", "image.bin", "none.py", "a\0b"),
            asks("a.py", start_line=1),
            asks("a.py", start_line=99),
            AIMessage("Done."),
        ]
        shown = results(said(call_style, agent_of(memory, folder, *replies, max_tokens=120), "Look."))
        assert "outside of the folders" in shown[0]
        assert "is not a text file: it has 2 bytes" in shown[1]
        assert "does not exist" in shown[2]
        assert "cannot be opened" in shown[3]
        assert "Continue with start_line" in shown[4]
        count = memory.core.runtime.counter.count_text
        assert all(count(one) <= 120 for one in shown[4:])
        assert "none from 99 on" in shown[5]


def test_critical_files_are_pinned_at_the_start_of_each_call(folder: Path, call_style: CallStyle) -> None:
    with open_memory() as memory:
        agent = agent_of(memory, folder, AIMessage("One."), AIMessage("Two."), critical=["a.py"])
        for text in ("First.", "Second."):
            said(call_style, agent, text)
        files = memory.run("alice", roots=[str(folder)]).files("hot")
        assert [(file.path, file.pinned, file.accesses) for file in files] == [(str(folder / "a.py"), True, 2)]


def test_pages_of_a_file_are_all_of_it(folder: Path) -> None:
    with open_memory() as memory:
        opened = memory.run("s", roots=[str(folder)]).open("a.py")
        (folder / "long.py").write_text("x" * 5000)
        long = memory.run("s", roots=[str(folder)]).open("long.py")
    lines, start = [], 1
    while start <= 60:
        page = _page_of(opened, start, max_tokens=60, count=lambda text: len(text) // 4)
        lines += page.splitlines()[1:]
        start = len(lines) + 1
    assert "\n".join(lines) + "\n" == LINES
    assert len(_page_of(long, 1, max_tokens=200, count=lambda text: len(text) // 4)) < 400


def test_lines_are_those_of_an_editor_and_what_cannot_be_shown_whole_says_how_to_go_on(folder: Path) -> None:
    (folder / "odd.py").write_bytes(b"one\x0cstill one\r\ntwo\n" + b"x" * 3000 + b"\nfour\n")
    with open_memory() as memory:
        odd = memory.run("s", roots=[str(folder)]).open("odd.py")

    def count(text: str) -> int:
        return len(text) // 4

    first = _page_of(odd, 1, max_tokens=120, count=count)
    assert first.split("\n")[1:] == ["one\x0cstill one", "two"]
    assert "lines 1 to 2 of 4" in first
    assert "start_line 3" in first
    third = _page_of(odd, 3, max_tokens=120, count=count)
    assert "the first 120 of its 3000 characters" in third
    assert "start_line 4" in third
    assert _page_of(odd, 4, max_tokens=120, count=count).split("\n")[1:] == ["four"]


def test_of_a_large_file_no_more_than_a_few_pages_are_counted(folder: Path) -> None:
    (folder / "large.py").write_text(LINES * 500)
    with open_memory() as memory:
        large = memory.run("s", roots=[str(folder)]).open("large.py")
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text) // 4)
        return len(text) // 4

    assert count(_page_of(large, 100, max_tokens=200, count=count)) <= 200
    assert sum(counted) < 200 * 20


def test_a_pair_of_nodes_begins_and_ends_a_run(folder: Path, call_style: CallStyle) -> None:
    with open_memory() as memory:
        builder = StateGraph(ChatState)
        builder.add_node("start_run", start_run_node(memory, roots=[str(folder)], critical=["a.py"]))
        builder.add_node("end_run", end_run_node(memory, roots=[str(folder)]))
        builder.add_edge(START, "start_run")
        builder.add_edge("start_run", "end_run")
        builder.add_edge("end_run", END)
        events: list[str] = []
        memory.subscribe(lambda event: events.append(event.name))
        said(call_style, builder.compile(checkpointer=InMemorySaver()), "Hello.")
        assert [name for name in events if name.startswith("run_")] == ["run_started", "run_ended"]
        assert [file.pinned for file in memory.run("alice").files()] == [True]


def test_too_little_room_for_a_page_is_refused_where_it_is_written(folder: Path) -> None:
    with open_memory() as memory, pytest.raises(SettingsError, match="at least 100"):
        FileRunMiddleware(memory, roots=[str(folder)], max_tokens=50)
