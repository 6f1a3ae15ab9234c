"""The runnable that every node of the memory is; what callers of a graph or an agent are told in its streams."""

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
    """Turns the guard's reports into notices, each told once; safe for threads."""

    def __init__(self) -> None:
        self._failures = Remembered[tuple[str, str], str]()

    def __deepcopy__(self, memo: dict[int, Any]) -> Notices:
        """A new one: what was told to the callers of one agent is news to those of its copy."""
        return Notices()

    def of(self, report: GuardReport, *, session_id: str, track: str) -> list[dict[str, Any]]:
        """Plain JSON for what a report tells: an alert, a checkpoint, an outcome; no word of any message."""
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
        """A condensation that keeps failing for one reason is news once."""
        if report.outcome.kind is not OutcomeKind.FAILED:
            self._failures.take(line)
            return True
        known, reason = self._failures.get(line), str(report.outcome.reason)
        self._failures.put(line, reason)
        return reason != known


def unstreamed(config: RunnableConfig) -> AbstractContextManager[None]:
    """Run what is inside with the caller's tracers, and without what streams to the caller.

    A condensing call is tagged `nostream`, but `astream_events` looks at no tag. Callbacks as such must stay: without
    them no trace would show the call and its cost.
    """
    return under(_without_streams(config))


@contextlib.contextmanager
def under(config: RunnableConfig) -> Iterator[None]:
    """Run what is inside as a child of that config."""
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
    """The custom stream of the graph that runs, and the callbacks of a config; nobody where no graph is running."""

    config: RunnableConfig

    def telling(self, notices: Sequence[dict[str, Any]]) -> MethodCall:
        """The request of a flow to tell them, in plain JSON."""
        return MethodCall(of=self, name="tell", args=(notices,))

    def tell(self, notices: Sequence[dict[str, Any]]) -> None:
        """Tell both."""
        for notice in notices:
            if _write(notice):
                dispatch_custom_event(EVENT_NAME, notice, config=self.config)

    async def atell(self, notices: Sequence[dict[str, Any]]) -> None:
        """See `tell`."""
        for notice in notices:
            if _write(notice):
                await adispatch_custom_event(EVENT_NAME, notice, config=self.config)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a node leaves."""

    update: dict[str, Any]
    notices: Sequence[dict[str, Any]] = ()
    """For the caller's streams, in plain JSON."""


class MemoryNode(Runnable[Any, dict[str, Any]]):
    """A node, sync and async, made by one of the functions here; `StateGraph.add_node` takes it as it is.

    It has no trace of its own: the graph traces the node, and a second one would hold the state once more.

    Args:
        name: The node's, where `add_node` gets none.
        journey: From a state and a config to the update; a flow where it may wait for a model.
    """

    def __init__(self, name: str, journey: Callable[[Any, RunnableConfig], Flow[Done] | Done]) -> None:
        self.name = name
        self._journey = journey

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's names
        """The state update of this node.

        Raises:
            InvalidInputError: when the config has no `thread_id`, or the state is not what the node was made for.
            TieredMemoryError: when the memory cannot do it; the state is as it was.
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
        done = found if isinstance(found, Done) else (yield from found)
        yield Streams(config).telling(done.notices)
        return done.update


def _write(notice: dict[str, Any]) -> bool:
    """Put a notice on the graph's custom stream. False where no graph is running: the node was called by itself."""
    from langgraph.config import get_stream_writer  # noqa: PLC0415 - the engine works without LangGraph

    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):
        return False
    writer(notice)
    return True
