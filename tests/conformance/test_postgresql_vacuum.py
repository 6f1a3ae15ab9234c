"""PostgreSQL: forgetting waits for nobody's maintenance of a table."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from sqlalchemy import create_engine

from langchain_tiered_memory import Settings, TieredMemory

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("locked", ["ltm_entries", "ltm_facts"])
def test_what_somebody_elses_vacuum_holds_is_passed_over_and_named_in_the_receipt(
    postgres_url: str, locked: str
) -> None:
    settings = Settings(busy_seconds=600.0)
    with TieredMemory.open(postgres_url, embeddings=None, settings=settings) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The vault is 4711.", id="m1"), HumanMessage("Bye.", id="m2")])
        engine = create_engine(memory.core.runtime.store.database.engine.url)
        with engine.connect() as other:
            other.exec_driver_sql(f"LOCK TABLE {locked} IN SHARE UPDATE EXCLUSIVE MODE")  # as `VACUUM` takes it
            receipt = session.forget(message_ids=["m1"])  # waits for nothing: it would be ten minutes
        engine.dispose()
        assert receipt.entries == 1
        assert [one for one in receipt.may_remain if locked in one and "locked" in one]
        assert not [one for one in session.forget(message_ids=["m2"]).may_remain if "locked" in one]
        assert memory.verify().problems == ()
