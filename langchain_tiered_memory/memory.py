"""A memory's public verbs, each in a sync and an async form; those of a session stand in `session`.

Importing this module is light: the engine, SQLAlchemy and LangChain's models are loaded by `open`.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - annotations are read at the border, as are the next
import importlib
from collections.abc import Callable, Sequence  # noqa: TC003
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

from langchain_tiered_memory.border import checked, checked_verbs
from langchain_tiered_memory.driver import flow_twin, off_loop, off_loop_twin, run
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.forgetting.langgraph_threads import atake_out, take_out
from langchain_tiered_memory.sessions.shown_handle import ShownHandle
from langchain_tiered_memory.types.arguments import (  # noqa: TC001
    Checkpointer,
    ChromaPlace,
    Count,
    Counting,
    FilePath,
    FilePaths,
    ItemStore,
    Name,
    NewKey,
    OptionalKey,
    Scope,
    Seconds,
    SessionId,
)
from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import DEFAULT_TRACK, Fact, Hit, seconds_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables import Runnable

    from langchain_tiered_memory.context.sections.registry import SectionRegistry
    from langchain_tiered_memory.engine import Engine
    from langchain_tiered_memory.reports import (
        DoctorReport,
        Event,
        FlushReport,
        MemoryStatus,
        Progress,
        Receipt,
        VerifyReport,
    )
    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.sessions.file_run import Run
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.summaries.engine.engine import CondensationEngine

_READ_LATER = {
    "Embeddings": "langchain_core.embeddings",
    "Runnable": "langchain_core.runnables",
    "CondensationEngine": "langchain_tiered_memory.summaries.engine.engine",
    "Event": "langchain_tiered_memory.reports",
    "Progress": "langchain_tiered_memory.reports",
    "Run": "langchain_tiered_memory.sessions.file_run",
    "Session": "langchain_tiered_memory.session",
    "Settings": "langchain_tiered_memory.settings",
}

__all__ = ["Run", "Session", "TieredMemory"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """What annotations name, for the border, which reads them when a verb is first called."""
    if name not in _READ_LATER:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_READ_LATER[name]), name)


@checked_verbs
class TieredMemory(ShownHandle, sheet="sessions.memory"):
    """A memory: one database, its index, and the judges that were chosen when it was opened.

    Open one with `TieredMemory.open`; it may serve any number of sessions, threads and tasks. Several processes may
    open the same database.
    """

    def __init__(self, core: Engine) -> None:
        self.core = core
        """The engine behind the verbs, for integrations: its names may change with any version."""

    @classmethod
    @checked(SettingsError)
    def open(
        cls,
        where: FilePath | None = None,
        *,
        model: str | Runnable[Any, Any] | Sequence[str | Runnable[Any, Any]] | None = None,
        embeddings: Embeddings | str | None = "auto",
        chroma: ChromaPlace = None,
        settings: Settings | None = None,
        token_counter: Counting | None = None,
        clock: Callable[[], float] | None = None,
        engine: CondensationEngine | None = None,
        read_only: bool = False,
        encryption_key: OptionalKey = None,
    ) -> Self:
        """Open a memory.

        Args:
            where: A path (SQLite), an SQLAlchemy URL (`sqlite` or `postgresql`), or `None` for memory that ends with
                the process.
            model: Who condenses: a chat model, a string for `init_chat_model`, or a list of them, tried in their order.
                `None`: the extractive condenser, which needs neither key nor download.
            embeddings: `"auto"`: MiniLM where its files are at hand (nothing is downloaded unannounced); `None`: search
                by words alone; a string for `init_embeddings`, such as `"openai:text-embedding-3-small"`; or any
                LangChain `Embeddings`. What is missing is said once, as a `ReducedFunctionWarning`; `status()` tells
                it again.
            chroma: `None`: embedded, beside the database; or a path, a server's URL, or a `chromadb` client.
            settings: Limits, defaults and thresholds. `None`: the defaults, and what `TIERED_MEMORY_*` says in the
                environment (`settings/environment.py`).
            token_counter: `None`: the best at hand; a `TokenCounter`, the name of a tiktoken encoding, a callable that
                counts a text, or one that counts a list of messages.
            clock: Seconds since the epoch; `time.time` by default.
            engine: A `CondensationEngine` of your own making, in the place of the one that `model` stands for.
            read_only: Whether nothing may be written: verbs that write raise `ReadOnlyError`, there is no background
                work, and a context's plan is not kept. Beside an SQLite file nothing is made but what SQLite's own
                reading needs while somebody writes. Embedded Chroma cannot be read so: search is by words then.
            encryption_key: A function that gives the key of an SQLite file: a string or bytes of at least 16 bytes. The
                file is then encrypted, its log and text index included. It is asked again where the key was rotated.
                Search is by words then, unless `chroma` names a place for vectors. Needs the extra `encryption`.

        Raises:
            SettingsError: for a choice that cannot be used.
            StorageError: when the database cannot be opened. `KeyNeededError`, `WrongKeyError` and `NotEncryptedError`
                say what is wrong with a key.
        """
        from langchain_tiered_memory.engine import Engine  # noqa: PLC0415 - heavy, and needed from here on

        core = Engine.opened(
            where,
            model=model,
            embeddings=embeddings,
            chroma=chroma,
            settings=settings,
            token_counter=token_counter,
            clock=clock,
            engine=engine,
            read_only=read_only,
            encryption_key=encryption_key,
        )
        return cls(core)

    @classmethod
    @checked(SettingsError)
    async def aopen(
        cls,
        where: FilePath | None = None,
        *,
        model: str | Runnable[Any, Any] | Sequence[str | Runnable[Any, Any]] | None = None,
        embeddings: Embeddings | str | None = "auto",
        chroma: ChromaPlace = None,
        settings: Settings | None = None,
        token_counter: Counting | None = None,
        clock: Callable[[], float] | None = None,
        engine: CondensationEngine | None = None,
        read_only: bool = False,
        encryption_key: OptionalKey = None,
    ) -> Self:
        """See `open`: the same without blocking the event loop."""
        return await off_loop(
            cls.open,
            where,
            model=model,
            embeddings=embeddings,
            chroma=chroma,
            settings=settings,
            token_counter=token_counter,
            clock=clock,
            engine=engine,
            read_only=read_only,
            encryption_key=encryption_key,
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
        from langchain_tiered_memory.session import Session  # noqa: PLC0415 - loaded with the engine

        return Session(self.core.session(session_id, user=user, track=track, title=title, scope=scope))

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
            track: The line of it that is written to and shown.
            title: What it is called, where this is its first use.
            roots: The folder whose files it may open, or several; `None`: `tiers.roots`, else `checkpoints.roots`.
            critical: A file to load and pin at its start, or several, besides `tiers.critical`.
            background: Whether a daemon thread collects and optimises; without one, `run.tend()` does what is due.

        Raises:
            InvalidInputError: when an id or a name is no string, or the session id is empty.
        """
        from langchain_tiered_memory.sessions.file_run import Run  # noqa: PLC0415 - as above

        core = self.core.session(session_id, user=user, track=track, title=title)
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
        """Have a function called with each event.

        Alerts of zones, outcomes of condensations, checkpoints, failures of models and extensions are events; all of
        them also go to Python's logging. A listener that raises is logged, and breaks nothing.

        What stands for something in the database (summaries, outcomes of views, checkpoints) is told at least once:
        where the process ended before, or a listener raised, the next open tells it again, to each new listener, under
        the same `event.id`; three times at most.

        Args:
            listener: Called in the thread where the event happens.

        Returns:
            What ends it.
        """
        return self.core.runtime.listeners.add(listener)

    def learn_window(self, model: Name | Runnable[Any, Any], tokens: Count) -> None:
        """Remember a model's window, where its profile tells more, or a refusal was misread.

        Args:
            model: The model, or its name.
            tokens: Its window, in tokens.

        Raises:
            InvalidInputError: when `tokens` is below 1.
        """
        self.core.learn_window(model, tokens)

    alearn_window = off_loop_twin(learn_window)

    def sessions(self, *, user: Name | None = None) -> list[str]:
        """Ids of all sessions, oldest first.

        Args:
            user: Only this user's; `None`: everybody's.
        """
        return [ref.session_id for ref in self.core.runtime.store.transcript.sessions(user=user)]

    asessions = off_loop_twin(sessions)

    def search(
        self,
        query: str,
        *,
        user: Name,
        k: Count = 10,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
    ) -> list[Hit]:
        """The messages of all of a user's sessions that answer a question best, best first.

        Args:
            query: The question, or words of what is looked for.
            user: Whose sessions; what no user was named for is nobody's, and never found here.
            k: How many at most.
            since: Only what was said at this time or later; a time without a zone is UTC.
            until: Only what was said at this time or before.

        Returns:
            Hits with their `session_id`. Each text once; of more than 500 sessions those spoken in last.
        """
        filters = SearchFilters(since=seconds_of(since), until=seconds_of(until))
        return self.core.search(user, query, k=k, filters=filters)

    asearch = off_loop_twin(search)

    def facts(self, query: str | None = None, *, user: Name, k: Count = 50, superseded: bool = False) -> list[Fact]:
        """What holds for a user, as their sessions state it: preferences, constraints, names, standing orders.

        Only what users say of themselves on the main track of a session counts, not what points at the matter in hand.
        What they said later of the same matter takes the place of what they said before, whichever session it was in.

        Args:
            query: Only what shares words with it, best first; without one the weightiest come first.
            user: Whose sessions.
            k: How many at most.
            superseded: Whether those are given too that do not hold any more.

        Returns:
            Facts with their `session_id` and `message_ids`: `memory.session(fact.session_id).forget(message_ids=...)`
            removes one with its messages, and a later word of the user corrects it.
        """
        return self.core.facts(user, query, k=k, superseded_too=superseded)

    afacts = off_loop_twin(facts)

    def verify(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
        """Derive everything again and compare; never calls a model. `.problems` is empty when all is well.

        Args:
            progress: Called after each page of messages, in the thread that looks at them.
        """
        return self.core.verify(progress)

    averify = off_loop_twin(verify)

    def status(self) -> MemoryStatus:
        """What searches, counts and stores here, with versions, and what works with less than it could."""
        return self.core.status()

    astatus = off_loop_twin(status)

    def rebuild_index(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
        """Make counts, text index and vectors anew from the transcript; gives the report of a `verify` afterwards.

        Args:
            progress: Called after each page of messages and each batch of vectors.
        """
        return self.core.rebuild_index(progress)

    arebuild_index = off_loop_twin(rebuild_index)

    def doctor(self) -> DoctorReport:
        """Find and mend what is wrong between transcript, summaries, text index and Chroma, and say what was done."""
        return self.core.doctor()

    adoctor = off_loop_twin(doctor)

    def forget(
        self,
        *,
        session_id: SessionId | None = None,
        user: Name | None = None,
        checkpointer: Checkpointer | None = None,
        store: ItemStore | None = None,
        namespaces: Sequence[Sequence[Name]] = (),
    ) -> Receipt:
        """Remove a session, or a user: every session with everything derived from it, and the user's items.

        What was forgotten does not come back under its ids, from whatever place: keyed digests are kept of it.

        Args:
            session_id: Which session.
            user: Whose sessions, and whose items of `TieredStore`.
            checkpointer: LangGraph's checkpointer, to have the threads of these names deleted there too.
            store: Another store of LangGraph, to have the user's items deleted there too.
            namespaces: Which of its namespaces are the user's, such as `[("memories", "zoe")]`, all below included.

        Raises:
            InvalidInputError: when neither or both are named, the checkpointer cannot delete a thread, or it is not
                said what of the store is the user's.
            StorageError: when the database cannot remove it now. What was begun is finished by the next call, by
                `doctor`, or when the memory is opened again.
        """
        flow = self.core.forget(
            session_id=session_id, user=user, checkpointer=checkpointer, store=store, namespaces=namespaces
        )
        return run(flow, take=take_out)

    aforget = flow_twin(forget, lambda self: self.core.forget, take=atake_out)

    def flush(self, timeout: Seconds | None = None) -> FlushReport:
        """Finish every session's summaries and vectors that are due.

        Args:
            timeout: Seconds to work at most; `None`: until all is done.
        """
        return run(self.core.flush(None, timeout))

    aflush = flow_twin(flush, lambda self: partial(self.core.flush, None))

    def rotate_key(self, new_key: NewKey) -> bool:
        """Encrypt the database's file with another key, in one transaction: a kill leaves the old key or the new one.

        Other processes go on, where the function that they were opened with gives the new key by then.

        Args:
            new_key: Gives it, as `encryption_key` of `open` does; asked from then on.

        Returns:
            Whether nothing under the old key is left in the files. Somebody's open read keeps some of it in the log,
            until the last who has the database open closes it.

        Raises:
            SettingsError: when the database is not encrypted, or the key cannot be used.
            StorageError: when the file cannot be written. The old key opens it then.
        """
        return self.core.runtime.store.database.rotate_key(new_key)

    arotate_key = off_loop_twin(rotate_key)

    def close(self) -> None:
        """Stop the background work after the step in hand, and let go of files and connections."""
        self.core.close()

    aclose = off_loop_twin(close)

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
