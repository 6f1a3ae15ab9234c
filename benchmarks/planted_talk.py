"""Facts planted in real talk: conversations from files, with a sentence of ours in every sixteenth message.

Another generator than `conversations`, with other subjects, values and wordings, so that what was made while looking at
one is judged on the other. What surrounds the facts was said by people: it has names, figures and decisions of its own,
and nothing here knows which of them matter. So what a context states is a share of what was planted, never of all that
was worth telling.
"""

# ruff: noqa: SIM905 - a list literal of these would take a line for each word

from __future__ import annotations

import random
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks.conversations import Conversation, FactKind, PlantedFact, Turn
from langchain_tiered_memory.conversations.reading import read_conversations
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_CORRECTED: Final = 0.15
_BY_ASSISTANT: Final = 0.15
_CORRECTABLE: Final = 20
_MOST_CHARS: Final = 6_000
"""Longest message used: a chat has few longer ones, and a budget of 4,000 tokens should hold several messages."""

_OWNERS: Final = (
    "Marta's,Grandpa's,Mrs. Osei's,my brother's,Lena's,our neighbour's,Tom's,my aunt's,Priscilla's,the landlord's,"
    "Uncle Ade's,Ruben's,my flatmate's,Hanne's,the twins',Dr. Lim's,Vikram's,my boss's,Noor's,Joaquin's"
).split(",")
_MATTERS: Final = (
    "hip operation,visa,driving test,boat licence,scholarship,allergy test,moped,aquarium,pension claim,guitar,"
    "flat in Leith,wedding dress,tax return,sourdough starter,telescope,physio,passport,sister's baptism,hamster,"
    "laptop repair,choir solo,thesis defence,staging cluster,podcast feed,nightly backup,allotment,violin lessons,"
    "insulin pump,e-bike,storage unit"
).split(",")
_PEOPLE: Final = (
    "Bjarne Holt,Dr. Amara Nkemelu,Siobhan Kearney,Piet van Aalst,Mei-Ling Zhou,Tarek Haddad,Ewa Sobczak,Callum "
    "Ferris,Odile Marchetti,Ravi Subramanian,Greta Lindahl,Moses Achieng"
).split(",")
_PLACES: Final = "Varna,Kuopio,Oaxaca,Penzance,Tromsø,Ljubljana,Dunedin,Salto,Gdynia,Matsue,Figueres,Nanaimo".split(",")
_CHOICES: Final = (
    "matte varnish,oat milk,the early shift,a second-hand pram,linseed oil,window seats,the low-salt diet,a paper "
    "ledger,cork flooring,the smaller venue,green tea,a monthly pass,plain wrapping,the two-year contract"
).split(",")
_MONTHS: Final = "January,February,March,April,May,June,July,August,September,October,November,December".split(",")
_FORMS: Final[dict[FactKind, Sequence[str]]] = {
    "name": (
        "oh and {v} is handling {s} now",
        "I finally got hold of {v} about {s}!",
        "If you ever need anything for {s}, talk to {v}.",
        "{v} has been so kind about {s}",
        "Guess who does {s}: {v}.",
        "They gave {s} to {v}, apparently.",
    ),
    "number": (
        "{s} will set us back {v}, ouch",
        "{s} needs {v} in the end.",
        "Turns out it's {v} for {s}",
        "We were quoted {v} for {s} yesterday.",
        "{v}!! that's what they want for {s}",
        "So far {s} has taken {v}.",
        "Doctor says {v} when it comes to {s}",
        "the appointment for {s} is on {v}",
        "{s} has to be done by {v}.",
    ),
    "path": (
        "the reference for {s} is {v}",
        "{s} is under {v} btw",
        "when you call about {s} give them {v}",
        "I saved everything for {s} as {v}",
        "You'll find {s} at {v}.",
        "Just type {v} for {s} and it opens",
    ),
    "decision": (
        "we're doing {v} for {s}, no more discussions lol",
        "I've settled on {v} as far as {s} goes.",
        "In the end it was {v} for {s}, and I'm glad.",
        "I'd pick {v} any day for {s}",
        "They talked me into {v} for {s}",
        "{s} is happening in {v}!",
        "We moved {s} to {v} after all.",
    ),
}
_CORRECTIONS: Final = (
    "wait no, {s} is {v}, not {o}",
    "I told you {o} for {s}, that was wrong, it's {v}",
    "Change of plan for {s}: {v} instead of {o}.",
    "So {s} went from {o} to {v} overnight.",
    "Forget {o}, it's {v} for {s} now.",
)


def planted_talk(folder: Path, messages: int, *, seed: int = 0, facts_each: int = 16) -> Conversation:
    """`messages` messages of the conversations in the files of `folder`, with a fact in every `facts_each`-th.

    Args:
        folder: Files that `tiered-memory eval` reads, at any depth.
        messages: How many; fewer where the files have no more.
        seed: Of the order of the conversations, and of what is planted where.
        facts_each: See above.

    Raises:
        FileNotFoundError: when no file there is a conversation.
    """
    chance = random.Random(seed)
    turns = _planted(islice(said_in(folder, chance), messages), chance, facts_each=facts_each)
    if not turns:
        msg = f"{folder} holds no conversations: name a folder with files that `tiered-memory eval` reads"
        raise FileNotFoundError(msg)
    return Conversation(turns=turns)


