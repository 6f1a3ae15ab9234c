"""A request for a context, and `Inputs`: all that is read for it once, with the policy by which it is filled."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.pieces import system_message
from langchain_tiered_memory.context.policy import read_mode, resolved
from langchain_tiered_memory.context.recall_budget import RecallBudget, recall_budget_of
from langchain_tiered_memory.context.required_messages import RequiredMessages, read_required
from langchain_tiered_memory.messages.content_blocks import name_of_tool
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS
from langchain_tiered_memory.models.window_budget import budget_of
from langchain_tiered_memory.types.records import SessionRef

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.context.pieces import Piece
    from langchain_tiered_memory.context.sections.registry import ChosenSections
    from langchain_tiered_memory.models.window_budget import Budget, ModelProfile
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import Settings, ViewSettings
    from langchain_tiered_memory.types.arguments import Scope
    from langchain_tiered_memory.types.contexts import Mode, ViewPolicy
    from langchain_tiered_memory.types.outcomes import Window
    from langchain_tiered_memory.types.records import Entry, Summary
    from langchain_tiered_memory.types.runs import FileAccess

_UNKNOWN = -1
"""Key of a session that has no message yet."""
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

    @property
    def only_track(self) -> str | None:
        """The one track that is shown; `None` where all are."""
        return self.track if self.alone else None


@dataclass(slots=True, kw_only=True)
class Library:
    """What was read or rendered during one request, so that nothing is twice."""

    summaries: dict[str, Summary] = field(default_factory=dict)
    quoted: dict[int, Entry | None] = field(default_factory=dict)
    """Messages by `seq` that a view quotes or shows; `None`: there is none any more."""
    masks: dict[tuple[int, int], Piece] = field(default_factory=dict)
    """Masked tool outputs by `seq` and the tokens that they keep: each attempt at a view shows most of them again."""
    touched: list[FileAccess] | None = None
    """The files that a list of files may name."""

    def add(self, found: Iterable[Summary]) -> list[Summary]:
        """Keep what was read."""
        kept = list(found)
        self.summaries |= {one.id: one for one in kept}
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What every part of a context is made from: the request, what was read for it, and its policy."""

    runtime: Runtime
    ref: SessionRef
    request: Request
    budget: Budget
    system: BaseMessage | None
    ratio: float
    """Billed per raw token: as calibration knows it, or as it was when the plan was made (`at`)."""
    required: RequiredMessages
    query: str
    off: frozenset[int]
    """`seq`s that are not on this branch."""
    name: str
    """Under which the view's plan is kept."""
    recall_budget: RecallBudget
    """What recall may take beside what the user said last."""
    sections: ChosenSections
    """What a user registered."""
    policy: ViewPolicy
    elsewhere: Hashable = None
    """How the user's other sessions stand, where a section tells of them: another one when what they say may not be
    shown any more as it was."""
    library: Library = field(default_factory=Library)
    margin: int = 0
    """Raw tokens that the view leaves free: for what repairs cost, and for the parent's track."""
    fill: int | None = None
    """Raw tokens that a condensation may fill the view to with file work; `None`: as the settings' share says."""
    forced: bool = False
    """Condense whether or not the view is full, and wait for nobody: for a preview."""

    @property
    def mode(self) -> Mode:
        """What the request is; whether it is in a tool loop is known when its view is."""
        return self.policy.mode

    @property
    def is_new(self) -> bool:
        """Whether the session has no message yet."""
        return self.ref.key == _UNKNOWN

    @property
    def has_view(self) -> bool:
        """Whether there is a view with a plan: not where recall alone is asked for."""
        return not self.is_new and self.request.view != "recall"

    @property
    def settings(self) -> Settings:
        """Of the memory."""
        return self.runtime.settings

    @property
    def counter(self) -> TokenCounter:
        """Of the memory."""
        return self.runtime.counter

    @property
    def window(self) -> Window:
        """Of the model."""
        return self.budget.window

    @property
    def track(self) -> str:
        """Which is shown."""
        return self.request.track

    @property
    def profile(self) -> str | None:
        """Name of the model, or what the request calls its profile: it may have a threshold of its own."""
        return self.request.profile or self.request.model.name

    @property
    def expands(self) -> bool:
        """Whether who reads the context has the tool `expand`: only then does anything point to it."""
        return any(name_of_tool(one) == "expand" for one in self.request.tools)

    @property
    def searches(self) -> bool:
        """Whether it has the tool `recall`."""
        return any(name_of_tool(one) == "recall" for one in self.request.tools)

    @property
    def look(self) -> ViewSettings | None:
        """A view of the user's own; `None` for the default one."""
        return self.settings.context.views.get(self.request.view)

    @property
    def slides_only(self) -> bool:
        """Whether no summary may take the place of messages: then the window slides as soon as a view is full."""
        return not self.settings.tree.enabled or self.settings.condensation.strategies.primary == "truncation"

    @property
    def says_it(self) -> bool:
        """Whether it is the user's last message that is looked up, and not a question of the caller's own."""
        return self.request.query is None and self.mode.looks_up

    @property
    def foreground_seconds(self) -> float:
        """How long missing summaries may be waited for when the view does not fit."""
        seconds = self.settings.condensation.foreground_seconds
        if seconds is None:
            seconds = 0.0 if self.settings.tree.background else _FOREGROUND_SECONDS
        return 0.0 if self.forced else seconds

    @property
    def room(self) -> int:
        """Raw tokens for goal, pins, cover and recent messages together."""
        return self.policy.hard - self.policy.fixed - self.margin

    def entries(
        self, *, limit: int, after: int | None = None, up_to: int | None = None, newest_first: bool = True
    ) -> list[Entry]:
        """Messages of the track that are on this branch."""
        read, most = self.runtime.store.transcript.entries, limit + len(self.off)
        found = read(self.ref, track=self.track, after=after, up_to=up_to, limit=most, newest_first=newest_first)
        return [entry for entry in found if entry.seq not in self.off][:limit]

    def summaries_with(self, summary_ids: Iterable[str]) -> dict[str, Summary]:
        """The summaries that were read, by id; with these, unless they are gone."""
        missing = [one for one in summary_ids if one not in self.library.summaries]
        if missing:
            self.library.add(self.runtime.store.tree.by_id(self.ref, missing))
        return self.library.summaries

    def billed(self, view_tokens: int) -> int:
        """Billed tokens of a request whose view takes so many raw ones: fixed part and recall's room besides."""
        return math.ceil((self.policy.fixed + view_tokens + self.policy.recall) * self.ratio)

    def raw_room(self, billed_tokens: int) -> int:
        """Raw tokens for the view in a request of so many billed ones."""
        return math.floor(billed_tokens / self.ratio) - self.policy.fixed - self.policy.recall

    def at(self, ratio: float) -> Inputs:
        """The same where a raw token is billed as `ratio`: all share one library."""
        return self if ratio == self.ratio else self.resolved(ratio=ratio, given=self.recall_budget)

    def resolved(self, *, ratio: float, given: RecallBudget) -> Inputs:
        """The same, billed as `ratio` and with what is `given` to recall."""
        most, fixed, mode, settings = self.budget.max_tokens, self.policy.fixed, self.mode, self.settings
        policy = resolved(
            most, fixed=fixed, ratio=ratio, mode=mode, settings=settings, given=given, sections=self.sections
        )
        return replace(self, ratio=ratio, recall_budget=given, policy=policy)

    def without_recall(self) -> Inputs:
        """The same with recall's room given to the view: a history that fits is shown whole. The rest is recall's."""
        return replace(self, policy=self.policy.without_recall())


