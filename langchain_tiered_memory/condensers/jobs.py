"""What a condenser is asked to do, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.records import Fact, Role, Spent

if TYPE_CHECKING:
    from langchain_tiered_memory.outcomes import FailureReason


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
    open_calls: tuple[str, ...] = ()
    """Tool calls of this message that no result came back for, in words."""


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
    attempt: int = 1
    """1 for the first. With the last one the extractive condenser writes in the stead of models that failed."""
    remake: bool = False
    """Whether a finished summary is made again: where that fails it keeps its text, so nothing degraded is wanted."""
    instructions: str | None = None
    """In the place of ours; see `prompts.instructions` for what it may contain."""

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
    """What had to be done to it (`repaired`, `cut`, `split`, `mended` by the audit), or is wrong with it (`sections`:
    half of the sections that were asked for, or more, are missing)."""
    degraded: bool = False
    """Whether a fallback wrote it, that is to be replaced by what the configured writer has to say."""
    reason: FailureReason | None = None
    """Why a fallback wrote it."""
    error: str | None = None
    """The same in words."""
