"""Makes summaries: claims what is due, has it written, commits the result.

Any process may do this at any time: a claim reserves what it covers, so that no two make the same summary, and a lease
that ran out is taken over. No transaction is held while a model writes.

With a condensing model and `condensation.eager` off, rules write what falls due, at once and at no cost. The model is
asked for what a view wants, several at a time: summaries of the lowest level that a model writes which are wanted, in
order, and what follows them up to a call's fill, for it will be needed next, and a call for little costs its
instructions as well. A summary of a higher level is written in the call that writes the last of its sources, from what
the same call says of them; those that a call before it wrote, it reads again. One that could not be then is part of the
next call. Each summary is committed by itself, lower levels first.

When a summary is due follows from the messages alone, never from the moment somebody looks: a chunk is the shortest run
of whole groups at which a trigger holds, or that a pause or the end of a task closes. So two processes, or a restart,
plan the same summaries. A pause that still lasts is told from the clock, and closes the chunk where the next message
would: it cannot come with an earlier time, unless an old conversation is brought in piece by piece.
"""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import stop_point
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.models.chat_models import LIFETIME_SECONDS, cached_price, name_of
from langchain_tiered_memory.summaries.tree.reviews import join_notes, review_of
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.tree.works import Work, commit, given_back, kept_before, put_off, read_work
from langchain_tiered_memory.summaries.writers.behind import PART_TOKENS, Standing
from langchain_tiered_memory.summaries.writers.jobs import with_spent
from langchain_tiered_memory.types.drafts import SummaryPlan
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import LevelSettings
    from langchain_tiered_memory.summaries.writers.jobs import Condensed, SourceText
    from langchain_tiered_memory.types.drafts import WaitingEntry
    from langchain_tiered_memory.types.records import SessionRef, Summary


MIN_ENTRIES_BY_TIME = 2
"""Neither a pause nor the end of a task makes a summary of a single message."""
ABANDONED_AFTER = 8
"""A call is given up for dead when this many groups came after it; until then its group is not condensed."""
MIN_SOURCES = 2
"""A level above the first never stands for a single summary."""


def due_entries(
    waiting: Sequence[WaitingEntry],
    level: LevelSettings,
    *,
    more: bool,
    idle_seconds: float | None = None,
    now: float | None = None,
) -> tuple[int, ...] | None:
    """The first chunk of messages that level 1 is due for, by their numbers; `None` when no trigger holds yet.

    `waiting` are the oldest messages of one track without a summary, in order; with `more`, further ones wait behind
    these. A pause of `idle_seconds` between the messages' own times ends a chunk of two messages or more, and so does
    the end of a task. `now` is for a pause that still lasts; `None` leaves it open until somebody speaks
    again. A chunk never has a message whose calls wait for their results, such as one that a person has yet to approve.
    """
    groups = _groups(waiting)
    taken: list[WaitingEntry] = []
    for position, group in enumerate(groups):
        # A pause closes the chunk before the message that ends it: a new sitting is another subject. What waits for a
        # result does not hold back what was closed before it.
        is_due = _waited(taken, group[0].at, level) or _paused(taken, group[0].at, idle_seconds)
        if not is_due:
            if position == len(groups) - 1 and more:
                return None  # the rest of this group may not have been read
            if position >= len(groups) - ABANDONED_AFTER and any(entry.waits for entry in group):
                return None  # its results may still come
            taken += group
            is_due = _reaches(len(taken), level.messages) or _reaches(
                sum(entry.tokens for entry in taken), level.tokens
            )
            is_due = is_due or _waited(taken, taken[-1].at, level)
        if len(taken) >= MIN_ENTRIES_BY_TIME:
            is_due = is_due or any(entry.ends_task for entry in group)
        if is_due:
            return tuple(entry.seq for entry in taken)
    # Nobody spoke since: the next message will find the same pause before it.
    is_due = now is not None and _paused(taken, now, idle_seconds)
    return tuple(entry.seq for entry in taken) if is_due else None


