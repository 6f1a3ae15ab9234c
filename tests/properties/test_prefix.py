"""Invariant 5: between two condensations of its view a context starts with the bytes of the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory_builders import as_bytes, open_memory, quick_settings, tool_turn, turn

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow


def starts_with(later: Context, earlier: Context) -> bool:
    """Whether the stable part of `earlier` is the beginning of `later`, byte for byte."""
    kept = [as_bytes(one) for one in earlier.messages[: earlier.stable_messages]]
    return [as_bytes(one) for one in later.messages[: len(kept)]] == kept


def condensed_view(session: Session, context: Context) -> tuple[object, ...]:
    """What identifies a condensation of the view: what stands for older history, and what was left out of it."""
    history = context.section("history")
    del session
    return () if history is None else (history.summary_ids, tuple(left.what for left in history.left_out), history.text)


@pytest.mark.parametrize(
    ("query", "most"),
    [pytest.param(None, 50, id="with recall", marks=pytest.mark.slow), pytest.param("", 30, id="without a question")],
)
@pytest.mark.sweep(1)
def test_in_150_turns_the_prefix_changes_only_when_the_view_is_condensed(query: str | None, most: int) -> None:
    memory = open_memory(None, settings=quick_settings(messages=8, sources=4))
    session = memory.session("s")
    changes = condensations = 0
    last: Context | None = None
    for number in range(150):
        session.add_messages(turn(number)[:1])
        if number % 5 == 4:
            session.flush()
        context = session.context(query, max_tokens=1600)
        if last is not None:
            condensed = condensed_view(session, context) != condensed_view(session, last)
            condensations += condensed
            changed = not starts_with(context, last)
            changes += changed
            assert condensed or not changed, f"turn {number}: the prefix changed and nothing was condensed"
        last = context
        session.add_messages(turn(number)[1:])
    # 150 turns of about 65 tokens in a window of 1600, half of which is set aside where there is a question.
    assert 3 <= changes <= condensations <= most


@settings(max_examples=10, deadline=None)
@given(st.lists(st.sampled_from(["talk", "tools", "flush", "ask"]), min_size=5, max_size=40))
def test_whatever_happens_between_two_contexts_only_a_condensation_changes_the_prefix(steps: list[str]) -> None:
    memory = open_memory(None)
    session = memory.session("s")
    session.add_messages(turn(0))
    last = session.context("", max_tokens=700)
    for number, step in enumerate(steps, 1):
        if step == "talk":
            session.add_messages(turn(number))
        elif step == "tools":
            session.add_messages(tool_turn(number))
        elif step == "flush":
            session.flush()
        else:
            session.context(f"what about order {1000 + number}?", max_tokens=700)
        context = session.context("", max_tokens=700)
        if condensed_view(session, context) == condensed_view(session, last):
            assert starts_with(context, last), f"after step {number} ({step})"
        last = context


def test_the_question_never_changes_what_stands_before_recall() -> None:
    memory = open_memory(None)
    session = memory.session("s")
    for number in range(60):
        session.add_messages(turn(number))
    session.flush()
    contexts = [session.context(f"Where is the {what}?", max_tokens=1500) for what in ("crane", "invoice F-0007", "x")]
    prefixes = {b"".join(as_bytes(one) for one in context.messages[: context.stable_messages]) for context in contexts}
    assert len(prefixes) == 1
    assert len({context.section("recall") for context in contexts}) > 1


def test_a_condensation_in_the_background_leaves_the_view_alone_until_it_must_change() -> None:
    memory = open_memory(None)
    session = memory.session("s")
    for number in range(12):
        session.add_messages(turn(number))
    before = session.context("", max_tokens=1500)
    assert session.flush().summaries > 0
    after = session.context("", max_tokens=1500)
    assert starts_with(after, before)
    assert [as_bytes(one) for one in after.messages] == [as_bytes(one) for one in before.messages]


def test_reopening_the_database_changes_no_byte(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    with open_memory(where) as memory:
        session = memory.session("s")
        for number in range(60):
            session.add_messages(turn(number))
        session.flush()
        before = session.context("", max_tokens=1500)
    with open_memory(where) as memory:
        session = memory.session("s")
        after = session.context("", max_tokens=1500)
        assert [as_bytes(one) for one in after.messages] == [as_bytes(one) for one in before.messages]
        assert after.stable_messages == before.stable_messages
        session.add_messages(turn(60))
        assert starts_with(session.context("", max_tokens=1500), before)


def test_a_pin_an_edit_and_a_removal_show_at_once() -> None:
    memory = open_memory(None)
    session = memory.session("s")
    for number in range(40):
        session.add_messages(turn(number))
    session.flush()
    plain = session.context("", max_tokens=1500)
    assert "a3" not in plain.entry_ids
    session.pin("a3")
    assert "a3" in session.context("", max_tokens=1500).entry_ids
    session.add_messages([turn(3)[1].model_copy(update={"content": "It was the other crane."})])
    assert "It was the other crane." in str([one.content for one in session.context("", max_tokens=1500).messages])
    session.forget(message_ids=["a3"])
    assert "other crane" not in str([one.content for one in session.context("", max_tokens=1500).messages])
