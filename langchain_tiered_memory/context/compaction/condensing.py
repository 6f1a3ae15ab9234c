"""Summaries take the place of older messages in a view, or the reason is told why they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.context.compaction.need import PREVIEWED, does_not_pay, standing_before
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.view.call_folding import with_shorter_held
from langchain_tiered_memory.context.view.file_retention import with_file_work, with_files
from langchain_tiered_memory.context.view.planning import plan_view
from langchain_tiered_memory.context.view.rendered_view import RenderedView, render_view
from langchain_tiered_memory.context.view.task_lists import with_tasks
from langchain_tiered_memory.driver import ModelCall
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.summaries.tree.condense import Wish, condense, is_due
from langchain_tiered_memory.summaries.tree.cover import nodes_of, summary_ids_of
from langchain_tiered_memory.transcript.outbox import may_write, note_unwritten
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.driver import Flow

T = TypeVar("T")


def until(flow: Flow[T], *, seconds: float, monotonic: Callable[[], float]) -> Flow[T | None]:
    """What `flow` returns within so many seconds, or `None`; what it holds when they are over it gives back."""
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


NOTHING = "nothing but what must stay is there to condense"


def with_summaries(packing: Packing) -> Flow[Packing]:
    """Summaries take the place of older messages, or the reason why they do not."""
    inputs, settings, start = packing.inputs, packing.inputs.settings, packing.rendered
    seconds, runtime = inputs.foreground_seconds, inputs.runtime
    waits = seconds > 0 and settings.condensation.strategies.primary in ("llm", "provider")
    # Where nothing could be taken up, nobody has to see that view first: it is worked out once, of what is made now.
    stays = waits and _border_stays(packing)
    found = None if stays else _renewed(packing)
    if found is None or (waits and (_is_short(packing, found) or _shows_rules(inputs, found, start))):
        began, foreseen = runtime.monotonic(), standing_before(inputs, start.tail)
        yield from _condense_now(inputs, up_to=foreseen, seconds=seconds)
        found = _renewed(packing)
        remaining = seconds - (runtime.monotonic() - began)
        if found.plan.border > foreseen and remaining > 0 and _shows_rules(inputs, found, start):
            # A chunk ends behind what was foreseen. Written after it was shown, it would have the view made anew.
            yield from _condense_now(inputs, up_to=found.plan.border, seconds=remaining)
            found = _renewed(packing)
    return _judged(packing, found)


def _judged(packing: Packing, found: RenderedView) -> Packing:
    """A view with its border moved, if that frees enough."""
    inputs, start, complete = packing.inputs, packing.rendered, packing.before is not None
    if found.plan.border <= start.plan.border:
        failed = packing.failed(*_reason(packing))
        # A view without a plan starts from what can be shown; one that has a plan may still gain a finer cover.
        return failed if complete else replace(failed, rendered=found)
    freed = start.tokens - found.tokens if complete else start.tokens
    least = round(NUMBERS.least_progress_share * inputs.window.allowed / inputs.ratio)
    # A plan that left messages out for want of summaries is made whole, whether or not that frees anything.
    if complete and not (start.plan.provisional and found.tokens <= inputs.room):
        if does_not_pay(packing, found):
            return packing
        if freed <= 0:
            return packing.failed(FailureReason.CONTEXT_GREW, "what would stand there is not smaller")
        if freed < least and packing.fits and packing.need.why != PREVIEWED:
            return packing.failed(FailureReason.CONDENSED_RECENTLY, f"it would free only {freed:,} tokens")
    left = _what_left(start, found) if complete else ()
    kind = OutcomeKind.CONDENSED
    return replace(packing.stepped(found, "condensed", left, kind), kind=kind, reason=None, error=None)


def can_advance(inputs: Inputs, plan: ViewPlan) -> bool:
    """Whether a finished summary stands where the border could move to."""
    tree, track = inputs.runtime.store.tree, inputs.track
    found = tree.borders(inputs.ref, track=track, after=plan.border, limit=1)
    if not found or found[0][2] >= inputs.required.guard:
        return False
    blocked = tree.first_uncondensed(inputs.ref, track=track, after=plan.border)
    return blocked is None or found[0][2] < blocked


def _border_stays(packing: Packing) -> bool:
    """Whether it is plain that a plan made now ends where this one does; a view that is not complete begins anew."""
    begun = packing.before is not None or packing.rendered.plan.border == 0
    return begun and not can_advance(packing.inputs, packing.rendered.plan)


def _is_short(packing: Packing, found: RenderedView) -> bool:
    """Whether a view is still too large, or takes up nothing that the one before did not."""
    return found.tokens > packing.inputs.room or found.plan.border == packing.rendered.plan.border


def _shows_rules(inputs: Inputs, found: RenderedView, start: RenderedView) -> bool:
    """Whether a view would show, as it did not before, what rules wrote until a model does."""
    library, known = inputs.library.summaries, set(summary_ids_of(start.plan.items))
    new = [one for one in summary_ids_of(found.plan.items) if one in library and one not in known]
    return inputs.runtime.condenser.writes_later and any(library[one].by_rules for one in new)


def _condense_now(inputs: Inputs, *, up_to: int, seconds: float) -> Flow[None]:
    """Have missing summaries made, where they can be kept, and by the model those of what ends at `up_to`."""
    runtime = inputs.runtime
    if not may_write(runtime):
        return
    wish = Wish(track=inputs.track, up_to=up_to)
    try:
        yield from until(condense(runtime, inputs.ref, wish), seconds=seconds, monotonic=runtime.monotonic)
    except StorageError as error:
        note_unwritten(runtime, inputs.ref.session_id, error)
    inputs.library.summaries.clear()  # their texts may be others now


def _renewed(packing: Packing) -> RenderedView:
    """The sight of a plan made anew; masks go on where their messages stay."""
    previous = packing.rendered.plan if packing.before is not None else None
    plan = plan_view(packing.inputs, previous)
    if previous is not None:
        masked = tuple(one for one in previous.masked if one[0] >= plan.tail_from)
        plan = replace(plan, masked=masked, tasks=previous.tasks)
    kept = frozenset(plan.kept)
    plan = with_tasks(
        packing.inputs,
        plan,
        packing.rendered.tail,
        is_shown=lambda entry: entry.seq >= plan.tail_from or entry.group in kept,
    )
    rendered = with_shorter_held(packing.inputs, render_view(packing.inputs, plan))
    rendered = with_file_work(packing.inputs, rendered)
    return with_files(packing.inputs, rendered)


def _what_left(start: RenderedView, found: RenderedView) -> tuple[LeftOut, ...]:
    stays = {entry.seq for entry in found.tail}
    gone = [entry for entry in start.tail if entry.seq not in stays]
    shown = set(summary_ids_of(found.plan.items))
    left = [
        LeftOut(what=node.id, reason="condensed into a higher level", tokens=node.tokens)
        for node in nodes_of(start.plan.items)
        if node.id not in shown
    ]
    if gone:
        tokens = sum(entry.tokens for entry in gone)
        left.insert(0, LeftOut(what=f"{gone[0].seq}-{gone[-1].seq}", reason="condensed", tokens=tokens))
    return tuple(left)


def _reason(packing: Packing) -> tuple[FailureReason, str]:
    """Why no summary could take the place of messages."""
    inputs = packing.inputs
    plan = packing.rendered.plan
    waiting = [entry for entry in packing.rendered.tail if entry.seq < inputs.required.guard]
    if not waiting:
        return FailureReason.TOO_FEW_MESSAGES, NOTHING
    blocking = inputs.runtime.store.tree.first_unfinished(inputs.ref, track=inputs.track, after=plan.border)
    if blocking is None and not is_due(inputs.runtime, inputs.ref, inputs.track):
        told = f"{len(waiting)} messages since the last summary are not due yet"
        return (FailureReason.CONDENSED_RECENTLY if plan.border else FailureReason.TOO_FEW_MESSAGES), told
    if blocking is not None and blocking.reason:
        return FailureReason(blocking.reason), blocking.error or "its last attempt failed"
    return FailureReason.NOT_READY, "summaries are being made; the next request takes them up"
