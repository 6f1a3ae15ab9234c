"""Summaries take the place of older messages in a view, or the reason is told why they do not.

`needed` foresees at each request which summaries a view will need in a model's words, from the growth of its last
turns: a history that is not near the end of its room needs nothing, so nothing is asked of a model for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.context.compaction.growth import does_not_pay
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.view.call_folding import with_shorter_held
from langchain_tiered_memory.context.view.file_retention import with_file_work, with_files
from langchain_tiered_memory.context.view.planning import plan_view
from langchain_tiered_memory.context.view.rendered_view import RenderedView, render_view
from langchain_tiered_memory.driver import ModelCall
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.summaries.tree.condense import Wish, condense
from langchain_tiered_memory.summaries.tree.cover import nodes_of, summary_ids_of
from langchain_tiered_memory.summaries.tree.triggers import due_entries
from langchain_tiered_memory.transcript.derived_writes import may_write, note_unwritten
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs, Proposal, ViewQuestion
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry

T = TypeVar("T")


def until(flow: Flow[T], *, seconds: float, monotonic: Callable[[], float]) -> Flow[T | None]:
    """Drive `flow` for at most `seconds`; what it holds when they are over it gives back.

    Returns:
        What it returned, or `None` when its time ran out.
    """
    ends = monotonic() + seconds
    answer: Any = None
    error: BaseException | None = None
    while True:
        if error is None and monotonic() >= ends:
            flow.close()
            return None
        try:
            request = flow.throw(error) if error is not None else flow.send(answer)
        except StopIteration as stop:
            finished: T = stop.value
            return finished
        if isinstance(request, ModelCall):
            left = max(ends - monotonic(), 0.001)
            own = request.deadline_seconds
            request = replace(request, deadline_seconds=left if own is None else min(own, left))
        answer, error = None, None
        try:
            answer = yield request
        except GeneratorExit:
            flow.close()
            raise
        except BaseException as raised:  # noqa: BLE001 - the flow decides what becomes of it
            error = raised


def needed(proposal: Proposal) -> Wish | None:
    """What a view needs in a model's words now or soon; `None` where that is nothing."""
    inputs, shown = proposal.inputs, proposal.rendered
    up_to = shown.plan.border
    if proposal.due_at is None:
        return Wish(track=inputs.track, up_to=up_to) if up_to else None
    left = min(proposal.due_at - proposal.tokens, round((inputs.room - shown.tokens) * inputs.ratio))
    if left <= _soon(shown.tail, inputs.ratio, limit=proposal.due_at):
        up_to = max(up_to, standing_before(inputs, shown.tail, grows_by=max(round(left / inputs.ratio), 0)))
    return Wish(track=inputs.track, up_to=up_to) if up_to else None


def standing_before(inputs: AssemblyInputs, tail: Sequence[Entry], *, grows_by: int = 0) -> int:
    """The last of the recent messages that will stand before the border after the view's next condensation; or 0.

    Args:
        inputs: Of the view.
        tail: Its recent messages, in order.
        grows_by: Raw tokens that come until then.
    """
    if inputs.look is not None:
        last = len(tail) - inputs.look.last_messages
        return tail[last - 1].seq if last > 0 else 0
    stays = max(inputs.rooms.keep, inputs.rooms.recent_least) - grows_by
    for entry in reversed(tail):
        stays -= entry.tokens
        if stays < 0:
            return entry.seq
    return 0


def _soon(tail: Sequence[Entry], ratio: float, *, limit: int) -> int:
    """How many billed tokens before its limit a view is about to be condensed."""
    grown = growth(tail)[-NUMBERS.growth_requests :]
    if not grown:
        return 0
    expected = NUMBERS.lead_requests * sum(grown) / len(grown) + max(grown)
    return round(min(expected * ratio, NUMBERS.latest_wish_share * limit))


def growth(tail: Sequence[Entry]) -> list[int]:
    """Raw tokens that came between one request and the next: an answer, its results, and what was said to it."""
    found: list[int] = []
    for entry in tail:
        if entry.role == "assistant" or not found:
            found.append(0)
        found[-1] += entry.tokens
    return found


