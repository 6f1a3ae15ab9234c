"""Opens the parts of a memory from what the user chose."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_tiered_memory.errors import DamagedRowError, SettingsError, TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.ingest import derived_again
from langchain_tiered_memory.models.chat_models import models_in, name_of
from langchain_tiered_memory.models.embeddings import fingerprint_of, named_embeddings, resolve_embeddings
from langchain_tiered_memory.models.message_counting import RememberedCounts
from langchain_tiered_memory.models.surroundings import look_around
from langchain_tiered_memory.models.token_counters import adapt_counter, best_counter
from langchain_tiered_memory.runs.files.opening import settle_all
from langchain_tiered_memory.runtime import Runtime, SqlStore, logger
from langchain_tiered_memory.settings import settings_from_environment
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.database import Database
from langchain_tiered_memory.summaries.engine.engine import CondensationEngine
from langchain_tiered_memory.summaries.writers.extractive import ExtractiveCondenser

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.recall.chroma.index import ChromaIndex
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.sql.encryption import KeySource
    from langchain_tiered_memory.summaries.writers.jobs import Condenser


ChromaChoice = Any
"""`None` (embedded, beside the database), a path, a URL, or a `chromadb` client."""
CondensingModel: TypeAlias = "str | Runnable[Any, Any]"


def open_runtime(
    where: str | Path | None,
    *,
    model: CondensingModel | Sequence[CondensingModel] | None,
    embeddings: Embeddings | str | None,
    chroma: ChromaChoice,
    settings: Settings | None,
    token_counter: object,
    clock: Callable[[], float] | None,
    engine: CondensationEngine | None = None,
    read_only: bool = False,
    encryption_key: KeySource | None = None,
) -> Runtime:
    """Open the database and choose the judges. The index and the embedder are opened when first used.

    The arguments are those of `TieredMemory.open`.
    """
    settings = settings if settings is not None else settings_from_environment()
    now = clock if clock is not None else time.time
    chain = _chain(model)
    if engine is not None and chain:
        msg = "an engine has writers of its own: pass either model or engine"
        raise SettingsError(msg)
    named = next((one for one in chain[:1] if isinstance(one, str)), None)
    counter = best_counter(named) if token_counter is None else adapt_counter(token_counter)
    if engine is None:
        engine = CondensationEngine.create(
            settings.condensation,
            models=_condensers(chain, counter, settings),
            extractive=ExtractiveCondenser(counter.count_text),
            attempts=settings.tree.attempts,
        )
    if isinstance(embeddings, str) and embeddings != "auto":
        embeddings = named_embeddings(embeddings)
    if encryption_key is not None and settings.recall.chroma_documents:
        msg = "recall.chroma_documents makes Chroma keep the texts unencrypted: leave it off with a key"
        raise SettingsError(msg)
    database = Database(
        where,
        busy_seconds=settings.busy_seconds,
        now=now,
        read_only=read_only,
        file_mode=settings.file_mode,
        encryption_key=encryption_key,
    )
    store = SqlStore(database, vectors=_vector_folder(chroma), wait=time.sleep)
    chosen_embeddings = cache(lambda: resolve_embeddings(embeddings))
    runtime = Runtime(
        store=store,
        settings=settings,
        counter=RememberedCounts(counter),
        now=now,
        condenser=engine,
        open_index=_Once(lambda: _open_index(store, chosen_embeddings(), chroma, settings)),
        embeddings=chosen_embeddings,
        embedder=cache(lambda: fingerprint_of(chosen_embeddings())),
        signature=forks.Signature(),
        surroundings=look_around(
            embeddings,
            chroma,
            counter=counter if token_counter is None else None,
            path=store.database.path,
            in_memory=store.database.in_memory,
            is_encrypted=store.database.is_encrypted,
        ),
        monotonic=time.monotonic,
    )
    store.database.damage.tell = partial(_tell_of_damage, runtime)
    store.database.damage.reread = partial(derived_again, counter=counter)
    engine.attach(count_text=counter.count_text, clock=now, report=runtime.report)
    runtime.sections.attach(report=runtime.report, seconds=settings.condensation.plugin_seconds)
    if store.database.unwritable_because is not None:
        runtime.report(
            EventName.OPENED_READ_ONLY,
            f"it can be read but not written: {store.database.unwritable_because}",
        )
    return runtime


_LOADING = forks.Section("the loading of the vector index")
"""If a fork interrupts the import of a module, the child can never import it: the import waits for a thread that is
gone."""


class _Once:
    """Calls a function once, at the first call, and keeps its result. Thread-safe."""

    def __init__(self, call: Callable[[], ChromaIndex | None]) -> None:
        self._call: Callable[[], ChromaIndex | None] | None = call
        self._lock = forks.Lock()
        self.opened: ChromaIndex | None = None
        """The result, if there is one yet."""

    def __call__(self) -> ChromaIndex | None:
        with self._lock, _LOADING:
            if self._call is not None:
                self.opened, self._call = self._call(), None
            return self.opened


def close_runtime(runtime: Runtime) -> None:
    """Let go of the index and the database."""
    with suppress(TieredMemoryError):  # what could not be written is the order of the last accesses, and no more
        settle_all(runtime)
    runtime.last_requests.clear()
    opened = runtime.open_index.opened if isinstance(runtime.open_index, _Once) else None
    if opened is not None:
        opened.close()
    runtime.store.database.close()


def _vector_folder(chroma: ChromaChoice) -> Path | None:
    """The folder of the chosen Chroma, if it has one and it is known."""
    if isinstance(chroma, str | Path):
        return None if str(chroma).startswith(("http://", "https://")) else Path(chroma)
    if chroma is None or not hasattr(chroma, "get_settings"):
        return None
    known = chroma.get_settings()
    return Path(known.persist_directory) if known.is_persistent else None


def _open_index(
    store: SqlStore, chosen: Embeddings | None, chroma: ChromaChoice, settings: Settings
) -> ChromaIndex | None:
    if chosen is None:
        return None
    store.database.end_snapshot()  # opening it loads libraries, and may wait for a server
    from langchain_tiered_memory.recall.chroma.index import ChromaIndex  # noqa: PLC0415 - chromadb is slow to import

    where = chroma
    if where is None and store.database.is_encrypted:
        return None  # vectors tell of the texts that they were made from; `look_around` has said so
    if where is None and store.database.path is not None:
        where = store.database.path.with_name(store.database.path.name + ".chroma")
    if where is None and not store.database.in_memory:
        return None  # on PostgreSQL there is no folder beside it; `look_around` has said so
    index = ChromaIndex(
        chosen,
        where,
        namespace=store.database.identity,
        documents=settings.recall.chroma_documents,
        bare=store.database.is_encrypted,
        timeout_seconds=settings.recall.chroma_seconds,
        disposable=chroma is None,
        file_mode=settings.file_mode,
    )
    if store.database.read_only and not index.reads_alone:
        index.close()
        logger.warning(
            "search is by words alone: embedded Chroma writes to its folder when it is opened, and this memory is "
            "read-only; a Chroma server (chroma='http://host:port') can be searched"
        )
        return None
    return index


def _chain(model: CondensingModel | Sequence[CondensingModel] | None) -> list[CondensingModel]:
    if model is None:
        return []
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415 - only where a model is used

    chain = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    for one in chain:
        found = [] if isinstance(one, str) else models_in(one)
        if not (isinstance(one, str) or (found and all(isinstance(inner, BaseChatModel) for inner in found))):
            msg = (
                "a condensing model must be a chat model, a LangChain wrapper around one, or a string that names one, "
                f"not {type(one).__name__}"
            )
            raise SettingsError(msg)
    return chain


def _condensers(chain: Sequence[CondensingModel], counter: TokenCounter, settings: Settings) -> list[Condenser]:
    """A condenser for each model of a chain, each with its own name."""
    if not chain:
        return []
    from langchain_tiered_memory.summaries.writers.fitting import Shortening  # noqa: PLC0415
    from langchain_tiered_memory.summaries.writers.model import ModelCondenser  # noqa: PLC0415 - only where a model is used
    from langchain_tiered_memory.summaries.writers.model_calls import ModelCalls  # noqa: PLC0415

    tool_tokens, shortening = settings.condensation.tool_tokens, None
    if tool_tokens is not None:
        shortening = Shortening(tool_tokens=tool_tokens, tree=settings.tree, count_text=counter.count_text)
    names: dict[str, int] = {}
    condensers: list[Condenser] = []
    for one in chain:
        chosen = _chat_model(one) if isinstance(one, str) else one
        name = one if isinstance(one, str) else name_of(chosen) or type(chosen).__name__
        names[name] = names.get(name, 0) + 1
        calls = ModelCalls(
            chosen,
            name=name if names[name] == 1 else f"{name} ({names[name]})",
            count_text=counter.count_text,
            count_message=counter.count_message,
            default_window=settings.default_window,
            deadline_seconds=settings.tree.deadline_seconds,
            traces=settings.traces,
        )
        condensers.append(ModelCondenser(calls, validation=settings.condensation.validation, shortening=shortening))
    return condensers


def _chat_model(name: str) -> BaseChatModel:
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415 - an extra
    except ImportError as error:
        msg = f"a model named by a string ({name!r}) needs langchain: `pip install langchain`, or pass a chat model"
        raise SettingsError(msg) from error
    try:
        model: BaseChatModel = init_chat_model(name)
    except Exception as error:
        # A provider's package: each raises what it likes, such as an error of its own where a key is missing.
        msg = (
            f"the model {name!r} cannot be made ({type(error).__name__}: {error}): install its provider's package, set "
            "its key in the environment, or pass a chat model"
        )
        raise SettingsError(msg) from error
    return model


def _tell_of_damage(runtime: Runtime, error: DamagedRowError) -> None:
    """Report a row that cannot be read, once for each opened memory."""
    if runtime.view_cache.first_time((error.table, error.row, error.column)):
        runtime.report(EventName.DAMAGED_ROW, str(error), table=error.table, row=error.row, column=error.column)
