"""Resources that tests share. Values are built by builders, not here."""

from __future__ import annotations

import gc
import itertools
import logging
import os
from typing import TYPE_CHECKING

import pytest

from tests.servers import NoServerError, postgres_server
from tests.store_builders import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_tiered_memory.store import SqlStore
    from tests.servers import PostgresServer


def pytest_itemcollected(item: pytest.Item) -> None:
    """What needs a server of PostgreSQL waits for it to start: such a test is slow, whatever it does then."""
    if item.get_closest_marker("postgres") or "postgres" in getattr(item, "fixturenames", ()):
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What is imported stays: the collector need not look through a million objects again and again, at every test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """The command line sets the package's log level for the whole process; the next test starts afresh."""
    package = logging.getLogger("langchain_tiered_memory")
    level = package.level
    yield
    package.setLevel(level)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, one for each worker process. Without one the test is skipped; in CI it fails."""
    try:
        server = postgres_server()
    except NoServerError as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI must test PostgreSQL: {error}", pytrace=False)
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty database on PostgreSQL."""
    url = postgres.new_database()
    try:
        yield url
    finally:
        postgres.drop(url)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path | None:
    """An empty place for a store, on each database: what `SqlStore.open` and `TieredMemory.open` take."""
    if request.param == "memory":
        return None
    if request.param == "sqlite":
        return tmp_path / "memory.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def shared_where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """As `where`, on the databases that several processes can open."""
    if request.param == "sqlite":
        return tmp_path / "memory.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def store(where: str | Path | None) -> Iterator[SqlStore]:
    """An empty store on each database."""
    opened = open_store(where)
    try:
        yield opened
    finally:
        opened.database.close()


@pytest.fixture
def frozen_clock() -> Callable[[], float]:
    """A clock that moves one second each time it is read."""
    ticks = itertools.count(1_700_000_000)
    return lambda: float(next(ticks))
