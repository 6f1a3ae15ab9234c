"""What `verify()` finds wrong is mended: all derived rows anew (`rebuild_index`), or what differs alone (`doctor`).

Neither ever calls a model, and neither changes a message. Summaries that no longer agree with what they cover are
removed; what they covered is summarised again in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.drafting import passage_drafts
from langchain_tiered_memory.decisions.verification import derived_again
from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.indexing import index_pending, usable_index
from langchain_tiered_memory.flows.verify import Tally, agreed, verify
from langchain_tiered_memory.reports import DoctorReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import SessionRef
    from langchain_tiered_memory.reports import Problem, VerifyReport

_MENDED_BY_DISCARDING = frozenset(
    {"wrong_coverage", "summary_changed", "sources_changed", "missing_parent", "wrong_state"}
)


def rebuild_index(house: House) -> Flow[VerifyReport]:
    """Derive counts, index rows, the text index and every vector anew, and look again.

    A message that cannot be read is left as it is, and named in the report.
    """
    yield from _mend_rows(house)
    yield from do(house.store.inspection.rebuild_text_index)
    index = yield from do(house.open_index)
    if index is not None:
        yield from do(index.clear)
        yield from do(house.store.vector_queue.reset)
        yield from do(house.store.vector_queue.set_embedder, index.fingerprint)
        yield from index_pending(house)
    return (yield from verify(house))


def doctor(house: House) -> Flow[DoctorReport]:
    """Find what is wrong between transcript, summaries, text index and Chroma, mend that alone, say what was done."""
    before = yield from verify(house)
    if before.problems:
        yield from _mend_rows(house)
        if any(problem.kind == "damaged_text_index" for problem in before.problems):
            yield from do(house.store.inspection.rebuild_text_index)
        yield from _mend_vectors(house, before.problems)
    after = yield from verify(house)
    return DoctorReport(
        found=before.problems,
        mended=tuple(problem for problem in before.problems if problem not in after.problems),
        left=after.problems,
    )


def _mend_rows(house: House) -> Flow[None]:
    inspection = house.store.inspection
    for ref, _ in (yield from do(inspection.sessions)):
        tally, _ = yield from agreed(house, ref)
        yield from _mend_session(house, ref, tally)
    yield from do(inspection.drop_orphan_passages, (yield from do(inspection.orphan_passages)))
    for ref, _ in (yield from do(inspection.sessions)):
        yield from do(inspection.mend_totals, ref)


def _mend_session(house: House, ref: SessionRef, tally: Tally) -> Flow[None]:
    words = house.settings.recall.passage_words
    for entry in tally.mend_entries:
        again = derived_again(entry, counter=house.counter, passage_words=words)
        if again is None or again.draft.digest != entry.digest:
            continue  # only a message that is what it was can be read anew
        yield from do(
            house.store.inspection.mend_entry, ref, entry.seq, text=again.draft.text, tokens=again.draft.tokens
        )
        yield from do(house.store.inspection.replace_passages, ref, entry, again.passages)
    broken = {problem.what.rsplit("/", 1)[-1] for problem in tally.problems if problem.kind in _MENDED_BY_DISCARDING}
    named = [problem.about for problem in tally.problems if problem.kind == "missing_summary"]
    there = {summary.id for summary in (yield from do(house.store.tree.by_id, ref, named))}
    lost = [one for one in named if one not in there]
    discarded = [summary.id for summary in tally.mend_summaries if summary.id in broken]
    yield from do(house.store.inspection.discard_summaries, discarded + lost)
    for summary in tally.mend_summaries:
        if summary.id not in broken:
            drafts = passage_drafts(summary.text, max_words=words)
            yield from do(house.store.inspection.replace_passages, ref, summary, drafts)


def _mend_vectors(house: House, problems: Sequence[Problem]) -> Flow[None]:
    missing = [int(problem.what) for problem in problems if problem.kind == "missing_vector"]
    extra = [int(problem.what) for problem in problems if problem.kind == "extra_vector"]
    try:
        index = yield from usable_index(house)
        if index is None:
            return
        yield from do(house.store.vector_queue.unsettle, missing)
        if extra:
            yield from do(index.remove, extra)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        house.report("vectors_unavailable", str(error))
        return
    yield from index_pending(house)
