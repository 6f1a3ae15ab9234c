"""The memory as a LangChain retriever: messages and summaries of one session, best first."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - pydantic reads the annotations of the fields
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from langchain_tiered_memory.integrations.checks import Memory, set_up
from langchain_tiered_memory.text.fencing import neutralised, plain_label, plain_name
from langchain_tiered_memory.types.arguments import Amount, Count, Name, SessionId  # noqa: TC001 - pydantic reads them
from langchain_tiered_memory.types.records import Hit, utc

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun

    from langchain_tiered_memory.session import Session


class TieredMemoryRetriever(BaseRetriever):
    """A LangChain retriever over the messages and summaries of one session.

        retriever = TieredMemoryRetriever(memory=memory, session_id="alice", k=5)
        retriever.invoke("Which team checked the crane?")
        retriever.invoke("Which team checked the crane?", k=2)

    A document's `id` is that of the message or summary. Its metadata is plain JSON: `session_id`, `level` (0 is a
    message), `at` (ISO 8601), `track`, `role`, `name`, `kind`, `score` (comparable within one answer), `seq`, `tokens`,
    `whole` (true if the document is the whole text, false if it is the best passage), and `source`, which repeats the
    `id` for chains that cite sources.
    """

    memory: Memory
    """The memory."""
    session_id: SessionId
    """The session to search."""
    user: Name | None = None
    """The user of the session. Another user's session is refused."""
    k: Count = 10
    """The most documents to return. Each level also has a quota."""
    levels: tuple[Amount, ...] | None = None
    """The levels to search: 0 for messages, 1 and higher for summaries. All by default."""
    tracks: tuple[Name, ...] | None = None
    """The tracks to search. All by default."""
    since: dt.datetime | None = None
    """Only what was said from this time on."""
    until: dt.datetime | None = None
    """Only what was said up to this time."""
    content: Literal["passage", "whole"] = "whole"
    """What a document holds of a long message: the whole text, or the passage that matches best."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    if not TYPE_CHECKING:  # type checkers know the fields

        def __init__(self, **choices: object) -> None:
            """Refuse a value that is not a memory, with our own error text."""
            set_up(self, choices, super().__init__)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return [self._document(hit) for hit in self._session.search(query, **self._filters(k))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        del run_manager
        return [self._document(hit) for hit in await self._session.asearch(query, **self._filters(k))]

    @property
    def _session(self) -> Session:
        return self.memory.session(self.session_id, user=self.user)

    def _filters(self, k: int | None) -> dict[str, Any]:
        return {
            "k": self.k if k is None else k,
            "levels": self.levels,
            "tracks": self.tracks,
            "since": self.since,
            "until": self.until,
        }

    def _document(self, hit: Hit) -> Document:
        shown = hit.passage if self.content == "passage" else hit.text
        return Document(
            id=hit.id,
            page_content=neutralised(shown),
            metadata={
                "id": hit.id,
                "source": hit.id,
                "session_id": self.session_id,
                "level": hit.level,
                "at": utc(hit.at).isoformat(),
                "track": plain_label(hit.track),
                "role": hit.role,
                "name": plain_name(hit.name) or None,
                "kind": plain_label(hit.kind) if hit.kind else None,
                "score": hit.score,
                "seq": hit.seq,
                "tokens": hit.tokens,
                "whole": shown == hit.text,
            },
        )
