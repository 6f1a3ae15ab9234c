"""Moves old messages out of a graph's state after reading the archive back, so LangGraph's checkpoints stay bounded.

A message leaves only if the transcript returns exactly what the state has. Otherwise it stays in state, and the reason
is reported.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from langchain_tiered_memory.errors import InvalidInputError, UnknownMessageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.graph.branches import off_branch
from langchain_tiered_memory.integrations.graph.client_resends import stored_of
from langchain_tiered_memory.integrations.state import ArchivedPart, BranchRecord, digests_of
from langchain_tiered_memory.messages.codec import decode, encode
from langchain_tiered_memory.messages.ingest import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.records import Entry


def archive_branch(
    session: Session, messages: Sequence[BaseMessage], record: BranchRecord, *, keep_messages: int
) -> tuple[frozenset[str], BranchRecord, int]:
    """Choose and verify what leaves the state. The whole list is stored, and its newest `keep_messages` stay.

    `record` is what `keep_branch` just returned. Returns the ids of what may leave, the record of the rest, and how
    many others could not be verified.
    """
    candidates = _candidates(messages, keep_messages)
    if not candidates:
        return frozenset(), record, 0
    stored = stored_of(session, candidates)
    redact = session.core.runtime.settings.redact
    withheld = {
        str(one.id): reason
        for one in candidates
        if (reason := _doubt(one, stored.get(str(one.id)), redact)) is not None
    }
    moved = _whole_groups(candidates, withheld)
    if withheld:
        session.core.runtime.report(
            EventName.EVICTION_WITHHELD,
            f"{len(candidates) - len(moved)} messages stay in graph state: " + next(iter(withheld.values())),
            session_id=session.session_id,
            message_ids=list(withheld)[:20],
        )
    if not moved:
        return frozenset(), record, len(withheld)
    gone = [stored[str(one.id)] for one in moved]
    ids = frozenset(str(one.id) for one in moved)
    left = [one for one in messages if one.id not in ids]
    digest, said = digests_of(left)
    part = _part(session, messages, record, gone)
    after = replace(record, count=len(left), ids=digest, said=said, archived=part)
    return ids, after, len(withheld)


def _candidates(messages: Sequence[BaseMessage], keep_messages: int) -> list[BaseMessage]:
    """Messages older than the recent part, which begins with a whole group and includes all that waits for results."""
    cut = max(len(messages) - keep_messages, 0)
    answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    for place, one in enumerate(messages[:cut]):
        if isinstance(one, AIMessage) and any(call["id"] not in answered for call in one.tool_calls):
            cut = place
            break
    while 0 < cut < len(messages) and isinstance(messages[cut], ToolMessage):
        cut -= 1
    last_user = max((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), default=-1)
    # The system's word and the user's last one are what other nodes look for in the list.
    return [
        one for place, one in enumerate(messages[:cut]) if place != last_user and not isinstance(one, SystemMessage)
    ]


def _doubt(message: BaseMessage, entry: Entry | None, redact: Callable[[str], str] | None) -> str | None:
    """Why the archive cannot be shown to have this message. `None` if it has it."""
    if entry is None:
        return "the transcript does not have it: it was forgotten"
    encoded = encode(message)
    if encoded.problems:
        return f"not all of it could be kept: {encoded.problems[0]}"
    said = encode(redacted(message, redact)).digest if redact is not None else encoded.digest
    if entry.digest != said:
        return "the transcript has another wording of it"
    try:
        read_back = encode(decode(entry.payload)).digest
    except (UnknownMessageError, ValueError, KeyError, TypeError) as error:
        return f"its copy in the transcript cannot be read: {error}"
    return None if read_back == entry.digest else "the transcript does not return what was written"


def _whole_groups(candidates: Sequence[BaseMessage], withheld: dict[str, str]) -> list[BaseMessage]:
    """Candidates without groups that have a withheld message. A group is a message with the results of its calls."""
    group_of: dict[str, int] = {}
    groups: list[list[BaseMessage]] = []
    for one in candidates:
        if isinstance(one, ToolMessage) and one.tool_call_id in group_of:
            groups[group_of[one.tool_call_id]].append(one)
            continue
        if isinstance(one, AIMessage):
            group_of |= {str(call["id"]): len(groups) for call in one.tool_calls}
        groups.append([one])
    safe = {id(one) for group in groups if not any(other.id in withheld for other in group) for one in group}
    return [one for one in candidates if id(one) in safe]


def _part(
    session: Session, messages: Sequence[BaseMessage], record: BranchRecord, gone: Sequence[Entry]
) -> ArchivedPart:
    """How far the archive reaches, and which earlier messages are on other branches or stay in state."""
    before = record.archived
    last = max(gone, key=lambda entry: entry.seq)
    if before is not None and before.seq > last.seq:
        reach, last_id = before.seq, before.last_id
    else:
        reach, last_id = last.seq, last.id
    off = {*(off_branch(session, messages, record) or ()), *(before.off if before is not None else ())}
    off |= {entry.seq for entry in stored_of(session, messages).values()}
    off -= {entry.seq for entry in gone}
    return ArchivedPart(
        seq=reach,
        last_id=last_id,
        count=(before.count if before is not None else 0) + len(gone),
        off=frozenset(seq for seq in off if seq <= reach),
    )


def without(ids: frozenset[str], values: Sequence[Any], messages_key: str, config: RunnableConfig) -> Any:  # noqa: ANN401 - whatever the list's reducer takes
    """The update that removes the messages with these ids from a state's list.

    If the reducer knows removals, as `add_messages` does, they are removed by id, so messages that other nodes add in
    the same step stay. Otherwise the whole list is written. Both ways are first tried on a copy of the list. Outside of
    a graph nothing can be tried, so the removal is by id.
    """
    kept = [one for one in values if _id_of(one) not in ids]
    if len(kept) != len(values) - len(ids):
        msg = f"messages in {messages_key!r} have no ids: use a reducer that gives them some, such as add_messages"
        raise InvalidInputError(msg)
    by_id = [RemoveMessage(id=one) for one in sorted(ids)]
    channel = _channel(config, messages_key)
    if channel is None:
        return by_id
    from langgraph.types import Overwrite  # noqa: PLC0415 - the engine works without LangGraph

    refused: Exception | None = None
    for update in (by_id, Overwrite(kept), kept):
        tried = channel.copy()
        try:
            tried.update([update])
            left = tried.get()
            if isinstance(left, list) and [_id_of(one) for one in left] == [_id_of(one) for one in kept]:
                return update
        except Exception as error:  # noqa: BLE001 - a reducer of the user's own may raise whatever it likes
            refused = error
    msg = f"the reducer of {messages_key!r} lets nothing be removed from the list: use add_messages, or no evict_node"
    raise InvalidInputError(msg) from refused


def _channel(config: RunnableConfig, key: str) -> Any:  # noqa: ANN401 - a channel of LangGraph's
    """The channel of the list in the running graph. `None` if it cannot be reached.

    LangGraph gives nodes no public access to it. It passes each step a function that reads the state, bound to the
    channels. If that changes, eviction works only by id.
    """
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    for bound in getattr(configurable.get("__pregel_read"), "args", ()):
        channel = bound.get(key) if hasattr(bound, "get") else None
        if hasattr(channel, "copy") and hasattr(channel, "update"):
            return channel
    return None


def _id_of(message: Any) -> str | None:  # noqa: ANN401 - a message, or one as a dict
    return message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
