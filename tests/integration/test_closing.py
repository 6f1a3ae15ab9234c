"""A session that is closed, and opened again by a further message."""

from __future__ import annotations

import pytest

from langchain_tiered_memory.types.records import SummaryState
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory, ref_of, store_of, summaries_of, turn

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)


@both
def test_archived_tops_are_active_again_when_the_session_goes_on(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(14))
        told(call_style, session.flush)
        before = {one.id: one.state for one in summaries_of(session)}
        assert SummaryState.ACTIVE in before.values()
        told(call_style, session.end)
        closed = {one.id: one.state for one in summaries_of(session)}
        assert {one for one, state in closed.items() if state is SummaryState.ARCHIVED} == {
            one for one, state in before.items() if state is SummaryState.ACTIVE
        }
        told(call_style, session.add_messages, turn(14))
        assert {one.id: one.state for one in summaries_of(session)} == before
        assert memory.verify().problems == ()
        told(call_style, session.end)
        assert {one.id: one.state for one in summaries_of(session)} == closed, "and it can be closed again"


def test_a_session_that_was_opened_again_meanwhile_is_not_archived() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(conversation(6))
        session.flush()
        store = store_of(memory)
        store.transcript.end(ref_of(session), now=1.0)
        session.add_messages(turn(6))
        store.tree.archive(ref_of(session))
        assert SummaryState.ARCHIVED not in {one.state for one in summaries_of(session)}
