"""What a source file imports, as it names it: by small patterns for the common languages, no parser.

It is told with each kept file, and nothing rests on it: so patterns do, as long as they are linear on hostile text.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_READ_BYTES = 40_000
"""Imports stand at a file's beginning; in languages where they may not, most do."""
_MAX_IMPORTS = 60
_PYTHON = re.compile(
    r"^[ \t]{0,16}(?:from[ \t]{1,4}(\.{0,8}[\w.]{0,200})[ \t]{1,4}import[ \t]{1,4}\(?([\w, \t]{0,300})"
    r"|import[ \t]{1,4}([\w., \t]{1,300}))",
    re.MULTILINE,
)
_SCRIPT = re.compile(r"""(?:\bfrom|\bimport|\brequire\()[ \t]{0,4}["']([^"'\n]{1,300})["']""")
_JAVA = re.compile(r"^[ \t]{0,8}import[ \t]{1,4}(?:static[ \t]{1,4})?([\w.]{1,300})", re.MULTILINE)
_GO = re.compile(
    r'^[ \t]{0,8}(?:import[ \t]{1,4})?(?:[\w.]{1,60}[ \t]{1,4})?"([\w./~-]{1,300})"[ \t\r]*$', re.MULTILINE
)
_INCLUDE = re.compile(r'^[ \t]{0,8}#[ \t]{0,8}include[ \t]{0,8}"([^"\n]{1,300})"', re.MULTILINE)
_RUST = re.compile(
    r"^[ \t]{0,8}(?:pub(?:\([a-z]{1,10}\))?[ \t]{1,4})?(?:mod[ \t]{1,4}(\w{1,100})[ \t]{0,4};"
    r"|use[ \t]{1,4}((?:crate|super|self)(?:::\w{1,100}){1,12}))",
    re.MULTILINE,
)


def imports_in(kind: str, content: bytes) -> tuple[str, ...]:
    """What a file imports, as it stands there, each once; a Rust `use` and `mod` with `::`.

    Args:
        kind: The language, as `KeptFile.kind` names it; a text or a binary imports nothing, and is not read.
        content: The file.
    """
    if kind in ("text", "binary"):
        return ()
    text = content[:_MAX_READ_BYTES].decode("utf-8", "replace")
    return tuple(islice(dict.fromkeys(_found(kind, text)), _MAX_IMPORTS))


def _found(kind: str, text: str) -> Iterator[str]:
    match kind:
        case "python":
            for match in _PYTHON.finditer(text):
                if match[3] is not None:
                    yield from (part.split()[0] for part in match[3].split(",") if part.split())
                elif match[1].strip("."):
                    yield match[1]
                    yield from (f"{match[1]}.{name}" for name in _names(match[2]))
                else:
                    yield from (f"{match[1]}{name}" for name in _names(match[2]))
        case "javascript" | "typescript":
            yield from (match[1] for match in _SCRIPT.finditer(text))
        case "java":
            yield from (match[1].rstrip(".") for match in _JAVA.finditer(text))
        case "go":
            yield from (match[1] for match in _GO.finditer(text))
        case "c" | "c++":
            yield from (match[1] for match in _INCLUDE.finditer(text))
        case "rust":
            yield from (f"self::{match[1]}" if match[1] is not None else match[2] for match in _RUST.finditer(text))


def _names(listed: str) -> Iterator[str]:
    """The names of `import a, b as c`."""
    return (part.split()[0] for part in listed.split(",") if part.split())
