"""Runs tests in several processes that are forked from the one that has collected them (`--processes 3`).

Importing and collecting take a process half a minute of its processor's time: here it is done once for all of them.
Each process takes its next share from one queue: large shares first, single tests at the end.
"""

from __future__ import annotations

import atexit
import os
import signal
import struct
import sys
import traceback
from dataclasses import dataclass
from io import StringIO
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._io import TerminalWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

_SHARES = 12
"""Of what is left a process takes this part of its equal share: it keeps a file's tests together, and none waits."""
_BORDERS = struct.Struct("<II")


@dataclass(kw_only=True, eq=False)
class _Worker:
    """A forked process, as the first one sees it; it is a report's `node`, which reporters look for."""

    number: int
    pid: int
    pipe: Connection
    at: int | None = None
    """The test that it is at."""
    left: int = 0
    """Tests of its share behind that one."""

    @property
    def gateway(self) -> _Worker:
        return self

    @property
    def id(self) -> str:
        return f"p{self.number}"

    @property
    def _workerinfocache(self) -> str:
        """The line above what a test failed of."""
        return f"[{self.id}]"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, metavar="N", help="run tests in N forked processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what `session` has collected in several processes, and report here as if it had been run here."""
    count: int = session.config.option.processes
    if count < 2 or not hasattr(os, "fork") or session.config.option.collectonly or session.testsfailed:
        return None
    # Before the fork: the folder is one, and the first process removes it.
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    sys.stdout.flush()
    sys.stderr.flush()
    queue = _filled(len(session.items), count)
    workers = [_start(session, number, queue) for number in range(count)]
    os.close(queue)
    try:
        _listen(session, workers)
    except BaseException:
        for one in workers:
            os.kill(one.pid, signal.SIGINT)
        raise
    finally:
        for one in workers:
            os.waitpid(one.pid, 0)
    return True


def _filled(items: int, count: int) -> int:
    """A pipe that holds the borders of every share, for whoever reads next."""
    queue, end = os.pipe()
    for share in _shares(items, count):
        os.write(end, _BORDERS.pack(*share))
    os.close(end)
    return queue


def _shares(items: int, count: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < items:
        stop = start + max(1, (items - start) // (count * _SHARES))
        yield start, stop
        start = stop


def _listen(session: pytest.Session, workers: list[_Worker]) -> None:
    """Hand on what the processes report until the last one is done."""
    hook = session.config.hook
    by_pipe: dict[Any, _Worker] = {one.pipe: one for one in workers}
    while by_pipe:
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[pipe]
            try:
                said, what = worker.pipe.recv()
            except (EOFError, OSError):
                said, what = "died", None
            if said == "at":
                worker.at, worker.left = what
            elif said == "report":
                report = hook.pytest_report_from_serializable(config=session.config, data=what)
                # Without it the terminal begins a line with the name of a file whenever another process reports.
                report.node = worker
                hook.pytest_runtest_logreport(report=report)
            else:
                del by_pipe[pipe]
                if said != "done":
                    hook.pytest_runtest_logreport(report=_of_death(session, worker, what))
            if session.shouldfail:
                raise session.Failed(session.shouldfail)


def _of_death(session: pytest.Session, worker: _Worker, why: str | None) -> pytest.TestReport:
    """The report of a test that its process did not survive."""
    item = session.items[worker.at or 0]
    said = f"process {worker.number} ended here; {worker.left} more tests of its share were not run\n{why or ''}"
    report = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
    report.node = worker  # type: ignore[attr-defined]
    return report


def _start(session: pytest.Session, number: int, queue: int) -> _Worker:
    here, there = Pipe(duplex=False)
    pid = os.fork()
    if pid:
        there.close()
        return _Worker(number=number, pid=pid, pipe=here)
    try:
        here.close()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background process ignores it
        _begin_anew(session.config, number)
        session.config.pluginmanager.register(_Reporter(session.config, there))
        _work(session, queue, there)
        there.send(("done", None))
    except BaseException:  # noqa: BLE001 - whatever it was, the first process tells of it, and this one ends
        there.send(("failed", traceback.format_exc()))
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            session._setupstate.teardown_exact(None)
            atexit._run_exitfuncs()
        finally:
            os._exit(0)


def _begin_anew(config: pytest.Config, number: int) -> None:
    """Have nothing in common with the other processes: no terminal, no file that holds the output, no folder."""
    manager: Any = config.pluginmanager
    # Others ask the reporter for its terminal, such as a test's time limit: it stays, and nobody hears it.
    manager.getplugin("terminalreporter")._tw = TerminalWriter(StringIO())
    capture = manager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / f"p{number}"
    folders._basetemp.mkdir(mode=0o700)


class _Reporter:
    """Sends the first process what happens to a test."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config = config
        self._pipe = pipe

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._pipe.send(("report", data))


def _work(session: pytest.Session, queue: int, pipe: Connection) -> None:
    """Run one share after the other; what is for the session stays until the last test."""
    share = _next_share(queue)
    while share is not None:
        start, stop = share
        for at in range(start, stop):
            if at + 1 == stop:
                share = _next_share(queue)
            following = at + 1 if at + 1 < stop else share[0] if share is not None else None
            pipe.send(("at", (at, stop - at - 1)))
            item = session.items[at]
            after = None if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.shouldfail or session.shouldstop:
                return


def _next_share(queue: int) -> tuple[int, int] | None:
    borders = os.read(queue, _BORDERS.size)
    return _BORDERS.unpack(borders) if borders else None
