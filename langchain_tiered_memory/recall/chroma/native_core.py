"""Chroma's native core in this process, and what a fork leaves of it.

Embedded Chroma runs on thread pools that belong to the process, not to a client (Chroma 1.5.9: the first look into a
collection starts one). A forked child has none of their threads and cannot start them again: every call of a new client
waits for ever. So once the core was loaded, children do without embedded Chroma and say so; a server stays usable.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from langchain_tiered_memory.errors import IndexUnavailableError
from langchain_tiered_memory.sql import forks

WORKING = forks.Section("a call of embedded Chroma")
_BINDINGS = "chromadb_rust_bindings"
"""The core's module; importing `chromadb` alone does not load it, making an embedded client does."""


class _Core(forks.AtFork):
    def __init__(self) -> None:
        self.is_lost = False
        forks.tell(self)

    def after_fork_in_child(self) -> None:
        """Never destroy what belongs to threads that are not here."""
        if _BINDINGS not in sys.modules:
            return
        self.is_lost = True
        clients = sys.modules.get("chromadb.api.shared_system_client")
        systems = getattr(getattr(clients, "SharedSystemClient", None), "_identifier_to_system", {})
        for system in list(systems.values()):
            forks.abandon(system)


_core = _Core()


def loaded() -> Any:  # noqa: ANN401 - Chroma is loaded lazily
    """The module `chromadb`."""
    with WORKING:
        return importlib.import_module("chromadb")


def require_core() -> None:
    """Refuse embedded Chroma where it would hang.

    Raises:
        IndexUnavailableError: in a child of a process that had loaded the core.
    """
    if _core.is_lost:
        msg = (
            "this process was forked after embedded Chroma had been used in its parent, whose core cannot start again "
            "in a child: here search goes on by words alone, and vectors wait for the parent or the next process. Use "
            "the memory for the first time after the fork, start processes by spawn, or run a Chroma server"
        )
        raise IndexUnavailableError(msg)
