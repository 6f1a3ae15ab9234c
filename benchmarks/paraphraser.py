"""A stand-in for a model that summarises in its own words, and loses a little each time: as real ones do.

It reads perfectly and writes imperfectly. In whatever it is asked it finds the sentences that state a planted fact,
framed however they are; of several values of one subject it takes the one that is said last. Then it writes: as much as
the prompt asks for, or as much as it read, up to a bound. It leaves each fact out with a fixed chance, says the rest in
other words, and gives a fifth of its room to what was merely chatted. Where there is no room for all, chance decides,
and what was said at the beginning and at the end has the better odds.

What that means: whoever tells a fact on from summary to summary loses it in the end, and one that was rewritten twice
survived twice, whoever asked. The model cannot know whose prompt it reads: it looks for facts alone, and does not obey
instructions either (it repeats what a prompt says need not be repeated). Chance comes from the seed, the subject and
the prompt, so a run can be repeated, and the same prompt gets the same answer. Real models lose in other ways too: they
round figures, mix up subjects, and lose more of what stands in the middle. None of that is here.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from benchmarks.summariser import AIM, HEADING, Summariser
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.conversations import Conversation, PlantedFact
    from langchain_tiered_memory.protocols import TokenCounter

_FORMS = (
    "{s} stands at {v}",
    "for the {s}, {v} was named",
    "{v} goes with the {s}",
    "as to the {s}, they settled on {v}",
    "it was said that the {s} has {v}",
    "{s}: {v}",
)
FORGETS = 0.05
"""Chance that a fact is left out although there is room. A guess, and a mild one: at this rate half of what a summary
says is left after 14 rewrites."""
_CHAT_SHARE = 0.2
"""Of its room, for what was merely chatted, at least."""
_EDGE_ODDS = 1.5
"""How much likelier the first and the last of what was read are kept where there is no room for all."""
_EDGE = 0.2  # of what was read, at each end
_FILLED = 0.95  # of the size asked for
_LINE_TOKENS = 3
_HEADING_TOKENS = 4
_WIDEST = 2**64


class Paraphraser(Summariser):
    """Summarises one conversation in other words.

    Args:
        conversation: Its facts are what it looks for.
        counter: Counts what is read and written.
        most_tokens: Longest answer where a prompt names no size.
        seed: Of its chance.
        forgets: Chance that a fact is left out of one answer.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        counter: TokenCounter,
        most_tokens: int,
        seed: int = 0,
        forgets: float = FORGETS,
    ) -> None:
        super().__init__(conversation.messages, counter=counter, most_tokens=most_tokens)
        self._forgets = forgets
        self._seed = seed
        self._by_subject: dict[str, list[PlantedFact]] = {}
        for turn in conversation.turns:
            if turn.fact is not None:
                self._by_subject.setdefault(turn.fact.subject.casefold(), []).append(turn.fact)

    def _summary(self, prompt: str) -> str:
        stated, chat = self._read(prompt)
        asked = AIM.search(prompt)
        if asked:
            room = int(asked[1]) * _FILLED
        else:
            read = [sentence for _, sentence in stated.values()] + chat
            room = float(min(self._most_tokens, sum(self._counter.count_text(one) + _LINE_TOKENS for one in read)))
            room += _HEADING_TOKENS
        headings = HEADING.findall(prompt)[:2] or ["Summary"]
        room -= _HEADING_TOKENS * len(headings)
        told = [self._reworded(stated[subject][0], prompt) for subject in self._kept(list(stated), prompt)]
        lines = self._within(told, room * (1 - _CHAT_SHARE))
        room -= sum(self._counter.count_text(line) + _LINE_TOKENS for line in lines)
        lines += self._within([f"They also spoke of this: {said}" for said in chat], room)
        lines = [f"- {line}" for line in lines] or ["- Nothing of note was said."]
        if len(headings) > 1:
            return "\n".join([f"## {headings[0]}", lines[0], f"## {headings[1]}", *lines[1:]])
        return "\n".join([f"## {headings[0]}", *lines])

    def _read(self, prompt: str) -> tuple[dict[str, tuple[PlantedFact, str]], list[str]]:
        """What a text states of each subject, with the sentence that states it last, and everything else in it."""
        stated: dict[str, tuple[PlantedFact, str]] = {}
        chat: list[str] = []
        for sentence in sentences(prompt):
            folded = sentence.casefold()
            found = [fact for subject, facts in self._by_subject.items() if subject in folded for fact in facts]
            held = [fact for fact in found if fact.value.casefold() in folded]
            for fact in held:
                known = stated.pop(fact.subject, None)
                newer = known is None or known[1] != sentence or known[0].number < fact.number
                stated[fact.subject] = (fact, sentence) if newer or known is None else known
            if not held and sentence in self._tokens:
                chat.append(sentence)
        return stated, chat

    def _kept(self, subjects: Sequence[str], prompt: str) -> list[str]:
        """Those that are not forgotten, the likeliest first."""
        odds: dict[str, float] = {}
        edge = _EDGE * len(subjects)
        for place, subject in enumerate(subjects):
            if self._chance("forgets", subject, prompt) < self._forgets:
                continue
            weight = _EDGE_ODDS if min(place, len(subjects) - 1 - place) < edge else 1.0
            odds[subject] = self._chance("keeps", subject, prompt) ** (1 / weight)
        return sorted(odds, key=lambda subject: -odds[subject])

    def _reworded(self, fact: PlantedFact, prompt: str) -> str:
        form = _FORMS[int(self._chance("words", fact.subject, prompt) * len(_FORMS))]
        text = form.format(s=fact.subject, v=fact.value)
        return f"{text}."

    def _within(self, lines: Sequence[str], room: float) -> list[str]:
        chosen: list[str] = []
        for line in lines:
            room -= self._counter.count_text(line) + _LINE_TOKENS
            if room < 0:
                break
            chosen.append(line)
        return chosen

    def _chance(self, *of: str) -> float:
        """A figure from 0 to 1 that follows from the seed and the given texts."""
        named = "\x1f".join([str(self._seed), *of]).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(named, digest_size=8).digest()) / _WIDEST
