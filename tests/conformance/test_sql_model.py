"""The store against a model of it in plain Python, over random histories."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import select

from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.types.records import Spent, Summary
from tests.store_builders import NOW, append, forget_messages, incoming, open_store, plan, written

pytestmark = pytest.mark.slow

WORDS = ("alpha", "beta", "gamma", "delta")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
message_ids = st.sampled_from([f"m{n}" for n in range(12)])


class StoreMachine(RuleBasedStateMachine):
    """Appends, edits, removes, claims, loses leases and commits; the model knows what must be there."""

    @initialize()
    def open(self) -> None:
        self.store = open_store(None)
        self.ref = append(self.store, "s").ref
        self.texts: dict[str, str] = {}
        self.seqs: dict[str, int] = {}
        self.said: dict[str, set[str]] = {}
        self.forgotten: set[tuple[str, str]] = set()
        self.next_seq = 1
        self.clock = NOW
        self.claimed: list[Summary] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.database.close()

    @rule(batch=st.lists(st.tuples(message_ids, texts), min_size=1, max_size=4))
    def append_or_edit(self, batch: list[tuple[str, str]]) -> None:
        appended = append(self.store, "s", *(incoming(text, one) for one, text in batch))
        new = 0
        revised = []
        there = dict(self.texts)
        for one, text in batch:
            if (one, text) in self.forgotten and there.get(one) != text:
                continue
            self.said.setdefault(one, set()).add(text)
            if one not in self.texts:
                self.seqs[one], self.next_seq, new = self.next_seq, self.next_seq + 1, new + 1
            elif self.texts[one] != text:
                revised.append(one)
            self.texts[one] = text
        assert appended.new == new
        assert sorted(appended.revised) == sorted(revised)

    @precondition(lambda self: self.texts)
    @rule(choice=st.data())
    def forget(self, choice: st.DataObject) -> None:
        some = st.lists(st.sampled_from(sorted(self.texts)), min_size=1, max_size=3, unique=True)
        gone = choice.draw(some)
        removed = forget_messages(self.store, self.ref, gone)
        assert removed["entries"] == len(gone)
        for one in gone:
            self.forgotten |= {(one, text) for text in self.said.pop(one)}
            del self.texts[one], self.seqs[one]

    @rule(first=st.integers(1, 15), size=st.integers(1, 4), owner=st.sampled_from("ab"))
    def claim_entries(self, first: int, size: int, owner: str) -> None:
        wanted = list(range(first, first + size))
        free = {entry.seq for entry in self.store.transcript.entries(self.ref) if entry.summary_id is None}
        claimed = self.store.tree.claim(self.ref, plan(1, *wanted), owner=owner, now=self.clock, lease_seconds=10)
        assert (claimed is not None) == (set(wanted) <= free)
        if claimed is not None:
            self.claimed.append(claimed)

    @rule(level=st.integers(2, 4), size=st.integers(1, 3), owner=st.sampled_from("ab"))
    def claim_summaries(self, level: int, size: int, owner: str) -> None:
        below = self.store.tree.waiting_summaries(self.ref, level=level - 1, limit=size)
        claimed = self.store.tree.claim(self.ref, plan(level, *below), owner=owner, now=self.clock, lease_seconds=10)
        assert (claimed is not None) == (bool(below) and all(one.state.finished for one in below))
        if claimed is not None:
            self.claimed.append(claimed)

    @precondition(lambda self: self.claimed)
    @rule(choice=st.data(), owner=st.sampled_from("ab"), text=texts, degraded=st.booleans())
    def commit(self, choice: st.DataObject, owner: str, text: str, *, degraded: bool) -> None:
        summary = choice.draw(st.sampled_from(self.claimed))
        said = written(text, degraded=degraded, retry_at=self.clock + 5 if degraded else None)
        done = self.store.tree.commit(self.ref, summary, said, owner=owner, now=self.clock)
        if done:
            assert self.store.tree.by_id(self.ref, [summary.id])[0].text == text

    @precondition(lambda self: self.claimed)
    @rule(choice=st.data(), owner=st.sampled_from("ab"))
    def fail(self, choice: st.DataObject, owner: str) -> None:
        summary = choice.draw(st.sampled_from(self.claimed))
        self.store.tree.fail(summary, owner=owner, error="no", retry_at=self.clock + 5, spent=Spent(calls=1))

    @rule(owner=st.sampled_from("ab"), remake_stale=st.booleans())
    def lease(self, owner: str, *, remake_stale: bool) -> None:
        due = self.store.tree.due(self.ref, now=self.clock, remake_stale=remake_stale)
        if due is not None:
            assert self.store.tree.lease(due, owner=owner, now=self.clock, lease_seconds=10)
            self.claimed.append(due)

    @rule(seconds=st.sampled_from([1, 6, 20]))
    def wait(self, seconds: int) -> None:
        self.clock += seconds

    @invariant()
    def nothing_is_lost_and_numbers_stay(self) -> None:
        found = self.store.transcript.entries(self.ref)
        assert {entry.id: entry.text for entry in found} == self.texts
        assert {entry.id: entry.seq for entry in found} == self.seqs

    @invariant()
    def the_tree_and_its_sources_name_each_other(self) -> None:
        entries = self.store.transcript.entries(self.ref)
        summaries = {one.id: one for one in self.store.tree.all(self.ref)}
        for summary in summaries.values():
            below = (
                {entry.id for entry in entries if entry.summary_id == summary.id}
                if summary.level == 1
                else {one.id for one in summaries.values() if one.parent_id == summary.id}
            )
            assert below == set(summary.sources)
            assert below
        assert {entry.summary_id for entry in entries} - {None} <= set(summaries)
        assert {one.parent_id for one in summaries.values()} - {None} <= set(summaries)

    @invariant()
    def the_cover_has_no_gap_and_no_overlap(self) -> None:
        summaries = {one.id: one for one in self.store.tree.all(self.ref)}
        covered: list[str] = []

        def descend(one: Summary) -> None:
            if one.level == 1:
                covered.extend(one.sources)
            else:
                for source in one.sources:
                    descend(summaries[source])

        roots = self.store.tree.roots(self.ref, limit=1000)
        for root in roots:
            descend(root)
        raw = [
            entry.id
            for entry in self.store.transcript.entries(self.ref)
            if entry.summary_id is None or not summaries[entry.summary_id].state.finished
        ]
        assert sorted(covered + raw) == sorted(self.texts)

    @invariant()
    def the_text_index_holds_what_the_rows_say(self) -> None:
        assert self.store.inspection.damaged_text_index() == []
        assert self.store.inspection.orphan_passages() == []
        for word in WORDS:
            hits = self.store.text_index.find([self.ref], {word: 1.0}, limit=1000)
            expected = [seq for one, seq in self.seqs.items() if word in self.texts[one].split()]
            assert sorted(hit.seq for hit in hits) == sorted(expected)
        for level in (1, 2, 3):
            finished = [one for one in self.store.tree.all(self.ref) if one.level == level and one.text]
            hits = self.store.text_index.find([self.ref], dict.fromkeys(WORDS, 1.0), level=level, limit=1000)
            named = self.store.text_index.by_id(self.ref, [hit.id for hit in hits])
            assert sorted(str(passage.summary_id) for passage in named) == sorted(one.id for one in finished)

    @invariant()
    def totals_are_what_a_recount_finds(self) -> None:
        kept = self.store.transcript.totals(self.ref)
        self.store.inspection.mend_totals(self.ref)
        assert self.store.transcript.totals(self.ref) == kept
        assert kept["entries"] == len(self.texts)
        assert kept["next_seq"] == self.next_seq

    @invariant()
    def every_unfinished_summary_will_be_due(self) -> None:
        with self.store.database.read() as connection:
            states = connection.execute(select(schema.summaries.c.state, schema.summaries.c.retry_at)).all()
        unfinished = [row for row in states if row.state in ("pending", "generating", "failed")]
        assert all(row.retry_at is not None for row in unfinished)
        assert self.store.tree.unfinished() == len(unfinished)


StoreMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestStoreAgainstItsModel = StoreMachine.TestCase
