"""What an agent's model is shown for one call: its messages are remembered, then a context is made and added to."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.request import with_learnt_window
from langchain_tiered_memory.driver import Flow, each_step
from langchain_tiered_memory.errors import BudgetError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.agent.called_models import Aside, CalledModels, aside_of, stepped
from langchain_tiered_memory.integrations.agent.request import ViewChanges, is_summarised, warn_of_summaries
from langchain_tiered_memory.integrations.graph.branches import named, off_branch
from langchain_tiered_memory.integrations.graph.client_resends import stored_of
from langchain_tiered_memory.integrations.graph.node_wiring import found_on
from langchain_tiered_memory.integrations.graph.tracks import Line, Place, line_of_agent, session_at
from langchain_tiered_memory.integrations.state import BranchRecord, branch_in
from langchain_tiered_memory.models.window_budget import ModelProfile, budget_of
from langchain_tiered_memory.sessions.last_request import epoch_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain.agents.middleware.types import ModelRequest
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.arguments import Scope
    from langchain_tiered_memory.types.contexts import Context

logger = logging.getLogger("langchain_tiered_memory")

MESSAGES_KEY = "messages"
"""The key of an agent's state that has its messages."""
_warned: set[str | None] = set()


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
    """What of the session its contexts may show; `None`: as its place in the graph says."""
    cache_hints: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the journey sees it."""

    request: ModelRequest[Any]
    choices: Choices
    place: Place
    held: Sequence[BaseMessage]
    """The messages of the state."""
    changes: ViewChanges
    tools: Sequence[Any]
    """All that it sends as schemas."""
    model: ModelProfile
    """What the request's model tells of itself."""
    called: CalledModels
    """Which models were really called for it."""
    alone: bool = False
    """Whether the messages are a conversation of their own, which is shown nothing of other tracks."""

    def under_ids(self, held: Sequence[BaseMessage], known: Sequence[BaseMessage]) -> Asked:
        """The same with `known` in the place of the state's messages `held`, one for one."""
        renamed = {str(old.id): str(new.id) for old, new in zip(held, known, strict=True)}
        edits = {renamed.get(key, key): edit for key, edit in self.changes.edits.items()}
        left_out = frozenset(renamed.get(key, key) for key in self.changes.left_out)
        return replace(self, held=tuple(known), changes=replace(self.changes, edits=edits, left_out=left_out))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A context, and all that is needed to make a smaller one."""

    session: Session
    asked: Asked
    """The request, with its messages under the ids of the transcript."""
    record: BranchRecord
    off: frozenset[int] | None
    """Numbers of messages that are on other branches, or left out of this request; `None` for none."""
    room: int
    """Tokens set aside for what is put beside the context."""
    aside: Aside
    """What earlier requests had besides."""
    learned: int | None
    """The window that refusals taught of the model before."""
    context: Context
    epoch: int | None = None
    """The session's, where the request is kept for condensing behind it."""


def prepared_for(memory: TieredMemory, asked: Asked) -> Flow[Prepared]:
    """Remember what is new of the state's messages, and make a context for them."""
    state, choices, changes = asked.request.state, asked.choices, asked.changes
    if is_summarised(state, asked.held, changes.before, changes.behind):
        warn_of_summaries(memory.core.runtime, asked.place.session_id)
    record = branch_in(state, MESSAGES_KEY)
    session, line, held = _placed(
        memory, asked.place, asked.held, record=record, track=choices.track, scope=choices.scope
    )
    journey = _on_track(session, held, asked, record=record, line=line)
    return (yield from each_step(journey, session.core.runtime.store.database.snapshot))


def kept(
    memory: TieredMemory,
    place: Place,
    messages: Sequence[BaseMessage],
    *,
    record: BranchRecord | None,
    track: str | None,
) -> BranchRecord | None:
    """Remember what is new of the state's messages where an agent ends; `None` where the database cannot take it now.

    Whatever it is, it is paid for and stands in the state: the next request writes it.
    """
    try:
        session, line, held = _placed(memory, place, messages, record=record, track=track)
        return found_on(session, place, line, held, record=record, messages_key=MESSAGES_KEY).remembered()
    except StorageError as error:
        memory.core.runtime.report(
            EventName.ANSWER_NOT_STORED, f"{type(error).__name__}: {error}", session_id=place.session_id
        )
        return None


