"""`verify()`, which names what is wrong; `doctor()` and `rebuild_index()`, which mend it. None ever calls a model.

Everything that is derived is derived again and compared; no message is ever changed. Summaries that no longer agree
with what they cover are removed; what they covered is summarised again in time.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import run
from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.forgetting.forget import resume_removals, unfinished_removals
from langchain_tiered_memory.items.searching import embed_items
from langchain_tiered_memory.maintenance import relations
from langchain_tiered_memory.maintenance.examine import Seen, agreed, note_of_unread, seen_again
from langchain_tiered_memory.maintenance.message_relations import of_items
from langchain_tiered_memory.maintenance.remedies import Discarding, Fault, fault
from langchain_tiered_memory.messages.file_accesses import touches_of
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.recall.indexing import brought_up, usable_index
from langchain_tiered_memory.reports import DoctorReport, Problem, Progress, VerifyReport
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.summaries.tree.fact_reading import read_what_waits
from langchain_tiered_memory.types.drafts import TOUCHING_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from langchain_tiered_memory.recall.chroma.index import ChromaIndex
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_PAGE = 2000


def _parts(
    runtime: Runtime, counts: Counter[str], *, seen: Seen = lambda _: None, recount: bool = False
) -> Iterator[list[Fault]]:
    """All that is wrong, in the order in which one part stands on another; `counts` says how much there is.

    So each is mended before the next one is looked at, and no more is taken for lost than is. What another counter
    counted is no fault; with `recount` it is counted anew where it is come upon.
    """
    sessions = runtime.store.transcript.sessions
    yield _general(runtime)
    yield [one for ref in sessions() for one in _of_relations(runtime, ref)]
    finishing = partial(resume_removals, runtime)
    yield [Fault(problem, finishing) for problem in unfinished_removals(runtime)]
    yield _of_text_index(runtime)
    readings: list[Fault] = []
    for ref in sessions():
        found = agreed(runtime, ref, seen=seen)
        readings += found.faults
        for count_anew in found.recounts if recount else ():
            count_anew()
        counts["recounts"] += len(found.recounts)
    yield readings
    yield _of_vectors(runtime, counts)


def _general(runtime: Runtime) -> list[Fault]:
    """Columns that hold what they cannot, and rows of nobody; looked at twice, as in `agreed`."""
    store = runtime.store
    damaged = store.inspection.damaged_database()
    file = [fault("damaged_database", store.database.label, damaged)] if damaged is not None else []
    look = partial(
        store.inspection.look,
        relations.misshapen,
        relations.of_no_session,
        relations.of_removals,
        partial(relations.of_tombstones, secret=store.database.forgetting_key),
        partial(relations.of_vectors, fingerprint=store.vector_queue.embedder()),
        of_items,
    )
    return file + seen_again(look(), look)


def _of_relations(runtime: Runtime, ref: SessionRef) -> list[Fault]:
    """What a session's rows say of each other; looked at twice, as in `agreed`."""
    look = partial(runtime.store.inspection.look, partial(relations.of_session, ref=ref))
    return seen_again(look(), look)


def _of_text_index(runtime: Runtime) -> list[Fault]:
    """What the text index holds that its rows do not say, or lacks; and rows of it that nobody owns."""
    inspection = runtime.store.inspection
    orphans, damaged = inspection.orphan_passages(), inspection.damaged_text_index()
    dropping = partial(inspection.drop_orphan_passages, orphans)
    found = [fault("orphan_index_row", one, "its owner is gone", dropping) for one in orphans]
    if damaged is None:
        detail = "the full-text index does not match its rows; rebuild_index() rebuilds it"
        return [*found, fault("damaged_text_index", "text index", detail, inspection.rebuild_text_index)]
    detail = "the full-text index and its row differ"
    return found + [fault("damaged_text_index", one, detail, inspection.rebuild_text_index) for one in damaged]


