"""The engine's face: `TieredMemory` and `Session`. A verb is a line per colour that drives a flow, and no more."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import run_in_executor

from langchain_tiered_memory.decisions.messages import decode
from langchain_tiered_memory.drafts import SearchFilters
from langchain_tiered_memory.errors import ClosedError, InvalidInputError, MixedOwnersError, NotFoundError
from langchain_tiered_memory.flows.asking import Flow, arun, do, pause, run
from langchain_tiered_memory.flows.assemble import Request, assemble
from langchain_tiered_memory.flows.forget import forget_messages, forget_sessions
from langchain_tiered_memory.flows.measure import measure
from langchain_tiered_memory.flows.mend import doctor, rebuild_index
from langchain_tiered_memory.flows.remember import When, remember
from langchain_tiered_memory.flows.search import expand, search
from langchain_tiered_memory.flows.tending import flush
from langchain_tiered_memory.flows.verify import verify
from langchain_tiered_memory.input_checks import check_context_input, check_names, check_search_input
from langchain_tiered_memory.opening import close_house, name_of, open_house
from langchain_tiered_memory.records import DEFAULT_TRACK
from langchain_tiered_memory.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from langchain_tiered_memory.decisions.rooms import View
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import (
        Context,
        DoctorReport,
        Entry,
        FlushReport,
        Hit,
        Receipt,
        SessionMetrics,
        Summary,
        VerifyReport,
    )
    from langchain_tiered_memory.settings import Settings

T = TypeVar("T")

_POLL_SECONDS = 0.01
_LINES_REMEMBERED = 1000


class TieredMemory:
    """A memory: one database, its index, and the judges that were chosen when it was opened.

    Open one with `TieredMemory.open`; it may serve any number of sessions, threads and tasks. Several processes may
    open the same database.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self._worker = Worker(house) if house.settings.tree.background else None
        self._closed = False
        self._sent: dict[tuple[str, str], int] = {}
        """Raw tokens of the last context given out for a (session, track): what the next answer's usage calibrates."""
        self._greeted: dict[str, None] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        model: str | BaseChatModel | None = None,
        embeddings: Embeddings | Literal["auto"] | None = "auto",
        chroma: Any = None,  # noqa: ANN401 - a path, a URL or a chromadb client
        settings: Settings | None = None,
        token_counter: object = None,
        clock: Callable[[], float] | None = None,
    ) -> Self:
        """Open a memory.

        Args:
            where: A path (SQLite), an SQLAlchemy URL (`sqlite` or `postgresql`), or `None` for memory that ends with
                the process.
            model: Who condenses: a chat model, or a string for `init_chat_model`. `None`: the extractive condenser,
                which needs neither key nor download.
            embeddings: `"auto"`: MiniLM where its files are at hand (nothing is downloaded unannounced); `None`: search
                by words alone; or any LangChain `Embeddings`.
            chroma: `None`: embedded, beside the database; or a path, a server's URL, or a `chromadb` client.
            settings: Limits, defaults and thresholds.
            token_counter: `None`: the best at hand; a `TokenCounter`, the name of a tiktoken encoding, a callable that
                counts a text, or one that counts a list of messages.
            clock: Seconds since the epoch; `time.time` by default.

        Raises:
            SettingsError: for a choice that cannot be used.
            StorageError: when the database cannot be opened.
        """
        return cls(
            open_house(
                where,
                model=model,
                embeddings=embeddings,
                chroma=chroma,
                settings=settings,
                token_counter=token_counter,
                clock=clock,
            )
        )

    @classmethod
    async def aopen(cls, where: str | Path | None = None, **choices: Any) -> Self:  # noqa: ANN401 - those of `open`
        """`open` without blocking the event loop; takes the same arguments."""
        return await run_in_executor(None, lambda: cls.open(where, **choices))

    def session(
        self, session_id: str, *, user: str | None = None, track: str = DEFAULT_TRACK, title: str | None = None
    ) -> Session:
        """A handle on one session. No I/O: the session comes to be with its first message.

        Raises:
            InvalidInputError: when an id or a name is no string, or the session id is empty.
        """
        check_names(session_id=session_id, user=user, track=track, title=title)
        return Session(self, session_id, user=user, track=track, title=title)

    def sessions(self, *, user: str | None = None) -> list[str]:
        """Ids of all sessions, or of one user's, oldest first."""
        return [ref.session_id for ref in run(do(self._open_house().store.transcript.sessions, user=user))]

    async def asessions(self, *, user: str | None = None) -> list[str]:
        """See `sessions`."""
        return [ref.session_id for ref in await arun(do(self._open_house().store.transcript.sessions, user=user))]

    def verify(self) -> VerifyReport:
        """Derive everything again and compare; never calls a model. `.problems` is empty when all is well."""
        return run(verify(self._open_house()))

    async def averify(self) -> VerifyReport:
        """See `verify`."""
        return await arun(verify(self._open_house()))

    def rebuild_index(self) -> VerifyReport:
        """Make counts, text index and vectors anew from the transcript; gives the report of a `verify` afterwards."""
        return run(rebuild_index(self._open_house()))

    async def arebuild_index(self) -> VerifyReport:
        """See `rebuild_index`."""
        return await arun(rebuild_index(self._open_house()))

    def doctor(self) -> DoctorReport:
        """Find and mend what is wrong between transcript, summaries, text index and Chroma, and say what was done."""
        return run(doctor(self._open_house()))

    async def adoctor(self) -> DoctorReport:
        """See `doctor`."""
        return await arun(doctor(self._open_house()))

    def forget(self, *, session_id: str | None = None, user: str | None = None) -> Receipt:
        """Remove a session, or every session of a user, with everything derived from it.

        Raises:
            InvalidInputError: when neither or both are named.
        """
        return run(forget_sessions(self._open_house(), session_id=session_id, user=user))

    async def aforget(self, *, session_id: str | None = None, user: str | None = None) -> Receipt:
        """See `forget`."""
        return await arun(forget_sessions(self._open_house(), session_id=session_id, user=user))

    def flush(self, timeout: float | None = None) -> FlushReport:
        """Finish every session's summaries and vectors that are due, within `timeout` seconds."""
        return run(self._flush(None, timeout))

    async def aflush(self, timeout: float | None = None) -> FlushReport:  # noqa: ASYNC109 - the flow keeps it
        """See `flush`."""
        return await arun(self._flush(None, timeout))

    def close(self) -> None:
        """Stop the background work after the step in hand, and let go of files and connections."""
        if not self._closed:
            self._closed = True
            try:
                if self._worker is not None:
                    self._worker.stop()
                self._house.store.tree.release(owner=self._house.worker, now=self._house.now())
            finally:
                close_house(self._house)

    async def aclose(self) -> None:
        """See `close`."""
        await run_in_executor(None, self.close)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.aclose()

    def _open_house(self) -> House:
        if self._closed:
            msg = "this memory was closed: open it again"
            raise ClosedError(msg)
        return self._house

    def _note_sent(self, line: tuple[str, str], raw_tokens: int) -> None:
        with self._lock:
            self._sent.pop(line, None)
            self._sent[line] = raw_tokens
            if len(self._sent) > _LINES_REMEMBERED:
                del self._sent[next(iter(self._sent))]

    def _take_sent(self, line: tuple[str, str], batch: Sequence[object]) -> int | None:
        """What was sent for the answer in `batch`, once: a later answer belongs to a request that we did not make."""
        if not batch or not getattr(batch[-1], "usage_metadata", None):
            return None
        with self._lock:
            return self._sent.pop(line, None)

    def _greet(self, session_id: str) -> None:
        """Take up, at the first use of a session here, what another process left undone."""
        with self._lock:
            known = session_id in self._greeted
            self._greeted.pop(session_id, None)
            self._greeted[session_id] = None
            if len(self._greeted) > _LINES_REMEMBERED:
                del self._greeted[next(iter(self._greeted))]
        if not known:
            self._wake(session_id)

    def _wake(self, session_id: str) -> None:
        if self._worker is not None:
            self._worker.wake(session_id)

    def _flush(self, session_id: str | None, timeout: float | None) -> Flow[FlushReport]:
        """Let the background finish what it has in hand, so that no passage is embedded twice; then do the rest."""
        house = self._open_house()
        deadline = None if timeout is None else house.monotonic() + timeout
        while self._worker is not None and not self._worker.is_idle():
            if deadline is not None and house.monotonic() >= deadline:
                break
            yield from pause(_POLL_SECONDS)
        left = None if deadline is None else max(deadline - house.monotonic(), 0.0)
        return (yield from flush(house, session_id, timeout=left))


