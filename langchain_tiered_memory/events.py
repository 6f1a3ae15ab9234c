"""Every event that a memory tells of: its name, its level in Python's logging, and what it says.

An event's name is a plain string for whoever listens (`event.name == "summary_made"`). The level decides what
`monitoring.logging` lets through: warnings are what a person should look at, all else is information.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

_INFO, _WARNING = logging.INFO, logging.WARNING


class EventName(StrEnum):
    """The events, by subject. Each has its `level` and, in `about`, one line for a person."""

    level: int
    about: str

    def __new__(cls, value: str, level: int = _INFO, about: str = "") -> Self:
        """A member from its name, level and line."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.level = level
        member.about = about
        return member

    SUMMARY_MADE = "summary_made", _INFO, "a summary counts from now on"
    SUMMARY_UNSOURCED = "summary_unsourced", _WARNING, "a summary names figures or codes that are in no source; marked"
    ANSWER_REFUSED = "answer_refused", _INFO, "an answer of a condensing model was not taken; the next request says why"
    CONDENSATION_FAILED = "condensation_failed", _WARNING, "a summary could not be made; tried again later"
    CONDENSATION_FELL_BACK = "condensation_fell_back", _WARNING, "a degraded summary stands until a better one is made"
    CONDENSATION_WAITS = "condensation_waits", _INFO, "a summary waits for the bound on calls, or for a writer"
    CONDENSED_APART = (
        "condensed_apart",
        _INFO,
        "the last request could not be used to condense; the usual call was made",
    )
    REQUEST_NOT_KEPT = (
        "request_not_kept",
        _INFO,
        "the last request cannot be used to condense; the usual call will be made",
    )
    NEXT_WRITER = "next_writer", _INFO, "another writer takes a summary over"
    CIRCUIT_OPENED = "circuit_opened", _WARNING, "a writer failed again and again, and is left alone for a while"
    CIRCUIT_CLOSED = "circuit_closed", _INFO, "a writer works again"
    EXTENSION_FAILED = "extension_failed", _WARNING, "a plugin, validator, hook or collector was passed over"
    SECTION_FAILED = "section_failed", _WARNING, "a section of a context was left out: it raised, hung or gave no text"
    ZONE_SAFE = "zone_safe", _INFO, "a view is back below all thresholds"
    ZONE_WARNING = "zone_warning", _WARNING, "a view passed the first threshold"
    ZONE_DANGER = "zone_danger", _WARNING, "a view passed the second threshold"
    ZONE_CRITICAL = "zone_critical", _WARNING, "a view is nearly full"
    VIEW_NOT_NEEDED = "view_not_needed", _INFO, "a view was left as it is"
    VIEW_CONDENSED = "view_condensed", _INFO, "summaries stand for older messages of a view"
    VIEW_MASKED = "view_masked", _INFO, "old tool results of a view were shortened"
    VIEW_TRUNCATED = "view_truncated", _WARNING, "messages were left out of a view without a summary"
    VIEW_FAILED = "view_failed", _WARNING, "a view could not be made smaller"
    VIEW_UNDONE = "view_undone", _INFO, "a condensation of a view was taken back"
    VIEW_NOT_WRITTEN = (
        "view_not_written",
        _WARNING,
        "what was derived from a read could not be kept; the read is complete",
    )
    PROVIDER_NOT_COMPACTED = (
        "provider_not_compacted",
        _WARNING,
        "a view is full, and the provider that should condense it has not: the memory's own summaries take over",
    )
    CONTEXT_OVERFLOW = "context_overflow", _WARNING, "what must be shown does not fit the window"
    CONTEXT_MINIMAL = "context_minimal", _WARNING, "a request went out with the essentials alone"
    CONTEXT_RECOVERED = "context_recovered", _WARNING, "a request went out after an overflow, from a checkpoint"
    CONTEXT_FATAL = "context_fatal", _WARNING, "nothing made a request fit"
    THRESHOLD_UNUSABLE = "threshold_unusable", _WARNING, "a threshold is outside of its range; the default holds"
    WINDOW_LEARNED = "window_learned", _INFO, "a model's window was learnt"
    WINDOW_NOT_LEARNED = "window_not_learned", _WARNING, "a model's window could not be written down"
    CHECKPOINT_MADE = "checkpoint_made", _INFO, "the state of a run was saved"
    CHECKPOINT_RESTORED = "checkpoint_restored", _INFO, "a run went back to a checkpoint"
    CHECKPOINT_FAILED = "checkpoint_failed", _WARNING, "the state of a run could not be saved"
    CHECKPOINT_DAMAGED = "checkpoint_damaged", _WARNING, "a checkpoint does not match its checksum; an older one serves"
    CHECKPOINT_INCOMPLETE = "checkpoint_incomplete", _WARNING, "a message cannot be read, and is not in a checkpoint"
    CHECKPOINT_UNUSABLE = "checkpoint_unusable", _WARNING, "no checkpoint can be used"
    FILE_PROMOTED = "file_promoted", _INFO, "a file of a run went to a higher tier"
    FILE_DEMOTED = "file_demoted", _INFO, "a file of a run went to a lower tier"
    FILE_CHANGED = "file_changed", _INFO, "a kept file has another content on the disk"
    FILE_DELETED = "file_deleted", _WARNING, "a kept file is gone from the disk"
    FILE_DAMAGED = "file_damaged", _WARNING, "a kept content cannot be read; the file is read again"
    FILE_OFFERED = (
        "file_offered",
        _INFO,
        "a file was read again although it is unchanged; the request points to its text above",
    )
    FILE_NOT_LOADED = "file_not_loaded", _WARNING, "a critical file could not be loaded"
    FILES_COLLECTED = "files_collected", _INFO, "files that nobody opened went to lower tiers"
    FILES_OPTIMISED = "files_optimised", _INFO, "the tiers were made less full, or denser"
    FILES_CROWDED = "files_crowded", _WARNING, "hot and warm are nearly full"
    RUN_STARTED = "run_started", _INFO, "a run began"
    RUN_FIGURES = "run_figures", _INFO, "figures of a run, every ten minutes"
    RUN_ENDED = "run_ended", _INFO, "a run ended; its figures"
    ARTIFACT_NOT_KEPT = "artifact_not_kept", _WARNING, "an attachment cannot be stored; its message is"
    HISTORY_NOT_WRITTEN = "history_not_written", _WARNING, "what was said last is not in the session"
    ANSWER_NOT_STORED = "answer_not_stored", _WARNING, "an answer could not be written; the next request does it"
    TURN_INTERRUPTED = "turn_interrupted", _WARNING, "an answer was broken off; what the user said is kept"
    ARCHIVE_CHANGED = "archive_changed", _WARNING, "messages moved out of graph state are not in this memory"
    EVICTION_WITHHELD = "eviction_withheld", _INFO, "messages stay in graph state: they could not be moved out"
    THREAD_NOT_READ = "thread_not_read", _INFO, "a saver does not list its checkpoints, so a fork cannot be told"
    ROOM_SET_ASIDE = "room_set_aside", _INFO, "room is set aside for what other middlewares add behind the memory"
    SECOND_SUMMARIZER = "second_summarizer", _WARNING, "another middleware summarises the same messages"
    MESSAGES_ELSEWHERE = (
        "messages_elsewhere",
        _WARNING,
        "the main track has no messages; those of sub-graphs stand on other tracks",
    )
    VECTORS_UNAVAILABLE = "vectors_unavailable", _WARNING, "Chroma cannot be reached; search goes on by words"
    VECTORS_BACK = "vectors_back", _INFO, "Chroma, which was silent, answers again; search uses it"
    VECTORS_OF_ANOTHER_EMBEDDER = (
        "vectors_of_another_embedder",
        _WARNING,
        "the vector index was built by another embedder; search goes on by words",
    )
    INDEX_DISCARDED = "index_discarded", _WARNING, "the vector index could not be used and is made anew"
    VECTORS_LOST = "vectors_lost", _WARNING, "the vector index lost passages; they are embedded again"
    FORGOTTEN = "forgotten", _INFO, "messages were removed for good"
    REMOVAL_UNFINISHED = (
        "removal_unfinished",
        _WARNING,
        "a removal was begun and cannot be finished now; the next open tries again",
    )
    FORGOTTEN_NOT_STORED = (
        "forgotten_not_stored",
        _WARNING,
        "a forgotten message came again with the same id and words; it stays out",
    )
    BACKGROUND_FAILED = "background_failed", _WARNING, "work in the background failed; tried again"
    MESSAGE_DAMAGED = "message_damaged", _WARNING, "a message cannot be read; its place names it"
    DAMAGED_ROW = "damaged_row", _WARNING, "a derived row cannot be read and is left out; doctor makes it again"
    OPENED_READ_ONLY = "opened_read_only", _WARNING, "a database can be read and not written"


DURABLE = frozenset(
    {EventName.SUMMARY_MADE, EventName.CHECKPOINT_MADE, *(one for one in EventName if one.startswith("view_"))}
) - {EventName.VIEW_UNDONE, EventName.VIEW_NOT_WRITTEN}
"""What is written down together with what it tells of, and told again after a crash came between the two."""


def table() -> str:
    """All events as a table in Markdown, as the documentation has it."""
    rows = [
        f"| `{one}` | {logging.getLevelName(one.level).lower()} | {one.about} | {'yes' if one in DURABLE else ''} |"
        for one in EventName
    ]
    return "\n".join(["| event | level | says that | told again after a crash |", "|---|---|---|---|", *rows])
