"""Repairs what `verify()` finds wrong: all derived rows anew (`rebuild_index`), or what differs alone (`doctor`).

Neither ever calls a model, and neither changes a message. Summaries that no longer agree with what they cover are
removed; what they covered is summarised again in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import run
from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.forgetting.forget import resume_removals
from langchain_tiered_memory.items.searching import embed_items
from langchain_tiered_memory.maintenance.examine import agreed
from langchain_tiered_memory.maintenance.verify import counted, faults_of, general_faults, verify
from langchain_tiered_memory.messages.file_accesses import touches_of
from langchain_tiered_memory.messages.quoting import message_or_stand_in
from langchain_tiered_memory.recall.indexing import brought_up, report_outage, usable_index
from langchain_tiered_memory.reports import DoctorReport, Problem, Progress, VerifyReport
from langchain_tiered_memory.summaries.tree.fact_reading import read_what_waits
from langchain_tiered_memory.types.drafts import TOUCHING_ROLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.maintenance.remedies import Fault
    from langchain_tiered_memory.recall.chroma.index import ChromaIndex
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_ROUNDS = 4
"""Of remedies: a key, then what hangs on it, then what is copied from that, and one to see that nothing is left."""


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
        if any(problem.kind == "damaged_text_index" for problem in before.problems):
            runtime.store.inspection.rebuild_text_index()
        _mend_vectors(runtime, before.problems)
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
    relations, inspection = runtime.store.relations, runtime.store.inspection
    done: set[Problem] = set()
    for _ in range(_ROUNDS):
        faults: list[Fault] = general_faults(runtime)
        for ref in runtime.store.transcript.sessions():
            faults += faults_of(runtime, ref)
        if all(fault.remedy is None for fault in faults):
            break
        relations.mend(faults, discard=inspection.discard_summaries)
        done |= {fault.problem for fault in faults}
    for ref in runtime.store.transcript.sessions():
        relations.seal(ref)
        if any(problem.kind == "wrong_file_access" or problem.what.startswith("ltm_files/") for problem in done):
            _mend_files(runtime, ref)


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
        runtime.store.relations.mend(tally.faults, discard=inspection.discard_summaries)
        for count_anew in tally.recounts if recount else ():
            count_anew()
        if recount:
            runtime.store.facts.unsettle(ref, None)
        run(read_what_waits(runtime, ref))
    for ref in runtime.store.transcript.sessions():
        inspection.drop_orphan_touches(ref)
    inspection.drop_orphan_passages(inspection.orphan_passages())
    for ref in runtime.store.transcript.sessions():
        inspection.mend_totals(ref)


def _mend_vectors(runtime: Runtime, problems: Sequence[Problem]) -> None:
    missing = [int(problem.what) for problem in problems if problem.kind == "missing_vector"]
    extra = [int(problem.what) for problem in problems if problem.kind == "extra_vector"]
    try:
        index = usable_index(runtime)
        if index is None:
            return
        runtime.store.vector_queue.unsettle(missing)
        if extra:
            index.remove(extra)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        report_outage(runtime, error)
        return
    brought_up(runtime)
