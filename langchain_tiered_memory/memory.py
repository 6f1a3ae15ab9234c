"""A memory's public verbs, each in a sync and an async form. A session's verbs are in `session`.

Importing this module is cheap: `open` loads the engine, SQLAlchemy and LangChain's models.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - annotations are read at the border, as are the next
import importlib
from collections.abc import Callable, Sequence  # noqa: TC003
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

from langchain_tiered_memory.border import checked, checked_verbs
from langchain_tiered_memory.driver import OpeningTwin, flow_twin, off_loop_twin, run
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
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
    """Import a type that an annotation names. The argument check asks for it when a verb is first called."""
    if name not in _READ_LATER:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(_READ_LATER[name]), name)


@checked_verbs
class TieredMemory(ShownHandle, sheet="sessions.memory"):
    """A memory: one database, its vector index, and the models chosen when it was opened.

    Open one with `TieredMemory.open`. It can serve any number of sessions, threads and asyncio tasks. Several processes
    can open the same database.
    """

    def __init__(self, core: Engine) -> None:
        self.core = core
        """The engine behind the verbs, for integrations. Its names may change in any version."""

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
            where: A path (SQLite), an SQLAlchemy URL (`sqlite` or `postgresql`), or `None` for a memory that lasts as
                long as the process.
            model: The model that writes summaries: a chat model, a string for `init_chat_model`, or a list of them,
                tried in order. With `None`, built-in rules write them, which need no key and no download.
            embeddings: `"auto"` uses MiniLM if its files are present; it downloads nothing unasked. `None` searches by
                words alone. A string goes to `init_embeddings`, such as `"openai:text-embedding-3-small"`. Any
                LangChain `Embeddings` also works. One `ReducedFunctionWarning` names what is missing; so does
                `status()`.
            chroma: A path, a server's URL, or a `chromadb` client. With `None`, Chroma runs embedded, beside the
                database.
            settings: Limits, defaults and thresholds. With `None`, the defaults and the environment's `TIERED_MEMORY_*`
                variables.
            token_counter: A `TokenCounter`, the name of a tiktoken encoding, or a callable that counts a text or a list
                of messages. With `None`, the memory uses the best one available.
            clock: Returns seconds since the epoch; `time.time` by default.
            engine: Your own `CondensationEngine`, instead of `model`.
            read_only: Writes nothing: verbs that write raise `ReadOnlyError`, there is no background work, and no plan
                is stored. SQLite itself may create files beside the database while another process writes to it.
                Embedded Chroma cannot be opened read-only, so search is by words alone.
            encryption_key: A function that returns the key of an SQLite file: a string or bytes of at least 16 bytes.
                It encrypts the whole file, with its log and text index. The function is called again after the key was
                rotated. Search is by words alone unless `chroma` names a place for vectors. Needs the extra
                `encryption`.

        Raises:
            SettingsError: if an argument cannot be used.
            StorageError: if the database cannot be opened. `KeyNeededError`, `WrongKeyError` and `NotEncryptedError`
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

    aopen = OpeningTwin(open)  # noqa: A003 - the verb above

    def session(
        self,
        session_id: SessionId,
        *,
        user: Name | None = None,
        track: Name = DEFAULT_TRACK,
        title: str | None = None,
        scope: Scope | None = None,
    ) -> Session:
        """Return a handle to one session, without I/O. The first message creates the session.

        Args:
            session_id: The session's id, such as LangGraph's `thread_id`.
            user: The user that it belongs to.
            track: The track to write to and to show.
            title: A title for a new session.
            scope: `Scope()` limits the handle to its own track. `Scope(sight_tokens=...)` also shows it its parent's
                track, read-only and up to that many tokens. With `None`, it can see and change the whole session.

        Raises:
            InvalidInputError: if an id or a name is not a string, the session id is empty, or `scope` is not a `Scope`.
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
        """Return a run of a session, with its files in tiers: `with memory.run("session") as run:`, or `async with`.

        No I/O happens until it starts.

        Args:
            session_id: The session's id.
            user: The user that it belongs to.
            track: The track to write to and to show.
            title: A title for a new session.
            roots: One or more folders whose files it may open. With `None`, `files.roots`.
            critical: One or more files to load and pin at the start, in addition to `tiers.critical`.
            background: Starts a daemon thread that collects and optimises. Without it, call `run.tend()`.

        Raises:
            InvalidInputError: if an id or a name is not a string, or the session id is empty.
        """
        from langchain_tiered_memory.sessions.file_run import Run  # noqa: PLC0415 - as above

        core = self.core.session(session_id, user=user, track=track, title=title)
        return Run(core, roots=roots, critical=critical, background=background)

    @property
    def engine(self) -> CondensationEngine:
        """The summary engine. Register plugins, validators, hooks and collectors here."""
        return self.core.runtime.condenser

    @property
    def sections(self) -> SectionRegistry:
        """The sections that contexts show in addition to the built-in ones, or instead of one. Register yours here."""
        return self.core.runtime.sections

    def subscribe(self, listener: Callable[[Event], object]) -> Callable[[], None]:
        """Call a function with each event.

        Zone alerts, outcomes of condensations, checkpoints, and failures of models and extensions are events. They also
        go to Python's logging. An exception in a listener is logged and breaks nothing.

        An event about something stored (a summary, an outcome, a checkpoint) is delivered at least once. If the process
        ends first, or a listener raises, the next open delivers it again to each new listener, with the same
        `event.id`, at most three times.

        Args:
            listener: Called in the thread where the event happens.

        Returns:
            A function that ends the subscription.
        """
        return self.core.runtime.listeners.add(listener)

    def learn_window(self, model: Name | Runnable[Any, Any], tokens: Count) -> None:
        """Set the context window of a model, if its profile is wrong or a provider's error was misread.

        Args:
            model: The model or its name.
            tokens: Its window, in tokens.

        Raises:
            InvalidInputError: if `tokens` is below 1.
        """
        self.core.learn_window(model, tokens)

    alearn_window = off_loop_twin(learn_window)

    def sessions(self, *, user: Name | None = None) -> list[str]:
        """Return the ids of all sessions, oldest first.

        Args:
            user: Only sessions of this user. With `None`, all.
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
        """Search the messages of all sessions of a user.

        Args:
            query: The question, or words to look for.
            user: The user. Sessions without a user are never searched here.
            k: The most hits to return.
            since: Only messages from this time on. A time without a zone is UTC.
            until: Only messages up to this time.

        Returns:
            Hits with their `session_id`, best first, each text once. If the user has more than 500 sessions, only the
            latest 500 are searched.
        """
        from langchain_tiered_memory.across.searching import search_across  # noqa: PLC0415 - loaded with the engine

        filters = SearchFilters(since=seconds_of(since), until=seconds_of(until))
        return search_across(self.core.runtime, user, query, k=k, filters=filters)

    asearch = off_loop_twin(search)

    def facts(self, query: str | None = None, *, user: Name, k: Count = 50, superseded: bool = False) -> list[Fact]:
        """Return what holds for a user across sessions: preferences, constraints, names, standing orders.

        Only what users say about themselves on the main track counts, not what concerns the task at hand. A later
        statement on the same subject replaces an earlier one, whichever session it is in.

        Args:
            query: Only facts that share words with it, best first. Without it, the weightiest come first.
            user: The user.
            k: The most facts to return.
            superseded: Also return facts that no longer hold.

        Returns:
            Facts with their `session_id` and `message_ids`. `memory.session(fact.session_id).forget(message_ids=...)`
            removes a fact with its messages. A later statement by the user corrects it.
        """
        from langchain_tiered_memory.across.user_facts import facts_of_user  # noqa: PLC0415 - loaded with the engine

        return facts_of_user(self.core.runtime, user, query, k=k, superseded_too=superseded)

    afacts = off_loop_twin(facts)

    def verify(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
        """Derive everything again and compare, without calling a model. If all is well, `.problems` is empty.

        Args:
            progress: Called after each page of messages, in the thread that examines them.
        """
        from langchain_tiered_memory.maintenance.verify import verify  # noqa: PLC0415 - loaded with the engine

        return verify(self.core.runtime, progress=progress)

    averify = off_loop_twin(verify)

    def status(self) -> MemoryStatus:
        """Return which parts search, count and store, with their versions, and what is missing on this machine."""
        from langchain_tiered_memory.models.surroundings import read_status  # noqa: PLC0415 - loaded with the engine

        return read_status(self.core.runtime)

    astatus = off_loop_twin(status)

    def rebuild_index(self, *, progress: Callable[[Progress], object] | None = None) -> VerifyReport:
        """Rebuild counts, text index and vectors from the transcript, and return the report of a `verify` afterwards.

        Args:
            progress: Called after each page of messages and each batch of vectors.
        """
        from langchain_tiered_memory.maintenance.verify import rebuild_index  # noqa: PLC0415 - loaded with the engine

        return rebuild_index(self.core.writable_runtime(), progress=progress)

    arebuild_index = off_loop_twin(rebuild_index)

    def doctor(self) -> DoctorReport:
        """Find and repair faults between transcript, summaries, text index and Chroma, and report them."""
        from langchain_tiered_memory.maintenance.verify import doctor  # noqa: PLC0415 - loaded with the engine

        return doctor(self.core.writable_runtime())

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
        """Remove one session, or all sessions and items of a user, with everything derived from them.

        Forgotten messages do not come back under their ids, whoever sends them again: keyed digests remain.

        Args:
            session_id: The session to remove.
            user: The user whose sessions and `TieredStore` items to remove.
            checkpointer: A LangGraph checkpointer, to delete the threads of the same names too.
            store: Another LangGraph store, to delete the user's items there too.
            namespaces: The user's namespaces in `store`, such as `[("memories", "zoe")]`, with all below them.

        Raises:
            InvalidInputError: if neither or both of `session_id` and `user` are given, the checkpointer cannot delete a
                thread, or `namespaces` is missing.
            StorageError: if the database cannot remove it now. The next call, `doctor`, or the next open finishes the
                removal.
        """
        flow = self.core.forget(
            session_id=session_id, user=user, checkpointer=checkpointer, store=store, namespaces=namespaces
        )
        return run(flow)

    aforget = flow_twin(forget, lambda self: self.core.forget)

    def flush(self, timeout: Seconds | None = None) -> FlushReport:
        """Finish all summaries and vectors that are due, in every session.

        Args:
            timeout: The most seconds to take. With `None`, until all is done.
        """
        return run(self.core.flush(None, timeout))

    aflush = flow_twin(flush, lambda self: partial(self.core.flush, None))

    def rotate_key(self, new_key: NewKey) -> bool:
        """Encrypt the database file with another key, in one transaction.

        If the process is killed, the file has either the old key or the new one. Other processes carry on if the
        function that they were opened with returns the new key by then.

        Args:
            new_key: Returns the new key, as `encryption_key` of `open` does. It is used from then on.

        Returns:
            Whether nothing under the old key is left in the files. While other processes read, some of it stays in the
            log until the last of them closes the database.

        Raises:
            SettingsError: if the database is not encrypted, or the key cannot be used.
            StorageError: if the file cannot be written. The old key still opens it.
        """
        return self.core.runtime.store.database.rotate_key(new_key)

    arotate_key = off_loop_twin(rotate_key)

    def close(self) -> None:
        """Stop the background work after its current step, and release files and connections."""
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
        """Itself, also for `copy.deepcopy`: there is one database and one background thread."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: a copy of a chain or config that holds a memory keeps using the same memory."""
        return self

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled.

        Raises:
            InvalidInputError: always, with what to do instead.
        """
        msg = "a memory holds database connections and cannot be pickled: open it again in the other process"
        raise InvalidInputError(msg)
