"""The memory as a `BaseChatMessageHistory`, and a `RunnableWithMessageHistory` over it that loses nothing.

`RunnableWithMessageHistory` reads `.messages` before and after a run, and takes everything beyond the length of the
second reading for new. It writes only if the run succeeds, and LangChain only logs errors of that write. So a history
whose view changes meanwhile would store old messages twice or lose the user's, and a failing model or an interrupted
stream would lose them too. `TieredChatMessageHistory` is therefore empty when a run ends. The run then passes on all
its messages, and the history stores those that it never showed. This also works for an object that serves many runs at
once. `with_tiered_history` also writes the user's words before the model runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage  # noqa: TC002
from langchain_core.runnables import Runnable  # noqa: TC002
from langchain_core.runnables.config import ensure_config

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import Flow, arun, off_loop_twin, run
from langchain_tiered_memory.errors import SettingsError, TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.checks import Memory, check_known_view
from langchain_tiered_memory.integrations.legacy.turns import identity, their_own, with_ids
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.types.arguments import Count, Name, SessionId, Tool  # noqa: TC001
from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from types import FrameType


HISTORY_VIEWS = ("transcript", "context")
"""Views that a history has in addition to the engine's."""
_OWN_NAMES = {"context": "default"}
"""Names of views here, and their names in the engine."""
_ENDS_OF_RUNS = frozenset({"_exit_history", "_aexit_history"})
"""Functions of `RunnableWithMessageHistory` that read a history to cut it off a run's input."""


class TieredChatMessageHistory(BaseChatMessageHistory):
    """One session as a chat history. Making one needs no I/O, so `RunnableWithMessageHistory` can have one per call.

    Args:
        memory: The memory.
        session_id: The session.
        view: What `.messages` shows. `transcript` is everything. `context` is what fits `max_tokens`, with older parts
            condensed. Other views, such as `recall`, are those of `Session.context`.
        query: The question that a context recalls for. `None` is the last user message. By default there is none,
            because a history does not know the next question.
        max_tokens: The most tokens of a context. By default `settings.context.max_tokens`.
        system: The system prompt of the request, for its size. It is not part of `.messages`.
        tools: The tools of the request, for their size.
        model: The model of the request, or its name. Its window and calibration are used.
        user: The user of the session. Another user's session is refused.
        track: The track of the session.
        title: A title for a new session.

    Raises:
        SettingsError: if an argument cannot be used.
    """

    @checked(SettingsError)
    def __init__(
        self,
        memory: Memory,
        session_id: SessionId,
        *,
        view: str = "transcript",
        query: str | None = "",
        max_tokens: Count | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Tool] = (),
        model: str | Runnable[Any, Any] | None = None,
        user: Name | None = None,
        track: Name = DEFAULT_TRACK,
        title: str | None = None,
    ) -> None:
        super().__init__()
        check_known_view("TieredChatMessageHistory", memory, view, more=HISTORY_VIEWS)
        self.session = memory.session(session_id, user=user, track=track, title=title)
        self._memory = memory
        self._view = view
        self._query = query
        self._asked: dict[str, Any] = {
            "max_tokens": max_tokens,
            "system": system,
            "tools": tools,
            "model": model,
            "view": _OWN_NAMES.get(view, view),
        }
        self._views = Remembered[tuple[str, ...], None]()
        """What runs were shown: ids of messages, and the words of a bridge between them."""

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # every history that reads from a store has it so
        """The messages of the view. Empty for a `RunnableWithMessageHistory` that is about to write.

        Raises:
            BudgetError: if `max_tokens` cannot hold what a context must show.
        """
        if _caller_ends_a_run(inspect.currentframe()):
            return []
        return self._noted(run(self._reading()))

    async def aget_messages(self) -> list[BaseMessage]:
        """See `messages`."""
        if _caller_ends_a_run(inspect.currentframe()):
            return []
        return self._noted(await arun(self._reading()))

    @checked()
    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages. They are on disk when it returns. Texts of this package, and what a run saw, stay out.

        An answer is new, whatever its id, because a cached answer has the id of its first use. Only messages with which
        the history already ends count as a repeated write. Nothing is condensed here.
        In a `RunnableWithMessageHistory`, an error only reaches LangChain's log, so the event `history_not_written`
        reports it too.

        Raises:
            InvalidInputError: if a message cannot be used. None was written.
            StorageError: if the database cannot store them. None was written.
        """
        try:  # a run passes on its turn once, so its write is never a repeated one
            self.session.core.add_turn(with_ids(self._new_among(messages)), may_be_again=not self._in_a_run())
        except TieredMemoryError as error:
            self._report_unwritten(error)
            raise

    aadd_messages = off_loop_twin(add_messages)  # type: ignore[arg-type] # the base class has its own `self`

    def clear(self) -> None:
        """Remove the session for good, with all its tracks and everything derived from them."""
        self.session.forget()

    aclear = off_loop_twin(clear)  # type: ignore[arg-type] # the base class has its own `self`

    def _reading(self, off: Mapping[str, int] = MappingProxyType({})) -> Flow[list[BaseMessage]]:
        """The view without the messages in `off`, which are ids and numbers."""
        if self._view == "transcript":
            return [one for one in self.session.messages() if one.id not in off]
        context = yield from self.session.core.context(self._query, **self._asked, off=frozenset(off.values()) or None)
        return context.messages[1 if self._asked["system"] else 0 :]

    def _noted(self, found: list[BaseMessage]) -> list[BaseMessage]:
        if self._in_a_run():
            view = tuple(_name_of(one) for one in their_own(found))
            self._views.put(view, None)
        return list(found)

    def _new_among(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Leave out what a run was shown. A message that a view shortens is not an edit."""
        found = their_own(messages)
        if not self._in_a_run():
            return found
        names, views = [_name_of(one) for one in found], [view for view, _ in self._views.items()]
        shown = max((len(view) for view in views if tuple(names[: len(view)]) == view), default=0)
        found, names = found[shown:], names[shown:]
        seen = {name for view in views for name in view}
        old = _given_back(identity(found), [name in seen for name in names])
        return [one for at, one in enumerate(found) if at not in old]

    def _in_a_run(self) -> bool:
        """Whether a `RunnableWithMessageHistory` asks: then this history is in its config."""
        return ensure_config().get("configurable", {}).get("message_history") is self

    def _report_unwritten(self, error: TieredMemoryError) -> None:
        self._memory.core.report(
            EventName.HISTORY_NOT_WRITTEN,
            f"the last messages are not in the session: {error}",
            session_id=self.session.session_id,
        )


def _name_of(message: BaseMessage) -> str:
    return message.id or identity([message])[0]


def _given_back(said: Sequence[str], seen: Sequence[bool]) -> frozenset[int]:
    """Places of what a runnable returned besides its answer: everything that it was shown, and the question.

    Args:
        said: The words of the messages, from the runnable's question on.
        seen: Whether each has the id of a message that the runnable was shown. An answer's id may be a cached one's.
    """
    again = max((at for at, one in enumerate(said) if one == said[0] and any(seen[1:at])), default=0)
    asked = next((at for at in range(again) if said[again + at : again + at + 1] != said[at : at + 1]), again)
    return frozenset({at for at in range(1, again) if seen[at]} | set(range(again, again + asked)))


def _caller_ends_a_run(frame: FrameType | None) -> bool:
    """Whether the code that called `frame` is the end of a run. No argument distinguishes it from the start."""
    caller = frame.f_back if frame is not None else None
    return caller is not None and caller.f_code.co_name in _ENDS_OF_RUNS