def with_facts(said: Iterable[tuple[BaseMessage, float]], *, seed: int = 0, facts_each: int = 16) -> tuple[Turn, ...]:
    """Messages with their times, and a fact in every `facts_each`-th of them on average."""
    return _planted(said, random.Random(seed), facts_each=facts_each)


def _planted(said: Iterable[tuple[BaseMessage, float]], chance: random.Random, *, facts_each: int) -> tuple[Turn, ...]:
    planter = _Planter(chance, facts_each=facts_each)
    return tuple(planter.planted(number, message, at) for number, (message, at) in enumerate(said))


def said_in(folder: Path, chance: random.Random) -> Iterator[tuple[BaseMessage, float]]:
    """Every message of every conversation, in an order of the conversations by chance; who speaks first is the user."""
    files = sorted(path for path in folder.rglob("*.json") if path.stem.upper() != path.stem)
    chance.shuffle(files)
    number, at = 0, 1_704_103_200.0
    for path in files:
        for one in read_conversations(path):
            first, began = one.turns[0], at
            for turn in one.turns:
                text = str(turn.message.text).strip()
                if not text or len(text) > _MOST_CHARS:
                    continue
                mine = (turn.message.type, turn.message.name) == (first.message.type, first.message.name)
                kind = HumanMessage if mine else AIMessage
                since = (turn.at - first.at).total_seconds() if turn.at and first.at else 0.0
                at = max(at + 1, began + since)
                yield kind(text, id=f"m{number}"), at
                number += 1


def with_sentence(message: BaseMessage, sentence: str, chance: random.Random) -> BaseMessage:
    """A message with a sentence more, somewhere between its own."""
    text = str(message.text)
    said = sentences(text)
    place = text.find(said[chance.randrange(len(said))]) if said else 0
    joint = "" if sentence.endswith((".", "!")) else chance.choice((".", "!", "\n", " :)"))
    begins = sentence[:1].upper() + sentence[1:]
    whole = f"{text[:place]}{begins}{joint}{'' if joint == chr(10) else ' '}{text[max(place, 0) :]}"
    return message.model_copy(update={"content": whole})


class _Planter:
    """Puts facts into messages."""

    def __init__(self, chance: random.Random, *, facts_each: int) -> None:
        self._chance = chance
        self._rate = 1 / facts_each
        self._subjects = [f"{owner} {matter}" for owner in _OWNERS for matter in _MATTERS]
        chance.shuffle(self._subjects)
        self._recent: deque[tuple[FactKind, str, str]] = deque(maxlen=_CORRECTABLE)

    def planted(self, number: int, message: BaseMessage, at: float) -> Turn:
        """The message as a turn, by chance with a fact between its sentences."""
        by_user = message.type == "human"
        rate = 2 * self._rate * (1 - _BY_ASSISTANT if by_user else _BY_ASSISTANT)
        if self._chance.random() >= rate or not self._subjects:
            return Turn(message=message, at=at)
        fact, sentence = self._fact(number, may_correct=by_user)
        return Turn(message=with_sentence(message, sentence, self._chance), at=at, fact=fact)

    def _fact(self, number: int, *, may_correct: bool) -> tuple[PlantedFact, str]:
        if may_correct and self._recent and self._chance.random() < _CORRECTED:
            place = self._chance.randrange(len(self._recent))
            kind, subject, old = self._recent[place]
            value = self._value(kind)
            self._recent[place] = (kind, subject, value)
            sentence = self._chance.choice(_CORRECTIONS).format(s=subject, v=value, o=old)
            return PlantedFact(kind="correction", subject=subject, value=value, number=number), sentence
        kind = self._chance.choice(tuple(_FORMS))
        subject, value = self._subjects.pop(), self._value(kind)
        self._recent.append((kind, subject, value))
        sentence = self._chance.choice(_FORMS[kind]).format(s=subject, v=value)
        return PlantedFact(kind=kind, subject=subject, value=value, number=number), sentence

    def _value(self, kind: FactKind) -> str:
        chance = self._chance
        if kind == "name":
            return chance.choice(_PEOPLE)
        if kind == "number":
            return chance.choice(
                (
                    f"£{chance.randint(60, 4000)}",
                    f"{chance.randint(3, 90)} mg",
                    f"{chance.randint(2, 28)} {chance.choice(_MONTHS)}",
                    f"{chance.randint(2, 40)} weeks",
                    f"{chance.randint(1, 9)},{chance.randint(100, 999)} kr",
                    f"{chance.randint(11, 99)}.{chance.randint(1, 9)} GB",
                )
            )
        if kind == "path":
            return chance.choice(
                (
                    f"QX-{chance.randint(1000, 9999)}-{chance.choice('BDFK')}",
                    f"OPS-{chance.randint(100, 9999)}",
                    f"docs/{chance.choice(_MONTHS).lower()}/{chance.randint(10, 99)}-notes.odt",
                    f"v{chance.randint(1, 9)}.{chance.randint(0, 30)}.{chance.randint(0, 9)}",
                    f"locker {chance.randint(10, 999)}",
                )
            )
        return chance.choice((*_CHOICES, *_PLACES))
