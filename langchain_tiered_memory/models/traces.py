"""What the memory does, as runs of its own in LangSmith and other tracers of LangChain: inputs, outputs, tokens.

A run is told to tracers alone, never to callbacks that stream to a caller: a graph's streams and `astream_events` show
nothing of it. Where nobody traces, nothing is loaded, and an operation costs a look at a variable. As in `telemetry`,
a run is not made current: the steps of what waits run in several threads.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from langchain_core.callbacks import CallbackManager

_TAG = "tiered_memory"


@contextmanager
def traced(
    name: str, inputs: Mapping[str, Any], *, session_id: str, wanted: bool
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """A run around what is inside; the value takes what came of it.

    Args:
        name: Of the run.
        inputs: What was asked.
        session_id: Whose it is; its metadata say so.
        wanted: `settings.traces`.
    """
    tracers = _tracers() if wanted else None
    if tracers is None:
        yield lambda _: None
        return
    outputs: dict[str, Any] = {}
    tracers.add_tags([_TAG], inherit=False)
    tracers.add_metadata({"session": session_id}, inherit=False)
    run = tracers.on_chain_start(None, dict(inputs), name=name)
    try:
        yield outputs.update
    except BaseException as error:
        run.on_chain_error(error)
        raise
    run.on_chain_end(outputs)


def _tracers() -> CallbackManager | None:
    """The tracers of the running config, and of the environment; `None` where there are none."""
    config = sys.modules.get("langchain_core.runnables.config")
    if config is None:
        return None  # nobody runs anything of LangChain's
    running = (config.var_child_runnable_config.get() or {}).get("callbacks")
    from langsmith.utils import tracing_is_enabled  # noqa: PLC0415 - loaded by the module above

    if not running and not tracing_is_enabled():
        return None
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415 - as above
    from langchain_core.tracers._streaming import _StreamingCallbackHandler  # noqa: PLC0415 - as above
    from langchain_core.tracers.base import BaseTracer  # noqa: PLC0415 - as above

    manager = CallbackManager.configure(inheritable_callbacks=running)
    manager.handlers = [
        one
        for one in manager.handlers
        if isinstance(one, BaseTracer) and _StreamingCallbackHandler not in type(one).__mro__
    ]
    return manager if manager.handlers else None
