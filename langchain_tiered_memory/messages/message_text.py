"""What a message says, for readers: its role, its text, the calls it makes and the call it answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_tiered_memory.messages.content_blocks import Part, compact_json, parts_of, requested_calls
from langchain_tiered_memory.text.fencing import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.types.records import Entry, Role

CHAT_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
"""`ChatMessage` lets people write any role; these are the ones with a meaning."""

_UNSAFE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL refuses NUL, and no UTF-8 writer takes a lone surrogate
_ONE_LINE_CHARS = 200


def role_of(message: BaseMessage) -> Role:
    """Who speaks."""
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ToolMessage | FunctionMessage):
        return "tool"
    if isinstance(message, SystemMessage):
        return "system"
    if isinstance(message, ChatMessage):
        return CHAT_ROLES.get(message.role.strip().lower(), "other")
    return "other"


def is_marked_error(result: Entry) -> bool:
    """Whether a tool's result says itself that it is an error."""
    return '"status":"error"' in result.payload


def text_of(message: BaseMessage) -> str:
    """What a person would read in `message`, safe for every database. Never raises.

    Text blocks come as they are, a call as `name(argument=value)`, media as a line such as `[image: image/png, 12 kB]`.
    Reasoning is left out: it is the model talking to itself. NUL and lone surrogates become U+FFFD.
    """
    lines = [joined_text(part for part in parts_of(message.content) if part.kind not in {"reasoning", "call"})]
    lines += [*map(_call_line, requested_calls(message)), *words_beside(message).values()]
    return safe_text("\n".join(line for line in lines if line))


def words_beside(message: BaseMessage) -> dict[str, str]:
    """What `message` says beside its content, by the key under which it stands in `additional_kwargs`.

    That is a call from before there were tool calls, and OpenAI's refusal.
    """
    legacy, refusal = map(message.additional_kwargs.get, ("function_call", "refusal"))
    said: dict[str, str] = {}
    if isinstance(legacy, dict) and legacy.get("name"):
        said["function_call"] = f"{legacy['name']}({legacy.get('arguments')})"
    return said | ({"refusal": refusal} if isinstance(refusal, str) and refusal.strip() else {})


_NOTICE = re.compile(r"/[\w:.-]{1,80}|\[[^\[\]\n]{1,200}\]|<([A-Za-z][\w-]{0,60})>.{0,2000}</\1>", re.DOTALL)
_LOADED = re.compile(r"[^\W\d_][\w-]{0,30}(?: [\w-]{1,30}){0,7}: [^\s:]\S{0,500}[ \t]{0,8}\n[ \t]{0,8}\n#{1,3} \S")


def is_loaded(text: str) -> bool:
    """Whether a host put a document in a message: a label with a path above it, a blank line, and its title."""
    return _LOADED.match(text) is not None


def is_notice(text: str) -> bool:
    """Whether a user's message is none of a person's words: by its form, a host's command, its note or its document.

    A command is a slash and a name alone; a note stands in brackets, or between a tag and its end, from end to end. So
    does all that people say in some hosts: only among other messages is it a note.
    """
    return _NOTICE.fullmatch(text.strip()) is not None or is_loaded(text)


def notices_of(entries: Iterable[Entry]) -> frozenset[int]:
    """`seq`s of those of users' messages that a host wrote; none where all of them have such a form."""
    said = [entry for entry in entries if entry.role == "user"]
    found = frozenset(entry.seq for entry in said if is_notice(entry.text))
    return found if len(found) < len(said) else frozenset()


def joined_text(parts: Iterable[Part]) -> str:
    """Texts of `parts`, each on a line of its own unless it continues the one before."""
    pieces: list[str] = []
    continues = False
    for part in parts:
        if pieces and not (continues or part.joined or pieces[-1][-1:].isspace() or part.text[:1].isspace()):
            pieces.append("\n")
        pieces.append(part.text)
        continues = part.joined
    return "".join(pieces)


def calls_of(message: BaseMessage) -> tuple[str, ...]:
    """Ids of the calls that `message` makes, invalid ones included, each once.

    A call without an id is not among them: nothing can ever answer it, so nothing waits for it.
    """
    return tuple(dict.fromkeys(call.id for call in requested_calls(message) if call.id))


def answers_of(message: BaseMessage) -> str | None:
    """Id of the call that `message` is the result of, if it is one."""
    return message.tool_call_id or None if isinstance(message, ToolMessage) else None


def safe_text(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD."""
    return _UNSAFE.sub("\ufffd", text)


def _call_line(call: RequestedCall) -> str:
    if call.raw is not None:
        why = f" [invalid: {call.error}]" if call.error else ""
        return f"{plain_name(call.name)}({call.raw}){why}"
    shown = [f"{name}={compact_json(value)}" for name, value in call.args.items()]
    line = f"{plain_name(call.name)}({', '.join(shown)})"
    if len(line) <= _ONE_LINE_CHARS:
        return line
    # A long argument is mostly a file or a command: escaped line breaks would hide its words from search.
    shown = [
        f"{name}:\n{value}" if isinstance(value, str) and "\n" in value else f"{name}={compact_json(value)}"
        for name, value in call.args.items()
    ]
    return "\n".join([f"{plain_name(call.name)}(", *shown, ")"])
