"""What is recalled for the question of a request, and what stands in the view from earlier questions.

What was recalled for a question stays before it at the next requests, so that they begin with the bytes of this one:
taken out of the middle, it would make the provider read all that follows anew. Each question is looked up as if it
were the first; what stands already is not quoted again. Where both do not fit together, what stands leaves from its
newest end, so that most of the bytes before stay; all of it does when the view is condensed, and when anything in the
session was changed.

It is kept in memory alone (`ViewCache`): after a restart there is what this question brings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.layout import Piece, ours, recall_position
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.sections.rendering import RenderedSection, as_standing, render_sections
from langchain_tiered_memory.models.traces import traced
from langchain_tiered_memory.recall.recall import Recalled, recall
from langchain_tiered_memory.recall.search import find_summaries
from langchain_tiered_memory.summaries.rendering import recall_block, summary_block
from langchain_tiered_memory.summaries.tree.cover import nodes_of
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from langchain_tiered_memory.context.assembly_inputs import Assembly
    from langchain_tiered_memory.context.request import Request, RequestInputs
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import LeftOut, SessionRef, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What was recalled for an earlier question."""

    before: int
    """`seq` of the user message that asked: it stands before that."""
    piece: Piece
    shows: frozenset[tuple[int, tuple[str, ...]]]
    """`seq`s of entries that it quotes, with the passages that it quotes of each; none of them for a whole one."""
    sections: tuple[RenderedSection, ...] = ()
    """Registered sections that stand in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalling:
    """What a request recalls."""

    piece: Piece | None = None
    """For its question."""
    shows: frozenset[tuple[int, tuple[str, ...]]] = frozenset()
    """As of `Standing`."""
    left_out: tuple[LeftOut, ...] = ()
    sections: tuple[RenderedSection, ...] = ()
    """Registered sections, whose texts stand in `piece` behind what was recalled."""
    standing: tuple[Standing, ...] = ()
    """From earlier questions, in their order."""
    room: int = 0
    """Tokens that all of it could take."""

    @property
    def tokens(self) -> int:
        """Raw tokens of all of it."""
        own = self.piece.tokens if self.piece is not None else 0
        return own + sum(one.piece.tokens for one in self.standing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What answers a question, whatever stands already."""

    recalled: Recalled
    summaries: tuple[Summary, ...] = ()


def recalling(
    runtime: Runtime, ref: SessionRef, request: Request, request_inputs: RequestInputs, shown: Assembly, *, margin: int
) -> Recalling:
    """What answers the question of a request, and the registered sections beside it.

    During a tool loop both stay as they were when the user spoke.

    Args:
        runtime: The memory.
        ref: The session.
        request: Names the view.
        request_inputs: The question.
        shown: Everything else that the context shows.
        margin: Raw tokens to leave free, for what repairs cost.
    """
    rooms = shown.rooms
    framing = ours("", part="recall", counter=runtime.counter).tokens
    room = rooms.total - rooms.fixed - sum(piece.tokens for piece in shown.pieces) - margin
    if "minimal" in shown.mode:
        room = min(room, round(runtime.settings.context.minimal_recall_share * rooms.total))
    standing = _still_standing(runtime, ref, request_inputs, shown)
    last = request_inputs.required.last_user
    version = request_inputs.sections.version
    asked = (request_inputs.query, last.seq if last is not None else 0)
    key = (ref.epoch, request_inputs.elsewhere, *asked, rooms.figures, version)
    own, said = room, request_inputs.recall_budget
    most = round((said.share or 0.0) * (rooms.total - rooms.fixed)) + rooms.sections + framing
    in_loop = "loop" in shown.mode
    if in_loop:
        kept: Recalling | None = runtime.view_cache.recalled(ref.key, request_inputs.name, key)
        if kept is not None and kept.standing == standing and kept.tokens <= room:
            return kept
        # What the loop will say needs what the split leaves it: recall keeps to its own room from the start.
        own = min(room, max(rooms.recall, most) if said.is_late else rooms.recall)
    elif said.share is not None:  # what is said next needs the rest
        stands = sum(one.piece.tokens for one in standing)
        leaves_all = said.leaves_what_stands and stands <= room
        own = min(room - stands if leaves_all else room, most)
    sections = render_sections(
        runtime, ref, request, request_inputs, shown.pieces, total=rooms.total, room=own - framing
    )
    found = _Found(recalled=Recalled())
    if request_inputs.mode.looks_up and "semantic_results" not in request_inputs.sections.replaced:
        beside = framing + sum(one.tokens for one in sections)
        found = _looked_up(runtime, ref, request, request_inputs, shown, room=own - beside)
    left = standing
    fresh = _block(runtime, found, sections, left)
    while fresh.tokens > room and left:  # the newest leaves first: what it quoted may be quoted here
        left = left[:-1]
        fresh = _block(runtime, found, sections, left)
    fresh = replace(fresh, room=min(own + sum(one.piece.tokens for one in left), room))
    if in_loop:
        runtime.view_cache.keep_recalled(ref.key, request_inputs.name, key, fresh)
    return fresh


