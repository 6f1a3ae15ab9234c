"""LangGraph's store over the memory's database: items by namespace, per user, searched by meaning.

    store = TieredStore(memory)
    agent = create_agent(model, tools, store=store, context_schema=Ctx)
    agent.invoke({"messages": [...]}, config, context=Ctx(user_id="zoe"))

Items that a user's run puts belong only to that user, whatever their namespace: another user's run cannot find them,
list their namespaces or overwrite them, and `memory.forget(user=...)` removes them. `shared` names namespaces for all
users.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from langgraph.config import get_config
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from langchain_tiered_memory.border import checked, checked_fields
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.errors import ArgumentError, InvalidInputError, SettingsError
from langchain_tiered_memory.integrations.checks import Memory  # noqa: TC001
from langchain_tiered_memory.integrations.graph.tracks import user_of
from langchain_tiered_memory.items.searching import has_labels, put_items, search_items
from langchain_tiered_memory.items.store import ItemDraft, Reach
from langchain_tiered_memory.types.arguments import Amount, Name, Such

if TYPE_CHECKING:
    from langchain_tiered_memory.items.store import Place, StoredItem
    from langchain_tiered_memory.runtime import Runtime

Labels: TypeAlias = Sequence[Name]
Minutes: TypeAlias = Annotated[float, Such("a finite number of minutes from 0 up", lambda minutes: minutes >= 0)]


class TieredStore(BaseStore):
    """A LangGraph store in the memory's database, for `create_agent(store=...)`, langmem's tools and deepagents.

    It uses the memory's embedder. With `embeddings=None`, search is by words. In a batch, each read sees what was there
    before the batch, and all writes happen together or not at all.

    Args:
        memory: The memory whose database keeps the items.
        user: The user whose items it keeps. By default, the user of the run, whom `user_key` names in `Runtime.context`
            or in the config. Without a user, items belong to nobody, and only such items are visible.
        user_key: The key or attribute that names the user.
        shared: Prefixes of namespaces that all users can see and change.
        fields: Paths in a value, in LangGraph's notation, whose texts are searched by meaning. `$` is the whole value.
            `put(..., index=...)` sets others for one item.
        ttl: How long items live, and whether reading one renews its time. Expired items are never returned. The next
            write or `sweep_ttl` removes them.

    Raises:
        SettingsError: if an argument cannot be used.
    """

    supports_ttl = True

    @checked(SettingsError)
    def __init__(
        self,
        memory: Memory,
        *,
        user: Name | None = None,
        user_key: Name = "user_id",
        shared: Sequence[Labels] = (),
        fields: Sequence[Name] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        self._memory = memory
        self._user = user
        self._user_key = user_key
        self._shared = tuple(tuple(labels) for labels in shared)
        if () in self._shared:
            msg = "a shared namespace has at least one label: without one, every user's items would be shared"
            raise SettingsError(msg)
        self._fields = tuple(fields)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out reads and writes. Returns one result for each, in their order.

        Raises:
            InvalidNamespaceError: if a namespace has an empty label, or a label with a period or NUL.
            InvalidInputError: if a value is not JSON, a filter cannot be read, or an argument has the wrong type.
            MixedOwnersError: if the config names another user than the run's context.
            StorageError: if the database cannot be read or written. Nothing was written.
        """
        ops, reach = [_checked(op) for op in ops], self._reach()
        writes = any(isinstance(op, PutOp) for op in ops)
        runtime = self._memory.core.writable_runtime() if writes else self._memory.core.runtime
        got = self._read(runtime, reach, [op for op in ops if isinstance(op, GetOp)])
        puts: dict[Place, ItemDraft] = {}
        results: list[Result] = []
        for op in ops:
            if isinstance(op, PutOp):
                puts[op.namespace, op.key] = self._draft(op)
                results.append(None)
            elif isinstance(op, GetOp):
                there = got.get((op.namespace, op.key))
                results.append(Item(**_shown(there)) if there is not None else None)
            elif isinstance(op, SearchOp):
                results.append(self._search(runtime, reach, op))
            else:
                results.append(_namespaces(runtime, reach, op))
        if puts:
            put_items(runtime, reach, list(puts.values()))
        return results

    abatch = off_loop_twin(batch)  # type: ignore[arg-type] # the base class has its own `self`

    def sweep_ttl(self) -> int:
        """Remove expired items. Returns how many."""
        runtime = self._memory.core.writable_runtime()
        return runtime.store.items.sweep(now=runtime.now())

    asweep_ttl = off_loop_twin(sweep_ttl)

    def _reach(self) -> Reach:
        user = self._user
        if user is None:
            try:
                user = user_of(get_config(), self._user_key)
            except RuntimeError:  # outside of a run
                user = None
        return Reach(user=user, shared=self._shared)

    def _read(self, runtime: Runtime, reach: Reach, ops: Sequence[GetOp]) -> Mapping[Place, StoredItem]:
        if not ops:
            return {}
        found = runtime.store.items.read(reach, [(op.namespace, op.key) for op in ops], now=runtime.now())
        lives_on = {(op.namespace, op.key) for op in ops if op.refresh_ttl}
        self._refresh(runtime, [one for place, one in found.items() if place in lives_on])
        return found

    def _search(self, runtime: Runtime, reach: Reach, op: SearchOp) -> list[SearchItem]:
        found = search_items(
            runtime,
            reach,
            op.namespace_prefix,
            query=op.query,
            wanted=op.filter,
            limit=op.limit,
            offset=op.offset,
        )
        if op.refresh_ttl:
            self._refresh(runtime, [one for one, _ in found])
        return [SearchItem(**_shown(one), score=score) for one, score in found]

    def _refresh(self, runtime: Runtime, found: Sequence[StoredItem]) -> None:
        expiring = [one.key for one in found if one.expires]
        if expiring and not runtime.store.database.read_only:
            runtime.store.items.refresh(expiring, now=runtime.now())

    def _draft(self, op: PutOp) -> ItemDraft:
        fields = () if op.index is False else self._fields if op.index is None else tuple(op.index)
        value = dict(op.value) if op.value is not None else None
        return ItemDraft(namespace=op.namespace, name=op.key, value=value, fields=fields, ttl_minutes=op.ttl)


