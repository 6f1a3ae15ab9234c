"""What a memory tells, as data frames."""

from __future__ import annotations

import sys

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import to_frame
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from tests.memory_builders import open_memory


def test_facts_hits_outcomes_and_costs_are_rows_with_times() -> None:
    pytest.importorskip("pandas")
    with open_memory(clock=lambda: 1_700_000_000.0) as memory:
        session = memory.session("s")
        for number in range(30):
            session.add_messages([HumanMessage(f"The port of service {number} is {8000 + number}."), AIMessage("Ok.")])
        session.flush()
        session.context(max_tokens=600)
        facts = to_frame(session.facts(k=5))
        assert list(facts.text) == [fact.text for fact in session.facts(k=5)]
        assert str(facts["at"].iloc[0]) == "2023-11-14 22:13:20+00:00"
        hits = to_frame(session.search("port of service 7"))
        assert hits.score.is_monotonic_decreasing
        outcomes = to_frame(session.outcomes())
        assert len(outcomes) == len(session.outcomes()) > 0
        assert set(outcomes.kind) <= {"condensed", "none", *(one.kind.value for one in session.outcomes())}
        assert len(to_frame(session.ledger())) == len(session.ledger())
        assert len(to_frame([])) == 0


def test_what_is_no_record_is_refused() -> None:
    pytest.importorskip("pandas")
    with pytest.raises(InvalidInputError, match="not a record"):
        to_frame(["text"])


def test_without_pandas_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError, match="pip install pandas"):
        to_frame([])
