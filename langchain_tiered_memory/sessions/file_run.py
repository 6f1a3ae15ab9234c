"""A run of a session with its files in tiers: how it starts and ends, and the files it opens, keeps and pins."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Self

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.display.sheet import Sheet
from langchain_tiered_memory.driver import off_loop, off_loop_twin
from langchain_tiered_memory.errors import (
    FileGoneError,
    FileRefusedError,
    NotFoundError,
    StorageError,
    TieredMemoryError,
)
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.maintenance.worker import FileCollector
from langchain_tiered_memory.runs.checkpoint_store import RUN_END
from langchain_tiered_memory.runs.checkpoints import checkpoint
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.accesses import LONGEST_WAIT_SECONDS
from langchain_tiered_memory.runs.files.collecting import (
    archive_checkpoints,
    collect,
    optimise,
    tend_files,
)
from langchain_tiered_memory.runs.files.monitor import Measured, RunSoFar, report_from_json
from langchain_tiered_memory.runs.files.opening import keep_file, open_file, roots_of
from langchain_tiered_memory.runs.files.store import ENDED, UNDER_WAY
from langchain_tiered_memory.sessions.shown_handle import ShownHandle
from langchain_tiered_memory.types.arguments import FilePath, FilePaths, as_paths
from langchain_tiered_memory.types.files import CollectionReport, Files, KeptFile, OpenedFile, RunReport, Tier

if TYPE_CHECKING:
    from types import TracebackType

    from langchain_tiered_memory.engine import SessionEngine
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef


@checked_verbs
class Run(ShownHandle):
    """One run of a session: `with memory.run(...) as run:` or `async with`.

    The start loads the critical files and starts the collector, a daemon thread. The end archives old checkpoints,
    drops obsolete files, saves a checkpoint with the figures of the run, reports, and stops the collector. Files stay
    in their tiers: the next run of the session finds them there, in any process.

    Args:
        core: The session.
        roots: Folders whose files it may open. With `None`, those of the settings.
        critical: Files to load and pin at the start, in addition to those of the settings.
        background: Starts the collector. Without it, call `tend`.
    """

    def __init__(self, core: SessionEngine, *, roots: FilePaths | None, critical: FilePaths, background: bool) -> None:
        self.core = core
        """The session behind the verbs, for integrations. Its names may change in any version."""
        self.session_id = core.session_id
        self._monitor = core.engine.monitors.of(core.session_id)
        self._started_at = core.runtime.now()
        self._is_begun = False
        self._not_loaded: tuple[str, ...] = ()
        self._roots = roots_of(core.runtime, roots)
        self._critical = tuple(dict.fromkeys([*core.runtime.settings.tiers.critical, *as_paths(critical)]))
        self._has_collector = background
        self._collector: FileCollector | None = None

    def start(self) -> Self:
        """Load and pin the critical files, and start the collector.

        A file that cannot be loaded causes an alert, not an error.

        Raises:
            PinLimitError: if there are more critical files than the hot tier may hold.
        """
        self._started_at = self._runtime.now()
        self._monitor.begin(self._started_at)
        self._not_loaded = ()
        self._not_loaded, self._is_begun = self._load_critical(), True
        loaded = len(self._critical) - len(self._not_loaded)
        self._report(EventName.RUN_STARTED, f"{loaded} critical files loaded")
        self._save_under_way(is_new=True)
        self._start_collector()
        return self

    astart = off_loop_twin(start)

    def resume(self) -> Self:
        """Continue the session's unfinished run, whichever process began it, or start one.

        If the run was idle for longer than the time of the warm tier, it is ended and a new one starts.

        Raises:
            PinLimitError: as for `start`.
        """
        runtime = self._runtime
        known = RunSoFar.from_json(runtime.store.kept_files.saved_of_run(self._ref(), UNDER_WAY))
        if known is None:
            return self.start()
        if runtime.now() - known.seen_at >= runtime.settings.tiers.warm.seconds:
            self._wind_up()
            return self.start()
        self._started_at, self._not_loaded, self._is_begun = known.started_at, known.not_loaded, True
        self._not_loaded = self._load_critical()
        if self._not_loaded != known.not_loaded:
            self._save_under_way()
        self._start_collector()
        return self

    aresume = off_loop_twin(resume)

    def pause(self) -> None:
        """Leave the run so that it can be resumed: do what is due, save its figures, stop the collector."""
        self._stop_collector()
        self.tend()
        self._save_under_way()

    apause = off_loop_twin(pause)

    def end(self) -> RunReport:
        """Stop the collector, archive old contents, drop obsolete ones, save the figures, and return the report."""
        self._stop_collector()
        return self._wind_up()

    def _wind_up(self) -> RunReport:
        runtime, ref = self._runtime, self._ref()
        collect(runtime, ref, reason="end of the run", roots=self._roots)
        archive_checkpoints(runtime, ref)
        report = self.report()
        runtime.store.kept_files.save_of_run(ref, ENDED, asdict(replace(report, contexts=())))
        try:
            checkpoint(
                runtime, self.session_id, track=self.core.track, reasons=(RUN_END,), figures={"run": report.figures()}
            )
        except StorageError as error:
            self._report(EventName.CHECKPOINT_FAILED, str(error), reasons=[RUN_END])
        self._report(EventName.RUN_ENDED, report.line())
        return report

    aend = off_loop_twin(end)

    def report(self) -> RunReport:
        """Return a report: sizes, counts, times, contexts, alerts. It includes what other processes did in this run."""
        runtime, ref = self._runtime, self._ref()
        runtime.store.kept_files.settle(ref)
        known = self._known_of_the_run(ref)
        return RunReport(
            session_id=self.session_id,
            started_at=known.started_at,
            at=runtime.now(),
            sizes=runtime.store.kept_files.sizes(ref, runtime.settings.tiers),
            counts=dict(runtime.store.kept_files.times(ref).figures),
            timings=known.timings,
            alerts=known.alerts,
            contexts=tuple(self.core.engine.contexts.get(self.session_id) or ()),
            not_loaded=known.not_loaded,
        )

    areport = off_loop_twin(report)

    def last_report(self) -> RunReport | None:
        """Return the report of the session's last finished run, whichever process ended it, or `None`.

        It has no contexts; only the report that `end` returns has them.
        """
        return report_from_json(self._runtime.store.kept_files.saved_of_run(self._ref(), ENDED))

    alast_report = off_loop_twin(last_report)

    def collect(self) -> CollectionReport:
        """Move files down that nobody opened for their tier's time. The collector does this every 5 minutes."""
        with self._monitor.timed() as note:
            report = collect(self._runtime, self._ref(), roots=self._roots)
            note("collection")
        return report

    acollect = off_loop_twin(collect)

    def optimise(self) -> CollectionReport:
        """Free the tiers now, if they are fuller than `tiers.optimise_share`."""
        with self._monitor.timed() as note:
            report = optimise(self._runtime, self._ref())
            note("optimisation")
        return report

    aoptimise = off_loop_twin(optimise)

    def tend(self) -> tuple[CollectionReport, ...]:
        """Do what is due by the memory's clock, as the collector does: alerts, collection, optimisation, log line."""
        runtime = self._runtime
        with self._monitor.timed() as note:
            done = tend_files(runtime, self._ref(), roots=self._roots)
            if done:
                note("collection")
        now = runtime.now()
        if self._monitor.is_time("log", now, seconds=runtime.settings.tiers.log_seconds):
            self._report(EventName.RUN_FIGURES, self.report().line())
        if self._monitor.is_time("save", now, seconds=LONGEST_WAIT_SECONDS):
            self._save_under_way()
        return done

    atend = off_loop_twin(tend)

    def open(self, path: FilePath, *, pinned: bool = False) -> OpenedFile:
        """Open a file. Its content comes from its tier if the file on disk is unchanged, otherwise from the disk.

        `state` says which: `new`, `unchanged`, `changed`, or `deleted`. A deleted file has the content that was last
        kept.

        Args:
            path: Absolute, or relative to one of the roots.
            pinned: Keep it in the hot tier until `unpin`.

        Raises:
            FileGoneError: if it is neither on disk nor kept.
            FileRefusedError: if it is outside the roots (with links resolved), a file of the memory, or not a regular
                file. `FileTooLargeError` if it is larger than `tiers.largest_bytes`. `FileChangingError` if it was
                written to during each of several reads.
            PinLimitError: if the hot tier holds no more pinned files.
        """
        return self._open(str(path), pinned=pinned)

    async def aopen(self, path: FilePath, *, pinned: bool = False) -> OpenedFile:
        """See `open`. Its time includes the wait for a free thread."""
        return await off_loop(self._open, str(path), pinned=pinned, since=self._monitor.moment())

    def keep(self, path: FilePath, content: bytes | str, *, pinned: bool = False) -> OpenedFile:
        """Keep a file whose content you already have, such as a tool's result. Nothing is read from the disk.

        Its `state` compares it with what was kept before. `unchanged` means that it was read again needlessly.

        Args:
            path: Its name, which need not be a path on this machine.
            content: All of its content.
            pinned: As for `open`.

        Raises:
            FileRefusedError: if it is a file of the memory. `FileTooLargeError` if it is larger than
                `tiers.largest_bytes`.
            PinLimitError: as for `open`.
        """
        with self._monitor.timed() as note:
            opened = keep_file(self._runtime, self._ref(), str(path), content, pinned=pinned)
            note(opened.from_tier or "new")
        return opened

    akeep = off_loop_twin(keep)

    def content(self, path: FilePath) -> bytes | None:
        """Return the kept content of a file without opening it, or `None`. No tier changes.

        Args:
            path: As `files()` names it.

        Raises:
            DamagedFileError: if the content is damaged.
        """
        return self._runtime.store.kept_files.content(self._ref(), str(path))

    acontent = off_loop_twin(content)

    def pin(self, path: FilePath) -> KeptFile:
        """Open a file and keep it in the hot tier until `unpin`. Raises the errors of `open`."""
        return self.open(path, pinned=True).file

    apin = off_loop_twin(pin)

    def unpin(self, path: FilePath) -> None:
        """Unpin a file. It stays in the hot tier until its time is over.

        Raises:
            NotFoundError: if no such file is kept.
        """
        runtime, ref = self._runtime, self._ref()
        names = [str(path)]
        with suppress(FileRefusedError):  # a name that was given
            names.insert(0, str(runtime.store.disk.place(names[0], roots=self._roots)))
        name = next((one for one in names if runtime.store.kept_files.find(ref, one) is not None), None)
        if name is None:
            msg = f"no file {names[-1]!r} is kept in the session {self.session_id!r}"
            raise NotFoundError(msg)
        rules = runtime.settings.tiers
        runtime.store.kept_files.change(ref, lambda tiers: policy.unpin(tiers, name), rules=rules, paths=[name])

    aunpin = off_loop_twin(unpin)

    def files(self, tier: Tier | None = None) -> list[KeptFile]:
        """Return the kept files, or those of one tier, the last opened first."""
        ref, kept = self._ref(), self._runtime.store.kept_files
        kept.settle(ref)
        return Files(kept.files(ref, tier=tier))

    afiles = off_loop_twin(files)

    def _load_critical(self) -> tuple[str, ...]:
        """Load and pin the critical files. Returns those that could not be loaded, and reports each once per run."""
        runtime = self._runtime
        if not runtime.store.database.read_only:  # limits may have been lowered since the last run
            runtime.store.kept_files.change(self._ref(), rules=runtime.settings.tiers)
        missing: list[str] = []
        for path in self._critical:
            try:
                self.open(path, pinned=True)
            except (FileGoneError, FileRefusedError) as error:
                missing.append(path)
                if path not in self._not_loaded:
                    self._report(EventName.FILE_NOT_LOADED, str(error), path=path)
        return tuple(missing)

    def _start_collector(self) -> None:
        if self._has_collector and not self._runtime.store.database.read_only:
            self._collector = FileCollector(self._tend_quietly)
            self._collector.start()

    def _stop_collector(self) -> None:
        if self._collector is not None:
            self._collector.stop()

    def _open(self, path: str, *, pinned: bool, since: float | None = None) -> OpenedFile:
        with self._monitor.timed(since) as note:
            opened = open_file(self._runtime, self._ref(), path, roots=self._roots, pinned=pinned)
            note(opened.from_tier or "new")
        return opened

    def _tend_quietly(self) -> None:
        """Called by the collector: a failure is reported and tried again."""
        try:
            self.tend()
        except Exception as error:  # noqa: BLE001 - the database, the disk, or a memory that was closed
            self._report(EventName.BACKGROUND_FAILED, f"{type(error).__name__}: {error}")

    def _known_of_the_run(self, ref: SessionRef, *, is_new: bool = False) -> RunSoFar:
        """What this process measured, and what other processes of the run saved."""
        saved = None if is_new else RunSoFar.from_json(self._runtime.store.kept_files.saved_of_run(ref, UNDER_WAY))
        known = saved or RunSoFar(started_at=self._started_at)
        if self._is_begun:
            known = replace(known, started_at=self._started_at, not_loaded=self._not_loaded)
        measured = Measured(timings=self._monitor.timings(), alerts=self._monitor.alerts())
        return known.with_part(self._runtime.worker, measured)

    def _save_under_way(self, *, is_new: bool = False) -> None:
        """Save the figures so far, because another process may end the run."""
        if self._runtime.store.database.read_only:
            return
        ref = self._ref()
        known = replace(self._known_of_the_run(ref, is_new=is_new), seen_at=self._runtime.now())
        self._runtime.store.kept_files.save_of_run(ref, UNDER_WAY, asdict(known))

    def _name(self) -> str:
        return f"of {self.session_id!r}"

    def _looked_up(self) -> Sheet:
        self.core.check_owner()
        if self.core.ref is None:
            return Sheet(kind="Run", about=f"{self._name()}: not begun yet")
        return self.report()._sheet()  # noqa: SLF001 - a run shows itself as its report

    @property
    def _runtime(self) -> Runtime:
        return self.core.checked

    def _ref(self) -> SessionRef:
        """The session, created if it does not exist yet."""
        self.core.check_owner()
        return self.core.ref or self.core.made()

    def _report(self, name: EventName, reason: str, **details: object) -> None:
        self.core.engine.report(name, reason, session_id=self.session_id, **details)

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it, even if its block failed. An error while ending does not hide the block's own error."""
        if error is None:
            self.end()
            return
        try:
            self.end()
        except TieredMemoryError as other:
            self._report(EventName.BACKGROUND_FAILED, f"the run could not be ended: {other}")

    async def __aenter__(self) -> Self:
        """Start it."""
        return await self.astart()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As `__exit__`."""
        await off_loop(self.__exit__, kind, error, traceback)
