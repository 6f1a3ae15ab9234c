"""Runs with files in tiers, for agents and graphs: a middleware with the tool `open_file`, and a pair of nodes.

    middleware = [FileRunMiddleware(memory, roots=["."]), TieredMemoryMiddleware(memory)]
    agent = create_agent(model, tools, middleware=middleware)

A run begins with each call of the agent and ends with it; its files stay in their tiers from call to call. There is no
thread behind it: what is due is done when a file is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables.config import ensure_config

from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.integrations.checks import check_integration
from langchain_tiered_memory.integrations.file_tool import open_file_tool
from langchain_tiered_memory.integrations.graph.memory_node import MemoryNode, at_once
from langchain_tiered_memory.integrations.graph.node_journeys import Done
from langchain_tiered_memory.integrations.graph.node_wiring import MemorySource, opened
from langchain_tiered_memory.integrations.graph.run_identity import place_of
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.types.records import DEFAULT_TRACK

try:
    from langchain.agents.middleware.types import AgentMiddleware
except ImportError as error:
    _MISSING = "FileRunMiddleware needs langchain 1.x: pip install 'langchain-tiered-memory[agents]'"
    raise ImportError(_MISSING) from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.integrations.graph.run_identity import Place
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.sessions.file_run import Run

_LEAST_TOKENS = 100
_RUNS_REMEMBERED = 100


class FileRunMiddleware(AgentMiddleware[Any, Any]):
    """Gives an agent `open_file`, and each of its calls the start and the end of a run.

    Args:
        memory: Where everything is kept; the session is the `thread_id` of the config.
        roots: Folders whose files may be opened; `None`: those of the settings.
        critical: Files to load and pin at the start.
        max_tokens: Bounds each result of `open_file`.
        track: The track of the agent's messages: a file that it shows is not shown again on it.
        user_key: Key of the config that names the user, where there is one.

    Raises:
        SettingsError: for a choice that cannot be used.
    """

    def __init__(
        self,
        memory: TieredMemory,
        *,
        roots: Sequence[str] | None = None,
        critical: Sequence[str] = (),
        max_tokens: int = 4000,
        track: str = DEFAULT_TRACK,
        user_key: str = "user_id",
    ) -> None:
        super().__init__()
        check_integration("FileRunMiddleware", memory, max_tokens=max_tokens, track=track, user_key=user_key)
        if max_tokens < _LEAST_TOKENS:
            msg = f"FileRunMiddleware: max_tokens is {max_tokens}: a page of a file needs at least {_LEAST_TOKENS}"
            raise SettingsError(msg)
        self._runs = _Runs(memory, roots=roots, critical=critical, track=track, user_key=user_key)
        counter = memory.core.runtime.counter
        self.tools = [open_file_tool(self._runs.of, max_tokens=max_tokens, count=counter.count_text)]

    def before_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - of any agent
        """Begin a run: load what is critical."""
        del state, runtime
        self._runs.begin(ensure_config())

    async def abefore_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - as above
        """See `before_agent`."""
        del state, runtime
        await off_loop(self._runs.begin, ensure_config())

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - as above
        """End it: archive, clean, save the figures, report."""
        del state, runtime
        self._runs.end(ensure_config())

    async def aafter_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - as above
        """See `after_agent`."""
        del state, runtime
        await off_loop(self._runs.end, ensure_config())


class _Runs:
    """The runs of a middleware, by session and user; of the last 100 the alerts and times are remembered."""

    def __init__(
        self,
        memory: TieredMemory,
        *,
        roots: Sequence[str] | None,
        critical: Sequence[str] = (),
        track: str = DEFAULT_TRACK,
        user_key: str,
    ) -> None:
        self._memory = memory
        self._roots = roots
        self._critical = critical
        self._track = track
        self._user_key = user_key
        self._lock = forks.Lock()
        self._begun: dict[tuple[str, str | None], Run] = {}

    def of(self, config: RunnableConfig) -> Run:
        """The run that was begun, or one that nobody began: the files are the same."""
        place = place_of(config, self._user_key)
        with self._lock:
            begun = self._begun.get((place.session_id, place.user))
        return begun if begun is not None else self._new(place)

    def begin(self, config: RunnableConfig) -> Run:
        """Start a run, in the place of one that was never ended."""
        place = place_of(config, self._user_key)
        run = self._new(place).start()
        key = (place.session_id, place.user)
        with self._lock:
            self._begun.pop(key, None)
            self._begun[key] = run
            if len(self._begun) > _RUNS_REMEMBERED:
                del self._begun[next(iter(self._begun))]
        return run

    def end(self, config: RunnableConfig) -> None:
        """End the run that was begun, or what there is of it."""
        place = place_of(config, self._user_key)
        with self._lock:
            begun = self._begun.pop((place.session_id, place.user), None)
        (begun if begun is not None else self._new(place)).end()

    def _new(self, place: Place) -> Run:
        return self._memory.run(
            place.session_id,
            user=place.user,
            track=self._track,
            roots=self._roots,
            critical=self._critical,
            background=False,
        )


def start_run_node(
    memory: MemorySource,
    *,
    roots: Sequence[str] | None = None,
    critical: Sequence[str] = (),
    user_key: str = "user_id",
    name: str = "start_run",
) -> MemoryNode:
    """A node that begins a run: it loads and pins the critical files, and does what is due. `end_run_node` ends it.

    Args:
        memory: Where everything is kept, or a function that opens it.
        roots: As of `FileRunMiddleware`, as are the next two.
        critical: See there.
        user_key: See there.
        name: The node's, where `add_node` gets none.
    """
    check_integration("start_run_node", memory, may_open=True, user_key=user_key, name=name)

    def journey(state: Any, config: RunnableConfig) -> Done:  # noqa: ANN401 - any state
        del state
        run = _Runs(opened(memory), roots=roots, critical=critical, user_key=user_key).begin(config)
        run.tend()
        return Done(update={})

    return MemoryNode(name, at_once(journey))


def end_run_node(
    memory: MemorySource, *, roots: Sequence[str] | None = None, user_key: str = "user_id", name: str = "end_run"
) -> MemoryNode:
    """A node that ends a run: it archives, cleans, saves a checkpoint with the figures, and reports.

    Args:
        memory: As of `start_run_node`, as are the others.
        roots: See there.
        user_key: See there.
        name: See there.
    """
    check_integration("end_run_node", memory, may_open=True, user_key=user_key, name=name)

    def journey(state: Any, config: RunnableConfig) -> Done:  # noqa: ANN401 - any state
        del state
        _Runs(opened(memory), roots=roots, user_key=user_key).end(config)
        return Done(update={})

    return MemoryNode(name, at_once(journey))
