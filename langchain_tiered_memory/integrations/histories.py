"""Histories in and out: LangChain's chat histories, LangGraph's checkpoints, lists of messages and OpenAI-style dicts.

Importing the same history again adds nothing: a message without an id gets one made from its place in the history and
its words. If messages were put before it since, it counts as another message.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - annotations are read at the border, as are those of the next with a remark
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.runnables import RunnableConfig  # noqa: TC002
from langchain_core.runnables.config import run_in_executor

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.conversations.annotated import listed_conversation
from langchain_tiered_memory.conversations.importing import BATCH
from langchain_tiered_memory.conversations.turns import Located
from langchain_tiered_memory.driver import off_loop_function
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.integrations.legacy.turns import their_own
from langchain_tiered_memory.messages.codec import coerce, encode
from langchain_tiered_memory.session import Session  # noqa: TC001
from langchain_tiered_memory.types.arguments import Checkpointer, Name, Such

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple

else:  # LangGraph may not be installed
    Checkpointer = Annotated[Any, Such("a checkpointer of LangGraph", lambda given: hasattr(given, "get_tuple"))]
History: TypeAlias = Annotated[
    BaseChatMessageHistory | Iterable[Any], Such("a chat history, or a list of messages: put a single one in a list")
]

_Arrived: TypeAlias = tuple[BaseMessage, "dt.datetime | None"]
"""A message, and when it was said if its source tells."""
_BESIDE_CONTENT = ("function_call", "audio", "reasoning_content")
"""Keys of an assistant's words outside its content. LangChain keeps them in `additional_kwargs`."""


@checked()
def import_history(
    session: Session,
    source: History,
    *,
    at: dt.datetime | None = None,
    label: str = "",
) -> list[str]:
    """Add a history to a session. It skips messages that are already there, so it can be repeated and resumed.

    Args:
        session: The session to add to.
        source: A chat history; messages, as from `from_langgraph`; or dicts from OpenAI, LangChain or LangGraph's
            server. Their times (`at`, `timestamp`, `created_at`, `date`) are kept.
        at: The time of messages without one in their source. Now by default.
        label: Distinguishes histories with the same words, if you add several to one session. A message with an id
            keeps it, so give each source that merely numbers its messages its own session.

    Returns:
        The ids of its messages, in order, new or not.

    Raises:
        InvalidInputError: if something in it is not a message. The batches of 200 before it remain.
        StorageError: if the database cannot store it. The batches before remain.
    """
    arrived = _arrived(source.messages if isinstance(source, BaseChatMessageHistory) else source, label)
    return [one for batch in _batches(arrived) for one in session.add_messages(**_as_told(batch, at))]


@checked()
async def aimport_history(
    session: Session,
    source: History,
    *,
    at: dt.datetime | None = None,
    label: str = "",
) -> list[str]:
    """See `import_history`."""
    given = (await _aread(source))[0] if isinstance(source, BaseChatMessageHistory) else source
    arrived = await run_in_executor(None, _arrived, given, label)
    return [one for batch in _batches(arrived) for one in await session.aadd_messages(**_as_told(batch, at))]


@checked()
def export_history(session: Session, target: BaseChatMessageHistory) -> list[str]:
    """Append the transcript of a session's track to a chat history, and return the ids of what was added.

    Args:
        session: The session to read.
        target: The history. Messages that it already has, by id or otherwise by their words, are skipped.
    """
    missing = _missing(session.messages(), target.messages)
    for start in range(0, len(missing), BATCH):
        target.add_messages(missing[start : start + BATCH])
    return [str(one.id) for one in missing]


@checked()
async def aexport_history(session: Session, target: BaseChatMessageHistory) -> list[str]:
    """See `export_history`."""
    theirs, takes_async = await _aread(target)
    missing = await run_in_executor(None, _missing, await session.amessages(), theirs)
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        if takes_async:
            await target.aadd_messages(batch)
        else:
            await run_in_executor(None, target.add_messages, batch)
    return [str(one.id) for one in missing]


@checked()
def to_openai(session: Session) -> list[dict[str, Any]]:
    """Return the transcript of a session's track as OpenAI-style dicts with ids. `import_history` reads them back.

    Args:
        session: The session to read.
    """
    return [row for message in session.messages() for row in _rows(message)]


ato_openai = off_loop_function(to_openai)


@checked()
def from_langgraph(
    checkpointer: Checkpointer, config: RunnableConfig, *, channel: Name = "messages"
) -> list[BaseMessage]:
    """Return the messages of a LangGraph thread, from its latest checkpoint or the one named in `config`.

    Args:
        checkpointer: The checkpointer of the graph.
        config: Names the thread (`thread_id`), and optionally a `checkpoint_id` and a `checkpoint_ns`.
        channel: The key of the state that holds the messages.

    Raises:
        NotFoundError: if the thread has no checkpoint.
        InvalidInputError: if `config` names no thread, or the state has no messages under that key.
    """
    thread = _thread_of(config)
    return _messages_in(checkpointer.get_tuple(config), thread, channel)


@checked()
async def afrom_langgraph(
    checkpointer: Checkpointer, config: RunnableConfig, *, channel: Name = "messages"
) -> list[BaseMessage]:
    """See `from_langgraph`. A checkpointer may know `aget_tuple` alone."""
    thread = _thread_of(config)
    return _messages_in(await checkpointer.aget_tuple(config), thread, channel)