def with_standing(pieces: Sequence[Piece], standing: Sequence[Standing]) -> list[Piece]:
    """A view's messages with what was recalled earlier, each before the question that it was recalled for."""
    by_question = {one.before: one.piece for one in standing}
    laid: list[Piece] = []
    for piece in pieces:
        if piece.entry is not None and piece.entry.seq in by_question:
            laid.append(by_question.pop(piece.entry.seq))
        laid.append(piece)
    return laid


def keep_standing(
    runtime: Runtime,
    ref: SessionRef,
    request: Request,
    request_inputs: RequestInputs,
    *,
    shown: Assembly,
    recalled: Recalling,
) -> None:
    """Have what a request recalled stand in the next ones."""
    if not _may_stand(shown):
        return
    standing, last = recalled.standing, request_inputs.required.last_user
    place = recall_position(shown.pieces)
    asks = shown.pieces[place].entry if place < len(shown.pieces) else None
    stays = _asks(request, request_inputs) and request_inputs.recall_budget.stands
    if stays and recalled.piece is not None and last is not None and asks is not None:
        standing = (
            *standing,
            Standing(before=asks.seq, piece=recalled.piece, shows=recalled.shows, sections=recalled.sections),
        )
    key = _standing_key(ref, request_inputs, shown)
    runtime.view_cache.keep_standing(ref.key, request_inputs.name, key, standing)


def _may_stand(shown: Assembly) -> bool:
    return shown.plan is not None and not {"recall", "minimal"} & set(shown.mode.names)


def _standing_key(ref: SessionRef, request_inputs: RequestInputs, shown: Assembly) -> Hashable:
    return ref.epoch, request_inputs.elsewhere, shown.plan


def _asks(request: Request, request_inputs: RequestInputs) -> bool:
    """Whether it is the user's last message that is looked up, and not a question of the caller's own."""
    return request.query is None and request_inputs.mode.looks_up


def _still_standing(
    runtime: Runtime, ref: SessionRef, request_inputs: RequestInputs, shown: Assembly
) -> tuple[Standing, ...]:
    """What earlier questions of this view left; nothing where one of them is not shown any more."""
    if not _may_stand(shown):
        return ()
    key = _standing_key(ref, request_inputs, shown)
    kept: tuple[Standing, ...] = runtime.view_cache.standing(ref.key, request_inputs.name, key) or ()
    place = recall_position(shown.pieces)
    asked = shown.pieces[place].entry if place < len(shown.pieces) else None
    earlier = tuple(one for one in kept if asked is None or one.before != asked.seq)
    stays = {piece.entry.seq for piece in shown.pieces if piece.entry is not None}
    return earlier if all(one.before in stays for one in earlier) else ()