def with_learnt_window(runtime: Runtime, told: ModelProfile) -> ModelProfile:
    """The model's profile, with the window that its refusals told, and what its answers told of its counting."""
    if told.name is None or told.is_looked_up:
        return told
    learned, ratio = runtime.store.windows.of_model(told.name, runtime.counter.fingerprint)
    return replace(told, learned=learned, ratio=ratio, is_looked_up=True)


def _plan_name(runtime: Runtime, request: Request, off: frozenset[int], *, max_tokens: int, query: str) -> str:
    """Under which name a view's plan is kept: one for each view, track, budget, model, branch and way of splitting."""
    alone, settings = ["alone"] if request.alone else [], runtime.settings.context.model_dump_json()
    chosen = repr((request.track, request.model.name, settings, sorted(off), *alone))
    digest = hashlib.sha256(chosen.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    looks_up = (
        bool(query.strip()) + request.asks
    )  # 0: nothing is; 1: what the user said; 2: a query of the caller's own
    # The essentials are chosen anew at each request, from the plan of the default view.
    return f"{'default' if request.view == 'minimal' else request.view}:{max_tokens}:{looks_up}:{digest}"


def read_inputs(runtime: Runtime, session_id: str, request: Request) -> Inputs:
    """Read what a request is made from. Where the session has no message yet, all of it is empty (`is_new`)."""
    found = runtime.store.transcript.find(session_id)
    ref = found if found is not None else SessionRef(key=_UNKNOWN, session_id=session_id)
    told = with_learnt_window(runtime, request.model)
    budget = budget_of(request.max_tokens, told, settings=runtime.settings)
    system = system_message(request.system)
    fixed = PRIMING_TOKENS + runtime.counter.count_tools(request.tools)
    fixed += runtime.counter.count_message(system) if system is not None else 0
    off, required = request.off or frozenset[int](), RequiredMessages()
    if found is not None:
        if request.branch is not None:
            off = runtime.store.transcript.off_branch(ref, request.branch, track=request.track)
        required = read_required(runtime, ref, request.track, off=off, alone=request.alone)
    query = required.last_user_text if request.query is None else request.query
    name = _plan_name(runtime, request, off, max_tokens=budget.max_tokens, query=query)
    chosen, given = runtime.sections.chosen, RecallBudget()
    looks_up = request.query is None and "semantic_results" not in chosen.replaced
    if found is not None and looks_up and request.view not in ("recall", "minimal"):
        given = recall_budget_of(runtime, ref, name, required, total=budget.max_tokens, track=request.only_track)
    crosses = request.user is not None and any(getattr(one, "crosses_sessions", False) for one in chosen.own)
    mode = read_mode(
        request,
        query=query,
        touched=required.worked_on,
        last_seq=required.last_seq,
        asks=given.share is not None and given.stands,
    )
    most, settings = budget.max_tokens, runtime.settings
    policy = resolved(most, fixed=fixed, ratio=told.ratio, mode=mode, settings=settings, given=given, sections=chosen)
    return Inputs(
        runtime=runtime,
        ref=ref,
        request=request,
        budget=budget,
        system=system,
        ratio=told.ratio,
        required=required,
        query=query,
        off=off,
        name=name,
        recall_budget=given,
        sections=chosen,
        policy=policy,
        elsewhere=runtime.store.across.stamp(str(request.user), besides=session_id) if crosses and found else None,
    )
