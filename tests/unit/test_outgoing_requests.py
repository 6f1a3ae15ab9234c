"""What of a context is sent how: as middlewares around word it, with hints for caches, and whether it was sent so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.context.pieces import MARK
from langchain_tiered_memory.integrations.agent.called_models import (
    Call,
    CalledModels,
    aside_of,
    measured,
    note_behind,
    stepped,
    watched,
)
from langchain_tiered_memory.integrations.agent.reply import _as_edited, _marked, _was_sent, _with_breakpoints
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.testing import ScriptedModel

CONTROL = {"cache_control": {"type": "ephemeral"}}
SYSTEM, OURS = SystemMessage("Be brief."), HumanMessage("Before: much.", additional_kwargs={MARK: {"part": "view"}})
OLD, NEW, LAST = HumanMessage("Hello."), AIMessage("Good day."), HumanMessage("What now?")


@pytest.mark.parametrize(
    ("stable", "shown", "ends"),
    [
        ([SYSTEM, OURS, OLD], [SYSTEM, OURS, OLD, NEW, LAST], [0, 1, 2, 4]),
        ([SYSTEM, OLD], [SYSTEM, OLD, NEW, LAST], [0, 1, 3]),
        ([SYSTEM, OURS, OURS.model_copy()], [SYSTEM, OURS, LAST], [0, 1, 2]),
        ([], [LAST], [0]),
    ],
)
def test_breakpoints_stand_behind_what_comes_again_and_at_the_end(stable: Any, shown: Any, ends: list[int]) -> None:
    context: Any = SimpleNamespace(messages=[*stable, LAST], stable_messages=len(stable))
    sent = _with_breakpoints(shown, context)
    assert [at for at, one in enumerate(sent) if "cache_control" in str(one.content)] == ends
    assert [one.text for one in sent] == [one.text for one in shown]


@pytest.mark.parametrize(
    ("content", "marked"),
    [
        ("Hi.", [{"type": "text", "text": "Hi.", **CONTROL}]),
        (" ", None),
        ([], None),
        (["a", "b"], ["a", {"type": "text", "text": "b", **CONTROL}]),
        ([{"type": "text", "text": ""}], None),
        ([{"type": "thinking", "thinking": "so"}], None),
        ([{"type": "image", "url": "u"}], [{"type": "image", "url": "u", **CONTROL}]),
    ],
)
def test_a_breakpoint_stands_where_anthropic_takes_it(content: Any, marked: Any) -> None:
    assert _marked(AIMessage(content)).content == (content if marked is None else marked)


WHOLE = "The gate is open. " * 20


@pytest.mark.parametrize(
    ("shown", "edit", "sent"),
    [
        (WHOLE, "Hidden.", "Hidden."),
        (WHOLE, "Hidden. " * 200, "Hidden. " * 200),
        ("The gate", "Hidden.", "Hidden."),
        ("The gate", "Hidden. " * 50, "Hidden."),
        ("The gate", ["Hidden."], "The gate"),
        ([{"type": "text", "text": "The gate"}], "Hidden.", "The gate"),
    ],
)
def test_a_message_is_shown_as_the_middlewares_around_word_it(shown: Any, edit: Any, sent: str) -> None:
    changes = SimpleNamespace(edits={"m": HumanMessage(edit, id="m"), "gone": HumanMessage("x", id="gone")})
    asked: Any = SimpleNamespace(changes=changes, held=[HumanMessage(WHOLE, id="m")], request=SimpleNamespace(tools=[]))
    other = HumanMessage("Another.", id="o")
    found = _as_edited([HumanMessage(shown, id="m"), other], asked, count=lambda text: len(text.split()))
    assert found[1] is other
    assert found[0].text.startswith(sent)
    assert shown != WHOLE or found[0] is changes.edits["m"], "with all that the middleware made of it"
    assert len(found[0].text) <= max(len(str(shown)), len(str(edit)))
    assert ("gate" in found[0].text) is (sent == "The gate")


@pytest.mark.parametrize(
    ("calls", "own", "tools", "was"),
    [
        ([("m", [OLD], [])], "m", [], True),
        ([], "m", [], False),
        ([("m", [OLD], []), ("other", [OLD], [])], "m", [], False),
        ([("m", [NEW], [])], "m", [], False),
        ([("m", [OLD], None)], "m", [], False),
        ([("m", [OLD], [{"name": "f"}])], "m", [], False),
        ([("m", [OLD], [{"name": "f"}])], "m", [{"name": "f"}], True),
        ([("m", [NEW], []), ("m", [OLD], [])], "m", [], True),
    ],
)
def test_a_request_was_sent_if_the_last_call_had_it(calls: Any, own: str, tools: Any, *, was: bool) -> None:
    called = CalledModels()
    called.calls += [Call(model=name, messages=said, tools=given) for name, said, given in calls]
    model = ScriptedModel().bind(tools=tools)
    assert _was_sent(called, model, [OLD], own=own) is was


@pytest.mark.parametrize(
    ("names", "own", "last"),
    [([], "m", "m"), (["x"], "m", "m"), (["x", "x"], "m", "m"), (["x", "y"], "m", "y"), (["y", "x", "x"], None, "x")],
)
def test_a_model_is_known_by_its_own_name_while_only_one_is_called(names: list[str], own: Any, last: Any) -> None:
    called = CalledModels()
    called.calls += [Call(model=name, messages=(), tools=()) for name in names]
    assert called.last(own) == last
    with watched({}, called):
        assert called.calls == [], "those of the request before are no calls of this one"


@pytest.mark.parametrize(
    ("calls", "tools", "added"),
    [
        ([], 1, (10, 0)),
        ([([SYSTEM, OLD], 1)], 1, (10, 0)),
        ([([SYSTEM, OLD, LAST], 1)], 1, (12, 2)),
        ([([SYSTEM, OLD], 3)], 1, (30, 20)),
        ([([SYSTEM, OLD], 0)], 1, (10, 0)),
        ([([SYSTEM, OLD, LAST], 1), ([NEW], 1)], 1, (12, 2)),
        ([([SYSTEM, OLD, NEW, LAST], 1), ([SYSTEM, OLD, LAST], 1)], 1, (12, 2)),
        ([([SYSTEM, OLD], None)], 1, (10, 0)),
    ],
)
def test_what_others_add_is_measured_in_the_call_that_had_most_of_what_was_handed_on(
    calls: Any, tools: int, added: tuple[int, int]
) -> None:
    """A word counts 1, a tool 10."""
    counter = SimpleNamespace(count_message=lambda one: len(one.text.split()), count_tools=lambda some: 10 * len(some))
    called = CalledModels()
    called.calls += [
        Call(model="m", messages=said, tools=None if given is None else [{}] * given) for said, given in calls
    ]
    core = SimpleNamespace(runtime=SimpleNamespace(counter=counter))
    prepared: Any = SimpleNamespace(
        context=SimpleNamespace(tokens=10, raw_tokens=10, messages=[SYSTEM, OLD]),
        asked=SimpleNamespace(called=called, tools=[{}] * tools),
        session=SimpleNamespace(core=core),
    )
    assert measured(prepared, [SYSTEM, OLD]) == added


def test_room_is_left_for_the_most_that_was_added_of_late_in_whole_steps_and_given_back() -> None:
    runtime: Any = SimpleNamespace(view_cache=SimpleNamespace(asides=Remembered[Any, Any]()))
    session: Any = SimpleNamespace(session_id="s", track="main")
    assert [stepped(tokens) for tokens in (-3, 0, 1, 512, 513)] == [0, 0, 512, 512, 1024]
    allocation = [aside_of(runtime, session, "m")]
    for behind in (5000, *[600] * 8):
        note_behind(runtime, session, "m", behind)
        allocation.append(aside_of(runtime, session, "m"))
    assert allocation == [0, *[5120] * 8, 1024]
    assert aside_of(runtime, session, "other") == 0
