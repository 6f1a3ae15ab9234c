"""Values that the parts of one request hand each other: its inputs, what is asked of its view, what is proposed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, StepKind, Window, Zone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.context.layout import Piece
    from langchain_tiered_memory.context.policy import Rooms
    from langchain_tiered_memory.context.required_messages import RequiredMessages
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.context.view.rendered_view import RenderedView
    from langchain_tiered_memory.context.view.repeated_reads import Asked
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import ViewSettings
    from langchain_tiered_memory.summaries.tree.cover import CoverItem
    from langchain_tiered_memory.types.outcomes import GuardReport
    from langchain_tiered_memory.types.policies import Mode
    from langchain_tiered_memory.types.records import Entry, LeftOut, SessionRef, Summary


@dataclass(slots=True, kw_only=True)
class Library:
    """What was read or rendered during one assembly, so that nothing is twice."""

    summaries: dict[str, Summary] = field(default_factory=dict)
    users: dict[int, Entry | None] = field(default_factory=dict)
    """User messages by `seq`; `None`: there is none any more."""
    masks: dict[tuple[int, int], Piece] = field(default_factory=dict)
    """Masked tool outputs by `seq` and the tokens that they keep: each attempt at a view shows most of them again."""

    asked: dict[int, Asked] = field(default_factory=dict)
    """What messages ask for that has to do with files, by `seq`."""
    pointers: dict[tuple[int, int], Piece | None] = field(default_factory=dict)
    """Repeated readings of files by `seq` and that of the message that says their text; `None`: it stays as it is."""

    def add(self, found: Iterable[Summary]) -> list[Summary]:
        """Keep what was read."""
        kept = list(found)
        self.summaries |= {one.id: one for one in kept}
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyInputs:
    """The fixed part of one assembly."""

    runtime: Runtime
    ref: SessionRef
    rooms: Rooms
    required: RequiredMessages
    track: str
    room: int
    """Raw tokens for goal, pins, cover and recent messages together."""
    ratio: float
    library: Library
    off: frozenset[int]
    """`seq`s that are not on this branch."""
    alone: bool = False
    """Whether other tracks are not shown."""
    fill: int | None = None
    """Raw tokens that a condensation may fill the view to with file work; `None`: as the settings' share says."""
    provider: str | None = None
    """Of the request's model, where that is known: whose compactions it reads."""
    reworded: frozenset[str] = frozenset()
    """Ids of messages whose words the caller changes before they are sent."""
    look: ViewSettings | None = None
    """A view of the user's own; `None` for the default one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The part of a context that stays byte for byte until the next condensation."""

    rooms: Rooms
    ratio: float
    """Billed per raw token, as the split took it."""
    report: GuardReport
    mode: Mode
    """Of the request, now that its view is known."""
    pieces: tuple[Piece, ...] = ()
    items: tuple[CoverItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    plan: ViewPlan | None = None
    """Of the view; `None` where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewQuestion:
    """Which view, and when it is full."""

    name: str
    """Under which its plan is kept."""
    track: str
    window: Window
    profile: str | None
    """Name of the model, or what the request calls its profile: it may have a threshold of its own."""
    ratio: float
    """Billed per raw token, as calibration knows it now."""
    foreground_seconds: float
    """How long missing summaries may be waited for when the view does not fit."""
    mode: Mode
    look: ViewSettings | None = None
    forced: bool = False
    """Condense whether or not it is due: for a preview."""
    prepared: tuple[tuple[int, str], ...] = ()
    """The pruning plan of the danger zone: first `seq`s of groups, and why each would leave."""
    langgraph_checkpoint_id: str | None = None
    """What LangGraph saved of the run, to be named in a checkpoint that this request brings about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A view as it would be shown, and how it came about."""

    inputs: AssemblyInputs
    kept: str | None
    """The plan in the database."""
    before: RenderedView | None
    """What that plan shows, or without one the whole track; `None` where there is none, and far more than fits."""
    rendered: RenderedView
    used_tokens: int
    """Billed tokens of the request before anything was done."""
    zone: Zone
    kind: OutcomeKind = OutcomeKind.NOT_NEEDED
    reason: FailureReason | None = None
    why: str = ""
    error: str | None = None
    steps: tuple[StepKind, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    due_at: int | None = None
    """Billed tokens of the request from which on the view is made smaller; `None` where it stays as it is."""
    refused: bool = False
    """Whether it does not fit, and the settings forbid to leave messages out instead."""

    @property
    def fits(self) -> bool:
        """Whether the view is within its room."""
        return self.rendered.tokens <= self.inputs.room

    @property
    def tokens(self) -> int:
        """Billed tokens of the request with the view as proposed."""
        return billed(self.inputs, self.rendered.tokens)

    def stepped(self, rendered: RenderedView, step: StepKind, left_out: tuple[LeftOut, ...]) -> Proposal:
        """With one more step done."""
        return replace(self, rendered=rendered, steps=(*self.steps, step), left_out=self.left_out + left_out)


def billed(inputs: AssemblyInputs, view_tokens: int) -> int:
    """Billed tokens of a request whose view takes so many raw ones: fixed part and recall's room besides."""
    return math.ceil((inputs.rooms.fixed + view_tokens + inputs.rooms.recall) * inputs.ratio)


def raw_room(inputs: AssemblyInputs, billed_tokens: int) -> int:
    """Raw tokens for the view in a request of so many billed ones."""
    return math.floor(billed_tokens / inputs.ratio) - inputs.rooms.fixed - inputs.rooms.recall
