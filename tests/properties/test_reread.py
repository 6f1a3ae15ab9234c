"""A summary is read again within its budget: every message of it is quoted, or named as left out."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.types.records import Entry
from tests.memory_builders import conversation, open_memory, summaries_of

pytestmark = pytest.mark.slow


@settings(max_examples=8)
@given(st.integers(3, 40), st.integers(1, 3000), st.integers(1, 60), st.booleans())
def test_every_message_of_a_summary_is_quoted_or_named(turns: int, budget: int, length: int, asks: bool) -> None:  # noqa: FBT001 - drawn
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([*conversation(turns), HumanMessage("A long one. " * length), AIMessage("Noted.")])
        memory.flush()
        count = memory.core.runtime.counter.count_text
        query = "Which invoice has the crane?" if asks else ""
        for summary in summaries_of(session):
            found = session.reread(summary.id, query=query, max_tokens=budget)
            assert asyncio.run(session.areread(summary.id, query=query, max_tokens=budget)) == found
            assert count(found.text) == found.tokens <= budget
            below = [one for one in session.expand(summary.id, depth=None) if isinstance(one, Entry)]
            told = [*found.message_ids, *found.passage_ids, *(one.what for one in found.left_out)]
            assert sorted(told) == sorted(one.id for one in below)
            assert all(one.text in found.text for one in below if one.id in found.message_ids)


def test_what_answers_a_question_is_read_first() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(conversation(30))
        memory.flush()
        top = max(summaries_of(session), key=lambda one: (one.level, one.entry_count))
        below = [one for one in session.expand(top.id, depth=None) if isinstance(one, Entry)]
        asked = [one for one in below if "invoice" in one.text][-1]
        invoice = asked.text.rsplit(" ", 1)[-1].rstrip(".")
        found = session.reread(top.id, query=f"What has the invoice {invoice}?", max_tokens=200)
        assert invoice in found.text
        assert found.left_out
        assert invoice not in session.reread(top.id, max_tokens=200).text


def test_a_message_too_large_for_the_budget_stands_head_and_tail() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        (known,) = session.add_messages([HumanMessage("Begin. " + "middle " * 900 + "End.")])
        found = session.reread(known, max_tokens=200)
        assert found.passage_ids == (known,)
        assert "Begin." in found.text
        assert "End." in found.text
        for wrong in ({"max_tokens": 0}, {"max_tokens": True}, {"query": 3}):
            with pytest.raises(InvalidInputError):
                session.reread(known, **wrong)  # type: ignore[arg-type]
        with pytest.raises(NotFoundError):
            session.reread("nowhere")
