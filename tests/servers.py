"""Server processes that tests start themselves: a throw-away PostgreSQL, a Chroma server."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine
from sqlalchemy.engine import URL, make_url

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER_VARIABLE = "TIERED_MEMORY_TEST_POSTGRES"
_SETTINGS = (
    "listen_addresses=127.0.0.1",
    "fsync=off",
    "full_page_writes=off",
    "autovacuum=off",
    "max_connections=60",
    "shared_buffers=32MB",
)
_CHROMA = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"
"""What its program `chroma` runs, without seconds of imports before it."""


@dataclass(kw_only=True)
class ChromaServer:
    """A Chroma server on loopback that a test may stop, resume, and start again with other files."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, folder: Path | None = None) -> None:
        """Start it, with other files than before where a folder is named."""
        self.folder = folder or self.folder
        options = ["--path", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port)]
        command = [sys.executable, "-c", _CHROMA, "run", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:  # up to the time limit of the test
            assert self.process.poll() is None, "the Chroma server ended at once"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)

    def freeze(self) -> None:
        """Let it take connections and never answer."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self.process is not None:
            self.thaw()
            self.process.terminate()
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def chroma_server(folder: Path) -> Iterator[ChromaServer]:
    server = ChromaServer(folder=folder, port=free_port())
    server.start()
    try:
        yield server
    finally:
        server.end()


class NoServerError(Exception):
    """No PostgreSQL can be had here; the message says why."""


@dataclass(kw_only=True)
class PostgresServer:
    """A server to make databases on: one of our own, or somebody else's by its URL."""

    url: URL
    folder: Path | None = None
    """Of our own server: its programs are run on this data."""
    programs: Path | None = None
    user: str | None = None
    _made: list[str] = field(default_factory=list)

    @property
    def is_ours(self) -> bool:
        """Whether a test may stop it."""
        return self.folder is not None

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"ltm_test_{uuid.uuid4().hex[:16]}"
        self._execute(f'CREATE DATABASE "{name}"')
        self._made.append(name)
        return self.url.set(database=name).render_as_string(hide_password=False)

    def drop(self, url: str) -> None:
        """Remove a database that `new_database` gave, whoever is still connected."""
        name = make_url(url).database
        self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self._made.remove(str(name))

    def start(self) -> None:
        """Start our own server on the port it was made for."""
        self._control("start", "-w", "-t", "60", "-l", f"{self.folder}/log", "-o", self._options())

    def stop(self) -> None:
        """Stop our own server at once, as a crash of its machine would."""
        self._control("stop", "-m", "immediate", "-w")

    def remove(self) -> None:
        """Leave nothing behind."""
        if self.folder is None:
            for name in list(self._made):
                self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            return
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _execute(self, statement: str) -> None:
        engine = create_engine(self.url, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(statement)
        finally:
            engine.dispose()

    def _options(self) -> str:
        settings = (*_SETTINGS, f"port={self.url.port}", f"unix_socket_directories={self.folder}")
        return " ".join(f"-c {setting}" for setting in settings)

    def _control(self, *arguments: str) -> None:
        _run([f"{self.programs}/pg_ctl", "-D", f"{self.folder}/data", *arguments], self.user)


def postgres_server() -> PostgresServer:
    """The server that the environment names, or one started for this call: `remove()` it afterwards.

    Raises:
        NoServerError: when PostgreSQL is not installed, or cannot be started.
    """
    named = os.environ.get(SERVER_VARIABLE)
    if named:
        return PostgresServer(url=make_url(named).set(drivername="postgresql+psycopg"))
    programs = _programs()
    user = _unprivileged_user()
    # Short and for the server's user alone: a socket's path has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="ltm-pg-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        _run(["cp", "-a", f"{_new_data(programs, user)}", f"{folder}/data"], user)
        url = URL.create(
            "postgresql+psycopg", username="tests", host="127.0.0.1", port=free_port(), database="postgres"
        )
        server = PostgresServer(url=url, folder=folder, programs=programs, user=user)
        server.start()
    except (subprocess.CalledProcessError, OSError, LookupError) as error:
        said = getattr(error, "stderr", None) or str(error)
        shutil.rmtree(folder, ignore_errors=True)
        msg = f"PostgreSQL could not be started: {said}"
        raise NoServerError(msg) from error
    return server


@functools.cache
def _new_data(programs: Path, user: str | None) -> Path:
    """The data of a server that was never started: each server gets a copy, for making them anew takes a second."""
    folder = Path(tempfile.mkdtemp(prefix="ltm-pg-new-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if user is not None:
        shutil.chown(folder, user)
    initdb = [f"{programs}/initdb", "-D", f"{folder}/data", "-U", "tests", "-A", "trust", "-E", "UTF8"]
    _run([*initdb, "--locale=C", "--no-sync"], user)
    return folder / "data"


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Run as somebody whom file permissions bind: root passes them all."""
    if os.geteuid() != 0:
        yield
        return
    nobody = pwd.getpwnam("nobody").pw_uid
    os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(0)


def _programs() -> Path:
    on_path = shutil.which("pg_ctl")
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: float(path.parts[-3]))
    for candidate in ([Path(on_path)] if on_path else []) + versions[::-1]:
        if (candidate.parent / "initdb").exists():
            return candidate.resolve().parent
    msg = f"PostgreSQL is not installed: install the package postgresql, or name a server in {SERVER_VARIABLE}"
    raise NoServerError(msg)


def _unprivileged_user() -> str | None:
    """Whom to run the server as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _run(command: list[str], user: str | None) -> None:
    # The server outlives this call and would keep a pipe open: what the programs say goes to a file.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(
            command, user=user, cwd="/", stdin=subprocess.DEVNULL, stdout=said, stderr=said, check=False
        )
        said.seek(0)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, stderr=said.read()[-2000:])
