"""The runnable behind every node of the memory, and the notices for callers in a graph's or agent's streams."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import (
    BaseCallbackHandler,
    BaseCallbackManager,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from langchain_core.tracers._streaming import _StreamingCallbackHandler

from langchain_tiered_memory.driver import Flow, MethodCall, arun, run
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.types.outcomes import GuardReport, OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager


EVENT_NAME = "tiered_memory"
"""Name of the custom event in callbacks, and `type` of the dict in the graph's custom stream."""
_TOLD_OF_OUTCOMES = ("id", "why", "messages_before", "messages_after", "tokens_before", "tokens_after", "cost")


class Notices:
    """Turns the guard's reports into notices, each sent once. Thread-safe."""

    def __init__(self) -> None:
        self._failures = Remembered[tuple[str, str], str]()

    def __deepcopy__(self, memo: dict[int, Any]) -> Notices:
        """A new one, because the callers of a copied agent have not had its notices."""
        return Notices()

    def of(self, report: GuardReport, *, session_id: str, track: str) -> list[dict[str, Any]]:
        """A report's alert, checkpoint and outcome as plain JSON, without any message's words."""
        named = {"type": EVENT_NAME, "session_id": session_id, "track": track}
        found: list[dict[str, Any]] = []
        if report.alert is not None:
            told = asdict(report.alert) | {"zone": report.alert.zone.value, "ratio": round(report.alert.ratio, 4)}
            found.append(named | {"event": "zone_alert"} | told)
        if report.checkpoint_id is not None:
            found.append(named | {"event": "checkpoint", "id": report.checkpoint_id})
        outcome = report.outcome
        if outcome.id and self._is_new(report, (session_id, track)):
            kind, reason = outcome.kind.value, outcome.reason.value if outcome.reason is not None else None
            told = {name: getattr(outcome, name) for name in _TOLD_OF_OUTCOMES}
            told |= {"outcome": kind, "reason": reason, "steps": list(outcome.steps)}
            found.append(named | {"event": "outcome", "summaries": len(outcome.summary_ids)} | told)
        return found

    def _is_new(self, report: GuardReport, line: tuple[str, str]) -> bool:
        """A condensation that keeps failing for the same reason is reported once."""
        if report.outcome.kind is not OutcomeKind.FAILED:
            self._failures.take(line)
            return True
        known, reason = self._failures.get(line), str(report.outcome.reason)
        self._failures.put(line, reason)
        return reason != known


def unstreamed(config: RunnableConfig) -> AbstractContextManager[None]:
    """Run the block with the caller's tracers, but without streaming to the caller.

    A condensing call is tagged `nostream`, but `astream_events` ignores tags. Other callbacks must stay, or no trace
    would show the call and its cost.
    """
    return under(_without_streams(config))


@contextlib.contextmanager
def under(config: RunnableConfig) -> Iterator[None]:
    """Run the block as a child of that config."""
    token = var_child_runnable_config.set(config)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _without_streams(config: RunnableConfig) -> RunnableConfig:
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        quiet = callbacks.copy()
        quiet.handlers = [one for one in quiet.handlers if not _streams(one)]
        quiet.inheritable_handlers = [one for one in quiet.inheritable_handlers if not _streams(one)]
        return cast("RunnableConfig", {**config, "callbacks": quiet})
    if callbacks:
        return cast("RunnableConfig", {**config, "callbacks": [one for one in callbacks if not _streams(one)]})
    return config


def _streams(handler: BaseCallbackHandler) -> bool:
    return _StreamingCallbackHandler in type(handler).__mro__


@dataclass(frozen=True, slots=True)
class Streams:
    """The custom stream of the running graph, and the callbacks of a config. Nothing if no graph is running."""

    config: RunnableConfig

    def telling(self, notices: Sequence[dict[str, Any]]) -> MethodCall:
        """A flow's request to notify them, in plain JSON."""
        return MethodCall(of=self, name="tell", args=(notices,))

    def tell(self, notices: Sequence[dict[str, Any]]) -> None:
        """Notify both."""
        for notice in notices:
            if _write(notice):
                dispatch_custom_event(EVENT_NAME, notice, config=self.config)

    async def atell(self, notices: Sequence[dict[str, Any]]) -> None:
        """See `tell`."""
        for notice in notices:
            if _write(notice):
                await adispatch_custom_event(EVENT_NAME, notice, config=self.config)


class MemoryNode(Runnable[Any, dict[str, Any]]):
    """A node, sync and async, for `StateGraph.add_node`.

    It has no trace of its own: the graph traces the node, and a second trace would hold the state again.

    Args:
        name: The node's name, if `add_node` gets none.
        journey: Returns the update for a state and a config. It is a flow if it may wait for a model.
    """

    def __init__(
        self, name: str, journey: Callable[[Any, RunnableConfig], Flow[dict[str, Any]] | dict[str, Any]]
    ) -> None:
        self.name = self.__name__ = name  # `StateGraph.add_sequence` takes the latter
        self._journey = journey

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's names
        """Return the state update of this node.

        Raises:
            InvalidInputError: if the config has no `thread_id`, or the state is not what the node was made for.
            TieredMemoryError: if the memory cannot do it. The state is unchanged.
        """
        config = ensure_config(config)
        with unstreamed(config):
            return run(self._done(input, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's names
        """See `invoke`."""
        config = ensure_config(config)
        with unstreamed(config):
            return await arun(self._done(input, config))

    def _done(self, state: Any, config: RunnableConfig) -> Flow[dict[str, Any]]:  # noqa: ANN401 - any state
        found = self._journey(state, config)
        return found if isinstance(found, dict) else (yield from found)


def _write(notice: dict[str, Any]) -> bool:
    """Put a notice on the graph's custom stream. False if no graph is running because the node was called by itself."""
    from langgraph.config import get_stream_writer  # noqa: PLC0415 - the engine works without LangGraph

    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):
        return False
    writer(notice)
    return True
