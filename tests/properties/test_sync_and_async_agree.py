"""Invariant 7: the same journey, sync and async, leaves the same database and gives the same contexts."""

from __future__ import annotations

import itertools
import re
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.runs import checkpoints
from langchain_tiered_memory.sql.schema import metadata
from langchain_tiered_memory.summaries.tree import condense
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, summarising_model
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, as_bytes, conversation, open_memory, shown_within, store_of
from tests.properties.test_cover import distinct, histories

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

_NOT_COMPARED = frozenset({"seconds", "value", "lease_owner"})
"""Time that a model took, the database's own name, who worked."""
_KEYED = "ltm_forgotten"
"""Tables whose digests have a key that is another one in each database."""
_SECONDS = re.compile(r'"seconds": [0-9.e-]+')


class _Numbered:
    """Stands for `uuid` where summaries are planned: their ids are part of what a view shows, and are counted."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def uuid4(self) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_OID, str(next(self._numbers)))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), histories),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("context"), st.sampled_from([None, "", "order to Bergen"])),
        st.tuples(st.just("pin"), st.none()),
        st.tuples(st.just("forget"), st.none()),
        st.tuples(st.just("end"), st.none()),
        st.tuples(st.just("search"), st.just("order Monday")),
    ),
    min_size=2,
    max_size=7,
)


def _still(value: Any) -> Any:
    """A value without the time that a model took, which outcomes tell in their account."""
    return _SECONDS.sub("", value) if isinstance(value, str) else value


def dump(memory: TieredMemory) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    tables: dict[str, list[dict[str, Any]]] = {}
    with store_of(memory).database.read() as connection:
        for table in metadata.sorted_tables:
            rows = connection.execute(select(table)).mappings()
            found = [
                {
                    key: _still(value)
                    for key, value in row.items()
                    if key not in _NOT_COMPARED and not (table.name.startswith(_KEYED) and isinstance(value, bytes))
                }
                for row in rows
            ]
            tables[table.name] = sorted(found, key=repr)
    return tables


def journey(  # noqa: C901 - one branch for each verb
    call_style: CallStyle, walked: list[tuple[str, Any]], *, with_model: bool
) -> tuple[object, list[object]]:
    """Walk it; gives the database and what the caller saw."""
    clock = FrozenClock(NOW)
    model: ScriptedModel | None = summarising_model() if with_model else None
    memory = open_memory(None, clock=clock, model=model)
    session = memory.session("s")
    ids = told(call_style, session.add_messages, conversation(8))[-2:]
    shown_within(session, 300, call_style)
    assert model is None or model.calls
    seen: list[object] = []
    for number, (verb, what) in enumerate(walked):
        clock.advance(60)
        if verb == "add":
            ids = told(call_style, session.add_messages, distinct(what, number)) or ids
        elif verb == "flush":
            report = told(call_style, session.flush)
            seen.append((report.summaries, report.vectors, report.pending))
        elif verb == "context":
            try:
                context = told(call_style, session.context, what, max_tokens=300)
            except BudgetError:
                seen.append("no room")
            else:
                seen.append((context.tokens, context.entry_ids, [kind.type for kind in context.messages]))
        elif verb == "pin":
            told(call_style, session.pin, ids[-1])
        elif verb == "forget" and len(ids) > 1:
            receipt = told(call_style, session.forget, message_ids=[ids[0]])
            seen.append((receipt.entries, receipt.summaries))
            ids = ids[1:]
        elif verb == "end":
            told(call_style, session.end)
        elif verb == "search":
            seen.append([(hit.level, hit.seq, hit.text) for hit in told(call_style, session.search, what)])
    seen.append([as_bytes(one) for one in told(call_style, session.messages)])
    seen.append(told(call_style, memory.verify).problems)
    left = dump(memory)
    told(call_style, memory.close)
    return left, seen


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(steps, st.booleans())
def test_a_journey_leaves_the_same_database_sync_and_async(
    walked: list[tuple[str, Any]],
    with_model: bool,  # noqa: FBT001
) -> None:
    journeys = []
    for call_style in CALL_STYLES:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(condense, "uuid", _Numbered())
            patched.setattr(checkpoints, "uuid", _Numbered())
            journeys.append(journey(call_style, walked, with_model=with_model))
    (one, seen), (other, also_seen) = journeys
    assert seen == also_seen
    assert one == other
