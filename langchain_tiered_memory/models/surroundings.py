"""What a machine has for search and counting, and what is missing, said once where a person sees it.

Search by meaning needs an embedder, and exact counts need a tokenizer's encoding. A memory works without either, by
words and estimates. That is either the user's choice or a gap of the machine, and a gap is always reported.
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
from langchain_tiered_memory.sql import schema

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
"""The packages on which behaviour depends most, which a bug report should name."""
_said: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The embedder and Chroma in use, and what is missing."""

    embedder: str | None
    """The embedder's name. `None` if search is by words alone, by choice or because there is none."""
    chroma: str | None
    """Where the vectors are. `None` if there are none."""
    gaps: tuple[str, ...]
    """One sentence for each gap: what is reduced, why, and what to do."""


def look_around(
    embeddings: Embeddings | str | None,
    chroma: Any,  # noqa: ANN401 - a path, a URL or a client
    *,
    counter: TokenCounter | None,
    path: Path | None,
    in_memory: bool,
    is_encrypted: bool = False,
) -> Surroundings:
    """Find out what is there, without loading it.

    Args:
        embeddings: As for `TieredMemory.open`.
        chroma: As for `TieredMemory.open`.
        counter: The counter that was found, if the user chose none. Otherwise `None`, because a user's choice is not a
            gap.
        path: The SQLite file, if the database is one.
        in_memory: Whether the database ends with the process.
        is_encrypted: Whether the database has a key. Chroma's folder never has one.
    """
    embedder, has_place = _embedder_name(embeddings), chroma is not None
    why = ""
    if embedder is None and embeddings is not None:
        why = "the files of the MiniLM embedding model are missing"
        remedy = "`tiered-memory setup` downloads them"
    elif embedder is not None and not has_place and path is None and not in_memory:
        why = "a memory on PostgreSQL has no folder beside it for embedded Chroma"
        remedy = "name one with chroma='path', or a server with chroma='http://host:port'"
    elif embedder is not None and not has_place and is_encrypted:
        why = "the database is encrypted, and vectors, which reveal something about the texts, would not be"
        remedy = "allow unencrypted vectors with chroma='path', a client or a server"
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
    """Report each gap once per program: as a Python warning, which shows without configuration, and in the log."""
    for gap in gaps:
        if gap not in _said:
            _said.add(gap)
            logger.warning("%s", gap)
            warn_caller(gap, ReducedFunctionWarning)


def versions() -> dict[str, str]:
    """Versions of this package and of the installed packages on which its behaviour depends most."""
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
    """Count what is there and name what is missing."""
    passages = runtime.store.inspection.count(schema.passages)
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