def _reaches(count: int, least: int | None) -> bool:
    return least is not None and count >= least


def _waited(taken: Sequence[WaitingEntry], now: float, level: LevelSettings) -> bool:
    return level.seconds is not None and len(taken) >= MIN_ENTRIES_BY_TIME and now - taken[0].at >= level.seconds


def _paused(taken: Sequence[WaitingEntry], now: float, idle_seconds: float | None) -> bool:
    if idle_seconds is None or len(taken) < MIN_ENTRIES_BY_TIME:
        return False
    return now - max(entry.at for entry in taken) >= idle_seconds


def _groups(waiting: Sequence[WaitingEntry]) -> list[list[WaitingEntry]]:
    """Whole groups in the order of their first entry; results that came in between others join their group."""
    by_group: dict[int, list[WaitingEntry]] = {}
    for entry in waiting:
        by_group.setdefault(entry.group, []).append(entry)
    return list(by_group.values())


def due_summaries(waiting: Sequence[Summary], level: LevelSettings) -> tuple[str, ...] | None:
    """The first chunk of summaries that a level is due for, by their ids, of the oldest that no higher one has taken.

    It never reaches past a summary that is unfinished or degraded: what a fallback wrote is made again before anything
    is built on it.
    """
    taken: list[Summary] = []
    for summary in waiting:
        if not summary.state.finished or summary.degraded:
            return None
        taken.append(summary)
        if len(taken) < MIN_SOURCES:
            continue
        if (
            _reaches(len(taken), level.sources)
            or _reaches(sum(one.tokens for one in taken), level.tokens)
            or _reaches(sum(one.entry_count for one in taken), level.messages)
        ):
            return tuple(one.id for one in taken)
    return None


_LOOK_AHEAD = 64
"""Messages read to find the next chunk; doubled while it is not among them."""
_WAITING_SUMMARIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a view needs of a track in a model's words."""

    track: str
    up_to: int
    """The last message that it stands for, or soon will."""


def condense(
    runtime: Runtime, ref: SessionRef, wish: Wish | None = None, *, is_over: Callable[[], bool] = lambda: False
) -> Flow[int]:
    """Make every summary of a session that is due now. Returns how many were committed.

    `wish` is what a view needs besides what was wanted before. `is_over` is asked behind each summary, or each batch of
    a model's: whether to leave the rest for later.
    """
    if not runtime.settings.tree.enabled:
        return 0
    for owner in runtime.store.tree.lessees(ref, now=runtime.now()):
        if runtime.signature.is_gone(owner):
            runtime.store.tree.release(owner=owner, now=runtime.now())
    made = 0
    while True:
        with runtime.store.database.snapshot():  # what is due is read at once, up to the claim of it
            due = _claim_next(runtime, ref)
        if due is None and wish is not None:
            want(runtime, ref, wish)
            wish = None
        leased = [due] if due is not None else _leased(runtime, ref)
        if not leased:
            return made
        by_rules = due is not None and (due.by_rules or not due.state.finished)
        later = None if due is None else by_rules and not runtime.settings.condensation.eager
        made += yield from _committed(runtime, ref, leased, later=later)
        yield from stop_point()
        if is_over():
            return made


def is_due(runtime: Runtime, ref: SessionRef, track: str | None = None) -> bool:
    """Whether a summary could be begun now that nobody has begun; where a track is named, of its messages."""
    if not runtime.settings.tree.enabled:
        return False
    return (_next_plan(runtime, ref) if track is None else _plan_level_1(runtime, ref, track)) is not None


def want(runtime: Runtime, ref: SessionRef, wish: Wish) -> bool:
    """Write down what a view needs. Returns whether a model has more to write than before."""
    if not runtime.condenser.writes_later:
        return False
    level = runtime.settings.condensation.model_from_level
    return runtime.store.tree.want(ref, level=level, track=wish.track, up_to=wish.up_to, now=runtime.now()) > 0


