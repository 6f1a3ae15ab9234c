"""A request for a context, and what of it stays the same at each attempt to assemble it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs, Library, ViewQuestion
from langchain_tiered_memory.context.layout import system_message
from langchain_tiered_memory.context.mode import read_mode
from langchain_tiered_memory.context.policy import Rooms, resolved
from langchain_tiered_memory.context.recall_budget import RecallBudget, recall_budget_of
from langchain_tiered_memory.context.required_messages import RequiredMessages, read_required
from langchain_tiered_memory.context.sections.registry import ChosenSections
from langchain_tiered_memory.context.view.rendered_view import plan_name
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS, Calibration

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.models.window_budget import Budget, ModelProfile
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.arguments import Scope
    from langchain_tiered_memory.types.policies import Mode
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
    mode: Mode
    """What the request is; whether it is in a tool loop is known when its view is."""
    name: str
    """Of the view's plan."""
    recall_budget: RecallBudget = field(default_factory=RecallBudget)
    """What recall may take beside what the user said last."""
    sections: ChosenSections = field(default_factory=ChosenSections)
    """What a user registered."""
    elsewhere: Hashable = None
    """How the user's other sessions stand, where a section tells of them: another one when what they say may not be
    shown any more as it was."""

    def rooms(self, runtime: Runtime, request: Request, budget: Budget, ratio: float) -> Rooms:
        """The policy resolved for a ratio of billed to raw tokens."""
        return resolved(
            budget.max_tokens,
            fixed=self.fixed,
            ratio=ratio,
            mode=self.mode,
            settings=runtime.settings,
            given=self.recall_budget,
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
    files, touched = runtime.settings.files, list[int]()
    if ref is not None and files.enabled:
        touched = list(runtime.store.files.worked_on(ref, track=request.track, before=_ANY, limit=files.busy_messages))
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
    said = RecallBudget()
    looks_up = request.query is None and "semantic_results" not in runtime.sections.chosen.replaced
    if ref is not None and looks_up and request.view not in ("recall", "minimal"):
        said = recall_budget_of(
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
        mode=read_mode(
            request,
            query=query,
            touched=touched,
            last_seq=required.last_seq,
            asks=said.share is not None and said.stands,
            files=files,
        ),
        name=name,
        recall_budget=said,
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
        mode=request_inputs.mode,
        langgraph_checkpoint_id=request.langgraph_checkpoint_id,
    )


def inputs_maker(
    runtime: Runtime, ref: SessionRef, request: Request, budget: Budget, request_inputs: RequestInputs, *, margin: int
) -> Callable[[float], AssemblyInputs]:
    """Makes the inputs of an assembly for a ratio of billed to raw tokens; all of them share one library."""
    library = Library()

    def inputs_for(ratio: float) -> AssemblyInputs:
        rooms = request_inputs.rooms(runtime, request, budget, ratio)
        return AssemblyInputs(
            runtime=runtime,
            ref=ref,
            rooms=rooms,
            required=request_inputs.required,
            track=request.track,
            room=rooms.hard - rooms.fixed - margin,
            ratio=ratio,
            library=library,
            off=request_inputs.off,
            alone=request.alone,
            provider=request.model.provider,
            look=runtime.settings.context.views.get(request.view),
            reworded=request.reworded,
        )

    return inputs_for


def _calibration(runtime: Runtime, model: str | None) -> Calibration:
    if model is None:
        return Calibration()
    known = runtime.store.plans.calibration(model, runtime.counter.fingerprint)
    return Calibration(ratio=known[0], samples=known[1]) if known is not None else Calibration()
