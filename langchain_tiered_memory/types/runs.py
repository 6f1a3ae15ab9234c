"""The nouns of an agent run: tasks, checkpoints and what a restore found. Frozen values, as in `records`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    import datetime as dt

TaskState: TypeAlias = Literal["waiting", "active", "finished"]
"""`waiting`: queued, not started yet. `active`: being worked on. `finished`: done."""

FileOperation: TypeAlias = Literal["read", "write", "search", "list"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A piece of work that messages belong to."""

    id: str
    track: str
    state: TaskState
    depends_on: tuple[str, ...]
    """Ids of the tasks that must be finished first."""
    started_at: float
    """When it was started, in seconds since the epoch. While it waits, when it was queued."""
    first_seq: int
    """Number of the first message that can belong to it. None does while it waits."""
    finished_at: float | None = None
    """When it was finished, in seconds since the epoch."""
    last_seq: int | None = None
    """Number of the last message before it was finished."""
    number: int = 0
    """Its place among the finished tasks of its session, from 1. It is 0 until the task is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """A file that a tool call touched, with its latest access."""

    path: str
    operation: FileOperation
    """`write` if it was ever written, else `read` if that is known, else the operation of the latest access."""
    tool: str
    """The tool of the latest change if that is known, else of the latest access that read or named the file."""
    seq: int
    """Number of the message that made the call."""
    at: float
    """Time of the call, in seconds since the epoch."""
    turn: int = 0
    """How many messages the user had sent by the latest change if that is known, else by the latest access."""
    changed_in: int | None = None
    """Number of the message that made the latest change, if that is known."""

    @property
    def time(self) -> dt.datetime:
        """Time of the call, in UTC."""
        return utc(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """The state of a run: its tasks, phase and pins, and where the conversation is."""

    phase: str | None
    tasks: tuple[Task, ...]
    """Active tasks, waiting ones, and those finished last."""
    finished_tasks: int
    """How many tasks are finished."""
    pinned_ids: tuple[str, ...]
    """Ids of the pinned messages."""
    last_seq: int
    """Number of the newest message."""
    last_message_id: str | None
    pinned_seqs: tuple[int, ...] = ()
    """Numbers of the pinned messages, in the order of `pinned_ids`. Empty in checkpoints of older versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheckpoint:
    """A saved state of a run. It is written whole or not at all."""

    id: str
    session_id: str
    track: str
    at: float
    """When it was saved, in seconds since the epoch."""
    reasons: tuple[str, ...]
    """Why it was saved: `context_size`, `phase_transition`, `task_milestone`, `risky_operation`, `time_interval`,
    `danger`, `critical`, or the caller's own reasons."""
    context_state: dict[str, Any]
    """The zone, the tokens used, the limit, and the plans of the views. `pruning` is what would leave next, planned in
    the danger zone."""
    project_state: dict[str, Any]
    """`phase`; `given`, what the caller gave last; `files`, those that were touched; `unread_files`; `tiers`, the paths
    of the files in `hot` and `warm`, the last opened first, and of the `pinned` ones."""
    tasks: tuple[Task, ...]
    """Active tasks, waiting ones in the order in which they were queued, and those finished last."""
    metrics: dict[str, Any]
    """Figures of the session and of the run."""
    conversation: tuple[dict[str, Any], ...]
    """The messages of the last view, as LangChain's message dicts. They are stored compressed."""
    file_checksums: dict[str, str]
    """SHA-256 by path, for touched files within the allowed roots."""
    state: RunState
    langgraph_checkpoint_id: str | None = None
    digest: str = ""
    """SHA-256 of everything above, as stored."""
    alone: bool = False
    """Whether a handle with a scope saved it. Then it restores its own track only, and only if it is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInfo:
    """A checkpoint without its contents."""

    id: str
    at: float
    track: str
    reasons: tuple[str, ...]
    last_seq: int
    stored_bytes: int
    langgraph_checkpoint_id: str | None = None
    archived: bool = False
    """Whether it is compressed more, because of its age. It is read and restored like any other."""
    alone: bool = False
    """As in `MemoryCheckpoint`."""


DifferenceKind: TypeAlias = Literal[
    "file_changed",
    "file_missing",
    "file_unreadable",
    "messages_since",
    "message_edited",
    "message_forgotten",
    "checkpoint_damaged",
    "plan_outdated",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is no longer as the checkpoint has it."""

    kind: DifferenceKind
    what: str
    """The file, message or checkpoint."""
    detail: str
    """What differs, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore put back, and what differs."""

    checkpoint: CheckpointInfo
    restored: tuple[str, ...]
    """What was put back: `tasks`, `phase`, `pins`, `views`, and `files` if their tiers were."""
    differences: tuple[Difference, ...] = ()
    skipped: tuple[str, ...] = field(default=())
    """Ids of newer checkpoints that were skipped because they are damaged."""

    @property
    def identical(self) -> bool:
        """Whether everything is as it was."""
        return not self.differences
