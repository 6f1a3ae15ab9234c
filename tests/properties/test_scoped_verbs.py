"""Every public verb of a handle with a scope, found by reflection: it neither changes nor tells of another track."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.errors import TieredMemoryError
from langchain_tiered_memory.integrations.tools import memory_tools
from langchain_tiered_memory.session import Session
from langchain_tiered_memory.settings import CheckpointSettings, Settings, TreeSettings
from langchain_tiered_memory.types import Scope
from tests.memory_builders import entries_of, open_memory, small_levels, summaries_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.memory import TieredMemory

WORD = "kingfisher"
"""In every word, name and id of the other tracks, and in nothing that is asked."""
VERBS = sorted(name for name, verb in inspect.getmembers(Session, inspect.isfunction) if not name.startswith("_"))
MISSING = "nothere"
"""An id, a name, a prefix that nobody has."""


def talk(memory: TieredMemory) -> dict[str, list[str]]:
    """Three tracks with tasks, pins, checkpoints, views. Gives what of the others a stranger might name."""
    for track in ("main", "sibling", "sub"):
        session, word = memory.session("s", track=track), WORD if track != "sub" else "dipper"
        for number in range(14):
            said = HumanMessage(f"The {word} budget {number} is {number} EUR on {word}.", id=f"{track}-{word}{number}")
            session.add_messages([said, AIMessage(f"The {word} is noted.", id=f"{track}-a{word}{number}")])
        session.start_task(f"{track}-task")
        session.pin(f"{track}-{word}0")
    main = memory.session("s")
    main.checkpoint("by main", project={"key": WORD})
    main.phase(f"{WORD}-phase")
    memory.flush()
    main.context("budget", max_tokens=600)
    summaries = [one.id for one in summaries_of(main) if one.track != "sub"]
    others = [
        f"main-{WORD}3",
        f"sibling-{WORD}5",
        f"main-{WORD}",
        "main-",
        "sib",
        *summaries,
        *(one[:6] for one in summaries),
    ]
    return {
        "message_id": others,
        "summary_id": others,
        "task_id": ["main-task", "sibling-task"],
        "checkpoint_id": [one.id for one in main.checkpoints()],
        "outcome_id": [one.id for one in main.outcomes() if one.track != "sub"],
    }


def given(name: str, foreign: dict[str, list[str]]) -> list[Any]:
    """What may be said for a parameter; the first is somebody else's where there is any, the last nobody's."""
    if name == "messages":
        return [[HumanMessage("The dipper asks.", id="dipper")]]
    if name == "message_ids":
        return [*([one] for one in foreign["message_id"]), [MISSING]]
    if name in foreign:
        return [*foreign[name], MISSING]
    return [{"query": "budget noted", "name": "a phase", "operation": "large_merge", "kind": "note"}.get(name, MISSING)]


def answer(verb: Callable[..., Any], *args: Any) -> tuple[str, str]:
    """Whether it worked, and all that it says; async as sync."""
    try:
        found = verb(*args)
        if inspect.isawaitable(found):
            found = asyncio.run(_awaited(found))
    except TieredMemoryError as error:
        return type(error).__name__, f"{error} {error.__cause__}"
    return "", repr(found)


async def _awaited(found: Any) -> Any:
    return await found


def state_of(memory: TieredMemory) -> Any:
    """What nobody on another track may change."""
    main = memory.session("s")
    entries = [(one.id, one.text, one.pinned, one.task) for one in entries_of(main) if one.track != "sub"]
    tasks = [task for task in main.tasks() if task.track != "sub"]
    return entries, tasks, main.read_checkpoint().id, [one.id for one in main.checkpoints() if not one.alone]


def opened() -> TieredMemory:
    settings = Settings(
        tree=TreeSettings(background=False, levels=small_levels()), checkpoints=CheckpointSettings(keep=2)
    )
    return open_memory(None, settings=settings)


@pytest.mark.slow
def test_no_verb_of_a_handle_with_a_scope_tells_of_or_changes_another_track() -> None:
    with opened() as memory:
        foreign = talk(memory)
        session, before = memory.session("s", track="sub", scope=Scope()), state_of(memory)
        for verb in VERBS:
            called = getattr(session, verb)
            needed = [
                one.name
                for one in inspect.signature(called).parameters.values()
                if one.kind is one.POSITIONAL_OR_KEYWORD or one.name == "message_ids"
            ]
            first, outcomes = next(iter(needed), None), set[tuple[str, str]]()
            for value in given(first, foreign) if first is not None else [None]:
                outcome, text = answer(partial(called, **({first: value} if first is not None else {})))
                told = text.replace(str(value[0] if isinstance(value, list) else value), "ID").lower()
                assert WORD not in told, (verb, value, text)
                assert "'sibling'" not in told, (verb, value, text)
                outcomes.add((outcome, told if outcome else ""))
            if first in ("message_id", "message_ids", "summary_id"):
                assert len(outcomes) == 1, (verb, "an id of another track is one that nobody has", outcomes)
            assert state_of(memory) == before, verb
        assert memory.verify().problems == ()


def test_what_a_scoped_handle_does_to_ids_names_and_checkpoints_stays_on_its_track() -> None:
    with opened() as memory:
        talk(memory)
        main, session = memory.session("s"), memory.session("s", track="sub", scope=Scope())
        before = state_of(memory)
        session.add_messages([HumanMessage("Of the dipper.", id=f"main-{WORD}3")], task="main-task")
        for number in range(5):
            session.checkpoint(f"mine {number}", project={"of": "sub"})
        saved = session.before("large_merge")
        assert saved is not None
        assert saved.project_state["given"] == {"of": "sub"}
        assert {task.track for task in saved.tasks} == {"sub"}
        assert [one.alone for one in session.checkpoints()] == [True] * len(session.checkpoints())
        assert session.read_checkpoint().id == saved.id
        assert session.metrics().messages == 29
        receipt = session.forget(message_ids=[f"main-{WORD}3"])
        assert (receipt.entries, "main" in str(receipt.may_remain)) == (1, False)
        assert state_of(memory) == before
        session.start_task("main-task")
        session.finish_task("sub-task")
        again = session.checkpoint("before")
        session.start_task("later")
        main.pin(f"main-{WORD}4")
        assert main.restore(again.id).checkpoint.alone
        assert [task.id for task in session.tasks() if task.state == "active"] == ["main-task"]
        assert next(one for one in entries_of(main) if one.id == f"main-{WORD}4").pinned
        assert any(task.id == "main-task" and task.track == "main" for task in main.tasks())
        assert memory.verify().problems == ()


@pytest.mark.parametrize("forgetting", ["main", "sub"])
def test_what_one_track_forgot_another_may_say_under_the_same_id(forgetting: str) -> None:
    with open_memory() as memory:
        other = "sub" if forgetting == "main" else "main"
        first, second = (memory.session("s", track=track, scope=Scope()) for track in (forgetting, other))
        for session in (first, second):
            session.add_messages([HumanMessage("Begin.", id="m1")])
        first.add_messages([HumanMessage("stop now", id="m3")])
        first.forget(message_ids=["m3"])
        assert first.add_messages([HumanMessage("stop now", id="m3")]) == []
        assert second.add_messages([HumanMessage("stop now", id="m3")]) == ["m3"]
        assert [one.text for one in second.messages()] == ["Begin.", "stop now"]
        assert first.forget(message_ids=["m3"]).entries == 0, "forgetting twice is no error"


def test_scoped_tools_of_a_sub_agent_without_a_memory_see_nothing_of_main() -> None:
    with open_memory() as memory:
        talk(memory)
        config: Any = {
            "configurable": {
                "thread_id": "s",
                "checkpoint_ns": "tools:1|tools:2",
                "checkpoint_map": {"": "c0", "tools:1": "c1"},
            }
        }
        for fixed in ("s", None):
            tools = {one.name: one for one in memory_tools(memory, session_id=fixed, scope=Scope())}
            assert WORD not in tools["recall"].invoke({"query": "budget noted"}, config)
            for name in ("expand", "pin"):
                answers = [tools[name].invoke({"id": one}, config) for one in (f"main-{WORD}3", "main-", "sib")]
                assert all("There is no message" in one for one in answers)
