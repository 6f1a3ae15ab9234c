"""Files opened from the disk: roots, changes, deletions, sizes, damage, forgetting; collections and optimisations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from langchain_tiered_memory.errors import (
    DamagedFileError,
    FileGoneError,
    FileRefusedError,
    FileTooLargeError,
)
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.collecting import collect, optimise, tend_files
from langchain_tiered_memory.runs.files.opening import keep_file, open_file
from tests.file_builders import places, small_rules
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of
from tests.run_builders import checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.files import OpenedFile
    from langchain_tiered_memory.types.records import SessionRef

LATER = 2_000_000_000.0
"""Long after any file of a test was written."""


class Desk:
    """A memory, a folder, a clock, and what was told."""

    def __init__(self, folder: Path, memory: TieredMemory, clock: list[float]) -> None:
        self.folder = folder
        self.memory = memory
        self.clock = clock
        memory.session("s").add_messages(conversation(1))
        self.runtime: Runtime = memory.core.runtime
        self.ref: SessionRef = ref_of(memory.session("s"))
        self.told: list[Any] = []
        memory.subscribe(self.told.append)

    def write(self, name: str, content: str | bytes = "x = 1\n") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def open(self, path: str | Path, **options: Any) -> OpenedFile:
        return open_file(self.runtime, self.ref, str(path), **({"roots": [str(self.folder)]} | options))

    def events(self) -> list[str]:
        return [one.name for one in self.told]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    clock = [LATER]
    folder = tmp_path / "project"
    folder.mkdir()
    settings = quick_settings().model_copy(update={"tiers": small_rules(largest_bytes=5000)})
    with open_memory(tmp_path / "memory.db", settings=settings, clock=lambda: clock[0]) as memory:
        yield Desk(folder, memory, clock)


def reads_counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Contents that are read from the disk from now on."""
    read: list[str] = []
    disk = type(open_memory().core.runtime.store.disk)
    plain: Callable[..., Any] = disk.read

    def counting(self: Any, place: Any, **options: Any) -> Any:
        read.append(str(place))
        return plain(self, place, **options)

    monkeypatch.setattr(disk, "read", counting)
    return read


