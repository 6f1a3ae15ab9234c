"""How near messages of before are to new ones, by the vectors that are stored of them: nothing is embedded twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from langchain_tiered_memory.errors import IndexUnavailableError
from langchain_tiered_memory.recall.finding import index_to_ask
from langchain_tiered_memory.recall.fusion import best_of_each
from langchain_tiered_memory.recall.indexing import is_left_alone, report_outage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef


def likeness(
    runtime: Runtime, ref: SessionRef, new: Collection[int], before: Sequence[Collection[int]]
) -> dict[int, float]:
    """Places in `before`, each some messages, with how near the nearest of them is to one of the messages `new`.

    What all of them have in common tells nothing, so vectors are taken from their mean: what is near to everything is
    near to nothing. Without an index to ask, and of what has no vector yet, there is nothing.
    """
    index = None if is_left_alone(runtime) else index_to_ask(runtime, ref)
    if index is None:
        return {}
    passages = runtime.store.text_index.of_entries(ref, [*new, *(seq for seqs in before for seq in seqs)])
    runtime.store.database.end_snapshot()  # a server may be asked
    try:
        vectors = index.vectors([one.id for one in passages])
    except IndexUnavailableError as error:
        report_outage(runtime, error, ref.session_id)
        return {}
    of_message: dict[int, list[int]] = {}
    for one in passages:
        if one.id in vectors:
            of_message.setdefault(one.seq, []).append(one.id)
    mine = [one for seq in new for one in of_message.get(seq, ())]
    owned = [(place, one) for place, seqs in enumerate(before) for seq in seqs for one in of_message.get(seq, ())]
    if not mine or not owned:
        return {}
    every = np.array([vectors[one] for one in mine] + [vectors[one] for _, one in owned], dtype=np.float64)
    every /= np.maximum(np.linalg.norm(every, axis=1, keepdims=True), 1e-12)
    every -= every.mean(axis=0)
    nearest = (every[len(mine) :] @ every[: len(mine)].T).max(axis=1)
    best = best_of_each(np.maximum(nearest, 0.0), np.array([place for place, _ in owned]), count=len(before))
    return {place: near for place, near in enumerate(best.tolist()) if near}
