"""Makes an outgoing list of messages acceptable to every provider, and says what it had to mend.

Providers answer a malformed sequence with an error 400, which a stored history then repeats for ever. The rules here
are the strictest of each: OpenAI (every call answered, every result with its call), Anthropic (results directly behind
their message, no blank text, unique call ids), Google (a turn that calls follows a user or a result), Bedrock and
Perplexity (no two assistant messages in a row). `benchmarks/provider_rules.py` states them apart from this code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_tiered_memory.messages.content_blocks import compacts
from langchain_tiered_memory.messages.message_repairs import (
    SentNames,
    has_partial_reasoning,
    merged,
    quoted_as_data,
    says_nothing,
    with_known_role,
    with_valid_calls,
    with_words_beside,
    without_blank_text,
    without_reasoning,
)
from langchain_tiered_memory.messages.message_text import role_of, text_of
from langchain_tiered_memory.text.fencing import plain_name, short_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OPENING = "[The conversation goes on from here.]"
"""Stands in front where the first message is not the user's."""
CONTINUE = "[Please continue.]"
"""Stands at the end where a request would end with the assistant's own words."""
ARRIVED = "[The result of the call {call!r} has come in. It stands with its call, above.]"
"""Stands at the end where the news was a result of an earlier call, and the assistant's own words came in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """An outgoing list that every provider takes."""

    messages: list[BaseMessage]
    repairs: tuple[str, ...]
    """One sentence for each thing that was wrong; empty on a healthy list, whose messages are then the very same."""


@dataclass(slots=True)
class _Answered:
    """An assistant's message and where the results of its calls were found."""

    at: int
    message: AIMessage
    results: dict[str, int]


UNANSWERED = "[no result was recorded for this call]"
"""Stands for a result that never came, and for one that is still awaited: an open call would be refused."""


def make_valid(messages: Iterable[BaseMessage], *, complete: bool = False) -> Validated:
    """`messages` as every provider takes them. Nothing that was said gets lost, and no input is changed.

    Args:
        messages: A list on its way to a model, broken or not.
        complete: Whether the list is sent as it is; else the caller adds the user's message behind it, and the
            assistant may have the last word here.
    """
    repairs: list[str] = []
    single = _mended_singles(messages, repairs)
    system, rest = _system_in_front(single, repairs)
    paired = _paired(rest, repairs)
    turns = _alternating(paired, repairs)
    # A provider that compacts takes its own summary as the beginning, and passes over what stands before it.
    if turns and not isinstance(turns[0], HumanMessage) and not compacts(turns[0]):
        turns.insert(0, HumanMessage(OPENING))
        repairs.append(f"the first message, {_named(turns[1])}, is not the user's; a bridge was put in front")
    ends_open = not turns or isinstance(turns[-1], AIMessage)
    last = single[-1] if single else None
    answered = _call_answered(last, turns) if ends_open and isinstance(last, ToolMessage) else None
    if last is not None and answered is not None:
        turns.append(HumanMessage(ARRIVED.format(call=answered)))
        repairs.append(f"{_named(last)}, the last one, was moved to its call; a line at the end says so")
    elif ends_open and (complete or not isinstance(last, AIMessage | None)):
        turns.append(HumanMessage(CONTINUE))
        repairs.append("the list did not end with the user or a tool result; a request to continue was added")
    return Validated(messages=[*system, *turns], repairs=tuple(repairs))


def _call_answered(result: ToolMessage, turns: Sequence[BaseMessage]) -> str | None:
    """The id of the call that a result stands with, which may be another than it came with."""
    there = (one for one in reversed(turns) if isinstance(one, ToolMessage))
    return next((one.tool_call_id for one in there if (one.id, one.content) == (result.id, result.content)), None)


def _mended_singles(messages: Iterable[BaseMessage], repairs: list[str]) -> list[BaseMessage]:
    mended: list[BaseMessage] = []
    names = SentNames()
    for original in messages:
        known, change = with_known_role(original)
        if change is not None:
            repairs.append(f"{_named(original)} {change}")
        for message in known:
            kept = without_blank_text(with_words_beside(message))
            full = kept
            if has_partial_reasoning(full):  # without blank text: reasoning may be what is left at the end
                full = without_reasoning(full)
                repairs.append(f"{_named(full)} had reasoning that was cut off; all of its reasoning was left out")
            if says_nothing(full):
                repairs.append(f"{_named(full)} is empty; it was left out")
                continue
            if kept is not message:
                repairs.append(f"{_named(full)} had blank texts, now left out, or words outside of blocks, now in them")
            full, renamed = names.with_valid_name(full)
            if renamed is not None:
                repairs.append(f"{_named(full)} {renamed}")
            mended.append(full)
    return mended


