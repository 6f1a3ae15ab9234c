"""A session in figures: counts and ratios per level, what condensing spent, what it saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.records import LevelMetrics, SessionMetrics, Spent

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.settings import PriceSettings

_MILLION = 1_000_000


def measure(house: House, session_id: str) -> Flow[SessionMetrics]:
    """Read a session's figures; all 0 for one that has no message yet."""
    ref = yield from do(house.store.transcript.find, session_id)
    totals = (yield from do(house.store.transcript.totals, ref)) if ref is not None else {}
    figures = (yield from do(house.store.tree.level_figures, ref)) if ref is not None else []
    covered, standing = (yield from do(house.store.tree.root_figures, ref)) if ref is not None else (0, 0)
    failed = (yield from do(house.store.tree.unfinished, ref)) if ref is not None else 0
    spent = Spent(
        calls=sum(row["calls"] for row in figures),
        input_tokens=sum(row["input_tokens"] for row in figures),
        output_tokens=sum(row["output_tokens"] for row in figures),
        seconds=sum(row["seconds"] for row in figures),
    )
    tokens = int(totals.get("tokens", 0))
    saved = max(covered - standing, 0)
    kept = next((row["kept_identifiers"] for row in figures if row["level"] == 1), None)
    price = house.settings.prices.get(house.condenser.name)
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
        cost=_cost(spent, price),
        saved_cost_per_call=saved * price.input_per_million / _MILLION if price is not None else None,
        failed=failed,
        degraded=sum(row["degraded"] for row in figures),
        stale=sum(row["stale"] for row in figures),
        kept_identifiers=kept,
        information_loss=1 - kept if kept is not None else None,
    )


def _cost(spent: Spent, price: PriceSettings | None) -> float | None:
    if price is None:
        return None
    paid = spent.input_tokens * price.input_per_million + spent.output_tokens * price.output_per_million
    return paid / _MILLION
