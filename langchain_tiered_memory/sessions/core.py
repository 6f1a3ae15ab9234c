"""One session as its verbs see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from langchain_tiered_memory.errors import MixedOwnersError
from langchain_tiered_memory.flows.asking import Flow, do

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.memory import TieredMemory

T = TypeVar("T")


class SessionCore:
    """What every group of verbs needs: the memory, the session's name, and the check of its owner."""

    def __init__(
        self, memory: TieredMemory, session_id: str, *, user: str | None, track: str, title: str | None
    ) -> None:
        self._memory = memory
        self._user = user
        self._title = title
        self.session_id = session_id
        self.track = track

    @property
    def _house(self) -> House:
        return self._memory._open_house()  # noqa: SLF001 - one face in several classes

    def _own(self, flow: Flow[T]) -> Flow[T]:
        """`flow`, unless this handle was made for another user than the session's own: then nothing is read either."""
        if self._user is not None:
            ref = yield from do(self._house.store.transcript.find, self.session_id)
            if ref is not None and ref.user is not None and ref.user != self._user:
                msg = f"the session {self.session_id!r} is not one of user {self._user!r}: open it for its owner"
                raise MixedOwnersError(msg)
        return (yield from flow)
