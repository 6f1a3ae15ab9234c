"""Sheets of runs with their files, sessions and memories. Sessions and memories are read when shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.display import contexts, records
from langchain_tiered_memory.display.sheet import Bar, Part, Sheet, brief, moment, percent, plural, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.types.files import KeptFile, RunReport, TierSizes

_KB = 1000
_SESSIONS = 20
_NEWEST = 5


def tiers(one: TierSizes) -> Sheet:
    """How many files each tier holds, and how well they are compressed."""
    rows = [
        (tier, count, one.bytes.get(tier, 0) / _KB, percent(one.shares[tier]) if tier in one.shares else None)
        for tier, count in one.files.items()
    ]
    packed = f", compressed {one.compression:.1f} to 1" if one.compression else ""
    about = f"{plural(sum(one.files.values()), 'file')}, hot and warm {percent(one.utilisation)} full{packed}"
    bar = Bar(
        caption="files by tier",
        parts=tuple(Part(name=tier, amount=n) for tier, n in one.files.items()),
        unit="files",
        is_named_below=True,
    )
    return Sheet(
        about=about,
        blocks=(bar, table("tiers", ("tier", "files", "kB", "full"), rows, colours=list(one.files))),
    )


def report(one: RunReport) -> Sheet:
    """Tiers, moves, times, zones, alerts."""
    sizes = tiers(one.sizes)
    times = [
        (name, timing.count, timing.p50 * _KB, timing.p99 * _KB, timing.largest * _KB)
        for name, timing in one.timings.items()
    ]
    moved = f"{one.counts.get('promotions', 0)} promotions, {one.counts.get('demotions', 0)} demotions"
    alerts = [(moment(alert.at), alert.name, alert.reason) for alert in reversed(one.alerts)]
    return Sheet(
        about=f"{one.session_id!r}: {sizes.about}, {moved}",
        notes=tuple(f"could not be loaded: {path}" for path in one.not_loaded),
        blocks=(
            *sizes.blocks,
            *contexts.zones(one.contexts),
            *((table("times in ms", ("", "times", "median", "99 %", "largest"), times),) if times else ()),
            *((table("alerts, newest first", ("when (UTC)", "alert", "why"), alerts, most=10),) if alerts else ()),
        ),
    )


def file(one: KeptFile) -> Sheet:
    """A file and its tier."""
    marks = "".join(f", {name}" for name, is_so in (("pinned", one.pinned), ("deleted", one.deleted)) if is_so)
    return Sheet(about=f"{one.tier}, {one.size:,} bytes{marks}: {brief(one.path, 60)}")


def files(found: Sequence[KeptFile]) -> Sheet:
    """Files with their tiers, the last opened first."""
    rows = [
        (
            brief(one.path, 200),
            one.tier + (", pinned" if one.pinned else "") + (", deleted" if one.deleted else ""),
            one.kind,
            one.size,
            one.accesses,
        )
        for one in found
    ]
    return Sheet(
        about=plural(len(found), "file"),
        blocks=(table("last opened first", ("file", "tier", "kind", "bytes", "opened"), rows),) if found else (),
    )


def session(one: Session) -> Sheet:
    """Its figures, the zones of its last contexts, the last decisions, and its facts."""
    figures = records.metrics(one.metrics())
    stated, decided = one.facts(k=_NEWEST), one.outcomes(limit=_NEWEST)
    blocks = [*figures.blocks, *contexts.zones(one.window_use())]
    blocks += [*contexts.outcomes(decided).blocks] if decided else []
    blocks += [*records.facts(stated).blocks]
    return Sheet(
        about=f"{figures.about} (track {one.track})",
        notes=(
            *figures.notes,
            "look further with .tree(), .facts(), .search(...), .context(...), .outcomes(), .costs()",
        ),
        blocks=tuple(blocks),
    )


def memory(one: TieredMemory) -> Sheet:
    """Where it is, what searches and counts, and its newest sessions."""
    status, ids = records.status(one.status()), one.sessions()
    newest = [one.session(session_id).metrics() for session_id in ids[::-1][:_SESSIONS]]
    rows = [
        (found.session_id, found.messages, found.tokens, sum(level.summaries for level in found.levels))
        for found in newest
    ]
    columns = ("session", "messages", "tokens", "summaries")
    return Sheet(
        about=status.about,
        notes=status.notes,
        blocks=(table("newest sessions", columns, rows, of=len(ids)),) if ids else (),
    )
