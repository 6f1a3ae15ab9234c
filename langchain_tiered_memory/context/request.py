"""A request for a context, and what of it stays the same at each attempt to assemble it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs, Library
from langchain_tiered_memory.context.budget.allocation import BudgetAllocation, split
from langchain_tiered_memory.context.compaction.proposals import ViewQuestion
from langchain_tiered_memory.context.layout import system_message
from langchain_tiered_memory.context.required_messages import RequiredMessages, read_required
from langchain_tiered_memory.context.said import Said, said_last
from langchain_tiered_memory.context.sections.registry import ChosenSections
from langchain_tiered_memory.context.view.rendered_view import plan_name
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS, Calibration

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.models.window_budget import Budget, ModelProfile
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.arguments import Scope
    from langchain_tiered_memory.types.records import SessionRef

_ANY = 2**62
"""Behind every message."""
_FOREGROUND_SECONDS = 30.0
"""How long a view that does not fit waits for its summaries where no worker makes them in the background."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a caller asks for."""

    track: str
    query: str | None
    """`None`: the last user message asks; blank: nothing does."""
    max_tokens: int | None
    """`None`: as the settings and the model's window say."""
    system: str | BaseMessage | None
    tools: Sequence[Any]
    model: ModelProfile
    view: str
    profile: str | None = None
    """Whose threshold counts; the model's name where it is not given."""
    branch: tuple[str, ...] | None = None
    """Ids of the messages on this branch; `None`: all are."""
    off: frozenset[int] | None = None
    """The same as numbers of the messages that are *not* on it, where somebody has these."""
    alone: bool = False
    """Whether other tracks are not shown: the messages are a conversation of their own."""
    user: str | None = None
    """Who asks, where the handle says so: only then may anything of other sessions be shown."""
    sight: Scope | None = None
    """What else of the session is shown, where other tracks are not: a part of the parent's."""
    langgraph_checkpoint_id: str | None = None
    """What LangGraph saved of the run, to be named in a checkpoint that this request brings about."""
    complete: bool = False
    """Whether it is sent as it is: then the assistant does not have the last word."""
    reworded: frozenset[str] = frozenset()
    """Ids of messages whose words the caller changes before they are sent: nothing is said of what these are."""

    @property
    def asks(self) -> bool:
        """Whether the caller names what is looked up, in the place of the last user message."""
        return bool((self.query or "").strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInputs:
    """What is the same at each attempt of one request."""

    system: BaseMessage | None
    fixed: int
    """Raw tokens of system prompt and tool schemas."""
    ratio: float
    required: RequiredMessages
    query: str
    off: frozenset[int]
    works_on_files: bool
    """Whether this track is an agent's run that touched files."""
    touches_files: bool
    """Whether a file was read or written among the newest messages, be it only once."""
    name: str
    """Of the view's plan."""
    said: Said = field(default_factory=Said)
    """What recall may take beside what the user said last."""
    sections: ChosenSections = field(default_factory=ChosenSections)
    """What a user registered."""
    elsewhere: Hashable = None
    """How the user's other sessions stand, where a section tells of them: another one when what they say may not be
    shown any more as it was."""

    @property
    def has_query(self) -> bool:
        """Whether something is asked."""
        return bool(self.query.strip())

    def _recall_share(self, most: float | None) -> float | None:
        """Of the budget, for recall: beside work on files no more than what answers the user's words, or `most`."""
        share = self.said.share
        return share if most is None or share is None else min(max(most, self.said.answers), share)

    def allocation(self, runtime: Runtime, request: Request, budget: Budget, ratio: float) -> BudgetAllocation:
        """The split of the budget for a ratio of billed to raw tokens."""
        at_work = self.works_on_files and request.query is None  # what a caller asks for has all of its room
        most = runtime.settings.files.recall_share if at_work else None
        return split(
            budget.max_tokens,
            fixed=self.fixed,
            ratio=ratio,
            has_query=self.has_query,
            own_query=request.asks,
            view="recall" if request.view == "recall" else "default",
            settings=runtime.settings.context,
            recall_share=self._recall_share(most),
            recall_most=most,
            facts_share=runtime.settings.files.facts_share if self.works_on_files else None,
            files_share=runtime.settings.files.share if runtime.settings.files.enabled else 0.0,
            sections_share=self.sections.share if request.view != "minimal" else 0.0,
            replaced=self.sections.replaced,
        )


def with_learnt_window(runtime: Runtime, told: ModelProfile) -> ModelProfile:
    """What a model tells of itself, and what its refusals told."""
    if told.name is None:
        return told
    learned = runtime.store.windows.read(told.name)
    return replace(told, learned=learned)


def request_inputs_of(
    runtime: Runtime, ref: SessionRef | None, request: Request, told: ModelProfile, budget: Budget
) -> RequestInputs:
    """Read what is the same at each attempt."""
    calibration = _calibration(runtime, told.name)
    system = system_message(request.system)
    fixed = PRIMING_TOKENS + runtime.counter.count_tools(request.tools)
    fixed += runtime.counter.count_message(system) if system is not None else 0
    off = request.off or frozenset[int]()
    if ref is not None and request.branch is not None:
        off = runtime.store.transcript.off_branch(ref, request.branch, track=request.track)
    required = (
        read_required(runtime, ref, request.track, off=off, alone=request.alone)
        if ref is not None
        else RequiredMessages()
    )
    query = required.last_user_text if request.query is None else request.query
    works = touches = False
    if ref is not None and runtime.settings.files.enabled:
        busy = runtime.settings.files
        touched = runtime.store.files.worked_on(ref, track=request.track, before=_ANY, limit=busy.busy_messages)
        since = required.last_seq - busy.busy_among
        works = len(touched) == busy.busy_messages and touched[-1] > since
        touches = bool(touched) and touched[0] > since
    name = plan_name(
        request.view,
        request.track,
        max_tokens=budget.max_tokens,
        has_query=bool(query.strip()),
        own_query=request.asks,
        model=told.name,
        settings=runtime.settings.context,
        off=off,
        alone=request.alone,
    )
    said = Said()
    looks_up = request.query is None and "semantic_results" not in runtime.sections.chosen.replaced
    if ref is not None and looks_up and request.view not in ("recall", "minimal"):
        said = said_last(
            runtime, ref, name, required, total=budget.max_tokens, track=request.track if request.alone else None
        )
    chosen = runtime.sections.chosen
    crosses = request.user is not None and any(getattr(one, "crosses_sessions", False) for one in chosen.own)
    return RequestInputs(
        system=system,
        fixed=fixed,
        ratio=calibration.ratio,
        required=required,
        query=query,
        off=off,
        works_on_files=works,
        touches_files=touches,
        name=name,
        said=said,
        sections=chosen,
        elsewhere=runtime.store.across.stamp(str(request.user), besides=ref.session_id) if crosses and ref else None,
    )


def question_of(runtime: Runtime, request: Request, budget: Budget, request_inputs: RequestInputs) -> ViewQuestion:
    """What the guard is asked about this request's view."""
    settings = runtime.settings
    seconds = settings.condensation.foreground_seconds
    if seconds is None:
        seconds = 0.0 if settings.tree.background else _FOREGROUND_SECONDS
    return ViewQuestion(
        name=request_inputs.name,
        track=request.track,
        window=budget.window,
        profile=request.profile or request.model.name,
        ratio=request_inputs.ratio,
        foreground_seconds=seconds,
        look=settings.context.views.get(request.view),
        minimal=request.view == "minimal",
        langgraph_checkpoint_id=request.langgraph_checkpoint_id,
    )


def inputs_maker(
    runtime: Runtime, ref: SessionRef, request: Request, budget: Budget, request_inputs: RequestInputs, *, margin: int
) -> Callable[[float], AssemblyInputs]:
    """Makes the inputs of an assembly for a ratio of billed to raw tokens; all of them share one library."""
    library = Library()

    def inputs_for(ratio: float) -> AssemblyInputs:
        allocation = request_inputs.allocation(runtime, request, budget, ratio)
        return AssemblyInputs(
            runtime=runtime,
            ref=ref,
            allocation=allocation,
            required=request_inputs.required,
            track=request.track,
            room=allocation.hard - allocation.fixed - margin,
            ratio=ratio,
            library=library,
            off=request_inputs.off,
            alone=request.alone,
            provider=request.model.provider,
            works_on_files=request_inputs.works_on_files,
            touches_files=request_inputs.touches_files,
            look=runtime.settings.context.views.get(request.view),
            reworded=request.reworded,
        )

    return inputs_for


def _calibration(runtime: Runtime, model: str | None) -> Calibration:
    if model is None:
        return Calibration()
    known = runtime.store.plans.calibration(model, runtime.counter.fingerprint)
    return Calibration(ratio=known[0], samples=known[1]) if known is not None else Calibration()
