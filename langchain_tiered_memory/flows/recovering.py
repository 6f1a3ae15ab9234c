"""What a request shows when its view does not fit: musts cut, the essentials alone, or a fatal error, all saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CheckpointError, ContextOverflowError
from langchain_tiered_memory.flows.checkpoints import last_sound
from langchain_tiered_memory.flows.emergency import (
    LEAST_READABLE_TOKENS,
    LEAST_TOKENS,
    minimal_pieces,
    shortened_musts,
)

if TYPE_CHECKING:
    from langchain_tiered_memory.decisions.request import Piece
    from langchain_tiered_memory.flows.asking import Flow
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.flows.proposals import Proposal, ViewQuestion
    from langchain_tiered_memory.outcomes import StepKind
    from langchain_tiered_memory.records import SessionRef


def pieces_of(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> Flow[tuple[tuple[Piece, ...], tuple[StepKind, ...]]]:
    """The messages of the view: as proposed, else its musts cut, else the essentials, else recovered."""
    if question.minimal:
        minimal = yield from minimal_pieces(proposal.desk, proposal.sight, least_tokens=LEAST_TOKENS)
        if minimal is not None:
            return tuple(minimal), (*proposal.steps, "minimal")
    elif proposal.fits:
        return (*proposal.sight.head, *proposal.sight.recent()), proposal.steps
    else:
        cut = shortened_musts(proposal.desk, proposal.sight)
        if cut is not None:
            return tuple(cut), (*proposal.steps, "shortened")
        minimal = yield from minimal_pieces(proposal.desk, proposal.sight, least_tokens=LEAST_READABLE_TOKENS)
        if minimal is not None:
            house.report("context_minimal", "pruning was not enough: the essentials alone", session_id=ref.session_id)
            return tuple(minimal), (*proposal.steps, "minimal")
    return (yield from _recovered(house, ref, question, proposal, checkpoint_id=checkpoint_id))


def _recovered(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> Flow[tuple[tuple[Piece, ...], tuple[StepKind, ...]]]:
    """After an overflow: the last sound checkpoint, aggressive pruning, and on; else a fatal error that explains."""
    house.report(
        "context_overflow",
        f"{proposal.used_tokens:,} tokens; not even the messages that must be shown fit {question.window.limit:,}",
        session_id=ref.session_id,
        used_tokens=proposal.used_tokens,
        limit_tokens=question.window.limit,
    )
    found = checkpoint_id if checkpoint_id is not None else (yield from _last_checkpoint(house, ref))
    pieces = yield from minimal_pieces(proposal.desk, None, least_tokens=LEAST_TOKENS)
    if pieces is not None:
        house.report(
            "context_recovered",
            "went on with the essentials alone" + (f", from checkpoint {found}" if found else ""),
            session_id=ref.session_id,
            checkpoint_id=found,
        )
        return tuple(pieces), (*proposal.steps, "recovered")
    rooms = proposal.desk.rooms
    largest = sorted(proposal.sight.recent(), key=lambda piece: -piece.tokens)[:3]
    named = ", ".join(f"{piece.entry.id[:12]} with {piece.tokens:,}" for piece in largest if piece.entry is not None)
    saved = f"; the run's state is saved in checkpoint {found}" if found else "; every message is in the transcript"
    msg = (
        f"messages that must be shown have {max(proposal.desk.room, 0)} tokens left: the budget is {rooms.total}, the "
        f"system prompt and tools take {rooms.fixed}, goal and pins {proposal.sight.head_tokens}; the largest "
        f"messages: {named or 'none'}. Raise max_tokens, shorten the system prompt or unpin{saved}"
    )
    raise _fatal(house, ref, msg, checkpoint_id=found)


def _last_checkpoint(house: House, ref: SessionRef) -> Flow[str | None]:
    if not house.settings.checkpoints.enabled:
        return None
    try:
        return (yield from last_sound(house, ref))
    except CheckpointError as error:
        house.report("checkpoint_unusable", str(error), session_id=ref.session_id)
        return None


def overflowed(house: House, ref: SessionRef | None, msg: str, *, checkpoint_id: str | None) -> Flow[None]:
    """What must be shown did not fit even after it was cut: say so, with what is saved.

    Raises:
        ContextOverflowError: always, where there is a session.
    """
    if ref is None:
        return
    found = checkpoint_id if checkpoint_id is not None else (yield from _last_checkpoint(house, ref))
    raise _fatal(house, ref, msg, checkpoint_id=found)


def _fatal(house: House, ref: SessionRef, msg: str, *, checkpoint_id: str | None) -> ContextOverflowError:
    house.report("context_fatal", msg, session_id=ref.session_id, checkpoint_id=checkpoint_id)
    return ContextOverflowError(msg, checkpoint_id=checkpoint_id)