PREVIEWED = "a preview was asked for"
NOTHING = "nothing but what must stay is there to condense"
_WAITING_ENTRIES = 64
"""So many messages without a summary are due, whatever the triggers are."""


def slides_only(runtime: Runtime) -> bool:
    """Whether no summary may take the place of messages: then the window slides as soon as a view is due."""
    settings = runtime.settings
    summarises = settings.condensation.automatic and settings.tree.enabled
    return not summarises or settings.condensation.strategies.primary == "truncation"


def with_summaries(runtime: Runtime, question: ViewQuestion, proposal: Proposal, *, complete: bool) -> Flow[Proposal]:
    """Summaries take the place of older messages, or the reason why they do not."""
    settings = runtime.settings
    start = proposal.rendered
    if slides_only(runtime):
        return proposal
    waits = question.foreground_seconds > 0 and settings.condensation.strategies.primary in ("llm", "provider")
    # Where nothing could be taken up, nobody has to see that view first: it is worked out once, of what is made now.
    stays = waits and _border_stays(proposal.inputs, start.plan, complete=complete)
    found = None if stays else _renewed(proposal, complete=complete)
    if found is None or (waits and (_is_short(proposal, found) or _shows_rules(proposal.inputs, found, start))):
        began, foreseen = runtime.monotonic(), standing_before(proposal.inputs, start.tail)
        yield from _condense_now(runtime, proposal, up_to=foreseen, seconds=question.foreground_seconds)
        found = _renewed(proposal, complete=complete)
        remaining = question.foreground_seconds - (runtime.monotonic() - began)
        if found.plan.border > foreseen and remaining > 0 and _shows_rules(proposal.inputs, found, start):
            # A chunk ends behind what was foreseen. Written after it was shown, it would have the view made anew.
            yield from _condense_now(runtime, proposal, up_to=found.plan.border, seconds=remaining)
            found = _renewed(proposal, complete=complete)
    freed = start.tokens - found.tokens if complete else start.tokens
    least = round(settings.condensation.least_progress_share * question.window.allowed / proposal.inputs.ratio)
    moved = found.plan.border > start.plan.border
    # A plan that left messages out for want of summaries is made whole, whether or not that frees anything.
    mends = start.plan.provisional and found.tokens <= proposal.inputs.room
    if moved and complete and not mends and does_not_pay(question, proposal, found):
        return proposal
    if moved and complete and freed <= 0 and not mends:
        return failed_for(proposal, FailureReason.CONTEXT_GREW, "what would stand there is not smaller")
    if moved and complete and freed < least and proposal.fits and not mends and proposal.why != PREVIEWED:
        return failed_for(proposal, FailureReason.CONDENSED_RECENTLY, f"it would free only {freed:,} tokens")
    if moved:
        left = _what_left(start, found) if complete else ()
        return replace(proposal.stepped(found, "condensed", left), kind=OutcomeKind.CONDENSED, reason=None, error=None)
    reason, error = _reason(proposal)
    failed = failed_for(proposal, reason, error)
    # A view without a plan starts from what can be shown; one that has a plan may still gain a finer cover.
    return replace(failed, rendered=found) if not complete else failed


def can_advance(inputs: AssemblyInputs, plan: ViewPlan) -> bool:
    """Whether a finished summary stands where the border could move to."""
    tree, track = inputs.runtime.store.tree, inputs.track
    found = tree.borders(inputs.ref, track=track, after=plan.border, limit=1)
    if not found or found[0][2] >= inputs.required.recent.guard:
        return False
    blocked = tree.first_uncondensed(inputs.ref, track=track, after=plan.border)
    return blocked is None or found[0][2] < blocked


def _border_stays(inputs: AssemblyInputs, plan: ViewPlan, *, complete: bool) -> bool:
    """Whether it is plain that a plan made now ends where `plan` does; a view that is not complete begins anew."""
    return (complete or plan.border == 0) and not can_advance(inputs, plan)


def _is_short(proposal: Proposal, found: RenderedView) -> bool:
    """Whether a view is still too large, or takes up nothing that the one before did not."""
    return found.tokens > proposal.inputs.room or found.plan.border == proposal.rendered.plan.border


