"""A ready section: what other sessions of the same user say, facts that hold for the user first.

It is off until it is registered, and empty where a handle does not say whose it is. Every line says that it comes from
another conversation, and from when; the context's account names session, message and fact of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.extensions import SectionText
from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.rendering import day, speaker_label
from langchain_tiered_memory.text.truncation import head_and_tail
from langchain_tiered_memory.types.contexts import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.extensions import SectionQuestion
    from langchain_tiered_memory.types.records import Fact, Hit

_KNOWN = "What this user said of themself in other conversations with you, with the day:"
_QUOTED = "From other conversations with this user, which may be about something else:"
_LOOKED_AT = 40
"""Messages of other sessions that are looked at for one question."""
_LABEL_TOKENS = 20
"""Of a quoted line, for its day and speaker."""
_ONE_SHARE = 0.34
"""Of the section, that one message may take: longer ones are shown by the passage that answers, cut."""
_LEAST_TOKENS = 24
"""Less of a message says nothing."""


@dataclass(frozen=True, slots=True)
class OtherSessions:
    """Tells what the user's other sessions say. Register it: `memory.sections.register(OtherSessions())`."""

    share: float = 0.15
    """Of a context, the most that it takes."""
    facts_share: float = 0.4
    """Of that, for facts that hold for the user; the rest, and what they leave, is for messages that answer."""
    name: str = "other_sessions"
    crosses_sessions: bool = True
    """What was shown is let go of as soon as another session of the user changes."""

    def render(self, question: SectionQuestion) -> SectionText | None:
        """The facts, those that the question is about first, then the messages that answer it."""
        shown = _Lines(question)
        known = {one.id: one for one in question.reads.facts_of_user(question.query, k=_LOOKED_AT)}
        known |= {one.id: one for one in question.reads.facts_of_user(k=_LOOKED_AT) if one.id not in known}
        hits = question.reads.elsewhere(question.query, k=_LOOKED_AT) if question.query.strip() else []
        most = round(self.facts_share * question.room_tokens)
        # A message that is quoted whole says more than the facts that were read from it.
        whole = _quoted_whole(hits, question, within=question.room_tokens - most)
        for fact in known.values():
            if not whole.intersection((fact.session_id, one) for one in fact.message_ids):
                shown.add(_KNOWN, f"- {line_of(fact)} ({day(fact.at)})", _source_of(fact), within=most)
        told = {(source.session_id, one) for source in shown.sources for one in source.message_ids}
        for hit in hits:
            if (hit.session_id, hit.id) in told or question.is_shown(hit.text):
                continue
            source = Source(session_id=hit.session_id, message_ids=(hit.id,))
            for line in _quotes(hit, question):
                if shown.add(_QUOTED, line, source, within=question.room_tokens):
                    break
        return SectionText(text=shown.text, sources=tuple(shown.sources)) if shown.sources else None


class _Lines:
    """Lines under their headings, as many as fit."""

    def __init__(self, question: SectionQuestion) -> None:
        self._count = question.count
        self._lines: list[str] = []
        self.sources: list[Source] = []

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def add(self, heading: str, line: str, source: Source, *, within: int) -> bool:
        """Add a line where all of it fits `within` so many tokens; says whether it did."""
        more = [line] if heading in self._lines else [heading, line]
        if self._count("\n".join([*self._lines, *more])) > within:
            return False
        self._lines += more
        self.sources.append(source)
        return True


def _source_of(fact: Fact) -> Source:
    return Source(session_id=fact.session_id, message_ids=fact.message_ids, fact_id=fact.id)


def _most_of_one(question: SectionQuestion) -> int:
    return round(_ONE_SHARE * question.room_tokens)


def _quoted_whole(hits: Sequence[Hit], question: SectionQuestion, *, within: int) -> set[tuple[str, str]]:
    """The best messages that fit together, each with its label, into what facts leave."""
    whole: set[tuple[str, str]] = set()
    most = _most_of_one(question)
    for hit in hits:
        if question.is_shown(hit.text):
            continue
        tokens = question.count(hit.text) + _LABEL_TOKENS
        if tokens > within:
            break
        if tokens <= most:
            whole.add((hit.session_id, hit.id))
        within -= min(tokens, most + _LABEL_TOKENS)  # a longer one is quoted in part
    return whole


def _quotes(hit: Hit, question: SectionQuestion) -> Iterator[str]:
    """A message as a line: whole, by its passage, or a part of that, for as long as it may take."""
    most = _most_of_one(question)
    label = f"[{day(hit.at)}, another conversation] {speaker_label(hit.name, hit.role or 'other')}: "
    for text in dict.fromkeys((hit.text, hit.passage)):
        if question.count(text) <= most:
            yield label + " ".join(text.split())
    if most >= _LEAST_TOKENS:
        cut = head_and_tail(hit.passage, max_tokens=most, count=question.count, pointer="...")
        yield label + " ".join(cut.split())
