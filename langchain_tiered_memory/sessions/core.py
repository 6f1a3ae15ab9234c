"""One session as its public verbs see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_tiered_memory.session_engine import SessionEngine


class SessionCore:
    """Base of the public method sets.

    Args:
        core: The session behind them.
    """

    def __init__(self, core: SessionEngine) -> None:
        self.core = core
        """The session behind the verbs, for integrations: its names may change with any version."""
        self.session_id = core.session_id
        self.track = core.track
