"""Learns from refusals and answers how large an agent's next request may be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.budget.asides import unseen_in
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.agent.asides import aside_of, keep_aside, measured
from langchain_tiered_memory.integrations.agent.context import context_of
from langchain_tiered_memory.messages.content_blocks import compacts
from langchain_tiered_memory.messages.ingest import reported_by
from langchain_tiered_memory.models.learned_windows import confirm_window, learn_window
from langchain_tiered_memory.models.overflow import overflow_in, smaller_budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.integrations.agent.context import Choices, Prepared
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.runtime import Runtime


def shrunk(
    memory: TieredMemory, choices: Choices, prepared: Prepared, error: Exception, sent: Sequence[BaseMessage]
) -> Flow[Prepared]:
    """Learn what the refusal tells of the window and of what others add, and assemble again, strictly smaller.

    Args:
        memory: Where everything is kept.
        choices: The agent's.
        prepared: What was refused.
        error: The refusal.
        sent: The messages that were handed on for it, system prompt included.
    """
    runtime, asked, session = memory.core.runtime, prepared.asked, prepared.session
    told, window = overflow_in(error), prepared.context.guard.window
    behind = measured(runtime, prepared, sent, asked.tools).behind
    beside = prepared.room + behind
    total = prepared.context.tokens + beside
    unseen = max((told.sent_tokens or 0) - total, 0)
    name = asked.called.last(asked.model.name)
    if name:  # where a middleware behind called another model, the refusal says nothing of the request's own
        # Without a figure all that is known is that this request and the room for its answer were too much together.
        learn_window(runtime, name, told.limit_tokens or total + window.reserved_tokens)
    if name == asked.model.name:
        aside = prepared.aside.after(behind=behind, unseen=unseen if told.sent_tokens else None)
        keep_aside(runtime, session, name, aside, before=prepared.aside)
    most = smaller_budget(total, told) - beside
    if told.limit_tokens is not None:
        most = min(most, told.limit_tokens - window.reserved_tokens - unseen - beside)
    else:  # where others take most of the room, little can be saved here: half of ours is tried all the same
        most = max(most, prepared.context.tokens // 2)
    context = yield from context_of(session, asked, choices, max_tokens=max(most, 1), off=prepared.off)
    return replace(prepared, context=context)


def answered(
    memory: TieredMemory, prepared: Prepared, answer: Sequence[BaseMessage], sent: Sequence[BaseMessage]
) -> None:
    """Learn from an answered request: what others added to it, and whether a learnt window is larger than was thought.

    Args:
        memory: Where everything is kept.
        prepared: What was answered.
        answer: The messages of the answer; some report the provider's own count of the request.
        sent: The messages that were handed on for it, system prompt included.
    """
    runtime, asked, session = memory.core.runtime, prepared.asked, prepared.session
    name = asked.model.name
    usages = [getattr(message, "usage_metadata", None) or {} for message in answer]
    took = max((int(usage.get("input_tokens") or 0) for usage in usages), default=0)
    found = measured(runtime, prepared, sent, asked.tools)
    memory.core.note_sent(session.session_id, session.track, found.raw_tokens)
    if asked.called.last(name) != name:
        return
    before = aside_of(runtime, session, name)
    counted = prepared.context.tokens + prepared.room + found.behind
    unseen = unseen_in(took=took, counted=counted)
    if unseen and any(reported_by(message) or compacts(message) for message in answer):
        unseen = 0  # the calibration learns of it; of a compacted request nothing can be learnt
    aside = before.after(behind=found.behind, unseen=unseen)
    keep_aside(runtime, session, name, aside, before=before)
    _confirmed(runtime, prepared, took)


def _confirmed(runtime: Runtime, prepared: Prepared, took: int) -> None:
    """Correct a learnt window that the provider's own count of an answered request shows to be too small."""
    name, known = prepared.asked.model.name, prepared.learned
    if name is None or known is None or took <= known:
        return
    try:
        confirm_window(runtime, name, took)
    except StorageError as error:  # the answer is there, and paid for; the next one teaches the same
        runtime.report(
            EventName.WINDOW_NOT_LEARNED, f"{type(error).__name__}: {error}", session_id=prepared.asked.place.session_id
        )
