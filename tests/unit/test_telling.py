from typing import Any

from langchain_tiered_memory.across.searching import told_of_user
from langchain_tiered_memory.types.records import Fact, Hit

WORDED: Any = {
    "of_fact": lambda one: one.text, "of_quote": lambda _, shown: shown, "count": lambda text: len(text.split())
}  # fmt: skip


def hit(words: int, said: str) -> Hit:
    passage = " ".join(f"word{number}" for number in range(words))
    return Hit(
        level=0,
        id="m1",
        text=f"{passage} {said}",
        passage=passage,
        score=1.0,
        seq=1,
        at=0.0,
        track="main",
        role="user",
        kind=None,
        name=None,
        tokens=words + len(said.split()),
        session_id="other",
    )


def test_a_fact_is_told_by_itself_or_by_its_whole_message() -> None:
    said = "I live in Porto"
    fact = Fact(kind="statement", text=said, seq=1, at=0.0, by="user", id="f1", message_ids=("m1",), session_id="other")
    for words in range(0, 200, 7):
        for room in (40, 80, 120, 200):
            facts, quotes = told_of_user([fact], [hit(words, said)], room=room, facts_room=room // 4, **WORDED)
            lines = [line for _, line in (*facts, *quotes)]
            assert sum(said in line for line in lines) == 1, (words, room)
            assert sum(len(line.split()) + 1 for line in lines) <= room
