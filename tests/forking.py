"""Forks a child for one call, with a time limit: a child that hangs is a failure, not a hanging test."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import traceback
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CHILD_SECONDS = 150.0


class ChildFailed(AssertionError):  # noqa: N818 - a test's own assertion
    """The child raised, hung or died."""


class Child:
    """A forked child that makes one call and sends back what it gave."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._reads, writes = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _end_as_child(call, writes)
        os.close(writes)

    def result(self) -> Any:
        """What the call gave.

        Raises:
            ChildFailed: when it raised, did not end in time, or the child died.
        """
        ends = time.monotonic() + CHILD_SECONDS
        said = b""
        with closing(os.fdopen(self._reads, "rb", buffering=0)) as pipe:
            while select.select([pipe], [], [], max(ends - time.monotonic(), 0))[0]:
                part = pipe.read(1 << 16)
                if not part:
                    break
                said += part
            else:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                msg = f"the child hung for {CHILD_SECONDS} s"
                raise ChildFailed(msg)
        _, status = os.waitpid(self.pid, 0)
        if not said or status:
            msg = f"the child ended with status {status} and said {said!r}"
            raise ChildFailed(msg)
        is_fine, given = pickle.loads(said)  # noqa: S301 - our own child wrote it
        if not is_fine:
            raise ChildFailed(given)
        return given


def in_child(call: Callable[[], Any]) -> Any:
    """What `call` gives in a forked child."""
    return Child(call).result()


def _end_as_child(call: Callable[[], Any], pipe: int) -> None:
    try:
        said = pickle.dumps((True, call()))
    except BaseException:  # noqa: BLE001 - sent to the parent
        said = pickle.dumps((False, traceback.format_exc()))
    with os.fdopen(pipe, "wb") as file:
        file.write(said)
    os._exit(0)
