"""Takes messages out of a graph's list, whatever reducer keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import RemoveMessage

from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig


def without(ids: frozenset[str], values: Sequence[Any], messages_key: str, config: RunnableConfig) -> Any:  # noqa: ANN401 - whatever the list's reducer takes
    """The update that takes the messages of these ids out of a state's list, and leaves the others.

    By id where the reducer knows removals, as `add_messages` does: what other nodes add in the same step stays then.
    Else the list is written anew. Which of them works is tried on a copy of the list before anything is written.

    Args:
        ids: Of what goes.
        values: The list as the state has it.
        messages_key: Its key.
        config: The node's. Outside of a graph nothing can be tried, and the removal is by id.

    Raises:
        InvalidInputError: when the list cannot be changed so; when it has messages without ids.
    """
    kept = [one for one in values if _id_of(one) not in ids]
    if len(kept) != len(values) - len(ids):
        msg = f"messages in {messages_key!r} have no ids: use a reducer that gives them some, such as add_messages"
        raise InvalidInputError(msg)
    by_id = [RemoveMessage(id=one) for one in sorted(ids)]
    channel = _channel(config, messages_key)
    if channel is None:
        return by_id
    refused: Exception | None = None
    for update in _updates(by_id, kept):
        tried = channel.copy()
        try:
            tried.update([update])
            if _same(tried.get(), kept):
                return update
        except Exception as error:  # noqa: BLE001 - a reducer of the user's own may raise whatever it likes
            refused = error
    msg = f"the reducer of {messages_key!r} lets nothing be removed from the list: use add_messages, or no evict_node"
    raise InvalidInputError(msg) from refused


def _updates(by_id: list[RemoveMessage], kept: list[Any]) -> Iterator[Any]:
    from langgraph.types import Overwrite  # noqa: PLC0415 - the engine works without LangGraph

    yield by_id
    yield Overwrite(kept)
    yield kept


def _channel(config: RunnableConfig, key: str) -> Any:  # noqa: ANN401 - a channel of LangGraph's
    """What keeps the list in the running graph; `None` where it cannot be reached.

    LangGraph gives nodes no public way to it. It hands each step a function that reads the state, bound to the
    channels; should that change, eviction goes by id alone.
    """
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    for bound in getattr(configurable.get("__pregel_read"), "args", ()):
        channel = bound.get(key) if hasattr(bound, "get") else None
        if hasattr(channel, "copy") and hasattr(channel, "update"):
            return channel
    return None


def _same(found: Any, kept: Sequence[Any]) -> bool:  # noqa: ANN401 - whatever a reducer made
    return isinstance(found, list) and [_id_of(one) for one in found] == [_id_of(one) for one in kept]


def _id_of(message: Any) -> str | None:  # noqa: ANN401 - a message, or one as a dict
    return message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