def _shows_rules(inputs: AssemblyInputs, found: RenderedView, start: RenderedView) -> bool:
    """Whether a view would show, as it did not before, what rules wrote until a model does."""
    library, known = inputs.library.summaries, set(summary_ids_of(start.plan.items))
    new = [one for one in summary_ids_of(found.plan.items) if one in library and one not in known]
    return inputs.runtime.condenser.writes_later and any(library[one].by_rules for one in new)


def _condense_now(runtime: Runtime, proposal: Proposal, *, up_to: int, seconds: float) -> Flow[None]:
    """Have missing summaries made, where they can be kept, and by the model those of what ends at `up_to`."""
    inputs = proposal.inputs
    if not may_write(runtime):
        return
    wish = Wish(track=inputs.track, up_to=up_to)
    try:
        yield from until(condense(runtime, inputs.ref, wish), seconds=seconds, monotonic=runtime.monotonic)
    except StorageError as error:
        note_unwritten(runtime, inputs.ref.session_id, error)
    inputs.library.summaries.clear()  # their texts may be others now


def _renewed(proposal: Proposal, *, complete: bool) -> RenderedView:
    """The sight of a plan made anew; masks go on where their messages stay."""
    previous = proposal.rendered.plan if complete else None
    plan = plan_view(proposal.inputs, previous)
    if previous is not None:
        plan = replace(plan, masked=tuple(one for one in previous.masked if one[0] >= plan.tail_from))
    rendered = with_shorter_held(proposal.inputs, render_view(proposal.inputs, plan))
    rendered = with_file_work(proposal.inputs, rendered)
    return with_files(proposal.inputs, rendered)


def _what_left(start: RenderedView, found: RenderedView) -> tuple[LeftOut, ...]:
    stays = {entry.seq for entry in found.tail}
    gone = [entry for entry in start.tail if entry.seq not in stays]
    left: tuple[LeftOut, ...] = ()
    if gone:
        span = f"{gone[0].seq}-{gone[-1].seq}"
        left = (LeftOut(what=span, reason="condensed", tokens=sum(entry.tokens for entry in gone)),)
    shown = set(summary_ids_of(found.plan.items))
    return left + tuple(
        LeftOut(what=node.id, reason="condensed into a higher level", tokens=node.tokens)
        for node in nodes_of(start.plan.items)
        if node.id not in shown
    )


def failed_for(proposal: Proposal, reason: FailureReason, error: str) -> Proposal:
    """The proposal as it is, with why no summary took the place of messages."""
    kind = proposal.kind if proposal.kind is OutcomeKind.MASKED else OutcomeKind.FAILED
    return replace(proposal, kind=kind, reason=reason, error=error)


def _reason(proposal: Proposal) -> tuple[FailureReason, str]:
    """Why no summary could take the place of messages."""
    inputs = proposal.inputs
    plan = proposal.rendered.plan
    waiting = [entry for entry in proposal.rendered.tail if entry.seq < inputs.required.recent.guard]
    if not waiting:
        return FailureReason.TOO_FEW_MESSAGES, NOTHING
    blocking = inputs.runtime.store.tree.first_unfinished(inputs.ref, track=inputs.track, after=plan.border)
    if blocking is None and not _is_due(inputs):
        told = f"{len(waiting)} messages since the last summary are not due yet"
        return (FailureReason.CONDENSED_RECENTLY if plan.border else FailureReason.TOO_FEW_MESSAGES), told
    if blocking is not None and blocking.reason:
        return FailureReason(blocking.reason), blocking.error or "its last attempt failed"
    return FailureReason.NOT_READY, "summaries are being made; the next request takes them up"


def _is_due(inputs: AssemblyInputs) -> bool:
    """Whether messages wait for a summary that nobody has begun yet."""
    tree = inputs.runtime.settings.tree
    waiting = inputs.runtime.store.tree.waiting_entries(inputs.ref, track=inputs.track, limit=_WAITING_ENTRIES)
    if len(waiting) == _WAITING_ENTRIES:
        return True
    found = due_entries(
        waiting,
        tree.level(1),
        more=False,
        idle_seconds=tree.idle_seconds,
        by_task=tree.on_finished_task,
        now=inputs.runtime.now(),
    )
    return found is not None
