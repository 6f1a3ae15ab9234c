"""What tool calls say of the text of files: what a write call put there, and which lines a read showed.

A call that changes a file holds the file's own words: the text that it replaces and the one that takes its place, a
whole file, the hunks of a patch, or a here-document of a shell. Read from the arguments by their meaning, for tools
differ in their names: an argument beginning with `old` is what goes, the whole file or the longest other text is what
comes. Line numbers that a tool prints before each line are no part of a file and are taken off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.messages.content_blocks import texts_in
from langchain_tiered_memory.messages.file_accesses import (
    HEREDOC,
    done_whole,
    fates_of_call,
    folded,
    is_shell,
    names_shell,
    patched_paths,
    plain_path,
    shows_lines,
    simple_commands,
    touches_of_call,
)
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.text.readings import READ_CHARS, read_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.messages.file_accesses import Fate
    from langchain_tiered_memory.settings import FileSettings
    from langchain_tiered_memory.types.drafts import FileTouch

_MAX_CHANGES = 100
"""Of one call."""
_LEAST_CHARS = 20
"""A shorter text of a write call is an option, a name or a number."""
_MAX_DEPTH = 4
"""Of lists and objects around a text: editors with many changes in one call nest them once or twice."""
_NUMBERED = re.compile(r"[ \t]{0,10}(\d{1,7})(?:\u2192|\t|\||: )(.*)", re.DOTALL)
"""A line as a reading tool prints it, with its number before it."""
_NUMBERED_SHARE = 0.6
"""Of the lines of a result that have to be numbered; notes of the tool itself stand between them."""
_WHOLE_FILE = frozenset({"content", "contents", "filetext", "newcontent", "filecontent", "body"})
"""Arguments that are all of a file, in lower case and without `_` and `-`."""
_GOES = ("old", "search")
"""How an argument is called whose text goes; the one that takes its place ..."""
_COMES = ("new", "replace")
_OF_ALL_LINES = ("count", "ending", "endings", "newline")
"""How an argument ends that says how many lines there are, or how they end: it names no place among them."""
_HUNK = re.compile(r"^@@[^\n]*$", re.MULTILINE)
_SECTION = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: [^\n]*$|^diff --git [^\n]*$|^--- [^\n]*$", re.MULTILINE)
_PATCH_NOTES = ("*** ", "+++ ", "--- ", "index ", "diff ", "\\ ")
_PATCHES = ("*** Begin Patch", "*** Update File", "*** Add File", "\n@@ ", "\n+++ ")
_LINE_END = re.compile(r"[;&\n]")
_EXPANDED = re.compile(r"[$`\\]")
"""Of a here-document whose end is not quoted, for what the shell puts something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A piece of text that a write call put into a file."""

    path: str
    old: str
    """What it replaced; empty where that is not said."""
    new: str
    whole: bool = False
    """Whether it is all of the file."""
    every: bool = False
    """Whether it replaces `old` wherever that stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Lines of a file as a tool showed them."""

    path: str
    lines: tuple[str, ...]
    first: int | None = None
    """The number of the first of them in the file, where the tool printed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """A file whose lines a command changed without saying into what."""

    path: str
    """`ANY_FILE`: whichever it is; a command put all of them into another state."""
    fate: Fate


def changes_of(call: RequestedCall, settings: FileSettings) -> tuple[Change, ...]:
    """The texts that a call put into files, in their order; none of a call that writes no file."""
    written = [touch for touch in touches_of_call(call, settings) if touch.operation == "write"]
    if not written or done_whole(call):
        return ()
    path = written[-1].path
    bodies = [value for value in (call.raw, *texts_in(call.args, most=_MAX_DEPTH)) if isinstance(value, str)]
    patches = [body[:READ_CHARS] for body in bodies if body.startswith("@@") or any(one in body for one in _PATCHES)]
    if patches:
        paths = [touch.path for touch in written]
        return tuple(change for body in patches for change in _patched(body, paths))[:_MAX_CHANGES]
    if names_shell(call.name):
        return tuple(change for body in bodies for change in _here_documents(body[:READ_CHARS], path, len(written)))
    return tuple(_pairs(call.args, path, settings))[:_MAX_CHANGES]


def unsaid_of(call: RequestedCall, changes: Sequence[Change], settings: FileSettings) -> tuple[Unsaid, ...]:
    """The files that a call changed otherwise than by the `changes` that it holds."""
    said = {change.path for change in changes}
    fates = fates_of_call(call, settings)
    if not is_shell(call, settings):
        known = {path for path, _ in fates}
        written = (touch.path for touch in touches_of_call(call, settings) if touch.operation == "write")
        fates += tuple((path, "edited") for path in written if path not in known)
    return tuple(Unsaid(path=path, fate=fate) for path, fate in fates if path not in said)


def file_looked_at(touches: Sequence[FileTouch]) -> str | None:
    """The one file that a call was to read; `None` for another call, or one of several files."""
    paths = {touch.path for touch in touches}
    return touches[0].path if len(paths) == 1 and touches[0].operation == "read" else None


