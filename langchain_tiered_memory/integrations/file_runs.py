"""Runs with files in tiers, for agents and graphs: a middleware with the tool `open_file`, and a pair of nodes.

    middleware = [FileRunMiddleware(memory, roots=["."]), TieredMemoryMiddleware(memory)]
    agent = create_agent(model, tools, middleware=middleware)

A run of an agent spans its calls: each call resumes the session's run and leaves it to the next, with its alerts and
times. The run ends when `memory.run(session).end()` is called, or at the next call if none came for an hour (the time
of warm). It has no thread: what is due is done when a file is opened, and at the end of a call.

The result of `open_file` is always the file's text. If a request already shows that text, it has a pointer instead
(`context/view/repeated_reads.py`), unless the agent asks to see the text once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig  # noqa: TC002 - tools find their config by this annotation
from langchain_core.runnables.config import ensure_config
from pydantic import BaseModel, Field

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.errors import DamagedFileError, InvalidInputError, SettingsError
from langchain_tiered_memory.integrations.checks import Memory, MemorySource  # noqa: TC001 - read at the border
from langchain_tiered_memory.integrations.graph.memory_node import MemoryNode
from langchain_tiered_memory.integrations.graph.node_wiring import opened
from langchain_tiered_memory.integrations.graph.tracks import Place, place_of
from langchain_tiered_memory.integrations.tools import quoted, tool_of
from langchain_tiered_memory.text.fencing import plain_label
from langchain_tiered_memory.text.truncation import most_fitting
from langchain_tiered_memory.types.arguments import Count, FilePaths, Name  # noqa: TC001 - read at the border
from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_core.tools import BaseTool

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.sessions.file_run import Run
    from langchain_tiered_memory.types.files import OpenedFile

try:
    from langchain.agents.middleware.types import AgentMiddleware
except ImportError as error:
    _MISSING = "FileRunMiddleware needs langchain 1.x: `pip install langchain`"
    raise ImportError(_MISSING) from error

_LEAST_TOKENS = 100


class FileRunMiddleware(AgentMiddleware[Any, Any]):
    """Gives an agent the tool `open_file` and a run. An unfinished run of the session is continued.

    Args:
        memory: The memory. The session is the config's `thread_id`.
        roots: One or more folders whose files may be opened. With `None`, those of the settings.
        critical: One or more files to load and pin at the start.
        max_tokens: The most tokens of one result of `open_file`.
        track: The track of the agent's messages. A file that it shows already is not shown again.
        user_key: The key of the config that names the user.

    Raises:
        SettingsError: if an argument cannot be used.
    """

    @checked(SettingsError)
    def __init__(
        self,
        memory: Memory,
        *,
        roots: FilePaths | None = None,
        critical: FilePaths = (),
        max_tokens: Count = 4000,
        track: Name = DEFAULT_TRACK,
        user_key: Name = "user_id",
    ) -> None:
        super().__init__()
        if max_tokens < _LEAST_TOKENS:
            msg = f"FileRunMiddleware: max_tokens is {max_tokens}: a page of a file needs at least {_LEAST_TOKENS}"
            raise SettingsError(msg)
        self._memory = memory
        self._user_key = user_key
        self._wanted: dict[str, Any] = {"roots": roots, "critical": critical, "track": track}
        count = memory.core.runtime.counter.count_text
        self.tools = [_open_file_tool(self._run_of, max_tokens=max_tokens, count=count)]

    def before_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - of any agent
        """Resume the session's run, or start one, and load the critical files."""
        del state, runtime
        self._run_of(ensure_config()).resume()

    abefore_agent = off_loop_twin(before_agent)  # type: ignore[arg-type] # the base class has its own `self`

    def after_agent(self, state: Any, runtime: Any) -> None:  # noqa: ANN401 - as above
        """Leave the run to the next call: do what is due, and save its figures."""
        del state, runtime
        self._run_of(ensure_config()).pause()

    aafter_agent = off_loop_twin(after_agent)  # type: ignore[arg-type] # the base class has its own `self`

    def _run_of(self, config: RunnableConfig) -> Run:
        return _new_run(self._memory, place_of(config, self._user_key), self._wanted)


def _new_run(memory: TieredMemory, place: Place, wanted: Mapping[str, Any]) -> Run:
    return memory.run(place.session_id, user=place.user, background=False, **wanted)