def _claim_next(runtime: Runtime, ref: SessionRef) -> Summary | None:
    tree, settings = runtime.store.tree, runtime.settings.tree
    while True:
        now = runtime.now()
        due = tree.due(ref, now=now, remake_stale=settings.regenerate_on_edit)
        if due is not None:
            if tree.lease(due, owner=runtime.worker, now=now, lease_seconds=settings.lease_seconds):
                return replace(due, attempts=due.attempts + 1)
            continue
        plan = _next_plan(runtime, ref)
        if plan is None:
            return None
        claimed = tree.claim(ref, plan, owner=runtime.worker, now=now, lease_seconds=settings.lease_seconds)
        if claimed is not None:
            return claimed


def _next_plan(runtime: Runtime, ref: SessionRef) -> SummaryPlan | None:
    track: str | None = None
    while True:
        track = runtime.store.tree.next_waiting_track(ref, after=track)
        if track is None:
            break
        plan = _plan_level_1(runtime, ref, track)
        if plan is not None:
            return plan
    height = runtime.store.tree.height(ref)
    for level in range(2, height + 1):
        # A level may have nothing that waits while the one above it is due.
        waiting = runtime.store.tree.waiting_summaries(ref, level=level - 1, limit=_WAITING_SUMMARIES)
        chosen = runtime.settings.tree.level(level)
        due = due_summaries(waiting, chosen)
        if due is not None:
            return SummaryPlan(id=uuid.uuid4().hex, level=level, strategy=chosen.strategy, source_ids=due)
    return None


def _plan_level_1(runtime: Runtime, ref: SessionRef, track: str) -> SummaryPlan | None:
    chosen = runtime.settings.tree.level(1)
    limit = _LOOK_AHEAD
    while True:
        waiting = runtime.store.tree.waiting_entries(ref, track=track, limit=limit)
        more = len(waiting) == limit
        due = due_entries(
            waiting,
            chosen,
            more=more,
            idle_seconds=runtime.settings.tree.idle_seconds,
            now=runtime.now(),
        )
        if due is not None:
            return SummaryPlan(id=uuid.uuid4().hex, level=1, strategy=chosen.strategy, track=track, source_seqs=due)
        if not more:
            return None
        limit *= 2


FILL = 10
"""Summaries of the lowest level that one call writes at least, where there are so many: wanted ones, and what follows
them."""
MOST = 12
"""Summaries of the lowest level in one call, at most: models lose parts of longer answers."""
_FRAMING_TOKENS, _PART_TOKENS, _INSTRUCTION_TOKENS = 8, 40, 700
"""Around a message, a part and a prompt, generously."""


def _committed(runtime: Runtime, ref: SessionRef, leased: Sequence[Summary], *, later: bool | None) -> Flow[int]:
    """Have leased summaries written, and commit one after the other. Returns how many were.

    `later` is as for `CondensationEngine.finish`; `None`: in one call of a model.
    """
    seen: set[str] = set()
    with given_back(runtime, *leased, without=seen):
        works = [work for summary in leased if (work := read_work(runtime, ref, summary)) is not None]
        seen.update({one.id for one in leased} - {work.summary.id for work in works})
        return (yield from _written(runtime, ref, _expected(runtime, works), seen, later=later)) if works else 0


def _beside(work: Work, works: Sequence[Work]) -> tuple[SourceText, ...]:
    """What the other summaries are written from that are written with one."""
    return tuple(source for other in works if other is not work for source in other.job.sources)


