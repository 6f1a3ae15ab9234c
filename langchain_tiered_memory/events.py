"""Every event that a memory reports: its name, its level in Python's logging, and what it says.

An event's name is a plain string for listeners (`event.name == "summary_made"`). The level decides what
`monitoring.logging` lets through: a person should look at warnings, and everything else is information.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

_WARNING = logging.WARNING


class EventName(StrEnum):
    """The events, by subject. Each has its `level` and, in `about`, one line for a person."""

    level: int
    about: str

    def __new__(cls, value: str, about: str = "", level: int = logging.INFO) -> Self:
        """A member from its name, line and level."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.level = level
        member.about = about
        return member

    SUMMARY_MADE = "summary_made", "a summary is ready and counts from now on"
    SUMMARY_UNSOURCED = (
        "summary_unsourced",
        "a summary names figures or codes that no source has; they are marked",
        _WARNING,
    )
    ANSWER_REFUSED = "answer_refused", "an answer of a condensing model was refused; the next request says why"
    CONDENSATION_FAILED = "condensation_failed", "a summary could not be written; the memory will try again", _WARNING
    CONDENSATION_FELL_BACK = (
        "condensation_fell_back",
        "a degraded summary is used until a better one is written",
        _WARNING,
    )
    CONDENSATION_WAITS = "condensation_waits", "a summary waits for a writer, or for the limit on calls per minute"
    NOTES_JOINED = "notes_joined", "a model rewrote notes in fewer words, because a view had no room for them"
    CONDENSED_APART = "condensed_apart", "the last request could not be used to condense; the usual call was made"
    REQUEST_NOT_KEPT = "request_not_kept", "the last request cannot be used to condense; the usual call will be made"
    NOTE_NOT_REPLACED = "note_not_replaced", "a summary would replace a note that it does not mention; the note stays"
    NEXT_WRITER = "next_writer", "another writer takes over a summary"
    CIRCUIT_OPENED = "circuit_opened", "a writer failed repeatedly or asks for a pause: it is left alone", _WARNING
    CIRCUIT_CLOSED = "circuit_closed", "a writer works again"
    EXTENSION_FAILED = "extension_failed", "a plugin, validator, hook or collector failed and was skipped", _WARNING
    SECTION_FAILED = (
        "section_failed",
        "a section of a context was left out: it raised, hung or returned no text",
        _WARNING,
    )
    ZONE_SAFE = "zone_safe", "a view is back below all thresholds"
    ZONE_WARNING = "zone_warning", "a view passed the first threshold", _WARNING
    ZONE_DANGER = "zone_danger", "a view passed the second threshold", _WARNING
    ZONE_CRITICAL = "zone_critical", "a view is nearly full", _WARNING
    VIEW_NOT_NEEDED = "view_not_needed", "a view did not need to change"
    VIEW_CONDENSED = "view_condensed", "summaries replaced older messages of a view"
    VIEW_MASKED = "view_masked", "old tool results of a view were shortened"
    VIEW_TRUNCATED = "view_truncated", "messages were left out of a view without a summary", _WARNING
    VIEW_FAILED = "view_failed", "a view could not be made smaller", _WARNING
    VIEW_UNDONE = "view_undone", "a condensation of a view was undone"
    VIEW_NOT_WRITTEN = (
        "view_not_written",
        "a read could not store what it derived; its result is complete",
        _WARNING,
    )
    PROVIDER_NOT_COMPACTED = (
        "provider_not_compacted",
        "a view is full and the provider has not compacted it: the memory's own summaries take over",
        _WARNING,
    )
    CONTEXT_OVERFLOW = "context_overflow", "what must be shown does not fit the window", _WARNING
    CONTEXT_MINIMAL = "context_minimal", "a request was made with only the essentials", _WARNING
    CONTEXT_RECOVERED = "context_recovered", "after an overflow, a request was made from a checkpoint", _WARNING
    CONTEXT_FATAL = "context_fatal", "nothing made a request fit", _WARNING
    THRESHOLD_UNUSABLE = "threshold_unusable", "a threshold is out of range; the default is used", _WARNING
    WINDOW_LEARNED = "window_learned", "a model's window was learnt"
    WINDOW_NOT_LEARNED = "window_not_learned", "a model's window could not be stored", _WARNING
    CHECKPOINT_MADE = "checkpoint_made", "the state of a run was saved"
    CHECKPOINT_RESTORED = "checkpoint_restored", "a run went back to a checkpoint"
    CHECKPOINT_FAILED = "checkpoint_failed", "the state of a run could not be saved", _WARNING
    CHECKPOINT_DAMAGED = (
        "checkpoint_damaged",
        "a checkpoint does not match its checksum; an older one is used",
        _WARNING,
    )
    CHECKPOINT_INCOMPLETE = (
        "checkpoint_incomplete",
        "a message cannot be read, and is missing from a checkpoint",
        _WARNING,
    )
    CHECKPOINT_UNUSABLE = "checkpoint_unusable", "no checkpoint can be used", _WARNING
    FILE_PROMOTED = "file_promoted", "a file of a run moved to a higher tier"
    FILE_DEMOTED = "file_demoted", "a file of a run moved to a lower tier"
    FILE_CHANGED = "file_changed", "a kept file has changed on the disk"
    FILE_DELETED = "file_deleted", "a kept file is gone from the disk", _WARNING
    FILE_DAMAGED = "file_damaged", "the kept content of a file cannot be read; the file is read again", _WARNING
    FILE_OFFERED = (
        "file_offered",
        "a file was read again although it is unchanged; the request points to its text above",
    )
    FILE_NOT_LOADED = "file_not_loaded", "a critical file could not be loaded", _WARNING
    FILES_COLLECTED = "files_collected", "files that nobody opened moved to lower tiers"
    FILES_OPTIMISED = "files_optimised", "the tiers were emptied or packed"
    FILES_CROWDED = "files_crowded", "the hot and warm tiers are nearly full", _WARNING
    RUN_STARTED = "run_started", "a run began"
    RUN_FIGURES = "run_figures", "the figures of a run, every ten minutes"
    RUN_ENDED = "run_ended", "a run ended, with its figures"
    ARTIFACT_NOT_KEPT = "artifact_not_kept", "an attachment could not be stored; its message was", _WARNING
    HISTORY_NOT_WRITTEN = "history_not_written", "the last messages are not in the session", _WARNING
    ANSWER_NOT_STORED = "answer_not_stored", "an answer could not be stored; the next request stores it", _WARNING
    TURN_INTERRUPTED = "turn_interrupted", "an answer was interrupted; the user's message is kept", _WARNING
    ARCHIVE_CHANGED = "archive_changed", "messages moved out of graph state are not in this memory", _WARNING
    EVICTION_WITHHELD = "eviction_withheld", "messages stay in graph state: they could not be moved out"
    THREAD_NOT_READ = "thread_not_read", "a saver does not list its checkpoints, so forks cannot be recognised"
    SECOND_SUMMARIZER = "second_summarizer", "another middleware summarises the same messages", _WARNING
    MESSAGES_ELSEWHERE = (
        "messages_elsewhere",
        "the main track has no messages; those of sub-graphs are on other tracks",
        _WARNING,
    )
    VECTORS_UNAVAILABLE = "vectors_unavailable", "Chroma cannot be reached; search continues by words", _WARNING
    VECTORS_BACK = "vectors_back", "Chroma answers again; search uses it"
    VECTORS_OF_ANOTHER_EMBEDDER = (
        "vectors_of_another_embedder",
        "the vector index was built by another embedder; search continues by words",
        _WARNING,
    )
    INDEX_DISCARDED = "index_discarded", "the vector index could not be used and is rebuilt", _WARNING
    VECTORS_LOST = "vectors_lost", "the vector index lost passages; they are embedded again", _WARNING
    FORGOTTEN = "forgotten", "messages were removed for good"
    REMOVAL_UNFINISHED = (
        "removal_unfinished",
        "a removal has started and cannot finish now; the memory tries again when it is next opened",
        _WARNING,
    )
    FORGOTTEN_NOT_STORED = (
        "forgotten_not_stored",
        "a forgotten message came back with the same id and words; it was not stored",
        _WARNING,
    )
    BACKGROUND_FAILED = "background_failed", "work in the background failed; the memory will try again", _WARNING
    MESSAGE_DAMAGED = "message_damaged", "a message cannot be read; a placeholder names it", _WARNING
    DAMAGED_ROW = "damaged_row", "a derived row cannot be read and is left out; doctor rebuilds it", _WARNING
    OPENED_READ_ONLY = "opened_read_only", "a database can be read but not written", _WARNING


DURABLE = frozenset(
    {EventName.SUMMARY_MADE, EventName.CHECKPOINT_MADE, *(one for one in EventName if one.startswith("view_"))}
) - {EventName.VIEW_UNDONE, EventName.VIEW_NOT_WRITTEN}
"""Events that are stored together with what they report, and delivered again if a crash came before delivery."""


def table() -> str:
    """All events as a Markdown table for the documentation."""
    rows = [
        f"| `{one}` | {logging.getLevelName(one.level).lower()} | {one.about} | {'yes' if one in DURABLE else ''} |"
        for one in EventName
    ]
    return "\n".join(["| event | level | meaning | delivered again after a crash |", "|---|---|---|---|", *rows])
