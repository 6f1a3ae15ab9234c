"""What an opened memory needs to go on in a forked child: whole state, free locks, nothing of the parent's threads.

A child of `os.fork` has one thread. What other threads were in the middle of stays half done in it: their locks are
held for ever, among them locks inside native libraries that nobody can make anew (SQLite's allocator has one). So

- whoever is inside such a library, or holds a lock of ours, is in a *section*, and a fork waits until no other thread
  is in one; entering one waits for a fork in turn. Forks of `subprocess` run no Python in the child and do not wait.
- what holds connections, threads or native handles is told before the fork and in the child, where it starts afresh.

A section that does not end within `PATIENCE_SECONDS` is *cut*: in the child nobody gets into one of its kind any more,
and is told so, where going on would hang.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
import time
import uuid
import weakref
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import ForkedError

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE_SECONDS = 45.0
"""How long a fork waits for other threads' sections: longer than a write waits for the database by default."""

_LOCKED = "a lock"


class AtFork:
    """Something that is told of forks as long as it lives."""

    def before_fork(self) -> None:
        """Let go of what must not be carried across. No other thread is in a section now."""

    def after_fork_in_child(self) -> None:
        """Start afresh, and touch nothing that the parent goes on using. This is the child's only thread."""


class Signature:
    """Who makes a summary: one opened memory in one process. A forked child has another signature, and knows its kin.

    It must not take its parent's leases for its own; and many a child ends by `os._exit`, with nobody told of it.
    """

    def __init__(self) -> None:
        self._host, self._token = socket.gethostname()[:24], uuid.uuid4().hex[:12]

    @property
    def name(self) -> str:
        """Of this process."""
        return f"{self._host}:{os.getpid()}:{self._token}"

    def is_gone(self, name: str) -> bool:
        """Whether that is the signature of a kin's process that has ended: of the opener's, or one forked from it."""
        pid = name.removeprefix(f"{self._host}:").removesuffix(f":{self._token}")
        if name == self.name or not pid.isdecimal():
            return False
        try:
            os.kill(int(pid), 0)
        except OSError as error:  # one of another user has the number of one that ended
            return isinstance(error, ProcessLookupError)
        return False


class _Gate:
    """Counts which threads are in sections, and closes while a fork is on."""

    def __init__(self) -> None:
        # Re-entrant: a signal handler or a finaliser may come in while its own thread stands here.
        self.changed = threading.Condition(threading.RLock())
        self.inside: dict[int, list[str]] = {}
        self.forking: int | None = None

    def enter(self, what: str) -> None:
        me = threading.get_ident()
        with self.changed:
            # Who is inside already must be able to finish, or the fork would wait in vain.
            while self.forking not in (None, me) and me not in self.inside:
                self.changed.wait()
            self.inside.setdefault(me, []).append(what)

    def leave(self) -> None:
        me = threading.get_ident()
        with self.changed:
            mine = self.inside[me]
            mine.pop()
            if not mine:
                del self.inside[me]
                if self.forking is not None:
                    self.changed.notify_all()

    def close(self) -> None:
        me = threading.get_ident()
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        with self.changed:
            while self.forking not in (None, me):
                self.changed.wait()
            self.forking = me
            while self.others(me) and (left := give_up_at - time.monotonic()) > 0:
                self.changed.wait(left)

    def others(self, me: int) -> frozenset[str]:
        return frozenset(what for ident, mine in self.inside.items() if ident != me for what in mine)

    def open(self) -> None:
        with self.changed:
            self.forking = None
            self.changed.notify_all()

    def renew(self) -> None:
        me = threading.get_ident()
        _cut.update(self.others(me) - {_LOCKED})
        self.changed = threading.Condition(threading.RLock())
        self.inside = {me: self.inside[me]} if me in self.inside else {}
        self.forking = None


_cut: set[str] = set()
"""Kinds of sections that were cut at a fork on the way to this process."""
_gate = _Gate()
_locks: weakref.WeakSet[Lock] = weakref.WeakSet()
_told: weakref.WeakSet[AtFork] = weakref.WeakSet()


class Section:
    """A stretch of work that no fork of another thread may cut. One object serves any number of threads, nested too.

    Args:
        what: Its kind, as messages name it: "a transaction".
        heals: Whether a child can do such work though it was cut: nothing native outlives it but what is told of forks.
    """

    __slots__ = ("_heals", "_what")

    def __init__(self, what: str, *, heals: bool = False) -> None:
        self._what = what
        self._heals = heals

    def __enter__(self) -> None:
        """Wait for a fork that is on."""
        if self._what in _cut and not self._heals:
            msg = (
                f"this process was forked while another thread had been in {self._what} for more than "
                f"{PATIENCE_SECONDS:g} seconds, so it would hang here; the parent continues. Fork before the memory is "
                "used, or start a new process"
            )
            raise ForkedError(msg)
        _gate.enter(self._what)

    def __exit__(self, *_: object) -> None:
        """Let forks go on."""
        _gate.leave()


class Lock:
    """A lock for `with`, which is free in a forked child, and what it guards whole: holding it is a section."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        with _gate.changed:
            _locks.add(self)

    def __enter__(self) -> None:
        """Wait for it."""
        _gate.enter(_LOCKED)
        try:
            self._lock.acquire()
        except BaseException:
            _gate.leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next one have it."""
        self._lock.release()
        _gate.leave()

    def renew(self) -> None:
        """Make it free, whoever held it."""
        self._lock = threading.Lock()


def tell(listener: AtFork) -> None:
    """Have `listener` told of every fork from now on."""
    with _gate.changed:
        _told.add(listener)


def abandon(native: object) -> None:
    """Keep something from ever being destroyed here: its destructor would wait for threads that the parent has.

    What only the interpreter's end would destroy must outlive that as well, so a reference is taken and never given
    back. Interpreters that do not count references do not run destructors at their end either.
    """
    if sys.implementation.name == "cpython":
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))
    _abandoned.append(native)


_abandoned: list[object] = []


def _before() -> None:
    _gate.close()
    with _gate.changed:
        listeners = list(_told)
    for listener in listeners:
        listener.before_fork()


def _in_child() -> None:
    _gate.renew()
    for lock in list(_locks):
        lock.renew()
    for listener in list(_told):
        listener.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_gate.open, after_in_child=_in_child)
