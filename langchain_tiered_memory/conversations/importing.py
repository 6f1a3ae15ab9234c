"""Imports a conversation into a session with its user, times, tracks, kinds, tasks and pins, and exports one.

`read_conversations` reads an export back without loss, except for earlier revisions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence  # noqa: TC003 - read at the border, as are the next
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.conversations.reading import open_conversations
from langchain_tiered_memory.conversations.turns import Conversation, ImportReport, Refused, Turn
from langchain_tiered_memory.driver import off_loop_function
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.memory import TieredMemory  # noqa: TC001 - read at the border
from langchain_tiered_memory.messages.codec import digest_of_payload, encode
from langchain_tiered_memory.messages.ingest import redacted
from langchain_tiered_memory.reports import Progress
from langchain_tiered_memory.session import Session  # noqa: TC001 - as the memory
from langchain_tiered_memory.types.arguments import FilePath, SessionId  # noqa: TC001
from langchain_tiered_memory.types.records import DEFAULT_TRACK, Entry, utc

BATCH = 200
"""Messages per write. An interrupted import may have to repeat that many."""


@checked()
def import_conversations(
    memory: TieredMemory,
    path: FilePath,
    *,
    session_id: SessionId | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> ImportReport:
    """Import a file of conversations, each into its own session. The content tells the format.

    It reads ChatGPT's and Claude's `conversations.json`, runs exported from LangSmith, SQLite files of LangGraph's
    checkpoints and of LangChain's `SQLChatMessageHistory`, lists of messages in OpenAI's or LangChain's form or JSON
    Lines of them, our own export, and annotated conversations. Messages whose id is already there are not added again.

    Args:
        memory: The memory to add to.
        path: The file. An export is read one conversation at a time. A text of a gigabyte or more is refused.
        session_id: The session for a file with one conversation. By default, the conversation's own id.
        progress: Called after each conversation, or after each batch of messages if there is only one.

    Returns:
        How many messages are new, by session, and which conversations were refused, with the reason.

    Raises:
        InvalidInputError: if the file cannot be read, the memory refuses a message of its only conversation, or
            `session_id` is given for a file with several.
        SettingsError: if the package that reads it is not installed.
        StorageError: if the database cannot store it. What was added before remains.
    """
    number, conversations = open_conversations(Path(path))
    if session_id is not None and number > 1:
        msg = f"{path} holds {number} conversations: import them without naming a session, so that each gets its own"
        raise InvalidInputError(msg)
    added: dict[str, int] = {}
    refused: list[Refused] = []
    for done, one in enumerate(conversations, start=1):
        if isinstance(one, Refused):
            refused.append(one)
        else:
            name = session_id or one.id
            before = memory.session(name).metrics().messages
            try:
                add_conversation(memory, name, one, progress=progress if number == 1 else None)
            except InvalidInputError as error:
                if number == 1:
                    raise
                refused.append(Refused(name=one.title or one.id, reason=str(error)))
            added[name] = added.get(name, 0) + memory.session(name).metrics().messages - before
        if progress is not None and number > 1:
            progress(Progress(step="conversations", done=done, of=number))
    return ImportReport(added=added, refused=tuple(refused))


aimport_conversations = off_loop_function(import_conversations)


def add_conversation(
    memory: TieredMemory,
    session_id: str,
    conversation: Conversation,
    *,
    progress: Callable[[Progress], object] | None = None,
) -> None:
    """Add every turn of `conversation` to the session, in order. `progress` is called after each batch.

    Raises:
        InvalidInputError: if the memory refuses a message. Earlier batches remain.
    """
    done = 0
    for (track, kind, task), run in groupby(conversation.turns, key=lambda turn: (turn.track, turn.kind, turn.task)):
        session = memory.session(session_id, user=conversation.user, track=track, title=conversation.title)
        turns = list(run)
        for start in range(0, len(turns), BATCH):
            given = turns[start : start + BATCH]
            batch = _without_former(session, given)
            times = [turn.at for turn in batch if turn.at]
            at = times if len(times) == len(batch) else None
            session.add_messages([turn.message for turn in batch], at=at, kind=kind, task=task)
            for turn in batch:
                if turn.pinned:
                    with suppress(NotFoundError):  # it was forgotten here, and does not come back
                        session.pin(turn.id)
            done += len(given)
            if progress is not None:
                progress(Progress(step="messages", done=done, of=len(conversation.turns)))


def _without_former(session: Session, turns: Sequence[Turn]) -> list[Turn]:
    """The turns without those that say what their message said before it was edited: the file is older than the edit.

    Raises:
        InvalidInputError: where the file has no ids, and the session has another message under a number of its own.
    """
    store, ref = session.core.found()
    if ref is None:
        return list(turns)
    redact = session.core.runtime.settings.redact
    there = {entry.id: entry for entry in store.transcript.by_id(ref, [one.id for one in turns], track=session.track)}
    taken: list[Turn] = []
    for turn in turns:
        known = there.get(turn.id)
        digest = encode(redacted(turn.message, redact) if redact is not None else turn.message).digest
        if known is not None and known.digest != digest:
            former = store.transcript.revisions(ref, turn.id, track=session.track) if known.revision else []
            if digest in map(digest_of_payload, former):
                continue
            if turn.is_numbered:
                msg = (
                    f"the messages of this file have no ids, and the session {session.session_id!r} has other words as "
                    f"its {turn.id}: import the file into another session, or give its messages ids"
                )
                raise InvalidInputError(msg)
        taken.append(turn)
    return taken


def export_line(session_id: str, entry: Entry, *, user: str | None = None) -> str:
    """One message as JSON: session, id, time, the message, and its user, track, kind, task and pin if set."""
    track = entry.track if entry.track != DEFAULT_TRACK else None
    about = {"user": user, "track": track, "kind": entry.kind, "task": entry.task, "pinned": entry.pinned or None}
    row: dict[str, object] = {"session": session_id, "id": entry.id, "at": utc(entry.at).isoformat()}
    row |= {name: value for name, value in about.items() if value is not None}
    return json.dumps(row | {"message": json.loads(entry.payload)}, ensure_ascii=False)
