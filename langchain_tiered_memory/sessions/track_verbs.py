"""The verbs of a session that give back what was said: a track whole, or what a summary stands for; and its tracks."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.recall.detail import detail_of
from langchain_tiered_memory.sessions.scoped_verbs import SessionCore, expand_within, of_own_track
from langchain_tiered_memory.types.arguments import Amount, Count  # noqa: TC001 - read at the border
from langchain_tiered_memory.types.contexts import Detail
from langchain_tiered_memory.types.records import DEFAULT_TRACK, Entry

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef, Summary


_MOST_NAMED = 10
"""Tracks that are named in a warning."""


@checked_verbs
class TrackVerbs(SessionCore):
    """What stands on a track or behind a summary, word for word, and the tracks of a session."""

    def messages(self) -> list[BaseMessage]:
        """The whole transcript of this track, as it was.

        Where `main` has none, and other tracks have, a Python warning and the event `messages_elsewhere` name them.
        """
        runtime = self.core.checked
        ref = runtime.store.transcript.find(self.session_id)
        if ref is None:
            return []
        found = runtime.store.transcript.entries(ref, track=self.track, skip_damaged=False)
        if not found and self.track == DEFAULT_TRACK and self.core.scope is None:
            self._tell_of_tracks(runtime, ref)
        return [_decoded(entry) for entry in found]

    amessages = off_loop_twin(messages)

    def entries(self, *, after: Amount = 0, limit: Count | None = None) -> list[Entry]:
        """The stored messages of every track, in order: number, time, tokens, kind, pin, and what each says.

        With a scope they are its track's. A message that is damaged is left out, and told of as an event.

        Args:
            after: Only those with a higher number (`Entry.seq`): what came since.
            limit: The most to give; `None`: all.
        """
        store = self.core.checked.store
        ref = store.transcript.find(self.session_id)
        if ref is None:
            return []
        found: list[Entry] = store.transcript.entries(ref, track=self.core.only_track, after=after, limit=limit)
        return found

    aentries = off_loop_twin(entries)

    def summaries(self) -> list[Summary]:
        """Every summary of the session, by level and place, unfinished ones too; with a scope its track's own."""
        store = self.core.checked.store
        ref = store.transcript.find(self.session_id)
        return of_own_track(self.core, store.tree.all(ref)) if ref is not None else []

    asummaries = off_loop_twin(summaries)

    def tracks(self) -> list[str]:
        """The tracks of this session that have messages, in the order in which they began.

        `main` is the conversation itself; a sub-graph or sub-agent has a track that is named by its nodes.
        """
        store = self.core.checked.store
        ref = store.transcript.find(self.session_id)
        tracks = store.transcript.tracks(ref) if ref is not None else []
        return tracks if self.core.scope is None else [track for track in tracks if track == self.track]

    atracks = off_loop_twin(tracks)

    def reread(self, summary_id: str, *, query: str = "", max_tokens: Count = 2000) -> Detail:
        """The messages that a summary stands for, quoted within `max_tokens`, whatever its level.

        Args:
            summary_id: A summary's id or a message's, or how it begins, as of `expand`.
            query: What is asked: the messages that answer it come first. Empty: from the beginning on.
            max_tokens: Of the quotes and their frame together.

        Raises:
            NotFoundError: when the session has no such summary or message, or the handle's scope does not show it.
            InvalidInputError: when several ids begin so, or an argument cannot be used.
        """
        runtime = self.core.checked
        found = expand_within(self.core, summary_id, depth=None)
        ref = runtime.store.transcript.find(self.session_id)
        entries = [one for one in found if isinstance(one, Entry)]
        return detail_of(runtime, ref, entries, query=query, max_tokens=max_tokens) if ref is not None else Detail()

    areread = off_loop_twin(reread)

    def _tell_of_tracks(self, runtime: Runtime, ref: SessionRef) -> None:
        """Say where the messages are of a session whose main track has none: an empty list alone would mislead."""
        tracks = runtime.store.transcript.tracks(ref)
        if not tracks:
            return
        named = ", ".join(map(repr, tracks[:_MOST_NAMED])) + (", ..." if len(tracks) > _MOST_NAMED else "")
        told = (
            f"the session {self.session_id!r} has no message on its main track, and some on {len(tracks)} others "
            f"({named}): read one with memory.session({self.session_id!r}, track={tracks[0]!r})"
        )
        runtime.report(EventName.MESSAGES_ELSEWHERE, told, session_id=self.session_id, tracks=tracks)
        warnings.warn(told, stacklevel=2)


def _decoded(entry: Entry) -> BaseMessage:
    """The stored message.

    Raises:
        UnknownMessageError: when it is damaged; it names the message.
    """
    try:
        return decode(entry.payload)
    except UnknownMessageError as error:
        msg = f"the message {entry.id!r}: {error}; forget it by its id, or restore the database, to read the others"
        raise UnknownMessageError(msg) from error
