"""The input and output of a condenser."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.summaries.checks.soundness import Unsound, soundness, unsound
from langchain_tiered_memory.summaries.facts.signs import SURE
from langchain_tiered_memory.summaries.writers.ranking import is_filler
from langchain_tiered_memory.text.identifiers import folded, identifiers, states
from langchain_tiered_memory.text.sentences import sentences
from langchain_tiered_memory.types.outcomes import FailureReason, Refused
from langchain_tiered_memory.types.records import Fact, Role, Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.settings import ValidationSettings

NOTES = "notes"
"""The strategy for joining kept notes that have no room. It is not a summary and has no sources."""
_TALK_SHARE = 0.25
"""A share of what messages say. If this much is small talk and nothing particular is said, one line may tell them."""
_LOOKED_AT = 4_000
"""The most characters of a small-talk message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """One message (for level 1) or one summary (for higher levels) to condense."""

    id: str
    text: str
    tokens: int
    at: float
    seq: int
    """Number of the message, or of the last message that the summary covers."""
    speaker: str = ""
    """Name or role of the speaker. Empty for a summary."""
    role: Role = "other"
    kind: str | None = None
    same_as: str | None = None
    """Id of an earlier source that says nearly the same, so that this one can be left out."""
    first_at: float | None = None
    """Time of the first message under a summary, in seconds since the epoch."""
    open_calls: tuple[str, ...] = ()
    """Tool calls of this message without a result, in words."""
    states_nothing: bool = False
    """Whether it is the result of a call that only looked at files, so nobody here said its words, or one line that
    says that a file was written, as the call did."""
    over: frozenset[str] = frozenset()
    """The points of a summary that no longer hold, in their words."""
    is_refusal: bool = False
    """Whether it answers a refused change of a file. Then the person who refused speaks, not the tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CondenseJob:
    """One summary to write."""

    level: int
    strategy: str
    """`detailed`, `concise`, `thematic`, `chronological`, `executive`, `technical` or `handoff`; or `NOTES`."""
    sources: tuple[SourceText, ...]
    facts: tuple[Fact, ...]
    """Facts of its sources. They are stored whatever the text says, and the text is judged together with them."""
    target_tokens: int
    """The size to aim at, in tokens."""
    max_tokens: int
    """The largest size, in tokens."""
    session_id: str
    title: str | None
    participants: tuple[str, ...]
    first_at: float
    last_at: float
    message_count: int
    temperature: float | None = 0.3
    attempt: int = 1
    """1 for the first attempt. At the last one, the extractive condenser writes instead of models that failed."""
    is_alone: bool = False
    """Whether no call for several is asked for it, because one failed: it may be what a provider's filter refuses."""
    remake: bool = False
    """Whether a finished summary is written again. If that fails, it keeps its text."""
    instructions: str | None = None
    """Instructions instead of the built-in ones. `prompts.building.instructions` explains their placeholder."""
    refused: str = ""
    """Why the last answer was rejected. The model is told, because the same request would get the same answer."""
    correction: str = ""
    """What a person said was wrong or missing in the last text. The next one must say it."""
    kept: tuple[Fact, ...] = ()
    """Lasting statements of earlier messages that those of the call may change, in their order. The writer of level 1,
    who may end them, names them by their places, from 1 on."""
    beside: tuple[SourceText, ...] = ()
    """Sources of other summaries that are written with it: its writer knows them, and may name what stands there."""

    @property
    def source_tokens(self) -> int:
        """Tokens of all sources."""
        return sum(source.tokens for source in self.sources)

    @property
    def known(self) -> tuple[str, ...]:
        """What a writer is told in addition to the sources: names, the title, facts, kept statements."""
        title = [self.title] if self.title else []
        kept = (fact.text for fact in self.kept)
        said = [self.correction] if self.correction else []
        return (*self.participants, *title, *said, *(fact.text for fact in self.facts), *kept)

    def unsound(self, text: str, settings: ValidationSettings) -> Unsound | None:
        """Return why `text` cannot stand for the sources. `None` if it can, or if the rule is off.

        Messages in which rules find nothing particular may be told in a line, as the prompt asks. A name in a message
        beside them (which says what "the game" is called) counts as known.
        """
        if "soundness" not in settings.rules:
            return None
        texts = [source.text for source in self.sources]
        beside = folded("\n".join(source.text for source in self.beside))
        found = soundness(
            text,
            texts,
            (*self.known, *(name for name in identifiers(text) if states(beside, name))),
            target_tokens=self.target_tokens,
            are_messages=self.level == 1,
            say_little=self.level == 1 and self._is_talk(texts),
        )
        return unsound(found)

    def _is_talk(self, texts: Sequence[str]) -> bool:
        """Whether rules find nothing particular in these messages, and find small talk among them."""
        if any(fact.weight >= SURE for fact in self.facts):
            return False
        said = [sentence for text in texts for sentence in sentences(text[:_LOOKED_AT])]
        return sum(len(one) for one in said if is_filler(one)) >= _TALK_SHARE * max(sum(map(len, said)), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several summaries to write in one call."""

    job: CondenseJob
    below: dict[str, int] = field(default_factory=dict)
    """Above level 1, those of its sources that the same call writes: their places among its parts, by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """The finished text of a summary, or of one part of a call for several."""

    text: str
    """Empty only within a call for several, if the part is missing or cannot be used."""
    tokens: int
    model: str
    """The writer: a model's name, or `extractive`."""
    spent: Spent = field(default_factory=Spent)
    cut_lines: int = 0
    """How many bullets and sentences were cut to fit the size. The least important ones are."""
    refused: tuple[Refused, ...] = ()
    """Earlier answers that were rejected."""
    shown: tuple[str, ...] = ()
    """What else its writer knew: the request behind which it was asked, what it wrote before in the same call."""
    marks: bool = False
    """Whether its writer marks what must last, here or in what it wrote with it. Then its omissions are deliberate."""
    by_rules: bool = False
    """Whether rules wrote it for now, although there is a model. The model writes it when a view needs it."""
    degraded: bool = False
    """Whether a fallback wrote it, to be replaced by the configured writer, or it is unsound and nobody else could
    write it."""
    reason: FailureReason | None = None
    """Why it is degraded, or has no text."""
    error: str | None = None
    """The same in words."""


def without_text(condensed: Condensed, fault: str, why: str, reason: FailureReason) -> Condensed:
    """A result without text for an answer that cannot be used. Its last refusal says why."""
    return replace(condensed, text="", tokens=0, reason=reason, refused=(*condensed.refused, Refused(fault, why)))


class UnsoundSummaryError(CondensationError):
    """A text came back that cannot stand for its sources. It is kept in case nobody writes a better one."""

    def __init__(self, message: str, *, written: Condensed) -> None:
        super().__init__(message, spent=written.spent, reason=FailureReason.UNSOUND, refused=written.refused)
        self.written = written


def with_spent(error: CondensationError, spent: Spent, *, refused: Sequence[Refused] = ()) -> CondensationError:
    """The same failure, with the total cost of it and the calls around it. Most refusals are already reported."""
    wait = error.retry_after_seconds
    return CondensationError(str(error), spent=spent, reason=error.reason, retry_after_seconds=wait, refused=refused)


class Condenser(Protocol):
    """A built-in writer. It waits for a model through the driver, so that sync and async share its code."""

    @property
    def name(self) -> str:
        """The name that signs the summaries: a model's name, or `extractive`."""
        ...

    def condense(self, job: CondenseJob) -> Flow[Condensed]:
        """Return the text for `job`, within its size.

        Raises:
            CondensationError: if no usable text came back. The message says why.
        """
        ...
