"""The work of `tiered-memory export`, `import` and `forget`."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from langchain_tiered_memory.cli.opening import embedder_of, entries_of, existing_session, message_ids_of, open_memory
from langchain_tiered_memory.cli.screen import err, far, out, plural, print_json, progress, say
from langchain_tiered_memory.cli.surroundings import say_gaps
from langchain_tiered_memory.conversations.importing import export_line, import_conversations
from langchain_tiered_memory.conversations.reading import open_conversations
from langchain_tiered_memory.errors import NotFoundError
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
        count = 0
        with written(out) as file, progress("exporting", len(sessions)) as step:
            for session in sessions:
                for entry in entries_of(memory, session.session_id):
                    file.write(export_line(session.session_id, entry) + "\n")
                    count += 1
                step()
    err().print(f"{plural(count, 'message')} of {plural(len(sessions), 'session')} written", style="dim")


def import_file(
    db: str, file: Path, *, session_id: str | None, model: str | None, no_embeddings: bool, to_json: bool
) -> bool:
    """Add the conversations of `file`; whether all of them were taken.

    Raises:
        InvalidInputError: when the file is none, or a session is named and the file holds several conversations.
    """
    _ = open_conversations(file)  # before a database is made for it
    with open_memory(db, model=model, no_embeddings=no_embeddings) as memory:
        say_gaps(memory.status())
        with far("import") as how:
            report = import_conversations(memory, file, session_id=session_id, progress=how)
        with progress("summarising", len(report.added)) as step:
            for name in report.added:
                memory.session(name).flush()
                step()
    for one in report.refused:
        say(f"refused: {one.name}: {one.reason}", style="yellow")
    if to_json:
        print_json(report)
    else:
        for name, count in report.added.items():
            out().print(f"{name}: {plural(count, 'message')} added", markup=False)
    return not report.refused


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


def found_target(db: str, target: Target) -> Target:
    """What there is to forget under its whole names, before anybody is asked.

    Raises:
        NotFoundError: when there is no such database, session, message or user.
    """
    with open_memory(db, no_embeddings=True, must_exist=True) as memory:
        if target.session_id is not None:
            session_id = existing_session(memory, target.session_id).session_id
            message_ids = message_ids_of(memory, session_id, target.message_ids)
            return replace(target, session_id=session_id, message_ids=message_ids)
        if not memory.sessions(user=target.user):
            msg = f"there is no session of the user {target.user!r} in this database"
            raise NotFoundError(msg)
        return target


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
            receipt = memory.session(target.session_id).forget(message_ids=list(target.message_ids))
        else:
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
        say(f"bytes may remain: {place}", style="yellow", where=console)


@contextmanager
def written(path: Path | None) -> Iterator[IO[str]]:
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
