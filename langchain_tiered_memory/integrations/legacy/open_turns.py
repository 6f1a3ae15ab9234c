"""Which of a chain's runs is whose, for a memory that hears only what was said and what was answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.integrations.legacy.turns import with_ids
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

_MOST_OPEN = 100
"""Runs that failed leave their turns behind: so many turns are remembered."""


@dataclass(slots=True, kw_only=True, eq=False)
class Turn:
    """One run of a chain, from the load of its variables to the save of its answer."""

    key: tuple[str, ...]
    """What was said; several runs at once may be told the same."""
    spoken: list[BaseMessage]
    query: str | None
    is_written: bool = False
    """Whether `spoken` is in the session, under the ids that it has here."""
    variables: dict[str, Any] | None = None
    """As they were given; the same again until the turn is saved."""

    def wrote(self, messages: Sequence[BaseMessage]) -> None:
        """What was said is in the session: as these messages."""
        self.spoken, self.is_written = list(messages), True


class OpenTurns:
    """The runs between load and save. Chains run in threads, and say neither which run it is nor that it failed."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._turns: list[Turn] = []
        self._newest: Turn | None = None

    def opened(self, key: tuple[str, ...], spoken: Sequence[BaseMessage], query: str | None) -> Turn:
        """A turn; the one that was opened last where it said the same: the chain asks again, or is tried again."""
        with self._lock:
            if self._newest is None or self._newest.key != key:
                self._newest = Turn(key=key, spoken=with_ids(spoken), query=query)
                self._turns = [*self._turns, self._newest][-_MOST_OPEN:]
            return self._newest

    def closed(self, key: tuple[str, ...]) -> Turn | None:
        """The latest turn that said this, which is over now."""
        with self._lock:
            found = next((one for one in reversed(self._turns) if one.key == key), None)
            if found is not None:
                self._turns.remove(found)
            if found is self._newest:
                self._newest = None
            return found

    def clear(self) -> None:
        """Forget them all."""
        with self._lock:
            self._turns, self._newest = [], None
