"""Which facts a view shows: chosen when its plan is made, so that they stand still until the next condensation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.messages.showing import LEAST_TOKENS
from langchain_tiered_memory.summaries.facts.listing import facts_list, standing_alone
from langchain_tiered_memory.summaries.facts.reading import SPEAKERS
from langchain_tiered_memory.summaries.facts.selection import chosen_facts, marks_what_lasts
from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.summaries.facts.written import stated_in
from langchain_tiered_memory.summaries.marks import RULES
from langchain_tiered_memory.summaries.rendering import day, facts_block, item_text
from langchain_tiered_memory.summaries.tree.cover import nodes_of
from langchain_tiered_memory.types.contexts import MARGIN_TOKENS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.summaries.tree.cover import CoverItem
    from langchain_tiered_memory.types.records import Entry, Fact

_CANDIDATES_EACH = 12
"""Facts that are looked at for each that may find room, the weightiest: so many that rarity decides among them, and no
more, however long the session is."""
_TOKENS_EACH, _SHORT_TOKENS = 12, 8
"""Of a fact as it is listed, about, and of a short one: of those that are alike more are looked at than fit."""
_CONTESTED = 1.5
"""Of the room, for a first choice: what does not stand by itself takes more words, or is not listed."""
CORRECTED = 200
"""Former values that are looked for in the prose, the weightiest."""
_MORE, _FINDS = "[more that must last has no room here]", "[more that must last has no room here; `recall` finds it]"
"""Said of what a model marked: whoever reads the list would take it for whole. The other to who has that tool."""


def record_room(inputs: Inputs, items: Sequence[CoverItem]) -> int:
    """Tokens that the facts which must last may take beside a cover, where they need more than the facts' own room."""
    count, known = inputs.counter.count_text, inputs.library.summaries
    return inputs.policy.record - sum(count(item_text(item, known)) for item in items)


def facts_of_view(
    inputs: Inputs,
    items: Sequence[CoverItem],
    *,
    border: int,
    room: int,
    lasting_room: int = 0,
    words: str = "",
) -> str:
    """The facts of messages up to `border` that are worth most, as a list within `room` tokens, frame included.

    What the prose of `items`, the cover, states already, or the `words` of the user that stand there, is not listed
    again; later messages are shown themselves. Facts that must last may take `lasting_room` in the place of `room`,
    where it is more.
    """
    runtime = inputs.runtime
    count = runtime.counter.count_text
    most = max(room, lasting_room)
    if border == 0 or most < LEAST_TOKENS:
        return ""
    share = NUMBERS.facts_of_source_share
    said = runtime.store.tree.condensed_tokens(inputs.ref, up_to=border, enough=math.ceil(most / share))
    frame = count(facts_block("", up_to=border)) + MARGIN_TOKENS
    most = min(most, round(share * said)) - frame
    left = min(max(room - frame, 0), most)
    if most < LEAST_TOKENS:
        return ""
    known = inputs.summaries_with([node.id for node in nodes_of(items) if node.resolution == "whole"])
    prose = "\n".join((*(item_text(item, known) for item in items), words))
    corrections = corrections_of(runtime.store.facts.corrected(inputs.ref, up_to=border, limit=CORRECTED), prose)
    found = runtime.store.facts.candidates(
        inputs.ref,
        up_to=border,
        track=inputs.request.only_track,
        without=inputs.off,
        limit=_CANDIDATES_EACH * (most // _TOKENS_EACH + 1),
        alike=most // _SHORT_TOKENS + 1,
        first=corrections,
    )
    more = _FINDS if inputs.searches else _MORE
    note = count(more) + 1 if any(map(_must_last, found)) else 0

    def choose(facts: Sequence[Fact], *, spare: float) -> list[Fact]:
        return chosen_facts(
            facts,
            room=round(spare * max(left - note, 0)),
            lasting_room=most - note,
            count_text=count,
            told=prose,
            first=corrections,
            among=found,
        )

    likely, marked = choose(found, spare=_CONTESTED), marks_what_lasts(found)
    chosen = choose(_understood(inputs, likely, corrections, marked=marked), spare=1.0)
    listed, shown = facts_list(chosen), {one.id for one in chosen}
    left_out = [one for one in found if _must_last(one) and one.id not in shown]
    return listed if not chosen or all(stated_in(prose, left_out)) else f"{listed}\n{more}"


def _understood(inputs: Inputs, facts: Sequence[Fact], first: Collection[str], *, marked: bool) -> list[Fact]:
    """The facts that a reader understands who sees nothing else, each with the words that it needs for that.

    Those of the ids in `first` have to be shown: they stand as they are. What rules read in messages that a model read
    is none where it marks what must last (`marked`): its summary tells the rest.
    """
    plain = [one for one in facts if one.by_model]
    spoken = [one for one in facts if not one.by_model]
    wanted = {seq for one in spoken for seq in (one.seq, one.seq - 1)} - inputs.off
    known = {entry.seq: entry for entry in inputs.runtime.store.transcript.by_seq(inputs.ref, sorted(wanted))}
    ids = sorted({entry.summary_id for entry in known.values() if entry.summary_id is not None}) if marked else []
    written = inputs.runtime.store.tree.by_id(inputs.ref, ids)
    judged = {one.id for one in written if not (one.by_rules or one.degraded or one.model in (None, RULES))}
    found: dict[tuple[int, str], Fact] = {}
    for one in spoken:
        entry = known.get(one.seq)
        if entry is not None and entry.summary_id in judged and one.kind != "goal" and one.id not in first:
            continue
        said = one.text if entry is None else standing_alone(one, entry, _before(entry, known.get(one.seq - 1)))
        if one.id in first:
            found[one.seq, one.text] = one
        elif said is not None:  # a sentence that stands for several of its facts is told once
            found.setdefault((one.seq, said), one if said == one.text else replace(one, text=said))
    return sorted([*plain, *found.values()], key=lambda one: (one.seq, one.id))


def _before(entry: Entry, before: Entry | None) -> Entry | None:
    """What somebody else said right before a message, on its track and day."""
    if before is None or before.track != entry.track or before.role not in SPEAKERS:
        return None
    is_other = (before.role, before.name) != (entry.role, entry.name)
    return before if is_other and day(before.at) == day(entry.at) else None


def leaves_out(listed: str) -> bool:
    """Whether a list says that something which must last has no room in it."""
    return listed.endswith((_MORE, _FINDS))


def _must_last(fact: Fact) -> bool:
    return fact.by_model and fact.weight >= LASTING and fact.status == "active"


def corrections_of(corrected: Sequence[Fact], prose: str) -> frozenset[str]:
    """The facts that hold in the place of those that the prose still states: a former value never stands alone."""
    later = {one.id: one.superseded_by for one in corrected}
    found: set[str] = set()
    for one, is_told in zip(corrected, stated_in(prose, corrected), strict=True):
        successor = one.superseded_by if is_told else None
        passed: set[str] = set()
        while successor in later and successor not in passed:  # damaged rows may lead in a circle
            passed.add(successor)
            successor = later[successor]
        if successor is not None:
            found.add(successor)
    return frozenset(found)
