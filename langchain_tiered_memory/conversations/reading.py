"""Reads conversation files: JSON Lines of messages, OpenAI-style lists, annotated conversations with dated sittings.

The content tells the format, never the name. An error names the file and the line, or the place inside the document.
"""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import replace
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from langchain_tiered_memory.conversations.annotated import annotated_conversation, listed_conversation
from langchain_tiered_memory.conversations.exports import (
    SQLITE,
    conversations_of_runs,
    conversations_of_sqlite,
    export_reader,
    is_run,
)
from langchain_tiered_memory.conversations.turns import Conversation, Located, Refused, attempted, fail
from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ONE_OF = "a conversation has `sessions` or `messages`, a message has `role` and `content`"
_BETWEEN = ", \t\r\n"
_ZIP = b"PK\x03\x04"
_LARGEST_BYTES = 1 << 30
"""For a file that is read as text. A database may be larger."""
SAMPLE_FILE = "seed-library.jsonl"


def read_conversation(path: Path) -> Conversation:
    """The one conversation in the file at `path`.

    Raises:
        InvalidInputError: if the file cannot be read, is not a conversation, or holds several.
    """
    conversations = read_conversations(path)
    if len(conversations) != 1:
        msg = (
            f"{path} holds {len(conversations)} conversations where one is expected: split it, or name one by `FILE#ID`"
        )
        raise InvalidInputError(msg)
    return conversations[0]


def read_conversations(path: Path) -> tuple[Conversation, ...]:
    """Every conversation in the file at `path`. A conversation without an id gets the file's name.

    Questions are read from the conversation itself, or from `NAME.questions.json` beside a file `NAME.jsonl`. Of
    several conversations, those that cannot be read are left out; `open_conversations` names them.

    Raises:
        InvalidInputError: if the file cannot be read or has no conversation. The message says where.
    """
    read = list(open_conversations(path)[1])
    found = tuple(one for one in read if isinstance(one, Conversation))
    if read and not found:
        raise InvalidInputError(next(one.reason for one in read if isinstance(one, Refused)))
    return found