def _block(
    runtime: Runtime, found: _Found, sections: tuple[RenderedSection, ...], standing: Sequence[Standing]
) -> Recalling:
    """What was found without what stands already, and the sections, as one message."""
    known = {one for block in standing for one in block.shows}
    told = {one for block in standing for one in block.piece.summary_ids}
    quotes = tuple(
        one
        for one in found.recalled.quotes
        if (one.entry.seq, tuple(one.passages)) not in known and (one.entry.seq, ()) not in known
    )
    summaries = tuple(one for one in found.summaries if one.id not in told)
    left_out = found.recalled.left_out
    latest = {one.name: one.text for block in standing for one in block.sections if one.text}
    sections = tuple(as_standing(one) if one.text and latest.get(one.name) == one.text else one for one in sections)
    texts = [one.text for one in sections if one.text]
    if not quotes and not texts:
        return Recalling(left_out=left_out, sections=sections, standing=tuple(standing))
    text = found.recalled.text if quotes else ""
    if quotes and (len(quotes) < len(found.recalled.quotes) or len(summaries) < len(found.summaries)):
        gap = runtime.settings.recall.sitting_gap_seconds
        text = recall_block(quotes, sitting_gap_seconds=gap, summaries=summaries)
    piece = ours(
        "\n".join([*([text] if text else []), *texts]),
        part="recall",
        counter=runtime.counter,
        quoted=tuple(one.entry for one in quotes if not one.passages),
        passages=tuple(one.entry for one in quotes if one.passages),
        summary_ids=tuple(one.id for one in summaries) if quotes else (),
    )
    shows = frozenset((one.entry.seq, tuple(one.passages)) for one in quotes)
    return Recalling(piece=piece, shows=shows, left_out=left_out, sections=sections, standing=tuple(standing))


def _looked_up(
    runtime: Runtime, ref: SessionRef, request: Request, request_inputs: RequestInputs, shown: Assembly, *, room: int
) -> _Found:
    rooms, query, required = shown.rooms, request_inputs.query, request_inputs.required
    off = request_inputs.off
    view = "recall" if request.view == "recall" else "default"
    in_view = {entry.seq for piece in shown.pieces for entry in piece.whole_entries}
    in_view |= {piece.entry.seq for piece in shown.pieces if piece.entry is not None}
    if required.last_user is not None and required.last_user_text.strip() == query.strip():
        in_view.add(required.last_user.seq)
    summaries: list[Summary] = []
    if view == "default" and not off and not request.alone:
        # A headline names a stretch: where it answers the question, what it says may stand beside the quotes.
        covered = {node.id for node in nodes_of(shown.items) if node.resolution != "headline"}
        most = round(NUMBERS.summaries_of_recall * room) if _asks(request, request_inputs) else room
        found = _related(runtime, ref, query, room=min(rooms.summaries, most), shown=covered)
        summaries = [one for one in found if not {one.first_seq, one.last_seq} <= in_view]
    # A conversation that goes on says much that asks nothing: then only what answers it well is worth its room.
    said = required.last_user.seq if required.last_user is not None and _asks(request, request_inputs) else None
    asked = {"query": query, "room": room}
    with traced("recall", asked, session_id=ref.session_id, wanted=runtime.settings.traces) as came:
        recalled = recall(
            runtime,
            ref,
            query,
            room=room,
            code_room=rooms.code if view == "default" else rooms.recall // 2,
            shown=frozenset(in_view) | off,
            shown_texts=frozenset(entry.text for piece in shown.pieces for entry in piece.whole_entries),
            summaries=summaries,
            filters=SearchFilters(tracks=(request.track,)) if request.alone else None,
            said_at=said if view == "default" else None,
            found=request_inputs.recall_budget.found,
        )
        came({"text": recalled.text, "tokens": recalled.tokens})
    return _Found(recalled=recalled, summaries=tuple(summaries) if recalled.text else ())


def _related(runtime: Runtime, ref: SessionRef, query: str, *, room: int, shown: set[str]) -> list[Summary]:
    """Level-1 summaries that answer the question and stand in no other place, within `room` tokens."""
    found = find_summaries(runtime, ref, query, level=1, quota=runtime.settings.recall.quota_level_1)
    chosen: list[Summary] = []
    for one in found:
        tokens = runtime.counter.count_text(summary_block(one.summary)) + 1
        if (
            one.score >= runtime.settings.recall.related_score
            and tokens <= room
            and one.summary.id not in shown
            and not one.summary.degraded
        ):
            chosen.append(one.summary)
            room -= tokens
    return sorted(chosen, key=lambda summary: summary.first_seq)
