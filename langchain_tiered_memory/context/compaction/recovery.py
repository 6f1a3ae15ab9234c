"""Recovery where not even the essentials fit: from the last good checkpoint, or an error that names what is large."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.cutting import minimal_pieces
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.rendered_view import render_view
from langchain_tiered_memory.errors import CheckpointError, ContextOverflowError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.checkpoints import last_sound
from langchain_tiered_memory.sql.schema import digest_of

if TYPE_CHECKING:
    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.types.runs import MemoryCheckpoint


def recovered(packing: Packing, *, checkpoint_id: str | None) -> Packing:
    """After an overflow: the essentials however short, and on from the last good checkpoint; else a fatal error.

    The view goes on from the plan that it had at that checkpoint, where that holds. `checkpoint_id` is what was saved
    for this request: the state to come back to where it cannot be recovered.

    Raises:
        ContextOverflowError: when they do not fit; it says what takes the room.
    """
    inputs, session_id = packing.inputs, packing.inputs.ref.session_id
    used, limit = packing.need.used_tokens, inputs.window.limit
    inputs.runtime.report(
        EventName.CONTEXT_OVERFLOW,
        f"{used:,} tokens; not even the messages that must be shown fit {limit:,}",
        session_id=session_id,
        used_tokens=used,
        limit_tokens=limit,
    )
    good = _last_checkpoint(inputs, besides=checkpoint_id)
    pieces = minimal_pieces(inputs, None, least_tokens=NUMBERS.least_said_tokens)
    good_id = good.id if good is not None else None
    if pieces is None:
        checkpoint_id = checkpoint_id or good_id
        raise _fatal(inputs, _what_takes_the_room(packing, checkpoint_id), checkpoint_id=checkpoint_id)
    inputs.runtime.report(
        EventName.CONTEXT_RECOVERED,
        "went on with the essentials alone" + (f", from checkpoint {good_id}" if good_id is not None else ""),
        session_id=session_id,
        checkpoint_id=good_id,
    )
    plan = _plan_in(good, inputs) if good is not None else None
    rendered = render_view(inputs, plan) if plan is not None else packing.rendered
    return replace(packing, pieces=tuple(pieces), steps=(*packing.steps, "recovered"), rendered=rendered)


def overflowed(inputs: Inputs, msg: str, *, checkpoint_id: str | None) -> ContextOverflowError:
    """The error where what must be shown did not fit even after it was cut, with what is saved."""
    good = _last_checkpoint(inputs) if checkpoint_id is None else None
    return _fatal(inputs, msg, checkpoint_id=good.id if good is not None else checkpoint_id)


def _what_takes_the_room(packing: Packing, checkpoint_id: str | None) -> str:
    policy, head = packing.inputs.policy, packing.rendered.head_tokens
    largest = sorted(packing.rendered.recent(), key=lambda piece: -piece.tokens)[:3]
    named = ", ".join(f"{piece.entry.id[:12]} with {piece.tokens:,}" for piece in largest if piece.entry is not None)
    saved = (
        f"; the run's state is saved in checkpoint {checkpoint_id}"
        if checkpoint_id
        else "; every message is in the transcript"
    )
    return (
        f"messages that must be shown have {max(packing.inputs.room, 0)} tokens left: the budget is {policy.total}, "
        f"the system prompt and tools take {policy.fixed}, goal and pins {head}; the largest messages: "
        f"{named or 'none'}. Raise max_tokens, shorten the system prompt or unpin{saved}"
    )


def _plan_in(checkpoint: MemoryCheckpoint, inputs: Inputs) -> ViewPlan | None:
    """The plan that a view had at a checkpoint; `None` where messages, pins or summaries changed since."""
    if checkpoint.context_state.get("epoch") != inputs.ref.epoch:
        return None
    wanted = digest_of(inputs.name)
    payloads = (kept["payload"] for kept in checkpoint.context_state["plans"] if kept["name"] == wanted)
    return next((ViewPlan.from_json(payload) for payload in payloads), None)


def _last_checkpoint(inputs: Inputs, *, besides: str | None = None) -> MemoryCheckpoint | None:
    if not inputs.settings.checkpoints.enabled:
        return None
    try:
        return last_sound(inputs.runtime, inputs.ref, besides=besides)
    except CheckpointError as error:
        inputs.runtime.report(EventName.CHECKPOINT_UNUSABLE, str(error), session_id=inputs.ref.session_id)
        return None


def _fatal(inputs: Inputs, msg: str, *, checkpoint_id: str | None) -> ContextOverflowError:
    inputs.runtime.report(
        EventName.CONTEXT_FATAL, msg, session_id=inputs.ref.session_id, checkpoint_id=checkpoint_id
    )  # fmt: skip
    return ContextOverflowError(msg, checkpoint_id=checkpoint_id)
