"""`verify()`: everything that is derived is derived again and compared. Changes nothing, and never calls a model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError
from langchain_tiered_memory.forgetting.forget import removal_problems
from langchain_tiered_memory.maintenance import relations
from langchain_tiered_memory.maintenance.examine import agreed, note_of_unread
from langchain_tiered_memory.maintenance.message_relations import of_items
from langchain_tiered_memory.recall.indexing import usable_index
from langchain_tiered_memory.reports import Problem, Progress, VerifyReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.maintenance.remedies import Fault
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_PAGE = 2000


def verify(runtime: Runtime, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
    """Look at everything, change nothing; `progress` is called after each page of messages."""
    problems: list[Problem] = []
    damaged = runtime.store.inspection.damaged_database()
    if damaged is not None:
        problems.append(Problem(kind="damaged_database", what=runtime.store.database.label, detail=damaged))
    problems += [fault.problem for fault in general_faults(runtime)]
    sessions = runtime.store.transcript.sessions()
    entries = summaries = other_counts = 0
    seen = counted(progress, "check", runtime.store.inspection.entry_count())
    for ref in sessions:
        tally = agreed(runtime, ref, seen=seen)
        problems += [fault.problem for fault in (*tally.faults, *faults_of(runtime, ref))]
        entries, summaries = entries + tally.entries, summaries + tally.summaries
        other_counts += len(tally.recounts)
    problems += removal_problems(runtime)
    problems += _index_problems(runtime)
    vectors, vector_problems = _vector_problems(runtime)
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
        problems=tuple(dict.fromkeys(problems + vector_problems)),
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
    return _seen_twice(
        lambda: store.relations.look(
            relations.misshapen,
            relations.of_no_session,
            relations.of_removals,
            partial(relations.of_tombstones, secret=store.database.forgetting_key),
            partial(relations.of_vectors, fingerprint=store.vector_queue.embedder()),
            of_items,
        )
    )


def faults_of(runtime: Runtime, ref: SessionRef) -> list[Fault]:
    """What a session's rows say of each other; looked at twice, as in `agreed`."""
    return _seen_twice(partial(runtime.store.relations.look, partial(relations.of_session, ref=ref)))


def _seen_twice(look: Callable[[], list[Fault]]) -> list[Fault]:
    found = look()
    again = {fault.problem for fault in look()} if found else set()
    return [fault for fault in found if fault.problem in again]


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


def _index_problems(runtime: Runtime) -> list[Problem]:
    orphans = runtime.store.inspection.orphan_passages()
    found = [Problem(kind="orphan_index_row", what=str(one), detail="its owner is gone") for one in orphans]
    damaged, detail = runtime.store.inspection.damaged_text_index(), "the full-text index and its row differ"
    if damaged is None:
        detail = "the full-text index does not hold what its rows say; rebuild_index() makes it anew"
    where: Sequence[object] = ["text index"] if damaged is None else damaged
    return found + [Problem(kind="damaged_text_index", what=str(one), detail=detail) for one in where]


def _vector_problems(runtime: Runtime) -> tuple[int, list[Problem]]:
    try:
        index = usable_index(runtime)
        if index is None:
            return 0, []
        there = index.ids()
        wanted = set(runtime.store.vector_queue.settled(fingerprint=index.fingerprint))
        waiting = set(runtime.store.vector_queue.forgotten(limit=_PAGE))
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        return 0, [Problem(kind="vectors_unavailable", what="Chroma", detail=str(error))]
    missing = [
        Problem(kind="missing_vector", what=str(one), detail="SQL says it is in Chroma")
        for one in sorted(wanted - there)
    ]
    extra = [
        Problem(kind="extra_vector", what=str(one), detail="no passage in SQL has it")
        for one in sorted(there - wanted - waiting)
    ]
    return len(there), missing + extra
