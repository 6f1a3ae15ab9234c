"""What is played for the cost curve: requests one after the other, with what should be in view before some of them.

An agent's run is a transcript with its probes. A chat is a conversation with annotated questions and facts planted in
it (`planted_talk`): the questions are asked after its end, one after the other, as the user's next messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from benchmarks.conversations import Conversation as Talk
from benchmarks.conversations import PlantedFact, Turn
from benchmarks.conversations import conversation as made_up_talk
from benchmarks.planted_talk import with_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.agent_transcripts import Probe, Transcript
    from langchain_tiered_memory.conversations import Conversation, Question

Kind: TypeAlias = Literal["agent", "chat"]

_BEGINS_AT = 1_704_103_200.0  # 2024-01-01 10:00 UTC
_SECONDS_BETWEEN = 20.0
_FACTS_LOOKED_FOR = 10
"""Requests of a chat that are searched for its facts: a single one would tell when its party last condensed."""
_FACTS_FROM = 0.25
"""Of a chat, from where on its facts are looked for."""
_FACTS_EACH = 6
"""Messages to a planted fact: a chat of two hundred long messages should hold some thirty."""
_UNKNOWN = "That is all I can say about it."
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What answers a question."""

    turns: tuple[str, ...]
    """Texts of the messages, as `words_of` gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request."""

    arrived: tuple[tuple[BaseMessage, float], ...]
    """What the user and the tools said since the last one, with times."""
    answer: AIMessage
    at: float
    """When the answer is written."""
    probes: tuple[Probe, ...] = ()
    evidence: Evidence | None = None
    facts: tuple[PlantedFact, ...] = ()
    """That hold now, where they are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """An agent's run or a chat."""

    name: str
    kind: Kind
    steps: tuple[Step, ...]
    talk: Talk
    """All that is said in it, with the facts: what a stand-in for a model may quote."""


def run_of_transcript(transcript: Transcript) -> Run:
    """A request before each of the agent's messages."""
    by_place: dict[int, list[Probe]] = {}
    for probe in transcript.probes:
        by_place.setdefault(probe.at, []).append(probe)
    said = list(zip(transcript.messages, transcript.times, strict=True))
    places = [place for place, (message, _) in enumerate(said) if place and isinstance(message, AIMessage)]
    steps = [
        Step(arrived=arrived, answer=answer, at=at, probes=tuple(by_place.get(place, ())))
        for place, (arrived, answer, at) in zip(places, _requests(said), strict=True)
    ]
    return Run(name=transcript.name, kind="agent", steps=tuple(steps), talk=_talk(said))


def run_of_conversation(conversation: Conversation, *, questions: int, seed: int = 0) -> Run:
    """A conversation with facts planted in it, then questions about it: at most so many, spread over all it has.

    Whoever spoke first is the user, everybody else the assistant; what one of them said in a row is one message.
    """
    first = conversation.turns[0]
    said: list[tuple[BaseMessage, float]] = []
    for number, turn in enumerate(conversation.turns):
        by_user = (turn.message.type, turn.message.name) == (first.message.type, first.message.name)
        at = turn.at.timestamp() if turn.at else _BEGINS_AT + _SECONDS_BETWEEN * number
        said.append(((HumanMessage if by_user else AIMessage)(str(turn.message.text) or "...", id=f"m{number}"), at))
    planted = with_facts(said, seed=seed, facts_each=_FACTS_EACH)
    texts = {turn.id: str(held.message.text) for turn, held in zip(conversation.turns, planted, strict=True)}
    countable = [question for question in conversation.questions if not (question.left_out or question.adversarial)]
    chosen = countable[:: max(1, -(-len(countable) // questions))] if questions else []
    return _chat(conversation.id, planted, [_asked(question, texts) for question in chosen])


def made_up_chat(messages: int, *, seed: int = 0) -> Run:
    """A made-up conversation, and for each of some of its facts a question that the message with it answers."""
    talk = made_up_talk(messages, seed=seed)
    facts = talk.facts_until(messages)[:3]
    asked = [
        (f"What do you know about the {fact.subject}?", fact.value, (str(talk.turns[fact.number].message.text),))
        for fact in facts
    ]
    return _chat(f"made-up-{messages}", talk.turns, asked)


def words_of(text: str) -> str:
    """The words of a text, as evidence is compared: whatever it is framed, fenced or broken into lines with."""
    return " ".join(_WORD.findall(text.casefold()))


def _asked(question: Question, texts: dict[str, str]) -> tuple[str, str, tuple[str, ...]]:
    return question.text, question.answer or _UNKNOWN, tuple(texts[turn] for turn in question.evidence)


def _chat(name: str, turns: Sequence[Turn], asked: Sequence[tuple[str, str, tuple[str, ...]]]) -> Run:
    said, number_of = _joined(turns)
    requests = list(_requests(said))
    from_request = round(_FACTS_FROM * len(requests))
    apart = max(1, (len(requests) - from_request) // _FACTS_LOOKED_FOR)
    looked_at = set(range(len(requests) - 1, from_request, -apart))
    talk = Talk(turns=tuple(turns))
    steps = [
        Step(
            arrived=arrived,
            answer=answer,
            at=at,
            facts=tuple(talk.facts_until(number_of[answer.id])) if place in looked_at else (),
        )
        for place, (arrived, answer, at) in enumerate(requests)
    ]
    last = said[-1][1]
    unanswered = _unanswered(said)
    for number, (question, answered, evidence) in enumerate(asked):
        at = last + _SECONDS_BETWEEN * (2 * number + 1)
        steps.append(
            Step(
                arrived=((*unanswered,) if number == 0 else ()) + ((HumanMessage(question, id=f"q{number}"), at),),
                answer=AIMessage(answered, id=f"a{number}"),
                at=at + _SECONDS_BETWEEN,
                evidence=Evidence(turns=tuple(words_of(text) for text in evidence)),
            )
        )
    return Run(name=name, kind="chat", steps=tuple(steps), talk=talk)


def _joined(turns: Sequence[Turn]) -> tuple[list[tuple[BaseMessage, float]], dict[str | None, int]]:
    """Messages with times, none after another of the same side; and how many turns were before each, by its id."""
    said: list[tuple[BaseMessage, float]] = []
    number_of: dict[str | None, int] = {}
    for number, turn in enumerate(turns):
        if said and said[-1][0].type == turn.message.type:
            before = said[-1][0]
            text = f"{before.text}\n{turn.message.text}"
            said[-1] = (before.model_copy(update={"content": text}), turn.at)
        else:
            number_of[turn.message.id] = number
            said.append((turn.message, turn.at))
    return said, number_of


def _requests(
    said: Sequence[tuple[BaseMessage, float]],
) -> Iterator[tuple[tuple[tuple[BaseMessage, float], ...], AIMessage, float]]:
    """What came in, and the answer with its time; an answer at the very beginning comes in as well."""
    waiting: list[tuple[BaseMessage, float]] = []
    for place, (message, at) in enumerate(said):
        if place and isinstance(message, AIMessage):
            yield tuple(waiting), message, at
            waiting = []
        else:
            waiting.append((message, at))


def _unanswered(said: Sequence[tuple[BaseMessage, float]]) -> list[tuple[BaseMessage, float]]:
    """What nobody answered at the end."""
    last = max((place for place, (message, _) in enumerate(said) if isinstance(message, AIMessage)), default=-1)
    return list(said[last + 1 :])


def _talk(said: Sequence[tuple[BaseMessage, float]]) -> Talk:
    return Talk(turns=tuple(Turn(message=message, at=at) for message, at in said))
