"""The chat history of one turn: what the user says is written before the model runs, and a broken answer is marked."""

from __future__ import annotations

import asyncio
import functools
from contextvars import copy_context
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage

from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.legacy.chat_history import TieredChatMessageHistory
from langchain_tiered_memory.integrations.legacy.turns import identity, said, text_so_far, their_own, with_ids

if TYPE_CHECKING:
    from collections.abc import Sequence


class TurnHistory(TieredChatMessageHistory):
    """The history of one turn, as `with_tiered_history` uses it: what is said is written first, and stays written.

    `RunnableWithMessageHistory` is shown an empty history, before the run and after it, so that nothing in it depends
    on how long a view is; the view itself is put in by `begin`.
    """

    _spoken: tuple[str, ...] = ()
    """Digests of what the user said, once it is written."""
    _said: frozenset[str | None] = frozenset()
    """Ids of what the user said."""
    _shown: frozenset[str] = frozenset()
    """Ids of the messages in the view."""
    _over = False

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # as above
        """Empty: `begin` gives the view."""
        return []

    async def aget_messages(self) -> list[BaseMessage]:
        """See `messages`."""
        return []

    def begin(self, spoken: object) -> tuple[list[BaseMessage], list[BaseMessage]]:
        """Write what the user said; gives the view before it, and then the view with it."""
        ours = with_ids(their_own(said(spoken)))
        try:
            ours = self.session.core.add_turn(ours)
        except TieredMemoryError as error:
            self._report_unwritten(error)
            raise
        self._spoken = identity(ours)
        return self._sorted(self._read(), ours)

    async def abegin(self, spoken: object) -> tuple[list[BaseMessage], list[BaseMessage]]:
        """See `begin`."""
        ours = with_ids(their_own(said(spoken)))
        try:
            ours = await off_loop(self.session.core.add_turn, ours)
        except TieredMemoryError as error:
            self._report_unwritten(error)
            raise
        self._spoken = identity(ours)
        return self._sorted(await self._aread(), ours)

    def break_off(self, error: BaseException, partial: object) -> None:
        """Write what had come of the answer, marked as broken off."""
        self._over = True
        try:
            self.session.add_messages(_stump(partial, error), kind="interrupted")
        except TieredMemoryError as unwritten:
            self._report_unwritten(unwritten)
        self._report_broken_off(error)

    async def abreak_off(self, error: BaseException, partial: object) -> None:
        """See `break_off`. Once begun it is finished, in a thread: who was cancelled may be cancelled again meanwhile.

        The end of an `asyncio.run` cancels even those tasks that close the generators which nobody has closed.
        """
        write = functools.partial(copy_context().run, self.break_off, error, partial)
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, write))

    def _new_among(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """What the run added to the words that it began with; nothing, where it was broken off before it told us.

        A runnable may give back all that it was shown, with its answer behind. What stands behind the words that the
        run began with is new, also under an id that was shown: a cached answer carries that of its first time.
        """
        if self._over:
            return []
        found = their_own(messages)
        began = len(self._spoken)
        if identity(found[:began]) == self._spoken:
            found = found[began:]
        behind = max((at for at, one in enumerate(found, start=1) if one.id in self._said), default=0)
        return [one for at, one in enumerate(found) if at >= behind or one.id not in self._shown]

    def _sorted(self, view: list[BaseMessage], ours: list[BaseMessage]) -> tuple[list[BaseMessage], list[BaseMessage]]:
        ids = self._said = frozenset(one.id for one in ours)
        before = [one for one in view if one.id is None or one.id not in ids]
        shown = {one.id for one in view}
        whole = [*view, *(one for one in ours if one.id not in shown)]
        self._shown = frozenset(one.id for one in whole if one.id)
        return before, whole

    def _report_broken_off(self, error: BaseException) -> None:
        if not self._spoken:
            return
        self._memory.core.report(
            EventName.TURN_INTERRUPTED,
            f"an answer was broken off by {type(error).__name__}; what the user said is kept",
            session_id=self.session.session_id,
            error=type(error).__name__,
        )


def _stump(partial: object, error: BaseException) -> list[BaseMessage]:
    text = text_so_far(partial)
    if not text.strip():
        return []
    return [AIMessage(text, response_metadata={"interrupted": type(error).__name__})]
