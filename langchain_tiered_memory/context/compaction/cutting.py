"""What a request shows where its view does not fit: the messages that must be shown, cut; or the essentials alone.

The essentials are those of the design's aggressive pruning: system prompt, current task, active file, last user
message, last error. Where not even they fit, it goes on from the last good checkpoint, or an error names what is large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning import named_kind, priority_of
from langchain_tiered_memory.context.layout import in_request_order
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import Piece, shortened, shown
from langchain_tiered_memory.context.policy import LEAVES_FOR_REQUIRED
from langchain_tiered_memory.context.required_messages import kept_by_kind, run_at_hand
from langchain_tiered_memory.context.view.call_folding import folded_calls, folding_head
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.rendered_view import render_view
from langchain_tiered_memory.errors import CheckpointError, ContextOverflowError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.models.message_counting import CALL_TOKENS
from langchain_tiered_memory.runs.checkpoints import last_sound
from langchain_tiered_memory.sql.schema import digest_of
from langchain_tiered_memory.text.truncation import water_level, whole_again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.compaction.pruning_items import RunFacts
    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.rendered_view import RenderedView
    from langchain_tiered_memory.types.outcomes import StepKind
    from langchain_tiered_memory.types.records import Entry, Group
    from langchain_tiered_memory.types.runs import MemoryCheckpoint

_CUTS = 4
"""Times that required messages are cut beside the same head, each with the last one's excess taken off the room."""
_READ_ENTRIES = 200
"""Newest messages among which a minimal view looks for what is essential."""


def required_cut(packing: Packing) -> Packing | None:
    """The required messages cut, beside as much of the head as leaves them room; `None` where they cannot be read so.

    What is cut may take a little more than it was given, which is taken off the room then. Long calls cannot be cut to
    any size: where that does not help, something of the head has to leave for a few tokens, and where nothing does, all
    that stands beside the calls is as short as it can be.
    """
    inputs = packing.inputs
    if "minimal" in inputs.mode:
        return None
    limit = inputs.room + inputs.policy.recall
    shortest: list[Piece] | None = None
    least = 0
    for gone in range(len(LEAVES_FOR_REQUIRED) + 1):
        left = LEAVES_FOR_REQUIRED[:gone]
        head = [piece for piece in packing.rendered.head if piece.part not in left]
        excess = 0
        for _ in range(_CUTS):
            cut = _shortened(replace(inputs, margin=inputs.margin + excess), head, packing.rendered)
            tokens = sum(piece.tokens for piece in cut or ())
            if cut is not None and (shortest is None or tokens < least):
                shortest, least = cut, tokens
            if cut is None or tokens <= limit:
                break
            excess += tokens - limit
        if shortest is not None and least <= limit:
            break
    return _with(packing, shortest, "shortened") if shortest is not None else None


def essentials_shown(packing: Packing) -> Packing | None:
    """The essentials, beside what is condensed where they can still be read so; `None` where they cannot be read."""
    inputs = packing.inputs
    if "minimal" in inputs.mode:
        minimal = minimal_pieces(inputs, packing.rendered, least_tokens=NUMBERS.least_said_tokens)
        return _with(packing, minimal, "minimal") if minimal is not None else None
    history = [piece for piece in packing.rendered.head if piece.part == "history"]
    for told in (history, []):
        beside = replace(inputs, margin=inputs.margin + sum(piece.tokens for piece in told))
        minimal = minimal_pieces(beside, packing.rendered, least_tokens=NUMBERS.least_readable_tokens)
        if minimal is not None:
            inputs.runtime.report(
                EventName.CONTEXT_MINIMAL,
                "pruning was not enough: only the essentials are shown",
                session_id=inputs.ref.session_id,
            )
            return _with(packing, in_request_order(inputs, told, minimal), "minimal")
    return None


def _with(packing: Packing, pieces: Sequence[Piece], step: StepKind) -> Packing:
    return replace(packing, pieces=tuple(pieces), steps=(*packing.steps, step))


