"""What is recalled for the question of a request, and what stands in the view from earlier questions.

What was recalled for a question stays before it at the next requests, so that they begin with the bytes of this one:
taken out of the middle, it would make the provider read all that follows anew. Each question is looked up as if it
were the first; what stands already is not quoted again. Where both do not fit together, what stands leaves from its
newest end, so that most of the bytes before stay; all of it does when the view is condensed, and when anything in the
session was changed.

It is kept in memory alone (`ViewCache`): after a restart there is what this question brings.

A track is shown of its parent's, too: quotes within a fixed room, beside recall, read and never written. The room is
set aside whole, however much of it is used: what the parent says next changes neither the room of the view nor when it
is condensed. What stands in it stays until the user speaks again, as recall does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.layout import recall_position
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import Piece, ours
from langchain_tiered_memory.context.recall_budget import recall_room
from langchain_tiered_memory.context.required_messages import read_required
from langchain_tiered_memory.context.sections.rendering import as_standing, render_sections
from langchain_tiered_memory.messages.showing import pointer_to
from langchain_tiered_memory.models.traces import traced
from langchain_tiered_memory.recall.filling import wording_of
from langchain_tiered_memory.recall.recall import Recalled, recall
from langchain_tiered_memory.recall.search import find_summaries
from langchain_tiered_memory.summaries.marks import RULES
from langchain_tiered_memory.summaries.rendering import Quoted, recall_block, sight_block, summary_block
from langchain_tiered_memory.summaries.tree.cover import nodes_of
from langchain_tiered_memory.text.truncation import head_and_tail
from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import Summary

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.pieces import Part
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.types.contexts import Section
    from langchain_tiered_memory.types.records import Entry, LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalling:
    """What a request recalls, or what an earlier one did that stands in this."""

    piece: Piece | None = None
    """For its question."""
    shows: frozenset[tuple[int, tuple[str, ...]]] = frozenset()
    """`seq`s of entries that it quotes, with the passages that it quotes of each; none of them for a whole one."""
    left_out: tuple[LeftOut, ...] = ()
    sections: tuple[Section, ...] = ()
    """Registered sections, whose texts stand in `piece` behind what was recalled."""
    before: int = 0
    """Of an earlier one, the `seq` of the user message that asked: it stands before that."""
    standing: tuple[Recalling, ...] = ()
    """Earlier ones, in their order."""
    room: int = 0
    """Tokens that all of it could take."""

    @property
    def tokens(self) -> int:
        """Raw tokens of all of it."""
        own = self.piece.tokens if self.piece is not None else 0
        return own + sum(one.tokens for one in self.standing)


def recalling(shown: Packing) -> Recalling:
    """What answers the question of a request, and the registered sections beside it; `shown` is everything else.

    During a tool loop both stay as they were when the user spoke.
    """
    inputs, policy, cache = shown.inputs, shown.inputs.policy, shown.inputs.runtime.view_cache
    if not (inputs.mode.looks_up or inputs.sections.own) or inputs.is_new:
        return Recalling()
    framing = ours("", part="recall", counter=inputs.counter).tokens
    room = policy.total - policy.fixed - sum(piece.tokens for piece in shown.pieces) - inputs.margin
    if "minimal" in inputs.mode:
        room = min(room, policy.row("recall").within(policy.total))
    standing = _still_standing(shown)
    last = inputs.required.last_user
    asked = (inputs.query, last.seq if last is not None else 0)
    key = (inputs.ref.epoch, inputs.elsewhere, *asked, policy.figures, inputs.sections.version)
    kept: Recalling | None = cache.recalled(inputs.ref.key, inputs.name, key) if "loop" in inputs.mode else None
    if kept is not None and kept.standing == standing and kept.tokens <= room:
        return kept
    beside, stands = policy.sections + framing, sum(one.tokens for one in standing)
    own = recall_room(inputs, left=room, beside=beside, standing=stands, is_repeated=kept is not None)
    sections = render_sections(inputs, shown.pieces, room=own - framing)
    found, summaries = Recalled(), tuple[Summary, ...]()
    if inputs.mode.looks_up and "semantic_results" not in inputs.sections.replaced:
        beside = framing + sum(one.tokens for one in sections)
        found, summaries = _looked_up(shown, room=own - beside)
    left = standing
    fresh = _block(inputs, found, summaries, sections, left)
    while fresh.tokens > room and left:  # the newest leaves first: what it quoted may be quoted here
        left = left[:-1]
        fresh = _block(inputs, found, summaries, sections, left)
    fresh = replace(fresh, room=min(own + sum(one.tokens for one in left), room))
    if "loop" in inputs.mode:
        cache.keep_recalled(inputs.ref.key, inputs.name, key, fresh)
    return fresh


def keep_standing(shown: Packing, recalled: Recalling) -> None:
    """Have what a request recalled stand in the next ones."""
    inputs, standing, asks = shown.inputs, recalled.standing, _asking(shown)
    if not (inputs.mode.looks_up and inputs.has_view) or "minimal" in inputs.mode:
        return
    stays = inputs.says_it and inputs.recall_budget.stands
    if stays and recalled.piece is not None and inputs.required.last_user is not None and asks is not None:
        standing = (*standing, replace(recalled, before=asks.seq, standing=(), left_out=(), room=0))
    inputs.runtime.view_cache.keep_recalled(*_place_of_standing(shown), standing)


def _place_of_standing(shown: Packing) -> tuple[int, str, Hashable]:
    """Where what stands is kept: for as long as the view has this plan, and nothing was changed."""
    inputs = shown.inputs
    return inputs.ref.key, f"standing:{inputs.name}", (inputs.ref.epoch, inputs.elsewhere, shown.rendered.plan)


def _asking(shown: Packing) -> Entry | None:
    """The message before which recall stands."""
    place = recall_position(shown.pieces)
    return shown.pieces[place].entry if place < len(shown.pieces) else None


def _still_standing(shown: Packing) -> tuple[Recalling, ...]:
    """What earlier questions of this view left; nothing where one of them is not shown any more."""
    inputs, asked = shown.inputs, _asking(shown)
    if "minimal" in inputs.mode or not inputs.has_view:
        return ()
    kept: tuple[Recalling, ...] = inputs.runtime.view_cache.recalled(*_place_of_standing(shown)) or ()
    earlier = tuple(one for one in kept if asked is None or one.before != asked.seq)
    stays = {piece.entry.seq for piece in shown.pieces if piece.entry is not None}
    return earlier if all(one.before in stays for one in earlier) else ()


def _block(
    inputs: Inputs,
    found: Recalled,
    related: tuple[Summary, ...],
    sections: tuple[Section, ...],
    standing: Sequence[Recalling],
) -> Recalling:
    """What was found without what stands already, and the sections, as one message."""
    known = {one for block in standing for one in block.shows}
    told = {one for block in standing if block.piece is not None for one in block.piece.summary_ids}
    quotes = tuple(
        one
        for one in found.quotes
        if (one.entry.seq, tuple(one.passages)) not in known and (one.entry.seq, ()) not in known
    )
    summaries = tuple(one for one in related if one.id not in told)
    latest = {one.name: one.text for block in standing for one in block.sections if one.text}
    sections = tuple(as_standing(one) if one.text and latest.get(one.name) == one.text else one for one in sections)
    texts = [one.text for one in sections if one.text]
    made = Recalling(left_out=found.left_out, sections=sections, standing=tuple(standing))
    if not quotes and not texts:
        return made
    text = found.text if quotes else ""
    if quotes and (len(quotes) < len(found.quotes) or len(summaries) < len(related)):
        at, expands = found.asked_at, inputs.expands
        text = recall_block(quotes, summaries=summaries, asked_at=at, expands=expands)
    text = "\n".join([*([text] if text else []), *texts])
    ids = tuple(one.id for one in summaries) if quotes else ()
    piece = _quoting(inputs, text, quotes, part="recall", summary_ids=ids)
    return replace(made, piece=piece, shows=frozenset((one.entry.seq, tuple(one.passages)) for one in quotes))


def _looked_up(shown: Packing, *, room: int) -> tuple[Recalled, tuple[Summary, ...]]:
    """What answers the question, whatever stands already, with the summaries behind it."""
    inputs, request = shown.inputs, shown.inputs.request
    policy, query, required = inputs.policy, inputs.query, inputs.required
    is_default = request.view != "recall"
    in_view = {entry.seq for piece in shown.pieces for entry in piece.whole_entries}
    in_view |= {piece.entry.seq for piece in shown.pieces if piece.entry is not None}
    if required.last_user is not None and required.last_user_text.strip() == query.strip():
        in_view.add(required.last_user.seq)
    summaries: list[Summary] = []
    if is_default and not inputs.off and not request.alone:
        # A headline names a stretch: where it answers the question, what it says may stand beside the quotes.
        covered = {node.id for node in nodes_of(shown.rendered.plan.items) if node.resolution != "headline"}
        most = round(NUMBERS.summaries_of_recall * room) if inputs.says_it else room
        found = _related(inputs, room=min(policy.summaries, most), shown=covered)
        summaries = [one for one in found if not {one.first_seq, one.last_seq} <= in_view]
    asks = _asking(shown)
    # A conversation that goes on says much that asks nothing: then only what answers it well is worth its room.
    said = required.last_user.seq if required.last_user is not None and inputs.says_it else None
    asked, wanted = {"query": query, "room": room}, inputs.settings.traces
    with traced("recall", asked, session_id=inputs.ref.session_id, wanted=wanted) as trace:
        recalled = recall(
            inputs.runtime,
            inputs.ref,
            query,
            room=room,
            code_room=policy.code if is_default else policy.recall // 2,
            shown=frozenset(in_view) | inputs.off,
            shown_texts=frozenset(wording_of(entry) for piece in shown.pieces for entry in piece.whole_entries),
            summaries=summaries,
            filters=SearchFilters(tracks=(request.track,)) if request.alone else None,
            said_at=said if is_default else None,
            asked_at=asks.at if asks is not None else None,
            found=inputs.recall_budget.found,
            expands=inputs.expands,
        )
        trace.outputs |= {"text": recalled.text, "tokens": recalled.tokens}
    return recalled, tuple(summaries) if recalled.text else ()


def _related(inputs: Inputs, *, room: int, shown: set[str]) -> list[Summary]:
    """Level-1 summaries that answer the question and stand in no other place, within `room` tokens."""
    chosen: list[Summary] = []
    if not inputs.runtime.store.tree.has_written(inputs.ref):
        return chosen
    for one, score, _ in find_summaries(inputs.runtime, inputs.ref, inputs.query, level=1):
        tokens = inputs.counter.count_text(summary_block(one)) + 1
        # What rules wrote is sentences of its messages, and those are quoted.
        is_new = one.id not in shown and not one.degraded and one.model != RULES
        if score >= NUMBERS.related_score and tokens <= room and is_new:
            chosen.append(one)
            room -= tokens
    return sorted(chosen, key=lambda summary: summary.first_seq)


_NEWEST = 12
"""Messages of the parent that are looked at from its end."""


def parent_section(inputs: Inputs) -> tuple[int, Piece | None]:
    """The section `parent`: raw tokens that are set aside for it, and what it shows.

    Nothing of either where the request's scope gives no sight of its parent.
    """
    sight, policy = inputs.request.sight, inputs.policy
    parent = sight.sight_from(inputs.track) if sight is not None and not inputs.is_new else None
    if sight is None or parent is None:
        return 0, None
    room = min(int(sight.sight_tokens / max(inputs.ratio, 1.0)), policy.of("parent"))
    if room < NUMBERS.least_readable_tokens:
        return 0, None
    last, cache = inputs.required.last_user, inputs.runtime.view_cache
    name = f"{inputs.name}:{parent}"
    key = (inputs.ref.epoch, inputs.query, last.seq if last is not None else 0, room)
    kept: tuple[int, Piece | None] | None = cache.recalled(inputs.ref.key, name, key)
    if kept is None:
        kept = room, _of_parent(inputs, parent, room=room)
        cache.keep_recalled(inputs.ref.key, name, key, kept)
    return kept


def _of_parent(inputs: Inputs, parent: str, *, room: int) -> Piece | None:
    """Quotes of the parent's track within `room`, in the order in which they were said."""
    chosen: dict[int, Quoted] = {}
    best: Piece | None = None
    for quoted in _of_parent_by_worth(inputs, parent, room=room):
        if quoted.entry.seq in chosen or not quoted.entry.text.strip():
            continue
        quotes = sorted([*chosen.values(), quoted], key=lambda one: one.entry.seq)
        text = sight_block(quotes, parent=parent, expands=inputs.expands)
        made = _quoting(inputs, text, quotes, part="parent")
        if made.tokens <= room:
            chosen[quoted.entry.seq] = quoted
            best = made
    return best


