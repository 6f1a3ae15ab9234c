"""Arguments and options that several commands share, each with its help text.

The key of an encrypted database is only read from a file, because everybody who lists processes sees a command line.
"""

from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Final

import typer

EXIT_ERROR: Final = 2
"""The command failed. One line on stderr says why."""
EXIT_PROBLEMS: Final = 1
"""`verify` found problems, or an import refused some of its conversations."""

EXIT_DECLINED: Final = 1
"""The user answered no when asked whether to continue."""

Database = Annotated[
    str,
    typer.Argument(metavar="DB", help="SQLite file, or SQLAlchemy URL of a PostgreSQL database.", show_default=False),
]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.", show_default=False)]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON on standard output, for programs. Progress goes to standard error.")
]
NoEmbeddings = Annotated[
    bool, typer.Option("--no-embeddings", help="Search by words only, and load no embedding model.")
]
ReadOnly = Annotated[
    bool,
    typer.Option(
        "--read-only",
        help="Write nothing at all, for a database that is in use or on a full or read-only disk. Search then uses "
        "words only, except with a Chroma server.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Chat model that writes the summaries, such as openai:gpt-5-mini. "
        "Default: the built-in extractive condenser, which needs no key and no network.",
        show_default=False,
    ),
]
ToFile = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="Write to this file instead of standard output.", show_default=False
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        envvar="TIERED_MEMORY_KEY_FILE",
        help="File with the key of an encrypted database. The key is its whole content, without trailing line ends.",
        show_default=False,
    ),
]
_given: ContextVar[Path | None] = ContextVar("_given", default=None)


def use_key_file(path: Path | None) -> None:
    """Open this command's databases with the key in this file."""
    _given.set(path)


def given_key() -> Callable[[], bytes] | None:
    """A function that reads the command's key. `None` if it has none."""
    path = _given.get()
    return reader(path) if path is not None else None


def reader(path: Path) -> Callable[[], bytes]:
    """A function that reads the key in a file."""
    return lambda: path.read_bytes().rstrip(b"\r\n")
