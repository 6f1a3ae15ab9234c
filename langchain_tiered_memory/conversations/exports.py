"""Reads conversations of other programs: exports of ChatGPT, Claude and LangSmith, checkpoints, histories.

ChatGPT and Claude export a `conversations.json` with one object per conversation. LangSmith exports runs. LangGraph's
checkpoints and LangChain's histories are SQLite files.

An exported conversation is read along the branch that its user saw last. The text names attachments, so that a later
reader can find them. What a product shows to nobody (custom instructions, hidden context, thoughts) is left out.

Runs become one conversation per thread, or per trace if there are no threads. An agent's run contains the conversation
so far, so what it repeats from earlier runs is left out. Of a trace, the root runs count. If a file has no root runs,
its model runs count.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

from langchain_tiered_memory.conversations.annotated import listed_conversation
from langchain_tiered_memory.conversations.turns import Conversation, Located, Refused, attempted, fail, message_of
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.messages.codec import coerce, encode
from langchain_tiered_memory.messages.groups import overlap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from langgraph.checkpoint.base import BaseCheckpointSaver

_UNSEEN = ("user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "system_error")
_TO_EVERYBODY = (None, "", "all", "user")
_THREADS = ("thread_id", "session_id", "conversation_id")
"""Keys of a run's metadata by which LangSmith groups threads."""
_ASKED = ("input", "question", "query", "text")
_ANSWERED = ("output", "answer", "result", "text")


def export_reader(first: Mapping[str, Any]) -> Callable[[Located], Conversation] | None:
    """The reader for conversations like this one, if its export format is known."""
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
    return _exported(document, rows, name=name, title=document.get("title"))


def _branch(nodes: Mapping[str, Any], leaf: object) -> list[str]:
    """Keys of the nodes from the first to `leaf`, or without a `leaf` to the newest end."""
    if leaf not in nodes:
        ends = [key for key, node in nodes.items() if isinstance(node, dict) and not node.get("children")]
        leaf = max(ends, key=lambda key: (nodes[key].get("message") or {}).get("create_time") or 0.0, default=None)
    found: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in nodes and leaf not in found and isinstance(nodes[leaf], dict):
        found[leaf] = None
        leaf = nodes[leaf].get("parent")
    return list(found)[::-1]


def _row_of_chatgpt(message_id: str, message: Mapping[str, Any], calls: dict[str, str]) -> list[dict[str, Any]]:
    """The message as a row, if it says something. `calls` are the calls that wait for results, by tool."""
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
    return _exported(document, rows, name=name, title=document.get("name"))


def _row_of_claude(message: Located) -> list[dict[str, Any]]:
    blocks = message.get("content")
    said = [_block(one) for one in blocks if isinstance(one, dict)] if isinstance(blocks, list) else []
    told = [one for one in said if one] or [str(message.get("text") or "")]
    named = [*(message.get("attachments") or []), *(message.get("files") or [])]
    text = "\n".join([*told, *(_attachment(one, "file_name", "file_type") for one in named)]).strip()
    role = {"human": "user", "assistant": "assistant"}.get(message.text("sender"))
    if role is None:
        fail(message.place, f"the sender {message.get('sender')!r} is not known: expected `human` or `assistant`")
    row = {"id": message.text("uuid"), "role": role, "content": text, "at": message.get("created_at")}
    return [row] if text else []


def _block(block: Mapping[str, Any]) -> str:
    kind, tool = block.get("type"), block.get("name") or "a tool"
    if kind == "text":
        return str(block.get("text") or "")
    if kind == "tool_use":
        return f"[{tool}: {json.dumps(block.get('input'), ensure_ascii=False)}]"
    if kind == "tool_result":
        inner = block.get("content")
        several = inner if isinstance(inner, list) else [{"type": "text", "text": str(inner or "")}]
        parts = [_block(one) for one in several if isinstance(one, dict)]
        return "\n".join([f"[{tool} gave:]", *(one for one in parts if one)])
    return ""


