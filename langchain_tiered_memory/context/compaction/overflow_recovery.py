"""Overflow recovery: what a request shows when its view does not fit, or the error that says why it cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.last_resort import (
    LEAST_READABLE_TOKENS,
    LEAST_TOKENS,
    minimal_pieces,
    shortened_required,
)
from langchain_tiered_memory.errors import CheckpointError, ContextOverflowError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.checkpoints import last_sound

if TYPE_CHECKING:
    from langchain_tiered_memory.context.compaction.proposals import Proposal, ViewQuestion
    from langchain_tiered_memory.context.layout import Part, Piece
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import StepKind
    from langchain_tiered_memory.types.records import SessionRef

_LEFT_FOR_REQUIRED: tuple[frozenset[Part], ...] = (
    frozenset(),
    frozenset({"files"}),
    frozenset({"files", "facts"}),
    frozenset({"files", "facts", "history"}),
)
"""What leaves a view, one after the other, where its required messages could not even be read beside it. What older
history stood for is named in the account all the same."""


def pieces_of(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> tuple[tuple[Piece, ...], tuple[StepKind, ...]]:
    """The messages of the view: as proposed, else its required messages cut, else the essentials, else recovered."""
    if question.minimal:
        minimal = minimal_pieces(proposal.inputs, proposal.rendered, least_tokens=LEAST_TOKENS)
        if minimal is not None:
            return tuple(minimal), (*proposal.steps, "minimal")
    elif proposal.fits:
        return (*proposal.rendered.head, *proposal.rendered.recent()), proposal.steps
    else:
        for left in _LEFT_FOR_REQUIRED:
            head = tuple(piece for piece in proposal.rendered.head if piece.part not in left)
            cut = shortened_required(proposal.inputs, replace(proposal.rendered, head=head))
            if cut is not None:
                return tuple(cut), (*proposal.steps, "shortened")
        minimal = minimal_pieces(proposal.inputs, proposal.rendered, least_tokens=LEAST_READABLE_TOKENS)
        if minimal is not None:
            runtime.report(
                EventName.CONTEXT_MINIMAL, "pruning was not enough: the essentials alone", session_id=ref.session_id
            )
            return tuple(minimal), (*proposal.steps, "minimal")
    return _recovered(runtime, ref, question, proposal, checkpoint_id=checkpoint_id)


def _recovered(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> tuple[tuple[Piece, ...], tuple[StepKind, ...]]:
    """After an overflow: the last sound checkpoint, aggressive pruning, and on; else a fatal error that explains."""
    runtime.report(
        EventName.CONTEXT_OVERFLOW,
        f"{proposal.used_tokens:,} tokens; not even the messages that must be shown fit {question.window.limit:,}",
        session_id=ref.session_id,
        used_tokens=proposal.used_tokens,
        limit_tokens=question.window.limit,
    )
    found = checkpoint_id if checkpoint_id is not None else _last_checkpoint(runtime, ref)
    pieces = minimal_pieces(proposal.inputs, None, least_tokens=LEAST_TOKENS)
    if pieces is not None:
        runtime.report(
            EventName.CONTEXT_RECOVERED,
            "went on with the essentials alone" + (f", from checkpoint {found}" if found else ""),
            session_id=ref.session_id,
            checkpoint_id=found,
        )
        return tuple(pieces), (*proposal.steps, "recovered")
    allocation = proposal.inputs.allocation
    largest = sorted(proposal.rendered.recent(), key=lambda piece: -piece.tokens)[:3]
    named = ", ".join(f"{piece.entry.id[:12]} with {piece.tokens:,}" for piece in largest if piece.entry is not None)
    saved = f"; the run's state is saved in checkpoint {found}" if found else "; every message is in the transcript"
    room, heads = max(proposal.inputs.room, 0), proposal.rendered.head_tokens
    msg = (
        f"messages that must be shown have {room} tokens left: the budget is {allocation.total}, the system prompt and "
        f"tools take {allocation.fixed}, goal and pins {heads}; the largest messages: {named or 'none'}. Raise "
        f"max_tokens, shorten the system prompt or unpin{saved}"
    )
    raise _fatal(runtime, ref, msg, checkpoint_id=found)


def _last_checkpoint(runtime: Runtime, ref: SessionRef) -> str | None:
    if not runtime.settings.checkpoints.enabled:
        return None
    try:
        return last_sound(runtime, ref)
    except CheckpointError as error:
        runtime.report(EventName.CHECKPOINT_UNUSABLE, str(error), session_id=ref.session_id)
        return None


def overflowed(runtime: Runtime, ref: SessionRef | None, msg: str, *, checkpoint_id: str | None) -> None:
    """What must be shown did not fit even after it was cut: say so, with what is saved.

    Raises:
        ContextOverflowError: always, where there is a session.
    """
    if ref is None:
        return
    found = checkpoint_id if checkpoint_id is not None else _last_checkpoint(runtime, ref)
    raise _fatal(runtime, ref, msg, checkpoint_id=found)


def _fatal(runtime: Runtime, ref: SessionRef, msg: str, *, checkpoint_id: str | None) -> ContextOverflowError:
    runtime.report(EventName.CONTEXT_FATAL, msg, session_id=ref.session_id, checkpoint_id=checkpoint_id)
    return ContextOverflowError(msg, checkpoint_id=checkpoint_id)
