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

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.messages import BaseMessage, convert_to_openai_messages

from langchain_tiered_memory.conversations.annotated import listed_conversation
from langchain_tiered_memory.conversations.turns import Conversation, Located, Refused, attempted, fail, message_of
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.messages.codec import coerce, encode
from langchain_tiered_memory.messages.groups import overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_UNSEEN = ("user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "system_error")
_TO_EVERYBODY = (None, "", "all", "user")
_THREADS = ("thread_id", "session_id", "conversation_id")
"""Keys of a run's metadata by which LangSmith groups threads."""
_ASKED = ("input", "question", "query", "text")
_ANSWERED = ("output", "answer", "result", "text")


_Held: TypeAlias = Callable[[str], tuple[list[Any], object]]
"""Gives the messages of a thread or a history, and when its state was written."""


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
        if isinstance(message, dict):
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
    about = message.get("metadata") or {}
    is_hidden = about.get("is_visually_hidden_from_conversation") or content.get("content_type") in _UNSEEN
    if is_hidden or role not in ("user", "assistant", "system", "tool"):
        return []
    attached = about.get("attachments") or []
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
    held: list[str] = []
    found: dict[str, Located] = {}
    for run in runs:
        came = [(_words(message), message) for message in _messages_of(run)]
        for said, message in came[overlap([one for one, _ in came], held) :]:
            held.append(said)
            # By its words where it has none: another export of the thread gives it the same.
            own = message.id or sha256(f"{thread}\0{said}\0{held.count(said)}".encode()).hexdigest()[:16]
            when = run.get("start_time") if message.type in ("human", "system") else run.get("end_time")
            told: dict[str, Any] = convert_to_openai_messages([message])[0]
            row = {"message": told | {"id": own}, "at": when or run.get("start_time")}
            found[own] = Located(place=run.place, value=row)
    return list(found.values())


def _words(message: BaseMessage) -> str:
    said = [message.type, message.id or "", message.content]
    return json.dumps(said, sort_keys=True, ensure_ascii=False, default=str)


def _messages_of(run: Located) -> list[BaseMessage]:
    """A run's input and output messages. A graph's answer repeats the question, so only the answer is read."""
    given, gave = _listed(run.get("inputs"), _ASKED, "human"), _listed(run.get("outputs"), _ANSWERED, "ai")
    words = [_words(one) for one in gave]
    return gave if given and words[: len(given)] == [_words(one) for one in given] else [*given, *gave]


def _listed(value: Any, texts: Sequence[str], role: str) -> list[BaseMessage]:  # noqa: ANN401 - JSON
    """The messages in what went into a run or came out: a state's, the first answer of a model, or a text."""
    if not isinstance(value, dict):
        return []
    if isinstance(value.get("messages"), list):
        return _flat(value["messages"])
    for key in ("generations", "choices", "output"):
        first = value.get(key)
        while isinstance(first, list) and first:
            first = first[0]
        if isinstance(first, dict):
            said = {"role": role, "content": first.get("text") or ""}
            return _flat([first if key == "output" else first.get("message") or said])
    text = next((value[key] for key in texts if isinstance(value.get(key), str)), None)
    return _flat([{"role": role, "content": text}]) if text else []


def _flat(row: Any) -> list[BaseMessage]:  # noqa: ANN401 - JSON
    """Messages that LangChain dumped, as constructors or as dicts, in lists of any depth. What is none is left out."""
    if isinstance(row, list):
        return [message for one in row for message in _flat(one)]
    fields = row.get("kwargs") if isinstance(row, dict) and row.get("type") == "constructor" else row
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
                reader: Callable[[Path, sqlite3.Connection], _Held] = _threads
            elif "message_store" in tables:
                query, reader = "SELECT DISTINCT session_id FROM message_store ORDER BY session_id", _histories
            elif "ltm_sessions" in tables:
                fail(str(path), "this is a memory's own database: export it with `tiered-memory export` first")
            else:
                fail(str(path), "an SQLite file without LangGraph's checkpoints or LangChain's message_store")
            names = [str(name) for (name,) in connection.execute(query)]
    except sqlite3.Error as error:
        fail(str(path), f"cannot be read: {error}")
    return len(names), _each(path, names, reader)


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _each(
    path: Path, names: list[str], reader: Callable[[Path, sqlite3.Connection], _Held]
) -> Iterator[Conversation | Refused]:
    with closing(_opened(path)) as connection:
        held = reader(path, connection)
        for name in names:
            yield attempted(name, _conversation, path, name, held)


def _threads(path: Path, connection: sqlite3.Connection) -> _Held:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - a package of its own
    except ImportError as error:
        msg = f"{path} holds checkpoints of LangGraph: `pip install langgraph-checkpoint-sqlite` to read them"
        raise SettingsError(msg) from error
    saver = SqliteSaver(connection)
    saver.is_setup = True  # it would make its tables

    def held(name: str) -> tuple[list[Any], object]:
        found = saver.get_tuple({"configurable": {"thread_id": name}})
        state: Any = found.checkpoint if found is not None else {}
        values = state.get("channel_values")
        messages = values.get("messages") if isinstance(values, dict) else None
        listed = messages if isinstance(messages, list) else []
        return [json.loads(encode(coerce(one)).payload) for one in listed], state.get("ts")

    return held


def _histories(_path: Path, connection: sqlite3.Connection) -> _Held:
    query = "SELECT message FROM message_store WHERE session_id = ? ORDER BY id"
    return lambda name: ([json.loads(text) for (text,) in connection.execute(query, (name,))], None)


def _conversation(path: Path, name: str, held: _Held) -> Conversation:
    messages, at = held(name)
    if not messages:
        fail(f"{path} {name}", "its state has no list of messages")
    rows = [
        Located(place=f"{path} {name}[{number}]", value={"message": one, "at": at})
        for number, one in enumerate(messages)
    ]
    return listed_conversation(rows, name=name)
