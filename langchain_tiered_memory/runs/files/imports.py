"""What a source file imports, and which files that may be: by small patterns for the common languages, no parser.

A reader that misses an import costs a slower first access to it, and one that sees an import in a comment brings in a
file that is not needed: so patterns do, as long as they are linear on hostile text. Nothing here looks at the disk.
"""

from __future__ import annotations

import posixpath
import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_MAX_READ_CHARS = 40_000
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
_SCRIPT_ENDINGS = ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", "/index.ts", "/index.tsx", "/index.js")
_TEST_FOLDERS = ("tests", "test", "__tests__", "spec")
_MOST_PARENTS = 8
"""Folders above a file in which what it imports is looked for: a deeper tree is none of sources."""


def imports_in(kind: str, text: str) -> tuple[str, ...]:
    """What a text imports, as it stands there, each once; a Rust `use` and `mod` with `::`.

    Args:
        kind: The language, as `KeptFile.kind` names it.
        text: The file.
    """
    return tuple(islice(dict.fromkeys(_found(kind, text[:_MAX_READ_CHARS])), _MAX_IMPORTS))


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


def candidates(path: str, kind: str, imported: str) -> tuple[str, ...]:
    """Paths that an import may mean, the most likely first.

    Args:
        path: Of the file that imports, with `/` between folders.
        kind: Its language.
        imported: As `imports_in` gives it.
    """
    found = _CANDIDATES.get(kind)
    return found(path, imported) if found is not None else ()


def _script(path: str, imported: str) -> tuple[str, ...]:
    if not imported.startswith("."):
        return ()
    base = posixpath.normpath(posixpath.join(posixpath.dirname(path), imported))
    plain = base.removesuffix(".js") if imported.endswith(".js") else base
    return tuple(dict.fromkeys(f"{stem}{ending}" for stem in (base, plain) for ending in _SCRIPT_ENDINGS))


def _java(path: str, imported: str) -> tuple[str, ...]:
    name = imported.replace(".", "/") + ".java"
    return tuple(posixpath.join(above, name) for above in _above(posixpath.dirname(path)))


def _go(path: str, imported: str) -> tuple[str, ...]:
    folders, last = _above(posixpath.dirname(path)), posixpath.basename(imported)
    return tuple(posixpath.join(above, f"{part}/{last}.go") for part in _ends(imported) for above in folders)


def _c(path: str, imported: str) -> tuple[str, ...]:
    folder = posixpath.dirname(path)
    places = [folder, *(posixpath.join(above, inner) for above in _above(folder) for inner in ("", "include", "src"))]
    return tuple(dict.fromkeys(posixpath.normpath(posixpath.join(place, imported)) for place in places))


def _python(path: str, imported: str) -> tuple[str, ...]:
    dots = len(imported) - len(imported.lstrip("."))
    name = imported.lstrip(".").replace(".", "/")
    bases = _above(posixpath.dirname(path))
    if dots:
        bases = bases[dots - 1 : dots]
    return tuple(posixpath.join(base, f"{name}{ending}") for base in bases for ending in (".py", "/__init__.py"))


def _rust(path: str, imported: str) -> tuple[str, ...]:
    first, *parts = imported.split("::")
    folder, name = posixpath.split(path)
    stem = name.removesuffix(".rs")
    own = folder if stem in ("mod", "lib", "main") else posixpath.join(folder, stem)
    bases = {"self": [own, folder], "super": [folder, posixpath.dirname(folder)]}.get(first, list(_above(folder)))
    found = []
    for end in range(len(parts), 0, -1):
        inner = "/".join(parts[:end])
        found += [posixpath.join(base, f"{inner}{ending}") for base in bases for ending in (".rs", "/mod.rs")]
    return tuple(dict.fromkeys(found))


_CANDIDATES: Mapping[str, Callable[[str, str], tuple[str, ...]]] = {
    "python": _python,
    "javascript": _script,
    "typescript": _script,
    "java": _java,
    "go": _go,
    "c": _c,
    "c++": _c,
    "rust": _rust,
}


def paired_tests(path: str) -> tuple[str, ...]:
    """Paths that the tests of a source file may have, or, for a test, the file that it tests; the nearest first."""
    folder, name = posixpath.split(path)
    stem, ending = posixpath.splitext(name)
    tested = _tested(stem)
    if tested is not None:
        outer = posixpath.dirname(folder) if posixpath.basename(folder) in _TEST_FOLDERS else folder
        places = [folder, outer, posixpath.join(outer, "src")]
        return tuple(dict.fromkeys(posixpath.join(place, f"{tested}{ending}") for place in places))
    names = (f"test_{stem}", f"{stem}_test", f"{stem}.test", f"{stem}.spec", f"{stem}Test")
    places = [folder, *(posixpath.join(above, tests) for above in _above(folder) for tests in _TEST_FOLDERS)]
    return tuple(dict.fromkeys(posixpath.join(place, f"{one}{ending}") for place in places for one in names))


def _tested(stem: str) -> str | None:
    """What a file of this name tests; `None` where it is no test."""
    if stem.startswith("test_"):
        return stem.removeprefix("test_")
    for mark in ("_test", ".test", ".spec", "Test"):
        if stem.endswith(mark) and stem != mark:
            return stem.removesuffix(mark)
    return None


def _above(folder: str) -> tuple[str, ...]:
    """A folder and those above it, the nearest first."""
    found = [folder]
    while len(found) < _MOST_PARENTS and (above := posixpath.dirname(found[-1])) != found[-1]:
        found.append(above)
    return tuple(found)


def _ends(imported: str) -> Iterator[str]:
    """`a/b/c`, `b/c`, `c`: what of an import's path may be a folder here, where its beginning is a module's name."""
    parts: Sequence[str] = imported.split("/")
    return ("/".join(parts[start:]) for start in range(len(parts)))
