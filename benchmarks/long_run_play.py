"""One process of a simulated long run: it plays messages from where the last one was killed, and is killed itself.

What it measures goes to a file, a line for each step, so that a kill loses no figure of what was done before.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from sqlalchemy import event

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.errors import BudgetError, CheckpointError, FileTooLargeError
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.settings import ContextSettings, GuardSettings, Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.agent_transcripts import Transcript
    from langchain_tiered_memory.memory import Run, Session

SESSION = "long run"
STARTS_AT = 1_704_103_200.0  # 2024-01-01 10:00 UTC
COUNTED_AS = "gpt-4"
_LINE_NUMBER = re.compile(r"^ *\d+(?:\N{RIGHTWARDS ARROW}|\t|\|)", re.MULTILINE)
_PATH_KEYS = ("file_path", "path", "filePath")
_PART_KEYS = ("offset", "limit", "start_line", "end_line", "view_range")
_READS = frozenset({"read", "read_file", "view", "open"})
_WRITES = frozenset({"write", "write_file", "create"})
_EDITS = frozenset({"edit", "edit_file", "str_replace"})
_TASK_MESSAGES = 400
"""After so many messages the next task begins: every fifth that is finished is a checkpoint."""
_BEGINNING = 400
"""Messages in which a run pins files."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run, as every one of its processes gets it."""

    where: str
    """The database."""
    log: str
    """Where figures go."""
    messages: int
    seconds_between: float
    window: int
    window_share: float
    """Of the window, that every context stays below: the setting `context.window_share`."""
    context_every: int
    """An agent's call of so many is asked a context for."""
    pinned: int = 2
    """Files that the run pins, the first that it reads."""


def chained(transcripts: Sequence[Transcript], count: int) -> list[tuple[int, BaseMessage]]:
    """Transcripts one after the other, again and again, up to `count` messages; each with the number of its round.

    Ids are unique over all of it; a call and its result keep theirs in common.
    """
    found: list[tuple[int, BaseMessage]] = []
    turn = 0
    while len(found) < count:
        for transcript in transcripts:
            for place, message in enumerate(transcript.messages):
                found.append((turn, _renamed(message, f"{turn}.{transcript.name}", place)))
        turn += 1
    return found[:count]