def _attachment(one: Any, name: str, kind: str) -> str:  # noqa: ANN401 - JSON
    if not isinstance(one, dict):
        return f"[attachment: {one}]"
    about = ", ".join(str(one[key]) for key in (name, kind) if one.get(key))
    inside = one.get("extracted_content")
    return f"[attachment: {about or 'without a name'}]" + (f"\n{inside}" if inside else "")


def _exported(document: Located, rows: list[dict[str, Any]], *, name: str, title: object) -> Conversation:
    if not rows:  # opened, and nothing said in it: a product keeps many of these
        return Conversation(id=name, turns=(), sittings=(), title=str(title) if title else None)
    located = [Located(place=f"{document.place} {row['id']}", value=row) for row in rows]
    return listed_conversation(located, name=name, title=str(title) if title else None)


def is_run(row: Mapping[str, Any]) -> bool:
    """Whether this is a run of LangSmith's."""
    return isinstance(row.get("run_type"), str) and "inputs" in row


def conversations_of_runs(rows: Sequence[Located]) -> Iterator[Conversation]:
    """The conversations of exported runs, each with its runs by start time."""
    for row in rows:
        if not isinstance(row.value, dict) or not is_run(row.value):
            fail(row.place, "expected a run with `run_type` and `inputs`, like the first")
    models = [row for row in rows if row.get("run_type") == "llm"]
    roots = [row for row in rows if not row.get("parent_run_id")] or models
    threads: dict[str, list[Located]] = {}
    for row in sorted(roots, key=lambda one: str(one.get("start_time") or "")):
        threads.setdefault(_thread_of(row), []).append(row)
    some = False
    for name, runs in threads.items():
        turns = _stitched(runs, name)
        if turns:
            some = True
            yield listed_conversation(turns, name=name)
    if not some:
        fail(rows[0].place, f"none of its {len(rows)} runs carries messages: export root runs or model runs")


def _thread_of(row: Located) -> str:
    about = (row.get("extra") or {}).get("metadata") or {}
    named = next((about[key] for key in _THREADS if about.get(key)), None)
    return str(named or row.get("trace_id") or row.get("id") or "runs")


def _stitched(runs: Sequence[Located], thread: str) -> list[Located]:
    """The messages of a thread's runs, in order and each once."""
    held: list[tuple[str, Located]] = []
    for run in runs:
        came = [(_words(message), message) for message in _messages_of(run)]
        shared = overlap([one for one, _ in came], [one for one, _ in held])
        for said, message in came[shared:]:
            when = run.get("start_time") if message.type in ("human", "system") else run.get("end_time")
            told: dict[str, Any] = convert_to_openai_messages([message])[0]
            row = {"message": told | {"id": message.id}, "id": message.id, "at": when or run.get("start_time")}
            held.append((said, Located(place=run.place, value=row)))
    seen: Counter[str] = Counter()
    for said, located in held:
        seen[said] += 1
        if not located.value["id"]:  # by its words: another export of the thread gives it the same
            located.value["id"] = hashlib.sha256(f"{thread}\0{said}\0{seen[said]}".encode()).hexdigest()[:16]
    unique = {located.value["id"]: located for _, located in held}
    return list(unique.values())


def _words(message: BaseMessage) -> str:
    said = [message.type, message.id or "", message.content]
    return json.dumps(said, sort_keys=True, ensure_ascii=False, default=str)


def _messages_of(run: Located) -> list[BaseMessage]:
    """A run's input and output messages. A graph's answer repeats the question, so only the answer is read."""
    given, gave = _listed(run.get("inputs"), _ASKED, "human"), _listed(run.get("outputs"), _ANSWERED, "ai")
    words = [_words(one) for one in gave]
    return gave if given and words[: len(given)] == [_words(one) for one in given] else [*given, *gave]


def _listed(value: Any, texts: Sequence[str], role: str) -> list[BaseMessage]:  # noqa: ANN401 - JSON
    if not isinstance(value, dict):
        return []
    found = value.get("messages")
    if isinstance(found, list):
        return _flat(found)
    generations = value.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        return _flat([generations.get("message") or {"role": role, "content": generations.get("text") or ""}])
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return _flat([choices[0].get("message")])
    output = value.get("output")
    if isinstance(output, dict):
        return _flat([output])
    text = next((value[key] for key in texts if isinstance(value.get(key), str)), None)
    return _flat([{"role": role, "content": text}]) if text else []


