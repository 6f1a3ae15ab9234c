"""Messages of a condensed stretch whose calls still wait for results: they stay in the view, but not at any length.

A provider must be sent every call that may yet be answered. A turn that was broken off can leave one with whole files
in its arguments, which nothing ever answers; shown whole it would take the view's room at each request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.masking import OVERHEAD_TOKENS
from langchain_tiered_memory.context.view.rendered_view import RenderedView, seen_with

if TYPE_CHECKING:
    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs

_SHARE = 0.05
"""Of a view's room, for each such message."""
_LEAST_TOKENS = 120
"""What it may take in any room."""


def with_shorter_held(inputs: AssemblyInputs, rendered: RenderedView) -> RenderedView:
    """`rendered` with the kept messages that make calls cut to a small share of the room, arguments head and tail."""
    plan = rendered.plan
    most = max(round(_SHARE * inputs.room), _LEAST_TOKENS)
    long = {
        entry.seq: most - OVERHEAD_TOKENS
        for entry in rendered.tail
        if entry.calls and entry.group in plan.kept and entry.seq < plan.tail_from and entry.tokens > most
        if entry.group != plan.since
        and entry.group < inputs.required.recent.guard
        and not _is_answered(rendered, entry.group)
    }
    if not long:
        return rendered
    masked = tuple(sorted((dict(plan.masked) | long).items()))
    return seen_with(inputs, replace(plan, masked=masked), rendered.tail)


def _is_answered(rendered: RenderedView, group: int) -> bool:
    """Whether a result of it stands among the recent messages: then the model is at work on it."""
    return any(entry.group == group and entry.seq >= rendered.plan.tail_from for entry in rendered.tail)
