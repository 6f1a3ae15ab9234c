"""Invariant 9: what one session or user said never reaches another, by context, search, recall or expand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.errors import MixedOwnersError, NotFoundError
from tests.embedders import HashingEmbeddings
from tests.memory_builders import open_memory, summaries_of

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session

pytestmark = pytest.mark.slow

session_ids = st.lists(
    st.sampled_from(["a", "A", "a ", "a/b", "a%", "a_", "s1l0", "1", "ä", "a\x00", "..", "a'"]),
    min_size=2,
    max_size=2,
    unique=True,
)


def fill(session: Session, secret: str, turns: int) -> None:
    """Say the same as every other session, but for a secret in each message."""
    for number in range(turns):
        session.add_messages(
            [
                HumanMessage(f"Where does the order {number} to Bergen stand, {secret}?"),
                AIMessage(f"The order {number} to Bergen ships on Monday, {secret}."),
            ]
        )


@settings(max_examples=8, deadline=None)
@given(session_ids, st.integers(4, 8))
def test_two_sessions_with_equal_words_never_see_each_other(ids: list[str], turns: int) -> None:
    with open_memory(None, embeddings=HashingEmbeddings()) as memory:
        sessions = [memory.session(one, user=f"user of {one}") for one in ids]
        for session, secret in zip(sessions, ("kingfisher", "wagtail"), strict=True):
            fill(session, secret, turns)
        memory.flush()
        for mine, other, theirs in ((0, 1, "wagtail"), (1, 0, "kingfisher")):
            session = sessions[mine]
            said = [str(session.messages())]
            for view in ("default", "recall"):
                for budget in (220, 700, 3000):
                    context = session.context(f"{theirs} order Bergen", max_tokens=budget, view=view)
                    said += [str([one.content for one in context.messages]), str(context.sections)]
            said.append(str(session.search(f"{theirs} order 1 Bergen", k=50)))
            for summary in summaries_of(session):
                said.append(str(session.expand(summary.id, depth=None)))
            assert all(theirs not in one for one in said)
            for summary in summaries_of(sessions[other]):
                with pytest.raises(NotFoundError):
                    session.expand(summary.id)
                with pytest.raises(NotFoundError):
                    session.expand(summary.id[:8])


def test_a_message_of_one_session_cannot_be_pinned_edited_or_forgotten_through_another() -> None:
    memory = open_memory(None)
    one, other = memory.session("one"), memory.session("other")
    one.add_messages([HumanMessage("mine", id="m1")])
    other.add_messages([HumanMessage("theirs", id="m2")])
    with pytest.raises(NotFoundError):
        other.pin("m1")
    with pytest.raises(NotFoundError):
        other.forget(message_ids=["m1"])
    other.add_messages([HumanMessage("not an edit of mine", id="m1")])
    assert [message.content for message in one.messages()] == ["mine"]
    other.forget()
    assert [message.content for message in one.messages()] == ["mine"]


def test_a_session_of_one_user_does_not_open_for_another() -> None:
    memory = open_memory(None)
    memory.session("s", user="ann").add_messages([HumanMessage("for Ann only")])
    with pytest.raises(MixedOwnersError):
        memory.session("s", user="ben").add_messages([HumanMessage("for Ben")])
    assert memory.sessions(user="ben") == []
    memory.forget(user="ben")
    assert memory.sessions() == ["s"]


@pytest.mark.parametrize("verb", ["context", "messages", "search", "metrics"])
def test_another_user_reads_nothing_of_a_session(verb: str) -> None:
    memory = open_memory(None)
    memory.session("s", user="ann").add_messages([HumanMessage("The code of the safe is 4711.", id="m1")])
    stranger = memory.session("s", user="ben")
    read = {
        "context": lambda: stranger.context("code of the safe"),
        "messages": stranger.messages,
        "search": lambda: stranger.search("code of the safe"),
        "metrics": stranger.metrics,
    }[verb]
    with pytest.raises(MixedOwnersError):
        read()