def _renamed(message: BaseMessage, prefix: str, place: int) -> BaseMessage:
    changes: dict[str, Any] = {"id": f"{prefix}.{place}"}
    if isinstance(message, AIMessage) and message.tool_calls:
        changes["tool_calls"] = [call | {"id": f"{prefix}.{call['id']}"} for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        changes["tool_call_id"] = f"{prefix}.{message.tool_call_id}"
    return message.model_copy(update=changes)


def play(plan: Plan, said: Sequence[tuple[int, BaseMessage]], kill_at: int | None, statements: int) -> None:
    """Play from the first message that is not stored, until the end, or until the process kills itself.

    Args:
        plan: The run.
        said: All of its messages.
        kill_at: The message at which it does; `None` to the end.
        statements: After so many statements of that message's step, within a transaction where it is so.
    """
    with Path(plan.log).open("a", encoding="utf-8") as log:
        player = _Player(plan, log)
        player.play(said, kill_at, statements)


class _Player:
    def __init__(self, plan: Plan, log: Any) -> None:  # noqa: ANN401 - a text file
        self._plan = plan
        self._log = log
        self._now = STARTS_AT
        settings = Settings(
            tree=TreeSettings(background=False),
            guard=GuardSettings(window=plan.window),
            context=ContextSettings(window_share=plan.window_share),
        )
        self._counter = best_counter(COUNTED_AS)
        self._memory = TieredMemory.open(
            plan.where, embeddings=None, settings=settings, token_counter=self._counter, clock=lambda: self._now
        )
        self._session: Session = self._memory.session(SESSION)
        self._calls: dict[str, dict[str, Any]] = {}
        self._shown: frozenset[str] = frozenset()
        self._showed: dict[str, str] = {}
        """By path, the message whose result showed its content last."""

    def play(self, said: Sequence[tuple[int, BaseMessage]], kill_at: int | None, statements: int) -> None:
        there = self._session.metrics().messages
        self._now = STARTS_AT + there * self._plan.seconds_between
        if there:
            self._restore(there)
        for _, message in said[max(there - 50, 0) : there]:
            self._note_calls(message)
        with self._memory.run(SESSION, background=False) as run:
            for place in range(there, len(said)):
                turn, message = said[place]
                self._now = STARTS_AT + place * self._plan.seconds_between
                if place == kill_at:
                    self._kill_after(statements)
                self._step(run, place, turn, message)
            report = run.report()
            compression = report.sizes.compression
        problems = [str(one) for one in self._memory.verify().problems]
        self._write("end", counts=report.counts, compression=compression, files=report.sizes.files, problems=problems)
        self._memory.close()

    def _restore(self, place: int) -> None:
        try:
            report = self._session.restore()
        except CheckpointError as error:
            self._write("restored", place=place, error=str(error))
        else:
            self._write("restored", place=place, restored=list(report.restored), differences=len(report.differences))
        if place % _TASK_MESSAGES:
            # The checkpoint may be older than the task: what was begun since is begun again, as an agent would.
            self._session.start_task(f"task {place // _TASK_MESSAGES}")

    def _step(self, run: Run, place: int, turn: int, message: BaseMessage) -> None:
        if place % _TASK_MESSAGES == 0:
            self._task(place // _TASK_MESSAGES)
        is_calls = isinstance(message, AIMessage)
        if is_calls and place and place % self._plan.context_every == 0:
            self._context(place)
        self._session.add_messages([message], wait=place % 20 == 0)
        self._note_calls(message)
        if isinstance(message, ToolMessage):
            self._file(run, place, turn, message)
        self._tend(run, place)

    def _task(self, number: int) -> None:
        if number:
            self._session.start_task(f"task {number - 1}")
            self._session.finish_task(f"task {number - 1}")
        self._session.start_task(f"task {number}")

    def _context(self, place: int) -> None:
        began = time.perf_counter()
        try:
            context = self._session.context("", max_tokens=self._plan.window)
        except BudgetError as error:
            self._write("context", place=place, refused=str(error))
            return
        seconds = time.perf_counter() - began
        self._shown = frozenset(context.entry_ids)
        faults = [str(fault) for fault in check_valid(context.messages, complete=False)]
        if context.tokens > context.max_tokens:
            faults.append(f"{context.tokens} tokens of {context.max_tokens}")
        share = context.tokens / self._plan.window
        self._write("context", place=place, share=share, zone=context.guard.zone.value, faults=faults, seconds=seconds)

    def _note_calls(self, message: BaseMessage) -> None:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            self._calls[str(call["id"])] = dict(call)
        while len(self._calls) > 500:  # noqa: PLR2004 - results come soon after their calls
            del self._calls[next(iter(self._calls))]

    def _file(self, run: Run, place: int, turn: int, message: ToolMessage) -> None:
        """What a call read or wrote whole is kept; a read that brings what is kept was needless."""
        call = self._calls.get(message.tool_call_id)
        if call is None:
            return
        name, args = str(call["name"]).lower(), call["args"]
        path = next((str(args[key]) for key in _PATH_KEYS if isinstance(args.get(key), str)), None)
        if path is None or message.status == "error":
            return
        path = f"{turn}:{path}"
        if name in _READS and not any(args.get(key) for key in _PART_KEYS):
            content = _LINE_NUMBER.sub("", message.text)
        elif name in _WRITES and isinstance(args.get("content"), str):
            content = args["content"]
        elif name in _EDITS:
            changed = self._edited(run, path, args)
            if changed is None:
                return
            content = changed
        else:
            return
        pinned = place < _BEGINNING and len(self._pins(run)) < self._plan.pinned
        began, worked = time.perf_counter(), time.process_time()
        try:
            opened = run.keep(path, content, pinned=pinned)
        except FileTooLargeError:
            return
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
        if opened.content != content.encode("utf-8", "surrogatepass"):
            self._write("lost", path=path)
        is_reread = name in _READS and opened.state == "unchanged"
        tokens = self._counter.count_text(message.text) if is_reread else 0
        in_view = is_reread and self._showed.get(path) in self._shown
        self._showed[path] = str(message.id)
        self._write(
            "file",
            place=place,
            turn=turn,
            tier=opened.from_tier or "new",
            seconds=seconds,
            processor_seconds=worked,
            reread=tokens,
            in_view=in_view,
        )

    def _edited(self, run: Run, path: str, args: dict[str, Any]) -> str | None:
        """The content after an edit of a file that is kept; `None` where that is not known."""
        old, new = (
            args.get(one, args.get(other)) for one, other in (("old_string", "oldText"), ("new_string", "newText"))
        )
        kept = run.content(path)
        if kept is None or not isinstance(old, str) or not isinstance(new, str) or old not in kept.decode():
            return None
        return kept.decode().replace(old, new, 1)

    def _pins(self, run: Run) -> list[str]:
        return [file.path for file in run.files("hot") if file.pinned]

    def _tend(self, run: Run, place: int) -> None:
        for report in run.tend():
            self._write("tended", place=place, moves=len(report.moves), strategies=list(report.strategies))
        if place % 100 == 0:
            sizes = run.report().sizes
            self._write(
                "sizes",
                place=place,
                files=sizes.files,
                compression=sizes.compression,
                pinned=sizes.pinned,
                process_bytes=_resident_bytes(),
                process_seconds=time.process_time(),
                database_bytes=Path(self._plan.where).stat().st_size,
            )

    def _kill_after(self, statements: int) -> None:
        """End this process at a statement of this step: in the middle of a transaction, most often."""
        left = [statements]

        def strike(*_: object) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        event.listen(self._memory.core.runtime.store.database.engine, "before_cursor_execute", strike)

    def _write(self, kind: str, **figures: object) -> None:
        self._log.write(
            json.dumps({"kind": kind, "process": os.getpid(), "at": self._now - STARTS_AT, **figures}) + "\n"
        )
        self._log.flush()


def _resident_bytes() -> int:
    """Of this process, where the system tells it as Linux does; else 0."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text(encoding="ascii").split()[1]) * _PAGE_BYTES if statm.exists() else 0
