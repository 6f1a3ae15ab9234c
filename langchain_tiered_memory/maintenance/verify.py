"""`verify()`, which names what is wrong; `doctor()` and `rebuild_index()`, which mend it. None ever calls a model.

Everything that is derived is derived again and compared; no message is ever changed. Summaries that no longer agree
with what they cover are removed; what they covered is summarised again in time.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import run
from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.forgetting.forget import removal_problems, resume_removals
from langchain_tiered_memory.items.searching import embed_items
from langchain_tiered_memory.maintenance import relations
from langchain_tiered_memory.maintenance.examine import agreed, note_of_unread, seen_again
from langchain_tiered_memory.maintenance.message_relations import of_items
from langchain_tiered_memory.maintenance.remedies import fault
from langchain_tiered_memory.messages.file_accesses import touches_of
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.recall.indexing import brought_up, usable_index
from langchain_tiered_memory.reports import DoctorReport, Problem, Progress, VerifyReport
from langchain_tiered_memory.summaries.tree.fact_reading import read_what_waits
from langchain_tiered_memory.types.drafts import TOUCHING_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.maintenance.remedies import Fault
    from langchain_tiered_memory.recall.chroma.index import ChromaIndex
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_PAGE = 2000
_ROUNDS = 4
"""Of remedies: a key, then what hangs on it, then what is copied from that, and one to see that nothing is left."""


def verify(runtime: Runtime, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
    """Look at everything, change nothing; `progress` is called after each page of messages."""
    problems: list[Problem] = []
    damaged = runtime.store.inspection.damaged_database()
    if damaged is not None:
        problems.append(Problem(kind="damaged_database", what=runtime.store.database.label, detail=damaged))
    problems += [one.problem for one in general_faults(runtime)]
    sessions = runtime.store.transcript.sessions()
    entries = summaries = other_counts = 0
    seen = counted(progress, "check", runtime.store.inspection.entry_count())
    for ref in sessions:
        tally = agreed(runtime, ref, seen=seen)
        problems += [one.problem for one in (*tally.faults, *faults_of(runtime, ref))]
        entries, summaries = entries + tally.entries, summaries + tally.summaries
        other_counts += len(tally.recounts)
    problems += removal_problems(runtime)
    vectors, index_faults = _index_faults(runtime)
    problems += [one.problem for one in index_faults]
    passages = runtime.store.inspection.passage_count()
    pending = runtime.store.vector_queue.count(levels_above_0=runtime.settings.tree.embed_summaries)
    by_another = f"made by another counter than {runtime.counter.fingerprint}: rebuild_index() counts them anew"
    return VerifyReport(
        sessions=len(sessions),
        entries=entries,
        summaries=summaries,
        passages=passages,
        vectors=vectors,
        pending_vectors=pending,
        problems=tuple(dict.fromkeys(problems)),
        notes=(
            *([f"{other_counts} counts were {by_another}"] if other_counts else []),
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


def general_faults(runtime: Runtime) -> list[Fault]:
    """Columns that hold what they cannot, and rows of nobody; looked at twice, as in `agreed`."""
    store = runtime.store
    look = partial(
        store.relations.look,
        relations.misshapen,
        relations.of_no_session,
        relations.of_removals,
        partial(relations.of_tombstones, secret=store.database.forgetting_key),
        partial(relations.of_vectors, fingerprint=store.vector_queue.embedder()),
        of_items,
    )
    return seen_again(look(), look)


def faults_of(runtime: Runtime, ref: SessionRef) -> list[Fault]:
    """What a session's rows say of each other; looked at twice, as in `agreed`."""
    look = partial(runtime.store.relations.look, partial(relations.of_session, ref=ref))
    return seen_again(look(), look)


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


def _index_faults(runtime: Runtime) -> tuple[int, list[Fault]]:
    """How many vectors there are; what the indexes hold that their rows do not say, or lack."""
    inspection = runtime.store.inspection
    orphans, damaged = inspection.orphan_passages(), inspection.damaged_text_index()
    dropping = partial(inspection.drop_orphan_passages, orphans)
    found = [fault("orphan_index_row", one, "its owner is gone", dropping) for one in orphans]
    if damaged is None:
        detail = "the full-text index does not hold what its rows say; rebuild_index() makes it anew"
        found.append(fault("damaged_text_index", "text index", detail, inspection.rebuild_text_index))
    for one in damaged or ():
        detail = "the full-text index and its row differ"
        found.append(fault("damaged_text_index", one, detail, inspection.rebuild_text_index))
    try:
        index = usable_index(runtime)
        if index is None:
            return 0, found
        there = index.ids()
        wanted = set(runtime.store.vector_queue.settled(fingerprint=index.fingerprint))
        waiting = set(runtime.store.vector_queue.forgotten(limit=_PAGE))
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        return 0, [*found, fault("vectors_unavailable", "Chroma", str(error))]
    missing, extra = sorted(wanted - there), sorted(there - wanted - waiting)
    queueing = partial(runtime.store.vector_queue.unsettle, missing)
    removing = partial(index.remove, extra)
    found += [fault("missing_vector", one, "SQL says it is in Chroma", queueing) for one in missing]
    found += [fault("extra_vector", one, "no passage in SQL has it", removing) for one in extra]
    return len(there), found


