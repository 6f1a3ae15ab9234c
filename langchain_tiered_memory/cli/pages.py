"""`tiered-memory page` and `serve`: a session in a browser, as a file and live."""

from pathlib import Path
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import Database, SessionId


def page(
    db: Database,
    session: SessionId,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write to this file instead of to standard output.", show_default=False),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, help="Show as well the context that the next call would get within so many tokens."),
    ] = None,
) -> None:
    """Write a session as one page of HTML: messages, summaries, facts, what the model saw, checkpoints, files, cost.

    The page needs no network and no server. Everything that was said is in it: share it as you would the database.
    The database is not changed.
    """
    from langchain_tiered_memory.cli.work.pages import write_page  # noqa: PLC0415 - keeps --help fast

    write_page(db, session, out=out, max_tokens=budget)


def serve(
    db: Database,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 for any that is free.")] = 0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer nothing that changes the database.")] = False,
) -> None:
    """Show the sessions of a database live, in a browser on this machine alone. Ends with Ctrl-C.

    Pages follow what is written, and let you pin, forget and undo. The address holds a secret: whoever on this machine
    has it can do the same. Needs `pip install starlette uvicorn`.
    """
    from langchain_tiered_memory.cli.work.pages import serve_pages  # noqa: PLC0415 - keeps --help fast

    serve_pages(db, port=port, read_only=read_only)
