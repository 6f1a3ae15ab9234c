"""`tiered-memory page` and `serve`: a session in a browser, as a file or live."""

import secrets
import socket
from functools import partial
from typing import Annotated

import typer

from langchain_tiered_memory.cli.opening import existing_session, has_vectors, open_memory
from langchain_tiered_memory.cli.options import Database, SessionId, ToFile
from langchain_tiered_memory.cli.screen import err, out, written
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.settings import Settings, TreeSettings

_LOOPBACK = "127.0.0.1"


def page(
    db: Database,
    session: SessionId,
    *,
    to: ToFile = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="TOKENS", help="Also show the context that the next call would get, within this many tokens."
        ),
    ] = None,
) -> None:
    """Write a session as one HTML page: messages, summaries, facts, what the model saw, checkpoints, files, cost.

    The page needs no network and no server. It contains everything that was said, so share it only as you would share
    the database. The database does not change.
    """
    with open_memory(db, no_embeddings=True, must_exist=True, read_only=True) as memory:
        handle = existing_session(memory, session)
        text = handle.page(contexts=[handle.context(max_tokens=budget)] if budget is not None else [])
    with written(to) as file:
        file.write(text)
    if to is not None:
        err().print(f"{to}: {len(text.encode()) / 1e6:.1f} MB", style="dim", markup=False, soft_wrap=True)


def serve(
    db: Database,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="Port on this machine. 0 takes any free port.")
    ] = 0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Do not offer anything that changes the database.")
    ] = False,
) -> None:
    """Show the sessions of a database live, in a browser on this machine only. Ctrl-C ends it.

    The pages follow new messages, and let you pin, forget and undo. The address contains a secret: anyone on this
    machine who has it can do the same. First run `pip install starlette uvicorn`.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from langchain_tiered_memory.pages.server import application  # noqa: PLC0415 - likewise
    except ImportError as error:
        msg = "`serve` needs Starlette and uvicorn: `pip install starlette uvicorn`"
        raise SettingsError(msg) from error
    with (
        open_memory(db, no_embeddings=True, must_exist=True, read_only=True) as memory,
        socket.create_server((_LOOPBACK, port)) as listening,
    ):
        token, port = secrets.token_urlsafe(), listening.getsockname()[1]
        # The summaries of what remains are for the program whose memory it is, and whose model may write them.
        quiet = Settings(tree=TreeSettings(background=False))
        writing = partial(open_memory, db, no_embeddings=not has_vectors(memory), must_exist=True, settings=quiet)
        servers: list[uvicorn.Server] = []
        app = application(
            memory,
            None if read_only else writing,
            token=token,
            port=port,
            stopping=lambda: any(one.should_exit for one in servers),
        )
        out().print(f"http://{_LOOPBACK}:{port}/{token}/", markup=False, soft_wrap=True)
        err().print("For a browser on this machine; Ctrl-C ends it.", style="dim")
        # The access log would hold the token.
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=5
        )
        servers.append(uvicorn.Server(config))
        servers[0].run(sockets=[listening])
