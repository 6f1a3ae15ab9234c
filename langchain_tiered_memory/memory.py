"""The engine's face. A verb is a line per colour that drives a flow; those of a session stand in `session`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

from langchain_core.runnables.config import run_in_executor

from langchain_tiered_memory.errors import ClosedError, InvalidInputError
from langchain_tiered_memory.flows.asking import Flow, arun, do, pause, run
from langchain_tiered_memory.flows.forget import forget_sessions
from langchain_tiered_memory.flows.mend import doctor, rebuild_index
from langchain_tiered_memory.flows.tending import flush
from langchain_tiered_memory.flows.verify import verify
from langchain_tiered_memory.flows.windows import set_window
from langchain_tiered_memory.records import DEFAULT_TRACK
from langchain_tiered_memory.session import Session
from langchain_tiered_memory.sessions.input_checks import check_names
from langchain_tiered_memory.sessions.opening import close_house, open_house
from langchain_tiered_memory.sessions.told import told_of
from langchain_tiered_memory.sessions.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from langchain_tiered_memory.condensers.engine import CondensationEngine
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.reports import DoctorReport, Event, FlushReport, Receipt, VerifyReport
    from langchain_tiered_memory.settings import Settings

__all__ = ["Session", "TieredMemory"]

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
        model: str | BaseChatModel | Sequence[str | BaseChatModel] | None = None,
        embeddings: Embeddings | Literal["auto"] | None = "auto",
        chroma: Any = None,  # noqa: ANN401 - a path, a URL or a chromadb client
        settings: Settings | None = None,
        token_counter: object = None,
        clock: Callable[[], float] | None = None,
        engine: CondensationEngine | None = None,
    ) -> Self:
        """Open a memory.

        Args:
            where: A path (SQLite), an SQLAlchemy URL (`sqlite` or `postgresql`), or `None` for memory that ends with
                the process.
            model: Who condenses: a chat model, a string for `init_chat_model`, or a list of them, tried in their order.
                `None`: the extractive condenser, which needs neither key nor download.
            embeddings: `"auto"`: MiniLM where its files are at hand (nothing is downloaded unannounced); `None`: search
                by words alone; or any LangChain `Embeddings`.
            chroma: `None`: embedded, beside the database; or a path, a server's URL, or a `chromadb` client.
            settings: Limits, defaults and thresholds.
            token_counter: `None`: the best at hand; a `TokenCounter`, the name of a tiktoken encoding, a callable that
                counts a text, or one that counts a list of messages.
            clock: Seconds since the epoch; `time.time` by default.
            engine: A `CondensationEngine` of your own making, in the place of the one that `model` stands for.

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
                engine=engine,
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

    @property
    def engine(self) -> CondensationEngine:
        """Has summaries written: register plugins, validators, hooks and collectors there."""
        return self._open_house().condenser

    def subscribe(self, listener: Callable[[Event], object]) -> Callable[[], None]:
        """Have `listener` called with each event, in the thread where it happens. Returns what ends it.

        Alerts of zones, outcomes of condensations, checkpoints, failures of models and extensions are events; all of
        them also go to Python's logging. A listener that raises is logged, and breaks nothing.
        """
        return self._open_house().listeners.add(listener)

    def learn_window(self, model: str | BaseChatModel, tokens: int) -> None:
        """Remember that a model's window is `tokens`, where its profile tells more, or a refusal was misread.

        Raises:
            InvalidInputError: when `tokens` is below 1.
        """
        run(set_window(self._open_house(), told_of(model).name, tokens))

    async def alearn_window(self, model: str | BaseChatModel, tokens: int) -> None:
        """See `learn_window`."""
        await arun(set_window(self._open_house(), told_of(model).name, tokens))

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

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: what holds a memory, such as a chain or its config, may be copied, and goes on with the same one."""
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            InvalidInputError: always, with what to do instead.
        """
        msg = "a memory holds a database's connections and cannot be pickled: open it anew in the other process"
        raise InvalidInputError(msg)

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
