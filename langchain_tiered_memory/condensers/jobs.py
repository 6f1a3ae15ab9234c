"""What a condenser is asked to do, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

from langchain_tiered_memory.records import Fact, Role, Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """One message (level 1) or one summary (above) to condense."""

    id: str
    text: str
    tokens: int
    at: float
    seq: int
    """The entry's, or the last that the summary covers."""
    speaker: str = ""
    """Name or role of who said it; empty for a summary."""
    role: Role = "other"
    kind: str | None = None
    same_as: str | None = None
    """Id of an earlier source that says nearly the same: this one need not be told again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CondenseJob:
    """One summary to write."""

    level: int
    strategy: str
    """`detailed`, `concise`, `thematic`, `chronological`, `executive`, `technical` or `handoff`."""
    sources: tuple[SourceText, ...]
    facts: tuple[Fact, ...]
    """Durable facts that will stand beside the text verbatim: the text need not repeat them."""
    target_tokens: int
    """What to aim at."""
    max_tokens: int
    """Never more than this."""
    session_id: str
    title: str | None
    participants: tuple[str, ...]
    first_at: float
    last_at: float
    message_count: int
    temperature: float | None = 0.3

    @property
    def source_tokens(self) -> int:
        """Tokens of everything to condense."""
        return sum(source.tokens for source in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """A finished text."""

    text: str
    tokens: int
    model: str
    spent: Spent = field(default_factory=Spent)
    notes: tuple[str, ...] = ()
    """What had to be done to it: `repaired`, `cut`."""