def _placed(
    memory: TieredMemory,
    place: Place,
    messages: Sequence[BaseMessage],
    *,
    record: BranchRecord | None,
    track: str | None,
    scope: Scope | None = None,
) -> tuple[Session, Line, list[BaseMessage]]:
    held = named(messages)
    line = line_of_agent(memory, place, record, held, track=track)
    session = session_at(memory, place, track=line.track)
    session.core.begun_by, session.core.scope = line.begun_by, scope
    session.core.check_owner()
    return session, line, held


def _on_track(
    session: Session, held: list[BaseMessage], asked: Asked, *, record: BranchRecord | None, line: Line
) -> Flow[Prepared]:
    runtime = session.core.runtime
    found = found_on(session, asked.place, line, held, record=record, messages_key=MESSAGES_KEY)
    asked = asked.under_ids(held, found.messages)
    record = found.remembered()
    asked = replace(asked, alone=found.is_alone)
    off = off_branch(session, found.messages, record)
    if asked.changes.left_out:  # by other middlewares: for this request they are as if on another branch
        gone = stored_of(session, [one for one in asked.held if one.id in asked.changes.left_out])
        off = (off or frozenset()) | {entry.seq for entry in gone.values()}
    room = _room_aside(runtime, asked)
    told = with_learnt_window(runtime, asked.model)
    aside = aside_of(runtime, session, told.name)
    most = _most_tokens(runtime, told, asked.choices, room + aside.tokens)
    is_kept = asked.request.response_format is None
    epoch = epoch_of(runtime, session.session_id, asked.request.model) if is_kept else None
    try:
        context = yield from context_of(session, asked, max_tokens=most, off=off, model=told)
    except BudgetError:
        if not aside.tokens:
            raise
        # What others added may be gone by now, and what they add is theirs to answer for: let the provider decide.
        most = _most_tokens(runtime, told, asked.choices, room)
        context = yield from context_of(session, asked, max_tokens=most, off=off, model=told)
    return Prepared(
        session=session,
        asked=asked,
        record=record,
        off=off,
        room=room,
        aside=aside,
        learned=told.learned,
        context=context,
        epoch=epoch,
    )


def context_of(
    session: Session, asked: Asked, *, max_tokens: int | None, off: frozenset[int] | None, model: ModelProfile
) -> Flow[Context]:
    """The context of a request within `max_tokens`."""
    return session.core.context(
        None if asked.choices.recall else "",
        max_tokens=max_tokens,
        system=asked.request.system_message,
        tools=asked.tools,
        model=model,
        view=asked.choices.view,
        profile=asked.choices.profile,
        off=off,
        alone=asked.alone,
        langgraph_checkpoint_id=asked.place.checkpoint_id,
        complete=True,
        reworded=frozenset(asked.changes.edits),
    )


def _most_tokens(runtime: Runtime, told: ModelProfile, choices: Choices, room: int) -> int | None:
    """`max_tokens` of the context: as chosen, else all that the window of this request's model allows."""
    wished = choices.max_tokens
    if wished is None:
        wished = runtime.settings.guard.window or told.window or told.learned
        if wished is None and told.name not in _warned:
            _warned.add(told.name)
            logger.warning(
                "%s does not tell its window; a budget of %d tokens is used (pass max_tokens, or set guard.window)",
                told.name or "the model",
                runtime.settings.context.max_tokens,
            )
    if not room:
        return wished
    return max(budget_of(wished, told, settings=runtime.settings).max_tokens - room, 1)


def _room_aside(runtime: Runtime, asked: Asked) -> int:
    """Tokens of what is put beside the context, in steps."""
    count = runtime.counter.count_message
    changes = asked.changes
    added = sum(count(message) for message in (*changes.before, *changes.behind))
    held = {message.id: message for message in asked.held if message.id in changes.edits}
    added += sum(max(count(edit) - count(held[key]), 0) for key, edit in changes.edits.items())
    return stepped(added) + (asked.choices.project_tokens if asked.choices.project else 0)
