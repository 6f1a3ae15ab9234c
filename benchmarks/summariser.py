"""A stand-in for a model that summarises: the same for this memory and for every peer, and counted.

It finds the conversation's own sentences in whatever it is asked, however they are framed, and answers with those
that tell most, as many as the prompt asks for. So no method gains or loses by the wording of its prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth, telling
from langchain_tiered_memory.testing import ScriptedModel, in_parts
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.protocols import TokenCounter

AIM = re.compile(r"Aim at (\d+) tokens")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_FILLED = 0.95  # of the size asked for
_BULLET_TOKENS = 3
_HEADING_TOKENS = 4
_BEGINNING_CHARS = 12  # few sentences share so many; shorter ones are looked for one by one
_SHARE = 0.5  # of what it read, where the prompt names no size


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the model."""

    prompt: str
    read_tokens: int
    written_tokens: int


class KnownSentences:
    """Finds those of many sentences that a text has, in one walk over the text: by how each begins."""

    def __init__(self, known: Iterable[str]) -> None:
        self._numbers = {sentence: number for number, sentence in enumerate(known)}
        self._short: list[str] = []
        self._by_beginning: dict[str, list[str]] = {}
        for sentence in self._numbers:
            if len(sentence) < _BEGINNING_CHARS:
                self._short.append(sentence)
            else:
                self._by_beginning.setdefault(sentence[:_BEGINNING_CHARS], []).append(sentence)

    def found_in(self, text: str) -> list[str]:
        """The sentences that stand somewhere in `text`, by where they stand first."""
        places = {sentence: place for sentence in self._short if (place := text.find(sentence)) >= 0}
        for place in range(len(text) - _BEGINNING_CHARS + 1):
            for sentence in self._by_beginning.get(text[place : place + _BEGINNING_CHARS], ()):
                if sentence not in places and text.startswith(sentence, place):
                    places[sentence] = place
        return sorted(places, key=lambda sentence: (places[sentence], self._numbers[sentence]))


class Summariser:
    """Summarises one conversation.

    Args:
        messages: The conversation; its sentences are what can be quoted.
        counter: Counts what is read and written.
        most_tokens: Longest answer where a prompt names no size; `share` of what it read, if that is less.
        share: See above.
    """

    def __init__(
        self, messages: Iterable[BaseMessage], *, counter: TokenCounter, most_tokens: int, share: float = _SHARE
    ) -> None:
        said = (sentence for message in messages for sentence in sentences(str(message.text)))
        self._tokens = {sentence: counter.count_text(sentence) for sentence in dict.fromkeys(said)}
        self._sentences = KnownSentences(self._tokens)
        self._counter = counter
        self._most_tokens = most_tokens
        self._share = share
        self.calls: list[Call] = []
        self.model = ScriptedModel(
            answers=self._answer, custom_get_token_ids=lambda text: [0] * counter.count_text(text)
        )

    @property
    def read_tokens(self) -> int:
        """Of all prompts together."""
        return sum(call.read_tokens for call in self.calls)

    @property
    def written_tokens(self) -> int:
        """Of all answers together."""
        return sum(call.written_tokens for call in self.calls)

    def _answer(self, messages: Sequence[BaseMessage]) -> str:
        prompt = "\n".join(str(message.text) for message in messages)
        several = in_parts(messages, self._summary)
        answer = several if several is not None else self._summary(prompt)
        self.calls.append(
            Call(
                prompt=prompt,
                read_tokens=sum(self._counter.count_message(message) for message in messages),
                written_tokens=self._counter.count_text(answer),
            )
        )
        return answer

    def _summary(self, prompt: str) -> str:
        found = self._sentences.found_in(prompt)
        headings = HEADING.findall(prompt)[:2] or ["Summary"]
        asked = AIM.search(prompt)
        if asked:
            room = int(asked[1]) * _FILLED
        else:
            room = min(self._most_tokens, self._share * sum(self._tokens[sentence] for sentence in found))
        room -= _HEADING_TOKENS * len(headings)
        units = [Unit(sentence, "point", 0, self._tokens[sentence], weight=telling(sentence)) for sentence in found]
        chosen: list[int] = []
        for index in in_order_of_worth(units):
            taken = units[index].tokens + _BULLET_TOKENS
            if taken <= room or not chosen:
                chosen.append(index)
                room -= taken
        lines = [f"- {units[index].text}" for index in sorted(chosen)] or ["- Nothing of note was said."]
        if len(headings) > 1:
            return "\n".join([f"## {headings[0]}", lines[0], f"## {headings[1]}", *lines[1:]])
        return "\n".join([f"## {headings[0]}", *lines])
