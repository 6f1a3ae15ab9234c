"""A flush whose time is over stops behind the piece in hand, says that more is due, and is gone on with by the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory, summaries_of

if TYPE_CHECKING:
    from pathlib import Path

_MOST_CALLS = 60
"""More than there are pieces of work: a flush that gets nowhere would be called for ever."""


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("whose", ["session", "all"])
def test_a_flush_stops_between_two_chunks_when_its_time_is_over(
    call_style: CallStyle, whose: str, tmp_path: Path
) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(20))
        flush = memory.flush if whose == "all" else session.flush
        first = told(call_style, flush, timeout=0)
        assert first.summaries == 1
        assert first.pending
        made, last = [first.summaries], first
        while last.pending:
            last = told(call_style, flush, timeout=0)
            made.append(last.summaries)
            assert len(made) < _MOST_CALLS
        assert set(made) <= {0, 1}
        found = [(one.level, one.text) for one in summaries_of(session)]
        assert told(call_style, flush).summaries == 0
        assert sum(made) == len(found)
    with open_memory(tmp_path / "at_once.db") as memory:
        session = memory.session("s")
        session.add_messages(conversation(20))
        session.flush()
        assert sorted(found) == sorted((one.level, one.text) for one in summaries_of(session))


def test_no_session_is_begun_and_no_further_batch_embedded_when_time_is_over(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as memory:
        for name in ("one", "two"):
            memory.session(name).add_messages(conversation(20))
        report = memory.flush(timeout=0)
        assert report.summaries == 1
        assert report.pending >= 2 + 40 - report.vectors
        assert sum(len(summaries_of(memory.session(name))) for name in ("one", "two")) == 1
        rest = memory.flush()
        assert not rest.pending
        assert rest.summaries + 1 == sum(len(summaries_of(memory.session(name))) for name in ("one", "two"))
        assert memory.verify().problems == ()