def _of_vectors(runtime: Runtime, counts: Counter[str]) -> list[Fault]:
    """What the vector index holds that SQL does not say, or lacks."""
    queue = runtime.store.vector_queue
    try:
        index = usable_index(runtime)
        if index is None:
            return []
        there = index.ids()
        wanted = set(queue.settled(fingerprint=index.fingerprint))
        waiting = set(queue.forgotten(limit=_PAGE))
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        return [fault("vectors_unavailable", "Chroma", str(error))]
    counts["vectors"] += len(there)
    missing, extra = sorted(wanted - there), sorted(there - wanted - waiting)
    queueing, removing = partial(queue.unsettle, missing), partial(index.remove, extra)
    found = [fault("missing_vector", one, "SQL says it is in Chroma", queueing) for one in missing]
    return found + [fault("extra_vector", one, "no passage in SQL has it", removing) for one in extra]


def verify(runtime: Runtime, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
    """Look at everything, change nothing; `progress` is called after each page of messages."""
    sessions = runtime.store.transcript.sessions()
    counts, inspection = Counter[str](), runtime.store.inspection
    seen = counted(progress, "check", inspection.count(schema.entries))
    problems = dict.fromkeys(one.problem for part in _parts(runtime, counts, seen=seen) for one in part)
    passages = inspection.count(schema.passages)
    pending = runtime.store.vector_queue.count()
    by_another = f"made by another counter than {runtime.counter.fingerprint}: rebuild_index() counts them again"
    return VerifyReport(
        sessions=len(sessions),
        entries=inspection.count(schema.entries),
        summaries=inspection.count(schema.summaries),
        passages=passages,
        vectors=counts["vectors"],
        pending_vectors=pending,
        problems=tuple(problems),
        notes=(
            *([f"{counts['recounts']} counts were {by_another}"] if counts["recounts"] else []),
            *_note_of_vectors(runtime, pending=pending, passages=passages),
            *note_of_unread(runtime, sessions),
        ),
    )


def counted(progress: Callable[[Progress], object] | None, step: str, total: int) -> Callable[[int], None]:
    """What tells `progress` of each further piece of `total`."""
    done = 0

    def tell(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(Progress(step=step, done=done, of=max(done, total)))

    return tell


def _note_of_vectors(runtime: Runtime, *, pending: int, passages: int) -> tuple[str, ...]:
    """A passage may wait for its vector: that is no fault. One that waits after `doctor()` is."""
    if not pending:
        return ()
    try:
        index = runtime.open_index()
    except IndexUnavailableError:
        return ()  # named as a problem
    if index is None:
        return (f"{pending} of {passages} passages have no vector: search is by words alone, without an embedder",)
    return (f"{pending} of {passages} passages have no vector yet: flush() or doctor() embeds them",)


def rebuild_index(runtime: Runtime, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
    """Derive counts, index rows, the text index and every vector anew, and look again.

    A message that cannot be read is left as it is, and named in the report.
    """
    inspection = runtime.store.inspection
    _mend(runtime, recount=True, seen=counted(progress, "rows", inspection.count(schema.entries)))
    for ref in runtime.store.transcript.sessions():
        inspection.mend_totals(ref)
        runtime.store.facts.unsettle(ref, None)
        run(read_what_waits(runtime, ref))
    inspection.rebuild_text_index()
    runtime.store.items.unsettle()
    embed_items(runtime)
    index = runtime.open_index()
    if index is not None:
        _clear(runtime, index)
        runtime.store.vector_queue.set_embedder(index.fingerprint)
        vectors = counted(progress, "vectors", inspection.count(schema.passages))
        _, usable = brought_up(runtime, embedded=vectors)
        # Some damage shows only when something is written.
        why = _broken(index) if usable is None else None
        if why is not None and _start_over(runtime, index, why):
            brought_up(runtime)
    return verify(runtime, progress=progress)


def _clear(runtime: Runtime, index: ChromaIndex) -> None:
    try:
        index.clear()
    except IndexUnavailableError as error:
        if not _start_over(runtime, index, str(error)):
            raise
    else:
        runtime.store.vector_queue.reset()


def _broken(index: ChromaIndex) -> str | None:
    """Why the index itself cannot be used; `None` where only its embedder failed."""
    try:
        index.count()
    except IndexUnavailableError as error:
        return str(error)
    return None


def _start_over(runtime: Runtime, index: ChromaIndex, why: str) -> bool:
    """Put away files that cannot be read, all of them derived; says so. Returns whether that was possible."""
    became = index.discard()
    if became is None:
        return False
    runtime.store.vector_queue.reset()
    runtime.report(
        EventName.INDEX_DISCARDED, f"the vector index is rebuilt, because it could not be used ({why}): {became}"
    )
    return True


def doctor(runtime: Runtime) -> DoctorReport:
    """Find what is wrong between transcript, summaries, text index and Chroma, mend that alone, say what was done."""
    before = verify(runtime)
    if before.problems:
        _mend(runtime)
    for ref in runtime.store.transcript.sessions():
        run(read_what_waits(runtime, ref))
    if before.problems or before.pending_vectors:
        brought_up(runtime)
    after = verify(runtime)
    left = (*after.problems, *_still_missing(runtime, after))
    open_files = (  # they are the user's: only named
        f"{place} is {has}: others may read or write it; `chmod {wanted} {place}` restricts it to those that "
        "settings.file_mode allows"
        for place, has, wanted in runtime.store.database.open_to_others()
    )
    return DoctorReport(
        found=before.problems,
        mended=tuple(problem for problem in before.problems if problem not in after.problems),
        left=left,
        notes=(*after.notes, *open_files),
    )


def _still_missing(runtime: Runtime, after: VerifyReport) -> tuple[Problem, ...]:
    """Passages without a vector where an embedder is at hand and was just asked for them."""
    if not after.pending_vectors or any(problem.kind == "vectors_unavailable" for problem in after.problems):
        return ()
    if runtime.open_index() is None:
        return ()
    detail = f"{after.pending_vectors} of {after.passages} passages have no vector, although there is an embedder"
    return (Problem(kind="vectors_missing", what="Chroma", detail=detail),)


def _mend(runtime: Runtime, *, seen: Seen = lambda _: None, recount: bool = False) -> None:
    """Mend part by part, and begin again while less is found wrong than the time before.

    `seen` and `recount` are as for `_parts`.
    """
    tried: set[Problem] = set()
    with suppress(IndexUnavailableError):  # told of by whoever asks it next
        found, before = _mended_once(runtime, tried, seen=seen, recount=recount), inf
        while 0 < found < before:
            found, before = _mended_once(runtime, tried, seen=seen, recount=recount), found
    for ref in runtime.store.transcript.sessions():
        runtime.store.inspection.seal(ref)
        if any(one.kind == "wrong_file_access" or one.what.startswith("ltm_files/") for one in tried):
            _mend_files(runtime, ref)


def _mended_once(runtime: Runtime, tried: set[Problem], *, seen: Seen, recount: bool) -> int:
    """Apply the remedies of each part before the next one is looked at; how many faults have one.

    A summary goes only where nothing else in its part is yet to be tried: what it seems to differ from may be the
    damage.
    """
    found = 0
    for part in _parts(runtime, Counter(), seen=seen, recount=recount):
        faults = [one for one in part if one.remedy is not None]
        staying = [one for one in faults if not isinstance(one.remedy, Discarding)]
        applied = faults if {one.problem for one in staying} <= tried else staying
        _apply(runtime, applied)
        tried |= {one.problem for one in applied}
        found += len(faults)
    return found


def _apply(runtime: Runtime, faults: Iterable[Fault]) -> None:
    """Apply the remedies of these faults, each by itself; summaries that go go all at once."""
    remedies = dict.fromkeys(one.remedy for one in faults)
    if discarded := [one.summary_id for one in remedies if isinstance(one, Discarding)]:
        runtime.store.inspection.discard_summaries(discarded)
    for remedy in remedies:
        if callable(remedy):
            remedy()
        elif remedy is not None and not isinstance(remedy, Discarding):
            runtime.store.inspection.change(remedy if isinstance(remedy, tuple) else (remedy,))


def _mend_files(runtime: Runtime, ref: SessionRef) -> None:
    """Note anew which files the calls of a session's messages touch."""
    pages = runtime.store.inspection.counted_pages(ref)
    while page := next(pages, []):
        for entry, _ in page:
            message, damaged = message_or_stand_in(entry)
            if entry.role in TOUCHING_ROLES and damaged is None:
                touches = touches_of(message, runtime.settings.files)
                runtime.store.inspection.mend_touches(ref, entry, touches)
