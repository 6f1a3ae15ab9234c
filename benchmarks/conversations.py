"""Made-up conversations with planted facts: names, figures, paths, decisions and corrections amid small talk.

Everything follows from a seed. A fact is a subject and a value; it counts as stated where both stand close together,
whoever says it and however. A corrected value counts no longer: only the last one does.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks import vocabulary as words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FactKind: TypeAlias = Literal["name", "number", "path", "decision", "correction", "life", "work", "spare time", "any"]

_BEGINS_AT = 1_704_103_200.0  # 2024-01-01 10:00 UTC
_SECONDS_BETWEEN = (15, 90)
_NEW_SITTING_EACH = 40  # pairs of messages, on average
_PAUSE_SECONDS = (5 * 3600, 40 * 3600)
_NEAR_CHARS = 160
_BY_ASSISTANT = 0.2  # of the facts
_CORRECTED = 0.2  # of the facts are corrections of earlier ones
_CORRECTABLE = 40  # latest facts that may still be corrected
_USER_SENTENCES = (1, 2)
_ASSISTANT_SENTENCES = (1, 3)
_FORMS: dict[FactKind, Sequence[str]] = {
    "name": words.NAME_FORMS,
    "number": words.NUMBER_FORMS,
    "path": words.PATH_FORMS,
    "decision": words.DECISION_FORMS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedFact:
    """Something that a good memory should still say."""

    kind: FactKind
    subject: str
    value: str
    number: int
    """Which message says it, counted from 0."""
    by_itself: bool = False
    """Whether its value says it, without its subject beside it: in words that nothing else has."""

    def stated_in(self, text: str) -> bool:
        """Whether value and subject stand within a line or two of each other in `text` (casefolded)."""
        # A record names the speaker: "Ben's boss" where he says "my boss".
        value = self.value.casefold()
        subject = "" if self.by_itself else self.subject.casefold().removeprefix("my ")
        start = text.find(value)
        while start >= 0:
            if subject in text[max(0, start - _NEAR_CHARS) : start + len(value) + _NEAR_CHARS]:
                return True
            start = text.find(value, start + 1)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message, when it was said, and the fact in it."""

    message: BaseMessage
    at: float
    fact: PlantedFact | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A finished conversation."""

    turns: tuple[Turn, ...]

    @property
    def messages(self) -> list[BaseMessage]:
        """What was said."""
        return [turn.message for turn in self.turns]

    def facts_until(self, number: int) -> list[PlantedFact]:
        """The facts that hold after the first `number` messages."""
        holding: dict[str, PlantedFact] = {}
        for turn in self.turns[:number]:
            if turn.fact is not None:
                holding[turn.fact.subject] = turn.fact
        return list(holding.values())


def stated(facts: Iterable[PlantedFact], text: str) -> int:
    """How many of `facts` a text states."""
    folded = text.casefold()
    return sum(fact.stated_in(folded) for fact in facts)


def shown_text(messages: Iterable[BaseMessage]) -> str:
    """What a model would read."""
    return "\n".join(str(message.text) for message in messages)


def conversation(messages: int, *, seed: int = 0, facts_each: int = 6) -> Conversation:
    """A conversation of `messages` messages with a fact in every `facts_each`-th, on average."""
    return Conversation(turns=tuple(islice(turns(seed=seed, facts_each=facts_each), messages)))


def turns(*, seed: int = 0, facts_each: int = 6) -> Iterator[Turn]:
    """An endless conversation, user and assistant in turn; the same seed gives the same one."""
    speaker = _Speaker(random.Random(seed))
    number, at = 0, _BEGINS_AT
    while True:
        by_user = number % 2 == 0
        rate = (1 - _BY_ASSISTANT if by_user else _BY_ASSISTANT) * 2 / facts_each
        fact, text = speaker.says(number, by_user=by_user, fact_rate=rate)
        kind = HumanMessage if by_user else AIMessage
        yield Turn(message=kind(text, id=f"m{number}"), at=at, fact=fact)
        at += speaker.waits(by_user=by_user)
        number += 1


class _Speaker:
    """Says the next message."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._subjects = [f"{adjective} {noun}" for adjective in words.ADJECTIVES for noun in words.NOUNS]
        chance.shuffle(self._subjects)
        self._used = 0
        self._recent: deque[tuple[FactKind, str, str]] = deque(maxlen=_CORRECTABLE)

    def waits(self, *, by_user: bool) -> float:
        """Seconds until the next message."""
        if not by_user and self._chance.random() < 1 / _NEW_SITTING_EACH:
            return float(self._chance.randint(*_PAUSE_SECONDS))
        return float(self._chance.randint(*_SECONDS_BETWEEN))

    def says(self, number: int, *, by_user: bool, fact_rate: float) -> tuple[PlantedFact | None, str]:
        """A fact or none, and the whole text."""
        least, most = _USER_SENTENCES if by_user else _ASSISTANT_SENTENCES
        pool = words.USER_CHATTER if by_user else words.ASSISTANT_CHATTER
        said = [self._filled(form) for form in self._chance.sample(pool, self._chance.randint(least, most))]
        fact: PlantedFact | None = None
        if self._chance.random() < fact_rate:
            fact, sentence = self._states(number, may_correct=by_user)
            said.insert(self._chance.randint(0, len(said)), sentence)
        return fact, " ".join(said)

    def _filled(self, form: str) -> str:
        choose = self._chance.choice
        return form.format(
            mood=choose(words.MOODS),
            place=choose(words.PLACES),
            food=choose(words.FOODS),
            things=choose(words.THINGS),
            material=choose(words.MATERIALS),
        )

    def _states(self, number: int, *, may_correct: bool) -> tuple[PlantedFact, str]:
        if may_correct and self._recent and self._chance.random() < _CORRECTED:
            place = self._chance.randrange(len(self._recent))
            kind, subject, old = self._recent[place]
            value = self._value(kind)
            self._recent[place] = (kind, subject, value)
            sentence = self._chance.choice(words.CORRECTION_FORMS).format(s=subject, v=value, o=old)
            return PlantedFact(kind="correction", subject=subject, value=value, number=number), _capital(sentence)
        kind = self._chance.choice(tuple(_FORMS))
        subject, value = self._subject(), self._value(kind)
        self._recent.append((kind, subject, value))
        sentence = self._chance.choice(_FORMS[kind]).format(s=subject, v=value)
        return PlantedFact(kind=kind, subject=subject, value=value, number=number), _capital(sentence)

    def _subject(self) -> str:
        """One that was not spoken of before."""
        again, place = divmod(self._used, len(self._subjects))
        self._used += 1
        return self._subjects[place] + (f" {again + 1}" if again else "")

    def _value(self, kind: FactKind) -> str:
        choose = self._chance.choice
        if kind == "name":
            return f"{choose(words.FIRST_NAMES)} {choose(words.LAST_NAMES)}"
        if kind == "number":
            return f"{self._chance.randint(110, 99_999)} {choose(words.UNITS)}"
        if kind == "path":
            folders = "/".join(self._chance.sample(words.FOLDERS, 2))
            return f"{folders}/{choose(words.STEMS)}_{self._chance.randint(10, 999)}.{choose(words.SUFFIXES)}"
        return f"{choose(words.MATERIALS)} {choose(words.THINGS)}"


def _capital(sentence: str) -> str:
    """With a capital letter, unless it begins with a path."""
    first = sentence.split(" ", 1)[0]
    return sentence if "/" in first else sentence[:1].upper() + sentence[1:]
