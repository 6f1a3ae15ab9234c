"""Has a model say in fewer words what its list of notes has no room for.

A view that lists what must last tells how much room there was. Where the notes of a session take more, the next call
that writes summaries is shown them all, and asked for one part more: notes that belong together, joined. It costs what
the list has, once for each quarter of it that is new.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.facts.joining import joining
from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.marks import instead_of
from langchain_tiered_memory.summaries.prompts.building import WORDS_PER_TOKEN
from langchain_tiered_memory.summaries.tree.works import LINE_TOKENS, LOOKED_AT
from langchain_tiered_memory.summaries.writers.jobs import NOTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.types.records import SessionRef

_AIM = 0.75
"""Of the room, that the notes shall have then: the next ones need some of it."""
_ANSWER = 0.4
"""Of the notes that are shown, that an answer may have. A reader brought 268 notes to 115, 46 % of their tokens, and
lost no value that was planted, in an answer of 38 %."""
_NEW = 0.25
"""Of the room, in notes that are new since the last review, before there is another."""
_MOST_TOKENS = 4_000
"""Of notes that one call is shown."""


def review_of(runtime: Runtime, ref: SessionRef, jobs: Sequence[CondenseJob], *, track: str) -> CondenseJob | None:
    """What is asked for beside `jobs`, which one call writes, where the notes before them have no room; else `None`."""
    seqs = [source.seq for job in jobs if job.level == 1 for source in job.sources]
    room = runtime.view_cache.list_room(ref.key, track)
    if not seqs or room is None:
        return None
    notes = runtime.store.facts.lasting(ref, before=min(seqs), track=track, limit=LOOKED_AT)
    notes.sort(key=lambda one: (one.seq, one.id))
    sizes = [runtime.counter.count_text(line_of(one)) + LINE_TOKENS for one in notes]
    # What was joined stands where it was: a process that begins anew does not ask for all of it again.
    joined = max((one.seq for one in notes if one.joins), default=0)
    last = max(runtime.view_cache.reviewed.get((ref.key, track)) or 0, joined)
    new = sum(size for one, size in zip(notes, sizes, strict=True) if one.seq > last)
    total = sum(sizes)
    if total <= room or new < _NEW * room:
        return None
    first = next((place for place, one in enumerate(notes) if one.seq > last), 0) if total > _MOST_TOKENS else 0
    shown, size = [], 0
    for place in (*range(first, len(notes)), *range(first)):
        if size + sizes[place] > _MOST_TOKENS:
            break
        shown.append(notes[place])
        size += sizes[place]
    limit = runtime.condenser.answer_room()
    spare = limit - sum(job.max_tokens for job in jobs) if limit is not None else size
    answer = min(round(_ANSWER * size), spare)
    if answer < min(sizes):
        return None
    shown.sort(key=lambda one: (one.seq, one.id))
    words = sum(len(line_of(one).split()) for one in shown)
    return replace(
        jobs[0],
        level=1,
        strategy=NOTES,
        sources=(),
        facts=(),
        kept=tuple(shown),
        target_tokens=round(words * _AIM * room / total / WORDS_PER_TOKEN),  # which tells as many words
        max_tokens=answer,
        refused="",
        correction="",
    )


def join_notes(
    runtime: Runtime,
    ref: SessionRef,
    review: CondenseJob | None,
    answer: str | None,
    *,
    track: str,
    beside: tuple[str, ...],
) -> None:
    """Store what the answer to a review joins, and tell of it; what changed since it was asked for stays.

    Where there is nothing to store, that is told with the reason. It is not asked for again before there are new notes.
    `beside` are the summaries that the same call wrote; without an answer nobody was asked.
    """
    if review is None or answer is None:
        return
    runtime.view_cache.reviewed.put((ref.key, track), max(one.seq for one in review.kept))
    found = joining(answer, review.kept)
    shown = [one.id for one in review.kept]
    joined = runtime.store.facts.join(ref, found, shown=shown, beside=beside) if found else 0
    if joined:
        said = f"{joined} notes, of {len(review.kept)} that have no room in the list, are said in {len(found)}"
        runtime.report(EventName.NOTES_JOINED, said, session_id=ref.session_id, joined=joined, notes=len(review.kept))
        return
    lines = [line for line in answer.splitlines() if line.strip()]
    if found:
        why = "what it joins was changed meanwhile"
    elif any(map(instead_of, lines)):
        why = f"none of its {len(lines)} lines says in fewer words what the notes say that it names"
    else:
        why = f"none of its {len(lines)} lines names notes that it joins" if lines else "it is empty"
    said = f"the answer joins none of {len(review.kept)} notes that have no room in the list: {why}"
    runtime.report(EventName.ANSWER_REFUSED, said, session_id=ref.session_id, fault=NOTES)