def _written(
    runtime: Runtime, ref: SessionRef, works: Sequence[Work], seen: set[str], *, later: bool | None
) -> Flow[int]:
    """As `_committed`; `seen` gets the ids of those that need not be given back."""
    places = {work.summary.id: place for place, work in enumerate(works)}
    below = [{one: places[one] for one in work.summary.sources if one in places} for work in works]
    engine = runtime.condenser
    jobs, track = [work.job for work in works], works[0].summary.track or ""
    review = review_of(runtime, ref, jobs, track=track) if later is None else None
    kept = review.kept if review is not None else () if later else kept_before(runtime, ref, jobs, track=track)
    prepared = [engine.prepare(replace(work.job, kept=kept, beside=_beside(work, works))) for work in works]
    given: list[Condensed | None] = [None for _ in works]
    joins: str | None = None
    try:
        if later is None:
            standing = _standing(runtime, ref)
            given, joins = yield from engine.write_together(prepared, below, standing=standing, review=review)
    except CondensationError as error:
        for number, work in enumerate(works):
            # What the calls took is told once.
            told = with_spent(error, Spent()) if number else error
            put_off(runtime, ref, work.summary, told)
            seen.add(work.summary.id)
        return 0
    done: set[str] = set()
    said: list[str] = []
    for place, work in enumerate(works):
        summary = work.summary
        if any(one not in done for one in below[place]):
            # Something below it is still in the words of rules: so is this.
            runtime.store.tree.give_back(summary, owner=runtime.worker, now=runtime.now())
            seen.add(summary.id)
            continue
        now = read_work(runtime, ref, summary) if below[place] else work
        if now is None:
            seen.add(summary.id)
            continue
        ready = prepared[place]
        if below[place]:  # the job as hooks left it, over what its sources say by now
            ready = replace(ready, job=replace(ready.job, sources=now.job.sources, facts=now.job.facts))
        try:
            condensed = yield from engine.finish(ready, _behind(given[place], said), later=later)
        except CondensationError as error:
            put_off(runtime, ref, summary, error)
            seen.add(summary.id)
            continue
        if commit(runtime, ref, now, condensed, follows=places, shown=[one.id for one in kept]):
            done.add(summary.id)
            said.append(condensed.text)
        else:
            joins = None  # what the call read may have been forgotten meanwhile
        seen.add(summary.id)
        yield from stop_point()
    join_notes(runtime, ref, review, joins, track=track, beside=tuple(places))
    return len(done)


def _behind(part: Condensed | None, said: Sequence[str]) -> Condensed | None:
    """A part of an answer whose writer knows what it wrote before."""
    return replace(part, shown=(*part.shown, *said)) if part is not None else None


def _standing(runtime: Runtime, ref: SessionRef) -> Standing | None:
    """The last request of the session's agent, where its provider has it and nothing it shows was changed since."""
    settings = runtime.settings.condensation
    if settings.on_last_request == "never":
        return None
    lifetime = settings.cache_lifetime_seconds or LIFETIME_SECONDS
    request = runtime.last_requests.warm(ref.session_id, now=runtime.now(), lifetime_seconds=lifetime)
    session = runtime.store.transcript.find(ref.session_id) if request is not None else None
    if request is None or session is None or session.epoch != request.epoch:
        return None
    return Standing(
        request=request,
        cached_price=cached_price(runtime.settings, name_of(request.model)),
        by_name=settings.on_last_request == "always",
    )


def _leased(runtime: Runtime, ref: SessionRef) -> list[Summary]:
    """What one call of a model shall write, leased: lower levels first, each level in its order."""
    tree, settings = runtime.store.tree, runtime.settings
    now, eager = runtime.now(), settings.condensation.eager
    while runtime.condenser.writes_later:
        first = next(iter(tree.ready(ref, now=now, every=eager, limit=1)), None)
        if first is None:
            break
        lowest = settings.condensation.model_from_level
        chosen = _side_by_side(runtime, ref, first, now=now) if first.level <= lowest else []
        ready = tree.ready(ref, now=now, every=eager, above=lowest, limit=MOST)
        chosen += _fitting(runtime, ready, room=_answer_room(runtime, chosen)) or ([] if chosen else [first])
        chosen += _above(runtime, ref, chosen, room=_answer_room(runtime, chosen))
        lease = settings.tree.lease_seconds
        leased = tree.lease_together(ref, chosen, owner=runtime.worker, now=now, lease_seconds=lease)
        if leased:
            return leased
    return []


