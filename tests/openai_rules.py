"""What OpenAI's chat-completions endpoint refuses of a request, in its own words; shares no code with the package."""

from __future__ import annotations

import re
from typing import Any

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALL_ID_CHARS = 40


class ProtocolError(Exception):
    """The request would get a 400.

    Args:
        message: What the endpoint says.
        code: Its error code, where it has one.
    """

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def check_request(body: dict[str, Any], *, system_first: bool = True) -> None:
    """Check the messages and tools of a request.

    Args:
        body: Of the request.
        system_first: Refuse system messages behind the first place too: OpenAI takes them, others do not.

    Raises:
        ProtocolError: when the endpoint would refuse it.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        msg = (
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
        raise ProtocolError(msg, code="empty_array")
    for place, message in enumerate(messages):
        _check_message(place, message)
    if system_first:
        _check_system(messages)
    _check_pairs(messages)
    for place, tool in enumerate(body.get("tools") or ()):
        name = (tool.get("function") or {}).get("name") or ""
        if not _NAME.fullmatch(name):
            msg = f"Invalid 'tools[{place}].function.name': string does not match pattern."
            raise ProtocolError(msg, code="invalid_value")


def _check_message(place: int, message: dict[str, Any]) -> None:
    role = message.get("role")
    if role not in _ROLES:
        msg = f"Invalid value: '{role}'. Supported values are: {', '.join(map(repr, _ROLES))}."
        raise ProtocolError(msg, code="invalid_value")
    if role != "assistant" and message.get("tool_calls"):
        msg = f"Invalid parameter: messages[{place}]: 'tool_calls' is only allowed for role 'assistant'."
        raise ProtocolError(msg)
    if role == "tool" and not message.get("tool_call_id"):
        msg = f"Missing parameter 'messages[{place}].tool_call_id': messages with role 'tool' must have one."
        raise ProtocolError(msg, code="missing_required_parameter")
    if "name" in message and not _NAME.fullmatch(str(message["name"])):
        msg = f"Invalid 'messages[{place}].name': string does not match pattern. Expected '^[^\\s<|\\\\/>]+$'."
        raise ProtocolError(msg, code="invalid_value")
    _check_content(place, message)
    _check_calls(place, message)


def _check_content(place: int, message: dict[str, Any]) -> None:
    content = message.get("content")
    if content is None and message["role"] != "assistant":
        msg = f"Invalid value for 'content': expected a string, got null. (messages[{place}])"
        raise ProtocolError(msg)
    if isinstance(content, list):
        for part in content:
            if part.get("type") == "text" and not str(part.get("text") or "").strip():
                msg = f"Invalid 'messages[{place}].content': text content blocks must be non-empty."
                raise ProtocolError(msg)
    says_nothing = not content or (isinstance(content, str) and not content.strip())
    if says_nothing and message["role"] != "tool" and not message.get("tool_calls"):
        msg = f"Invalid 'messages[{place}]': expected content or tool calls, but the message is empty."
        raise ProtocolError(msg)


def _check_calls(place: int, message: dict[str, Any]) -> None:
    made = message.get("tool_calls")
    if made is None:
        return
    where = f"messages[{place}].tool_calls"
    if not made:
        msg = (
            f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
        raise ProtocolError(msg, code="empty_array")
    for number, call in enumerate(made):
        identity, function = call.get("id") or "", call.get("function") or {}
        if not identity or len(identity) > _CALL_ID_CHARS:
            msg = f"Invalid '{where}[{number}].id': expected 1 to {_CALL_ID_CHARS} characters, got {len(identity)}."
            raise ProtocolError(msg, code="string_above_max_length")
        if not _NAME.fullmatch(function.get("name") or ""):
            msg = f"Invalid '{where}[{number}].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
            raise ProtocolError(msg, code="invalid_value")
        if not isinstance(function.get("arguments"), str):
            msg = f"Invalid type for '{where}[{number}].function.arguments': expected a string."
            raise ProtocolError(msg, code="invalid_type")


def _check_system(messages: list[dict[str, Any]]) -> None:
    for place, message in enumerate(messages[1:], 1):
        if message["role"] in {"system", "developer"}:
            msg = f"Invalid parameter: messages[{place}]: only the first message may be a system message."
            raise ProtocolError(msg)


def _check_pairs(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                msg = (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages[{place}])"
                )
                raise ProtocolError(msg)
            waiting.remove(message["tool_call_id"])
            continue
        _check_answered(waiting)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    _check_answered(waiting)


def _check_answered(waiting: list[str]) -> None:
    if waiting:
        msg = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
        )
        raise ProtocolError(msg)
