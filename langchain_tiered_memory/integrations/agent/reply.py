"""Turns a context into the agent's request: the system prompt apart, with what others and the projection add."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.context.layout import MARK
from langchain_tiered_memory.driver import HostCall
from langchain_tiered_memory.integrations.agent.cache_hints import cache_key, with_breakpoints
from langchain_tiered_memory.integrations.agent.other_middlewares import is_summary
from langchain_tiered_memory.integrations.graph.forgotten import copy_id
from langchain_tiered_memory.messages.validity.repair import make_valid
from langchain_tiered_memory.runs.projection import state_note
from langchain_tiered_memory.text.fencing import short_id
from langchain_tiered_memory.text.truncation import shorten_message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.integrations.agent.context import Asked, Choices, Prepared
    from langchain_tiered_memory.memory import TieredMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing(HostCall):
    """What the model is sent: call it, and give its response."""

    system: SystemMessage | None
    messages: list[BaseMessage]
    settings: dict[str, Any] = field(default_factory=dict)
    """Of this call, besides those that the request has."""
    marks_tools: bool = False
    """Whether the tools end with a cache breakpoint, for nothing else in front has one."""

    @property
    def all(self) -> list[BaseMessage]:
        """The messages, system prompt included."""
        return self.messages if self.system is None else [self.system, *self.messages]


def outgoing_of(memory: TieredMemory, choices: Choices, prepared: Prepared) -> Outgoing:
    """The context as a request: the system prompt apart, and with it what others and the projection add."""
    runtime, asked = memory.core.runtime, prepared.asked
    shown = _as_edited(prepared.context.messages, asked, prepared.session.track, count=runtime.counter.count_text)
    last_user = max((at for at, one in enumerate(shown) if _is_users(one)), default=len(shown))
    shown[last_user:last_user] = [one for one in asked.changes.before if not is_summary(one)]
    first_said = next((at for at, one in enumerate(shown) if not isinstance(one, SystemMessage)), len(shown))
    shown[first_said:first_said] = [one for one in asked.changes.before if is_summary(one)]
    shown += asked.changes.behind
    if asked.projected and _is_partial(asked.held, prepared):
        framing = runtime.counter.count_message(_note(""))
        note = state_note(
            asked.projected, max_tokens=choices.project_tokens - framing, count=runtime.counter.count_text
        )
        shown += [_note(note)] if note else []
    if asked.changes.any:
        shown = make_valid(shown, unanswered=runtime.settings.context.unanswered, complete=True).messages
    shown, settings = _hinted(shown, prepared)
    first = shown[0] if shown else None
    if isinstance(first, SystemMessage):
        return Outgoing(system=first, messages=shown[1:], settings=settings)
    return Outgoing(system=None, messages=shown, settings=settings, marks_tools=prepared.asked.hints == "anthropic")


def _hinted(shown: list[BaseMessage], prepared: Prepared) -> tuple[list[BaseMessage], dict[str, Any]]:
    """Messages and settings with what the provider wants to be told of the part that comes again.

    Breakpoints stand behind the system prompt (tools stand before it), behind what stands for older history, before
    recall, and at the very end, from where a tool loop goes on.
    """
    asked, session, context = prepared.asked, prepared.session, prepared.context
    if asked.hints == "openai":
        return shown, {"prompt_cache_key": cache_key(session.session_id, session.track)}
    if asked.hints != "anthropic":
        return shown, {}
    places = {id(message): at for at, message in enumerate(shown)}
    stable = [places[id(one)] for one in context.messages[: context.stable_messages] if id(one) in places]
    systems = [at for at in stable if isinstance(shown[at], SystemMessage)]
    ours = [at for at in stable if MARK in shown[at].additional_kwargs]
    ends = [*systems[-1:], *ours[-1:], *stable[-1:], len(shown) - 1]
    return with_breakpoints(shown, ends), {}


def _note(text: str) -> HumanMessage:
    return HumanMessage(text, additional_kwargs={MARK: {"part": "state"}})


def _is_users(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and MARK not in message.additional_kwargs


def _as_edited(
    messages: Sequence[BaseMessage], asked: Asked, track: str, *, count: Callable[[str], int]
) -> list[BaseMessage]:
    """Messages as the middlewares around word them; one that is shown in part, as that part of their wording."""
    edits = asked.changes.edits
    held = {str(one.id): one for one in asked.held if one.id in edits} if edits else {}
    worded = {name: (one, edits[key]) for key, one in held.items() for name in (key, copy_id(key, track))}

    def edited(message: BaseMessage) -> BaseMessage:
        if message.id not in worded:
            return message
        whole, edit = worded[message.id]
        if whole.content == message.content:
            return edit
        if not isinstance(message.content, str) or not isinstance(edit.content, str):
            return message
        pointer = f'expand "{short_id(message.id)}" for the whole'
        part = shorten_message(edit, max_tokens=count(message.content), count=count, pointer=pointer)
        return message.model_copy(update={"content": part.content})

    return [edited(message) for message in messages]


def _is_partial(held: Sequence[BaseMessage], prepared: Prepared) -> bool:
    """Whether some message of the state is not shown whole: only then may its plan be out of sight."""
    shown = set(prepared.context.entry_ids)
    track = prepared.session.track
    return any(one.id not in shown and copy_id(str(one.id), track) not in shown for one in held)
