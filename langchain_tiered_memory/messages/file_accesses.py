"""Which files a message's tool calls name. Paths are names here: nothing is opened, resolved or looked for.

Four sources: arguments of tools that are known to work on files, the bodies of patches, the plain commands that people
read and change files with (many agents have a shell and nothing else), and what searches found. An agent
calls one file by its absolute path, and by the one from where it works: names alone are compared then, too.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from fnmatch import translate
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from unicodedata import normalize

from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.message_text import role_of, text_of
from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.readings import READ_CHARS
from langchain_tiered_memory.types.drafts import FINDING, FileTouch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.settings import FileSettings
    from langchain_tiered_memory.types.runs import FileOperation


Fate: TypeAlias = Literal["edited", "anew", "gone"]
"""What becomes of the lines of a file: some are others, all are, or there is no such file any more."""
ANY_FILE = ""
"""The path of what a command may have changed that names no file: another state of the whole project."""
_Use: TypeAlias = "tuple[str, FileOperation, Fate | None]"
"""How a command names a file, what it does with it, and what becomes of its lines, where that is known."""

_SHELL_TOOLS = word_set(
    "bash sh zsh shell terminal exec execute localshell shellcommand execcommand execbash executebash executecommand "
    "executeshell runcommand runbash runshell runshellcommand runinterminal runterminalcmd"
)
"""Names of shell tools, in lower case and without `_` and `-`."""
_COMMAND_KEYS = ("command", "cmd", "script", "input", "code", "commands")
_SUB_COMMANDS: dict[str, FileOperation] = {
    **dict.fromkeys(word_set("view read open"), "read"),
    "list": "list",
    **dict.fromkeys(word_set("create write edit str_replace insert undo_edit delete rename"), "write"),
}
"""What an editor that is one tool with many commands does; its name alone would make every look a change."""
_PATCHED = re.compile(
    r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): ([^\n]+)|^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE
)
_WHOLE = re.compile(r"(?:file)?(?:(?P<removes>delete|remove)|(?P<moves>move|rename))(?:file)?")
"""The name of a tool for whole files, or of what an editor with many commands is told."""
_REMOVED = re.compile(r"^\*\*\* (?:Delete File: ([^\n]+)|Update File: ([^\n]+)\n\*\*\* Move to: )", re.MULTILINE)
_PREFIX = re.compile(r"__|[.:/]")
_SEPARATORS = re.compile(r"[-_\s]")
_NO_PATH = re.compile(r"[\x00-\x1f<>|\"`]|://")
_SLASHES = re.compile(r"(?<=.)/{2,}")
_MAX_PATH_CHARS = 1000
_MAX_PATHS = 200
"""Of one message: a call that names more is no record of what somebody looked at."""
_FOUND = re.compile(
    r"^[ \t]*((?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){1,30}[\w.@+-]{0,80}\w\.\w{1,8}?)(?:[ \t\r]*$|[:-]\d{1,6}[:-])",
    re.MULTILINE,
)
"""A line that is a path and nothing else, or that a search puts a path and a line number before."""
_FOUND_HERE = re.compile(r"^([\w.@+-]{1,80}\.\w{1,8}):\d{1,6}:", re.MULTILINE)
"""The same of a file without a folder: only a search of files writes it so, a shell prints much else of that form."""
_FOUND_FIELD = re.compile(r'"([\w-]{1,40})"\s{0,4}:\s{0,4}"((?:[^"\\\n]|\\[^\n]){1,500})"')
"""A field of a result that is JSON, such as `"file": "src/a.py"`."""
_FOUND_ITEM = re.compile(
    r'[\[,]\s{0,16}"((?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){1,30}[\w.@+-]{0,80}\w\.\w{1,8}?)"(?=\s{0,16}[,\]])'
)
"""A path among the items of a list that is JSON."""
_MAX_FOUND = 50


def touches_of(message: BaseMessage, settings: FileSettings) -> tuple[FileTouch, ...]:
    """The files that `message` touches, in their order, each path once for each operation.

    A tool is recognised by its name in lower case, with `_` and `-` or without, alone or behind a prefix such as
    `mcp__fs__` or `functions.`. Paths stay as they were written, except for a leading `./` and a trailing `/`.

    A message that calls tools touches what its calls name; the result of a search, a listing or a shell command "finds"
    the paths that stand on lines of their own, or in the fields of its JSON. At most 200, of a result 50.
    """
    if role_of(message) == "tool":
        return _found_by(message, settings)
    found = (touch for call in requested_calls(message) for touch in touches_of_call(call, settings))
    return tuple({(touch.path, touch.operation): touch for touch in found}.values())[:_MAX_PATHS]


def _found_by(result: BaseMessage, settings: FileSettings) -> tuple[FileTouch, ...]:
    tool = result.name or ""
    known = _operation(tool, tuple(settings.tools.items()))
    is_shell = known is None and names_shell(tool)
    operation: FileOperation | None = "search" if is_shell else known
    if operation not in FINDING:
        return ()
    ignored = _ignored(settings.ignore)
    text = text_of(result)[:READ_CHARS]
    found = _fields(text, settings) if text.lstrip()[:1] in ("[", "{") else _lines(text, is_shell=is_shell)
    paths = dict.fromkeys(plain_path(path) for path in found)
    kept = [path for path in paths if path is not None and not is_ignored(path, ignored)]
    return tuple(FileTouch(path=path, operation=operation, tool=tool) for path in kept[:_MAX_FOUND])


def _lines(text: str, *, is_shell: bool) -> Iterator[str]:
    """Paths on lines of their own, or before a line number."""
    yield from (match[1] for match in _FOUND.finditer(text))
    if not is_shell:
        yield from (match[1] for match in _FOUND_HERE.finditer(text))


def _fields(text: str, settings: FileSettings) -> Iterator[str]:
    """Paths in a result that is JSON, whole or cut: in the fields that name files, and as items of a list."""
    wanted = {folded(key) for key in settings.path_keys}
    for match in _FOUND_FIELD.finditer(text):
        if folded(match[1]) in wanted:
            yield match[2].replace("\\\\", "\\").replace("\\/", "/")
    yield from (match[1] for match in _FOUND_ITEM.finditer(text))


def touches_of_call(call: RequestedCall, settings: FileSettings) -> tuple[FileTouch, ...]:
    """As `touches_of`, of one call."""
    ignored = _ignored(settings.ignore)
    found: dict[tuple[str, FileOperation], FileTouch] = {}
    for written, operation in _touched(call, settings):
        path = plain_path(written)
        if path is not None and not is_ignored(path, ignored):
            found.setdefault((path, operation), FileTouch(path=path, operation=operation, tool=call.name))
        if len(found) == _MAX_PATHS:
            break
    return tuple(found.values())


def reads_alone(call: RequestedCall, touches: Collection[FileTouch], settings: FileSettings) -> bool:
    """Whether a call reads the files that it touches and does nothing else: its result is what they say."""
    return looks_alone(call, touches, settings) and all(touch.operation == "read" for touch in touches)


def looks_alone(call: RequestedCall, touches: Collection[FileTouch], settings: FileSettings) -> bool:
    """Whether a call reads, searches or lists the files that it touches, and does nothing else."""
    if not touches or any(touch.operation == "write" for touch in touches):
        return False
    return not is_shell(call, settings) or all(only_reads(command) for command in _commands(call))


def names_shell(tool: str) -> bool:
    """Whether a tool is a shell by its name, alone or behind a prefix."""
    return _bare(tool) in _SHELL_TOOLS


def _bare(tool: str) -> str:
    return folded(_PREFIX.split(tool)[-1])


def is_shell(call: RequestedCall, settings: FileSettings) -> bool:
    """Whether a call on files is one of a shell, not of a tool for files."""
    return _operation(call.name, tuple(settings.tools.items())) is None


def plain_path(written: str) -> str | None:
    """`written` without what makes two spellings of one path; `None` where it is no path of a file or folder."""
    path = written.strip().strip("'\"").removeprefix("file://")
    if not path or len(path) > _MAX_PATH_CHARS or _NO_PATH.search(path):
        return None
    path = _SLASHES.sub("/", path)
    while path.startswith("./"):
        path = path[2:]
    path = path.rstrip("/") if len(path) > 1 else path
    return None if path.strip("./~") == "" else path


def is_ignored(path: str, ignored: re.Pattern[str] | None) -> bool:
    """Whether a pattern for temporary and generated files holds for `path`, or for everything below it."""
    if ignored is None:
        return False
    slashed = path.replace("\\", "/")
    return ignored.match(slashed) is not None or ignored.match(f"{slashed}/") is not None


@lru_cache(maxsize=32)
def _ignored(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """One pattern for all; `*/name/*` holds for a relative path that begins with `name/`, too."""
    spelt = [*patterns, *(pattern[2:] for pattern in patterns if pattern.startswith("*/"))]
    return re.compile("|".join(translate(pattern) for pattern in spelt)) if spelt else None


def _touched(call: RequestedCall, settings: FileSettings) -> Iterator[tuple[str, FileOperation]]:
    operation = _operation(call.name, tuple(settings.tools.items()))
    if operation is None and not names_shell(call.name):
        return
    if operation is None:
        for command in _commands(call):
            if "*** " in command:
                yield from ((path, "write") for path in patched_paths(command))
            yield from paths_in_command(command)
        return
    yield from ((path, "write") for body in _patches(call) for path in patched_paths(body))
    sub_command = call.args.get("command")
    if isinstance(sub_command, str):
        operation = _SUB_COMMANDS.get(sub_command.strip().lower(), operation)
    if done_whole(call) == "moves":
        yield from ((path, operation) for path in _ends_of_move(call))
        return
    wanted = {folded(key) for key in settings.path_keys}
    for path in _named_in(call.args, wanted):
        yield path, operation


def _patches(call: RequestedCall) -> tuple[str, ...]:
    """The bodies of a call of a tool that applies patches."""
    if _bare(call.name) != "applypatch":
        return ()
    return (call.raw or "", *(value for value in call.args.values() if isinstance(value, str)))


def done_whole(call: RequestedCall) -> str | None:
    """What a tool does to whole files: `removes` or `moves` them; `None` for another."""
    said = call.args.get("command")
    found = _WHOLE.fullmatch(folded(said.strip()) if isinstance(said, str) else _bare(call.name))
    return found.lastgroup if found is not None else None


def _ends_of_move(call: RequestedCall) -> list[str]:
    """Where a file is moved from, and where to, as the first two texts of a call name it."""
    return [value for key, value in call.args.items() if isinstance(value, str) and key != "command"][:2]


def patched_paths(body: str) -> tuple[str, ...]:
    """The files that a patch changes: `*** Update File: path` and its like, or `+++ b/path` of a unified diff."""
    paths = ((match[1] or match[2]).strip() for match in _PATCHED.finditer(body))
    return tuple(dict.fromkeys(path for path in paths if path and path != "/dev/null"))


def _removed_by(body: str) -> Iterator[str]:
    """The files that a patch deletes or moves away."""
    return ((match[1] or match[2]).strip() for match in _REMOVED.finditer(body))


def _named_in(args: Mapping[str, Any], wanted: set[str]) -> Iterator[str]:
    for key, value in args.items():
        if folded(key) not in wanted:
            continue
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, str):
                yield one
            elif isinstance(one, dict):  # `files: [{"path": ...}]`
                yield from (inner for name, inner in one.items() if folded(name) in wanted and isinstance(inner, str))


def _commands(call: RequestedCall) -> Iterator[str]:
    for key in _COMMAND_KEYS:
        given = call.args.get(key)
        words = _split(given) if isinstance(given, str) and "sh -" in given[:_INLINE_CHARS] else given
        if key == "commands" and isinstance(given, list):
            yield from (one for one in given if isinstance(one, str))
        elif isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            yield words[-1] if _is_inline_script(words) else given if isinstance(given, str) else " ".join(words)
        elif isinstance(given, str):
            yield given


def changes_midway(call: RequestedCall) -> bool:
    """Whether a command changes a file and another comes behind it: where the last one fails, the file is changed."""
    lines = (list(simple_commands(command))[:-1] for command in _commands(call))
    return any(operation == "write" for commands in lines for _, operation, _ in _uses_of(commands))


def _is_inline_script(words: list[str]) -> bool:
    """Whether it is a list such as `["bash", "-lc", "cat a.py"]`, with nothing behind the script."""
    is_shell = len(words) > len(("sh", "-c")) and words[0].rsplit("/", 1)[-1] in {"bash", "sh", "zsh"}
    return is_shell and words[-2].startswith("-") and words[-2].endswith("c")


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command[:READ_CHARS])
    except ValueError:  # an open quote
        return []


@lru_cache(maxsize=256)
def _operation(name: str, tools: tuple[tuple[str, FileOperation], ...]) -> FileOperation | None:
    known: dict[str, FileOperation] = {folded(tool): operation for tool, operation in tools}
    for spelt in _spellings(name):
        if spelt in known:
            return known[spelt]
    return None


def _spellings(name: str) -> Iterable[str]:
    """`name`, what follows its last prefix, and its last two and three words (`filesystem_read_file`)."""
    yield folded(name)
    short = _PREFIX.split(name)[-1]
    yield folded(short)
    words = [word for word in _SEPARATORS.split(short.lower()) if word]
    for count in (3, 2):
        if len(words) > count:
            yield "".join(words[-count:])


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """The name of a tool or an argument, however its words are put together."""
    return _SEPARATORS.sub("", name.lower())


def fates_of_call(call: RequestedCall, settings: FileSettings) -> tuple[tuple[str, Fate], ...]:
    """What a call makes of the lines of files: one of a shell, or of a tool that moves, removes or patches them."""
    found: list[tuple[str, Fate]] = []
    if is_shell(call, settings):
        for command in _commands(call) if names_shell(call.name) else ():
            found += (*((path, "gone") for path in _removed_by(command)), *fates_in_command(command))
    else:
        found += ((path, "gone") for body in _patches(call) for path in _removed_by(body))
        done = done_whole(call)
        if done == "moves":
            found += zip(_ends_of_move(call), ("gone", "anew"), strict=False)
        elif done == "removes":
            found += ((one.path, "gone") for one in touches_of_call(call, settings) if one.operation == "write")
    return tuple(
        (path, fate) for written, fate in found if (path := plain_path(written) if written else ANY_FILE) is not None
    )


def is_at(path: str, place: str) -> bool:
    """Whether a name may be that of the file `place`, or of one in a folder of that name."""
    inner, outer = _plain(path), _plain(place)
    begins = inner.startswith(f"{outer}/")
    return may_be_same(path, place) or begins or (_is_absolute(inner) > _is_absolute(outer) and f"/{outer}/" in inner)


def may_be_same(one: str, other: str) -> bool:
    """Whether two names may be of one file: one of them is the end of the other."""
    first, second = _plain(one), _plain(other)
    return first == second or _ends_in(first, second) or _ends_in(second, first)


def same_names(paths: Collection[str]) -> dict[str, str]:
    """For each of these names one that all names of its file share.

    The folder that relative paths begin in is nowhere said. One that names a folder is taken for the only absolute path
    that ends with it.
    """
    plain = {path: _plain(path) for path in paths}
    by_end: dict[str, set[str]] = {}
    for path in filter(_is_absolute, plain.values()):
        by_end.setdefault(posixpath.basename(path), set()).add(path)
    names: dict[str, str] = {}
    for path, name in plain.items():
        ends = [one for one in by_end.get(posixpath.basename(name), ()) if _ends_in(one, name)]
        names[path] = ends[0] if len(ends) == 1 and "/" in name else name
    return names


@lru_cache(maxsize=4096)
def _plain(path: str) -> str:
    """One spelling of a path: systems that write it in another take either."""
    plain = posixpath.normpath(normalize("NFC", path).replace("\\", "/"))
    return plain[:1].lower() + plain[1:] if plain[1:2] == ":" else plain


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or path[1:2] == ":"


def _ends_in(path: str, end: str) -> bool:
    return _is_absolute(path) and not _is_absolute(end) and path.endswith(f"/{end}")


_PUNCTUATION = "();<>|&\n"
HEREDOC = re.compile(
    r"(?<!<)<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n"
    r"(?P<body>.*?)(?:^[ \t]*(?P=end)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(
    r"(?P<quoted>'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.)|(?:^|(?<=[\s;&|(]))#[^\n]*", re.DOTALL | re.MULTILINE
)
"""A comment, or what is quoted, in which none begins: an apostrophe in a comment opens no quote."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,200}=")
_INLINE_CHARS = 80
"""In which a line such as `bash -lc 'cat a.py'` says that it is one."""
_NOT_PLAIN = re.compile(r"[*?\[\]{}$`!=,;%^\\]|[^\S ]|(?<!\A\w):|\A-|\A/[^/]*/?\Z|\A/dev/|\A\d+\Z|\A\+")
"""Patterns, variables, options, numbers, devices, and whole roots such as `/etc`: no file of a project."""
_BACKSLASH = re.compile(r"\\(?=\w)")
"""Between the folders of a path of Windows: no shell needs one before a letter."""
_WRAPPERS = word_set("sudo time command env nohup builtin exec nice timeout xargs do then else if elif while until ! {")
_OF_WRAPPER = re.compile(r"-.*|\d+[smhd]?|\{\}", re.DOTALL)
"""Options of such a one, and their values."""
_EDITORS = frozenset({"sed", "perl"})
_IN_PLACE = re.compile(r"-[nErslapw0]{0,8}i|--in-place")
"""What lets such a one change the files that it reads."""
_WRITES = re.compile(r"\bwrite|[\"'](?:[wa]|r\+)[bt+]{0,2}[\"']")
"""What a script says that writes files."""
_QUOTED_PATH = re.compile(r"[\"'](?=[\w./~@+ -]{3,300}[\"'])([\w./~@+ -]{1,290}\.\w{1,8})[\"']")
UNNAMED_BY = ("git ", "sed ", "perl ", "patch ", "python", "node ", "ruby ")
"""Commands that change files which their line does not name, or names within a script."""
_ROOT = re.compile(r"/[\w.-]{0,80}/?")
"""A folder such as `/tmp`: none of a project, and what is done there is none of its work."""
_SHOWS = word_set("cat bat head tail less more nl tac diff sed")
"""What shows lines of files as they are."""
_DONE_BY: dict[str, tuple[FileOperation, Fate | None]] = {
    **dict.fromkeys({*_SHOWS, "awk", "perl"}, ("read", None)),
    **dict.fromkeys(word_set("ls tree wc"), ("list", None)),
    **dict.fromkeys(word_set("grep egrep fgrep rg ag"), ("search", None)),
    **dict.fromkeys(word_set("rm rmdir unlink"), ("write", "gone")),
    **dict.fromkeys(word_set("tee truncate"), ("write", "anew")),
    "touch": ("write", None),
}
"""What commands do to the files among their words."""
_BEHIND_PATTERN = word_set("sed awk perl grep egrep fgrep rg ag")
"""The first word of these is no file, unless an option has it."""
_HAS_PATTERN = frozenset({"-e", "-f", "--regexp", "--expression", "--file"})
_TAKES_VALUE = frozenset({"-e", "-f", "-m", "-A", "-B", "-C", "-g", "-t", "-F", "-v", "--glob", "--type"})
"""Options of such a command whose next word is no file."""
_CHANGES_FILES = word_set("checkout switch restore reset stash merge pull rebase cherry-pick revert am apply")
"""Commands of git after which files may say something else."""


