"""The nouns of an agent run: tasks, checkpoints and what a restore found. Frozen values, as in `records`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    import datetime as dt

TaskState: TypeAlias = Literal["waiting", "active", "finished"]
"""Queued and not started yet; worked on; done."""

FileOperation: TypeAlias = Literal["read", "write", "search", "list"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A piece of work that messages belong to."""

    id: str
    track: str
    state: TaskState
    depends_on: tuple[str, ...]
    started_at: float
    """When it was started; while it waits, when it was queued."""
    first_seq: int
    """The first message that can belong to it; none does while it waits."""
    finished_at: float | None = None
    last_seq: int | None = None
    """The last message before it was finished."""
    number: int = 0
    """Its place among the finished tasks of its session: 1 for the first; 0 before it is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """A file that a tool call touched, as of its latest access."""

    path: str
    operation: FileOperation
    """`write` once it was written, else that of the latest access."""
    tool: str
    seq: int
    """The message that made the call."""
    at: float
    turn: int = 0
    """How many messages the user had sent by then."""

    @property
    def time(self) -> dt.datetime:
        """When it was."""
        return utc(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How a run stands: what tasks, phase and pins are, and where the conversation is."""

    phase: str | None
    tasks: tuple[Task, ...]
    """Active ones, those that wait, and the last finished."""
    finished_tasks: int
    pinned_ids: tuple[str, ...]
    last_seq: int
    last_message_id: str | None
    pinned_seqs: tuple[int, ...] = ()
    """Numbers of the pinned messages, in the order of `pinned_ids`; none where ids were unique in a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheckpoint:
    """A saved state of a run. Written whole or not at all."""

    id: str
    session_id: str
    track: str
    at: float
    reasons: tuple[str, ...]
    """`context_size`, `phase_transition`, `task_milestone`, `risky_operation`, `time_interval`, `danger`, `critical`,
    or the caller's own."""
    context_state: dict[str, Any]
    """Zone, used, limit, the plans of the views; `pruning`: what would leave next, as planned in the danger zone."""
    project_state: dict[str, Any]
    """`phase`, `given` (what the caller gave last), `files` that were touched, `unread_files`; `tiers`: paths of the
    files in `hot` and `warm`, the last opened first, and of those that are `pinned`."""
    tasks: tuple[Task, ...]
    """The queue: active ones, those that wait in the order in which they were queued, and the last finished."""
    metrics: dict[str, Any]
    conversation: tuple[dict[str, Any], ...]
    """The messages of the last view, as LangChain's message dicts. Kept compressed."""
    file_checksums: dict[str, str]
    """SHA-256 by path, of touched files within the allowed roots."""
    state: RunState
    langgraph_checkpoint_id: str | None = None
    digest: str = ""
    """SHA-256 over everything above, as stored."""
    alone: bool = False
    """Whether it is of its track alone: a handle with a scope saved it. It puts nothing of another track back, and
    is taken only where it is named."""


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
    """Whether it is kept more densely, for its age; it is read and restored as any other."""
    alone: bool = False
    """As for `MemoryCheckpoint`."""


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
    """Something that is not as the checkpoint has it."""

    kind: DifferenceKind
    what: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore put back, and what differs."""

    checkpoint: CheckpointInfo
    restored: tuple[str, ...]
    """`tasks`, `phase`, `pins`, `views`; `files` where their tiers were put back."""
    differences: tuple[Difference, ...] = ()
    skipped: tuple[str, ...] = field(default=())
    """Ids of newer checkpoints that were passed over because they are damaged."""

    @property
    def identical(self) -> bool:
        """Whether everything is as it was."""
        return not self.differences
