"""What an opened memory and its sessions show of themselves: they are looked up when somebody looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.display import contexts, records
from langchain_tiered_memory.display.sheet import Sheet, table

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.session import Session

_SESSIONS = 20
_FACTS = 5
_OUTCOMES = 5


def session(one: Session) -> Sheet:
    """Its figures, the zones of its last contexts, what was decided last, and what holds."""
    figures = records.metrics(one.metrics())
    stated, decided = one.facts(k=_FACTS), one.outcomes(limit=_OUTCOMES)
    blocks = [*figures.blocks, *contexts.zones(one.window_use())]
    blocks += [*contexts.outcomes(decided).blocks] if decided else []
    blocks += [*records.facts(stated).blocks]
    return Sheet(
        kind="Session",
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
        kind="TieredMemory",
        about=status.about,
        notes=status.notes,
        blocks=(table("newest sessions", columns, rows, of=len(ids)),) if ids else (),
    )
