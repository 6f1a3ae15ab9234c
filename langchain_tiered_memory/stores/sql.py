"""The SQL store: one database, and the rooms that read and write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.stores.checkpoints import Checkpoints
from langchain_tiered_memory.stores.checksums import Checksums
from langchain_tiered_memory.stores.database import Database
from langchain_tiered_memory.stores.files import Files
from langchain_tiered_memory.stores.inspection import Inspection
from langchain_tiered_memory.stores.outcomes import Outcomes
from langchain_tiered_memory.stores.plans import Plans
from langchain_tiered_memory.stores.removal import Removal
from langchain_tiered_memory.stores.runs import Runs
from langchain_tiered_memory.stores.text_index import TextIndex
from langchain_tiered_memory.stores.transcript import Transcript
from langchain_tiered_memory.stores.tree import Tree
from langchain_tiered_memory.stores.vector_queue import VectorQueue
from langchain_tiered_memory.stores.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.stores.appending import GroupRule


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStore:
    """What the flows ask of SQL, by room."""

    database: Database
    transcript: Transcript
    tree: Tree
    text_index: TextIndex
    vector_queue: VectorQueue
    plans: Plans
    removal: Removal
    inspection: Inspection
    runs: Runs
    checkpoints: Checkpoints
    outcomes: Outcomes
    files: Files
    windows: Windows
    checksums: Checksums

    @classmethod
    def open(
        cls, where: str | Path | None, *, busy_seconds: float, now: Callable[[], float], group_rule: GroupRule
    ) -> SqlStore:
        """Open a path, an SQLAlchemy URL or (with `None`) a database in memory, and bring its schema up to date.

        Raises:
            SettingsError: for a URL that cannot be used.
            StorageError: when the database cannot be opened; its subclasses say why.
        """
        database = Database(where, busy_seconds=busy_seconds, now=now)
        return cls(
            database=database,
            transcript=Transcript(database, group_rule),
            tree=Tree(database),
            text_index=TextIndex(database),
            vector_queue=VectorQueue(database),
            plans=Plans(database),
            removal=Removal(database),
            inspection=Inspection(database),
            runs=Runs(database),
            checkpoints=Checkpoints(database),
            outcomes=Outcomes(database),
            files=Files(database),
            windows=Windows(database),
            checksums=Checksums(),
        )
