"""Renders a view from its plan: the recent messages, and everything that stands before them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import OVERHEAD_TOKENS, Piece, ours, shortened, shown
from langchain_tiered_memory.context.required_messages import says_something
from langchain_tiered_memory.context.view.repeated_reads import pointing, repeated_reads
from langchain_tiered_memory.messages.message_text import notices_of
from langchain_tiered_memory.messages.showing import QUOTE_TOKENS, quotes_within
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE
from langchain_tiered_memory.summaries.rendering import (
    between_line,
    day,
    facts_block,
    follows_line,
    history_block,
    opens_line,
    parts_block,
    pins_block,
)
from langchain_tiered_memory.summaries.tree.cover import nodes_of, summary_ids_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.types.records import Entry

_LEAST_ENTRY_TOKENS = 3
"""An entry's framing alone: bounds how many entries a room can hold."""
_MOST_COUNTED = 1000
"""Messages that nothing stands for may be the whole session: counting them must not grow with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedView:
    """What a plan shows, and how much it takes."""

    plan: ViewPlan
    head: tuple[Piece, ...]
    """Goal, pins, history, facts, parts of files, files: everything before the recent messages."""
    tail: tuple[Entry, ...]
    """The recent messages that are shown, and before them those that are kept."""
    masks: tuple[Piece, ...] = ()
    """Those of them that stand there by head, pointer and tail, or by a pointer to what another one says."""
    days: Mapping[int, Piece] = field(default_factory=dict)
    """By the `seq` of each user message that opens a day, but for the first, the line that says which, before it."""

    @property
    def recent_from(self) -> int:
        """`seq` of the first message shown that is not only kept."""
        first = _first_recent(self.plan, self.tail)
        return first.seq if first is not None else self.plan.tail_from

    @property
    def head_tokens(self) -> int:
        """Raw tokens before the recent messages."""
        return sum(piece.tokens for piece in self.head)

    def tokens_of(self, part: str) -> int:
        """Raw tokens of one part of them."""
        return sum(piece.tokens for piece in self.head if piece.part == part)

    @property
    def tail_tokens(self) -> int:
        """Raw tokens of the recent messages, as shown."""
        return sum(entry.tokens for entry in self.tail) - self.masked_away

    @property
    def masked_away(self) -> int:
        """Raw tokens that masks keep out, less what the lines with the days take."""
        masked = sum(piece.entry.tokens - piece.tokens for piece in self.masks if piece.entry is not None)
        return masked - sum(piece.tokens for piece in self.days.values())

    @property
    def tokens(self) -> int:
        """Raw tokens of both."""
        return self.head_tokens + self.tail_tokens

    def recent(self) -> list[Piece]:
        """The recent messages as pieces, a line with the day before each that opens one."""
        by_seq = {piece.entry.seq: piece for piece in self.masks if piece.entry is not None}
        pieces = ((self.days.get(entry.seq), by_seq.get(entry.seq) or shown(entry)) for entry in self.tail)
        return [piece for pair in pieces for piece in pair if piece is not None]


def render_view(inputs: Inputs, plan: ViewPlan) -> RenderedView:
    """Read what `plan` shows."""
    return seen_with(inputs, plan, _tail(inputs, plan))


def seen_with(inputs: Inputs, plan: ViewPlan, tail: Sequence[Entry]) -> RenderedView:
    """What `plan` shows before and of `tail`, whose messages were read already."""
    hidden = frozenset(plan.left)
    kept_groups = frozenset(plan.kept)
    stays = tuple(
        entry
        for entry in tail
        if (entry.group not in hidden and entry.seq >= plan.tail_from) or entry.group in kept_groups
    )
    head, masks = tuple(_head(inputs, plan, stays)), tuple(_masks(inputs, stays, dict(plan.masked)))
    days, told = dict[int, Piece](), day(stays[0].at) if stays else ""
    for entry in stays:  # days depend on what stands before them alone: the bytes stay as the recent messages grow
        if entry.role == "user" and day(entry.at) != told:
            told = day(entry.at)
            days[entry.seq] = ours(opens_line(entry), part="recent", counter=inputs.counter)
    return RenderedView(plan=plan, head=head, tail=stays, masks=masks, days=days)


def _masks(inputs: Inputs, tail: Sequence[Entry], kept: dict[int, int]) -> Iterator[Piece]:
    """Outputs that are masked, and readings of files that say what another message says; each rendered once."""
    library, counter = inputs.library, inputs.counter
    for entry in tail:
        if entry.seq in kept:
            cut = (entry.seq, kept[entry.seq])
            if cut not in library.masks:
                most = kept[entry.seq] + OVERHEAD_TOKENS
                library.masks[cut] = shortened(entry, max_tokens=most, counter=counter, expands=inputs.expands)
            yield library.masks[cut]
    settings, reworded = inputs.settings.files, inputs.request.reworded
    for entry, above, path in repeated_reads(tail, settings, not_whole=kept, reworded=reworded):
        piece = pointing(entry, above, path, counter=counter)
        if piece is not None:
            yield piece


def _tail(inputs: Inputs, plan: ViewPlan) -> list[Entry]:
    """The recent messages of a plan, a few more than fit if there are so many; before them what it keeps."""
    transcript, known = inputs.runtime.store.transcript, inputs.library.quoted
    known |= {entry.seq: entry for entry in inputs.required.users}
    quoted = {*plan.queries, *plan.always, plan.answers}
    missing = [seq for seq in sorted(quoted) if 0 < seq < plan.tail_from and seq not in known]
    hidden = sum(gap.entry_count for gap in plan.left_spans)
    entries, kept, found = transcript.viewed(
        inputs.ref,
        track=inputs.track,
        after=plan.tail_from - 1,
        limit=max(inputs.room, 0) // _LEAST_ENTRY_TOKENS + 8 + len(inputs.off) + hidden,
        groups=plan.kept,
        seqs=missing,
    )
    if len(plan.kept) > ROWS_AT_ONCE:
        kept = transcript.groups_of(inputs.ref, plan.kept)
    known |= {entry.seq: entry for entry in (*entries, *found)}
    recent = [entry for entry in entries if entry.summary_id not in plan.skip and entry.group not in plan.kept]
    # A group that is kept may have got a late result among the newest messages: that is where it was said.
    shown = [entry for entry in (*kept, *recent) if entry.seq not in inputs.off]
    return sorted(shown, key=lambda entry: entry.seq)


def is_whole(inputs: Inputs, rendered: RenderedView) -> bool:
    """Whether every message of a plan's recent part was read."""
    first = rendered.recent_from
    if not rendered.tail or first <= rendered.plan.tail_from:
        return True
    return not inputs.entries(after=rendered.plan.tail_from - 1, up_to=first - 1, limit=1, newest_first=False)


