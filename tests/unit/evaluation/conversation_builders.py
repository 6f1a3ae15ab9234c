"""Conversations for tests of the measuring."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from benchmarks.evidence import PricedTurns, priced
from langchain_tiered_memory.conversations import Conversation, Question, Sitting, Turn
from langchain_tiered_memory.conversations.turns import spoken

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


SITTINGS = (
    ["I moved to Porto in spring.", "How is the flat?", "Small, but it has a balcony over the river."],
    ["My sister Vera keeps bees now.", "How many hives?", "Seven, on the roof of the library."],
    [f"Nothing much happened on day {day}, only rain and work." for day in range(60)],
)
QUESTIONS = (
    question("Where are the beehives of Vera?", "t3", "t5", number=0),
    question("Which city did she move to?", "t0", number=1),
    question("Who keeps pigs?", "t3", number=2, adversarial=True),
    question("What call_style is the door?", number=3),
    question("Which boat?", number=4, unresolved=("t99",)),
)


def asked() -> Conversation:
    """Questions of every kind about a few facts in front of a long talk about nothing."""
    return conversation(*SITTINGS, questions=QUESTIONS)
