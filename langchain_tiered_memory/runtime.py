"""The parts of an opened memory that every journey needs: the stores of its database, settings, counter, index."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.across.store import Across
from langchain_tiered_memory.context.outcome_store import Outcomes
from langchain_tiered_memory.context.sections.registry import SectionRegistry
from langchain_tiered_memory.context.view_cache import ViewCache
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.forgetting.row_removal import Removal
from langchain_tiered_memory.items.store import Items
from langchain_tiered_memory.maintenance.inspection import Inspection
from langchain_tiered_memory.recall.indexing import index_breaker
from langchain_tiered_memory.recall.search import likeness
from langchain_tiered_memory.recall.text_index import TextIndex
from langchain_tiered_memory.recall.vector_queue import VectorQueue
from langchain_tiered_memory.reports import Event
from langchain_tiered_memory.runs.checkpoint_store import Checkpoints
from langchain_tiered_memory.runs.files.disk import Disk, OwnFiles
from langchain_tiered_memory.runs.files.store import KeptFiles
from langchain_tiered_memory.runs.plans import Plans, Windows
from langchain_tiered_memory.runs.store import Runs
from langchain_tiered_memory.summaries.facts.rows import drop_facts_of_messages
from langchain_tiered_memory.summaries.facts.store import FactStore
from langchain_tiered_memory.summaries.tree.store import Tree
from langchain_tiered_memory.summaries.writers.behind import LastRequests
from langchain_tiered_memory.text.scrubbing import scrubbed
from langchain_tiered_memory.transcript.entry_reads import Files
from langchain_tiered_memory.transcript.outbox import Listeners, Outbox
from langchain_tiered_memory.transcript.store import Transcript
from langchain_tiered_memory.transcript.tombstones import Tombstones

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.models.circuit_breaker import CircuitBreaker
    from langchain_tiered_memory.models.message_counting import RememberedCounts
    from langchain_tiered_memory.models.surroundings import Surroundings
    from langchain_tiered_memory.recall.chroma.index import ChromaIndex
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.sql.database import Database
    from langchain_tiered_memory.sql.forks import Signature
    from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
    from langchain_tiered_memory.types.records import SessionRef


logger = logging.getLogger("langchain_tiered_memory")
logger.addHandler(logging.NullHandler())  # where an application configured no logging, a library keeps quiet


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One opened memory, as the flows see it."""

    store: SqlStore
    settings: Settings
    counter: RememberedCounts
    now: Callable[[], float]
    condenser: CondensationEngine
    """Has summaries written."""
    open_index: Callable[[], ChromaIndex | None]
    """The vector index, opened on first use; `None` where search is lexical only."""
    embeddings: Callable[[], Embeddings | None]
    """What embeds, chosen on first use; `None` where search is lexical only."""
    embedder: Callable[[], str]
    """Fingerprint of what embeds; raises whatever that raises when it is first asked."""
    signature: Signature
    """Of leases."""
    surroundings: Surroundings
    """What there is on this machine to search and count with."""
    monotonic: Callable[[], float]
    """Seconds of a clock that never goes back, for deadlines."""
    view_cache: ViewCache = field(default_factory=ViewCache)
    """What is remembered of views between requests."""
    last_requests: LastRequests = field(default_factory=LastRequests)
    """What was sent last in each session, for a condensing call behind it."""
    listeners: Listeners = field(default_factory=Listeners)
    """Who is told of events."""

    index_breaker: CircuitBreaker = field(default_factory=index_breaker)
    """Leaves the vector index alone where it was silent."""
    sections: SectionRegistry = field(default_factory=SectionRegistry)
    """What contexts show beside the built-in sections."""

    @property
    def worker(self) -> str:
        """Who signs leases here."""
        return self.signature.name

    def likeness(self, ref: SessionRef, new: Collection[int], before: Sequence[Collection[int]]) -> dict[int, float]:
        """How near messages of before are to new ones; see `recall.search`."""
        return likeness(self, ref, new, before)

    def report(self, name: EventName, reason: str, **about: Any) -> None:  # noqa: ANN401 - as `event` takes it
        """Say, in a sentence with figures, that something happened which a person may want to know."""
        self.tell(self.event(name, reason, **about))

    def event(
        self,
        name: EventName,
        reason: str,
        *,
        session_id: str | None = None,
        event_id: str | None = None,
        **details: Any,  # noqa: ANN401 - plain JSON values of any kind
    ) -> Event:
        """An event that nobody was told of yet: a store writes it down with what it stands for.

        An `event_id` is stable: a repeated delivery carries the same.
        """
        return Event(
            id=event_id or uuid.uuid4().hex,
            name=EventName(name),
            session_id=session_id,
            at=self.now(),
            reason=scrubbed(reason),
            details={key: scrubbed(value) if isinstance(value, str) else value for key, value in details.items()},
        )

    def tell(self, event: Event) -> bool:
        """Log an event, as far as the settings let it through, and tell the listeners.

        Returns:
            Whether none of them raised.
        """
        self.store.database.end_snapshot()  # a listener may wait for another thread, which may want the database
        if self._is_logged(event):
            level = EventName(event.name).level
            logger.log(level, "%s: %s", event.name, event.reason, extra={"tiered_memory_event": event})
        return self.listeners.tell(event)

    def owed(self, event: Event) -> Event | None:
        """The event, to be written down until it was told; `None` where neither a listener nor a log would hear it."""
        return event if self._is_logged(event) or self.listeners.are_there else None

    def _is_logged(self, event: Event) -> bool:
        """Whether the settings let an event through to the log, and the log takes it."""
        least, level = self.settings.condensation.monitoring.logging, EventName(event.name).level
        return least != "off" and level >= logging.getLevelNamesMapping()[least.upper()] and logger.isEnabledFor(level)


class SqlStore:
    """What the flows ask of SQL, by room.

    Args:
        database: It is opened, with its schema up to date.
        vectors: Chroma's folder, where it was named: no run may open files of the memory's own.
        wait: Lets some seconds go by.
    """

    def __init__(
        self, database: Database, *, vectors: Path | None = None, wait: Callable[[float], None] = lambda _: None
    ) -> None:
        own = OwnFiles.of(database.path, vectors)
        self.database = database
        self.transcript = Transcript(database, drop_facts_of_messages)
        self.tree = Tree(database)
        self.facts = FactStore(database)
        self.text_index = TextIndex(database)
        self.vector_queue = VectorQueue(database)
        self.plans = Plans(database)
        self.removal = Removal(database)
        self.tombstones = Tombstones(database)
        self.inspection = Inspection(database)
        self.runs = Runs(database)
        self.checkpoints = Checkpoints(database)
        self.outcomes = Outcomes(database)
        self.outbox = Outbox(database)
        self.files = Files(database)
        self.windows = Windows(database)
        self.items = Items(database)
        self.across = Across(database)
        self.kept_files = KeptFiles(database)
        self.disk = Disk(own, wait)
