"""What the memory does, as runs of its own in LangSmith and other tracers of LangChain: inputs, outputs, tokens.

A run is told to tracers alone, never to callbacks that stream to a caller: a graph's streams and `astream_events` show
nothing of it. Where nobody traces, nothing is loaded, and an operation costs a look at a variable. As in `telemetry`,
the steps of what waits run in several threads: each of them says for itself that it is `inside` a run.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from langchain_core.callbacks import CallbackManager
    from langchain_core.runnables import RunnableConfig

_TAG = "tiered_memory"
_around: ContextVar[CallbackManager | None] = ContextVar("tiered_memory_trace", default=None)
"""Of the run that the step in hand is inside of. LangChain's own variable stays: others ask it where they are."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """A run that has begun."""

    outputs: dict[str, Any] = field(default_factory=dict)
    """What came of it."""
    callbacks: CallbackManager | None = None
    """For what is called inside it: its parent is this run. `None` where nobody traces."""

    def of_call(self) -> RunnableConfig:
        """What a call of a model inside it is configured with."""
        return {} if self.callbacks is None else {"callbacks": self.callbacks}

    @contextmanager
    def inside(self) -> Iterator[None]:
        """The runs that begin here, in this thread, stand under it."""
        before = _around.set(self.callbacks)
        try:
            yield
        finally:
            _around.reset(before)


@contextmanager
def traced(name: str, inputs: Mapping[str, Any], *, session_id: str, wanted: bool) -> Iterator[Trace]:
    """A run around what is inside; its `outputs` are told when it ends.

    Args:
        name: Of the run.
        inputs: What was asked.
        session_id: Whose it is; its metadata say so.
        wanted: `settings.traces`.
    """
    callbacks = _callbacks() if wanted else None
    tracers = _tracers_of(callbacks) if callbacks is not None else None
    if callbacks is None or tracers is None:
        yield Trace()
        return
    tracers.add_tags([_TAG], inherit=False)
    tracers.add_metadata({"session": session_id}, inherit=False)
    run = tracers.on_chain_start(None, dict(inputs), name=name)
    callbacks.parent_run_id = run.run_id
    trace = Trace(callbacks=callbacks)
    try:
        yield trace
    except BaseException as error:
        run.on_chain_error(error)
        raise
    run.on_chain_end(trace.outputs)


def _callbacks() -> CallbackManager | None:
    """The callbacks of the run around, of the running config, and of the environment; `None` where nobody traces."""
    config = sys.modules.get("langchain_core.runnables.config")
    if config is None:
        return None  # nobody runs anything of LangChain's
    running = _around.get() or (config.var_child_runnable_config.get() or {}).get("callbacks")
    from langsmith.utils import tracing_is_enabled  # noqa: PLC0415 - loaded by the module above

    if not running and not tracing_is_enabled():
        return None
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415 - as above

    return CallbackManager.configure(inheritable_callbacks=running)


def _tracers_of(callbacks: CallbackManager) -> CallbackManager | None:
    from langchain_core.tracers._streaming import _StreamingCallbackHandler  # noqa: PLC0415 - as above
    from langchain_core.tracers.base import BaseTracer  # noqa: PLC0415 - as above

    tracers = callbacks.copy()
    tracers.handlers = [
        one
        for one in tracers.handlers
        if isinstance(one, BaseTracer) and _StreamingCallbackHandler not in type(one).__mro__
    ]
    return tracers if tracers.handlers else None