def _of_parent_by_worth(inputs: Inputs, parent: str, *, room: int) -> Iterable[Quoted]:
    """What may be quoted, the most telling first."""
    runtime, ref, query = inputs.runtime, inputs.ref, inputs.query
    count, most = inputs.counter.count_text, int(NUMBERS.parent_share * room)

    def within(entry: Entry) -> Quoted:
        if entry.tokens <= most:
            return Quoted(entry=entry)
        pointer = pointer_to(entry, expands=inputs.expands)
        cut = head_and_tail(entry.text, max_tokens=most, count=count, pointer=pointer)
        return Quoted(entry=entry, passages=(cut,))

    required = read_required(runtime, ref, parent, off=frozenset(), alone=True)
    yield from (within(one) for one in required.opening if one.role == "user")
    if query.strip():
        half, filters = int(NUMBERS.parent_recalled_share * room), SearchFilters(tracks=(parent,))
        found = recall(runtime, ref, query, room=half, code_room=half // 2, shown=frozenset(), filters=filters)
        yield from found.quotes
    yield from (within(one) for one in reversed(required.pinned))
    newest = runtime.store.transcript.entries(ref, track=parent, newest_first=True, limit=_NEWEST)
    yield from (within(one) for one in sorted(newest, key=lambda one: -one.seq))


def _quoting(inputs: Inputs, text: str, quotes: Sequence[Quoted], *, part: Part, **shows: Any) -> Piece:  # noqa: ANN401 - fields of `Piece`
    whole, cut = (tuple(one.entry for one in quotes if bool(one.passages) is is_cut) for is_cut in (False, True))
    return ours(text, part=part, counter=inputs.counter, quoted=whole, passages=cut, **shows)
