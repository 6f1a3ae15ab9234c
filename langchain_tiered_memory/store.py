"""The SQL store: one database, and the stores of each subject that read and write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.across.store import Across
from langchain_tiered_memory.context.outcome_store import Outcomes
from langchain_tiered_memory.forgetting.row_removal import Removal
from langchain_tiered_memory.items.store import Items
from langchain_tiered_memory.maintenance.inspection import Inspection
from langchain_tiered_memory.maintenance.relations import Relations
from langchain_tiered_memory.models.window_store import Windows
from langchain_tiered_memory.recall.text_index import TextIndex
from langchain_tiered_memory.recall.vector_queue import VectorQueue
from langchain_tiered_memory.runs.checkpoint_store import Checkpoints
from langchain_tiered_memory.runs.files.disk import Disk
from langchain_tiered_memory.runs.files.own_files import Checksums, OwnFiles
from langchain_tiered_memory.runs.files.store import KeptFiles
from langchain_tiered_memory.runs.plans import Plans
from langchain_tiered_memory.runs.store import Runs
from langchain_tiered_memory.sql.database import Database
from langchain_tiered_memory.sql.private_files import PRIVATE
from langchain_tiered_memory.summaries.facts.rows import drop_facts_of_messages
from langchain_tiered_memory.summaries.facts.store import FactStore
from langchain_tiered_memory.summaries.tree.store import Tree
from langchain_tiered_memory.transcript.file_store import Files
from langchain_tiered_memory.transcript.outbox import Outbox
from langchain_tiered_memory.transcript.store import Transcript
from langchain_tiered_memory.transcript.tombstones import Tombstones

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.sql.encryption import KeySource
    from langchain_tiered_memory.transcript.append import GroupRule


class SqlStore:
    """What the flows ask of SQL, by room. No run may open files of `own`; `wait` lets some seconds go by."""

    def __init__(self, database: Database, own: OwnFiles, group_rule: GroupRule, wait: Callable[[float], None]) -> None:
        self.database = database
        self.transcript = Transcript(database, group_rule, drop_facts_of_messages)
        self.tree = Tree(database)
        self.facts = FactStore(database)
        self.text_index = TextIndex(database)
        self.vector_queue = VectorQueue(database)
        self.plans = Plans(database)
        self.removal = Removal(database)
        self.tombstones = Tombstones(database)
        self.inspection = Inspection(database)
        self.relations = Relations(database)
        self.runs = Runs(database)
        self.checkpoints = Checkpoints(database)
        self.outcomes = Outcomes(database)
        self.outbox = Outbox(database)
        self.files = Files(database)
        self.windows = Windows(database)
        self.items = Items(database)
        self.across = Across(database)
        self.checksums = Checksums(own)
        self.kept_files = KeptFiles(database)
        self.disk = Disk(own, wait)

    @classmethod
    def open(
        cls,
        where: str | Path | None,
        *,
        busy_seconds: float,
        now: Callable[[], float],
        group_rule: GroupRule,
        read_only: bool = False,
        file_mode: int | None = PRIVATE,
        vectors: Path | None = None,
        wait: Callable[[float], None] = lambda _: None,
        encryption_key: KeySource | None = None,
    ) -> SqlStore:
        """Open a path, an SQLAlchemy URL or (with `None`) a database in memory, and bring its schema up to date.

        `Database` says what `read_only`, `file_mode` and `encryption_key` are; `vectors` is Chroma's folder, where it
        was named; `wait` lets some seconds go by.

        Raises:
            SettingsError: for a URL that cannot be used.
            StorageError: when the database cannot be opened; its subclasses say why.
        """
        database = Database(
            where,
            busy_seconds=busy_seconds,
            now=now,
            read_only=read_only,
            file_mode=file_mode,
            encryption_key=encryption_key,
        )
        return cls(database, OwnFiles.of(database.path, vectors), group_rule, wait)
