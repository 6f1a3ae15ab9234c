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
from langchain_tiered_memory.sessions.record_verbs import SessionCore, refuse_whole_session
from langchain_tiered_memory.types.arguments import Count, Name, Tool  # noqa: TC001
from langchain_tiered_memory.types.contexts import Context  # noqa: TC001
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