def _shortened(inputs: Inputs, head: Sequence[Piece], rendered: RenderedView) -> list[Piece] | None:
    """Head and recent messages within the room, the longest head and tail; `None` where that says too little.

    What is set aside for recall stays recall's while messages that the model has seen can give way: those are cut
    first. What is news to it, such as the result that it waits for, may take most of recall's room before it is cut
    itself; and all of it where there would be too little of each message to be read.
    """
    room = inputs.room - sum(piece.tokens for piece in head)
    pieces = rendered.recent()
    whole = sum(piece.tokens for piece in pieces)
    if whole <= room:
        return in_request_order(inputs, head, pieces)
    # What a pointer leads to may be cut below.
    pieces = [shown(piece.entry) if piece.entry is not None and piece.stands_in else piece for piece in pieces]
    recall, news = inputs.policy.recall, _news_from(pieces)
    # All that is news whole, and the others as short as can be read.
    least = sum(min(piece.tokens, NUMBERS.least_readable_tokens) for piece in pieces[:news])
    least += sum(piece.tokens for piece in pieces[news:])
    lent = min(max(least - room, 0), round(NUMBERS.lent_share * recall))
    cut: list[Piece] | None = None
    for offered in (room + lent, room + recall):
        cut = _shared_out(inputs, pieces, room=offered)
        if cut is not None and sum(piece.tokens for piece in cut) <= offered:
            return in_request_order(inputs, head, cut)
    # Calls take room however short they are: where they are many, some of them have to be folded.
    return in_request_order(inputs, head, cut) if cut is not None and folding_head(rendered.tail) is None else None


def _news_from(pieces: Sequence[Piece]) -> int:
    """The place of the first piece behind the assistant's last words: from there on the model has not seen anything."""
    said = [at for at, piece in enumerate(pieces) if piece.entry is not None and piece.entry.role == "assistant"]
    return said[-1] + 1 if said else 0


def _shared_out(inputs: Inputs, pieces: Sequence[Piece], *, room: int) -> list[Piece] | None:
    """Pieces cut to a room, what the model has seen before what is news; `None` where too little of each is left."""
    news = _news_from(pieces)
    seen, new = [piece.tokens for piece in pieces[:news]], [piece.tokens for piece in pieces[news:]]
    room_of_new = room - sum(min(tokens, NUMBERS.least_readable_tokens) for tokens in seen)
    level_of_new = water_level(new, room_of_new)
    left, recall = room - sum(min(tokens, level_of_new) for tokens in new), inputs.policy.recall
    # Less where recall's share is small, down to a goal's for each message that the model has seen.
    wanted = max(NUMBERS.least_recall_tokens - recall, 0) if recall else 0
    each = max(inputs.policy.of("goal"), NUMBERS.least_readable_tokens)
    room_of_seen = min(left, max(left - wanted, len(seen) * each))
    level_of_seen = water_level(seen, room_of_seen)
    if _too_little(level_of_seen, seen) or _too_little(level_of_new, new):
        return None
    return [
        *_cut(inputs, pieces[:news], level_of_seen, room=room_of_seen),
        *_cut(inputs, pieces[news:], level_of_new, room=room_of_new),
    ]


def _too_little(level: int, sizes: Sequence[int]) -> bool:
    """Whether something is cut to less than can be read."""
    return level < min(NUMBERS.least_readable_tokens, max(sizes, default=0))


def _cut(inputs: Inputs, pieces: Sequence[Piece], level: int, *, room: int) -> list[Piece]:
    """Pieces cut to a level; the newest of those that gave up more than they had to are whole again."""
    counter = inputs.counter
    cut = [
        piece
        if piece.tokens <= level or piece.entry is None
        else shortened(piece.entry, max_tokens=level, counter=counter, expands=inputs.expands, part=piece.part)
        for piece in pieces
    ]
    stays = whole_again([piece.tokens for piece in cut], [piece.tokens for piece in pieces], room)
    return [pieces[at] if at in stays else piece for at, piece in enumerate(cut)]


def minimal_pieces(inputs: Inputs, rendered: RenderedView | None, *, least_tokens: int) -> list[Piece] | None:
    """The essentials within the room, cut where they are too long; `None` where `least_tokens` of each do not fit."""
    tail: Sequence[Entry] = rendered.tail if rendered is not None else _newest(inputs)
    groups = as_groups(tail)
    essential = essentials(run_at_hand(inputs, groups, newest_finished=0))
    chosen = {seq for seqs in essential.values() for seq in seqs} | _always_kept(inputs, groups, rendered)
    # A call that waits for its result must be shown with what comes, and results that are news to the model.
    waiting = {group.first_seq for group in groups[-1:] if group.unanswered or group.entries[-1].role == "tool"}
    entries = [entry for group in groups if group.first_seq in {*chosen, *waiting} for entry in group.entries]
    there = {entry.seq for entry in entries}
    goal = {entry.seq for entry in inputs.required.opening} - there
    musts = {entry.seq: entry for entry in (*inputs.required.opening, *inputs.required.users[-1:], *entries)}
    wanted = [musts[seq] for seq in sorted(musts)]
    room = inputs.room + inputs.policy.recall
    pieces = [shown(entry, part="goal" if entry.seq in goal else "recent") for entry in wanted]
    taken = sum(entry.tokens for entry in wanted)
    if taken <= room:
        # What is always kept for its kind is essential, too, where it is not there already.
        always = rendered.head if rendered is not None and rendered.plan.always else ()
        kept = [piece for piece in always if piece.part == "pinned" and piece.tokens <= room - taken]
        return [*pieces[: len(goal)], *kept, *pieces[len(goal) :]]
    level = water_level([entry.tokens for entry in wanted], room)
    cut = _cut(inputs, pieces, level, room=room) if level >= least_tokens else None
    head = folding_head(wanted)
    if head is None or (cut is not None and sum(piece.tokens for piece in cut) <= room):
        return cut
    return _with_folded(inputs, head, pieces, room=room) if least_tokens <= NUMBERS.least_said_tokens else None


