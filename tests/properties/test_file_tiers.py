"""The tiers in the database as a state machine: accesses, time, collections, faults, a second store, threads.

Capacities are never passed, pins never lost, each file is in one tier, and contents come back byte for byte, after any
order of these. A statement that fails stands for a crash: a transaction that was broken off must leave nothing.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from langchain_tiered_memory.errors import PinLimitError, StorageError
from langchain_tiered_memory.runs.files import policy
from tests.faults import Fault, faults_in
from tests.file_builders import seen_file, small_rules
from tests.store_builders import NOW, open_store, session_with

pytestmark = pytest.mark.slow

PATHS = st.sampled_from([f"src/{name}.py" for name in "abcdefghijkl"])
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.integers(1, 9).map(lambda n: b"def f(x):\n    return x\n" * n),
)
FAULTS = st.one_of(st.none(), st.integers(0, 12))
RULES = small_rules(3, 3)


class FileTiers(RuleBasedStateMachine):
    """A session's files, beside what a dictionary says of them."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.where = Path(self.folder.name) / "memory.db"
        self.stores = [open_store(self.where), open_store(self.where)]
        self.ref = session_with(self.stores[0], 1)
        self.contents: dict[str, bytes] = {}
        self.pinned: set[str] = set()
        self.now = NOW

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.database.close()
        if hasattr(self, "folder"):
            self.folder.cleanup()

    @rule(path=PATHS, content=CONTENTS, pinned=st.booleans(), fault=FAULTS, which=st.integers(0, 1))
    def open(self, path: str, content: bytes, pinned: bool, fault: int | None, which: int) -> None:  # noqa: FBT001 - drawn
        kept = self.stores[which].kept_files
        try:
            with faults_in(self.stores[which], Fault(fault)):
                opened = kept.open(self.ref, seen_file(path, content), now=self.now, rules=RULES, pinned=pinned)
        except PinLimitError:
            assert len(self.pinned - {path}) >= RULES.hot.files
            return
        except StorageError:
            return
        assert opened is not None
        assert opened.content == content
        before = self.contents.get(path)
        assert opened.state == ("new" if before is None else "unchanged" if before == content else "changed")
        self.contents[path] = content
        if pinned:
            self.pinned.add(path)

    @rule(path=PATHS)
    def unpin(self, path: str) -> None:
        if path in self.contents:
            self.stores[0].kept_files.change(
                self.ref, lambda tiers: policy.unpin(tiers, path), rules=RULES, paths=[path]
            )
            self.pinned.discard(path)

    @rule(seconds=st.sampled_from([-100.0, 1.0, 601.0, 3601.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(fault=FAULTS, aggressive=st.booleans())
    def collect(self, fault: int | None, aggressive: bool) -> None:  # noqa: FBT001 - drawn
        def change(tiers: policy.Tiers) -> policy.Tiers:
            if aggressive:
                return policy.clean_up(tiers, RULES)
            return policy.collect(tiers, now=self.now, rules=RULES)

        try:
            with faults_in(self.stores[0], Fault(fault)):
                self.stores[0].kept_files.change(self.ref, change, rules=RULES)
        except StorageError:
            return

    @rule(one=st.lists(PATHS, max_size=6), other=st.lists(PATHS, max_size=6))
    def open_in_two_threads(self, one: list[str], other: list[str]) -> None:
        wrong: list[BaseException] = []

        def opens(number: int, paths: list[str]) -> None:
            try:
                for path in paths:
                    content = self.contents.get(path, b"thread " + path.encode())
                    self.stores[number].kept_files.open(self.ref, seen_file(path, content), now=self.now, rules=RULES)
            except BaseException as error:  # noqa: BLE001 - told below
                wrong.append(error)

        threads = [threading.Thread(target=opens, args=pair) for pair in enumerate((one, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert wrong == []
        self.contents |= {path: b"thread " + path.encode() for path in [*one, *other] if path not in self.contents}

    @rule()
    def restart(self) -> None:
        self.stores[1].database.close()
        self.stores[1] = open_store(self.where)

    @invariant()
    def everything_holds(self) -> None:
        if not hasattr(self, "stores"):
            return
        kept = self.stores[1].kept_files
        files = {file.path: file for file in kept.files(self.ref)}
        sizes = kept.sizes(self.ref, RULES)
        assert set(files) == set(self.contents), "each file is there, in one tier"
        assert sizes.files["hot"] <= RULES.hot.files
        assert sizes.files["warm"] <= RULES.warm.files
        assert {path for path, file in files.items() if file.pinned} == self.pinned
        assert all(files[path].tier == "hot" for path in self.pinned)
        for path, content in self.contents.items():
            assert kept.content(self.ref, path) == content


def _machine(**options: Any) -> Any:
    case = FileTiers.TestCase
    case.settings = settings(deadline=None, **options)
    return case


TestFileTiers = _machine(max_examples=15, stateful_step_count=30)