def _side_by_side(runtime: Runtime, ref: SessionRef, first: Summary, *, now: float) -> list[Summary]:
    """`first` and what follows it on its level: all that is wanted, then up to the fill, as far as a call has room."""
    eager = runtime.settings.condensation.eager
    room = runtime.condenser.room() - _INSTRUCTION_TOKENS
    found = runtime.store.tree.by_rules_from(
        ref, level=first.level, track=first.track or "", first_seq=first.first_seq, now=now, limit=4 * MOST
    )
    chosen: list[Summary] = []
    answer = runtime.condenser.answer_room() or math.inf
    for one, is_wanted in sorted(found, key=lambda one: (one[0].id != first.id, not (one[1] or eager))):
        room -= _size(runtime, one)
        answer -= _answer_size(runtime, one)
        enough = len(chosen) >= (MOST if is_wanted or eager else FILL)
        if chosen and (enough or min(room, answer) < 0 or one.stale):
            break
        chosen.append(one)
    return sorted(chosen, key=lambda one: one.first_seq)


def _answer_size(runtime: Runtime, summary: Summary, *, source_tokens: int | None = None) -> int:
    """Tokens that a part may take of the answer."""
    tokens = summary.source_tokens if source_tokens is None else source_tokens
    return target_and_cap(runtime.settings.tree.level(summary.level), tokens).max_tokens + PART_TOKENS


def _answer_room(runtime: Runtime, chosen: Sequence[Summary]) -> float:
    """What is left of an answer beside `chosen`."""
    return (runtime.condenser.answer_room() or math.inf) - sum(_answer_size(runtime, one) for one in chosen)


def _size(runtime: Runtime, summary: Summary) -> int:
    """Tokens that a part takes of a call: what is read and written for it, and for what stands above it."""
    cap = target_and_cap(runtime.settings.tree.level(summary.level), summary.source_tokens).max_tokens
    return summary.source_tokens + _FRAMING_TOKENS * len(summary.sources) + _PART_TOKENS + 2 * cap


def _fitting(runtime: Runtime, found: Sequence[Summary], *, room: float) -> list[Summary]:
    """Those whose answers have room, in their order."""
    chosen: list[Summary] = []
    for one in found:
        size = _answer_size(runtime, one)
        if size <= room:
            chosen.append(one)
            room -= size
    return chosen


def _above(runtime: Runtime, ref: SessionRef, chosen: Sequence[Summary], *, room: float) -> list[Summary]:
    """Summaries of higher levels that the call which writes `chosen` shall write too, within `room` of its answer."""
    tree = runtime.store.tree
    above: list[Summary] = []
    level = list(chosen)
    mine = {one.id for one in chosen}
    while level:
        parents = list(dict.fromkeys(one.parent_id for one in level if one.parent_id is not None))
        level = []
        for parent in sorted(tree.by_id(ref, parents), key=lambda one: one.first_seq):
            sources = tree.by_id(ref, parent.sources)
            if parent.id in mine or not (parent.by_rules and parent.state.finished and _belongs(parent, sources, mine)):
                continue
            size = _answer_size(runtime, parent, source_tokens=sum(one.tokens for one in sources))
            if size <= room:
                level.append(parent)
                room -= size
        mine |= {one.id for one in level}
        above += level
    return above


def _belongs(parent: Summary, sources: Sequence[Summary], mine: Collection[str]) -> bool:
    """Whether all of its sources are in a model's words with this call."""
    return len(sources) == len(parent.sources) and not any(one.by_rules and one.id not in mine for one in sources)


def _expected(runtime: Runtime, works: Sequence[Work]) -> list[Work]:
    """Works with sizes that go by what their sources will have, where the same call writes those."""
    sizes: dict[str, int] = {}
    found: list[Work] = []
    for work in works:
        job = work.job
        tokens = sum(sizes.get(source.id, source.tokens) for source in job.sources)
        size = target_and_cap(runtime.settings.tree.level(job.level), tokens)
        sizes[work.summary.id] = size.target_tokens
        found.append(replace(work, job=replace(job, target_tokens=size.target_tokens, max_tokens=size.max_tokens)))
    return found
