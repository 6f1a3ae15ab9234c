"""A question about a view, and what is proposed for it: values that the guard's parts hand each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.outcomes import FailureReason, OutcomeKind, StepKind, Window, Zone

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.flows.showing import Sight
    from langchain_tiered_memory.records import LeftOut
    from langchain_tiered_memory.settings import ViewSettings


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
    look: ViewSettings | None = None
    minimal: bool = False
    """Show the essentials alone."""
    forced: bool = False
    """Condense whether or not it is due: for a preview."""
    langgraph_checkpoint_id: str | None = None
    """What LangGraph saved of the run, to be named in a checkpoint that this request brings about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A view as it would be shown, and how it came about."""

    desk: Desk
    kept: str | None
    """The plan in the database."""
    before: Sight | None
    """What that plan shows, or without one the whole track; `None` where there is none, and far more than fits."""
    sight: Sight
    used_tokens: int
    """Billed tokens of the request before anything was done."""
    zone: Zone
    kind: OutcomeKind = OutcomeKind.NOT_NEEDED
    reason: FailureReason | None = None
    why: str = ""
    error: str | None = None
    steps: tuple[StepKind, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    refused: bool = False
    """Whether it does not fit, and the settings forbid to leave messages out instead."""

    @property
    def fits(self) -> bool:
        """Whether the view is within its room."""
        return self.sight.tokens <= self.desk.room

    @property
    def tokens(self) -> int:
        """Billed tokens of the request with the view as proposed."""
        return billed(self.desk, self.sight.tokens)

    def stepped(self, sight: Sight, step: StepKind, left_out: tuple[LeftOut, ...]) -> Proposal:
        """With one more step done."""
        return replace(self, sight=sight, steps=(*self.steps, step), left_out=self.left_out + left_out)


def billed(desk: Desk, view_tokens: int) -> int:
    """Billed tokens of a request whose view takes so many raw ones: fixed part and recall's room besides."""
    return math.ceil((desk.rooms.fixed + view_tokens + desk.rooms.recall) * desk.ratio)


def raw_room(desk: Desk, billed_tokens: int) -> int:
    """Raw tokens for the view in a request of so many billed ones."""
    return math.floor(billed_tokens / desk.ratio) - desk.rooms.fixed - desk.rooms.recall
