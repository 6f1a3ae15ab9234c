"""What a caller asks for, and what of it is the same at each attempt to put its context together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.calibration import Calibration
from langchain_tiered_memory.decisions.counting import PRIMING_TOKENS
from langchain_tiered_memory.decisions.request import system_message
from langchain_tiered_memory.decisions.rooms import Rooms, split
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.desk import Desk, Library
from langchain_tiered_memory.flows.musts import Musts, read_musts
from langchain_tiered_memory.flows.proposals import ViewQuestion
from langchain_tiered_memory.flows.showing import plan_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.decisions.budget import Budget, Told
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import SessionRef

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
    model: Told
    view: str
    profile: str | None = None
    """Whose threshold counts; the model's name where it is not given."""
    branch: tuple[str, ...] | None = None
    """Ids of the messages on this branch; `None`: all are."""
    off: frozenset[int] | None = None
    """The same as numbers of the messages that are *not* on it, where somebody has these."""
    langgraph_checkpoint_id: str | None = None
    """What LangGraph saved of the run, to be named in a checkpoint that this request brings about."""
    complete: bool = False
    """Whether it is sent as it is: then the assistant does not have the last word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desks:
    """What is the same at each attempt of one request."""

    system: BaseMessage | None
    fixed: int
    """Raw tokens of system prompt and tool schemas."""
    ratio: float
    musts: Musts
    query: str
    off: frozenset[int]
    works_on_files: bool
    """Whether this track is an agent's run that touched files."""
    name: str
    """Of the view's plan."""

    @property
    def has_query(self) -> bool:
        """Whether something is asked."""
        return bool(self.query.strip())

    def rooms(self, house: House, request: Request, budget: Budget, ratio: float) -> Rooms:
        """The split of the budget for a ratio of billed to raw tokens."""
        return split(
            budget.max_tokens,
            fixed=self.fixed,
            ratio=ratio,
            has_query=self.has_query,
            view="recall" if request.view == "recall" else "default",
            settings=house.settings.context,
            recall_share=house.settings.files.recall_share if self.works_on_files else None,
            files_share=house.settings.files.share if house.settings.files.enabled else 0.0,
        )


def with_learnt_window(house: House, told: Told) -> Flow[Told]:
    """What a model tells of itself, and what its refusals told."""
    if told.name is None:
        return told
    learned = yield from do(house.store.windows.read, told.name)
    return replace(told, learned=learned)


def desks_of(house: House, ref: SessionRef | None, request: Request, told: Told, budget: Budget) -> Flow[Desks]:
    """Read what is the same at each attempt."""
    calibration = yield from _calibration(house, told.name)
    system = system_message(request.system)
    fixed = PRIMING_TOKENS + house.counter.count_tools(request.tools)
    fixed += house.counter.count_message(system) if system is not None else 0
    off = request.off or frozenset[int]()
    if ref is not None and request.branch is not None:
        off = yield from do(house.store.transcript.off_branch, ref, request.branch, track=request.track)
    musts = (yield from read_musts(house, ref, request.track, off=off)) if ref is not None else Musts()
    query = musts.last_user_text if request.query is None else request.query
    works = False
    if ref is not None and house.settings.files.enabled:
        busy = house.settings.files
        touched = yield from do(
            house.store.files.worked_on, ref, track=request.track, before=_ANY, limit=busy.busy_messages
        )
        works = len(touched) == busy.busy_messages and touched[-1] > musts.last_seq - busy.busy_among
    name = plan_name(
        request.view,
        request.track,
        max_tokens=budget.max_tokens,
        has_query=bool(query.strip()),
        model=told.name,
        settings=house.settings.context,
        off=off,
    )
    return Desks(
        system=system,
        fixed=fixed,
        ratio=calibration.ratio,
        musts=musts,
        query=query,
        off=off,
        works_on_files=works,
        name=name,
    )


def question_of(house: House, request: Request, budget: Budget, desks: Desks) -> ViewQuestion:
    """What the guard is asked about this request's view."""
    settings = house.settings
    seconds = settings.condensation.foreground_seconds
    if seconds is None:
        seconds = 0.0 if settings.tree.background else _FOREGROUND_SECONDS
    return ViewQuestion(
        name=desks.name,
        track=request.track,
        window=budget.window,
        profile=request.profile or request.model.name,
        ratio=desks.ratio,
        foreground_seconds=seconds,
        look=settings.context.views.get(request.view),
        minimal=request.view == "minimal",
        langgraph_checkpoint_id=request.langgraph_checkpoint_id,
    )


def desk_maker(
    house: House, ref: SessionRef, request: Request, budget: Budget, desks: Desks, *, margin: int
) -> Callable[[float], Desk]:
    """Makes the desk of a request for a ratio of billed to raw tokens; all of them share one library."""
    library = Library()

    def desk_for(ratio: float) -> Desk:
        rooms = desks.rooms(house, request, budget, ratio)
        return Desk(
            house=house,
            ref=ref,
            rooms=rooms,
            musts=desks.musts,
            track=request.track,
            room=rooms.hard - rooms.fixed - margin,
            ratio=ratio,
            library=library,
            off=desks.off,
            works_on_files=desks.works_on_files,
            look=house.settings.context.views.get(request.view),
        )

    return desk_for


def _calibration(house: House, model: str | None) -> Flow[Calibration]:
    if model is None:
        return Calibration()
    known = yield from do(house.store.plans.calibration, model, house.counter.fingerprint)
    return Calibration(ratio=known[0], samples=known[1]) if known is not None else Calibration()
