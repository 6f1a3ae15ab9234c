"""A view on its way to a request: why it has to become smaller (`Need`), and what was chosen for it (`Packing`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.outcomes import CUTTING_STEPS, FailureReason, OutcomeKind, StepKind, Zone

if TYPE_CHECKING:
    from langchain_tiered_memory.context.pieces import Piece
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.rendered_view import RenderedView
    from langchain_tiered_memory.types.records import LeftOut


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
    condensed_at: int | None = None
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
        """Raw tokens that the view may take after it was pruned: safe, and within its room in any case."""
        window = self.inputs.window
        share = round(self.inputs.settings.guard.warning * window.limit)
        return min(self.inputs.raw_room(min(share, window.allowed)), self.inputs.room)

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