class Session:
    """One conversation or one agent run, seen from one of its tracks. Made by `TieredMemory.session`; has no state."""

    def __init__(
        self, memory: TieredMemory, session_id: str, *, user: str | None, track: str, title: str | None
    ) -> None:
        self._memory = memory
        self._user = user
        self._title = title
        self.session_id = session_id
        self.track = track

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

    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Any] = (),
        model: str | BaseChatModel | None = None,
        view: View = "default",
        branch: Sequence[str] | None = None,
    ) -> Context:
        """Put together what one model call gets.

        Args:
            query: What is asked; the last user message, if not given; `""` for nothing, which leaves recall out.
            max_tokens: Bounds the whole request, `system` and `tools` included; `settings.context.max_tokens` if not
                given.
            system: The request's system prompt.
            tools: The request's tools, for their size.
            model: The model that is called, or its name: for what calibration learnt about it, and for its window
                where `max_tokens` is not given.
            view: `default` for a conversation that goes on; `recall` gives nearly everything to the answer.
            branch: Ids of the messages that are on this branch, where the conversation was forked: others, and
                summaries that stand for any of them, are not shown. Costs time that grows with the session.

        Raises:
            BudgetError: when the budget cannot hold what must be shown.
        """
        return run(
            self._own(
                self._context(
                    query, max_tokens=max_tokens, system=system, tools=tools, model=model, view=view, branch=branch
                )
            )
        )

    async def acontext(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Any] = (),
        model: str | BaseChatModel | None = None,
        view: View = "default",
        branch: Sequence[str] | None = None,
    ) -> Context:
        """See `context`."""
        return await arun(
            self._own(
                self._context(
                    query, max_tokens=max_tokens, system=system, tools=tools, model=model, view=view, branch=branch
                )
            )
        )

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

    @property
    def _house(self) -> House:
        return self._memory._open_house()  # noqa: SLF001 - one face in two classes

    def _own(self, flow: Flow[T]) -> Flow[T]:
        """`flow`, unless this handle was made for another user than the session's own: then nothing is read either."""
        if self._user is not None:
            ref = yield from do(self._house.store.transcript.find, self.session_id)
            if ref is not None and ref.user is not None and ref.user != self._user:
                msg = f"the session {self.session_id!r} is not one of user {self._user!r}: open it for its owner"
                raise MixedOwnersError(msg)
        return (yield from flow)

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

    def _context(
        self,
        query: str | None,
        *,
        max_tokens: int | None,
        system: str | BaseMessage | None,
        tools: Sequence[Any],
        model: str | BaseChatModel | None,
        view: View,
        branch: Sequence[str] | None,
    ) -> Flow[Context]:
        house = self._house
        check_context_input(query=query, max_tokens=max_tokens, system=system, tools=tools, branch=branch)
        self._memory._greet(self.session_id)  # noqa: SLF001
        if view not in ("default", "recall"):
            msg = f'there is no view {view!r}: use "default" or "recall"'
            raise InvalidInputError(msg)
        request = Request(
            track=self.track,
            query=query,
            max_tokens=max_tokens if max_tokens is not None else _default_budget(house, model),
            system=system,
            tools=tuple(tools),
            model=model if isinstance(model, str) or model is None else name_of(model),
            view=view,
            branch=tuple(branch) if branch is not None else None,
        )
        context = yield from assemble(house, self.session_id, request)
        self._memory._note_sent((self.session_id, self.track), context.raw_tokens)  # noqa: SLF001
        return context

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


def _default_budget(house: House, model: str | BaseChatModel | None) -> int:
    """The budget of the settings, within the model's own window where it tells one."""
    chosen = house.settings.context.max_tokens
    profile = getattr(model, "profile", None) or {}
    window = profile.get("max_input_tokens")
    if not window:
        return chosen
    reserved = profile.get("max_output_tokens") or house.settings.context.reserved_output_tokens
    return max(min(chosen, int(window) - min(int(reserved), int(window) // 2)), 1)


def _seconds(moment: dt.datetime | None) -> float | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()
