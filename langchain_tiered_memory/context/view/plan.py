"""The plan of a view: what it shows besides the messages that come after it, fixed until the next condensation.

A plan is kept until the recent part outgrows its room. Then the border moves over finished level-1 summaries in one
big step: new nodes are appended behind the old ones while the cover's cap allows, else the cover is made anew. A view
that a provider compacted begins with what it made, and nothing before that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Tag, TypeAdapter

from langchain_tiered_memory.context.compaction.pruning_items import USER_MESSAGES_KEPT
from langchain_tiered_memory.context.required_messages import answered_before, kept_by_kind, queries_before
from langchain_tiered_memory.context.view.cover_builder import cover_of_levels, grown_cover, selected_cover, whole_cover
from langchain_tiered_memory.context.view.fact_section import facts_of_view, leaves_out, record_room
from langchain_tiered_memory.context.view.file_retention import with_files
from langchain_tiered_memory.context.view.rendered_view import RenderedView, render_view, words_shown
from langchain_tiered_memory.messages.content_blocks import compacts
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.summaries.rendering import facts_block
from langchain_tiered_memory.summaries.tree.cover import CoverItem, Gap, Joint, Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.types.records import Entry

Answered: TypeAlias = Literal["in talk", "at work"]
"""How the first user message was answered: with words alone, or with calls of tools."""

_VERSION: Literal[5] = 5


def _kind(item: CoverItem | dict[str, Any]) -> str:
    """What an item of a cover is, by the ids that it has."""
    has = item.__contains__ if isinstance(item, dict) else lambda name: hasattr(item, name)
    return "joint" if has("ids") else "node" if has("id") else "gap"


Item: TypeAlias = Annotated[
    Annotated[Node, Tag("node")] | Annotated[Joint, Tag("joint")] | Annotated[Gap, Tag("gap")], Discriminator(_kind)
]
"""An item of a cover, as a plan's JSON keeps it."""


