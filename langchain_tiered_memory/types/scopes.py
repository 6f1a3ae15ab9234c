"""What a handle on one track may see of its session."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_tiered_memory.types.arguments import Amount, Name  # noqa: TC001 - read at the border
from langchain_tiered_memory.types.records import DEFAULT_TRACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A track that keeps to itself, with or without a sight of its parent's.

    A handle with a scope sees and changes its own track alone: contexts, `search`, `facts` and `expand` say nothing of
    another one, and what is the whole session's (`end`, `restore`, forgetting it) is refused.

        memory.session("run", track="researcher", scope=Scope(sight_tokens=800))
    """

    sight_tokens: Amount = 0
    """What each context and each search may tell of the parent's track, in tokens; 0 for nothing. Read-only."""
    parent: Name = DEFAULT_TRACK
    """The track that is seen so: of the agent that calls this one."""

    def sight_from(self, track: str) -> str | None:
        """The track that a handle on `track` has a sight of; `None` where it has none, as of itself."""
        return self.parent if self.sight_tokens and self.parent != track else None
