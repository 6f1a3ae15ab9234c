"""The work of `tiered-memory page` and `serve`."""

from __future__ import annotations

import secrets
import socket
from functools import partial
from typing import TYPE_CHECKING

from langchain_tiered_memory.cli.opening import embedder_of, existing_session, open_memory
from langchain_tiered_memory.cli.screen import err, out
from langchain_tiered_memory.cli.work.transfer import written
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from pathlib import Path

_LOOPBACK = "127.0.0.1"
_TOKEN_BYTES = 24


def write_page(db: str, session_id: str, *, out: Path | None, max_tokens: int | None) -> None:
    """Write a session's page.

    Raises:
        NotFoundError: when there is no such database or session, or the session has no message.
    """
    with open_memory(db, no_embeddings=True, must_exist=True, read_only=True) as memory:
        session = existing_session(memory, session_id)
        contexts = [session.context(max_tokens=max_tokens)] if max_tokens is not None else []
        text = session.page(contexts=contexts)
    with written(out) as file:
        file.write(text)
    if out is not None:
        err().print(f"{out}: {len(text.encode()) / 1e6:.1f} MB", style="dim", markup=False, soft_wrap=True)


def serve_pages(db: str, *, port: int, read_only: bool) -> None:
    """Serve a database's pages until somebody interrupts it.

    Raises:
        NotFoundError: when there is no such database.
        SettingsError: when what serves them is not installed.
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
        token, port = secrets.token_urlsafe(_TOKEN_BYTES), listening.getsockname()[1]
        # The summaries of what remains are for the program whose memory it is, and whose model may write them.
        quiet = Settings(tree=TreeSettings(background=False))
        has_vectors = embedder_of(memory) is not None
        writing = partial(open_memory, db, no_embeddings=not has_vectors, must_exist=True, settings=quiet)
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
