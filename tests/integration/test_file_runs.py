"""`memory.run`: its start, what it opens, its figures, its collector, its end; sync and async."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory.errors import (
    FileGoneError,
    FileRefusedError,
    InvalidInputError,
    MixedOwnersError,
    NotFoundError,
    PinLimitError,
    StorageError,
)
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.maintenance.worker import FileCollector
from langchain_tiered_memory.runs.files.monitor import Measured, RunSoFar
from langchain_tiered_memory.settings import FileSettings
from langchain_tiered_memory.testing import FrozenClock
from langchain_tiered_memory.types.files import RunAlert, Timing
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.file_builders import small_rules
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.memory import Run, TieredMemory
    from langchain_tiered_memory.types.files import RunReport

START = 2_000_000_000.0


def project(tmp_path: Path, *names: str) -> Path:
    folder = tmp_path / "project"
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\nx = 1\n" * 30)
    return folder


def opened(tmp_path: Path, clock: Callable[[], float] = lambda: START, **tiers: Any) -> TieredMemory:
    settings = quick_settings().model_copy(update={"tiers": small_rules(**tiers)})
    return open_memory(tmp_path / "memory.db", settings=settings, clock=clock)


def in_a_run(call_style: CallStyle, run: Run, work: Callable[[Run], object]) -> None:
    """Have work done within a run, as `with` does it or as `async with` does."""
    if call_style == "sync":
        with run as begun:
            work(begun)
        return

    async def go() -> None:
        async with run as begun:
            await asyncio.to_thread(work, begun)

    asyncio.run(go())


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_run_loads_what_is_critical_keeps_what_it_opens_and_reports(tmp_path: Path, call_style: CallStyle) -> None:
    folder = project(tmp_path, "main.py", "a.py", "b.py", "c.py", "d.py")
    with opened(tmp_path) as memory:
        events: list[Any] = []
        memory.subscribe(events.append)
        run = memory.run("s", roots=[str(folder)], critical=["main.py", "missing.py"], background=False)

        def work(begun: Run) -> None:
            assert [(file.path, file.pinned) for file in begun.files("hot")] == [(str(folder / "main.py"), True)]
            for name in ("a", "b", "c", "d", "a"):
                file = told(call_style, begun.open, f"{name}.py")
                assert file.text.startswith(f"# {name}.py")
            assert told(call_style, begun.keep, "notes", "given").state == "new"
            assert {one.tier for one in told(call_style, begun.files)} == {"hot", "warm"}
            memory.session("s").add_messages(conversation(3))
            memory.session("s").context(max_tokens=1000)
            with pytest.raises(FileRefusedError):
                told(call_style, begun.open, "../memory.db")
            with pytest.raises(FileGoneError):
                told(call_style, begun.open, "nowhere.py")

        in_a_run(call_style, run, work)
        names = [one.name for one in events]
        assert names.index("run_started") < names.index("file_not_loaded") or "file_not_loaded" in names
        assert names[-1] == "run_ended"
        report = told(call_style, run.report)
        assert report.not_loaded == ("missing.py",)
        assert report.sizes.files == {"hot": 3, "warm": 3, "cold": 0}
        assert report.counts["opened_new"] == 6
        assert report.counts["opened_warm"] == 1
        assert {"new", "warm"} <= set(report.timings)
        assert report.timings["new"].count == 6
        assert 0 <= report.timings["new"].p50 <= report.timings["new"].p99 <= report.timings["new"].largest
        assert [one.name for one in report.alerts] == ["file_not_loaded"]
        assert report.contexts[-1].share > 0
        assert report.sizes.compression is not None
        assert "3 hot, 3 warm, 0 cold" in report.line()
        assert report.sizes.shares == {"hot": 1.0, "warm": 3 / 4}
        assert report.timings["promotion"].count == report.counts["promotions"]
        assert report.timings["demotion"].count == report.counts["demotions"]
        saved = memory.session("s").read_checkpoint()
        assert saved.reasons == ("run_end",)
        assert saved.metrics["run"]["counts"] == report.counts
        assert saved.metrics["run"]["alerts"] == {"file_not_loaded": 1}
        assert "missing.py" not in str(saved.metrics)
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_pins_are_kept_across_runs_and_one_too_many_is_an_error(tmp_path: Path, call_style: CallStyle) -> None:
    folder = project(tmp_path, "a.py", "b.py", "c.py", "d.py")
    with opened(tmp_path) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        for name in "abc":
            assert told(call_style, run.pin, f"{name}.py").pinned
        with pytest.raises(PinLimitError):
            told(call_style, run.pin, "d.py")
        told(call_style, run.unpin, "a.py")
        told(call_style, run.keep, "given", "x")
        told(call_style, run.unpin, "given")
        with pytest.raises(NotFoundError):
            told(call_style, run.unpin, "z.py")
    with opened(tmp_path) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        assert sorted(file.path[-4:] for file in run.files() if file.pinned) == ["b.py", "c.py"]
        assert run.open("b.py").state == "unchanged"


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_is_due_is_done_and_figures_are_logged_every_ten_minutes(tmp_path: Path, call_style: CallStyle) -> None:
    folder, clock = project(tmp_path, "a.py", "b.py"), [START]
    with opened(tmp_path, lambda: clock[0]) as memory:
        events: list[str] = []
        memory.subscribe(lambda event: events.append(event.name))
        with memory.run("s", roots=[str(folder)], background=False) as run:
            run.open("a.py")
            for _ in range(12):
                clock[0] += 301
                told(call_style, run.tend)
            assert (events.count("files_collected"), events.count("files_optimised")) == (12, 4)
            assert events.count("run_figures") == 6
            assert run.files()[0].tier == "cold"
            assert told(call_style, run.collect).moves == ()
            assert told(call_style, run.optimise).strategies == ()
        assert told(call_style, run.report).counts["collections"] == 14


def test_the_collector_is_a_daemon_thread_that_ends_with_its_run(tmp_path: Path) -> None:
    def threads() -> list[str]:
        return [one.name for one in threading.enumerate() if one.name == "tiered-memory-files"]

    with opened(tmp_path) as memory:
        with memory.run("s"):
            assert threads() == ["tiered-memory-files"]
            assert all(one.daemon for one in threading.enumerate() if one.name == "tiered-memory-files")
        assert threads() == []


class Owner:
    """Something that is tended."""

    def __init__(self) -> None:
        self.tended = threading.Event()

    def tend(self) -> None:
        self.tended.set()


def test_a_collector_tends_until_it_is_stopped() -> None:
    owner = Owner()
    collector = FileCollector(owner.tend, look_seconds=0.01)
    assert not collector._thread.is_alive()
    collector.start()
    assert owner.tended.wait(30)
    collector.stop()
    collector.stop()
    assert not collector._thread.is_alive()


def test_a_collector_ends_when_nobody_holds_its_owner() -> None:
    owner = Owner()
    collector, tended = FileCollector(owner.tend, look_seconds=0.01), owner.tended
    collector.start()
    assert tended.wait(30)
    del owner
    gc.collect()
    collector._thread.join(30)
    assert not collector._thread.is_alive()


def test_a_block_that_fails_is_what_is_raised_whatever_becomes_of_the_end(tmp_path: Path) -> None:
    memory = opened(tmp_path)
    with pytest.raises(ZeroDivisionError), memory.run("s", background=False):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), memory.run("s", background=False):  # noqa: PT012 - the memory goes first
        memory.close()
        raise ZeroDivisionError


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_report_of_a_run_that_ended_is_told_while_the_next_goes_on(tmp_path: Path, call_style: CallStyle) -> None:
    folder = project(tmp_path, "a.py")
    with opened(tmp_path) as memory:
        run = memory.run("s", roots=[str(folder)], critical=["missing.py"], background=False)
        assert told(call_style, run.last_report) is None
        run.start().open("a.py")
        memory.session("s").add_messages(conversation(1))
        memory.session("s").context(max_tokens=1000)
        ended = told(call_style, run.end)
        assert len(ended.contexts) == 1
    with opened(tmp_path) as memory:
        memory.run("s", background=False).start()
        assert memory.run("s", background=False).last_report() == replace(ended, contexts=())
        with memory.core.runtime.store.database.write() as connection:  # as a release before wrote it
            connection.exec_driver_sql("UPDATE ltm_file_tiers SET report = json_extract(report, '$.ended')")
        assert memory.run("s", background=False).last_report() == replace(ended, contexts=())


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_run_that_is_taken_up_again_is_one_run_until_nobody_comes_for_an_hour(
    tmp_path: Path, call_style: CallStyle
) -> None:
    folder, clock, heard = project(tmp_path, "a.py"), FrozenClock(START), []
    with opened(tmp_path, clock) as memory:
        memory.subscribe(lambda event: heard.append(event.name))
        for _ in range(3):
            run = memory.run("s", roots=[str(folder)], critical=["a.py", "missing.py"])
            told(call_style, run.resume).open("a.py")
            told(call_style, run.pause)
            clock.advance(3000.0)
        assert (heard.count("run_started"), heard.count("run_ended")) == (1, 0)
        assert (run.report().started_at, heard.count("file_not_loaded")) == (START, 1)
        assert not any(one.name == "tiered-memory-files" for one in threading.enumerate())
        clock.advance(600.0)
        run = memory.run("s", roots=[str(folder)], background=False).resume()
        assert (heard.count("run_started"), heard.count("run_ended")) == (2, 1)
        last = run.last_report()
        assert last is not None
        assert (last.started_at, last.not_loaded) == (START, ("missing.py",))
        assert run.report().started_at == clock()
        assert run.report().alerts == ()


def test_what_an_agent_waits_for_a_file_is_timed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path, "a.py")
    with opened(tmp_path) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        store, waited = memory.core.runtime.store, [0.0]
        found = store.transcript.find
        monkeypatch.setattr(run._monitor, "_monotonic", lambda: waited[0])

        def slow(session_id: str) -> Any:
            waited[0] += 3.0
            return found(session_id)

        monkeypatch.setattr(type(store.transcript), "find", lambda _, session_id: slow(session_id))
        run.open("a.py")
        assert run.report().timings["new"].largest == 3.0


async def test_what_an_agent_waits_for_a_free_thread_is_in_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path, "a.py")
    with opened(tmp_path) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        waited = [0.0]
        monkeypatch.setattr(run._monitor, "_monotonic", lambda: waited[0])
        begun = run._open

        def when_it_is_free(*asked: Any, **named: Any) -> Any:
            waited[0] = 3.0
            return begun(*asked, **named)

        monkeypatch.setattr(run, "_open", when_it_is_free)
        await run.aopen("a.py")
        assert run.report().timings["new"].largest == 3.0


def test_deleted_files_are_found_however_long_ago_they_were_opened(tmp_path: Path) -> None:
    names = [f"f{number}.py" for number in range(12)]
    folder = project(tmp_path, *names)
    with opened(tmp_path, hot=1, warm=1) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        for name in names:
            run.open(name)
        for name in names[:10]:
            (folder / name).unlink()
        run.collect()
        assert sorted(file.path for file in run.files()) == sorted(str(folder / name) for name in names[10:])


def test_a_run_belongs_to_its_sessions_owner(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.session("s", user="ann").add_messages(conversation(1))
        with pytest.raises(MixedOwnersError), memory.run("s", user="bob", background=False):
            pass
        with pytest.raises(InvalidInputError):
            memory.run("")


def test_roots_of_the_settings_are_those_of_a_run_that_names_none(tmp_path: Path) -> None:
    folder = project(tmp_path, "a.py")
    roots = {"files": FileSettings(roots=(str(folder),))}
    with open_memory(tmp_path / "memory.db", settings=quick_settings().model_copy(update=roots)) as memory:
        assert memory.run("s", background=False).open("a.py").state == "new"
        with pytest.raises(FileRefusedError, match="none is named"):
            memory.run("s", roots=[], background=False).open("a.py")


def test_a_memory_that_only_reads_shows_files_and_opens_none(tmp_path: Path) -> None:
    folder = project(tmp_path, "a.py")
    with opened(tmp_path) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        run.open("a.py")
    with open_memory(tmp_path / "memory.db", read_only=True) as memory:
        run = memory.run("s", roots=[str(folder)])
        assert [file.path for file in run.files()] == [str(folder / "a.py")]
        report: RunReport = run.report()
        assert report.sizes.files["hot"] == 1
        with pytest.raises(StorageError):
            run.open("a.py")


def test_forgetting_a_session_takes_its_files_from_the_disk_too(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for number in range(20):
        (folder / f"f{number}.py").write_text(f"xyzzy_plugh_{number} = 'secret'\n" * 40)
    with opened(tmp_path) as memory:
        with memory.run("s", roots=[str(folder)], background=False) as run:
            for number in range(20):
                run.open(f"f{number}.py")
        assert ref_of(memory.session("s"))
        assert b"xyzzy_plugh" in (tmp_path / "memory.db").read_bytes() + (tmp_path / "memory.db-wal").read_bytes()
        memory.forget(session_id="s")
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"xyzzy_plugh" not in kept
    assert b"f19.py" not in kept


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_checkpoint_holds_the_tiers_and_a_restore_puts_them_back(tmp_path: Path, call_style: CallStyle) -> None:
    names = [f"f{number}.py" for number in range(12)]
    folder = project(tmp_path, *names)
    with opened(tmp_path) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        session = memory.session("s")
        session.add_messages(conversation(1))
        run.pin("f0.py")
        for name in names[1:6]:
            run.open(name)
        before = {file.path: (file.tier, file.pinned) for file in run.files()}
        made = told(call_style, session.checkpoint, "here")
        assert made.project_state["tiers"]["pinned"] == [str(folder / "f0.py")]
        run.unpin("f0.py")
        for name in names[6:]:
            run.open(name)
        assert run.files("cold")
        report = told(call_style, session.restore, made.id)
        assert "files" in report.restored
        after = {file.path: (file.tier, file.pinned) for file in run.files()}
        assert {path: after[path] for path in before} == before
        assert all(tier == "cold" for path, (tier, _) in after.items() if path not in before)
        assert all(run.open(name).text.startswith(f"# {name}") for name in names)
        assert memory.verify().problems == ()


def test_a_run_that_other_processes_took_steps_of_reports_all_of_it(tmp_path: Path) -> None:
    where, folder = tmp_path, project(tmp_path, "a.py")
    with opened(where) as first, opened(where) as second:
        begun = first.run("s", roots=[str(folder)], critical=["missing.py"], background=False)
        begun.start()
        begun.open("a.py")
        first.core.runtime.report(EventName.ZONE_DANGER, "nearly full", session_id="s")
        begun._save_under_way()
        step = second.run("s", roots=[str(folder)], background=False)
        step.open("a.py")
        second.core.runtime.report(EventName.FILE_DAMAGED, "a.py", session_id="s")
        second.core.runtime.report(EventName.FILE_DAMAGED, "of another session", session_id="other")
        ended = second.run("s", roots=[str(folder)], background=False)
        report = ended.end()
    assert report.not_loaded == ("missing.py",)
    assert [one.name for one in report.alerts] == ["file_not_loaded", "zone_danger", "file_damaged"]
    assert (report.timings["new"].count, report.timings["hot"].count) == (1, 1)


def test_a_run_in_steps_keeps_its_start_and_a_new_one_begins_anew(tmp_path: Path) -> None:
    clock = FrozenClock(START)
    with opened(tmp_path, clock) as memory:
        memory.run("s", background=False).start()
        clock.advance(100.0)
        memory.run("s", background=False).keep("a", "text")
        memory.core.runtime.report(EventName.ZONE_CRITICAL, "full", session_id="s")
        report = memory.run("s", background=False).end()
        assert report.started_at == START
        assert [one.name for one in report.alerts] == ["zone_critical"]
        assert report.timings["new"].count == 1
        again = memory.run("s", background=False).start().end()
        assert again.started_at == START + 100.0
        assert again.alerts == ()
        assert "new" not in again.timings


def test_what_was_saved_of_a_run_and_cannot_be_read_is_passed_over() -> None:
    assert RunSoFar.from_json({}) is None
    assert RunSoFar.from_json({"started_at": "soon", "not_loaded": [], "parts": {}}) is None
    assert RunSoFar.from_json({"started_at": 1, "not_loaded": [], "parts": {"a": {"timings": {"x": {}}}}}) is None
    timing = Timing(count=3, mean=1.0, p50=1.0, p95=1.0, p99=1.0, largest=1.0)
    alert = RunAlert(at=1.0, name="zone_danger", reason="full")
    known = RunSoFar(started_at=1.0).with_part("a", Measured(timings={"hot": timing}, alerts=(alert,)))
    known = known.with_part("b", Measured(timings={"hot": timing, "cold": timing}, alerts=(alert,)))
    again = RunSoFar.from_json(json.loads(json.dumps(asdict(known))))
    assert again == known
    assert known.timings["hot"].count == 6
    assert known.timings["cold"] == timing
    assert known.alerts == (alert,)
    for number in range(50):
        known = known.with_part(f"p{number}", Measured())
    assert len(known.parts) == 20


def test_only_what_is_opened_comes_in_and_a_file_tells_what_it_imports(tmp_path: Path) -> None:
    folder = project(tmp_path, "app.py", "runtime.py", "test_app.py", "notes.txt")
    (folder / "app.py").write_text("import os\nfrom store import keep\n")
    (folder / "notes.txt").write_text("import store\n")
    with opened(tmp_path) as memory, memory.run("s", roots=[str(folder)], background=False) as run:
        run.open("notes.txt")
        run.open("app.py")
        assert [(file.path, file.accesses, file.dependencies) for file in run.files()] == [
            (str(folder / "app.py"), 1, ("os", "store")),
            (str(folder / "notes.txt"), 1, ()),
        ]


def test_warm_keeps_a_file_for_its_hour_whatever_task_was_started(tmp_path: Path) -> None:
    clock = FrozenClock(START)
    with opened(tmp_path, clock) as memory:
        session, run = memory.session("s"), memory.run("s", background=False)
        session.add_messages(conversation(1))
        session.start_task("t")
        run.keep("a.py", "x = 1\n")
        tiers = []
        for seconds in (700.0, 2000.0, 1000.0):
            clock.advance(seconds)
            run.collect()
            tiers += [one.tier for one in run.files()]
        assert tiers == ["warm", "warm", "cold"]


def test_a_run_that_is_tended_by_ever_other_objects_logs_and_saves_its_figures_in_time(tmp_path: Path) -> None:
    clock, heard = FrozenClock(START), []
    with opened(tmp_path, clock) as memory:
        memory.subscribe(lambda event: heard.append(event.name))
        for _ in range(5):
            run = memory.run("s", background=False)
            run.keep("a", "text")
            run.tend()
            clock.advance(200.0)
        assert heard.count("run_figures") == 1
        with opened(tmp_path, clock) as other:
            report = other.run("s", background=False).end()
        assert sum(one.count for one in report.timings.values() if one is not report.timings.get("collection")) >= 4