def _shown(one: StoredItem) -> dict[str, Any]:
    return {
        "value": one.value,
        "key": one.name,
        "namespace": one.namespace,
        "created_at": dt.datetime.fromtimestamp(one.created_at, tz=dt.UTC),
        "updated_at": dt.datetime.fromtimestamp(one.updated_at, tz=dt.UTC),
    }


def _namespaces(runtime: Runtime, reach: Reach, op: ListNamespacesOp) -> list[tuple[str, ...]]:
    found = runtime.store.items.namespaces(reach, now=runtime.now())
    for condition in op.match_conditions or ():
        at_end = condition.match_type == "suffix"
        found = [one for one in found if has_labels(one, condition.path, at_end=at_end)]
    if op.max_depth is not None:
        found = sorted({one[: op.max_depth] for one in found})
    return found[op.offset : op.offset + op.limit]


class _Call:
    """Types of the fields of LangGraph's calls except namespaces. LangGraph's classes check nothing."""

    key: str
    refresh_ttl: bool
    filter: Mapping[str, Any] | None
    limit: Amount
    offset: Amount
    query: str | None
    value: Mapping[str, Any] | None
    index: Literal[False] | Sequence[Name] | None
    ttl: Minutes | None
    match_conditions: Sequence[MatchCondition] | None
    max_depth: Amount | None


def _checked(op: object) -> Op:
    """A checked call. It repeats the checks of LangGraph's own verbs, because calls may come without them."""
    if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
        msg = f"{op!r} is not an operation of a store: use GetOp, SearchOp, PutOp or ListNamespacesOp"
        raise InvalidInputError(msg)
    op = op._replace(**checked_fields(_Call, op._asdict(), ArgumentError))
    if isinstance(op, GetOp | PutOp):
        _check_labels(op.namespace)
    elif isinstance(op, SearchOp):
        _check_labels(op.namespace_prefix)
    else:
        for condition in op.match_conditions or ():
            _check_labels(condition.path)
    return op


def _check_labels(labels: object) -> None:
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        msg = f"{labels!r} is not a namespace: give a tuple of labels, even for a single label"
        raise InvalidNamespaceError(msg)
    for label in labels:
        if not isinstance(label, str) or not label or "." in label or "\0" in label:
            msg = f"{label!r} cannot be a label of a namespace: give a non-empty string without a period or a NUL"
            raise InvalidNamespaceError(msg)
