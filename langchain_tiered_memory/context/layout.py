"""Lays out the messages of one call: their order, the form of what stands before the recent ones, how it came about.

[system] [first user message, or the provider's own compaction] [pins] [history] [facts] [parts of files] [files]
[last user message, if older than what follows] [recent messages], with recall before the last user message, or at the
end when the next word is the user's. `Need` says why a view has to become smaller, `Packing` what it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.messages.content_blocks import compacts, with_described_media
from langchain_tiered_memory.messages.message_repairs import without_reasoning
from langchain_tiered_memory.messages.quoting import message_or_stand_in, pointer_to, with_shorter_calls
from langchain_tiered_memory.text.truncation import shorten_message
from langchain_tiered_memory.types.outcomes import CUTTING_STEPS, FailureReason, OutcomeKind, StepKind, Zone

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.rendered_view import RenderedView
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.types.records import Entry, LeftOut

MARK = "tiered_memory"
"""Key in `additional_kwargs` of messages that this package wrote."""
OVERHEAD_TOKENS = 40
"""Of a masked output, besides what is kept of its text: the pointer, and the framing of the message."""


Part: TypeAlias = Literal[
    "system", "goal", "pinned", "history", "facts", "parts", "files", "recent", "parent", "recall"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One message of the request, the part it belongs to, and what it shows."""

    part: Part
    message: BaseMessage
    tokens: int
    entry: Entry | None = None
    """The entry that stands in it as itself."""
    quoted: tuple[Entry, ...] = ()
    """Entries quoted in it whole."""
    passages: tuple[Entry, ...] = ()
    """Entries of which a part is quoted in it, or shown."""
    left_out: tuple[Entry, ...] = ()
    """Entries that there was no room to quote in it."""
    summary_ids: tuple[str, ...] = ()
    text: str = ""
    """What it says, where the text is ours."""
    damaged: str | None = None
    """Why its entry cannot be read, where another message stands in for it."""
    stands_in: Entry | None = None
    """The entry above that says what its own says, where only a line stands here that leads there."""

    @property
    def whole_entries(self) -> tuple[Entry, ...]:
        """Entries whose whole text is in it."""
        return self.quoted if self.entry is None or self.entry in self.passages else (self.entry, *self.quoted)


def system_message(system: str | BaseMessage | None) -> BaseMessage | None:
    """The request's own system prompt as a message."""
    if system is None or (isinstance(system, str) and not system):
        return None
    return SystemMessage(system) if isinstance(system, str) else system


def shown(entry: Entry, *, part: Part = "recent") -> Piece:
    """An entry as it was; where it cannot be read, a message that says so."""
    message, damaged = message_or_stand_in(entry)
    if damaged is None:
        return Piece(part=part, message=message, tokens=entry.tokens, entry=entry)
    # Nobody counts here: bytes are never fewer than tokens.
    most = len(str(message.content).encode("utf-8", "replace"))
    return Piece(part=part, message=message, tokens=most, entry=entry, passages=(entry,), damaged=damaged)


def shortened(
    entry: Entry, *, max_tokens: int, counter: TokenCounter, expands: bool = False, part: Part = "recent"
) -> Piece:
    """An entry within `max_tokens`: whole where it fits, else head and tail around a line that says what is left out.

    Where who reads it has a tool that `expands`, the line says how to get at it.

    Media that there is no room for are described in a line, arguments of calls shortened. Reasoning, of which nobody
    takes a part, leaves before the words do.
    """
    if entry.tokens <= max_tokens:
        return shown(entry, part=part)
    message, damaged = message_or_stand_in(entry)
    count = counter.count_text
    pointer = pointer_to(entry, expands=expands)

    def framing(of: BaseMessage) -> int:
        return counter.count_message(shorten_message(of, max_tokens=0, count=count))

    if framing(message) > max_tokens and entry.calls:
        excess = framing(message) - max_tokens
        message = with_shorter_calls(message, excess_tokens=excess, count=count, pointer=pointer)
    if framing(message) > max_tokens:
        message = without_reasoning(message)
    message = with_described_media(message, fits=lambda one: framing(one) <= max_tokens)
    room = max(0, max_tokens - framing(message))
    cut = shorten_message(message, max_tokens=room, count=count, pointer=pointer)
    return Piece(
        part=part, message=cut, tokens=counter.count_message(cut), entry=entry, passages=(entry,), damaged=damaged
    )


def ours(text: str, *, part: Part, counter: TokenCounter, **shows: Any) -> Piece:  # noqa: ANN401 - fields of `Piece`
    """A message of ours, told from the user's by a mark that no provider is sent."""
    message = HumanMessage(text, additional_kwargs={MARK: {"part": part}})
    return Piece(part=part, message=message, tokens=counter.count_message(message), text=text, **shows)


