"""Opens the rooms that a memory is made of, from what the user said."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_tiered_memory.condensers.engine import CondensationEngine
from langchain_tiered_memory.condensers.extractive import ExtractiveCondenser
from langchain_tiered_memory.decisions.groups import assign_groups
from langchain_tiered_memory.embeddings import resolve_embeddings
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.flows.house import House, logger
from langchain_tiered_memory.sessions.told import name_of
from langchain_tiered_memory.settings import Settings
from langchain_tiered_memory.stores.sql import SqlStore
from langchain_tiered_memory.token_counters import adapt_counter, best_counter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from langchain_tiered_memory.protocols import Condenser, TokenCounter, VectorIndex

ChromaChoice = Any
"""`None` (embedded, beside the database), a path, a URL, or a `chromadb` client."""
ModelChoice: TypeAlias = "str | BaseChatModel | Sequence[str | BaseChatModel] | None"
"""A chat model, a string for `init_chat_model`, a chain of them (the first choice first), or `None`."""


def open_house(
    where: str | Path | None,
    *,
    model: ModelChoice,
    embeddings: Embeddings | Literal["auto"] | None,
    chroma: ChromaChoice,
    settings: Settings | None,
    token_counter: object,
    clock: Callable[[], float] | None,
    engine: CondensationEngine | None = None,
) -> House:
    """Open the database and choose the judges; the index and the embedder wait for their first use.

    Args:
        where: A path, a URL, or `None` for memory.
        model: Who condenses; of a chain each model takes over from the one before.
        embeddings: As of `TieredMemory.open`.
        chroma: As of `TieredMemory.open`.
        settings: Limits, defaults and thresholds.
        token_counter: As of `TieredMemory.open`.
        clock: Seconds since the epoch.
        engine: Who condenses, in the place of `model` and the built-in writers.

    Raises:
        SettingsError: for a choice that cannot be used.
        StorageError: when the database cannot be opened.
    """
    settings = settings if settings is not None else Settings()
    now = clock if clock is not None else time.time
    chain = _chain(model)
    if engine is not None and chain:
        msg = "an engine has writers of its own: pass either model or engine"
        raise SettingsError(msg)
    first = chain[0] if chain else None
    counter = (
        best_counter(first if isinstance(first, str) else None)
        if token_counter is None
        else adapt_counter(token_counter)
    )
    fallback = ExtractiveCondenser(counter.count_text)
    if engine is None:
        engine = CondensationEngine.create(
            settings.condensation,
            models=_condensers(chain, counter, settings),
            extractive=fallback,
            attempts=settings.tree.attempts,
            max_open_seconds=settings.tree.max_backoff_seconds,
        )
    if embeddings not in ("auto", None) and isinstance(embeddings, str):
        msg = f'embeddings must be "auto", None or a LangChain Embeddings, not {embeddings!r}'
        raise SettingsError(msg)
    store = SqlStore.open(where, busy_seconds=settings.busy_seconds, now=now, group_rule=assign_groups)
    house = House(
        store=store,
        settings=settings,
        counter=counter,
        now=now,
        condenser=engine,
        open_index=_Once(lambda: _open_index(store, embeddings, chroma, settings)),
        worker=f"{socket.gethostname()[:24]}:{os.getpid()}:{uuid.uuid4().hex[:12]}",
        monotonic=time.monotonic,
    )
    engine.attach(count_text=counter.count_text, clock=now, report=house.report)
    return house


class _Once:
    """Calls a function at the first call and keeps what it gave; safe for threads."""

    def __init__(self, call: Callable[[], VectorIndex | None]) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._opened = False
        self._found: VectorIndex | None = None

    def __call__(self) -> VectorIndex | None:
        with self._lock:
            if not self._opened:
                self._found = self._call()
                self._opened = True
            return self._found

    @property
    def opened(self) -> VectorIndex | None:
        """What was opened, if anything was."""
        return self._found


def close_house(house: House) -> None:
    """Let go of the index and the database."""
    opened = house.open_index.opened if isinstance(house.open_index, _Once) else None
    if opened is not None:
        opened.close()
    house.store.database.close()


def _open_index(
    store: SqlStore, embeddings: Embeddings | Literal["auto"] | None, chroma: ChromaChoice, settings: Settings
) -> VectorIndex | None:
    chosen = resolve_embeddings(embeddings)
    if chosen is None:
        return None
    from langchain_tiered_memory.stores.chroma import ChromaIndex  # noqa: PLC0415 - chromadb is slow to import

    where = chroma
    if where is None and store.database.path is not None:
        where = store.database.path.with_name(store.database.path.name + ".chroma")
    if where is None and not store.database.in_memory:
        logger.warning(
            "search is by words alone: a memory on PostgreSQL has no folder beside it for embedded Chroma; name one "
            "with chroma='path', or a server with chroma='http://host:port', or pass embeddings=None to silence this"
        )
        return None
    return ChromaIndex(chosen, where, namespace=store.database.identity, documents=settings.recall.chroma_documents)


def _chain(model: ModelChoice) -> list[str | BaseChatModel]:
    if model is None:
        return []
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - only where a model is used

    chain = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    strangers = [type(one).__name__ for one in chain if not isinstance(one, str | BaseChatModel)]
    if strangers:
        msg = f"a condensing model is a chat model, or a string that names one, not {strangers[0]}"
        raise SettingsError(msg)
    return chain


def _condensers(chain: Sequence[str | BaseChatModel], counter: TokenCounter, settings: Settings) -> list[Condenser]:
    """A condenser for each model of a chain, each with a name of its own."""
    if not chain:
        return []
    from langchain_tiered_memory.condensers.llm import ModelCondenser  # noqa: PLC0415 - only where a model is used

    names: dict[str, int] = {}
    condensers: list[Condenser] = []
    for one in chain:
        chosen = _chat_model(one) if isinstance(one, str) else one
        name = one if isinstance(one, str) else name_of(chosen)
        names[name] = names.get(name, 0) + 1
        condensers.append(
            ModelCondenser(
                chosen,
                name=name if names[name] == 1 else f"{name} ({names[name]})",
                count_text=counter.count_text,
                count_message=counter.count_message,
                default_window=settings.default_window,
                deadline_seconds=settings.tree.deadline_seconds,
            )
        )
    return condensers


def _chat_model(name: str) -> BaseChatModel:
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = (
            f"a model named by a string ({name!r}) needs langchain: pip install 'langchain-tiered-memory[models]', or "
            "pass a chat model"
        )
        raise SettingsError(msg) from error
    try:
        model: BaseChatModel = init_chat_model(name)
    except (ImportError, ValueError) as error:
        msg = f"the model {name!r} cannot be made: {error}"
        raise SettingsError(msg) from error
    return model