def _flat(rows: Sequence[Any]) -> list[BaseMessage]:
    found: list[BaseMessage] = []
    for row in rows:
        if isinstance(row, list):
            found += _flat(row)
        elif isinstance(row, dict):
            found += _read(row)
    return found


def _read(row: Mapping[str, Any]) -> list[BaseMessage]:
    """A message that LangChain dumped whole, as a constructor or as a dict. Nothing if it is not a message."""
    fields = row.get("kwargs") if row.get("type") == "constructor" else row
    if not isinstance(fields, dict):
        return []
    role = fields.get("role") or {"AIMessageChunk": "ai"}.get(str(fields.get("type")), fields.get("type"))
    try:
        return [message_of(row if "data" in row else fields | {"role": role})]
    except InvalidInputError:
        return []


SQLITE = b"SQLite format 3\0"
"""The first bytes of a database."""


def conversations_of_sqlite(path: Path) -> tuple[int, Iterator[Conversation | Refused]]:
    """How many threads or histories a file holds, and each as a conversation. Nothing is written to it.

    Raises:
        InvalidInputError: if the file holds neither.
        SettingsError: for LangGraph's checkpoints without langgraph-checkpoint-sqlite.
    """
    try:
        with closing(_opened(path)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if {"checkpoints", "writes"} <= tables:
                query = "SELECT DISTINCT thread_id FROM checkpoints WHERE checkpoint_ns = '' ORDER BY thread_id"
                read: Callable[[Path, list[str]], Iterator[Conversation | Refused]] = _threads
            elif "message_store" in tables:
                query, read = "SELECT DISTINCT session_id FROM message_store ORDER BY session_id", _histories
            elif "ltm_sessions" in tables:
                fail(str(path), "this is a memory's own database: export it with `tiered-memory export` first")
            else:
                fail(str(path), "an SQLite file without LangGraph's checkpoints or LangChain's message_store")
            names = [str(name) for (name,) in connection.execute(query)]
    except sqlite3.Error as error:
        fail(str(path), f"cannot be read: {error}")
    return len(names), read(path, names)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _threads(path: Path, names: list[str]) -> Iterator[Conversation | Refused]:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - a package of its own
    except ImportError as error:
        msg = f"{path} holds checkpoints of LangGraph: `pip install langgraph-checkpoint-sqlite` to read them"
        raise SettingsError(msg) from error
    with closing(_opened(path)) as connection:
        saver = SqliteSaver(connection)
        saver.is_setup = True  # it would make its tables
        for name in names:
            yield attempted(name, _thread, path, name, saver)


def _thread(path: Path, name: str, saver: BaseCheckpointSaver[Any]) -> Conversation:
    held = saver.get_tuple({"configurable": {"thread_id": name}})
    values = held.checkpoint.get("channel_values", {}) if held is not None else {}
    messages = values.get("messages") if isinstance(values, dict) else None
    return _conversation(path, name, messages, held)


def _histories(path: Path, names: list[str]) -> Iterator[Conversation | Refused]:
    with closing(_opened(path)) as connection:
        for name in names:
            query = "SELECT message FROM message_store WHERE session_id = ? ORDER BY id"
            yield attempted(name, _history, path, name, [text for (text,) in connection.execute(query, (name,))])


def _history(path: Path, name: str, texts: Sequence[str]) -> Conversation:
    return _conversation(path, name, [json.loads(text) for text in texts], None)


def _conversation(path: Path, name: str, messages: Any, held: Any) -> Conversation:  # noqa: ANN401 - LangGraph's own
    place = f"{path} {name}"
    if not isinstance(messages, list) or not messages:
        fail(place, "its state has no list of messages")
    at = held.checkpoint.get("ts") if held is not None else None
    rows: list[Located] = []
    for number, one in enumerate(messages):
        try:
            message = one if held is None else json.loads(encode(coerce(one)).payload)
        except InvalidInputError as error:
            fail(f"{place}[{number}]", str(error))
        rows.append(Located(place=f"{place}[{number}]", value={"message": message, "at": at}))
    return listed_conversation(rows, name=name)
