"""Calls a user's extensions: with a deadline, off the event loop, and without breaking the turn.

Each call runs in a thread of its own with a deadline, and in the context (tracing, variables) of whoever asks. What
raises, hangs or answers nonsense is reported and passed over. One that hung is not called again before it came back,
so that no more than one thread hangs on it.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
U = TypeVar("U")


class Report(Protocol):
    """Says that something happened; `Runtime.report` is one."""

    def __call__(self, name: EventName, reason: str, **details: Any) -> None:  # noqa: ANN401 - plain JSON values of any kind
        """Say it; `details` must be plain JSON values."""
        ...


@dataclass(frozen=True, slots=True)
class Given(Generic[T]):
    """What an extension answered."""

    value: T


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why there is no answer. It was reported."""

    why: str
    hung: bool = False
    error: BaseException | None = None
    """What it raised."""


class ExtensionCaller:
    """Calls extensions, never on an event loop: flows ask for it as `Work`.

    One may take so many seconds; each that is passed over is reported as `extension_failed`.
    """

    def __init__(self, *, seconds: float, report: Report) -> None:
        self._seconds = seconds
        self.report = report
        self._lock = forks.Lock()
        self._hanging: dict[tuple[int, str], threading.Thread] = {}

    def configure(self, *, seconds: float) -> None:
        """How long one may take from now on."""
        self._seconds = seconds

    def ask(
        self,
        who: str,
        call: Callable[[], object],
        accept: Callable[[object], T | None],
        *,
        owner: object,
        session_id: str | None = None,
    ) -> Given[T] | Skipped:
        """The answer of one call, or why there is none.

        `who` names the extension and its method in events, and `owner` is the extension itself: names need not be
        unique. `accept` gives the answer as it may be used, `None` where it is nonsense.
        """
        answer = self._answer((id(owner), who), call)
        if isinstance(answer, Given):
            try:
                accepted = accept(answer.value)
            except Exception as error:  # noqa: BLE001 - the seam: its answer's own methods may raise
                answer = Skipped(f"its answer raised {type(error).__name__}: {error}")
            else:
                if accepted is not None:
                    return Given(accepted)
                answer = Skipped(f"answered nonsense: {_shown(answer.value)}")
        self.report(
            EventName.EXTENSION_FAILED,
            f"{who} {answer.why}; it is passed over",
            session_id=session_id,
            extension=who,
            hung=answer.hung,
        )
        return answer

    def value(
        self,
        who: str,
        call: Callable[[], object],
        accept: Callable[[object], T | None],
        *,
        owner: object,
        otherwise: U,
        session_id: str | None = None,
    ) -> T | U:
        """As `ask`, with `otherwise` where there is no answer."""
        answer = self.ask(who, call, accept, owner=owner, session_id=session_id)
        return answer.value if isinstance(answer, Given) else otherwise

    def _answer(self, who: tuple[int, str], call: Callable[[], object]) -> Given[object] | Skipped:
        with self._lock:
            before = self._hanging.get(who)
            if before is not None and before.is_alive():
                return Skipped("still hangs from an earlier call", hung=True)
            self._hanging.pop(who, None)
        answers: queue.SimpleQueue[Given[object] | Skipped] = queue.SimpleQueue()
        context = contextvars.copy_context()

        def called() -> None:
            try:
                answers.put(Given(context.run(call)))
            except BaseException as error:  # noqa: BLE001 - the seam: whatever it is, it must not take the turn along
                answers.put(Skipped(f"raised {type(error).__name__}: {error}", error=error))

        thread = threading.Thread(target=called, name="tiered-memory-extension", daemon=True)
        thread.start()
        try:
            return answers.get(timeout=self._seconds)
        except queue.Empty:
            with self._lock:
                self._hanging[who] = thread
            return Skipped(f"gave no answer within {self._seconds:g} seconds", hung=True)


_SHOWN_CHARS = 80


def _shown(value: object) -> str:
    """The answer's type and beginning: its own `repr` is somebody else's code."""
    said = value[:_SHOWN_CHARS] if isinstance(value, str) else ""
    return f"{type(value).__name__} {said!r}" if said else type(value).__name__