def behind_first(
    head: Sequence[Piece], recent: Sequence[Piece], *, opening: Collection[int], reader: str | None
) -> list[Piece]:
    """A view's messages in their order: what bridges a gap stands behind the first message.

    So it does where that is one of the `recent` ones, because the window slid and nothing was condensed. `opening` are
    the `seq`s of the messages that the history began with; `reader` is the model's provider, which reads its own.
    """
    compacted = max((at for at, piece in enumerate(recent) if compacts(piece.message, reader=reader)), default=None)
    if compacted is not None:
        return _behind_compaction(head, recent, at=compacted)
    count = 0
    while count < len(recent) and (entry := recent[count].entry) is not None and entry.seq in opening:
        count += 1
    first = [piece for piece in head if piece.part == "goal"] + list(recent[:count])
    first.sort(key=lambda piece: piece.entry.seq if piece.entry is not None else 0)
    return [*first, *(piece for piece in head if piece.part != "goal"), *recent[count:]]


def _behind_compaction(head: Sequence[Piece], recent: Sequence[Piece], *, at: int) -> list[Piece]:
    """A view's messages where a provider's compaction stands at `at`: it passes over all that is in front of that."""
    entry = recent[at].entry
    group = entry.group if entry is not None else None
    first = [piece for piece in recent[at:] if piece.entry is not None and piece.entry.group == group]
    prompts = [piece for piece in head if piece.entry is not None and piece.entry.role == "system"]
    placed = {id(piece) for piece in (*first, *prompts)}
    return [*prompts, *first, *(piece for piece in (*head, *recent) if id(piece) not in placed)]


def recall_position(pieces: Sequence[Piece]) -> int:
    """Where recall stands: before the last user message, or at the end where the assistant has finished."""
    last = pieces[-1].message if pieces else None
    if isinstance(last, AIMessage) and not last.tool_calls:
        return len(pieces)
    for place in range(len(pieces) - 1, -1, -1):
        message = pieces[place].message
        if isinstance(message, HumanMessage) and MARK not in message.additional_kwargs:
            return place
    return len(pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Why a view has to become smaller, and what that is measured by."""

    used_tokens: int
    """Billed tokens of the request before anything was done."""
    zone: Zone
    percent: float
    """The threshold, in percent of the window; infinite for a bare budget, which is grown into to its end."""
    why: str = ""
    """A sentence with figures; empty where it has not."""
    due_at: int | None = None
    """Billed tokens of the request from which on the view is made smaller; `None` where it stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """A view as it is shown, from the first measure to the messages of the request."""

    inputs: Inputs
    need: Need
    rendered: RenderedView
    kept: str | None = None
    """The plan in the database."""
    before: RenderedView | None = None
    """What that plan shows, or without one the whole track; `None` where there is none, and far more than fits."""
    kind: OutcomeKind = OutcomeKind.NOT_NEEDED
    reason: FailureReason | None = None
    error: str | None = None
    steps: tuple[StepKind, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    """What left the view in these steps."""
    refused: bool = False
    """Whether it does not fit, and the settings forbid to leave messages out instead."""
    pieces: tuple[Piece, ...] = ()
    """The messages that are shown."""

    @property
    def fits(self) -> bool:
        """Whether the view is within its room."""
        return self.rendered.tokens <= self.inputs.room

    @property
    def tokens(self) -> int:
        """Billed tokens of the request with the view as proposed."""
        return self.inputs.billed(self.rendered.tokens)

    @property
    def target(self) -> int:
        """Raw tokens that the view may take after it was pruned."""
        window = self.inputs.window
        share = round(self.inputs.settings.guard.prune_to * window.limit)
        return self.inputs.raw_room(min(share, window.allowed))

    @property
    def is_cut(self) -> bool:
        """Whether the request shows less than its plan says."""
        return bool(CUTTING_STEPS & set(self.steps))

    def stepped(
        self, rendered: RenderedView, step: StepKind, left_out: tuple[LeftOut, ...], kind: OutcomeKind
    ) -> Packing:
        """With one more step done; what was condensed stays so called. The same where the step changed nothing."""
        if rendered is self.rendered:
            return self
        return replace(
            self,
            rendered=rendered,
            steps=(*self.steps, step),
            left_out=self.left_out + left_out,
            kind=self.kind if self.kind is OutcomeKind.CONDENSED else kind,
        )

    def failed(self, reason: FailureReason, error: str) -> Packing:
        """As it is, with why no summary took the place of messages."""
        kind = self.kind if self.kind is OutcomeKind.MASKED else OutcomeKind.FAILED
        return replace(self, kind=kind, reason=reason, error=error)
