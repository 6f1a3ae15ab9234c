"""Messages as dicts, in and out: what OpenAI, LangChain and LangGraph's server write, and what their readers drop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages

from langchain_tiered_memory.conversations.listed import listed_conversation
from langchain_tiered_memory.conversations.places import Located

if TYPE_CHECKING:
    import datetime as dt

_BESIDE_CONTENT = ("function_call", "audio", "reasoning_content")
"""What an assistant said outside of its content; LangChain keeps it in `additional_kwargs`."""


def messages_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[tuple[BaseMessage, dt.datetime | None]]:
    """The messages of dicts, with the ids that they bring, and when they were said.

    Raises:
        InvalidInputError: when a row is no message, an id comes twice, or a time cannot be read.
    """
    located = [Located(place=f"message {number}", value=_in_parts(row)) for number, row in enumerate(rows, start=1)]
    turns = listed_conversation(located, name="the history", questions=None).turns
    return [
        (_completed(turn.message.model_copy(update={"id": _own_id(row)}), row), turn.at)
        for turn, row in zip(turns, rows, strict=True)
    ]


def rows_of_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """OpenAI-style dicts, ids included. A call that could not be parsed is one with the arguments that it had."""
    return [row for message in messages for row in _rows(message)]


def _in_parts(row: Mapping[str, Any]) -> dict[str, Any]:
    """A message that was dumped whole (`{"type": "human", "content": ...}`) as `{"type": ..., "data": ...}`."""
    if "content" not in row or "type" not in row or row.keys() & {"role", "message", "data", "fields"}:
        return dict(row)
    return {**row, "data": {**row, "content": row["content"] or ""}}


def _own_id(row: Mapping[str, Any]) -> str | None:
    """The id that a dict brings, at its top, or in its message or LangChain's `data`."""
    for place in (row, row.get("message"), row.get("data"), row.get("fields")):
        if isinstance(place, Mapping) and place.get("id") not in {None, ""}:
            return str(place["id"])
    return None


def _completed(message: BaseMessage, row: Mapping[str, Any]) -> BaseMessage:
    """`message` with what the assistant said beside its content: a refusal and a transcript are its words."""
    inner = row.get("message", row)
    if not isinstance(message, AIMessage) or "role" not in inner:
        return message
    beside = {key: inner[key] for key in _BESIDE_CONTENT if inner.get(key)}
    update: dict[str, Any] = {"additional_kwargs": {**message.additional_kwargs, **beside}} if beside else {}
    audio = beside.get("audio")
    if not message.content and isinstance(inner.get("refusal"), str):
        update["content"] = [{"type": "refusal", "refusal": inner["refusal"]}]
    elif not message.content and isinstance(audio, Mapping) and isinstance(audio.get("transcript"), str):
        update["content"] = audio["transcript"]
    return message.model_copy(update=update) if update else message


def _rows(message: BaseMessage) -> list[dict[str, Any]]:
    try:
        rows = convert_to_openai_messages([message], include_id=True)
    except (ValueError, KeyError, TypeError):  # LangChain refuses the message for a block that OpenAI has no form for
        rows = convert_to_openai_messages([message.model_copy(update={"content": str(message.text)})], include_id=True)
    if isinstance(message, AIMessage):
        calls = [_raw_call(call) for call in message.invalid_tool_calls]
        if calls:
            rows[0]["tool_calls"] = [*rows[0].get("tool_calls", ()), *calls]
        legacy = message.additional_kwargs.get("function_call")
        if legacy and "tool_calls" not in rows[0]:
            rows[0]["function_call"] = dict(legacy)
    return list(rows)


def _raw_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": call.get("name") or "", "arguments": call.get("args") or ""}
    return {"type": "function", "id": call.get("id") or "", "function": function}
