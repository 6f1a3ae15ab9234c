"""The files that a shell command reads, changes, searches or lists, as far as its words tell.

Conservative on purpose: only commands whose arguments are files by their meaning, only words that stand there as they
are (no variables, patterns or substitutions), and nothing at all of a line that cannot be read. A missed file costs a
line in a list; an invented one sends an agent looking for it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.types.runs import FileOperation

_PUNCTUATION = "();<>|&\n"
_HEREDOC = re.compile(
    r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n.*?(?:^[ \t]*(?P=end)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}=")
_NOT_PLAIN = re.compile(r"[*?\[\]{}$`!=:,;%^\\\s]|\A-|\A/[^/]*/?\Z|\A/dev/|\A\d+\Z|\A\+")
"""Patterns, variables, options, numbers, devices, and whole roots such as `/etc`: no file of a project."""
_WRAPPERS = frozenset({"sudo", "time", "command", "env", "nohup", "builtin"})
_READERS = frozenset({"cat", "bat", "batcat", "head", "tail", "less", "more", "nl", "tac", "diff"})
_SEARCHERS = frozenset({"grep", "egrep", "fgrep", "rg", "ag"})
_LISTERS = frozenset({"ls", "tree", "wc"})
_CHANGERS = frozenset({"rm", "touch", "tee", "truncate", "unlink"})
_TAKES_VALUE = {
    "head": frozenset({"-n", "-c"}),
    "tail": frozenset({"-n", "-c"}),
    "diff": frozenset({"-U", "-C", "-W"}),
    "bat": frozenset({"-l", "-r"}),
    "grep": frozenset({"-e", "-f", "-m", "-A", "-B", "-C"}),
    "rg": frozenset({"-e", "-f", "-m", "-A", "-B", "-C", "-g", "-t", "-T", "--glob", "--type", "-d"}),
    "sed": frozenset({"-e", "-f", "-l"}),
    "awk": frozenset({"-F", "-v", "-f"}),
    "tree": frozenset({"-L", "-I", "-P"}),
    "truncate": frozenset({"-s"}),
}
"""Options whose next word is no file."""
_PATTERN_OPTIONS = frozenset({"-e", "-f", "--regexp", "--expression", "--file"})
"""With one of these, the first word is a file already."""
_MAX_COMMAND_CHARS = 20_000
_MAX_PATH_CHARS = 400


def paths_in_command(command: str) -> Iterator[tuple[str, FileOperation]]:
    """The files that a shell command line names, with what it does to them, in their order.

    `cd` within the line counts: `cd app && cat a.py` reads `app/a.py`. A longer line than 20,000 characters, or one
    with an open quote, names none.
    """
    folder = ""
    for words in _simple_commands(command):
        if words[0] == "cd":
            folder = posixpath.join(folder, words[1]) if len(words) > 1 and _is_plain(words[1]) else folder
            continue
        for path, operation in _named_by(words):
            if _is_plain(path):
                yield (posixpath.normpath(posixpath.join(folder, path)) if folder else path), operation


def only_reads(command: str) -> bool:
    """Whether each command of a line reads files that it names, or goes to a folder, and nothing else is done."""
    commands = list(_simple_commands(command))
    return bool(commands) and all(
        words[0] == "cd" or ((done := list(_named_by(words))) and all(operation == "read" for _, operation in done))
        for words in commands
    )


def _simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each simple command; a redirection stands in them as `>` or `<` before its file."""
    if len(command) > _MAX_COMMAND_CHARS:
        return
    lexer = shlex.shlex(_HEREDOC.sub(r"\g<rest>\n", command), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        return
    words: list[str] = []
    for token in tokens:
        if not token or token.strip(_PUNCTUATION):
            words.append(token)
        elif set(token) & {"<", ">"}:
            if words and words[-1].isdigit() and ">" in token:
                words.pop()  # the `2` of `2>`
            words.append(token if token in {"<", ">", ">>"} else "<<<")
        else:
            yield from _meant(words)
            words = []
    yield from _meant(words)


def _meant(words: list[str]) -> Iterator[list[str]]:
    """The command without assignments and wrappers such as `sudo`; nothing for a comment or an empty one."""
    start = 0
    while start < len(words) and (_ASSIGNMENT.match(words[start]) or words[start] in _WRAPPERS):
        start += 1
    if start < len(words) and not words[start].startswith("#"):
        yield words[start:]


def _named_by(words: Sequence[str]) -> Iterator[tuple[str, FileOperation]]:
    arguments: list[str] = []
    redirect = ""
    for word in words[1:]:
        if redirect:
            if redirect != "<<<":
                yield word, "read" if redirect == "<" else "write"
            redirect = ""
        elif word in {"<", ">", ">>", "<<<"}:
            redirect = word
        else:
            arguments.append(word)
    yield from _operands(words[0].rsplit("/", 1)[-1], arguments)


def _operands(name: str, arguments: Sequence[str]) -> Iterator[tuple[str, FileOperation]]:
    """What a command does to the files among its arguments."""
    files = _without_options(name, arguments)
    has_pattern_option = any(word.split("=")[0] in _PATTERN_OPTIONS for word in arguments)
    if name in _READERS:
        yield from ((file, "read") for file in files)
    elif name in _SEARCHERS:
        yield from ((file, "search") for file in (files if has_pattern_option else files[1:]))
    elif name in _LISTERS:
        yield from ((file, "list") for file in files)
    elif name in _CHANGERS:
        yield from ((file, "write") for file in files)
    elif name in {"sed", "awk"}:
        in_place = name == "sed" and any(word.startswith(("-i", "--in-place")) for word in arguments)
        edited = files if has_pattern_option else [file for file in files if file][1:]
        yield from ((file, "write" if in_place else "read") for file in edited)
    elif name in {"cp", "mv"} and len(files) > 1:
        yield from ((file, "read" if name == "cp" else "write") for file in files[:-1])
        yield files[-1], "write"
    elif name == "find":
        for word in arguments:
            if word.startswith(("-", "(", "!")):
                break
            yield word, "search"


def _without_options(name: str, arguments: Sequence[str]) -> list[str]:
    takes_value = _TAKES_VALUE.get("grep" if name in _SEARCHERS and name != "rg" else name, frozenset())
    left: list[str] = []
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word in takes_value:
            skip = True
        elif not word.startswith("-"):
            left.append(word)
    return left


def _is_plain(word: str) -> bool:
    return bool(word) and len(word) <= _MAX_PATH_CHARS and not _NOT_PLAIN.search(word)