@checked(SettingsError)
def start_run_node(
    memory: MemorySource,
    *,
    roots: FilePaths | None = None,
    critical: FilePaths = (),
    user_key: Name = "user_id",
    name: Name = "start_run",
) -> MemoryNode:
    """Make a node that begins a run: it loads and pins the critical files, and does what is due.

    `end_run_node` ends the run.

    Args:
        memory: The memory, or a function that opens it.
        roots: As for `FileRunMiddleware`.
        critical: As for `FileRunMiddleware`.
        user_key: As for `FileRunMiddleware`.
        name: The node's name, if `add_node` gets none.
    """
    wanted = {"roots": roots, "critical": critical}

    def journey(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - any state
        del state
        _new_run(opened(memory), place_of(config, user_key), wanted).start().tend()
        return {}

    return MemoryNode(name, journey)


@checked(SettingsError)
def end_run_node(
    memory: MemorySource, *, roots: FilePaths | None = None, user_key: Name = "user_id", name: Name = "end_run"
) -> MemoryNode:
    """Make a node that ends a run: it archives, cleans up, saves a checkpoint with the figures, and reports.

    The arguments are those of `start_run_node`.
    """

    def journey(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - any state
        del state
        _new_run(opened(memory), place_of(config, user_key), {"roots": roots}).end()
        return {}

    return MemoryNode(name, journey)


_DESCRIPTION = (
    "Open a text file of the project and show it from a given line on. A file that has not changed since you opened it "
    "is not shown twice: you are told where it is in this conversation, and `again` shows it once more."
)
_STATES = {
    "new": "",
    "unchanged": "",
    "changed": "It changed since it was last opened.",
    "deleted": "It is gone from the disk: this is its content from when it was last read.",
}
"""The line above a page. The text below it is the same, word for word, if an unchanged file is opened again."""


class OpenFileInput(BaseModel):
    """Arguments of `open_file`."""

    path: str = Field(description="Path of the file, relative to the project or absolute.")
    start_line: int = Field(default=1, description="Number of the first line to show.")
    again: bool = Field(default=False, description="True shows the file even if it is unchanged and already shown.")


def _open_file_tool(
    run_of: Callable[[RunnableConfig], Run], *, max_tokens: int, count: Callable[[str], int]
) -> BaseTool:
    """The tool. Each of its results has at most `max_tokens`."""

    def open_file(path: str, config: RunnableConfig, start_line: int = 1, again: bool = False) -> str:  # noqa: FBT001, FBT002 - tools call by name
        run = run_of(config)
        run.tend()
        try:
            opened = run.open(path)
        except (InvalidInputError, DamagedFileError) as error:
            return f"{quoted(path)} cannot be opened: {plain_label(str(error), max_chars=300)}"
        if opened.is_binary:
            return f"{quoted(path)} is not a text file: it has {opened.file.size:,} bytes of other data."
        return _page_of(opened, start_line, max_tokens=max_tokens, count=count, again=again)

    return tool_of(open_file, OpenFileInput, _DESCRIPTION)


def _page_of(
    opened: OpenedFile, start_line: int, *, max_tokens: int, count: Callable[[str], int], again: bool = False
) -> str:
    """A file's lines from `start_line` (1 is the first) on, as many whole ones as fit, after a line that says which.

    A page that is shown `again`, although the conversation has it, says so, and is a different text.
    """
    state = f"{_STATES[opened.state]}\n" if _STATES[opened.state] else ""
    which = f"{state}{quoted(opened.path)}{', shown once more' if again else ''}"
    # As editors and compilers number them: a form feed or another character of Unicode's ends no line.
    lines = opened.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    first = max(start_line, 1)
    rest = lines[first - 1 :]

    def page(number: int) -> str:
        last = first + number - 1
        more = f" Continue with start_line {last + 1}." if number < len(rest) else ""
        head = f"{which}, lines {first} to {last} of {len(lines)}.{more}"
        return "\n".join([head, *rest[:number]])

    def fits(number: int) -> bool:
        return count(page(number)) <= max_tokens

    if not rest:
        return f"{which} has {len(lines)} lines, none from {first} on."
    low, high = 0, 1  # doubled while it fits, so that of a large file no more than a few pages are counted
    while high <= len(rest) and fits(high):
        low, high = high, high * 2
    low = most_fitting(min(high - 1, len(rest)), fits, least=low)
    if low:
        return page(low)
    long = rest[0][:max_tokens]  # a character is at most a few tokens, and most often a part of one
    more = f" Continue with start_line {first + 1}." if len(rest) > 1 else ""
    shown = f"line {first} of {len(lines)}, the first {len(long)} of its {len(rest[0])} characters"
    return f"{which}, {shown}.{more}\n{long}"
