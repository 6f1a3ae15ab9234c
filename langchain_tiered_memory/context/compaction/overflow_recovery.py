"""Overflow recovery: what a request shows when its view does not fit, or the error that says why it cannot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.last_resort import (
    laid_out,
    minimal_pieces,
    shortened_required,
)
from langchain_tiered_memory.context.layout import behind_first
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.policy import LEAVES_FOR_REQUIRED
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.errors import CheckpointError, ContextOverflowError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.checkpoints import last_sound
from langchain_tiered_memory.sql.schema import digest_of

if TYPE_CHECKING:
    from langchain_tiered_memory.context.assembly_inputs import Proposal, ViewQuestion
    from langchain_tiered_memory.context.layout import Piece
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import StepKind
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import MemoryCheckpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a request shows."""

    pieces: tuple[Piece, ...]
    steps: tuple[StepKind, ...]
    plan: ViewPlan | None = None
    """The plan that a view goes on from, where that is not the proposed one: a checkpoint's."""


_CUTS = 4
"""Times that required messages are cut beside the same head, each with the last one's excess taken off the room."""


def pieces_of(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> Taken:
    """The messages of the view: as proposed, else its required messages cut, else the essentials, else recovered."""
    if proposal.inputs.rooms.is_full:
        return _recovered(runtime, ref, question, proposal, checkpoint_id=checkpoint_id)
    if "minimal" in question.mode:
        minimal = minimal_pieces(proposal.inputs, proposal.rendered, least_tokens=NUMBERS.least_said_tokens)
        if minimal is not None:
            return Taken(pieces=tuple(minimal), steps=(*proposal.steps, "minimal"))
    elif proposal.fits:
        return Taken(pieces=tuple(laid_out(proposal.inputs, proposal.rendered)), steps=proposal.steps)
    else:
        cut = _required_cut(proposal)
        if cut is not None:
            return Taken(pieces=tuple(cut), steps=(*proposal.steps, "shortened"))
        essential = _essentials_beside_history(proposal)
        if essential is not None:
            runtime.report(
                EventName.CONTEXT_MINIMAL, "pruning was not enough: the essentials alone", session_id=ref.session_id
            )
            return Taken(pieces=tuple(essential), steps=(*proposal.steps, "minimal"))
    return _recovered(runtime, ref, question, proposal, checkpoint_id=checkpoint_id)


def _required_cut(proposal: Proposal) -> list[Piece] | None:
    """The required messages cut, beside as much of the head as leaves them room; `None` where they cannot be read so.

    What is cut may take a little more than it was given, which is taken off the room then. Long calls cannot be cut to
    any size: where that does not help, something of the head has to leave for a few tokens, and where nothing does, all
    that stands beside the calls is as short as it can be.
    """
    inputs = proposal.inputs
    limit = inputs.room + inputs.rooms.recall
    shortest: list[Piece] | None = None
    least = 0
    for gone in range(len(LEAVES_FOR_REQUIRED) + 1):
        left = LEAVES_FOR_REQUIRED[:gone]
        rendered = replace(
            proposal.rendered, head=tuple(piece for piece in proposal.rendered.head if piece.part not in left)
        )
        given = inputs
        for _ in range(_CUTS):
            cut = shortened_required(given, rendered)
            if cut is None:
                break
            tokens = sum(piece.tokens for piece in cut)
            if tokens <= limit:
                return cut
            if shortest is None or tokens < least:
                shortest, least = cut, tokens
            given = replace(given, room=given.room - (tokens - limit))
    return shortest


def _essentials_beside_history(proposal: Proposal) -> list[Piece] | None:
    """The essentials, and what is condensed told beside them where they can still be read so; `None` where neither."""
    inputs, opening = proposal.inputs, frozenset(entry.seq for entry in proposal.inputs.required.opening)
    history = [piece for piece in proposal.rendered.head if piece.part == "history"]
    for told in (history, []):
        beside = replace(inputs, room=inputs.room - sum(piece.tokens for piece in told))
        minimal = minimal_pieces(beside, proposal.rendered, least_tokens=NUMBERS.least_readable_tokens)
        if minimal is not None:
            return behind_first(told, minimal, opening=opening, reader=inputs.provider)
    return None


def _recovered(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> Taken:
    """After an overflow: the last good checkpoint, aggressive pruning, and on; else a fatal error that explains.

    The request shows the essentials; the view goes on from the plan that it had at that checkpoint, where that holds.

    Args:
        runtime: The memory.
        ref: Which session.
        question: What was asked of the view.
        proposal: What does not fit.
        checkpoint_id: What was saved for this request: the state to come back to where it cannot be recovered.
    """
    runtime.report(
        EventName.CONTEXT_OVERFLOW,
        f"{proposal.used_tokens:,} tokens; not even the messages that must be shown fit {question.window.limit:,}",
        session_id=ref.session_id,
        used_tokens=proposal.used_tokens,
        limit_tokens=question.window.limit,
    )
    good = _last_checkpoint(runtime, ref, besides=checkpoint_id)
    pieces = minimal_pieces(proposal.inputs, None, least_tokens=NUMBERS.least_said_tokens)
    if pieces is not None:
        runtime.report(
            EventName.CONTEXT_RECOVERED,
            "went on with the essentials alone" + (f", from checkpoint {good.id}" if good is not None else ""),
            session_id=ref.session_id,
            checkpoint_id=good.id if good is not None else None,
        )
        plan = _plan_in(good, ref, question) if good is not None else None
        return Taken(pieces=tuple(pieces), steps=(*proposal.steps, "recovered"), plan=plan)
    found = checkpoint_id if checkpoint_id is not None else good.id if good is not None else None
    rooms = proposal.inputs.rooms
    largest = sorted(proposal.rendered.recent(), key=lambda piece: -piece.tokens)[:3]
    named = ", ".join(f"{piece.entry.id[:12]} with {piece.tokens:,}" for piece in largest if piece.entry is not None)
    saved = f"; the run's state is saved in checkpoint {found}" if found else "; every message is in the transcript"
    room, heads = max(proposal.inputs.room, 0), proposal.rendered.head_tokens
    msg = (
        f"messages that must be shown have {room} tokens left: the budget is {rooms.total}, the system prompt and "
        f"tools take {rooms.fixed}, goal and pins {heads}; the largest messages: {named or 'none'}. Raise "
        f"max_tokens, shorten the system prompt or unpin{saved}"
    )
    raise _fatal(runtime, ref, msg, checkpoint_id=found)


def _plan_in(checkpoint: MemoryCheckpoint, ref: SessionRef, question: ViewQuestion) -> ViewPlan | None:
    """The plan that a view had at a checkpoint; `None` where messages, pins or summaries changed since."""
    if checkpoint.context_state.get("epoch") != ref.epoch:
        return None
    wanted = digest_of(question.name)
    payloads = (kept["payload"] for kept in checkpoint.context_state["plans"] if kept["name"] == wanted)
    return next((ViewPlan.from_json(payload) for payload in payloads), None)


def _last_checkpoint(runtime: Runtime, ref: SessionRef, *, besides: str | None = None) -> MemoryCheckpoint | None:
    if not runtime.settings.checkpoints.enabled:
        return None
    try:
        return last_sound(runtime, ref, besides=besides)
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
    if checkpoint_id is None:
        good = _last_checkpoint(runtime, ref)
        checkpoint_id = good.id if good is not None else None
    raise _fatal(runtime, ref, msg, checkpoint_id=checkpoint_id)


def _fatal(runtime: Runtime, ref: SessionRef, msg: str, *, checkpoint_id: str | None) -> ContextOverflowError:
    runtime.report(EventName.CONTEXT_FATAL, msg, session_id=ref.session_id, checkpoint_id=checkpoint_id)
    return ContextOverflowError(msg, checkpoint_id=checkpoint_id)
