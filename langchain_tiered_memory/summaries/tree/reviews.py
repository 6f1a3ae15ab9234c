"""Has a model say in fewer words what its list of notes has no room for.

A view that lists what must last tells how much room there was. Where the notes of a session take more, the next call
that writes summaries is shown them all, and asked for one part more: notes that belong together, joined. It costs what
the list has, once for each quarter of it that is new. A note that joins others is a fact like them, says nothing that
they do not, and stands only while each of them does: an edit, a branch or a removal brings the others back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.facts.clauses import read
from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.facts.reading import fact_id
from langchain_tiered_memory.summaries.facts.related import SAME, alike
from langchain_tiered_memory.summaries.facts.signs import PARTICULAR
from langchain_tiered_memory.summaries.facts.supersession import AUTHORITY
from langchain_tiered_memory.summaries.facts.written import MOST_UNMARKED, labelled
from langchain_tiered_memory.summaries.prompts.building import WORDS_PER_TOKEN
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.summaries.tree.works import LINE_TOKENS, LOOKED_AT
from langchain_tiered_memory.summaries.writers.jobs import NOTES
from langchain_tiered_memory.text.identifiers import folded, states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob
    from langchain_tiered_memory.types.records import Fact, SessionRef

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
        is_alone=False,
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
    lines = [line for line in answer.splitlines() if line.strip()]
    if joined:
        left = sum(map(bool, map(marks.instead_of, lines))) - len(found)
        said = f"{joined} notes, of {len(review.kept)} that have no room in the list, are said in {len(found)}"
        said += f"; {left} lines that name others were refused" if left > 0 else ""
        runtime.report(EventName.NOTES_JOINED, said, session_id=ref.session_id, joined=joined, notes=len(review.kept))
        return
    if found:
        why = "the notes that it joins changed meanwhile"
    elif any(map(marks.instead_of, lines)):
        why = f"none of its {len(lines)} lines says in fewer words what the notes say that it names"
    else:
        why = f"none of its {len(lines)} lines names notes that it joins" if lines else "it is empty"
    said = f"the answer joins none of {len(review.kept)} notes that have no room in the list: {why}"
    runtime.report(EventName.ANSWER_REFUSED, said, session_id=ref.session_id, fault=NOTES)


def joining(text: str, kept: Sequence[Fact]) -> list[Fact]:
    """The notes of a model's answer that each say others in fewer words, or end them.

    A line that names no others, is no shorter than they are, or has a figure that stands neither in them nor in their
    days, is left out. A note of something else than the line which names it stays as it is, and so
    does a person's with a code or a figure that the line lacks; what a tool told can be looked up again.

    Args:
        text: Bullets as `[instead of 3 7] [keep] ...`.
        kept: The notes that the model was shown, in the order of their numbers from 1 on.
    """
    found: dict[str, Fact] = {}
    taken: set[str] = set()
    for line in text.splitlines():
        mark = marks.BULLET.match(line)
        said = line[mark.end() :] if mark else line
        words = marks.without_marks(said).removeprefix(marks.TOOL_MARK).strip()
        if not any(map(str.isalnum, words)):
            continue
        places = [number - 1 for number in marks.instead_of(said) if 0 < number <= len(kept)]
        named, shares = [kept[place] for place in places], alike(words, kept) if places else []
        same = [kept[place] for place in places if shares[place] >= SAME]
        olds = [one for one in same if one.id not in taken and (one.by == "tool" or _has_figures(words, one))]
        by_tool = bool(olds) and all(one.by == "tool" for one in olds)
        olds = [one for one in olds if by_tool or one.by != "tool"]
        theirs = folded(" ".join(f"{one.text} {day(one.at)}" for one in named))
        if len(words) >= sum(len(one.text) for one in olds) or not all(
            states(theirs, figure) for figure in _figures(words)
        ):
            continue
        joined = _joined(words, olds, lasts=marks.is_kept(said))
        if joined.id not in {one.id for one in kept}:
            found[joined.id] = joined
            taken.update(joined.joins)
    return list(found.values())


def _joined(words: str, olds: Sequence[Fact], *, lasts: bool) -> Fact:
    """One note in the place of others: of their newest message, on the word of whoever of them has the least say.

    What is not marked again is listed no more.
    """
    newest, said = max(olds, key=lambda one: (one.seq, one.id)), read(words)
    by = min(olds, key=lambda one: AUTHORITY[one.by])
    return replace(
        newest,
        id=fact_id(newest.seq, newest.kind, words),
        text=words,
        by=by.by,
        speaker=by.speaker,
        subject=labelled(words) or newest.subject,
        attribute="",
        value=said.value,
        sources=tuple(sorted({seq for one in olds for seq in (one.sources or (one.seq,))})),
        weight=max(one.weight for one in olds) if lasts else MOST_UNMARKED,
        mentions=max(one.mentions for one in olds),
        instead_of=(),
        ends=(),
        joins=tuple(one.id for one in olds),
    )


def _has_figures(words: str, old: Fact) -> bool:
    """Whether a line has the value of a note where that is a code, a path or a figure."""
    value = read(old.text)
    is_exact = value.shape in PARTICULAR and value.shape != "date"
    stated = _figures(value.value) if is_exact else frozenset()
    return frozenset(one for one in _figures(old.text) if any(part in one for part in stated)) <= _figures(words)


def _figures(text: str) -> frozenset[str]:
    """What has a digit in it, each with what belongs to it: a code, a path, a time."""
    return frozenset(one.strip(".,;:()[]'\"`") for one in folded(text).split() if _has_digit(one))


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))
