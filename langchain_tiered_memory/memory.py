"""A memory's public verbs, each in a sync and an async form; those of a session stand in `session`."""

from __future__ import annotations

from collections.abc import Callable, Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self

from langchain_core.embeddings import Embeddings  # noqa: TC002
from langchain_core.runnables import Runnable  # noqa: TC002
from langchain_core.runnables.config import run_in_executor

from langchain_tiered_memory.border import checked, checked_verbs
from langchain_tiered_memory.driver import arun, flow_twin, off_loop_twin, run
from langchain_tiered_memory.engine import Engine
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.forgetting.forget import forget_sessions, resume_removals
from langchain_tiered_memory.maintenance.repair import doctor, rebuild_index
from langchain_tiered_memory.maintenance.verify import verify
from langchain_tiered_memory.models.profiles import profile_of
from langchain_tiered_memory.models.surroundings import announce, read_status
from langchain_tiered_memory.models.window_budget import set_window
from langchain_tiered_memory.reports import Event, Progress  # noqa: TC001
from langchain_tiered_memory.session import Session, adelete_thread, delete_thread
from langchain_tiered_memory.session_engine import SessionEngine
from langchain_tiered_memory.sessions.file_run import Run
from langchain_tiered_memory.sessions.opening import open_runtime
from langchain_tiered_memory.sessions.shown_handle import ShownHandle
from langchain_tiered_memory.settings import Settings  # noqa: TC001
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine  # noqa: TC001
from langchain_tiered_memory.transcript.outbox import tell_left_over
from langchain_tiered_memory.types.arguments import (  # noqa: TC001
    ChromaPlace,
    Count,
    FilePath,
    FilePaths,
    Name,
    Scope,
    Seconds,
    SessionId,
)
from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from langchain_tiered_memory.context.sections.registry import SectionRegistry
    from langchain_tiered_memory.display.sheet import Sheet
    from langchain_tiered_memory.reports import DoctorReport, FlushReport, MemoryStatus, Receipt, VerifyReport
    from langchain_tiered_memory.runtime import Runtime

__all__ = ["Run", "Session", "TieredMemory"]