@cache
def _adapter() -> TypeAdapter[ViewPlan]:
    return TypeAdapter(ViewPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPlan:
    """Which summaries, messages and lines a view shows."""

    border: int
    """Messages up to this number are stood for by `items`."""
    tail_from: int
    """The recent messages start here: `border + 1`, or earlier where groups were interleaved."""
    items: tuple[Item, ...] = ()
    skip: tuple[str, ...] = ()
    """Level-1 summaries among `items` that cover messages at or behind `tail_from`."""
    queries: tuple[int, ...] = ()
    """`seq`s of user messages that stand behind the cover, because the recent messages did not show them."""
    answers: int = 0
    """`seq` of the assistant's message that the last of the user's answers, where the recent messages do not show it:
    it stands before that one. 0: none."""
    ratio: float = 1.0
    """Billed per raw token, as known when the plan was made."""
    provisional: bool = False
    """Whether messages had to be left out that are not condensed yet."""
    masked: tuple[tuple[int, int], ...] = ()
    """Tool outputs among the recent messages that stand there by head, pointer and tail: `seq`, and tokens kept."""
    left: tuple[int, ...] = ()
    """First `seq`s of groups behind `tail_from` that are not shown: the window slid, or they were pruned."""
    left_spans: tuple[Gap, ...] = ()
    """Lines that name them."""
    kept: tuple[int, ...] = ()
    """First `seq`s of groups before `tail_from` that are shown as themselves, though the cover stands for them too."""
    files: str = ""
    """The list of files that what is not shown touched."""
    parts: str = ""
    """Parts of files word for word, that a run wrote and read before `tail_from`."""
    facts: str = ""
    """The list of what messages up to the border stated and still holds."""
    tasks: str = ""
    """The agent's own list of tasks as it wrote it last, where the recent messages do not show it."""
    listed: tuple[tuple[str, str, str], ...] = ()
    """Number, status and words of each item of such a list that is made item by item, in the order of their making."""
    held: bool = False
    """Whether a condensation of this view was undone: it is made again only when the view does not fit."""
    since: int = 0
    """`seq` of the message with the provider's own compaction that the view begins with: it stands for all before it,
    and is shown whole. 0: none."""

    always: tuple[int, ...] = ()
    """`seq`s of messages that their kinds keep in view, the most important last; quoted where they do not stand."""
    answered: Answered | None = None
    """How the first user message was answered: then it is no goal any more. What was asked for at work is quoted among
    the user's earlier messages; in talk the record tells it."""
    v: Literal[5] = _VERSION
    """The version of this form: a plan of another one is made anew."""

    @property
    def shows_all(self) -> bool:
        """Whether nothing that was said on this track is out of sight: then there is nothing to quote of it."""
        return self.border == 0 and not (self.left or self.masked or self.held)

    def to_json(self) -> str:
        """As kept in the database."""
        return json.dumps(_adapter().dump_python(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, payload: str) -> ViewPlan | None:
        """A kept plan, or `None` where another version wrote it, or it is damaged."""
        try:
            return _adapter().validate_json(payload, strict=True)
        except ValueError:
            return None


def border_of_another_version(payload: str) -> int | None:
    """The border of a kept plan that another version of this package wrote: made anew when it is needed, no damage."""
    try:
        stored = json.loads(payload)
    except ValueError:
        return None
    if not isinstance(stored, dict) or stored.get("v") == _VERSION:
        return None
    border = stored.get("border")
    return border if type(border) is int else None


_PAGE = 64
_FIRST_STEPS = 16
"""Messages behind the first user message among which a call of a tool says that it set a task, and another person's
that somebody answered."""


def plan_view(inputs: Inputs, previous: ViewPlan | None, tail: Sequence[Entry]) -> ViewPlan:
    """The next plan of a view: its border moved as far as needed, over finished level-1 summaries only.

    `tail` are its recent messages until now, in order.
    """
    floor = previous.border if previous is not None else 0
    border, found = _next_border(inputs, tail, floor=floor)
    # The recent part starts earlier where groups were interleaved.
    tail_from = min([border + 1, *(first for _, first, last in found if last > border)])
    since = previous.since if previous is not None else 0
    queries = queries_before(inputs, lambda entry: since < entry.seq < tail_from)
    # A call that waits for its result, or just got it, is shown, though everything around it is condensed; so is what
    # the provider compacted, which stands for all before it.
    kept = {seq for seq in (*inputs.required.held, since) if max(since, 1) <= seq < tail_from}
    plan = ViewPlan(
        border=border,
        tail_from=tail_from,
        skip=tuple(one for one, _, last in found if tail_from <= last <= border),
        queries=queries,
        answers=answered_before(inputs, tail_from, since=since),
        ratio=inputs.ratio,
        kept=tuple(sorted(kept)),
        since=since,
        always=kept_by_kind(inputs, previous),
        answered=(previous.answered if previous is not None else None) or _answered(inputs),
    )
    items, facts = _record(inputs, previous, border=border, words=words_shown(inputs, plan))
    return replace(plan, items=items, facts=facts)


def _record(inputs: Inputs, previous: ViewPlan | None, *, border: int, words: str) -> tuple[tuple[CoverItem, ...], str]:
    """Summaries and facts: what must last takes the room that it needs, what happened is told in the rest.

    The user's `words` that the view shows are told there.
    """
    policy = inputs.policy

    def listed(items: Sequence[CoverItem]) -> str:
        room, lasting_room = policy.of("facts"), record_room(inputs, items)
        return facts_of_view(inputs, items, border=border, room=room, lasting_room=lasting_room, words=words)

    items = _cover(inputs, previous, border=border, cap=policy.cover)
    facts = listed(items)
    if leaves_out(facts):
        least = min(policy.defended, policy.cover)
        facts = listed(_cover(inputs, previous, border=border, cap=least))
        free = policy.record - inputs.counter.count_text(facts_block(facts, up_to=border))
        items = _cover(inputs, previous, border=border, cap=max(least, min(free, policy.cover)))
        # Again: a value that is told here never stands without what replaced it.
        facts = listed(items)
    inputs.runtime.view_cache.note_list_room(inputs.ref.key, inputs.track, record_room(inputs, items))
    return items, facts


def _cover(inputs: Inputs, previous: ViewPlan | None, *, border: int, cap: int) -> tuple[CoverItem, ...]:
    """What stands for the messages up to a border, but for those before a provider's compaction."""
    made: tuple[CoverItem, ...] | None = None
    if inputs.look is not None and inputs.look.levels is not None:
        made = cover_of_levels(inputs, border=border, cap=cap, levels=inputs.look.levels)
    elif inputs.settings.context.older == "selection":
        made = selected_cover(inputs, border=border, cap=cap)
    elif previous is not None and previous.items and not (previous.provisional or inputs.off or inputs.request.alone):
        made = grown_cover(inputs, previous, border=border, cap=cap)
    if made is None:
        made = whole_cover(inputs, border=border, cap=cap)
    since = previous.since if previous is not None else 0
    return tuple(item for item in made if item.last_seq >= since)


def _answered(inputs: Inputs) -> Answered | None:
    """How the first message was answered, where that was done before the user spoke again: it is no goal.

    Among people who are named somebody else's message answers, too.
    """
    asked = [one for one in inputs.required.opening if one.role == "user"]
    goal, asker = max(((one.seq, one.name) for one in asked), default=(0, None))

    def said(limit: int, *, up_to: int | None = None) -> list[Entry]:
        return inputs.entries(after=goal, up_to=up_to, limit=limit, newest_first=up_to is not None)

    first = said(_FIRST_STEPS)
    before = [one for user in inputs.required.users[-USER_MESSAGES_KEPT:] for one in said(1, up_to=user.seq - 1)]
    by_person = asker and any(one.role == "user" and one.name not in (None, asker) for one in first)
    if not (by_person or any(one.role == "assistant" and not one.calls for one in before)):
        return None
    return "at work" if any(one.calls for one in first) else "in talk"


def _next_border(inputs: Inputs, tail: Sequence[Entry], *, floor: int) -> tuple[int, list[tuple[str, int, int]]]:
    """The new border, and the level-1 summaries around it."""
    tree, ref, track = inputs.runtime.store.tree, inputs.ref, inputs.track
    before = standing_before(inputs, tail)
    wanted = next((entry.seq for entry in tail if entry.seq > before), before + 1)
    blocked = tree.first_uncondensed(ref, track=track, after=floor)
    guard = inputs.required.guard
    limit = guard if blocked is None else min(guard, blocked)
    found = tree.borders(ref, track=track, after=max(wanted - 2, floor), limit=_PAGE)
    if found and found[0][2] < limit:
        return found[0][2], found
    newest = tree.last_border(ref, track=track, before=limit)
    border = max(newest[2] if newest is not None else 0, floor)
    return border, tree.borders(ref, track=track, after=border - 1, limit=_PAGE)


def standing_before(inputs: Inputs, tail: Sequence[Entry], *, grows_by: int = 0) -> int:
    """The last of the recent messages that will stand before the border after the view's next condensation; or 0.

    `tail` are its recent messages, in order, and `grows_by` the raw tokens that come until then.
    """
    if inputs.look is not None:
        last = len(tail) - inputs.look.last_messages
        return tail[last - 1].seq if last > 0 else 0
    stays = max(inputs.policy.stays, inputs.policy.recent_least) - grows_by
    for entry in reversed(tail):
        stays -= entry.tokens
        if stays < 0:
            return entry.seq
    return 0


def begun_by_compaction(inputs: Inputs, rendered: RenderedView) -> RenderedView:
    """`rendered` from the provider's newest compaction on; as it is, where it begins with that or has none."""
    reader = inputs.request.model.provider
    # Most messages need not be decoded: each that has such a block names it in its payload.
    likely = (one for one in reversed(rendered.tail) if one.role == "assistant" and "compaction" in one.payload)
    newest = next((one for one in likely if compacts(message_or_stand_in(one)[0], reader=reader)), None)
    if newest is None or newest.seq <= rendered.plan.since:
        return rendered
    border = newest.seq - 1
    plan = ViewPlan(
        border=border,
        tail_from=newest.seq,
        since=newest.seq,
        ratio=inputs.ratio,
        masked=tuple(one for one in rendered.plan.masked if one[0] > newest.seq),
        facts=facts_of_view(inputs, (), border=border, room=inputs.policy.of("facts")),
        always=kept_by_kind(inputs, rendered.plan),
    )
    return with_files(inputs, render_view(inputs, plan))
