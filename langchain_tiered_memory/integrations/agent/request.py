"""Reads a request of `create_agent`: whose it is, what it sends besides messages, and what others changed in it.

A middleware that also summarises is recognised by what it leaves in a request or a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.config import get_config

from langchain_tiered_memory.errors import InvalidInputError, warn_caller
from langchain_tiered_memory.events import EventName

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ModelRequest
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.integrations.agent.called_models import CalledModels
    from langchain_tiered_memory.integrations.graph.tracks import Place
    from langchain_tiered_memory.models.window_budget import ModelProfile
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.arguments import Scope

_EVENT_KEY = "_summarization_event"
"""Where deepagents keeps what it summarised: in the state, while only the request has the summary."""
_WARNING = (
    "a SummarizationMiddleware works beside TieredMemoryMiddleware: the memory can no longer show what it takes out of "
    "a request or the state, and you pay for every summary twice. Leave it out of create_agent. create_deep_agent has "
    "its own: replace it by passing TieredMemoryMiddleware(memory, name='SummarizationMiddleware')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChanges:
    """What surrounding middlewares changed only in the request. It is theirs, and is not remembered."""

    before: tuple[BaseMessage, ...] = ()
    """Messages that are not in the state, before its last one."""
    behind: tuple[BaseMessage, ...] = ()
    """Messages that are not in the state, after its last one."""
    edits: Mapping[str, BaseMessage] = field(default_factory=dict)
    """Messages of the state in the request's wording, by id."""
    left_out: frozenset[str] = frozenset()
    """Ids of messages of the state that are not in the request."""

    @property
    def any(self) -> bool:
        """Whether something was added or reworded."""
        return bool(self.before or self.behind or self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How an agent's requests are assembled."""

    max_tokens: int | None
    view: str
    profile: str | None
    recall: bool
    project: tuple[str, ...]
    project_tokens: int
    track: str | None
    scope: Scope | None
    """What its contexts may show of the session. `None`: its place in the graph decides."""
    cache_hints: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the flow sees it."""

    request: ModelRequest[Any]
    config: RunnableConfig
    """The config of the running step."""
    choices: Choices
    place: Place
    held: Sequence[BaseMessage]
    """The messages of the state."""
    changes: ViewChanges
    tools: Sequence[Any]
    """Everything that it sends as schemas."""
    model: ModelProfile
    """What the request's model says about itself."""
    called: CalledModels
    """The models that were really called for it."""
    alone: bool = False
    """Whether the messages are a separate conversation, which sees nothing of other tracks."""

    def under_ids(self, held: Sequence[BaseMessage], known: Sequence[BaseMessage]) -> Asked:
        """The same with `known` instead of the state's messages `held`, one for one."""
        renamed = {str(old.id): str(new.id) for old, new in zip(held, known, strict=True)}
        edits = {renamed.get(key, key): edit for key, edit in self.changes.edits.items()}
        left_out = frozenset(renamed.get(key, key) for key in self.changes.left_out)
        return replace(self, held=tuple(known), changes=replace(self.changes, edits=edits, left_out=left_out))


def changes_of(held: Sequence[BaseMessage], requested: Sequence[BaseMessage]) -> ViewChanges:
    """How the messages of a request differ from those in the state.

    A missing message was left out on purpose, for instance by a filter: LangChain itself leaves nothing out. Results
    that LangChain made up for calls it could not read are ignored, because the memory answers such calls itself.
    """
    if requested is held or (
        all(one is other for one, other in zip(requested, held, strict=False)) and (len(requested) == len(held))
    ):
        return ViewChanges()
    meant = _meant(held, requested)
    last = max(meant, default=-1)
    before: list[BaseMessage] = []
    behind: list[BaseMessage] = []
    edits: dict[str, BaseMessage] = {}
    for place, message in enumerate(requested):
        held_one = meant.get(place)
        if held_one is None:
            if not isinstance(message, ToolMessage):
                (behind if place > last else before).append(message)
        elif message is not held_one and message.model_copy(update={"id": held_one.id}) != held_one:
            edits[str(held_one.id)] = message.model_copy(update={"id": held_one.id})
    there = {one.id for one in meant.values()}
    left_out = frozenset(one.id for one in held if one.id and one.id not in there)
    return ViewChanges(before=tuple(before), behind=tuple(behind), edits=edits, left_out=left_out)


def _meant(held: Sequence[BaseMessage], requested: Sequence[BaseMessage]) -> dict[int, BaseMessage]:
    """The message of the state at each place in the request, reworded or not.

    A rebuilt message may have lost its id. If it counted as an addition, it would appear twice, once with the words
    that a middleware wanted to remove.
    """
    order = {message.id: number for number, message in enumerate(held) if message.id}
    meant = {place: held[order[one.id]] for place, one in enumerate(requested) if one.id in order}
    present = {one.id for one in meant.values()}
    unnamed = [place for place, one in enumerate(requested) if not one.id]
    free: dict[tuple[str, ...], list[BaseMessage]] = {}
    for one in reversed(held) if unnamed else ():
        if one.id in order and one.id not in present:
            free.setdefault(_words(one), []).append(one)
    for place in unnamed if free else ():
        same = free.get(_words(requested[place]))
        if same:
            meant[place] = same.pop()
    present = {one.id for one in meant.values()}
    missing = [one for one in held if one.id in order and one.id not in present]
    unnamed = [place for place in unnamed if place not in meant]
    if not missing or len(unnamed) < len(missing):
        return meant  # some were left out, so which is which cannot be told
    for places in (unnamed[: len(missing)], unnamed[-len(missing) :]):
        pairs = dict(zip(places, missing, strict=True))
        numbers = [order[str(one.id)] for _, one in sorted((meant | pairs).items(), key=itemgetter(0))]
        if numbers == sorted(numbers) and all(requested[place].type == one.type for place, one in pairs.items()):
            return meant | pairs
    return meant


def _words(message: BaseMessage) -> tuple[str, ...]:
    said = (message.content, getattr(message, "tool_calls", None), getattr(message, "tool_call_id", None))
    return (message.type, *map(repr, said))


def schemas_of(tools: Sequence[Any], response_format: object) -> list[Any]:
    """Everything that a request sends as schemas: its tools, and those of its structured answer."""
    found = list(tools)
    specs = getattr(response_format, "schema_specs", None)
    if specs is None:
        spec = getattr(response_format, "schema_spec", None)
        specs = [spec] if spec is not None else []
    if specs:
        found += [
            {"name": spec.name, "description": spec.description or "", "parameters": spec.json_schema} for spec in specs
        ]
    elif response_format is not None:
        schema = getattr(response_format, "schema", response_format)
        if isinstance(schema, type | Mapping):
            found.append(schema)
    return found


def running_config() -> RunnableConfig:
    """The config of the running step."""
    try:
        return get_config()
    except RuntimeError as error:
        msg = "the middleware was called outside of a graph: pass it to create_agent(middleware=[...])"
        raise InvalidInputError(msg) from error


def is_summary(message: BaseMessage) -> bool:
    """Whether LangChain's or deepagents' `SummarizationMiddleware` wrote this message."""
    return message.additional_kwargs.get("lc_source") == "summarization"


def warn_of_summaries(
    runtime: Runtime, session_id: str, state: Mapping[str, Any], *messages: Iterable[BaseMessage]
) -> None:
    """Report once, as a Python warning and as an event, that another middleware summarises."""
    is_summarised = state.get(_EVENT_KEY) or any(is_summary(one) for some in messages for one in some)
    if is_summarised and runtime.view_cache.first_time("second_summarizer"):
        warn_caller(_WARNING, UserWarning)
        runtime.report(EventName.SECOND_SUMMARIZER, _WARNING, session_id=session_id)
