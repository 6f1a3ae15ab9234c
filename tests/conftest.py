"""Resources that tests share. Values are built by builders, not here."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import re
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from tests import lanes
from tests.processes import pytest_addoption, pytest_runtestloop  # noqa: F401 - hooks
from tests.servers import NoServerError, postgres_server
from tests.spread import EXHAUSTIVE
from tests.store_builders import ENCRYPTED, open_store
from tests.warm_clients import share_certificates
from tests.warm_databases import migrated_anew, repeat_tables, share_statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore
    from tests.servers import PostgresServer


_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of pytest's own is made in it
_ROOM_NEEDED = 2 << 30
_folders = itertools.count()


def _use_memory_for_files() -> None:
    """Files of tests stand in memory where there is room: waiting for a disk finds no fault that a kill does not."""
    if "TMPDIR" in os.environ or not os.access(_IN_MEMORY, os.W_OK):
        return
    if shutil.disk_usage(_IN_MEMORY).free > _ROOM_NEEDED:
        tempfile.tempdir = os.environ["TMPDIR"] = _IN_MEMORY


def _keep_what_is_compiled() -> None:
    """Whatever the environment says: else each process compiles the package anew, and every assertion of the tests."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


_use_memory_for_files()
_keep_what_is_compiled()
lanes.choose_draw()
share_certificates()
share_statements()
repeat_tables()


def pytest_report_header() -> str:
    return lanes.report()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast lane does not import files of which it runs nothing: that takes as long as half of its tests."""
    is_fast = config.option.markexpr == lanes.FAST and collection_path.suffix == ".py"
    return True if is_fast and lanes.is_slow_file(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this draw leaves out, where the suite is run or a folder of it."""
    if EXHAUSTIVE or not lanes.is_whole(config.args):
        return
    out = lanes.left_out(items)
    config.hook.pytest_deselected(items=list(out))
    items[:] = [one for one in items if one not in out]


def pytest_itemcollected(item: pytest.Item) -> None:
    """What needs a server of PostgreSQL waits for it to start: such a test is slow, whatever it does then."""
    lanes.fit_property(item)
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Databases are made as the first one was, but where making them is what is tested."""
    with migrated_anew() if item.get_closest_marker("migrates") else contextlib.nullcontext():
        return (yield)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of a test's own, whose name no other had; it goes when the test has passed, for memory is short."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.mktemp(f"{next(_folders)}-{name}", numbered=False)
    failed = request.session.testsfailed
    yield folder
    if request.session.testsfailed == failed:
        shutil.rmtree(folder, ignore_errors=True)


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


_ENCRYPTED = pytest.param("encrypted", marks=[pytest.mark.slow, pytest.mark.seldom(4)])


_POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)


@pytest.fixture(params=["memory", "sqlite", _ENCRYPTED, _POSTGRES])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path | None:
    """An empty place for a store, on each database: what `open_store` and `open_memory` take."""
    if request.param == "memory":
        return None
    if request.param == "encrypted":
        return tmp_path / ENCRYPTED
    if request.param == "sqlite":
        return tmp_path / "memory.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", _ENCRYPTED, _POSTGRES])
def shared_where(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """As `where`, on the databases that several processes can open."""
    if request.param != "postgres":
        return tmp_path / ("memory.db" if request.param == "sqlite" else ENCRYPTED)
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