def rebuild_index(runtime: Runtime, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
    """Derive counts, index rows, the text index and every vector anew, and look again.

    A message that cannot be read is left as it is, and named in the report.
    """
    _mend_faults(runtime)
    _mend_rows(runtime, recount=True, seen=counted(progress, "rows", runtime.store.inspection.entry_count()))
    runtime.store.inspection.rebuild_text_index()
    runtime.store.items.unsettle()
    embed_items(runtime)
    index = runtime.open_index()
    if index is not None:
        _clear(runtime, index)
        runtime.store.vector_queue.set_embedder(index.fingerprint)
        vectors = counted(progress, "vectors", runtime.store.inspection.passage_count())
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
        EventName.INDEX_DISCARDED, f"the vector index is made anew, for it could not be used ({why}): {became}"
    )
    return True


def doctor(runtime: Runtime) -> DoctorReport:
    """Find what is wrong between transcript, summaries, text index and Chroma, mend that alone, say what was done."""
    before = verify(runtime)
    if before.problems:
        _mend_faults(runtime)
        resume_removals(runtime)
        _mend_rows(runtime)
        _mend_faults(runtime)  # a message that was read again may answer a call that seemed to wait
        with suppress(IndexUnavailableError):  # told of by whoever asks it next
            _mend(runtime, _index_faults(runtime)[1])
        brought_up(runtime)
    else:
        for ref in runtime.store.transcript.sessions():
            run(read_what_waits(runtime, ref))
        if before.pending_vectors:
            brought_up(runtime)
    after = verify(runtime)
    left = (*after.problems, *_still_missing(runtime, after))
    open_files = (  # they are the user's: only named
        f"{place} is {has}: others may read or write it; `chmod {wanted} {place}` keeps it to those whom "
        "settings.file_mode names"
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
    index = runtime.open_index()
    if index is None:
        return ()
    pending = runtime.store.vector_queue.count(levels_above_0=runtime.settings.tree.embed_summaries)
    if not pending:
        return ()
    detail = f"{pending} of {after.passages} passages have no vector, though an embedder is there"
    return (Problem(kind="vectors_missing", what="Chroma", detail=detail),)


def _mend_faults(runtime: Runtime) -> None:
    """Apply remedies until none is left to apply: one may bring to light what another mends."""
    done: set[Problem] = set()
    for _ in range(_ROUNDS):
        faults: list[Fault] = general_faults(runtime)
        for ref in runtime.store.transcript.sessions():
            faults += faults_of(runtime, ref)
        if all(one.remedy is None for one in faults):
            break
        _mend(runtime, faults)
        done |= {one.problem for one in faults}
    for ref in runtime.store.transcript.sessions():
        runtime.store.relations.seal(ref)
        if any(problem.kind == "wrong_file_access" or problem.what.startswith("ltm_files/") for problem in done):
            _mend_files(runtime, ref)


def _mend(runtime: Runtime, faults: list[Fault]) -> None:
    runtime.store.relations.mend(faults, discard=runtime.store.inspection.discard_summaries)


def _mend_files(runtime: Runtime, ref: SessionRef) -> None:
    """Note anew which files the calls of a session's messages touch."""
    if not runtime.settings.files.enabled:
        return
    pages = runtime.store.inspection.entry_pages(ref)
    while page := next(pages, []):
        for entry in page:
            message, damaged = message_or_stand_in(entry)
            if entry.role in TOUCHING_ROLES and damaged is None:
                touches = touches_of(message, runtime.settings.files)
                runtime.store.inspection.mend_touches(ref, entry, touches)


def _mend_rows(runtime: Runtime, *, recount: bool = False, seen: Callable[[int], None] = lambda _: None) -> None:
    inspection = runtime.store.inspection
    for ref in runtime.store.transcript.sessions():
        tally = agreed(runtime, ref, seen=seen)
        _mend(runtime, tally.faults)
        for count_anew in tally.recounts if recount else ():
            count_anew()
        if recount:
            runtime.store.facts.unsettle(ref, None)
        run(read_what_waits(runtime, ref))
    inspection.drop_orphan_passages(inspection.orphan_passages())
    for ref in runtime.store.transcript.sessions():
        inspection.mend_totals(ref)
