"""Values that the parts of compaction hand each other: what is asked of a view, and what is proposed for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, StepKind, Window, Zone

if TYPE_CHECKING:
    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.context.view.rendered_view import RenderedView
    from langchain_tiered_memory.settings import ViewSettings
    from langchain_tiered_memory.types.records import LeftOut


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
    return math.ceil((inputs.allocation.fixed + view_tokens + inputs.allocation.recall) * inputs.ratio)


def raw_room(inputs: AssemblyInputs, billed_tokens: int) -> int:
    """Raw tokens for the view in a request of so many billed ones."""
    return math.floor(billed_tokens / inputs.ratio) - inputs.allocation.fixed - inputs.allocation.recall
