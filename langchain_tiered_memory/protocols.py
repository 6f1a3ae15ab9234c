"""Protocols of the seams: token counter, clock, vector index.

A condenser of your own is an `extensions.CondensationPlugin`: plain, blocking, and called off the event loop.
The SQL store is one code path for all its databases and needs no protocol; its conformance suite stands in `tests/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.arguments import Tool


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens. It must not use the network or raise on odd text, and must count equal input equally."""

    @property
    def fingerprint(self) -> str:
        """Identifies the way of counting. It is stored with the counts, so that another counter is noticed."""
        ...

    def count_text(self, text: str) -> int:
        """Return the tokens of a text."""
        ...

    def count_message(self, message: BaseMessage) -> int:
        """Return the tokens of a message as billed: content, calls, name and framing. Images have a fixed cost."""
        ...

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Return the tokens of tool schemas: LangChain tools, pydantic classes, functions or OpenAI-style dicts."""
        ...


class Clock(Protocol):
    """Says what time it is."""

    def __call__(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


class VectorIndex(Protocol):
    """Vectors of passages, by passage id. May lag, be down or be rebuilt; SQL is the source of truth."""

    @property
    def fingerprint(self) -> str:
        """Of the embedder: model, dimension and the way texts are cut."""
        ...

    def add(self, rows: Sequence[VectorRow]) -> None:
        """Embed and store; an id that exists is replaced.

        Raises:
            IndexUnavailableError: when the index or the embedder cannot be used.
        """
        ...

    def search(
        self, query: str, *, session_keys: Sequence[int] | None, limit: int, where: Mapping[str, Any] | None = None
    ) -> list[tuple[int, float]]:
        """The nearest passages as (passage id, cosine similarity), best first.

        Args:
            query: The question's text.
            session_keys: Only passages of these sessions; `None` for all, which callers must mean.
            limit: How many at most.
            where: What `level`, `track`, `at` or `kind` must be besides: `{"level": 1}`.

        Raises:
            IndexUnavailableError: when the index or the embedder cannot be used.
        """
        ...

    def remove(self, ids: Sequence[int]) -> int:
        """Remove passages; ids that are not there are ignored. Returns how many were there."""
        ...

    def ids(self) -> set[int]:
        """Every passage id in the index."""
        ...

    def count(self) -> int:
        """How many passages this embedder's part of the index holds; cheaper than their ids."""
        ...

    def discard(self) -> str | None:
        """Start over with nothing where what is there cannot be read.

        Returns:
            What became of it; `None` where it is out of reach.
        """
        ...

    def clear(self) -> None:
        """Remove everything of this memory, whichever embedder made it."""
        ...

    def compact(self) -> tuple[str, ...]:
        """Make removed rows leave no trace in files; returns the places where that cannot be promised."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class VectorRow(Protocol):
    """What the vector index needs to know of a passage."""

    @property
    def id(self) -> int:
        """The passage's id in SQL."""
        ...

    @property
    def text(self) -> str:
        """What to embed."""
        ...

    @property
    def metadata(self) -> Mapping[str, str | int | float]:
        """`session` (int), `level` (int), `seq` (int), `track` (str), `at` (float), `kind` (str)."""
        ...
