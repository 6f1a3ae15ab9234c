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
    """What stands on a track or behind a summary, word for word, and the tracks of a session."""

    def messages(self) -> list[BaseMessage]:
        """The whole transcript of this track, as it was.

        Where `main` has none, and other tracks have, a Python warning and the event `messages_elsewhere` name them.
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
        """The stored messages of every track, in order: number, time, tokens, kind, pin, and what each says.

        With a scope they are its track's. A message that is damaged is left out, and told of as an event.

        Args:
            after: Only those with a higher number (`Entry.seq`): what came since.
            limit: The most to give; `None`: all.
        """
        store, ref = self.core.found()
        if ref is None:
            return []
        return store.transcript.entries(ref, track=self.core.only_track, after=after, limit=limit)

    aentries = off_loop_twin(entries)

    def tracks(self) -> list[str]:
        """The tracks of this session that have messages, in the order in which they began.

        `main` is the conversation itself; a sub-graph or sub-agent has a track that is named by its nodes.
        """
        store, ref = self.core.found()
        tracks = store.transcript.tracks(ref) if ref is not None else []
        return tracks if self.core.scope is None else [track for track in tracks if track == self.track]

    atracks = off_loop_twin(tracks)

    def reread(self, summary_id: str, *, query: str = "", max_tokens: Count = 2000) -> Detail:
        """The messages that a summary stands for, quoted within `max_tokens`, whatever its level.

        Args:
            summary_id: A summary's id or a message's, or how it begins, as for `expand`.
            query: What is asked: the messages that answer it come first. Empty: from the beginning on.
            max_tokens: Of the quotes and their frame together.

        Raises:
            NotFoundError: when the session has no such summary or message, or the handle's scope does not show it.
            InvalidInputError: when several ids begin so, or an argument cannot be used.
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
        """Put together what one model call gets.

        Args:
            query: What is asked; the last user message, if not given; `""` for nothing, which leaves recall out.
            max_tokens: Bounds the whole request, `system` and `tools` included; `settings.context.max_tokens` if not
                given, and never more than the model's window allows.
            system: The request's system prompt.
            tools: The request's tools, for their size.
            model: The model that is called, or its name: for what calibration learnt about it, and for its window.
            view: `default` for a conversation that goes on; `recall` gives nearly everything to the answer; `minimal`
                shows system prompt, current task, active file, last user message and last error; or the name of one
                of `settings.context.views`, such as `detailed` and `compact`.
            profile: Whose condensation threshold counts; the model's name, if not given.
            branch: Ids of the messages that are on this branch, where the conversation was forked: others, and
                summaries that stand for any of them, are not shown. Costs time that grows with the session.

        Returns:
            The messages, their account, and (`.guard`) what was decided to make them fit.

        Raises:
            BudgetError: when the budget cannot hold what must be shown; `ContextOverflowError` when the window
                overflowed and recovery was not possible either.
            CondensationError: when condensing failed, the view does not fit, and
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
        """What a condensation of a view would change now, due or not. Nothing is written, and no model is called.

        Args:
            query: What is asked; `None`: the last user message.
            max_tokens: The budget of the whole request, in tokens; `None`: `settings.context.max_tokens`.
            system: The system prompt of the call, for its size.
            tools: The tools of the call, for their size.
            model: The model of the call, or its name.
            view: As for `context`.

        Raises:
            NotFoundError: when the session has no message yet.
            InvalidInputError: for a view that has nothing to condense, such as `recall`.
        """
        return run(self.core.preview(query, max_tokens=max_tokens, system=system, tools=tools, model=model, view=view))

    apreview = flow_twin(preview, lambda self: self.core.preview)

    def window_use(self) -> WindowUse:
        """How large the contexts of this session were, section by section, oldest first.

        Of the last 2,000 that this process made: the database keeps nothing of it, and nothing is read here.
        """
        own = self.core.only_track
        return WindowUse(
            size for size in self.core.engine.contexts.of(self.session_id) if own is None or size.track == own
        )

    def outcomes(self, *, limit: Count = 50) -> list[Outcome]:
        """What became of past condensations of this session's views, newest first.

        Args:
            limit: The most to give.
        """
        return Outcomes(outcomes(self.core.checked, self.session_id, limit=limit, track=self.core.only_track))

    aoutcomes = off_loop_twin(outcomes)

    def ledger(self) -> list[LedgerRow]:
        """What left the views of this session, and why, newest first. All of it is still in the transcript."""
        return Ledger(dropped(self.core.checked, self.session_id, track=self.core.only_track))

    aledger = off_loop_twin(ledger)

    def diff(self, outcome_id: Name | None = None) -> ViewDiff:
        """What a condensation changed in its view.

        Args:
            outcome_id: Which one, by the id of its outcome; `None`: the last.

        Raises:
            NotFoundError: when there is none.
        """
        refuse_whole_session(self.core, "diff")
        return diff(self.core.checked, self.session_id, outcome_id)

    adiff = off_loop_twin(diff)

    def undo(self, outcome_id: Name | None = None) -> Outcome:
        """Give a view back what it showed before a condensation.

        It is condensed again only when it does not fit its budget. Summaries stay; nothing is made anew.

        Args:
            outcome_id: Which one, by the id of its outcome; `None`: the last.

        Raises:
            NotFoundError: when there is nothing to undo.
            InvalidInputError: when the view shows something else by now.
        """
        refuse_whole_session(self.core, "undo")
        return undo(self.core.checked, self.session_id, outcome_id)

    aundo = off_loop_twin(undo)

    def costs(self) -> CostLedger:
        """What condensing this session cost, what it saved, and after how many calls it paid."""
        return costs(self.core.checked, self.session_id, track=self.core.only_track)

    acosts = off_loop_twin(costs)

    def suggest_threshold(self, profile: Name | None = None) -> ThresholdAdvice | None:
        """The threshold that past condensations of this session speak for; `None` while they say nothing.

        It is followed by itself where `settings.condensation.thresholds.adaptive` is on.

        Args:
            profile: Whose threshold, as `thresholds.profiles` names them; `None`: the global one.
        """
        runtime, ref = self.core.checked, self.core.ref
        return advised(runtime, ref, profile, track=self.core.only_track) if ref is not None else None

    asuggest_threshold = off_loop_twin(suggest_threshold)
