"""Reads conversations out of SQLite files: LangGraph's checkpoints, and LangChain's `SQLChatMessageHistory`."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.conversations.annotated import listed_conversation
from langchain_tiered_memory.conversations.nouns import Conversation, Located, Refused, attempted, fail
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.messages.codec import coerce, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SQLITE = b"SQLite format 3\0"
"""How a database begins."""


def conversations_of_sqlite(path: Path) -> tuple[int, Iterator[Conversation | Refused]]:
    """How many threads or histories a file holds, and each as a conversation. Nothing is written to it.

    Raises:
        InvalidInputError: when the file holds neither.
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
                fail(str(path), "this is a memory's own database: write it out with `tiered-memory export` first")
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
            held = saver.get_tuple({"configurable": {"thread_id": name}})
            values = held.checkpoint.get("channel_values", {}) if held is not None else {}
            messages = values.get("messages") if isinstance(values, dict) else None
            yield attempted(name, _conversation, path, name, messages, held)


def _histories(path: Path, names: list[str]) -> Iterator[Conversation | Refused]:
    with closing(_opened(path)) as connection:
        for name in names:
            query = "SELECT message FROM message_store WHERE session_id = ? ORDER BY id"
            rows = [json.loads(text) for (text,) in connection.execute(query, (name,))]
            yield attempted(name, _conversation, path, name, rows, None)


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
    return listed_conversation(rows, name=name, questions=None)
