"""Conversations for tests of the measuring."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from langchain_tiered_memory.conversations import Conversation, Question, Sitting, Turn
from langchain_tiered_memory.conversations.turns import spoken
from langchain_tiered_memory.evaluation.measure import PricedTurns, priced

if TYPE_CHECKING:
    from collections.abc import Sequence

START = dt.datetime(2024, 3, 15, tzinfo=dt.UTC)


def conversation(
    *sittings: Sequence[str], questions: Sequence[Question] = (), speakers: Sequence[str] = ("Ann", "Bo")
) -> Conversation:
    """Sittings of texts, a day apart, said in turn by `speakers`; the turns' ids are `t0`, `t1` and so on."""
    turns: list[Turn] = []
    for number, texts in enumerate(sittings):
        for text in texts:
            turn_id, speaker = f"t{len(turns)}", speakers[len(turns) % len(speakers)]
            turns.append(
                Turn(
                    id=turn_id,
                    speaker=speaker,
                    text=text,
                    message=spoken(speaker, text, message_id=turn_id),
                    at=START + dt.timedelta(days=number, seconds=len(turns)),
                    sitting=number,
                )
            )
    return Conversation(
        id="c",
        turns=tuple(turns),
        sittings=tuple(
            Sitting(id=str(number), date=f"day {number}", at=START + dt.timedelta(days=number))
            for number in range(len(sittings))
        ),
        questions=tuple(questions),
    )


def question(
    text: str, *evidence: str, number: int = 0, adversarial: bool = False, unresolved: tuple[str, ...] = ()
) -> Question:
    return Question(
        id=f"q{number}",
        text=text,
        answer=None,
        evidence=evidence,
        category="5 adversarial" if adversarial else "1 fact",
        adversarial=adversarial,
        unresolved=unresolved,
    )


def count_words(text: str) -> int:
    """Ten tokens a word: the methods stop trying where fewer than eight are left."""
    return 10 * len(text.split())


def priced_words(*sittings: Sequence[str]) -> PricedTurns:
    """A conversation priced by words: ten for each and for the speaker, twenty for a date line."""
    return priced(conversation(*sittings), count_words)
