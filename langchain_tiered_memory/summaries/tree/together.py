"""Has a model write several summaries in one call: what a view wants, and what stands above it.

Chosen are summaries of the lowest level that a model writes which are wanted, in order, and what follows them up to a
call's fill: it will be needed next, and a call for little costs its instructions as well. A summary of a higher level
is written in the call that writes the last of its sources, from what the same call says of them; those that a call
before it wrote, it reads again. One that could not be then is part of the next call. Each summary is committed by
itself, lower levels first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import stop_point
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.models.chat_models import LIFETIME_SECONDS, cached_price, name_of
from langchain_tiered_memory.summaries.engine.last_requests import Standing
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.tree.works import Work, commit, given_back, kept_before, put_off, read_work
from langchain_tiered_memory.summaries.writers.jobs import with_spent
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef, Summary

FILL = 10
"""Summaries of the lowest level that one call writes at least, where there are so many: wanted ones, and what follows
them."""
MOST = 12
"""Summaries of the lowest level in one call, at most: models lose parts of longer answers."""
_FRAMING_TOKENS, _PART_TOKENS, _INSTRUCTION_TOKENS = 8, 40, 700
"""Around a message, a part and a prompt, generously."""
_PART_ANSWER_TOKENS = 12
"""Around a part of an answer."""
_WITH_ABOVE = 1.4
"""Of what a part of level 1 takes of an answer, what it takes with its share of the higher levels: 5 sources of 1,000
tokens have one of 1,500 above them, 15 another of 400."""


def write_wanted(runtime: Runtime, ref: SessionRef) -> Flow[int | None]:
    """Have what is wanted next written in one call. Returns how many were committed; `None` where nothing is wanted."""
    leased = _leased(runtime, ref) if runtime.condenser.writes_later else []
    if not leased:
        return None
    seen: set[str] = set()
    made = 0
    with given_back(runtime, *leased, without=seen):
        works: list[Work] = []
        for summary in leased:
            work = read_work(runtime, ref, summary)
            if work is None:
                seen.add(summary.id)
            else:
                works.append(work)
        made = yield from _written(runtime, ref, _expected(runtime, works), seen)
    return made


def _written(runtime: Runtime, ref: SessionRef, works: Sequence[Work], seen: set[str]) -> Flow[int]:
    """Write and commit one after the other; `seen` gets the ids of those that need not be given back."""
    if not works:
        return 0
    places = {work.summary.id: place for place, work in enumerate(works)}
    below = [{one: places[one] for one in work.summary.sources if one in places} for work in works]
    engine, standing = runtime.condenser, _standing(runtime, ref)
    kept = kept_before(runtime, ref, [work.job for work in works], track=works[0].summary.track)
    prepared = [engine.prepare(replace(work.job, kept=kept if work.job.level == 1 else ())) for work in works]
    try:
        given = yield from engine.write_together(prepared, below, standing=standing)
    except CondensationError as error:
        for number, work in enumerate(works):
            # What the calls took is told once.
            told = with_spent(error, Spent()) if number else error
            put_off(runtime, ref, work.summary, told)
            seen.add(work.summary.id)
        return 0
    done: set[str] = set()
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
            condensed = yield from engine.finish(ready, given[place])
        except CondensationError as error:
            put_off(runtime, ref, summary, error)
            seen.add(summary.id)
            continue
        if commit(runtime, ref, now, condensed, follows=places):
            done.add(summary.id)
        seen.add(summary.id)
        yield from stop_point()
    return len(done)


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
    """What one call shall write, leased: lower levels first, each level in its order."""
    tree, settings = runtime.store.tree, runtime.settings
    now, eager = runtime.now(), settings.condensation.eager
    while True:
        first = next(iter(tree.ready(ref, now=now, every=eager, limit=1)), None)
        if first is None:
            return []
        lowest = settings.condensation.model_from_level
        chosen = _side_by_side(runtime, ref, first, now=now) if first.level <= lowest else []
        ready = tree.ready(ref, now=now, every=eager, above=lowest, limit=MOST)
        chosen += _fitting(runtime, ready, room=_answer_room(runtime, chosen)) or ([] if chosen else [first])
        chosen += _above(runtime, ref, chosen, room=_answer_room(runtime, chosen))
        leased = tree.lease_together(
            ref, [one.id for one in chosen], owner=runtime.worker, now=now, lease_seconds=settings.tree.lease_seconds
        )
        mine = {one.id for one in leased}
        kept: list[Summary] = []
        for one in leased:
            lacks = [under for under in one.sources if under not in mine and any(under == two.id for two in chosen)]
            if one.level > 1 and lacks:  # somebody else was faster
                tree.give_back(one, owner=runtime.worker, now=now)
                mine.discard(one.id)
            else:
                kept.append(one)
        if kept:
            return kept


def _side_by_side(runtime: Runtime, ref: SessionRef, first: Summary, *, now: float) -> list[Summary]:
    """`first` and what follows it on its level: all that is wanted, then up to the fill, as far as a call has room."""
    eager = runtime.settings.condensation.eager
    room = min(runtime.settings.condensation.batch_tokens, runtime.condenser.room()) - _INSTRUCTION_TOKENS
    found = runtime.store.tree.by_rules_from(
        ref, level=first.level, track=first.track or "", first_seq=first.first_seq, now=now, limit=4 * MOST
    )
    wanted = [one for one, is_wanted in found if is_wanted or eager]
    others = [one for one, is_wanted in found if not (is_wanted or eager)]
    chosen = [first]
    room -= _size(runtime, first)
    answer = runtime.condenser.answer_room() or math.inf
    answer -= _WITH_ABOVE * _answer_size(runtime, first)
    for one in (*wanted, *others):
        if one.id == first.id:
            continue
        room -= _size(runtime, one)
        answer -= _WITH_ABOVE * _answer_size(runtime, one)
        enough = len(chosen) >= (MOST if one in wanted else FILL)
        if enough or min(room, answer) < 0 or one.stale:
            break
        chosen.append(one)
    return sorted(chosen, key=lambda one: one.first_seq)


def _answer_size(runtime: Runtime, summary: Summary, *, source_tokens: int | None = None) -> int:
    """Tokens that a part may take of the answer."""
    tokens = summary.source_tokens if source_tokens is None else source_tokens
    return target_and_cap(runtime.settings.tree.level(summary.level), tokens).max_tokens + _PART_ANSWER_TOKENS


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
