"""A ready section: what other sessions of the same user say, facts that hold for the user first.

It is off until it is registered, and empty if a handle names no user. Every line says that it comes from another
conversation, and from when. The context's account names the session, message and fact of each line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.across.searching import told_of_user
from langchain_tiered_memory.extensions import SectionText
from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.marks import speaker_label
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.types.contexts import Source

if TYPE_CHECKING:
    from langchain_tiered_memory.extensions import SectionQuestion
    from langchain_tiered_memory.types.records import Hit

_KNOWN = "What this user said of themself in other conversations with you, with the day:"
_QUOTED = "From other conversations with this user, which may be about something else:"
_LOOKED_AT = 40
"""Messages of other sessions that are considered for one question."""


@dataclass(frozen=True, slots=True)
class OtherSessions:
    """Shows what the user's other sessions say. Register it: `memory.sections.register(OtherSessions())`."""

    share: float = 0.15
    """The most that it takes, as a share of the context."""
    facts_share: float = 0.25
    """The part of `share` for facts about the user. The rest is for messages that answer the question."""
    name: str = "other_sessions"
    crosses_sessions: bool = True
    """Whether what was shown is dropped as soon as another session of the user changes."""

    def render(self, question: SectionQuestion) -> SectionText | None:
        """The facts, those about the question first, then the messages that answer it."""
        known = {one.id: one for one in question.reads.facts_of_user(question.query, k=_LOOKED_AT)}
        known |= {one.id: one for one in question.reads.facts_of_user(k=_LOOKED_AT) if one.id not in known}
        hits = question.reads.elsewhere(question.query, k=_LOOKED_AT) if question.query.strip() else []
        room = question.room_tokens - question.count(f"{_KNOWN}\n{_QUOTED}\n")
        facts, quotes = told_of_user(
            list(known.values()),
            [hit for hit in hits if not question.is_shown(hit.text)],
            of_fact=lambda fact: f"- {line_of(fact)} ({day(fact.at)})",
            of_quote=_line_of_quote,
            count=question.count,
            room=room,
            facts_room=round(self.facts_share * room),
        )
        lines = [_KNOWN, *(line for _, line in facts)] if facts else []
        lines += [_QUOTED, *(line for _, line in quotes)] if quotes else []
        sources = [
            Source(session_id=fact.session_id, message_ids=fact.message_ids, fact_id=fact.id) for fact, _ in facts
        ]
        sources += [Source(session_id=hit.session_id, message_ids=(hit.id,)) for hit, _ in quotes]
        return SectionText(text="\n".join(lines), sources=tuple(sources)) if sources else None


def _line_of_quote(hit: Hit, text: str) -> str:
    speaker = speaker_label(hit.name, hit.role or "other")
    return f"[{day(hit.at)}, another conversation] {speaker}: {' '.join(text.split())}"
