"""A long check or repair tells how far it is, and never holds a long history's texts together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.maintenance import examine
from langchain_tiered_memory.maintenance.inspection import Inspection
from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from langchain_tiered_memory.reports import Progress

COUNTED_PAGES = Inspection.counted_pages


def test_a_check_tells_after_each_page_and_ends_at_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Progress] = []
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(12))
        memory.session("other").add_messages(conversation(3))
        memory.flush()
        monkeypatch.setattr(type(store_of(memory).inspection), "counted_pages", _pages_of_five)
        report = memory.verify(progress=told.append)
    assert report.problems == ()
    assert {one.step for one in told} == {"check"}
    assert [one.done for one in told] == sorted({one.done for one in told})
    assert len(told) >= report.entries // 5
    assert (told[-1].done, told[-1].of) == (report.entries, report.entries)


def test_a_rebuild_tells_of_rows_then_vectors_then_the_check() -> None:
    told: list[Progress] = []
    with open_memory(embeddings=HashingEmbeddings()) as memory:
        memory.session("s").add_messages(conversation(6))
        memory.flush()
        report = memory.rebuild_index(progress=told.append)
    steps = list(dict.fromkeys(one.step for one in told))
    assert steps == ["rows", "vectors", "check"]
    ends = {step: [one for one in told if one.step == step][-1] for step in steps}
    done = {step: end.done for step, end in ends.items()}
    assert done == {"rows": report.entries, "vectors": report.vectors, "check": report.entries}


def test_a_check_judges_some_summaries_before_it_reads_the_messages_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []
    judged = examine.coverage_faults

    def two_at_a_time(names: list[str]) -> Iterator[list[str]]:
        for start in range(0, len(names), 2):
            steps.append("read")
            yield names[start : start + 2]

    def judging(*asked: object) -> object:
        steps.append("judged")
        return judged(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(examine, "chunks", two_at_a_time)
    monkeypatch.setattr(examine, "coverage_faults", judging)
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(12))
        memory.flush()
        assert memory.verify().problems == ()
    assert steps[:6] == ["read", "judged", "judged"] * 2


def _pages_of_five(inspection: object, ref: object) -> object:
    whole = [one for page in COUNTED_PAGES(inspection, ref) for one in page]  # type: ignore[arg-type]
    return iter([whole[start : start + 5] for start in range(0, len(whole), 5)])
