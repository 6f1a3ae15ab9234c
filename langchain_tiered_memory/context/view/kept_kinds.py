"""Which messages a view keeps for the kind that the caller gave them: the rows of the priority matrix, in every view.

Chosen when a plan is made, so that they stand still until the next. Those of priority 1 stand in all views, as far as
the share of what is pinned goes, and are named where it does not go; those of 2 and 3 take what room that leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning_kinds import priority_of
from langchain_tiered_memory.context.compaction.pruning_run import task_of

if TYPE_CHECKING:
    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.types.records import Entry

_MOST = 64
"""Messages of a kind that are looked at behind those that stand already, the newest: a share holds no more."""
_FINISHED_TASKS = 8
_ALWAYS = 1
_LEAVES_FIRST = 4


def kept_by_kind(inputs: AssemblyInputs, previous: ViewPlan | None) -> tuple[int, ...]:
    """`seq`s of the messages that their kinds keep in view, the most important last.

    Args:
        inputs: Of the assembly.
        previous: The plan before: what it kept, and what came since, is all there is to choose from.
    """
    store = inputs.runtime.store
    since = previous.tail_from - 1 if previous is not None else 0
    found = store.transcript.of_kinds(inputs.ref, track=inputs.track, after=since, limit=_MOST)
    if previous is not None and previous.always:
        found += store.transcript.by_seq(inputs.ref, previous.always)
    entries = {one.seq: one for one in found if one.seq not in inputs.off and _priority(one) < _LEAVES_FIRST}
    if not entries:
        return ()
    current = store.runs.current_task(inputs.ref, inputs.track)
    tasks = store.runs.tasks(inputs.ref, newest_finished=_FINISHED_TASKS) if current is not None else []
    room = inputs.allocation.pins - sum(one.tokens for one in inputs.required.pinned)
    chosen: list[Entry] = []
    for one in sorted(entries.values(), key=lambda one: (_priority(one), -one.seq)):
        if current is not None and task_of([one], tasks) not in (None, current):
            continue
        if _priority(one) == _ALWAYS or one.tokens <= room:
            chosen.append(one)
            room -= one.tokens
    return tuple(one.seq for one in reversed(chosen))


def _priority(entry: Entry) -> int:
    return priority_of([entry]) or _LEAVES_FIRST
