"""Opens memories for commands, and reads what the public verbs do not show."""

from __future__ import annotations

import difflib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tiered_memory.cli.options import given_key
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, OlderSchemaError
from langchain_tiered_memory.settings import PriceSettings, Settings, settings_from_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.types.records import Entry, Summary

_PAGE = 500
_ROOTS = 1000
"""A limit that exceeds the top summaries of a session with millions of messages."""


def open_memory(
    where: str | None,
    *,
    model: str | None = None,
    no_embeddings: bool = False,
    must_exist: bool = False,
    settings: Settings | None = None,
    read_only: bool = False,
) -> TieredMemory:
    """The memory at `where`. `None` gives one that lasts until it is closed.

    Raises:
        NotFoundError: if it must exist and there is no such file. (Opening would create an empty one.)
        StorageError: if it must exist and the server's database holds no memory. (Opening would make its tables.)
        SettingsError: if the model cannot be used.
    """
    from langchain_tiered_memory.sql.urls import url_of  # noqa: PLC0415 - slow to import, as is the next

    url = url_of(where)
    is_server = url.get_backend_name() != "sqlite"
    if must_exist and where is not None and not is_server and not Path(url.database or "").is_file():
        msg = f"there is no database at {where}: create one with `tiered-memory replay --db {where}` or `import`"
        raise NotFoundError(msg)
    from langchain_tiered_memory.memory import TieredMemory  # noqa: PLC0415 - as above

    if must_exist and is_server:
        with suppress(OlderSchemaError):  # which opening it to write upgrades
            TieredMemory.open(where, embeddings=None, read_only=True).close()
    return TieredMemory.open(
        where,
        model=model,
        embeddings=None if no_embeddings else "auto",
        settings=settings,
        read_only=read_only,
        encryption_key=given_key() if where is not None else None,
    )


def existing_session(memory: TieredMemory, session_id: str) -> Session:
    """The session with that name, or the only one whose name begins with it."""
    known = memory.sessions()
    if session_id in known:
        return memory.session(session_id)
    begin_so = [name for name in known if name.startswith(session_id)]
    if len(begin_so) == 1:
        return memory.session(begin_so[0])
    near = difflib.get_close_matches(session_id, known, n=1)
    if begin_so:
        msg = f"{len(begin_so)} sessions begin with {session_id!r}: {_listed(begin_so)}"
    elif near:
        msg = f"there is no session {session_id!r} in this database: did you mean {near[0]!r}?"
    else:
        has = f"it has {_listed(known)}" if known else "it is empty"
        msg = f"there is no session {session_id!r} in this database: {has}"
    raise NotFoundError(msg)


def priced_settings(model: str | None, *, price_in: float | None, price_out: float | None) -> Settings:
    """The settings of the environment, with the price of `model` if one is given."""
    if price_in is None and price_out is None:
        return settings_from_environment()
    price = PriceSettings(input_per_million=price_in or 0.0, output_per_million=price_out or 0.0)
    names = {model, model.partition(":")[2] or model} if model else {"extractive"}
    return settings_from_environment().model_copy(update={"prices": {name: price for name in names if name}})


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")  # noqa: PLR2004 - enough for one line


def entries_of(session: Session) -> Iterator[Entry]:
    """Every message of a session in order, all tracks."""
    after = 0
    while page := session.entries(after=after, limit=_PAGE):
        yield from page
        after = page[-1].seq


def message_ids_of(session: Session, given: Sequence[str]) -> tuple[str, ...]:
    """The ids of a session's messages, given in full or by a unique prefix."""
    store, ref = session.core.found()
    found: list[str] = []
    for one in given:
        ids = {entry.id for entry in store.transcript.by_prefix(ref, one)} if ref is not None else set()
        if len(ids) != 1:
            what = f"has no message {one!r}" if not ids else f"has more than one message that begins with {one!r}"
            msg = f"the session {session.session_id!r} {what}"
            raise NotFoundError(msg)
        found += ids
    return tuple(found)


def has_vectors(memory: TieredMemory) -> bool:
    """Whether the database has vectors, from whatever embedder."""
    return memory.core.runtime.store.vector_queue.embedder() is not None


def cover_of(session: Session) -> list[Summary]:
    """The highest summaries of a session, in order. They stand for its history."""
    store, ref = session.core.found()
    return store.tree.roots(ref, limit=_ROOTS) if ref is not None else []


def named_node(session: Session, name: str) -> tuple[Summary | None, list[Summary | Entry]]:
    """A summary with its sources, named as for `Session.expand`. No summary if the name is that of messages.

    Raises:
        NotFoundError: if the session has neither a summary nor a message with that name.
    """
    from langchain_tiered_memory.recall.search import summary_named  # noqa: PLC0415 - slow to import

    found = session.expand(name)
    with suppress(NotFoundError, InvalidInputError):
        runtime = session.core.checked
        return summary_named(runtime, session.session_id, name, track=session.track, alone=False), found
    return None, found
