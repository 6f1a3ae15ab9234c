"""The verbs of a session that have to do with views: contexts, and what the guard decided about them."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from typing import Any

from langchain_core.messages import BaseMessage  # noqa: TC002
from langchain_core.runnables import Runnable  # noqa: TC002

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.context.compaction.thresholds import advised
from langchain_tiered_memory.context.ledgers import costs, diff, dropped, outcomes, undo
from langchain_tiered_memory.driver import flow_twin, off_loop_twin, run
from langchain_tiered_memory.errors import UnknownMessageError, warn_caller
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.recall.detail import detail_of
from langchain_tiered_memory.sessions.scoped_verbs import SessionCore, expand_within, refuse_whole_session
from langchain_tiered_memory.types.arguments import Amount, Count, Name, Tool  # noqa: TC001
from langchain_tiered_memory.types.contexts import Context, Detail
from langchain_tiered_memory.types.files import WindowUse
from langchain_tiered_memory.types.outcomes import (
    CostLedger,
    Ledger,
    LedgerRow,
    Outcome,
    Outcomes,
    ThresholdAdvice,
    ViewDiff,
)
from langchain_tiered_memory.types.records import DEFAULT_TRACK, Entry

_MOST_NAMED = 10
"""Tracks that are named in a warning."""


@checked_verbs
class TrackVerbs(SessionCore):
    """The messages of a track or under a summary, word for word, and the tracks of a session."""

    def messages(self) -> list[BaseMessage]:
        """Return the whole transcript of this track, as it was.

        If `main` has no messages but other tracks have, a Python warning and the event `messages_elsewhere` name them.
        """
        store, ref = self.core.found()
        if ref is None:
            return []
        found = store.transcript.entries(ref, track=self.track, skip_damaged=False)
        if not found and self.track == DEFAULT_TRACK and self.core.scope is None:
            self._tell_of_tracks(store.transcript.tracks(ref))
        return [_decoded(entry) for entry in found]

    amessages = off_loop_twin(messages)

    def entries(self, *, after: Amount = 0, limit: Count | None = None) -> list[Entry]:
        """Return the stored messages of all tracks, in order: number, time, tokens, kind, pin and text of each.

        With a scope, only those of this track. A damaged message is left out and reported as an event.

        Args:
            after: Only messages with a higher number (`Entry.seq`).
            limit: The most messages to return. With `None`, all.
        """
        store, ref = self.core.found()
        if ref is None:
            return []
        return store.transcript.entries(ref, track=self.core.only_track, after=after, limit=limit)

    aentries = off_loop_twin(entries)

    def tracks(self) -> list[str]:
        """Return the tracks of this session that have messages, in the order in which they began.

        `main` is the conversation itself. The track of a sub-graph or sub-agent is named after its nodes.
        """
        store, ref = self.core.found()
        tracks = store.transcript.tracks(ref) if ref is not None else []
        return tracks if self.core.scope is None else [track for track in tracks if track == self.track]

    atracks = off_loop_twin(tracks)

    def reread(self, summary_id: str, *, query: str = "", max_tokens: Count = 2000) -> Detail:
        """Quote the messages under a summary of any level, within `max_tokens`.

        Args:
            summary_id: A summary or a message, named as for `expand`.
            query: A question: messages that answer it come first. If empty, the first messages do.
            max_tokens: The most tokens of the quotes with their frame.

        Raises:
            NotFoundError: if the session has no such summary or message, or the scope of this handle does not show it.
            InvalidInputError: if the beginning fits several ids, or an argument cannot be used.
        """
        found = expand_within(self.core, summary_id, depth=None)
        runtime, ref = self.core.checked, self.core.ref
        entries = [one for one in found if isinstance(one, Entry)]
        return detail_of(runtime, ref, entries, query=query, max_tokens=max_tokens) if ref is not None else Detail()

    areread = off_loop_twin(reread)

    def _tell_of_tracks(self, tracks: Sequence[str]) -> None:
        """Say where the messages are of a session whose main track has none: an empty list alone would mislead."""
        if not tracks:
            return
        named = ", ".join(map(repr, tracks[:_MOST_NAMED])) + (", ..." if len(tracks) > _MOST_NAMED else "")
        told = (
            f"the session {self.session_id!r} has no message on its main track, but on {named}: "
            f"read one with memory.session({self.session_id!r}, track={tracks[0]!r})"
        )
        self.core.runtime.report(EventName.MESSAGES_ELSEWHERE, told, session_id=self.session_id, tracks=tracks)
        warn_caller(told, UserWarning)


def _decoded(entry: Entry) -> BaseMessage:
    """The stored message."""
    try:
        return decode(entry.payload)
    except UnknownMessageError as error:
        msg = f"the message {entry.id!r}: {error}; forget it by its id, or restore the database, to read the others"
        raise UnknownMessageError(msg) from error


@checked_verbs
class ViewVerbs(SessionCore):
    """Contexts, and the decisions behind them."""

    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Tool] = (),
        model: str | Runnable[Any, Any] | None = None,
        view: str = "default",
        profile: Name | None = None,
        branch: Sequence[str] | None = None,
    ) -> Context:
        """Put together the context of one model call.

        Args:
            query: The question to recall for. By default, the last user message. `""` leaves recall out.
            max_tokens: The most tokens of the whole request, with `system` and `tools`. By default
                `settings.context.max_tokens`. It never exceeds what the model's window allows.
            system: The system prompt of the request.
            tools: The tools of the request, for their size.
            model: The model to call, or its name. Its window and calibration are used.
            view: `default` is for a conversation that goes on. `recall` gives nearly all room to quotes that answer the
                question. `minimal` shows system prompt, current task, active file, last user message and last error.
                Other names are those of `settings.context.views`, such as `detailed` and `compact`.
            profile: The profile whose condensation threshold applies. By default, the name of the model.
            branch: Ids of the messages on this branch of a forked conversation. Other messages, and summaries that
                cover any of them, are not shown. Takes time that grows with the session.

        Returns:
            The messages, an account of them, and in `.guard` what was done to make them fit.

        Raises:
            BudgetError: if the budget cannot hold what must be shown. `ContextOverflowError` if the window overflowed
                and recovery failed too.
            CondensationError: if condensing failed, the view does not fit, and
                `settings.condensation.strategies.fallback` is `error`.
        """
        return run(
            self.core.context(
                query,
                max_tokens=max_tokens,
                system=system,
                tools=tools,
                model=model,
                view=view,
                profile=profile,
                branch=branch,
            )
        )

    acontext = flow_twin(context, lambda self: self.core.context)

    def preview(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Tool] = (),
        model: str | Runnable[Any, Any] | None = None,
        view: str = "default",
    ) -> ViewDiff:
        """Show what a condensation of a view would change now, due or not, without writing or calling a model.

        Args:
            query: The question. By default, the last user message.
            max_tokens: The most tokens of the whole request. By default `settings.context.max_tokens`.
            system: The system prompt of the call, for its size.
            tools: The tools of the call, for their size.
            model: The model of the call, or its name.
            view: As for `context`.

        Raises:
            NotFoundError: if the session has no message yet.
            InvalidInputError: if the view has nothing to condense, such as `recall`.
        """
        return run(self.core.preview(query, max_tokens=max_tokens, system=system, tools=tools, model=model, view=view))

    apreview = flow_twin(preview, lambda self: self.core.preview)

    def window_use(self) -> WindowUse:
        """Return how large the contexts of this session were, by section, oldest first.

        It covers the last 2,000 contexts that this process made. The database does not keep them.
        """
        own = self.core.only_track
        return WindowUse(
            size for size in self.core.engine.contexts.of(self.session_id) if own is None or size.track == own
        )

    def outcomes(self, *, limit: Count = 50) -> list[Outcome]:
        """Return the outcomes of past condensations of this session's views, newest first.

        Args:
            limit: The most outcomes to return.
        """
        return Outcomes(outcomes(self.core.checked, self.session_id, limit=limit, track=self.core.only_track))

    aoutcomes = off_loop_twin(outcomes)

    def ledger(self) -> list[LedgerRow]:
        """Return what left the views of this session, and why, newest first. It is all still in the transcript."""
        return Ledger(dropped(self.core.checked, self.session_id, track=self.core.only_track))

    aledger = off_loop_twin(ledger)

    def diff(self, outcome_id: Name | None = None) -> ViewDiff:
        """Return what a condensation changed in its view.

        Args:
            outcome_id: The id of its outcome. With `None`, the last one.

        Raises:
            NotFoundError: if there is none.
        """
        refuse_whole_session(self.core, "diff")
        return diff(self.core.checked, self.session_id, outcome_id)

    adiff = off_loop_twin(diff)

    def undo(self, outcome_id: Name | None = None) -> Outcome:
        """Undo a condensation: the view shows again what it showed before.

        It is condensed again only if it does not fit its budget. Its summaries stay.

        Args:
            outcome_id: The id of its outcome. With `None`, the last one.

        Raises:
            NotFoundError: if there is nothing to undo.
            InvalidInputError: if the view has changed since.
        """
        refuse_whole_session(self.core, "undo")
        return undo(self.core.checked, self.session_id, outcome_id)

    aundo = off_loop_twin(undo)

    def costs(self) -> CostLedger:
        """Return what condensing this session cost and saved, and after how many calls it paid off."""
        return costs(self.core.checked, self.session_id, track=self.core.only_track)

    acosts = off_loop_twin(costs)

    def suggest_threshold(self, profile: Name | None = None) -> ThresholdAdvice | None:
        """Return the threshold that past condensations of this session suggest, or `None` if they suggest none.

        With `settings.condensation.thresholds.adaptive`, the memory follows it by itself.

        Args:
            profile: A name of `thresholds.profiles`. With `None`, the global threshold.
        """
        runtime, ref = self.core.checked, self.core.ref
        return advised(runtime, ref, profile, track=self.core.only_track) if ref is not None else None

    asuggest_threshold = off_loop_twin(suggest_threshold)
