"""A view that begins with a provider's own compaction: what the provider summarised is shown by that block alone.

Anthropic's and OpenAI's APIs summarise a long request themselves, where they are asked to, and give the summary back
as a block of the answer. It stands for all that was said before, only they can read or check it, and they pass over
whatever a request has in front of it. So it stands first, whole, with the results of its message's calls; what a view
tells besides stands behind it. The transcript and its summaries go on as ever: a model of another provider, which
cannot read the block, is shown what it would have been shown without it.

Sources: "Compaction" in the documentation of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.context.view.fact_section import facts_of_view
from langchain_tiered_memory.context.view.file_retention import with_files
from langchain_tiered_memory.context.view.kept_kinds import kept_by_kind
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.rendered_view import RenderedView, render_view
from langchain_tiered_memory.messages.content_blocks import compacts
from langchain_tiered_memory.messages.quoting import message_or_stand_in

if TYPE_CHECKING:
    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.types.records import Entry

_NAMED: str = "compaction"
"""In the payload of every message that has such a block: most need not be decoded."""


def begun_by_compaction(inputs: AssemblyInputs, rendered: RenderedView) -> RenderedView:
    """`rendered` from the provider's newest compaction on; as it is, where it begins with that or has none."""
    newest = next((entry for entry in reversed(rendered.tail) if _has_compaction(entry, inputs.provider)), None)
    if newest is None or newest.seq <= rendered.plan.since:
        return rendered
    border = newest.seq - 1
    plan = ViewPlan(
        border=border,
        tail_from=newest.seq,
        since=newest.seq,
        ratio=inputs.ratio,
        masked=tuple(one for one in rendered.plan.masked if one[0] > newest.seq),
        facts=facts_of_view(inputs, (), border=border, room=inputs.allocation.facts),
        always=kept_by_kind(inputs, rendered.plan),
    )
    return with_files(inputs, render_view(inputs, plan))


def _has_compaction(entry: Entry, reader: str | None) -> bool:
    if entry.role != "assistant" or _NAMED not in entry.payload:
        return False
    return compacts(message_or_stand_in(entry)[0], reader=reader)
