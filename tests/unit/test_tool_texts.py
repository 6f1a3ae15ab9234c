"""What tools of memory put into the request within their room."""

from __future__ import annotations

from langchain_tiered_memory.integrations.tool_texts import recalled
from langchain_tiered_memory.types.records import Hit


def hit(seq: int, text: str) -> Hit:
    return Hit(level=0, id=f"m{seq}", text=text, passage=text, score=1.0, seq=seq, at=1.7e9, track="main", role="user")


def counted(text: str) -> int:
    return len(text.split())


def test_a_short_hit_is_shown_behind_one_that_has_no_room() -> None:
    first, giant, short = hit(1, "harbour " * 300), hit(2, "crane " * 900), hit(3, "The code is 4471.")
    room = counted(recalled([first], max_tokens=5000, count=counted))
    said = recalled([first, giant, short], max_tokens=room + 60, count=counted)
    assert "The code is 4471." in said
    assert "crane" not in said
    assert "1 more found, but not shown for want of room" in said
