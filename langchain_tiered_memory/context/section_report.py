"""Section report of a context: what is in, what stayed out and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from langchain_tiered_memory.summaries.tree.cover import (
    CoverItem,
    Gap,
    GapReason,
    Joint,
    gaps_of,
    in_order,
    nodes_of,
    summary_ids_of,
)
from langchain_tiered_memory.types.contexts import Section
from langchain_tiered_memory.types.outcomes import ShownView, Stretch
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.pieces import Piece
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.types.contexts import ViewPolicy


_REASONS: dict[GapReason, str] = {
    "of_branch": "condensed with messages of another branch",
    "slid": "left out by the sliding window",
    "pruned": "pruned: least important for the task at hand",
}

_CUT, _NO_ROOM = "too large: shown head and tail", "no room in the share of pinned messages"


COMPACTED = "compacted by the provider"
"""Why nothing of ours tells of what is before a provider's own compaction."""
POINTED = "its text is shown there"
"""Ends the reason of a result in whose place a view has a pointer."""


def reason_of(gap: Gap) -> str:
    """Why a gap is one."""
    return _REASONS[gap.why] if gap.why is not None else "not condensed yet"


def shown_by(plan: ViewPlan) -> ShownView:
    """What a plan shows, for a person: no text of a summary, which may be another one by now."""
    stretches = [_stretch(item) for item in in_order((*plan.items, *plan.left_spans))]
    if plan.since > 1:
        before = plan.since - 1
        told = Stretch(first_seq=1, last_seq=before, messages=before, shown="untold", reason=COMPACTED)
        stretches.insert(0, told)
    return ShownView(
        stretches=tuple(stretches),
        whole_from=plan.tail_from,
        left_groups=plan.left,
        kept_groups=plan.kept,
        cut=tuple(seq for seq, _ in plan.masked),
        quoted=tuple(dict.fromkeys((*plan.queries, *plan.always, *([plan.answers] if plan.answers else [])))),
        facts=plan.facts,
        files=plan.files,
        parts=plan.parts,
    )


def _stretch(item: CoverItem) -> Stretch:
    first, last, messages = item.first_seq, item.last_seq, item.entry_count
    if isinstance(item, Gap):
        return Stretch(first_seq=first, last_seq=last, messages=messages, shown="untold", reason=reason_of(item))
    shown: Literal["whole", "short", "headline", "joined"] = "joined" if isinstance(item, Joint) else item.resolution
    ids = item.ids if isinstance(item, Joint) else (item.id,)
    return Stretch(first_seq=first, last_seq=last, messages=messages, shown=shown, summary_ids=ids, tokens=item.tokens)


def not_shown(packing: Packing) -> tuple[LeftOut, ...]:
    """What no item of the plan names: what a compaction stands for, what this request cut, and other tracks."""
    inputs, plan = packing.inputs, packing.rendered.plan
    if not inputs.has_view:
        return ()
    left = [LeftOut(what=f"1-{plan.since - 1}", reason=COMPACTED)] if plan.since > 1 else []
    if packing.is_cut:
        shown = {entry.seq for piece in packing.pieces for entry in (*piece.whole_entries, *piece.passages)}
        standing = {one for piece in packing.pieces for one in piece.summary_ids}
        tokens = {node.id: node.tokens for node in nodes_of(plan.items)}
        untold = [one for one in summary_ids_of(plan.items) if one not in standing]
        beside, gone = "no room beside required messages", packing.rendered.tail
        left += [LeftOut(what=one, reason=beside, tokens=tokens.get(one, 0)) for one in untold]
        left += [LeftOut(what=e.id, reason="not essential", tokens=e.tokens) for e in gone if e.seq not in shown]
    if inputs.required.has_other_tracks and not inputs.request.alone:
        left.append(LeftOut(what="other tracks", reason="messages without a summary in this view yet"))
    return tuple(left)


def account(
    pieces: Sequence[Piece],
    *,
    policy: ViewPolicy,
    items: Sequence[CoverItem],
    other_left_out: Sequence[LeftOut],
    recalled_left_out: Sequence[LeftOut],
    registered: Sequence[Section] = (),
) -> tuple[Section, ...]:
    """One section for each part that is there; `system` stands for the system prompt and the tool schemas.

    Registered sections stand in one message with recall: each has an account of its own, behind recall's.
    """
    gaps = gaps_of(items)
    untold = {
        "history": [
            *(LeftOut(what=f"{gap.first_seq}-{gap.last_seq}", reason=reason_of(gap)) for gap in gaps),
            *other_left_out,
        ],
        "recall": recalled_left_out,
    }
    sections = [Section(name="system", tokens=policy.fixed, cap=policy.row("system").tokens)]
    for row in policy:
        part = row.section
        mine = [piece for piece in pieces if piece.part == part]
        left_out = list(untold.get(part, ()))
        if part in ("pinned", "recent"):
            cut = [(_CUT, entry) for piece in mine for entry in piece.passages]
            cut += [(_NO_ROOM, entry) for piece in mine for entry in piece.left_out]
            left_out += [LeftOut(what=entry.id, reason=why, tokens=entry.tokens) for why, entry in cut]
        left_out += [
            LeftOut(
                what=piece.entry.id,
                reason=f"a file with the text of message {piece.stands_in.seq}: {POINTED}",
                tokens=piece.entry.tokens - piece.tokens,
            )
            for piece in mine
            if piece.entry is not None and piece.stands_in is not None
        ]
        if part == "system" or not (mine or left_out):
            continue
        tokens = sum(piece.tokens for piece in mine)
        text = "\n".join(piece.text for piece in mine if piece.text)
        if part == "recall":
            tokens -= sum(one.tokens for one in registered)
            text = text.removesuffix("\n".join(one.text for one in registered if one.text)).removesuffix("\n")
        sections.append(
            Section(
                name=part,
                tokens=tokens,
                cap=row.tokens,
                entry_ids=tuple(entry.id for piece in mine for entry in piece.whole_entries),
                passage_ids=tuple(entry.id for piece in mine for entry in piece.passages),
                summary_ids=tuple(one for piece in mine for one in piece.summary_ids),
                left_out=tuple(left_out),
                text=text,
                not_shown=sum(gap.entry_count for gap in gaps) if part == "history" else 0,
            )
        )
    return (*sections, *registered)