@checked_verbs
class TieredMemory(ShownHandle):
    """A memory: one database, its index, and the judges that were chosen when it was opened.

    Open one with `TieredMemory.open`; it may serve any number of sessions, threads and tasks. Several processes may
    open the same database.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.core = Engine(runtime)
        """The engine behind the verbs, for integrations: its names may change with any version."""

    @classmethod
    @checked(SettingsError)
    def open(
        cls,
        where: FilePath | None = None,
        *,
        model: str | Runnable[Any, Any] | Sequence[str | Runnable[Any, Any]] | None = None,
        embeddings: Embeddings | Literal["auto"] | None = "auto",
        chroma: ChromaPlace = None,
        settings: Settings | None = None,
        token_counter: object = None,
        clock: Callable[[], float] | None = None,
        engine: CondensationEngine | None = None,
        read_only: bool = False,
    ) -> Self:
        """Open a memory.

        Args:
            where: A path (SQLite), an SQLAlchemy URL (`sqlite` or `postgresql`), or `None` for memory that ends with
                the process.
            model: Who condenses: a chat model, a string for `init_chat_model`, or a list of them, tried in their order.
                `None`: the extractive condenser, which needs neither key nor download.
            embeddings: `"auto"`: MiniLM where its files are at hand (nothing is downloaded unannounced); `None`: search
                by words alone; or any LangChain `Embeddings`. What is missing is said once, as a
                `ReducedFunctionWarning`; `status()` tells it again.
            chroma: `None`: embedded, beside the database; or a path, a server's URL, or a `chromadb` client.
            settings: Limits, defaults and thresholds.
            token_counter: `None`: the best at hand; a `TokenCounter`, the name of a tiktoken encoding, a callable that
                counts a text, or one that counts a list of messages.
            clock: Seconds since the epoch; `time.time` by default.
            engine: A `CondensationEngine` of your own making, in the place of the one that `model` stands for.
            read_only: Whether nothing may be written: verbs that write raise `ReadOnlyError`, there is no background
                work, and a context's plan is not kept. Beside an SQLite file nothing is made but what SQLite's own
                reading needs while somebody writes. Embedded Chroma cannot be read so: search is by words then.

        Raises:
            SettingsError: for a choice that cannot be used.
            StorageError: when the database cannot be opened.
        """
        runtime = open_runtime(
            where,
            model=model,
            embeddings=embeddings,
            chroma=chroma,
            settings=settings,
            token_counter=token_counter,
            clock=clock,
            engine=engine,
            read_only=read_only,
        )
        if not runtime.store.database.read_only:
            resume_removals(runtime)
        announce(runtime.surroundings.gaps, stacklevel=3)  # over the check at the border
        tell_left_over(runtime)
        return cls(runtime)

    @classmethod
    @checked(SettingsError)
    async def aopen(
        cls,
        where: FilePath | None = None,
        *,
        model: str | Runnable[Any, Any] | Sequence[str | Runnable[Any, Any]] | None = None,
        embeddings: Embeddings | Literal["auto"] | None = "auto",
        chroma: ChromaPlace = None,
        settings: Settings | None = None,
        token_counter: object = None,
        clock: Callable[[], float] | None = None,
        engine: CondensationEngine | None = None,
        read_only: bool = False,
    ) -> Self:
        """`open` without blocking the event loop."""
        return await run_in_executor(
            None,
            lambda: cls.open(
                where,
                model=model,
                embeddings=embeddings,
                chroma=chroma,
                settings=settings,
                token_counter=token_counter,
                clock=clock,
                engine=engine,
                read_only=read_only,
            ),
        )

    def session(
        self,
        session_id: SessionId,
        *,
        user: Name | None = None,
        track: Name = DEFAULT_TRACK,
        title: str | None = None,
        scope: Scope | None = None,
    ) -> Session:
        """A handle on one session. No I/O: the session comes to be with its first message.

        Args:
            session_id: Which session, such as LangGraph's `thread_id`.
            user: Whose it is.
            track: The line of it that is written to and shown.
            title: What it is called, where this is its first use.
            scope: `Scope()` keeps the handle to its own track, `Scope(sight_tokens=...)` gives it a capped, read-only
                sight of its parent's besides; `None`: it may see and change the whole session.

        Raises:
            InvalidInputError: when an id or a name is no string, the session id is empty, or `scope` is no scope.
        """
        return Session(SessionEngine(self.core, session_id, user=user, track=track, title=title, scope=scope))

    def run(
        self,
        session_id: SessionId,
        *,
        user: Name | None = None,
        track: Name = DEFAULT_TRACK,
        title: str | None = None,
        roots: FilePaths | None = None,
        critical: FilePaths = (),
        background: bool = True,
    ) -> Run:
        """A run of a session, with its files in tiers: `with memory.run("session") as run:`, or `async with`.

        No I/O before it starts.

        Args:
            session_id: Which session.
            user: Whose it is.
            track: As of `session`, as is the next.
            title: See there.
            roots: The folder whose files it may open, or several; `None`: `tiers.roots`, else `checkpoints.roots`.
            critical: A file to load and pin at its start, or several, besides `tiers.critical`.
            background: Whether a daemon thread collects and optimises; without one, `run.tend()` does what is due.

        Raises:
            InvalidInputError: when an id or a name is no string, or the session id is empty.
        """
        core = SessionEngine(self.core, session_id, user=user, track=track, title=title)
        return Run(core, roots=roots, critical=critical, background=background)

    @property
    def engine(self) -> CondensationEngine:
        """The summary engine: register plugins, validators, hooks and collectors there."""
        return self.core.runtime.condenser

    @property
    def sections(self) -> SectionRegistry:
        """What contexts show beside their built-in sections, or in the place of one: register yours there."""
        return self.core.runtime.sections

    def subscribe(self, listener: Callable[[Event], object]) -> Callable[[], None]:
        """Have `listener` called with each event, in the thread where it happens. Returns what ends it.

        Alerts of zones, outcomes of condensations, checkpoints, failures of models and extensions are events; all of
        them also go to Python's logging. A listener that raises is logged, and breaks nothing.

        What stands for something in the database (summaries, outcomes of views, checkpoints) is told at least once:
        where the process ended before, or a listener raised, the next open tells it again, to each new listener, under
        the same `event.id`; three times at most.
        """
        return self.core.runtime.listeners.add(listener)

    def learn_window(self, model: Name | Runnable[Any, Any], tokens: Count) -> None:
        """Remember that a model's window is `tokens`, where its profile tells more, or a refusal was misread.

        Raises:
            InvalidInputError: when `tokens` is below 1.
        """
        set_window(self.core.runtime, profile_of(model).name, tokens)

    alearn_window = off_loop_twin(learn_window)

    def sessions(self, *, user: Name | None = None) -> list[str]:
        """Ids of all sessions, or of one user's, oldest first."""
        return [ref.session_id for ref in self.core.runtime.store.transcript.sessions(user=user)]

    asessions = off_loop_twin(sessions)

    def verify(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
        """Derive everything again and compare; never calls a model. `.problems` is empty when all is well.

        Args:
            progress: Called after each page of messages, in the thread that looks at them.
        """
        return verify(self.core.runtime, progress=progress)

    averify = off_loop_twin(verify)

    def status(self) -> MemoryStatus:
        """What searches, counts and stores here, with versions, and what works with less than it could."""
        return read_status(self.core.runtime)

    astatus = off_loop_twin(status)

    def rebuild_index(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
        """Make counts, text index and vectors anew from the transcript; gives the report of a `verify` afterwards.

        Args:
            progress: Called after each page of messages and each batch of vectors.
        """
        return rebuild_index(self.core.writable_runtime(), progress=progress)

    arebuild_index = off_loop_twin(rebuild_index)

    def doctor(self) -> DoctorReport:
        """Find and mend what is wrong between transcript, summaries, text index and Chroma, and say what was done."""
        return doctor(self.core.writable_runtime())

    adoctor = off_loop_twin(doctor)

    def forget(
        self,
        *,
        session_id: SessionId | None = None,
        user: Name | None = None,
        checkpointer: Any = None,  # noqa: ANN401 - LangGraph's own
    ) -> Receipt:
        """Remove a session, or every session of a user, with everything derived from it.

        What was forgotten does not come back under its ids, from whatever place: keyed digests are kept of it.

        Args:
            session_id: Which session.
            user: Whose sessions.
            checkpointer: LangGraph's checkpointer, to have the threads of these names deleted there too.

        Raises:
            InvalidInputError: when neither or both are named, or the checkpointer cannot delete a thread.
            StorageError: when the database cannot remove it now. What was begun is finished by the next call, by
                `doctor`, or when the memory is opened again.
        """
        flow = forget_sessions(
            self.core.writable_runtime(), session_id=session_id, user=user, checkpointer=checkpointer
        )
        return run(flow, take=delete_thread)

    async def aforget(
        self,
        *,
        session_id: SessionId | None = None,
        user: Name | None = None,
        checkpointer: Any = None,  # noqa: ANN401 - LangGraph's own
    ) -> Receipt:
        """See `forget`."""
        flow = forget_sessions(
            self.core.writable_runtime(), session_id=session_id, user=user, checkpointer=checkpointer
        )
        return await arun(flow, take=adelete_thread)

    def flush(self, timeout: Seconds | None = None) -> FlushReport:
        """Finish every session's summaries and vectors that are due, within `timeout` seconds."""
        return run(self.core.flush(None, timeout))

    aflush = flow_twin(flush, lambda self: partial(self.core.flush, None))

    def close(self) -> None:
        """Stop the background work after the step in hand, and let go of files and connections."""
        self.core.close()

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

    def _name(self) -> str:
        return self.core.label

    def _looked_up(self) -> Sheet:
        from langchain_tiered_memory.display.sessions import memory  # noqa: PLC0415 - as of `Shown`

        return memory(self)

    def __copy__(self) -> Self:
        """Itself, as `copy.deepcopy` gives it: there is one database, and one background thread."""
        return self

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