def _thread_of(config: RunnableConfig) -> str:
    thread = (config or {}).get("configurable", {}).get("thread_id")
    if not thread:
        msg = 'the config names no thread: give {"configurable": {"thread_id": ...}}'
        raise InvalidInputError(msg)
    return str(thread)


def _messages_in(found: CheckpointTuple | None, thread: str, channel: str) -> list[BaseMessage]:
    if found is None:
        msg = f"the thread {thread!r} has no checkpoint here"
        raise NotFoundError(msg)
    values = found.checkpoint["channel_values"]
    held = values.get(channel)
    if isinstance(held, list):
        return [coerce(one) for one in held]
    names = ", ".join(sorted(repr(name) for name in values if not name.startswith("__"))) or "nothing"
    msg = (
        f"the state of thread {thread!r} has no list of messages under {channel!r}; it has {names}. Name another "
        "channel, or import graph.get_state(config).values if the channel is kept as deltas"
    )
    raise InvalidInputError(msg)


def _arrived(source: Iterable[Any], label: str) -> list[_Arrived]:
    given = list(source)
    if given and all(isinstance(one, Mapping) for one in given):
        said = _messages_of_rows(given)
    else:
        said = [(coerce(one), None) for one in given]
    return [
        (whole if whole.id else _named(whole, place, label), moment)
        for place, (message, moment) in enumerate(said)
        for whole in their_own([message])
    ]


def _named(message: BaseMessage, place: int, label: str) -> BaseMessage:
    identity = json.dumps([label, place, encode(message).digest])
    return message.model_copy(update={"id": f"in-{hashlib.sha256(identity.encode('ascii')).hexdigest()[:32]}"})


def _batches(arrived: Sequence[_Arrived]) -> Iterable[Sequence[_Arrived]]:
    return (arrived[start : start + BATCH] for start in range(0, len(arrived), BATCH))


def _as_told(batch: Sequence[_Arrived], at: dt.datetime | None) -> dict[str, Any]:
    own = [moment for _, moment in batch]
    return {"messages": [message for message, _ in batch], "at": at if None in own else own}


def _missing(ours: Sequence[BaseMessage], theirs: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Those of `ours` that a history lacks. In a history without ids, each text counts as often as it occurs."""
    ids = {one.id for one in theirs if one.id}
    unnamed = Counter(encode(one).digest for one in theirs if not one.id)
    missing = []
    for one in ours:
        if one.id in ids:
            continue
        digest = encode(one).digest
        if unnamed[digest]:
            unnamed[digest] -= 1
        else:
            missing.append(one)
    return missing


async def _aread(history: BaseChatMessageHistory) -> tuple[list[BaseMessage], bool]:
    """The messages of a history, and whether it takes async calls, which a history opened for sync use refuses."""
    try:
        return await history.aget_messages(), True
    except (NotImplementedError, ValueError):
        return await run_in_executor(None, lambda: history.messages), False


def _messages_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[tuple[BaseMessage, dt.datetime | None]]:
    """The messages of dicts with their ids, and when they were said.

    Raises:
        InvalidInputError: if a row is not a message, an id occurs twice, or a time cannot be read.
    """
    located = [Located(place=f"message {number}", value=_in_parts(row)) for number, row in enumerate(rows, start=1)]
    turns = listed_conversation(located, name="the history").turns
    return [
        (_completed(turn.message.model_copy(update={"id": _own_id(row)}), row), turn.at)
        for turn, row in zip(turns, rows, strict=True)
    ]


def _in_parts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message that was dumped whole (`{"type": "human", "content": ...}`) to `{"type": ..., "data": ...}`."""
    if "content" not in row or "type" not in row or row.keys() & {"role", "message", "data", "fields"}:
        return dict(row)
    return {**row, "data": {**row, "content": row["content"] or ""}}


def _own_id(row: Mapping[str, Any]) -> str | None:
    """The id in a dict: at its top level, in its message or in LangChain's `data`."""
    for place in (row, row.get("message"), row.get("data"), row.get("fields")):
        if isinstance(place, Mapping) and place.get("id") not in {None, ""}:
            return str(place["id"])
    return None


def _completed(message: BaseMessage, row: Mapping[str, Any]) -> BaseMessage:
    """`message` with the assistant's words outside its content: a refusal or a transcript."""
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
    """OpenAI-style dicts with ids. A call that could not be parsed keeps its arguments as they were."""
    try:
        rows = convert_to_openai_messages([message], include_id=True)
    except (ValueError, KeyError, TypeError):  # LangChain refuses the message for a block that OpenAI has no form for
        rows = convert_to_openai_messages([message.model_copy(update={"content": str(message.text)})], include_id=True)
    if isinstance(message, AIMessage):
        for call in message.invalid_tool_calls:
            function = {"name": call.get("name") or "", "arguments": call.get("args") or ""}
            rows[0].setdefault("tool_calls", []).append(
                {"type": "function", "id": call.get("id") or "", "function": function}
            )
        legacy = message.additional_kwargs.get("function_call")
        if legacy and "tool_calls" not in rows[0]:
            rows[0]["function_call"] = dict(legacy)
    return list(rows)
