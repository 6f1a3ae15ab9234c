"""LangGraph's checkpointer and store keep what was said too: what can be deleted there is, and what cannot is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.driver import Flow, HostCall, off_loop
from langchain_tiered_memory.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.runtime import Runtime

_NAMED = 5
"""Threads that a receipt names, of many: `session_ids` has all."""
_IN_MEMORY = "InMemorySaver"
"""The one of LangGraph's checkpointers that has no files."""
_STORE_IN_MEMORY = "InMemoryStore"
_FREE_SPACE = "free space of its database, until it is overwritten"


_PAGE_OF_ITEMS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCall(HostCall):
    """Call a method of LangGraph's checkpointer or store, whose async form has an `a` before its name."""

    of: Any
    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def take_out(call: MethodCall) -> Any:  # noqa: ANN401 - as the method answers
    """What the method gives."""
    return getattr(call.of, call.name)(*call.args, **call.options)


async def atake_out(call: MethodCall) -> Any:  # noqa: ANN401 - as above
    """As `take_out`, without blocking the event loop; a checkpointer without async runs in an executor."""
    try:
        return await getattr(call.of, f"a{call.name}")(*call.args, **call.options)
    except NotImplementedError:
        return await off_loop(getattr(call.of, call.name), *call.args, **call.options)


def refuse_what_is_no_store(store: object, namespaces: Sequence[Sequence[str]]) -> None:
    """Refuse what cannot delete items, and a deletion that names nothing, before anything is removed."""
    if store is None and not namespaces:
        return
    if not (callable(getattr(store, "search", None)) and callable(getattr(store, "delete", None))):
        msg = f"a {type(store).__name__} is not a LangGraph store: hand in the one that the graph was compiled with"
        raise InvalidInputError(msg)
    if not namespaces or not all(namespaces):
        msg = (
            "it is not said which items of the store are the user's: name their namespaces, such as "
            'namespaces=[("memories", "zoe")]'
        )
        raise InvalidInputError(msg)


def delete_items(store: Any, namespaces: Sequence[Sequence[str]]) -> Flow[tuple[int, tuple[str, ...]]]:  # noqa: ANN401 - LangGraph's own
    """Delete the items of these namespaces. Returns how many went, and what may remain there all the same."""
    of, deleted, remains = f"LangGraph's store ({type(store).__name__})", 0, list[str]()
    for namespace in map(tuple, namespaces):
        what = f"items of the namespace {namespace!r}"
        deleted += yield from _or_named(of, what, _emptied(store, namespace), remains)
    if deleted and type(store).__name__ != _STORE_IN_MEMORY:
        remains.append(f"{of}: {_FREE_SPACE}")
    return deleted, tuple(remains)


def _emptied(store: Any, namespace: tuple[str, ...]) -> Flow[int]:  # noqa: ANN401 - as above
    """Delete the items of a namespace, and of those below it; returns how many went."""
    deleted = 0
    while found := (yield MethodCall(of=store, name="search", args=(namespace,), options={"limit": _PAGE_OF_ITEMS})):
        for item in found:
            yield MethodCall(of=store, name="delete", args=(item.namespace, item.key))
        first = found[0]
        # A store that deletes nothing would be asked for the same items for ever.
        if (yield MethodCall(of=store, name="get", args=(first.namespace, first.key))) is not None:
            msg = f"the item {first.key!r} was deleted and is still there"
            raise StorageError(msg)
        deleted += len(found)
    return deleted


def _or_named(of: str, what: str, deletion: Flow[int], remains: list[str]) -> Flow[int]:
    """How many a deletion took; where it fails, what remains is named, for the rest is to be forgotten all the same."""
    try:
        return (yield from deletion)
    except Exception as error:  # noqa: BLE001 - somebody else's code
        remains.append(f"{of}: {what} could not be deleted ({type(error).__name__}: {error})")
        return 0


def refuse_what_is_no_checkpointer(saver: object) -> None:
    """Refuse what cannot delete a thread, before anything is removed."""
    if saver is not None and not callable(getattr(saver, "delete_thread", None)):
        msg = (
            f"a {type(saver).__name__} is not a LangGraph checkpointer that can delete a thread: hand in the one that "
            "the graph was compiled with"
        )
        raise InvalidInputError(msg)


def delete_threads(runtime: Runtime, saver: Any, session_ids: Sequence[str]) -> Flow[tuple[int, tuple[str, ...]]]:  # noqa: ANN401 - LangGraph's own
    """Delete threads in LangGraph's checkpointer. Returns how many went, and what may remain there all the same.

    It comes before anything of ours is removed: killed in between, the same call finds the sessions again.
    """
    of, deleted, remains = f"LangGraph's checkpointer ({type(saver).__name__})", list[str](), list[str]()
    for session_id in session_ids:
        if (yield from _or_named(of, f"the thread {session_id!r}", _without_thread(saver, session_id), remains)):
            deleted.append(session_id)
    if deleted:
        runtime.store.tombstones.threads_deleted(deleted)
        if type(saver).__name__ != _IN_MEMORY:
            remains.append(f"{of}: {_FREE_SPACE}")
    return len(deleted), tuple(remains)


def _without_thread(saver: Any, session_id: str) -> Flow[int]:  # noqa: ANN401 - as above
    yield MethodCall(of=saver, name="delete_thread", args=(session_id,))
    return 1


def left_in_threads(found: Mapping[str, str | None], *, whole: bool) -> tuple[str, ...]:
    """What the LangGraph checkpointers that were seen with these sessions keep of what was forgotten here."""
    by_name: dict[str, list[str]] = {}
    for session_id, name in found.items():
        if name is not None:
            by_name.setdefault(name, []).append(session_id)
    remedy = (
        "forget with checkpointer=... deletes a thread there too"
        if whole
        else "take them out of the state with RemoveMessage; its earlier checkpoints go with the thread alone"
    )
    return tuple(
        f"LangGraph's checkpointer ({name}): the messages in {_threads(ids)}; {remedy}" for name, ids in by_name.items()
    )


def _threads(ids: Sequence[str]) -> str:
    shown = ", ".join(map(repr, ids[:_NAMED])) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
    return f"the thread {shown}" if len(ids) == 1 else f"the threads {shown}"