def paths_in_command(command: str) -> Iterator[tuple[str, FileOperation]]:
    """The files that a shell command line names, with what it does to them, in their order.

    `cd` within the line counts: `cd app && cat a.py` reads `app/a.py`. A longer line than 20,000 characters, or one
    with an open quote, names none.
    """
    yield from ((path, operation) for path, operation, _ in _uses_in(command))


def fates_in_command(command: str) -> Iterator[tuple[str, Fate]]:
    """What becomes of the lines of the files that a command line changes, where what it names says that they change.

    `sed -i` may leave most of a file as it was; what was written anew, moved or removed is not what was known of it.
    Git may have changed any, and a script that writes each file that it names.
    """
    commands = list(simple_commands(command))
    if any(map(_changes_any, commands)):
        yield ANY_FILE, "edited"
    programs = [words[0].rsplit("/", 1)[-1] for words in commands]
    if any(name.startswith(("python", "node", "ruby")) for name in programs) and _WRITES.search(command):
        yield from ((match[1], "edited") for match in _QUOTED_PATH.finditer(command[:READ_CHARS]))
    yield from ((path, fate) for path, _, fate in _uses_in(command) if fate is not None)


def _changes_any(words: Sequence[str]) -> bool:
    """Whether a command puts files of a project into another state, without the name of each."""
    program = words[0].rsplit("/", 1)[-1]
    inner = words if program == "find" else words[:1]
    editor = next((at for at, word in enumerate(inner) if word in _EDITORS), None)
    in_place = editor is not None and any(_IN_PLACE.match(word) for word in words[editor:])
    if not (in_place or (program == "git" and words[1:2] and words[1] in _CHANGES_FILES)):
        return program == "patch"
    edited = [file for file, _, fate in _named_by(words) if fate == "edited"]
    return not edited or not all(_is_plain(file) and file != "." for file in edited)