def _always_kept(inputs: Inputs, groups: Sequence[Group], rendered: RenderedView | None) -> set[int]:
    """Groups of the recent messages that are always kept for their kind, as far as the share of pins goes."""
    if rendered is None:
        return set()
    owner = {entry.seq: group for group in groups for entry in group.entries if priority_of([entry]) == 1}
    room = inputs.policy.of("pinned")
    kept: set[int] = set()
    for seq in reversed(kept_by_kind(inputs, rendered.plan) if owner else ()):
        group = owner.get(seq)
        if group is not None and group.first_seq not in kept and group.tokens <= room:
            kept.add(group.first_seq)
            room -= group.tokens
    return kept


def _with_folded(inputs: Inputs, head: Entry, pieces: Sequence[Piece], *, room: int) -> list[Piece] | None:
    """Pieces with the calls of one message folded, all else cut to a share of the room."""
    group = {piece.entry.seq: piece.entry for piece in pieces if piece.entry and piece.entry.group == head.group}
    rest = [piece for piece in pieces if piece.entry is None or piece.entry.seq not in group]
    share = min(sum(piece.tokens for piece in rest), round(NUMBERS.beside_folded_share * room))
    level = water_level([piece.tokens for piece in rest], share)
    if rest and level < NUMBERS.least_said_tokens and level < max(piece.tokens for piece in rest):
        return None
    cut = _cut(inputs, rest, level, room=share)
    left = room - sum(piece.tokens for piece in cut)
    folded = folded_calls(head, list(group.values()), room=left, counter=inputs.counter, expands=inputs.expands)
    if folded is None:
        return None
    before = [piece for piece in cut if piece.entry is None or piece.entry.seq < head.seq]
    return [*before, *folded, *cut[len(before) :]]


def _newest(inputs: Inputs) -> list[Entry]:
    found = inputs.entries(limit=max(_READ_ENTRIES, inputs.room // CALL_TOKENS))
    numbers = {entry.seq for entry in found}
    heads = {entry.group for entry in found[-1:]} - numbers
    before = inputs.runtime.store.transcript.by_seq(inputs.ref, sorted(heads))
    return [entry for entry in (*before, *reversed(found)) if entry.seq not in inputs.off]


def essentials(run: RunFacts) -> dict[str, tuple[int, ...]]:
    """What a minimal context consists of, by what it is: the `first_seq`s of groups. One can be more than one thing.

    `task` is what says what is to be done: description and acceptance criteria, else the first user message. `file` is
    where the active file's latest content stands, `user` the last user message, `error` the latest error that nothing
    settled; where all are settled, the latest.
    """
    groups = [reading.group for reading in run.readings]
    kinds = [{named_kind(entry.kind) for entry in group.entries} for group in groups]
    own = [run.belongs(reading.task) for reading in run.readings]
    described = [at for at, kind in enumerate(kinds) if own[at] and kind & {"task", "criteria"}]
    if run.description is not None and not any("task" in kinds[at] for at in described):
        described.append(run.description)
    errors = [at for at, one in enumerate(run.readings) if one.failed]
    unsettled = [at for at in errors if at not in run.resolved]
    places: dict[str, Sequence[int]] = {
        "system": [at for at, kind in enumerate(kinds) if "system" in kind or groups[at].entries[0].role == "system"],
        "task": sorted(described),
        "file": [run.showing] if run.showing is not None else [],
        "user": run.users[:1],
        "error": (unsettled or errors)[-1:],
    }
    return {what: tuple(groups[at].first_seq for at in found) for what, found in places.items()}


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
        "continued with only the essentials" + (f", from checkpoint {good_id}" if good_id is not None else ""),
        session_id=session_id,
        checkpoint_id=good_id,
    )
    state = good.context_state if good is not None else {}
    plan: ViewPlan | None = None
    if state.get("epoch") == inputs.ref.epoch:  # else messages, pins or summaries changed since
        wanted = digest_of(inputs.name)
        kept = (one["payload"] for one in state["plans"] if one["name"] == wanted)
        plan = next((ViewPlan.from_json(payload) for payload in kept), None)
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
