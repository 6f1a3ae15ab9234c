"""The face of one session. A verb is a line per colour that drives a flow, and no more."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from langchain_tiered_memory.decisions.messages import decode
from langchain_tiered_memory.drafts import SearchFilters
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.flows.asking import Flow, arun, do, run
from langchain_tiered_memory.flows.forget import forget_messages, forget_sessions
from langchain_tiered_memory.flows.measure import measure
from langchain_tiered_memory.flows.remember import When, remember
from langchain_tiered_memory.flows.search import expand, search
from langchain_tiered_memory.sessions.input_checks import check_search_input
from langchain_tiered_memory.sessions.run_verbs import RunVerbs
from langchain_tiered_memory.sessions.views import ViewVerbs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.records import Entry, Hit, Summary
    from langchain_tiered_memory.reports import FlushReport, Receipt, SessionMetrics


class Session(ViewVerbs, RunVerbs):
    """One conversation or one agent run, seen from one of its tracks. Made by `TieredMemory.session`; has no state."""

    def add_messages(
        self,
        messages: Iterable[BaseMessage | Any],
        *,
        at: When | Sequence[When] | None = None,
        kind: str | None = None,
        task: str | None = None,
        wait: bool = False,
    ) -> list[str]:
        """Write messages; durable when it returns.

        Args:
            messages: LangChain messages, or what `convert_to_messages` takes. A message whose id is known is the same
                message again (nothing happens) or its edit (a new revision).
            at: When they were said: one moment for all, or one for each; now, if not given. Naive times are UTC.
            kind: What they are, such as `acceptance_criteria`.
            task: The task that they belong to.
            wait: Finish summaries and vectors that fall due before returning.

        Returns:
            The messages' ids, in order; those without one got one.

        Raises:
            InvalidInputError: for a message, a time or an id that cannot be taken; nothing was written.
            StorageError: when the database cannot take them; nothing was written.
        """
        return run(self._add(messages, at=at, kind=kind, task=task, wait=wait))

    async def aadd_messages(
        self,
        messages: Iterable[BaseMessage | Any],
        *,
        at: When | Sequence[When] | None = None,
        kind: str | None = None,
        task: str | None = None,
        wait: bool = False,
    ) -> list[str]:
        """See `add_messages`."""
        return await arun(self._add(messages, at=at, kind=kind, task=task, wait=wait))

    def messages(self) -> list[BaseMessage]:
        """The whole transcript of this track, as it was."""
        return run(self._own(self._messages()))

    async def amessages(self) -> list[BaseMessage]:
        """See `messages`."""
        return await arun(self._own(self._messages()))

    def revisions(self, message_id: str) -> list[BaseMessage]:
        """Earlier revisions of an edited message, oldest first."""
        return run(self._own(self._revisions(message_id)))

    async def arevisions(self, message_id: str) -> list[BaseMessage]:
        """See `revisions`."""
        return await arun(self._own(self._revisions(message_id)))

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        tracks: Sequence[str] | None = None,
        levels: Sequence[int] | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
    ) -> list[Hit]:
        """The best hits over messages (level 0) and summaries (level 1 and up), within each level's quota."""
        return run(self._own(self._search(query, k=k, tracks=tracks, levels=levels, since=since, until=until)))

    async def asearch(
        self,
        query: str,
        *,
        k: int = 10,
        tracks: Sequence[str] | None = None,
        levels: Sequence[int] | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
    ) -> list[Hit]:
        """See `search`."""
        return await arun(self._own(self._search(query, k=k, tracks=tracks, levels=levels, since=since, until=until)))

    def expand(self, summary_id: str, *, depth: int | None = 1) -> list[Summary | Entry]:
        """What a summary stands for: the level below, `depth` levels down, or (`None`) the messages.

        Contexts name summaries, and messages that they show in part, by the beginning of their ids: both are
        understood, and a message gives itself.

        Raises:
            NotFoundError: when the session has no such summary or message.
            InvalidInputError: when several ids begin so, or `depth` is below 1.
        """
        return run(self._own(expand(self._house, self.session_id, summary_id, depth=depth)))

    async def aexpand(self, summary_id: str, *, depth: int | None = 1) -> list[Summary | Entry]:
        """See `expand`."""
        return await arun(self._own(expand(self._house, self.session_id, summary_id, depth=depth)))

    def pin(self, message_id: str) -> None:
        """Show a message in every context from now on.

        Raises:
            NotFoundError: when the session has no such message.
        """
        run(self._own(self._pin(message_id, pinned=True)))

    async def apin(self, message_id: str) -> None:
        """See `pin`."""
        await arun(self._own(self._pin(message_id, pinned=True)))

    def unpin(self, message_id: str) -> None:
        """Let a pinned message go."""
        run(self._own(self._pin(message_id, pinned=False)))

    async def aunpin(self, message_id: str) -> None:
        """See `unpin`."""
        await arun(self._own(self._pin(message_id, pinned=False)))

    def forget(self, *, message_ids: Sequence[str] | None = None) -> Receipt:
        """Remove messages, or the whole session, with everything derived from them.

        Raises:
            NotFoundError: when one of the messages is not in the session; nothing was removed then.
        """
        return run(self._own(self._forget(message_ids)))

    async def aforget(self, *, message_ids: Sequence[str] | None = None) -> Receipt:
        """See `forget`."""
        return await arun(self._own(self._forget(message_ids)))

    def metrics(self) -> SessionMetrics:
        """The session in figures."""
        return run(self._own(measure(self._house, self.session_id)))

    async def ametrics(self) -> SessionMetrics:
        """See `metrics`."""
        return await arun(self._own(measure(self._house, self.session_id)))

    def flush(self, timeout: float | None = None) -> FlushReport:
        """Finish this session's summaries and vectors that are due, within `timeout` seconds."""
        return run(self._memory._flush(self.session_id, timeout))  # noqa: SLF001 - one face in two classes

    async def aflush(self, timeout: float | None = None) -> FlushReport:  # noqa: ASYNC109 - the flow keeps it
        """See `flush`."""
        return await arun(self._memory._flush(self.session_id, timeout))  # noqa: SLF001

    def end(self) -> None:
        """Close the session: its highest summaries are archived. A further message opens it again."""
        run(self._own(self._end()))

    async def aend(self) -> None:
        """See `end`."""
        await arun(self._own(self._end()))

    def _add(
        self,
        messages: Iterable[Any],
        *,
        at: When | Sequence[When] | None,
        kind: str | None,
        task: str | None,
        wait: bool,
    ) -> Flow[list[str]]:
        if isinstance(messages, str | bytes | Mapping | BaseMessage) or not isinstance(messages, Iterable):
            msg = f"add_messages takes a list of messages, not one {type(messages).__name__}: put it in a list"
            raise InvalidInputError(msg)
        batch = list(messages)
        ids, appended = yield from remember(
            self._house,
            self.session_id,
            batch,
            user=self._user,
            title=self._title,
            track=self.track,
            at=at,
            kind=kind,
            task=task,
            sent_tokens=self._memory._take_sent((self.session_id, self.track), batch),  # noqa: SLF001
        )
        if appended is not None and (appended.new or appended.revised):
            self._memory._wake(self.session_id)  # noqa: SLF001
        if wait:
            yield from self._memory._flush(self.session_id, None)  # noqa: SLF001
        return ids

    def _messages(self) -> Flow[list[BaseMessage]]:
        store = self._house.store
        ref = yield from do(store.transcript.find, self.session_id)
        if ref is None:
            return []
        return [decode(entry.payload) for entry in (yield from do(store.transcript.entries, ref, track=self.track))]

    def _revisions(self, message_id: str) -> Flow[list[BaseMessage]]:
        store = self._house.store
        ref = yield from do(store.transcript.find, self.session_id)
        return [decode(one) for one in (yield from do(store.transcript.revisions, ref, message_id))] if ref else []

    def _search(
        self,
        query: str,
        *,
        k: int,
        tracks: Sequence[str] | None,
        levels: Sequence[int] | None,
        since: dt.datetime | None,
        until: dt.datetime | None,
    ) -> Flow[list[Hit]]:
        check_search_input(query=query, k=k, tracks=tracks, levels=levels, since=since, until=until)
        filters = SearchFilters(
            tracks=tuple(tracks) if tracks is not None else None,
            since=_seconds(since),
            until=_seconds(until),
        )
        return (yield from search(self._house, self.session_id, query, k=k, levels=levels, filters=filters))

    def _pin(self, message_id: str, *, pinned: bool) -> Flow[None]:
        store = self._house.store
        ref = yield from do(store.transcript.find, self.session_id)
        if ref is None:
            msg = f"the session {self.session_id!r} has no message yet: {message_id!r} cannot be pinned"
            raise NotFoundError(msg)
        yield from do(store.transcript.set_pin, ref, message_id, pinned=pinned)

    def _forget(self, message_ids: Sequence[str] | None) -> Flow[Receipt]:
        if isinstance(message_ids, str):
            msg = f"message_ids is one string: give a list, such as [{message_ids!r}]"
            raise InvalidInputError(msg)
        if message_ids is None:
            return (yield from forget_sessions(self._house, session_id=self.session_id, user=None))
        receipt = yield from forget_messages(self._house, self.session_id, list(message_ids))
        self._memory._wake(self.session_id)  # noqa: SLF001
        return receipt

    def _end(self) -> Flow[None]:
        store = self._house.store
        ref = yield from do(store.transcript.find, self.session_id)
        if ref is not None:
            yield from do(store.transcript.end, ref, now=self._house.now())
            yield from do(store.tree.archive, ref)


def _seconds(moment: dt.datetime | None) -> float | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()
