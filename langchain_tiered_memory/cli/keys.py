"""The key of an encrypted database, which is read from a file alone: whoever lists processes sees a command line."""

from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated

import typer

KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        envvar="TIERED_MEMORY_KEY_FILE",
        help="File that holds the key of an encrypted database: all of it except line ends at its end.",
        show_default=False,
    ),
]
_given: ContextVar[Path | None] = ContextVar("_given", default=None)


def use_key_file(path: Path | None) -> None:
    """Open the databases of this command with the key that stands in this file."""
    _given.set(path)


def given_key() -> Callable[[], bytes] | None:
    """What reads the key that the command was given; `None` where it was given none."""
    path = _given.get()
    return reader(path) if path is not None else None


def reader(path: Path) -> Callable[[], bytes]:
    """What reads the key in a file."""
    return lambda: path.read_bytes().rstrip(b"\r\n")
