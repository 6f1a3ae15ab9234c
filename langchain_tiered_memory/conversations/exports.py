"""Reads what ChatGPT and Claude export: `conversations.json`, one object for each conversation.

A conversation is read along the branch that its user saw last. What was attached is named in the text, for a later
reader to find; what a product shows to nobody (custom instructions, hidden context, thoughts) is left out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.conversations.annotated import listed_conversation
from langchain_tiered_memory.conversations.nouns import Conversation, Located, fail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


_UNSEEN = ("user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "system_error")
_TO_EVERYBODY = (None, "", "all", "user")


def export_reader(first: Mapping[str, Any]) -> Callable[[Located], Conversation] | None:
    """What reads conversations like this one, where it is of an export that is known here."""
    if isinstance(first.get("mapping"), dict):
        return _of_chatgpt
    if isinstance(first.get("chat_messages"), list):
        return _of_claude
    return None


def _of_chatgpt(document: Located) -> Conversation:
    nodes = document.at("mapping").value
    name = str(document.get("conversation_id") or document.get("id") or "") or fail(document.place, "it has no id")
    rows: list[dict[str, Any]] = []
    calls: dict[str, str] = {}
    for key in _branch(nodes, document.get("current_node")):
        message = nodes[key].get("message")
        if not isinstance(message, dict):
            continue
        if not (message.get("metadata") or {}).get("is_visually_hidden_from_conversation"):
            rows += _row_of_chatgpt(str(message.get("id") or key), message, calls)
    return _conversation(document, rows, name=name, title=document.get("title"))


def _branch(nodes: Mapping[str, Any], leaf: object) -> list[str]:
    """Keys of the nodes from the first to `leaf`; without one, to the newest that nothing follows."""
    if leaf not in nodes:
        ends = [key for key, node in nodes.items() if isinstance(node, dict) and not node.get("children")]
        leaf = max(ends, key=lambda key: (nodes[key].get("message") or {}).get("create_time") or 0.0, default=None)
    found: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in nodes and leaf not in found and isinstance(nodes[leaf], dict):
        found[leaf] = None
        leaf = nodes[leaf].get("parent")
    return list(found)[::-1]


def _row_of_chatgpt(message_id: str, message: Mapping[str, Any], calls: dict[str, str]) -> list[dict[str, Any]]:
    """The message as a row, if it says something; `calls` are those that wait for their results, by tool."""
    author = message.get("author") or {}
    role, content = str(author.get("role") or ""), message.get("content") or {}
    if content.get("content_type") in _UNSEEN or role not in ("user", "assistant", "system", "tool"):
        return []
    attached = (message.get("metadata") or {}).get("attachments") or []
    text = "\n".join([*_parts(content), *(_attachment(one, "name", "mimeType") for one in attached)])
    row: dict[str, Any] = {"id": message_id, "role": role, "content": text, "at": message.get("create_time")}
    recipient = message.get("recipient")
    if role == "assistant" and recipient not in _TO_EVERYBODY:
        calls[str(recipient)] = message_id
        function = {"name": str(recipient), "arguments": json.dumps({"input": text})}
        return [row | {"content": "", "tool_calls": [{"id": message_id, "type": "function", "function": function}]}]
    if not text.strip():
        return []
    if role == "tool":
        name = str(author.get("name") or "tool")
        call = calls.pop(name, None)
        # What a tool says unasked, or once more, answers no call: no provider would take it as a result.
        return [row | ({"role": "assistant", "name": name} if call is None else {"tool_call_id": call, "name": name})]
    return [row]


def _parts(content: Mapping[str, Any]) -> Iterator[str]:
    for part in content.get("parts") or []:
        if isinstance(part, str) and part.strip():
            yield part
        elif isinstance(part, dict):
            place = part.get("asset_pointer") or part.get("video_container_asset_pointer") or "without a place"
            yield str(part.get("text") or f"[{part.get('content_type') or 'attachment'}: {place}]")
    for key in ("title", "url", "text", "result"):
        if isinstance(content.get(key), str) and content[key].strip():
            yield content[key]


def _of_claude(document: Located) -> Conversation:
    name = str(document.get("uuid") or document.get("id") or "") or fail(document.place, "it has no uuid")
    rows = [row for message in document.at("chat_messages").items() for row in _row_of_claude(message)]
    return _conversation(document, rows, name=name, title=document.get("name"))


def _row_of_claude(message: Located) -> list[dict[str, Any]]:
    blocks = message.get("content")
    said = [_block(one) for one in blocks if isinstance(one, dict)] if isinstance(blocks, list) else []
    told = [one for one in said if one] or [str(message.get("text") or "")]
    named = [*(message.get("attachments") or []), *(message.get("files") or [])]
    text = "\n".join([*told, *(_attachment(one, "file_name", "file_type") for one in named)]).strip()
    role = {"human": "user", "assistant": "assistant"}.get(message.text("sender"))
    if role is None:
        fail(message.place, f"nobody known is {message.get('sender')!r}: expected `human` or `assistant`")
    row = {"id": message.text("uuid"), "role": role, "content": text, "at": message.get("created_at")}
    return [row] if text else []


def _block(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "tool_use":
        return f"[{block.get('name')}: {json.dumps(block.get('input'), ensure_ascii=False)}]"
    if kind == "tool_result":
        inner = block.get("content")
        several = inner if isinstance(inner, list) else [{"type": "text", "text": str(inner or "")}]
        parts = [_block(one) for one in several if isinstance(one, dict)]
        return "\n".join([f"[{block.get('name')} gave:]", *(one for one in parts if one)])
    return ""


def _attachment(one: Any, name: str, kind: str) -> str:  # noqa: ANN401 - JSON
    if not isinstance(one, dict):
        return f"[attachment: {one}]"
    about = ", ".join(str(one[key]) for key in (name, kind) if one.get(key))
    inside = one.get("extracted_content")
    return f"[attachment: {about or 'without a name'}]" + (f"\n{inside}" if inside else "")


def _conversation(document: Located, rows: list[dict[str, Any]], *, name: str, title: object) -> Conversation:
    if not rows:
        fail(document.place, "nothing is said in it")
    located = [Located(place=f"{document.place} {row['id']}", value=row) for row in rows]
    return listed_conversation(located, name=name, questions=None, title=str(title) if title else None)