def _system_in_front(
    messages: Sequence[BaseMessage], repairs: list[str]
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    leading = next((at for at, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))
    system = list(messages[:1]) if leading else []
    for further in messages[1:leading]:
        system = [merged(system[0], further)]
        repairs.append(f"{_named(further)} is a further system message; it was merged into the first")
    rest: list[BaseMessage] = []
    for message in messages[leading:]:
        if isinstance(message, SystemMessage):
            rest.append(_as_note(message))
            repairs.append(f"{_named(message)} is a system message in the middle; it became a labelled human message")
        else:
            rest.append(message)
    return system, rest


def _as_note(message: SystemMessage) -> HumanMessage:
    """A later system message keeps its weight: the application wrote it, not the user and no tool."""
    label = "[System note]"
    if isinstance(message.content, str):
        return HumanMessage(f"{label}\n{message.content}", id=message.id)
    return HumanMessage(content=[{"type": "text", "text": label}, *message.content], id=message.id)


def _paired(messages: Sequence[BaseMessage], repairs: list[str]) -> list[BaseMessage]:
    """Every call followed by exactly its results; a result without a call quoted as data."""
    answered = _matched(messages, repairs)
    spoken_for = {at: entry for entry in answered.values() for at in entry.results.values()}
    paired: list[BaseMessage] = []
    for at, message in enumerate(messages):
        if at in answered:
            paired += _with_results(answered[at], messages, repairs)
        elif isinstance(message, ToolMessage):
            if at not in spoken_for:
                paired += _without_call(message, at, messages, repairs)
        else:
            paired.append(message)
    return paired


def _matched(messages: Sequence[BaseMessage], repairs: list[str]) -> dict[int, _Answered]:
    """Each assistant's message that calls, by its place, with the places of its results.

    A result belongs to the latest message before it that made the call and has no result for it, else to the first
    one behind it.
    """
    answered: dict[int, _Answered] = {}
    waiting: dict[str, tuple[_Answered, str]] = {}
    early: list[tuple[int, str]] = []
    taken: set[str] = set()
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            mended, renamed = with_valid_calls(message, taken)
            if mended is not message:
                repairs.append(
                    f"{_named(message)} made calls in a form that not every provider accepts; they were rewritten"
                )
            answered[at] = entry = _Answered(at, mended, {})
            ids = [str(call["id"]) for call in mended.tool_calls]
            taken.update(ids)
            old = {new: previous for previous, new in renamed.items()}
            waiting.update({old.get(call, call): (entry, call) for call in ids})
        elif isinstance(message, ToolMessage):
            found = waiting.pop(message.tool_call_id, None)
            if found is None:
                early.append((at, message.tool_call_id))
            else:
                found[0].results[found[1]] = at
    for at, call in early:
        found = waiting.get(call)
        if found is not None and found[0].at > at:
            del waiting[call]
            found[0].results[found[1]] = at
    return answered


def _with_results(entry: _Answered, messages: Sequence[BaseMessage], repairs: list[str]) -> list[BaseMessage]:
    together: list[BaseMessage] = [entry.message]
    in_order = sorted(entry.results.items(), key=lambda item: item[1])
    for place, (call, at) in enumerate(in_order, entry.at + 1):
        result = messages[at]
        if at != place:
            repairs.append(f"{_named(result)} did not directly follow its call {call!r}; it was moved there")
        if isinstance(result, ToolMessage) and result.tool_call_id != call:
            result = result.model_copy(update={"tool_call_id": call})
        together.append(result)
    for made in entry.message.tool_calls:
        identity = str(made["id"])
        if identity not in entry.results:
            repairs.append(f"the call {identity!r} of {_named(entry.message)} has no result; it was answered as such")
            together.append(
                ToolMessage(
                    UNANSWERED,
                    tool_call_id=identity,
                    name=made["name"],
                    status="error",
                    id=f"{identity}-unanswered",
                )
            )
    return together


def _without_call(
    message: ToolMessage, at: int, messages: Sequence[BaseMessage], repairs: list[str]
) -> list[BaseMessage]:
    same = (m for m in messages[:at] if isinstance(m, ToolMessage) and m.tool_call_id == message.tool_call_id)
    if any(text_of(earlier) == text_of(message) for earlier in same):
        repairs.append(f"{_named(message)} repeats a result of the call {message.tool_call_id!r}; it was left out")
        return []
    if says_nothing(HumanMessage(message.content)):
        repairs.append(f"{_named(message)} is an empty result without its call; it was left out")
        return []
    repairs.append(f"{_named(message)} is a result without its call; it is quoted in a human message")
    tool = f" of the tool {plain_name(message.name)!r}" if message.name else ""
    return [
        quoted_as_data(
            message, f"result{tool}, whose call {short_id(message.tool_call_id, max_chars=40)!r} is not shown"
        )
    ]


def _alternating(messages: Sequence[BaseMessage], repairs: list[str]) -> list[BaseMessage]:
    turns: list[BaseMessage] = []
    for message in messages:
        if turns and isinstance(message, AIMessage) and isinstance(turns[-1], AIMessage):
            turns[-1] = merged(turns[-1], message)
            repairs.append(f"{_named(message)} follows the assistant's own words; it was merged with them")
        else:
            turns.append(message)
    return turns


def _named(message: BaseMessage) -> str:
    kind = role_of(message)
    return f"{kind} message {message.id!r}" if message.id else f"one {kind} message without id"