def test_an_unchanged_file_is_not_read_again_and_a_changed_one_is(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.write("src/a.py", "one")
    read = reads_counted(monkeypatch)
    first = desk.open("src/a.py")
    assert (first.state, first.text, first.path, first.file.kind) == ("new", "one", str(path), "python")
    again = desk.open(path)
    assert (again.state, again.text, again.from_tier, len(read)) == ("unchanged", "one", "hot", 1)
    desk.write("src/a.py", "two")
    os.utime(path, (1e9, 1e9))
    changed = desk.open("src/a.py")
    assert (changed.state, changed.text, len(read)) == ("changed", "two", 2)
    assert "file_changed" in desk.events()
    os.utime(path, (1e9, 1.1e9))
    touched = desk.open("src/a.py")
    assert (touched.state, len(read)) == ("unchanged", 3)
    assert (desk.open("src/a.py").state, len(read)) == ("unchanged", 3)


def test_a_change_within_one_tick_of_the_clock_is_noticed(desk: Desk) -> None:
    path = desk.write("a.py", "one")
    stamp = path.stat().st_mtime_ns
    desk.clock[0] = stamp / 1e9 + 0.001
    desk.open(path)
    desk.write("a.py", "two")
    os.utime(path, ns=(stamp, stamp))
    desk.clock[0] = LATER
    assert (desk.open(path).state, desk.open(path).text) == ("changed", "two")


def test_a_deleted_file_is_shown_as_it_was_and_is_obsolete(desk: Desk) -> None:
    path = desk.write("a.py", "last words")
    desk.open(path)
    path.unlink()
    opened = desk.open(path)
    assert (opened.state, opened.text, opened.file.deleted) == ("deleted", "last words", True)
    assert "file_deleted" in desk.events()
    desk.clock[0] += 3601
    for _ in range(2):
        collect(desk.runtime, desk.ref, roots=[str(desk.folder)])
        desk.clock[0] += 3601
    assert places(desk.runtime.store, desk.ref) == {}
    with pytest.raises(FileGoneError, match="does not exist, and is not kept"):
        desk.open(path)
    desk.write("a.py", "it is back")
    assert desk.open(path).state == "new"


def test_a_collection_looks_for_what_is_gone_and_keeps_what_is_pinned(desk: Desk) -> None:
    gone, pinned, there = (desk.write(f"{name}.py", name) for name in ("gone", "pinned", "there"))
    for path in (gone, there):
        desk.open(path)
    desk.open(pinned, pinned=True)
    keep_file(desk.runtime, desk.ref, str(desk.folder / "elsewhere.py"), "on another machine")
    gone.unlink()
    pinned.unlink()
    for _ in range(2):
        desk.clock[0] += 3601
        collect(desk.runtime, desk.ref, roots=[str(desk.folder)])
    found = places(desk.runtime.store, desk.ref)
    assert found == {str(pinned): "hot", str(there): "cold", str(desk.folder / "elsewhere.py"): "cold"}


@pytest.mark.parametrize("way", ["..", "absolute", "link", "folder link", "no root"])
def test_what_leads_out_of_the_roots_is_refused(desk: Desk, tmp_path: Path, way: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (desk.folder / "link").symlink_to(secret)
    (desk.folder / "out").symlink_to(tmp_path)
    path = {"..": "../secret.txt", "absolute": str(secret), "link": "link", "folder link": "out/secret.txt"}.get(
        way, "a.py"
    )
    desk.write("a.py")
    roots = [] if way == "no root" else [str(desk.folder)]
    with pytest.raises(FileRefusedError, match="outside of the folders"):
        desk.open(path, roots=roots)
    assert places(desk.runtime.store, desk.ref) == {}


def test_what_was_read_within_other_roots_is_refused_even_where_its_time_says_nothing(
    desk: Desk, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    just_written = other / "secret.txt"
    just_written.write_text("secret")
    desk.clock[0] = just_written.stat().st_mtime + 1
    assert desk.open(str(just_written), roots=[str(other)]).state == "new"
    with pytest.raises(FileRefusedError, match="outside of the folders"):
        desk.open(str(just_written))


@pytest.mark.parametrize("path", ["folder", "pipe", "a\0b", "x" * 5000, "loop", ".", "", "folder/.."])
def test_what_is_no_file_is_refused(desk: Desk, path: str) -> None:
    (desk.folder / "folder").mkdir()
    os.mkfifo(desk.folder / "pipe")
    (desk.folder / "loop").symlink_to("loop")
    with pytest.raises((FileRefusedError, FileGoneError)):
        desk.open(path)


def test_a_link_within_the_roots_is_the_file_that_it_leads_to(desk: Desk) -> None:
    path = desk.write("real.py")
    (desk.folder / "alias.py").symlink_to(path)
    assert desk.open("alias.py").path == str(path)
    assert desk.open("real.py").state == "unchanged"


def test_a_folder_that_becomes_a_link_behind_our_back_leads_nowhere(desk: Desk, tmp_path: Path) -> None:
    desk.write("in/a.py")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.py").write_text("secret")
    disk = desk.runtime.store.disk
    place = disk.place("in/a.py", roots=[str(desk.folder)])
    (desk.folder / "in").rename(desk.folder / "moved")
    (desk.folder / "in").symlink_to(tmp_path / "outside")
    with pytest.raises((FileRefusedError, FileGoneError)):
        disk.read(place, most_bytes=100, now=LATER)


def test_large_files_are_refused_and_binary_ones_kept_byte_for_byte(desk: Desk) -> None:
    desk.write("large.txt", "x" * 5001)
    with pytest.raises(FileTooLargeError, match="5,001 bytes"):
        desk.open("large.txt")
    with pytest.raises(FileTooLargeError, match="largest_bytes"):
        keep_file(desk.runtime, desk.ref, "given", b"x" * 5001)
    said = bytes(range(256)) * 10
    desk.write("image.png", said)
    opened = desk.open("image.png")
    assert (opened.content, opened.is_binary) == (said, True)
    assert desk.open("image.png").content == said


def test_a_given_file_is_known_again_under_its_name(desk: Desk) -> None:
    assert keep_file(desk.runtime, desk.ref, "notes/plan.md", "a plan").state == "new"
    assert keep_file(desk.runtime, desk.ref, "notes/plan.md", "a plan").state == "unchanged"
    assert keep_file(desk.runtime, desk.ref, "notes/plan.md", "another").state == "changed"
    assert desk.open("notes/plan.md").text == "another"
    assert desk.open("notes/plan.md", roots=[]).text == "another"


def test_a_damaged_content_is_read_again_where_the_file_is_there(desk: Desk) -> None:
    path = desk.write("a.py", "whole")
    desk.open(path, pinned=True)
    with desk.runtime.store.database.write() as connection:
        connection.execute(text("UPDATE ltm_file_contents SET payload = :b"), {"b": b"other"})
    opened = desk.open(path)
    assert (opened.text, opened.file.pinned) == ("whole", True)
    assert "file_damaged" in desk.events()
    assert desk.memory.verify().problems == ()
    with desk.runtime.store.database.write() as connection:
        connection.execute(text("UPDATE ltm_file_contents SET payload = :b"), {"b": b"other"})
    assert {one.kind for one in desk.memory.verify().problems} == {"damaged_content", "wrong_kept_file"}
    path.unlink()
    with pytest.raises(DamagedFileError):
        desk.open(path)
    assert desk.memory.doctor().healthy


def test_each_promotion_and_demotion_is_told(desk: Desk) -> None:
    for name in "abcd":
        desk.open(desk.write(f"{name}.py", name))
    moves = [(one.name, one.details["before"], one.details["after"]) for one in desk.told]
    assert moves.count(("file_promoted", None, "hot")) == 4
    assert moves[-2:] == [("file_demoted", "hot", "warm"), ("file_promoted", None, "hot")]
    assert any("a.py: hot to warm (least_recently_used)" in one.reason for one in desk.told)


def test_what_is_due_is_done_at_its_time(desk: Desk) -> None:
    desk.open(desk.write("a.py"))
    tend_files(desk.runtime, desk.ref)
    assert desk.events().count("files_collected") == 1
    desk.clock[0] += 299
    assert tend_files(desk.runtime, desk.ref) == ()
    desk.clock[0] += 2
    assert [one.reason for one in tend_files(desk.runtime, desk.ref)] == ["every 300 s"]
    desk.clock[0] += 601
    assert [one.reason for one in tend_files(desk.runtime, desk.ref)] == ["every 300 s", "every 900 s"]
    assert places(desk.runtime.store, desk.ref).popitem()[1] == "warm"
    desk.clock[0] = 5.0
    assert len(tend_files(desk.runtime, desk.ref)) == 2, "a clock that was set back does not stop the collector"


def test_crowded_tiers_are_told_of_once_until_they_are_not_and_collected_early(desk: Desk) -> None:
    tend_files(desk.runtime, desk.ref)
    desk.clock[0] += 61
    for number in range(7):
        desk.open(desk.write(f"f{number}.py"))
    reports = tend_files(desk.runtime, desk.ref)
    assert [one.reason for one in reports] == ["100% full"]
    assert desk.events().count("files_crowded") == 1
    assert len([one for one in places(desk.runtime.store, desk.ref).values() if one != "cold"]) == 6
    assert {one.details["cause"] for one in desk.told if one.name == "file_demoted"} == {"least_recently_used", "rest"}
    desk.clock[0] += 3700
    tend_files(desk.runtime, desk.ref)
    tend_files(desk.runtime, desk.ref)
    for number in range(7):
        desk.open(desk.write(f"g{number}.py"))
    tend_files(desk.runtime, desk.ref)
    assert desk.events().count("files_crowded") == 2


def test_tiers_that_no_strategy_makes_less_full_are_halved(desk: Desk) -> None:
    for number in range(7):
        desk.open(desk.write(f"f{number}.py"))
    report = optimise(desk.runtime, desk.ref)
    assert report.strategies == (*desk.runtime.settings.tiers.strategies, "aggressive")
    assert report.utilisation == pytest.approx(3 / 7)


def test_an_optimisation_stops_as_soon_as_enough_is_freed(desk: Desk) -> None:
    assert optimise(desk.runtime, desk.ref).strategies == ()
    for number in range(6):
        desk.open(desk.write(f"f{number}.py"))
    desk.clock[0] += 3601
    report = optimise(desk.runtime, desk.ref)
    assert report.strategies == ("demote_unused",)
    assert report.utilisation < 0.75


def test_old_checkpoints_are_archived_and_still_read_and_restored(desk: Desk) -> None:
    store = desk.runtime.store
    words = tuple({"type": "human", "data": {"content": f"word{n} " * 30}} for n in range(50))
    for number in range(3):
        at = desk.clock[0] - 4000 * (number == 0)
        store.checkpoints.write(desk.ref, checkpoint(id=str(number) * 32, at=at, conversation=words), keep=9)
    before = store.checkpoints.read(desk.ref, "0" * 32)
    for number in range(7):
        desk.open(desk.write(f"f{number}.py"))
    report = optimise(desk.runtime, desk.ref)
    assert report.archived_checkpoints == 1
    infos = {info.id[0]: info for info in store.checkpoints.infos(desk.ref)}
    assert [infos[one].archived for one in "012"] == [True, False, False]
    assert infos["0"].stored_bytes <= infos["1"].stored_bytes
    assert store.checkpoints.read(desk.ref, "0" * 32) == before
    assert desk.memory.session("s").restore("0" * 32).checkpoint.archived
    assert [one.kind for one in desk.memory.verify().problems] == []


def test_a_restart_finds_files_where_they_were(desk: Desk, tmp_path: Path) -> None:
    for name in "abcdefgh":
        desk.open(desk.write(f"{name}.py", name * 50))
    before = places(desk.runtime.store, desk.ref)
    desk.memory.close()
    with open_memory(tmp_path / "memory.db") as again:
        store = again.core.runtime.store
        ref = ref_of(again.session("s"))
        assert places(store, ref) == before
        assert all(store.kept_files.content(ref, path) == path[-4:-3].encode() * 50 for path in before)
        store.kept_files.change(ref, lambda tiers: policy.fit(tiers, small_rules(1, 1)), rules=small_rules(1, 1))
        assert list(places(store, ref).values()).count("hot") == 1
