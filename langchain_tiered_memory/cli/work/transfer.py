"""The work of `tiered-memory export`, `import` and `forget`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from langchain_tiered_memory.cli.opening import embedder_of, entries_of, existing_session, open_memory, require_messages
from langchain_tiered_memory.cli.screen import err, out, plural, print_json, progress
from langchain_tiered_memory.cli.surroundings import say_gaps
from langchain_tiered_memory.conversations import read_conversations
from langchain_tiered_memory.conversations.importing import add_conversation, export_line
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.sql.private_files import PRIVATE, create_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def export_sessions(db: str, wanted: Sequence[str], *, out: Path | None) -> None:
    """Write the messages of `wanted` sessions, or of all, as JSON Lines.

    Raises:
        NotFoundError: when there is no such database or session.
    """
    with open_memory(db, no_embeddings=True, must_exist=True, read_only=True) as memory:
        sessions = [existing_session(memory, name) for name in wanted or memory.sessions()]
        written = 0
        with _written(out) as file, progress("exporting", len(sessions)) as step:
            for session in sessions:
                for entry in entries_of(memory, session.session_id):
                    file.write(export_line(session.session_id, entry) + "\n")
                    written += 1
                step()
    err().print(f"{plural(written, 'message')} of {plural(len(sessions), 'session')} written", style="dim")


def import_file(
    db: str, file: Path, *, session_id: str | None, model: str | None, no_embeddings: bool, to_json: bool
) -> None:
    """Add the conversations of `file`.

    Raises:
        InvalidInputError: when the file is none, or a session is named and the file holds several conversations.
    """
    conversations = read_conversations(file)
    if session_id is not None and len(conversations) > 1:
        msg = f"{file} holds {len(conversations)} conversations: import them without --session, each into its own"
        raise InvalidInputError(msg)
    added: dict[str, int] = {}
    with open_memory(db, model=model, no_embeddings=no_embeddings) as memory:
        say_gaps(memory.status())
        with progress("importing", sum(len(one.turns) for one in conversations)) as step:
            for conversation in conversations:
                name = session_id or conversation.id
                before = memory.session(name).metrics().messages if name in memory.sessions() else 0
                add_conversation(memory, name, conversation, on_step=step)
                added[name] = memory.session(name).metrics().messages - before
        for name in added:
            memory.session(name).flush()
    if to_json:
        print_json({"added": added})
        return
    for name, count in added.items():
        out().print(f"{name}: {plural(count, 'message')} added", markup=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be forgotten: messages of a session, a session, or a user."""

    session_id: str | None
    user: str | None
    message_ids: tuple[str, ...]

    def __str__(self) -> str:
        """As a question to the user says it."""
        if self.user is not None:
            return f"everything of the user {self.user!r}"
        if self.message_ids:
            return f"{plural(len(self.message_ids), 'message')} of the session {self.session_id!r}"
        return f"the session {self.session_id!r}"


def require_target(db: str, target: Target) -> None:
    """See that there is something to forget, before anybody is asked.

    Raises:
        NotFoundError: when there is no such database, session, message or user.
    """
    with open_memory(db, no_embeddings=True, must_exist=True) as memory:
        if target.session_id is not None:
            existing_session(memory, target.session_id)
            require_messages(memory, target.session_id, target.message_ids)
        elif not memory.sessions(user=target.user):
            msg = f"there is no session of the user {target.user!r} in this database"
            raise NotFoundError(msg)


def forget_target(db: str, target: Target, *, to_json: bool) -> None:
    """Forget, and print the receipt.

    Raises:
        NotFoundError: when there is no such database, session or message.
    """
    with open_memory(db, no_embeddings=True, must_exist=True) as memory:
        has_vectors = embedder_of(memory) is not None
    with open_memory(db, no_embeddings=not has_vectors, must_exist=True) as memory:
        if target.session_id is None:
            receipt = memory.forget(user=target.user)
        elif target.message_ids:
            receipt = existing_session(memory, target.session_id).forget(message_ids=list(target.message_ids))
        else:
            existing_session(memory, target.session_id)
            receipt = memory.forget(session_id=target.session_id)
    if to_json:
        print_json(receipt)
        return
    console = out()
    console.print(
        f"forgotten: {plural(receipt.entries, 'message')}, {plural(receipt.revisions, 'older revision')}, "
        f"{plural(receipt.summaries, 'summary')}, {plural(receipt.passages, 'passage')}, "
        f"{plural(receipt.vectors, 'vector')}, {plural(receipt.facts, 'fact')}, {plural(receipt.files, 'file')}, "
        f"{plural(receipt.checkpoints, 'checkpoint')}, {plural(receipt.items, 'item')}"
    )
    for place in receipt.may_remain:
        console.print(f"bytes may remain: {place}", style="yellow", markup=False)


@contextmanager
def _written(path: Path | None) -> Iterator[IO[str]]:
    """The file to write to, for its owner alone; a file appears under its name only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        create_file(part, PRIVATE)
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
