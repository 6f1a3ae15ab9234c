"""Every event that a memory reports: its name, its level in Python's logging, and what it says.

An event's name is a plain string for listeners (`event.name == "summary_made"`). The level decides what
`monitoring.logging` lets through: a person should look at warnings, and everything else is information.
"""

from __future__ import annotations

import logging
from enum import StrEnum, auto
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

    SUMMARY_MADE = auto(), "a summary is ready and counts from now on"
    SUMMARY_UNSOURCED = auto(), "a summary names figures or codes that no source has; they are marked", _WARNING
    ANSWER_REFUSED = auto(), "an answer of a condensing model was refused; the next request says why"
    CONDENSATION_FAILED = auto(), "a summary could not be written; the memory will try again", _WARNING
    CONDENSATION_FELL_BACK = auto(), "a degraded summary is used until a better one is written", _WARNING
    CONDENSATION_WAITS = auto(), "a summary waits for a writer, or for the limit on calls per minute"
    NOTES_JOINED = auto(), "a model rewrote notes in fewer words, because a view had no room for them"
    CONDENSED_APART = auto(), "the last request could not be used to condense; the usual call was made"
    REQUEST_NOT_KEPT = auto(), "the last request cannot be used to condense; the usual call will be made"
    NOTE_NOT_REPLACED = auto(), "a summary would replace a note that it does not mention; the note stays"
    NEXT_WRITER = auto(), "another writer takes over a summary"
    CIRCUIT_OPENED = auto(), "a writer failed repeatedly or asks for a pause: it is left alone", _WARNING
    CIRCUIT_CLOSED = auto(), "a writer works again"
    EXTENSION_FAILED = auto(), "a plugin, validator, hook or collector failed and was skipped", _WARNING
    SECTION_FAILED = auto(), "a section of a context was left out: it raised, hung or returned no text", _WARNING
    ZONE_SAFE = auto(), "a view is back below all thresholds"
    ZONE_WARNING = auto(), "a view passed the first threshold", _WARNING
    ZONE_DANGER = auto(), "a view passed the second threshold", _WARNING
    ZONE_CRITICAL = auto(), "a view is nearly full", _WARNING
    VIEW_NOT_NEEDED = auto(), "a view did not need to change"
    VIEW_CONDENSED = auto(), "summaries replaced older messages of a view"
    VIEW_MASKED = auto(), "old tool results of a view were shortened"
    VIEW_TRUNCATED = auto(), "messages were left out of a view without a summary", _WARNING
    VIEW_FAILED = auto(), "a view could not be made smaller", _WARNING
    VIEW_UNDONE = auto(), "a condensation of a view was undone"
    VIEW_NOT_WRITTEN = auto(), "a read could not store what it derived; its result is complete", _WARNING
    PROVIDER_NOT_COMPACTED = (
        auto(),
        "a view is full and the provider has not compacted it: the memory's own summaries take over",
        _WARNING,
    )
    CONTEXT_OVERFLOW = auto(), "what must be shown does not fit the window", _WARNING
    CONTEXT_MINIMAL = auto(), "a request was made with only the essentials", _WARNING
    CONTEXT_RECOVERED = auto(), "after an overflow, a request was made from a checkpoint", _WARNING
    CONTEXT_FATAL = auto(), "nothing made a request fit", _WARNING
    THRESHOLD_UNUSABLE = auto(), "a threshold is out of range; the default is used", _WARNING
    WINDOW_LEARNED = auto(), "a model's window was learnt"
    WINDOW_NOT_LEARNED = auto(), "a model's window could not be stored", _WARNING
    CHECKPOINT_MADE = auto(), "the state of a run was saved"
    CHECKPOINT_RESTORED = auto(), "a run went back to a checkpoint"
    CHECKPOINT_FAILED = auto(), "the state of a run could not be saved", _WARNING
    CHECKPOINT_DAMAGED = auto(), "a checkpoint does not match its checksum; an older one is used", _WARNING
    CHECKPOINT_INCOMPLETE = auto(), "a message cannot be read, and is missing from a checkpoint", _WARNING
    CHECKPOINT_UNUSABLE = auto(), "no checkpoint can be used", _WARNING
    FILE_PROMOTED = auto(), "a file of a run moved to a higher tier"
    FILE_DEMOTED = auto(), "a file of a run moved to a lower tier"
    FILE_CHANGED = auto(), "a kept file has changed on the disk"
    FILE_DELETED = auto(), "a kept file is gone from the disk", _WARNING
    FILE_DAMAGED = auto(), "the kept content of a file cannot be read; the file is read again", _WARNING
    FILE_OFFERED = auto(), "a file was read whose text stands above in the request, which points to it"
    FILE_NOT_LOADED = auto(), "a critical file could not be loaded", _WARNING
    FILES_COLLECTED = auto(), "files that nobody opened moved to lower tiers"
    FILES_OPTIMISED = auto(), "the tiers were made less full"
    FILES_CROWDED = auto(), "the hot and warm tiers are nearly full", _WARNING
    RUN_STARTED = auto(), "a run began"
    RUN_FIGURES = auto(), "the figures of a run, every ten minutes"
    RUN_ENDED = auto(), "a run ended, with its figures"
    ARTIFACT_NOT_KEPT = auto(), "an attachment could not be stored; its message was", _WARNING
    HISTORY_NOT_WRITTEN = auto(), "the last messages are not in the session", _WARNING
    ANSWER_NOT_STORED = auto(), "an answer could not be stored; the next request stores it", _WARNING
    TURN_INTERRUPTED = auto(), "an answer was interrupted; the user's message is kept", _WARNING
    ARCHIVE_CHANGED = auto(), "messages moved out of graph state are not in this memory", _WARNING
    EVICTION_WITHHELD = auto(), "messages stay in graph state: they could not be moved out"
    THREAD_NOT_READ = auto(), "a saver does not list its checkpoints, so forks cannot be recognised"
    SECOND_SUMMARIZER = auto(), "another middleware summarises the same messages", _WARNING
    MESSAGES_ELSEWHERE = auto(), "the main track has no messages; those of sub-graphs are on other tracks", _WARNING
    VECTORS_UNAVAILABLE = auto(), "Chroma cannot be reached; search continues by words", _WARNING
    VECTORS_BACK = auto(), "Chroma answers again; search uses it"
    VECTORS_OF_ANOTHER_EMBEDDER = (
        auto(),
        "the vector index was built by another embedder; search continues by words",
        _WARNING,
    )
    INDEX_DISCARDED = auto(), "the vector index could not be used and is rebuilt", _WARNING
    VECTORS_LOST = auto(), "the vector index lost passages; they are embedded again", _WARNING
    FORGOTTEN = auto(), "messages were removed for good"
    REMOVAL_UNFINISHED = (
        auto(),
        "a removal has started and cannot finish now; the memory tries again when it is next opened",
        _WARNING,
    )
    FORGOTTEN_NOT_STORED = (
        auto(),
        "a forgotten message came back with the same id and words; it was not stored",
        _WARNING,
    )
    BACKGROUND_FAILED = auto(), "work in the background failed; the memory will try again", _WARNING
    MESSAGE_DAMAGED = auto(), "a message cannot be read; a placeholder names it", _WARNING
    DAMAGED_ROW = auto(), "a derived row cannot be read and is left out; doctor rebuilds it", _WARNING
    OPENED_READ_ONLY = auto(), "a database can be read but not written", _WARNING


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
