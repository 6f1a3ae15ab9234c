"""A process that dies inside a schema upgrade leaves a database that the next one opens, whole."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine

from langchain_tiered_memory.errors import StorageFullError
from tests.conformance.test_migrations import ASSETS, KEPT, check_kept_content
from tests.faults import Fault, on_engine
from tests.spread import spread
from tests.store_builders import open_store
from tests.writers import start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

pytestmark = [pytest.mark.slow, pytest.mark.migrates]

MOST = 6
"""Ends of one upgrade, unless every statement is asked for."""


def upgraded(where: str, at: int | None, kind: str) -> int | None:
    """Open an old database and fail at one step, or be killed there; how many steps there were, if it opened."""
    fault = Fault(at=at, kind=kind)
    with on_engine(Engine, fault):  # type: ignore[arg-type] - every engine, for this one does not exist yet
        try:
            open_store(where).database.close()
        except StorageFullError:
            return None
    return fault.steps


def upgrade(where: str, at: int, pipe: Connection) -> None:
    """Be killed at one step."""
    pipe.send(upgraded(where, at, "kill"))


def killed(where: str, at: int) -> bool:
    """Whether an upgrade in a process of its own was killed before it was done."""
    child, pipe = start(upgrade, where, at)
    try:
        pipe.recv()
    except EOFError:
        return True
    finally:
        child.join()
        pipe.close()
    return False


@pytest.mark.sweep(9)
@pytest.mark.parametrize("kind", ["kill", "full"])
@pytest.mark.parametrize("kept", [*KEPT, None], ids=lambda path: path.stem if path else "blank")
def test_an_upgrade_that_ends_at_any_statement_is_finished_by_the_next_open(
    tmp_path: Path, kept: Path | None, kind: str
) -> None:
    def fresh(name: str) -> str:
        where = tmp_path / name
        if kept is not None:
            shutil.copy(kept, where)
        return str(where)

    steps = upgraded(fresh("count.db"), None, kind)
    assert steps is not None
    if kept is not None and kept == KEPT[-1]:
        assert steps == 0  # the present schema: nothing is written
    for number in spread(steps, MOST):
        where = fresh(f"{number}.db")
        if kind == "kill":
            assert killed(where, number)
        else:
            # A question about the schema that fails is taken for no by SQLAlchemy, or asked again: then all went well.
            upgraded(where, number, kind)
        if kept is None:
            open_store(where).database.close()
        else:
            check_kept_content(Path(where), number=int(kept.stem.removeprefix("schema_")))
        with closing(sqlite3.connect(where)) as found, closing(sqlite3.connect(tmp_path / "count.db")) as whole:
            query = "SELECT type, name FROM sqlite_master ORDER BY 1, 2"
            assert found.execute(query).fetchall() == whole.execute(query).fetchall()
            assert found.execute("PRAGMA quick_check").fetchall() == [("ok",)]


def test_there_are_databases_of_earlier_schemas_to_upgrade() -> None:
    assert {"schema_1", "schema_2"} <= {path.stem for path in ASSETS.glob("schema_*.sqlite")}
