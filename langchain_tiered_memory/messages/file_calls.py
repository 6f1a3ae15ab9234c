"""Calls on files with what came of them: whether a call did what it was made for, or was refused.

A person or a program may refuse a change that an agent asks for, and the host then answers the call in words of its
own, often without marking the answer as an error. No wording tells such an answer, but its form does: a tool that
changes files names in each answer the file that it changed, and one that prints lines numbers them; an answer that does
not is none of that tool's. So an answer is held against the others of the same run. A tool whose answers never have
that form is believed, and so is a shell, whose answers are whatever its programs print. A reading of a line that names
the file itself, and more than its name, tells of the file and not what it says: that there is none, say.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.file_accesses import (
    changes_midway,
    folded,
    is_shell,
    looks_alone,
    plain_path,
    touches_of_call,
)
from langchain_tiered_memory.messages.file_texts import changes_of, file_looked_at, reading_of, shows_numbers, unsaid_of
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.text.readings import read_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.messages.file_texts import Change, Reading, Unsaid
    from langchain_tiered_memory.settings import FileSettings
    from langchain_tiered_memory.types.drafts import FileTouch
    from langchain_tiered_memory.types.records import Group
    from langchain_tiered_memory.types.runs import FileOperation

_Kind: TypeAlias = tuple[str, str, bool]
"""What a call does, by which tool, and whether it says what it replaces: a tool may answer each in another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCall:
    """An answered call on files."""

    group: int
    """`first_seq` of its group."""
    seq: int
    answer_seq: int
    call_id: str | None
    touches: tuple[FileTouch, ...]
    does: FileOperation | None
    """`read` where it only looks at the files that it touches, `write` where it only writes them; else `None`."""
    changes: tuple[Change, ...]
    unsaid: tuple[Unsaid, ...]
    """Files that it changed without saying how."""
    reading: Reading | None
    refused: bool
    """Whether nothing came of it: its answer is marked as an error, or has not the form of its tool's."""
    kind: _Kind | None
    """`None` where its answer has no form of its own: a shell's, or one that is neither a change nor a text."""
    has_form: bool
    """Whether its answer has the form that a tool gives to what it did."""
    is_text: bool
    """Whether its answer is the lines of a file."""

    def texts(self) -> Iterator[tuple[int, Change | Reading | Unsaid]]:
        """What it put into files, made of them or showed of one, each with the message that has it."""
        yield from ((self.seq, change) for change in self.changes)
        yield from ((self.seq, one) for one in self.unsaid)
        if self.reading is not None:
            yield self.answer_seq, self.reading

    @property
    def is_strange(self) -> bool:
        """Whether its answer is to be held against the others of its tool; lines of a file may have any form."""
        return self.kind is not None and not (self.has_form or self.is_text or self.refused)

    @property
    def writes(self) -> bool:
        """Whether it was to change a file."""
        return any(touch.operation == "write" for touch in self.touches)


def file_calls(groups: Sequence[Group], settings: FileSettings) -> list[FileCall]:
    """The answered calls on files in some groups of one run, in their order."""
    return judged(calls_read(groups, settings))


def calls_read(groups: Iterable[Group], settings: FileSettings) -> list[FileCall]:
    """The same, refused where they say so themselves: they have yet to be held against each other."""
    as_set = settings.model_dump_json()
    found: list[FileCall] = []
    for group in groups:  # a condensation asks for the same groups several times, and so does the next one
        said = tuple((entry.seq, entry.calls, entry.answers, entry.payload) for entry in group.entries)
        size = sum(len(entry.payload) for entry in group.entries)
        found += read_of(("file calls", as_set, said), partial(tuple, _calls_of(group, settings)), size=size)
    return found


def judged(found: Sequence[FileCall]) -> list[FileCall]:
    """Calls of one run, refused where they say so or have not the form of the others of their tool."""
    answers = [(one.kind, one.has_form) for one in found if one.kind is not None and not one.refused]
    formal = {kind for kind, has_form in answers if has_form}

    def is_none_of_its_tools(call: FileCall) -> bool:
        if call.kind not in formal or not call.is_strange:
            return False
        alike = [has_form for kind, has_form in answers if kind[0] == call.kind[0]]
        return 2 * sum(alike) > len(alike)

    return [replace(one, refused=True) if is_none_of_its_tools(one) else one for one in found]


def refused_touches(calls: Iterable[FileCall]) -> set[tuple[int, str]]:
    """Messages, each with a file that it was to read or change, where no call of the message did that."""
    done: set[tuple[int, str, bool]] = set()
    refused: set[tuple[int, str, bool]] = set()
    for call in calls:
        found = ((call.seq, touch.path, touch.operation == "write") for touch in call.touches)
        (refused if call.refused else done).update(found)
    looked = {(seq, path) for seq, path, _ in done}
    return {(seq, path) for seq, path, writes in refused - done if writes or (seq, path) not in looked}


def gone_files(calls: Iterable[FileCall]) -> list[tuple[int, str]]:
    """The files and folders that commands moved away or removed, each behind the message with the call."""
    done = (call for call in calls if not call.refused)
    return [(call.seq, one.path) for call in done for one in call.unsaid if one.fate == "gone"]


def _calls_of(group: Group, settings: FileSettings) -> Iterator[FileCall]:
    answers = {entry.answers: entry for entry in group.entries if entry.answers is not None}
    for entry in group.entries:
        for call in requested_calls(message_or_stand_in(entry)[0]) if entry.calls else ():
            answer = answers.get(call.id or "")
            if answer is None:
                continue
            touches = touches_of_call(call, settings)
            changes = changes_of(call, settings)
            unsaid = unsaid_of(call, changes, settings)
            if not (touches or unsaid):
                continue
            result = message_or_stand_in(answer)[0]
            reading, looked_at = reading_of(call, result, settings), file_looked_at(touches)
            written = [touch.path for touch in touches if touch.operation == "write"]
            kind: _Kind | None = None
            text = text_of(result)
            has_lines, of_shell = "\n" in text.strip(), is_shell(call, settings)
            names_one = any(posixpath.basename(path.replace("\\", "/")) in text for path in written)
            has_form = names_one if written else looked_at is not None and shows_numbers(text)
            if not of_shell and (written or (reading is not None and text)):
                kind = "write" if written else "read", folded(call.name), any(change.old for change in changes)
            refused = getattr(result, "status", "success") == "error"
            if of_shell and has_lines and (not written or changes_midway(call)):
                refused = False  # the last of its commands failed, and another read or wrote
            if looked_at is not None and looked_at in text and plain_path(text) != looked_at:
                refused = refused or not (has_lines or has_form)
            yield FileCall(
                group=group.first_seq,
                seq=entry.seq,
                answer_seq=answer.seq,
                call_id=call.id,
                touches=touches,
                does=_does(call, touches, settings),
                changes=changes,
                unsaid=unsaid,
                reading=reading,
                refused=refused,
                kind=kind,
                has_form=has_form,
                is_text=reading is not None and has_lines,
            )


def _does(call: RequestedCall, touches: Sequence[FileTouch], settings: FileSettings) -> FileOperation | None:
    if looks_alone(call, touches, settings):
        return "read"
    only_writes = not is_shell(call, settings) and all(touch.operation == "write" for touch in touches)
    return "write" if only_writes else None
