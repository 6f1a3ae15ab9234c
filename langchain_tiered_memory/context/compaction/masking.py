"""Which tool outputs leave a view first, and what stands there instead.

An output is the cheapest thing to leave out: its call stays, the transcript keeps it, and a pointer leads there. Taken
in the order of what is lost: what a later output says word for word, what a later call replaced, then giants, the
oldest first; in batches, for each batch breaks a prompt cache once. What is pinned, or not yet read by the model, is
left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.context.compaction.pruning_items import calls_of_group
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import OVERHEAD_TOKENS
from langchain_tiered_memory.context.view.rendered_view import RenderedView, seen_with
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.messages.message_text import is_marked_error
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.types.records import Entry, Group


def masked_view(inputs: Inputs, rendered: RenderedView, *, target: int) -> tuple[RenderedView, tuple[LeftOut, ...]]:
    """`rendered` with the next batch of tool outputs masked, to come down to `target` raw tokens."""
    if rendered.tokens <= target:
        return rendered, ()
    seen = max((entry.seq for entry in rendered.tail if entry.role == "assistant"), default=0)
    groups = as_groups(rendered.tail)
    # A result that only points to an earlier one says nothing in its place.
    pointing = {piece.entry.seq for piece in rendered.masks if piece.entry is not None and piece.stands_in is not None}
    # Failed calls replace nothing.
    made = (call for group in groups for call in calls_of_group(group, inputs.settings.files))
    looks = {one.result.seq: one.exact for one in made if one.result and not is_marked_error(one.result)}
    batch = masks(
        groups,
        unseen_from=seen,
        already=frozenset(seq for seq, _ in rendered.plan.masked) | pointing,
        tokens_to_free=rendered.tokens - target,
        twins={seq: key for seq, key in looks.items() if seq not in pointing},
        least_tokens=round(NUMBERS.mask_batch_share * inputs.window.limit / inputs.ratio),
        limit_tokens=inputs.policy.total,
    )
    if not batch:
        return rendered, ()
    masked = dict(rendered.plan.masked) | {one.seq: one.keep_tokens for one in batch}
    ids = {entry.seq: entry.id for entry in rendered.tail}
    left = tuple(
        LeftOut(what=ids[one.seq], reason=f"masked: {one.reason} tool output", tokens=one.frees_tokens) for one in batch
    )
    return seen_with(inputs, replace(rendered.plan, masked=tuple(sorted(masked.items()))), rendered.tail), left


Reason: TypeAlias = Literal["repeated", "replaced", "giant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """A tool output that leaves the view, save its ends."""

    seq: int
    reason: Reason
    frees_tokens: int
    """At least so many raw tokens."""
    keep_tokens: int
    """Of its head and tail, that stay."""


def masks(
    groups: Sequence[Group],
    *,
    unseen_from: int,
    already: frozenset[int],
    tokens_to_free: int,
    twins: Mapping[int, str],
    least_tokens: int = 0,
    limit_tokens: int = 0,
) -> tuple[Mask, ...]:
    """The next batch of tool outputs to mask, cheapest loss first; empty where it would not be worth a broken prefix.

    It frees at least `least_tokens`; less than `tokens_to_free` only when there is nothing more to mask.

    Args:
        groups: What the view shows as itself, oldest first.
        unseen_from: `seq` of the first message that no model call has seen; nothing from there on is masked.
        already: `seq`s of outputs that are masked in this view.
        tokens_to_free: Raw tokens; the batch ends as soon as it frees them.
        twins: By `seq` of a tool output a key of what it is a look at: a later one of the same key replaces it.
        limit_tokens: Of the whole request, for what is a share of it.
        least_tokens: What a batch must free; one that could not is not begun, and a smaller need is filled up to it.
    """
    if tokens_to_free <= 0:
        return ()
    outputs = [
        entry
        for group in groups
        for entry in group.entries
        if (entry.answers is not None or entry.role == "tool") and not entry.pinned
    ]
    outputs.sort(key=lambda entry: entry.seq)
    wanted = max(tokens_to_free, least_tokens)
    chosen: dict[int, Mask] = {}
    freed = 0
    for entry, reason, keep in _candidates(outputs, already=already, twins=twins, limit=limit_tokens):
        # Media stay whole, so of a message that is mostly images its text alone can be freed: hardly a token a letter.
        frees = min(entry.tokens, len(entry.text)) - keep - OVERHEAD_TOKENS
        if frees < NUMBERS.least_gain or entry.seq >= unseen_from or entry.seq in already or entry.seq in chosen:
            continue
        chosen[entry.seq] = Mask(seq=entry.seq, reason=reason, frees_tokens=frees, keep_tokens=keep)
        freed += frees
        if freed >= wanted:
            break
    return tuple(chosen.values()) if freed >= least_tokens else ()


def _candidates(
    outputs: Sequence[Entry], *, already: frozenset[int], twins: Mapping[int, str], limit: int
) -> Iterator[tuple[Entry, Reason, int]]:
    """What could be masked, why, and what stays of it, cheapest loss first; an output may come more than once."""
    least = NUMBERS.least_readable_tokens
    # What is masked already does not say the text any more: only a shown output makes an earlier one a repeat.
    last_saying = {entry.text: entry.seq for entry in outputs if entry.seq not in already}
    yield from ((one, "repeated", least) for one in outputs if one.seq < last_saying.get(one.text, 0))
    looks = [one for one in outputs if one.seq in twins]
    last_look = {twins[one.seq]: one.seq for one in looks}
    yield from ((one, "replaced", least) for one in looks if one.seq < last_look[twins[one.seq]])
    share = round(NUMBERS.giant_share * limit)
    giant, keep = max(NUMBERS.giant_tokens, share), max(least, share // 2)
    yield from ((one, "giant", keep) for one in outputs if one.tokens > giant)