def reading_of(call: RequestedCall, result: BaseMessage, settings: FileSettings) -> Reading | None:
    """The lines of the one file that a call showed; `None` where it showed something else, too."""
    path = file_looked_at(touches_of_call(call, settings))
    if path is None or getattr(result, "status", "success") == "error":
        return None
    if is_shell(call, settings) and not shows_lines(call):
        return None
    lines, first = _lines_read(text_of(result)[:READ_CHARS])
    return Reading(path=path, lines=lines, first=first)


def shows_numbers(text: str) -> bool:
    """Whether a line of a result has its number before it."""
    return any(_NUMBERED.fullmatch(line) for line in text[:READ_CHARS].split("\n"))


@read_once
def _lines_read(text: str) -> tuple[tuple[str, ...], int | None]:
    """The lines that a tool showed, without the numbers it printed, and the first of those: asked at each view."""
    lines = text.split("\n")
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    found = [match for match in numbered if match is not None]
    if len(found) < _NUMBERED_SHARE * sum(1 for line in lines if line.strip()) or not found:
        return tuple(lines), None
    return tuple(match[2] for match in found), int(found[0][1])


def _pairs(value: Mapping[str, Any], path: str, settings: FileSettings, depth: int = 0) -> Iterator[Change]:
    """What replaces what in the arguments of a call, however deep a list of changes lies in them."""
    named = {folded(key) for key in settings.path_keys}
    own = next((one for key, one in value.items() if folded(key) in named and isinstance(one, str)), path)
    texts = {folded(key): one for key, one in value.items() if isinstance(one, str) and folded(key) not in named}
    old = next((one for key, one in texts.items() if key.startswith(_GOES)), "")
    rest = {key: one for key, one in texts.items() if not key.startswith(_GOES) and key != "command"}
    comes = next((key for key in rest if (key.startswith(_COMES) if old else key in _WHOLE_FILE)), None)
    key = max(rest, key=lambda one: len(rest[one]), default="") if comes is None else comes
    text, is_whole = rest.get(key, ""), not old and key in _WHOLE_FILE and not _adds(value)
    if old or is_whole or len(text) >= _LEAST_CHARS:
        every = any(folded(name) == "replaceall" and one is True for name, one in value.items())
        where = own if depth else path
        yield Change(path=where, old=old[:READ_CHARS], new=text[:READ_CHARS], whole=is_whole, every=every)
    for inner in value.values():
        for one in inner if isinstance(inner, list) else (inner,):
            if isinstance(one, dict) and depth < _MAX_DEPTH:
                yield from _pairs(one, path, settings, depth + 1)


def _adds(args: Mapping[str, Any]) -> bool:
    """Whether what is written joins what a file says, at its end or at a line."""
    said = {folded(key): value for key, value in args.items()}
    named = [key for key in said if key.startswith("line") or key.endswith("line")]
    at_line = any(not key.endswith(_OF_ALL_LINES) for key in named)
    return at_line or said.get("append") is True or said.get("mode") in ("a", "append")


def _patched(body: str, paths: list[str]) -> Iterator[Change]:
    """The hunks of a patch, each with what it takes out and what it puts in, lines around it included."""
    starts = [match.start() for match in _SECTION.finditer(body)] or [0]
    for start, end in pairwise([*starts, len(body)]):
        section = body[start:end]
        named = [plain_path(path) for path in patched_paths(section)]
        path = named[-1] if named else paths[0]
        if path is None or path not in paths:
            continue
        for hunk in _HUNK.split(section):
            lines = [line for line in hunk.split("\n") if line and not line.startswith(_PATCH_NOTES)]
            old = "\n".join(line[1:] for line in lines if line[0] in " -")
            new = "\n".join(line[1:] for line in lines if line[0] in " +")
            if new.strip():
                yield Change(path=path, old=old, new=new)


def _here_documents(command: str, path: str, written: int) -> Iterator[Change]:
    """The here-document that a shell command writes into its one file."""
    found = HEREDOC.search(command)
    if found is None or written != 1:
        return
    line = _LINE_END.split(command[: found.start()])[-1] + _LINE_END.split(found["rest"])[0]
    takers = list(simple_commands(line))
    body = found["body"].removesuffix("\n")
    if found[0].startswith("<<-"):
        body = "\n".join(line.lstrip("\t") for line in body.split("\n"))
    # What writes what it is given, and nothing else, as `cat > a.py` and `tee a.py` do.
    is_cat_or_tee = [words[0] == "tee" or (words[0] == "cat" and words[1:2] in ([], [">"], [">>"])) for words in takers]
    is_as_said = found["quote"] or not _EXPANDED.search(body)
    if len(body) >= _LEAST_CHARS and is_as_said and all(is_cat_or_tee):
        is_added = any(word in {">>", "-a"} for words in takers for word in words)
        yield Change(path=path, old="", new=body, whole=not is_added)
