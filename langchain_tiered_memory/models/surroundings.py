"""What a machine has for search and counting, and what is missing there, said once where a person sees it.

Search needs an embedder for meaning, counting needs a tokenizer's encoding to be exact. A memory works without
either, by words and by estimates; that is a choice of the user's or a gap of the machine, and a gap is never silent.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from langchain_tiered_memory.errors import ReducedFunctionWarning, warn_caller
from langchain_tiered_memory.models.embeddings import MiniLMEmbeddings, find_minilm, may_download
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.reports import MemoryStatus

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.runtime import Runtime


logger = logging.getLogger(__name__)

_PACKAGES = (
    "langchain-tiered-memory", "langchain-core", "langchain", "langgraph", "chromadb", "sqlalchemy", "tiktoken",
    "onnxruntime", "pydantic",
)  # fmt: skip
"""What behaviour depends on most, and what a report of a fault should name."""
_said: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Embedder and Chroma in use; what is missing."""

    embedder: str | None
    """Its name; `None` where search is by words alone, by choice or for want of one."""
    chroma: str | None
    """Where the vectors are; `None` where there are none."""
    gaps: tuple[str, ...]
    """A sentence each: what works with less than it could, why, and what to do."""


def look_around(
    embeddings: Embeddings | str | None,
    chroma: Any,  # noqa: ANN401 - a path, a URL or a client
    *,
    counter: TokenCounter | None,
    path: Path | None,
    in_memory: bool,
    is_encrypted: bool = False,
) -> Surroundings:
    """See what is there, without loading any of it.

    Args:
        embeddings: As for `TieredMemory.open`.
        chroma: As for `TieredMemory.open`.
        counter: The counter that was found, where none was asked for; else `None`: what a user chose is no gap.
        path: The SQLite file, if the database is one.
        in_memory: Whether the database ends with the process.
        is_encrypted: Whether the database has a key, which Chroma's folder has not.
    """
    embedder, has_place = _embedder_name(embeddings), chroma is not None
    why = ""
    if embedder is None and embeddings is not None:
        why = "the files of the MiniLM embedding model are not at hand"
        remedy = "`tiered-memory setup` fetches them"
    elif embedder is not None and not has_place and path is None and not in_memory:
        why = "a memory on PostgreSQL has no folder beside it for embedded Chroma"
        remedy = "name one with chroma='path', or a server with chroma='http://host:port'"
    elif embedder is not None and not has_place and is_encrypted:
        why = "the database is encrypted, and vectors, which tell something of the texts, would not be"
        remedy = "chroma='path', a client or a server, says that vectors may stand there"
    gaps: list[str] = []
    if why:
        embedder = None
        gaps.append(f"search is by words alone: {why}; {remedy}; pass embeddings=None if words are enough")
    if isinstance(counter, EstimatingCounter):
        gaps.append(
            "token counts are estimates: tiktoken's encodings are missing; `tiered-memory setup` downloads them; "
            "pass token_counter=... to use your own"
        )
    place = _chroma_place(chroma, path, in_memory=in_memory) if embedder is not None else None
    return Surroundings(embedder=embedder, chroma=place, gaps=tuple(gaps))


def announce(gaps: tuple[str, ...]) -> None:
    """Say each gap once in a program: as a Python warning, which shows where nothing is configured, and in the log."""
    for gap in gaps:
        if gap not in _said:
            _said.add(gap)
            logger.warning("%s", gap)
            warn_caller(gap, ReducedFunctionWarning)


def versions() -> dict[str, str]:
    """Versions of this package and of those that its behaviour depends on most, where they are installed."""
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _embedder_name(embeddings: Embeddings | str | None) -> str | None:
    if embeddings == "auto":
        return MiniLMEmbeddings().fingerprint if find_minilm() is not None or may_download() else None
    if embeddings is None:
        return None
    own = getattr(embeddings, "fingerprint", None)
    return own if isinstance(own, str) and own else type(embeddings).__qualname__


def _chroma_place(chroma: Any, path: Path | None, *, in_memory: bool) -> str:  # noqa: ANN401 - a path, a URL or a client
    if chroma is None:
        return "this process's memory" if in_memory or path is None else f"{path}.chroma"
    text = str(chroma)
    if text.startswith(("http://", "https://")):
        parts = urlsplit(text)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return text if hasattr(chroma, "__fspath__") or isinstance(chroma, str) else "a client of the caller's"


def read_status(runtime: Runtime) -> MemoryStatus:
    """Count what there is and name what is missing."""
    passages = runtime.store.inspection.passage_count()
    waiting = runtime.store.vector_queue.count()
    around = runtime.surroundings
    return MemoryStatus(
        versions=versions(),
        database=runtime.store.database.label,
        sessions=len(runtime.store.transcript.sessions()),
        embedder=around.embedder,
        counter=runtime.counter.fingerprint,
        counts_are_estimates=isinstance(runtime.counter.counter, EstimatingCounter),
        chroma=around.chroma,
        vectors=passages - waiting,
        passages=passages,
        gaps=around.gaps,
    )