def _uses_in(command: str) -> Iterator[_Use]:
    """The files that a command line names, by their paths."""
    return _uses_of(simple_commands(command))


def _uses_of(commands: Iterable[list[str]]) -> Iterator[_Use]:
    folder = ""
    for words in commands:
        if words[0] == "cd":
            goes = len(words) > 1 and (_is_plain(words[1]) or _ROOT.fullmatch(words[1]))
            folder = posixpath.join(folder, words[1]) if goes else folder
            continue
        for named, operation, fate in _named_by(words):
            if _is_plain(named):
                yield posixpath.normpath(posixpath.join(folder, named)) if folder else named, operation, fate


def only_reads(command: str) -> bool:
    """Whether each command of a line reads files that it names, or goes to a folder, and nothing else is done."""
    commands = list(simple_commands(command))
    return bool(commands) and all(
        words[0] == "cd" or ((done := list(_named_by(words))) and all(operation == "read" for _, operation, _ in done))
        for words in commands
    )


def shows_lines(call: RequestedCall) -> bool:
    """Whether all that a call of a shell prints is one run of lines of a file, as of `cat a.py | head -20`."""
    showing = [words for command in _commands(call) for words in simple_commands(command) if words[0] != "cd"]
    names = [words for words in showing if any(_is_plain(file) for file, how, _ in _named_by(words) if how == "read")]
    programs = {words[0].rsplit("/", 1)[-1] for words in showing}
    return len(names) == 1 and all(name in _SHOWS for name in programs)


def simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each simple command; a redirection stands in them as `>` or `<` before its file."""
    if len(command) > READ_CHARS:
        return
    plain = _BACKSLASH.sub("/", HEREDOC.sub(r"\g<rest>\n", command).replace("\\\n", " "))
    lexer = shlex.shlex(_COMMENT.sub(r"\g<quoted>", plain), posix=True, punctuation_chars=_PUNCTUATION)
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
            words.append(way if (way := token.strip("&|")) in {"<", ">", ">>"} else "<<<")
        else:
            yield from _meant(words)
            words = []
    yield from _meant(words)


def _meant(words: list[str]) -> Iterator[list[str]]:
    """The command without assignments and what it is wrapped in, such as `sudo`, `do` or options of all of git.

    Nothing for a comment or an empty one.
    """
    start = 0
    while start < len(words) and (
        _ASSIGNMENT.match(words[start]) or words[start] in _WRAPPERS or (start and _OF_WRAPPER.fullmatch(words[start]))
    ):
        start += 1
    name, *rest = words[start:] or ["#"]
    if name.rsplit("/", 1)[-1] == "git":
        while rest and rest[0].startswith("-"):
            rest = rest[2 if rest[0] in {"-C", "-c"} else 1 :]
    if not name.startswith("#"):
        yield [name, *rest]


def _named_by(words: Sequence[str]) -> Iterator[_Use]:
    arguments: list[str] = []
    redirect = ""
    for word in words[1:]:
        if redirect:
            if redirect != "<<<":
                yield word, "read" if redirect == "<" else "write", "anew" if redirect == ">" else None
            redirect = ""
        elif word in {"<", ">", ">>", "<<<"}:
            redirect = word
        else:
            arguments.append(word)
    yield from _operands(words[0].rsplit("/", 1)[-1], arguments)


def _operands(name: str, arguments: Sequence[str]) -> Iterator[_Use]:
    """What a command does to the files among its arguments."""
    if name == "git":
        name, *arguments = arguments or [""]
        if name in {"checkout", "restore"} and "--" in arguments:
            yield from ((file, "write", "edited") for file in arguments[arguments.index("--") + 1 :])
        if name not in {"mv", "rm"} or "--cached" in arguments:
            return
    files = list(_files_among(name, arguments))
    if name in {"cp", "mv"}:
        yield from _carried(name, files)
    elif name == "find":
        looked_in = takewhile(lambda word: not word.startswith(("-", "(", "!")), arguments)
        yield from ((folder, "search", None) for folder in looked_in)
    elif name in _DONE_BY:
        operation, fate = _DONE_BY[name]
        if name in _EDITORS and any(_IN_PLACE.match(word) for word in arguments):
            operation, fate = "write", "edited"
        fate = None if name == "tee" and "-a" in arguments else fate
        yield from ((file, operation, fate) for file in files)


def _files_among(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """The words of a command that are neither options, nor their values, nor its pattern."""
    has_pattern = name in _BEHIND_PATTERN and not any(word.split("=")[0] in _HAS_PATTERN for word in arguments)
    words = iter(arguments)
    for word in words:
        if name in _BEHIND_PATTERN and word in _TAKES_VALUE:
            next(words, None)
        elif word and not word.startswith("-"):
            if not has_pattern:
                yield word
            has_pattern = False


def _carried(name: str, files: Sequence[str]) -> Iterator[_Use]:
    """What `cp` and `mv` do: where files go to, then where they came from."""
    *sources, target = files or [""]
    into = len(sources) > 1 or target.endswith(("/", "."))
    for source in sources:
        yield (posixpath.join(target, posixpath.basename(source)) if into else target), "write", "anew"
    yield from ((one, "read", None) if name == "cp" else (one, "write", "gone") for one in sources)


def _is_plain(word: str) -> bool:
    return bool(word) and not _NOT_PLAIN.search(word)
