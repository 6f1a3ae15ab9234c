"""The tool `open_file` of an agent: a run's file, from its tier where it is unchanged.

The result is the file's text, whatever was shown before: where that stands in a request already, the request has a
pointer in its place (`context/view/repeated_reads.py`), unless the agent asks to see it once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.runnables import RunnableConfig  # noqa: TC002 - tools find their config by this annotation
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import DamagedFileError, InvalidInputError
from langchain_tiered_memory.text.fencing import plain_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.sessions.file_run import Run
    from langchain_tiered_memory.types.files import OpenedFile

NAME = "open_file"
_DESCRIPTION = (
    "Open a text file of the project and show it from a line on. A file that did not change since you opened it is not "
    "shown twice: you are told where it stands in this conversation, and `again` shows it once more."
)
_MAX_PATH_CHARS = 300
_STATES = {
    "new": "",
    "unchanged": "",
    "changed": "It changed since it was opened last.",
    "deleted": "It is gone from the disk: this is what it was when it was read last.",
}
"""Stands above a page: what is below is the same, word for word, when the file is opened again unchanged."""


class OpenFileInput(BaseModel):
    """Arguments of `open_file`."""

    path: str = Field(description="Path of the file, relative to the project or absolute.")
    start_line: int = Field(default=1, description="Number of the first line to show.")
    again: bool = Field(default=False, description="True shows the file although it is unchanged and shown already.")


def open_file_tool(
    run_of: Callable[[RunnableConfig], Run], *, max_tokens: int, count: Callable[[str], int]
) -> BaseTool:
    """The tool, whose results have at most `max_tokens` each."""

    def open_file(path: str, config: RunnableConfig, start_line: int = 1, again: bool = False) -> str:  # noqa: FBT001, FBT002 - tools call by name
        run = run_of(config)
        run.tend()
        try:
            opened = run.open(path)
        except (InvalidInputError, DamagedFileError) as error:
            return f"{_quoted(path)} cannot be opened: {plain_label(str(error), max_chars=300)}"
        if opened.is_binary:
            return f"{_quoted(path)} is no text: {opened.file.size:,} bytes of something else."
        return page_of(opened, start_line, max_tokens=max_tokens, count=count, again=again)

    async def aopen_file(path: str, config: RunnableConfig, start_line: int = 1, again: bool = False) -> str:  # noqa: FBT001, FBT002 - tools call by name
        return await off_loop(open_file, path, config, start_line, again)

    return StructuredTool.from_function(
        func=open_file, coroutine=aopen_file, name=NAME, description=_DESCRIPTION, args_schema=OpenFileInput
    )


def page_of(
    opened: OpenedFile, start_line: int, *, max_tokens: int, count: Callable[[str], int], again: bool = False
) -> str:
    """A file's lines from `start_line` (from 1) on, as many whole ones as fit, behind a line that says what is shown.

    A page that is shown `again`, although it stands in the conversation, says so, and is another text.
    """
    state = f"{_STATES[opened.state]}\n" if _STATES[opened.state] else ""
    which = f"{state}{_quoted(opened.path)}{', shown once more' if again else ''}"
    # As editors and compilers number them: a form feed or another character of Unicode's ends no line.
    lines = opened.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    first = max(start_line, 1)
    rest = lines[first - 1 :]

    def page(number: int) -> str:
        last = first + number - 1
        more = f" Go on with start_line {last + 1}." if number < len(rest) else ""
        head = f"{which}, lines {first} to {last} of {len(lines)}.{more}"
        return "\n".join([head, *rest[:number]])

    def fits(number: int) -> bool:
        return count(page(number)) <= max_tokens

    if not rest:
        return f"{which} has {len(lines)} lines, none from {first} on."
    low, high = 0, 1  # doubled while it fits, so that of a large file no more than a few pages are counted
    while high <= len(rest) and fits(high):
        low, high = high, high * 2
    high = min(high - 1, len(rest))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low:
        return page(low)
    long = rest[0][:max_tokens]  # a character is at most a few tokens, and most often a part of one
    more = f" Go on with start_line {first + 1}." if len(rest) > 1 else ""
    shown = f"line {first} of {len(lines)}, the first {len(long)} of its {len(rest[0])} characters"
    return f"{which}, {shown}.{more}\n{long}"


def _quoted(path: str) -> str:
    return f"'{plain_label(path, max_chars=_MAX_PATH_CHARS)}'"
