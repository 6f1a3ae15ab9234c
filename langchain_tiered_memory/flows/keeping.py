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

from langchain_tiered_memory.decisions.file_list import files_block
from langchain_tiered_memory.decisions.groups import as_groups
from langchain_tiered_memory.decisions.request import masked
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.call_keys import same_looks
from langchain_tiered_memory.flows.showing import Sight, seen_with

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.records import Entry, Group

_CANDIDATES = 120
"""Latest groups with file work that are looked at."""
_LISTED_FILES = 300
"""Files looked at for the list; it shows the latest."""
_LEAST_CUT_TOKENS = 400
"""Room that is worth a group whose largest result is cut."""


def with_file_work(desk: Desk, sight: Sight) -> Flow[Sight]:
    """`sight` with the latest file work before its recent part, as far as there is room."""
    settings = desk.house.settings.files
    room = round(settings.filled_share * desk.room) - sight.tokens - desk.rooms.files
    if not desk.works_on_files or room < _LEAST_CUT_TOKENS or not sight.plan.border:
        return sight
    plan = sight.plan
    seqs = yield from do(
        desk.house.store.files.worked_on, desk.ref, track=desk.track, before=plan.tail_from, limit=_CANDIDATES
    )
    found = (yield from do(desk.house.store.transcript.groups_of, desk.ref, seqs)) if seqs else []
    groups = [
        group
        for group in as_groups(found)
        if group.last_seq < plan.tail_from
        and group.first_seq not in plan.kept
        and not any(entry.seq in desk.off for entry in group.entries)
    ]
    if not groups:
        return sight
    recent = as_groups(sight.tail)
    looks = yield from do(same_looks, [*groups, *recent])
    chosen, cut = _chosen(
        desk, list(reversed(groups)), looks, room=room, most=round(settings.largest_share * desk.room) - sight.tokens
    )
    if not chosen:
        return sight
    kept = tuple(sorted({*plan.kept, *(group.first_seq for group in chosen)}))
    entries = (entry for group in chosen for entry in group.entries)
    masks = dict(plan.masked) | ({cut[0].seq: cut[1]} if cut is not None else {})
    smaller = replace(plan, kept=kept, masked=tuple(sorted(masks.items())))
    together = sorted([*entries, *sight.tail], key=lambda entry: entry.seq)
    return (yield from seen_with(desk, smaller, together))


def with_files(desk: Desk, sight: Sight) -> Flow[Sight]:
    """`sight` with the list of touched files that nothing in it names; room for quoting the user is passed on to it.

    Looked for in what is shown, for an output that is masked or cut names nothing any more.
    """
    plan, settings = sight.plan, desk.house.settings.files
    if not (settings.enabled and (plan.border or plan.left or plan.left_spans)):
        return sight
    touched = yield from do(desk.house.store.files.latest, desk.ref, track=desk.track, limit=_LISTED_FILES)
    cut = {seq for seq, _ in plan.masked}
    shown = "\n".join(entry.payload for entry in sight.tail if entry.seq not in cut)
    unseen = [one for one in touched if json.dumps(one.path)[1:-1] not in shown]
    quoted = frozenset(plan.queries[:-1])  # the last one may lead the recent part as itself
    spent = sum(entry.tokens for entry in desk.musts.recent.users if entry.seq in quoted)
    room = desk.rooms.files + max(desk.rooms.queries - spent, 0)
    block = yield from do(files_block, unseen, room_tokens=room, count=desk.house.counter.count_text)
    return sight if block == plan.files else (yield from seen_with(desk, replace(plan, files=block), sight.tail))


def _chosen(
    desk: Desk, newest_first: list[Group], looks: dict[int, str], *, room: int, most: int
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
        keep = room - (group.tokens - largest.tokens) - _margin(desk, largest)
        if keep >= _LEAST_CUT_TOKENS // 2:
            return [*chosen, group], (largest, keep)
    return chosen, None


def _margin(desk: Desk, entry: Entry) -> int:
    """What a cut result takes besides the tokens that it keeps."""
    return masked(entry, keep_tokens=0, counter=desk.house.counter).tokens