def count_earlier(inputs: Inputs, rendered: RenderedView) -> int:
    """How many messages of a plan's recent part are older than those that were read of it.

    Many are not counted one by one: then it is the numbers between, which other tracks and removals make too many.
    """
    plan, first = rendered.plan, rendered.recent_from
    if first <= plan.tail_from:
        return 0
    count = inputs.runtime.store.transcript.count_between(
        inputs.ref,
        track=inputs.track,
        after=plan.tail_from - 1,
        before=first,
        without=plan.skip,
        most=_MOST_COUNTED,
    )
    return count if count < _MOST_COUNTED else first - plan.tail_from


def _head(inputs: Inputs, plan: ViewPlan, tail: Sequence[Entry]) -> list[Piece]:
    """Everything before the recent messages. Depends on the plan and on the first of them alone."""
    counter = inputs.counter
    standing = {entry.seq for entry in tail}
    # What the provider compacted has the goal, too; prompts are sent apart.
    has_goal = not plan.since and plan.answered is None
    begins = [entry for entry in inputs.required.opening if has_goal or entry.role == "system"]
    head = [
        shortened(entry, max_tokens=inputs.policy.of("goal"), counter=counter, expands=inputs.expands, part="goal")
        for entry in begins
        if entry.seq not in standing
    ]
    opening = {entry.seq for entry in begins}
    pinned = [entry for entry in inputs.required.pinned if entry.seq not in opening | standing]
    shown_already = opening | standing | {entry.seq for entry in pinned}
    always = [entry for entry in in_order(inputs, plan.always) if entry.seq not in shown_already]
    if pinned or always:
        head.append(pinned_piece(inputs, pinned, always=always))
    pinned += always
    quoted_there = opening | {entry.seq for entry in pinned}
    queries = _queries(inputs, plan, without=quoted_there)
    begins_with = next((entry for entry in tail if entry.seq not in opening), None)
    leads = bool(queries) and begins_with is not None and begins_with.role != "user"
    quoted = _quoted(inputs, plan, queries[:-1] if leads else queries, without=shown_already)
    # What the last message answers shares the room of the earlier ones, as the list of tasks does.
    question, room = round(NUMBERS.question_share * inputs.policy.total), inputs.policy.queries
    half = max(room // 2, min(room, NUMBERS.least_readable_tokens))
    answered = in_order(inputs, [plan.answers] if plan.answers > plan.since and inputs.policy.quotes_queries else [])
    answered = [one for one in answered if min(one.tokens, NUMBERS.least_readable_tokens) <= half]
    led_by = [*(one for one in answered if one.seq not in standing | quoted_there), *(queries[-1:] if leads else ())]
    led: list[Piece] = []
    for one in led_by:
        most = question if one.role == "user" else half
        if one.tokens < most + NUMBERS.least_gain:  # to cut it frees less than the line takes that says so
            most = one.tokens
        led.append(shortened(one, max_tokens=most, counter=counter, expands=inputs.expands))
    taken = sum(piece.tokens for piece in led if piece.entry in answered)
    recent = _first_recent(plan, tail) if plan.items or plan.left_spans else None
    follows = follows_line(recent, led_by=led_by) if recent is not None else ""
    if leads and recent is not None and recent.seq > queries[-1].seq + 1:
        # In the record the calls that follow would read as the first answer to the user's message.
        led.append(ours(between_line(queries[-1], recent), part="history", counter=counter))
        follows = ""
    if plan.items or plan.left_spans or quoted or plan.tasks:
        head.append(_history(inputs, plan, quoted, taken=taken, follows=follows))
    if plan.facts:
        head.append(ours(facts_block(plan.facts, up_to=plan.border), part="facts", counter=counter))
    if plan.parts:
        head.append(ours(parts_block(plan.parts), part="parts", counter=counter))
    if plan.files:
        head.append(ours(plan.files, part="files", counter=counter))
    return [*head, *led]


def words_shown(inputs: Inputs, plan: ViewPlan) -> str:
    """What the user said before the recent messages, as far as a plan shows it whole, word for word."""
    goal = [one for one in inputs.required.opening if one.role == "user"]
    if plan.since or plan.answered is not None:
        goal = []
    whole = [one for one in goal if one.tokens <= inputs.policy.of("goal")]
    queries = _queries(inputs, plan, without=frozenset(one.seq for one in goal))
    quoted = _quoted(inputs, plan, queries, without=frozenset())
    room, count = inputs.policy.queries, inputs.counter.count_text
    whole += quotes_within(quoted, room=room, count=count, expands=inputs.expands).whole
    return "\n".join(one.text for one in whole)


def _queries(inputs: Inputs, plan: ViewPlan, *, without: Collection[int]) -> list[Entry]:
    """The user's messages that a plan shows before the recent ones, in their order."""
    return in_order(inputs, sorted({seq for seq in plan.queries if seq > plan.since and seq not in without}))


def _quoted(inputs: Inputs, plan: ViewPlan, queries: Sequence[Entry], *, without: Collection[int]) -> list[Entry]:
    """Those of them that are quoted in the record: the user's own words, which tell something by themselves."""
    if not inputs.policy.quotes_queries:
        return []
    opening = inputs.required.opening
    notices = notices_of((*opening, *queries))
    quoted = [one for one in queries if one.seq not in notices and says_something(one)]
    if plan.answered != "at work":
        return quoted
    first = (one for one in opening if one.role == "user" and one.seq not in without)
    return [*first, *(one for one in quoted if one not in opening)]


def in_order(inputs: Inputs, seqs: Sequence[int]) -> list[Entry]:
    """Messages by their numbers, as these stand; those that are gone are left out. Each is read once in a request."""
    known = inputs.library.quoted
    missing = [seq for seq in seqs if seq not in known]
    if missing:
        found = {entry.seq: entry for entry in inputs.runtime.store.transcript.by_seq(inputs.ref, missing)}
        known |= {seq: found.get(seq) for seq in missing}
    read = (known[seq] for seq in seqs)
    return [entry for entry in read if entry is not None]


def pinned_piece(inputs: Inputs, pinned: Sequence[Entry], *, always: Sequence[Entry] = ()) -> Piece:
    """Pinned messages as one quoting message within their room, and those whose kinds keep them, the last first.

    A message that is kept for its kind stands whole, or not at all where others stand; what has no room is named.
    """
    most, counter = inputs.policy.of("pinned"), inputs.counter
    room = most - sum(entry.tokens + QUOTE_TOKENS for entry in pinned)
    beside: list[Entry] = []
    for entry in reversed(always):
        if entry.tokens + QUOTE_TOKENS <= room or not (beside or pinned):
            beside.append(entry)
            room -= entry.tokens + QUOTE_TOKENS
    shown = [*reversed(beside), *pinned]
    quotes = quotes_within(shown, room=most, count=counter.count_text, expands=inputs.expands)
    left_out = (*(entry for entry in always if entry not in beside), *quotes.left_out)
    block = pins_block(sorted(quotes.texts, key=lambda one: one[0].seq), left_out, expands=inputs.expands)
    return ours(block, part="pinned", counter=counter, quoted=quotes.whole, passages=quotes.cut, left_out=left_out)


def _first_recent(plan: ViewPlan, tail: Sequence[Entry]) -> Entry | None:
    """The first message shown that is not only kept."""
    kept = frozenset(plan.kept)
    return next((entry for entry in tail if entry.group not in kept), None)


def _history(inputs: Inputs, plan: ViewPlan, quoted: Sequence[Entry], *, taken: int, follows: str) -> Piece:
    known = inputs.summaries_with([node.id for node in nodes_of(plan.items) if node.resolution == "whole"])
    count, room = inputs.counter.count_text, inputs.policy.queries - inputs.counter.count_text(plan.tasks) - taken
    quotes = quotes_within(quoted, room=room, count=count, expands=inputs.expands)

    def told(line: str) -> Piece:
        return ours(
            history_block(plan.items, known, quotes.texts, left=plan.left_spans, tasks=plan.tasks, follows=line),
            part="history",
            counter=inputs.counter,
            quoted=quotes.whole,
            passages=quotes.cut,
            summary_ids=summary_ids_of(plan.items),
        )

    piece = told(follows)
    return told("") if follows and piece.tokens > inputs.policy.of("history") else piece
