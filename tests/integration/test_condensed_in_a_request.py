"""A view that finds nothing to take up is worked out once, behind the condensing, and shows the same."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING

import pytest

from langchain_tiered_memory.context import ladder
from langchain_tiered_memory.testing import FrozenClock
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import as_bytes, conversation, open_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.memory_builders import BaseMessage

_BUDGET = 900


def _shown(call_style: CallStyle, rounds: Sequence[tuple[int, bool]], patch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """What each request shows: so many turns before it, summaries made before it or within it."""
    views: list[list[bytes]] = []
    numbers = random.Random(1)
    patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=numbers.getrandbits(128)))  # summaries are shown by their ids
    with open_memory(clock=FrozenClock(1_700_000_000)) as memory:
        session, start = memory.session("s"), 0
        for turns, flushes in rounds:
            messages: list[BaseMessage] = conversation(turns, start=start)
            session.add_messages(messages)
            start += turns
            if flushes:
                session.flush()
            context = told(call_style, session.context, "", max_tokens=_BUDGET)
            views.append([as_bytes(one) for one in context.messages])
    return views


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("rounds", [[(30, False)], [(12, True), (9, False), (9, False)], [(9, False), (20, True)]])
def test_a_view_seen_once_shows_what_one_seen_before_and_after_would(
    call_style: CallStyle, rounds: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    once = _shown(call_style, rounds, monkeypatch)
    monkeypatch.setattr(ladder, "_border_stays", lambda *_, **__: False)
    assert _shown(call_style, rounds, monkeypatch) == once


def test_where_nothing_can_be_taken_up_the_view_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    renewed = ladder._renewed

    def counted(*given: object, **chosen: object) -> object:
        seen.append(True)
        return renewed(*given, **chosen)

    monkeypatch.setattr(ladder, "_renewed", counted)
    _shown("sync", [(30, False)], monkeypatch)
    assert len(seen) == 1
