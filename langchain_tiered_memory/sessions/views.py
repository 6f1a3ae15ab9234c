"""The verbs of a session that have to do with views: contexts, and what the guard decided about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.flows.asking import Flow, arun, do, run
from langchain_tiered_memory.flows.assemble import assemble, preview
from langchain_tiered_memory.flows.ledgers import costs, diff, dropped, outcomes, undo
from langchain_tiered_memory.flows.requests import Request
from langchain_tiered_memory.flows.resolving import advised
from langchain_tiered_memory.sessions.core import SessionCore
from langchain_tiered_memory.sessions.input_checks import check_context_input
from langchain_tiered_memory.sessions.told import told_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.contexts import Context
    from langchain_tiered_memory.outcomes import CostLedger, LedgerRow, Outcome, ThresholdAdvice, ViewDiff

OWN_VIEWS = ("default", "recall", "minimal")
"""Views that need no setting."""


class ViewVerbs(SessionCore):
    """Contexts, and the decisions behind them."""

    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Any] = (),
        model: str | BaseChatModel | None = None,
        view: str = "default",
        profile: str | None = None,
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
            self._own(
                self._context(
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
        )

    async def acontext(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Any] = (),
        model: str | BaseChatModel | None = None,
        view: str = "default",
        profile: str | None = None,
        branch: Sequence[str] | None = None,
    ) -> Context:
        """See `context`."""
        return await arun(
            self._own(
                self._context(
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
        )

    def preview(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Any] = (),
        model: str | BaseChatModel | None = None,
        view: str = "default",
    ) -> ViewDiff:
        """What a condensation of a view would change now, due or not. Nothing is written, and no model is called.

        Raises:
            NotFoundError: when the session has no message yet.
            InvalidInputError: for a view that has nothing to condense, such as `recall`.
        """
        return run(
            self._own(self._preview(query, max_tokens=max_tokens, system=system, tools=tools, model=model, view=view))
        )

    async def apreview(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Any] = (),
        model: str | BaseChatModel | None = None,
        view: str = "default",
    ) -> ViewDiff:
        """See `preview`."""
        return await arun(
            self._own(self._preview(query, max_tokens=max_tokens, system=system, tools=tools, model=model, view=view))
        )

    def outcomes(self, *, limit: int = 50) -> list[Outcome]:
        """What became of past condensations of this session's views, newest first."""
        return run(self._own(outcomes(self._house, self.session_id, limit=limit)))

    async def aoutcomes(self, *, limit: int = 50) -> list[Outcome]:
        """See `outcomes`."""
        return await arun(self._own(outcomes(self._house, self.session_id, limit=limit)))

    def ledger(self) -> list[LedgerRow]:
        """What left the views of this session, and why, newest first. All of it is still in the transcript."""
        return run(self._own(dropped(self._house, self.session_id)))

    async def aledger(self) -> list[LedgerRow]:
        """See `ledger`."""
        return await arun(self._own(dropped(self._house, self.session_id)))

    def diff(self, outcome_id: str | None = None) -> ViewDiff:
        """What a condensation changed in its view: the last one, if none is named.

        Raises:
            NotFoundError: when there is none.
        """
        return run(self._own(diff(self._house, self.session_id, outcome_id)))

    async def adiff(self, outcome_id: str | None = None) -> ViewDiff:
        """See `diff`."""
        return await arun(self._own(diff(self._house, self.session_id, outcome_id)))

    def undo(self, outcome_id: str | None = None) -> Outcome:
        """Give a view back what it showed before a condensation: the last one, if none is named.

        It is condensed again only when it does not fit its budget. Summaries stay; nothing is made anew.

        Raises:
            NotFoundError: when there is nothing to undo.
            InvalidInputError: when the view shows something else by now.
        """
        return run(self._own(undo(self._house, self.session_id, outcome_id)))

    async def aundo(self, outcome_id: str | None = None) -> Outcome:
        """See `undo`."""
        return await arun(self._own(undo(self._house, self.session_id, outcome_id)))

    def costs(self) -> CostLedger:
        """What condensing this session cost, what it saved, and after how many calls it paid."""
        return run(self._own(costs(self._house, self.session_id)))

    async def acosts(self) -> CostLedger:
        """See `costs`."""
        return await arun(self._own(costs(self._house, self.session_id)))

    def suggest_threshold(self, profile: str | None = None) -> ThresholdAdvice | None:
        """The threshold that past condensations of this session speak for; `None` while they say nothing.

        It is followed by itself where `settings.condensation.thresholds.adaptive` is on.
        """
        return run(self._own(self._advice(profile)))

    async def asuggest_threshold(self, profile: str | None = None) -> ThresholdAdvice | None:
        """See `suggest_threshold`."""
        return await arun(self._own(self._advice(profile)))

    def _request(
        self,
        query: str | None,
        *,
        max_tokens: int | None,
        system: str | BaseMessage | None,
        tools: Sequence[Any],
        model: str | BaseChatModel | None,
        view: str,
        profile: str | None = None,
        branch: Sequence[str] | None = None,
        off: frozenset[int] | None = None,
        langgraph_checkpoint_id: str | None = None,
        complete: bool = False,
    ) -> Request:
        check_context_input(
            query=query, max_tokens=max_tokens, system=system, tools=tools, branch=branch, profile=profile
        )
        known = (*OWN_VIEWS, *self._house.settings.context.views)
        if view not in known:
            msg = f"there is no view {view!r}: use one of {', '.join(map(repr, known))}, or add it to context.views"
            raise InvalidInputError(msg)
        return Request(
            track=self.track,
            query=query,
            max_tokens=max_tokens,
            system=system,
            tools=tuple(tools),
            model=told_of(model),
            view=view,
            profile=profile,
            branch=tuple(branch) if branch is not None else None,
            off=off,
            langgraph_checkpoint_id=langgraph_checkpoint_id,
            complete=complete,
        )

    def _context(self, query: str | None, **asked: Any) -> Flow[Context]:  # noqa: ANN401 - as `_request` takes them
        request = self._request(query, **asked)
        self._memory._greet(self.session_id)  # noqa: SLF001 - one face in several classes
        context = yield from assemble(self._house, self.session_id, request)
        self._memory._note_sent((self.session_id, self.track), context.raw_tokens)  # noqa: SLF001
        return context

    def _preview(self, query: str | None, **asked: Any) -> Flow[ViewDiff]:  # noqa: ANN401 - as `_request` takes them
        return (yield from preview(self._house, self.session_id, self._request(query, **asked)))

    def _advice(self, profile: str | None) -> Flow[ThresholdAdvice | None]:
        ref = yield from do(self._house.store.transcript.find, self.session_id)
        return (yield from advised(self._house, ref, profile)) if ref is not None else None
