"""A session in figures: counts and ratios per level, what condensing spent, what it saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.history.cost_ledger import cost_of
from langchain_tiered_memory.reports import LevelMetrics, SessionMetrics
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_MILLION = 1_000_000


def measure(runtime: Runtime, session_id: str, *, track: str | None = None) -> SessionMetrics:
    """Read a session's figures, or those of one track alone; all 0 where there is no message yet."""
    ref = runtime.store.transcript.find(session_id)
    tree = runtime.store.tree
    totals = runtime.store.transcript.totals(ref, track=track) if ref is not None else {}
    figures = tree.level_figures(ref, track=track) if ref is not None else []
    covered, standing = tree.root_figures(ref, track=track) if ref is not None else (0, 0)
    failed = tree.unfinished(ref, track=track) if ref is not None else 0
    spent = _spent(figures)
    tokens = int(totals.get("tokens", 0))
    saved = max(covered - standing, 0)
    level_1 = next((row for row in figures if row["level"] == 1), None)
    price = runtime.settings.prices.get(runtime.condenser.name)
    return SessionMetrics(
        session_id=session_id,
        messages=int(totals.get("entries", 0)),
        tokens=tokens,
        levels=tuple(
            LevelMetrics(
                level=row["level"],
                summaries=row["summaries"],
                tokens=row["tokens"],
                source_tokens=row["source_tokens"],
                seconds=row["seconds"],
            )
            for row in figures
        ),
        overall_ratio=saved / tokens if tokens else 0.0,
        tokens_saved=saved,
        spent=spent,
        cost=cost_of(spent, price=price),
        saved_cost_per_call=saved * price.input_per_million / _MILLION if price is not None else None,
        failed=failed,
        degraded=sum(row["degraded"] for row in figures),
        stale=sum(row["stale"] for row in figures),
        kept_identifiers=level_1["kept_identifiers"] if level_1 is not None else None,
        information_loss=level_1["information_loss"] if level_1 is not None else None,
    )


def spent_on(runtime: Runtime, ref: SessionRef, *, track: str | None = None) -> Spent:
    """What the model calls for a session's summaries took, or for those of one track alone."""
    return _spent(runtime.store.tree.level_figures(ref, track=track))


def _spent(figures: Sequence[Mapping[str, Any]]) -> Spent:
    return Spent(
        calls=sum(row["calls"] for row in figures),
        input_tokens=sum(row["input_tokens"] for row in figures),
        output_tokens=sum(row["output_tokens"] for row in figures),
        seconds=sum(row["seconds"] for row in figures),
    )
