"""What of an agent's work on files stays word for word when its view is condensed.

An agent comes back to what it read or wrote: an edit needs the file's own words, and no summary has them. So after a
condensation the room that the next steps do not need at once is filled with the latest groups that read or wrote a
file, whole, newest first. They stand between the summaries and the recent messages until the next condensation; the
summaries go on standing for them as well. A history without file tools has none.

Measured on agent transcripts (`benchmarks/transcript_probes.py`): newest first was better than by file, by size, or
preferring edits.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.layout import masked, ours
from langchain_tiered_memory.context.view.call_fingerprints import same_looks
from langchain_tiered_memory.context.view.rendered_view import RenderedView, seen_with
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.runs.file_list import files_block

if TYPE_CHECKING:
    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.types.records import Entry, Group

_CANDIDATES = 120
"""Latest groups with file work that are looked at."""
_LISTED_FILES = 300
"""Files looked at for the list; it shows the latest."""
_LEAST_CUT_TOKENS = 400
"""Room that is worth a group whose largest result is cut."""

_SLACK_TOKENS = (0, 4, 16)
"""A text and its message may count as a little more together than apart."""


def with_file_work(inputs: AssemblyInputs, rendered: RenderedView) -> RenderedView:
    """`rendered` with the latest file work before its recent part, as far as there is room."""
    settings = inputs.runtime.settings.files
    filled = inputs.fill if inputs.fill is not None else round(settings.filled_share * inputs.room)
    room = filled - rendered.tokens - inputs.allocation.files
    if not inputs.works_on_files or room < _LEAST_CUT_TOKENS or not rendered.plan.border:
        return rendered
    plan = rendered.plan
    seqs = inputs.runtime.store.files.worked_on(
        inputs.ref, track=inputs.track, before=plan.tail_from, limit=_CANDIDATES
    )
    found = inputs.runtime.store.transcript.groups_of(inputs.ref, seqs) if seqs else []
    groups = [
        group
        for group in as_groups(found)
        if group.last_seq < plan.tail_from
        and group.first_seq not in plan.kept
        and not any(entry.seq in inputs.off for entry in group.entries)
    ]
    if not groups:
        return rendered
    recent = as_groups(rendered.tail)
    looks = same_looks([*groups, *recent])
    chosen, cut = _chosen(
        inputs,
        list(reversed(groups)),
        looks,
        room=room,
        most=round(settings.largest_share * inputs.room) - rendered.tokens,
    )
    if not chosen:
        return rendered
    kept = tuple(sorted({*plan.kept, *(group.first_seq for group in chosen)}))
    entries = (entry for group in chosen for entry in group.entries)
    masks = dict(plan.masked) | ({cut[0].seq: cut[1]} if cut is not None else {})
    smaller = replace(plan, kept=kept, masked=tuple(sorted(masks.items())))
    together = sorted([*entries, *rendered.tail], key=lambda entry: entry.seq)
    return seen_with(inputs, smaller, together)


def with_files(inputs: AssemblyInputs, rendered: RenderedView) -> RenderedView:
    """`rendered` with the list of touched files that nothing in it names, within its own room, the message included.

    Looked for in what is shown, for an output that is masked or cut names nothing any more.
    """
    plan, settings = rendered.plan, inputs.runtime.settings.files
    if not (settings.enabled and (plan.border or plan.left or plan.left_spans)):
        return rendered
    touched = inputs.runtime.store.files.latest(inputs.ref, track=inputs.track, limit=_LISTED_FILES)
    cut = {seq for seq, _ in plan.masked}
    shown = "\n".join(entry.payload for entry in rendered.tail if entry.seq not in cut)
    unseen = [one for one in touched if one.seq not in inputs.off and json.dumps(one.path)[1:-1] not in shown]
    counter = inputs.runtime.counter
    room, block = inputs.allocation.files, ""
    framing = ours("", part="files", counter=counter).tokens
    for slack in _SLACK_TOKENS:
        block = files_block(unseen, room_tokens=room - framing - slack, count=counter.count_text)
        if not block or ours(block, part="files", counter=counter).tokens <= room:
            break
    else:
        block = ""
    return rendered if block == plan.files else seen_with(inputs, replace(plan, files=block), rendered.tail)


def _chosen(
    inputs: AssemblyInputs, newest_first: list[Group], looks: dict[int, str], *, room: int, most: int
) -> tuple[list[Group], tuple[Entry, int] | None]:
    """Groups for the room, and the one result among them that has to be cut, with the tokens that it keeps."""
    latest = {look: seq for seq, look in sorted(looks.items())}
    chosen: list[Group] = []
    for group in newest_first:
        own = [looks[entry.seq] for entry in group.entries if entry.seq in looks]
        if own and all(latest[look] > group.last_seq for look in own):
            continue  # a later call looked at the same again
        if group.tokens <= room or (not chosen and group.tokens <= most):
            chosen.append(group)
            room -= group.tokens
            continue
        largest = max(group.entries, key=lambda entry: entry.tokens if entry.answers is not None else 0)
        if largest.answers is None or room < _LEAST_CUT_TOKENS:
            continue
        keep = room - (group.tokens - largest.tokens) - _margin(inputs, largest)
        if keep >= _LEAST_CUT_TOKENS // 2:
            return [*chosen, group], (largest, keep)
    return chosen, None


def _margin(inputs: AssemblyInputs, entry: Entry) -> int:
    """What a cut result takes besides the tokens that it keeps."""
    return masked(entry, keep_tokens=0, counter=inputs.runtime.counter).tokens