def open_conversations(path: Path) -> tuple[int, Iterator[Conversation | Refused]]:
    """How many conversations a file has, and each of them. Those of an export are parsed one at a time.

    The content tells the format: exports of ChatGPT and Claude, runs of LangSmith, SQLite files of LangGraph's
    checkpoints or LangChain's histories, our own export, lists and lines of messages, annotated conversations.

    Raises:
        InvalidInputError: if the file cannot be read or is not a conversation. The message says where.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(len(SQLITE))
    except OSError as error:
        fail(str(path), f"cannot be read: {error.strerror or error}")
    if head == SQLITE:
        return conversations_of_sqlite(path)
    if head.startswith(_ZIP):
        fail(str(path), "this is an archive: unpack it, and name the conversations.json inside")
    if size >= _LARGEST_BYTES:
        fail(str(path), f"{size / 1e9:.1f} GB are more than {_LARGEST_BYTES / 1e9:.1f} GB: split the file")
    text = _text_of(path)
    items = _items(path, text)
    first = next(items, None)
    if first is None:
        fail(str(path), f"the list is empty: {_ONE_OF}" if text.strip() else "the file is empty")
    reader = export_reader(first.value) if isinstance(first.value, dict) else None
    if reader is None:
        found = attempted(str(path), _whole, path, [first, *items])
        if isinstance(found, Refused):
            raise InvalidInputError(found.reason)
        return len(found), iter(found)
    number = 1 + sum(1 for _ in items)
    return number, (attempted(_title_of(one), reader, one) for one in _items(path, text))


def _title_of(document: Located) -> str:
    named = (document.get("title"), document.get("name"), document.get("id"), document.get("uuid"))
    return str(next((one for one in named if one), document.place))


def _whole(path: Path, rows: list[Located]) -> tuple[Conversation | Refused, ...]:
    first = rows[0].value
    if not isinstance(first, dict):
        fail(rows[0].place, f"expected an object, found {type(first).__name__}: {_ONE_OF}")
    if is_run(first):
        return tuple(conversations_of_runs(rows))
    if "sessions" in first or isinstance(first.get("messages"), list):
        reader = annotated_conversation if "sessions" in first else _with_messages
        if len(rows) == 1:
            return (reader(rows[0], name=path.stem),)
        named = enumerate(rows, start=1)
        return tuple(attempted(_title_of(row), reader, row, name=f"{path.stem}-{number}") for number, row in named)
    if "session" in first and "message" in first:
        return _exported(rows)
    beside = path.with_name(f"{path.stem}.questions.json")
    listed = [one.value for one in _items(beside, _text_of(beside))] if beside.is_file() else []
    asked = Located(place=str(beside), value=listed)
    return (listed_conversation(rows, name=path.stem, questions=asked),)


def _exported(rows: list[Located]) -> tuple[Conversation | Refused, ...]:
    """The sessions of an export, whose lines may mix sessions in any order."""
    sessions: dict[str, list[Located]] = {}
    for row in rows:
        sessions.setdefault(row.text("session"), []).append(row)
    if len(sessions) == 1:
        return tuple(_session(lines, name=name) for name, lines in sessions.items())
    return tuple(attempted(name, _session, lines, name=name) for name, lines in sessions.items())


def _session(lines: list[Located], *, name: str) -> Conversation:
    users = list(dict.fromkeys(line.text("user") for line in lines if line.get("user") is not None))
    if len(users) > 1:  # exports of two memories in one file: what one of them said is nothing to the other
        fail(lines[0].place, f"the session {name!r} has messages of several users: import them one by one")
    return replace(listed_conversation(lines, name=name, keeps_times=True), user=users[0] if users else None)


def _with_messages(row: Located, *, name: str) -> Conversation:
    if not isinstance(row.value, dict) or not isinstance(row.value.get("messages"), list):
        fail(row.place, f"expected a conversation with `messages`, like the first: {_ONE_OF}")
    questions = row.at("questions") if "questions" in row.value else None
    return listed_conversation(row.at("messages").items(), name=str(row.get("id") or name), questions=questions)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        fail(f"{path}:{line}", "the file is not UTF-8 text")
    except OSError as error:
        fail(str(path), f"cannot be read: {error.strerror or error}")


def _items(path: Path, text: str) -> Iterator[Located]:
    """The items of a list, the lines of JSON Lines, or the one document, each parsed when it is needed."""
    is_list = text.lstrip().startswith("[")
    decoder, at, line, counted = json.JSONDecoder(), text.index("[") + 1 if is_list else 0, 1, 0
    for number in itertools.count():
        while at < len(text) and text[at] in _BETWEEN:
            at += 1
        line, counted = line + text.count("\n", counted, at), at
        if is_list and text.startswith("]", at):
            if text[at + 1 :].strip():
                fail(f"{path}:{line}", "not JSON: something stands behind the list")
            return
        if at == len(text) and not is_list:
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            at = (
                error.pos if text[error.pos :].strip() else len(text.rstrip())
            )  # what is missing is told of the last line
            before = text[:at].split("\n")
            fail(f"{path}:{len(before)}", f"not JSON: {error.msg} (column {len(before[-1]) + 1})")
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits, lists in lists without end
            fail(str(path), f"cannot be read as JSON: {error}")
        is_alone = not is_list and not number and not text[at:].strip()
        place = f"[{number}]" if is_list else "" if is_alone else f":{line}"
        yield Located(place=f"{path}{place}", value=value)


@functools.cache
def sample_conversation() -> Conversation:
    """Somebody builds a lending library for seeds with an assistant's help, over three weeks; with questions."""
    with as_file(files("langchain_tiered_memory") / "samples") as folder:
        return read_conversation(folder / SAMPLE_FILE)
