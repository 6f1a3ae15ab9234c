"""Every regular expression of the package, found by looking, and the texts that are hardest for each.

A text is hard where a repeat can be entered at every character and left at none: a long run of what a repeat takes,
behind what leads to it and before what ends no match.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import itertools
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path
from re import _constants as codes
from re import _parser as parser
from types import FunctionType
from typing import TYPE_CHECKING, Any

import langchain_tiered_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "langchain_tiered_memory"
ROOT = Path(langchain_tiered_memory.__file__).parent

_CATEGORIES = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_NOT_DIGIT: "x!",
    codes.CATEGORY_SPACE: " \n\t",
    codes.CATEGORY_NOT_SPACE: "x.",
    codes.CATEGORY_WORD: "aA0_",
    codes.CATEGORY_NOT_WORD: "! #\n",
}
_ANYTHING = "aA0 \n\t.,:;!?#-_/\\'\"()<>[]{}*`~|=@$%&+^\u00e9\u3042\u4e00\u3002\uac00\u0e01\u0300\u200d\x00"
"""A few characters of each kind that a pattern may tell apart."""
_MOST_CHARS = 24
_PAIRED_CHARS = 8
_MOST_TEXTS = 500
_MOST_SAMPLES = 6
_BUILDERS = hashlib.blake2b(Path(__file__).read_bytes(), digest_size=12).hexdigest()
"""Other texts prove another thing: with them everything is tried again."""


def modules() -> list[Any]:
    """Every module of the package, imported."""
    names = [info.name for info in pkgutil.walk_packages(langchain_tiered_memory.__path__, f"{PACKAGE}.")]
    return [importlib.import_module(name) for name in (PACKAGE, *names) if not name.endswith("__main__")]


def compiled() -> dict[str, re.Pattern[str]]:
    """Every compiled pattern that a module holds, however deep in its tables, by the first place it is found at."""
    places: dict[re.Pattern[str], str] = {}
    for module in modules():
        seen: set[int] = set()
        for name, value in vars(module).items():
            for place, pattern in _patterns_in(value, f"{module.__name__.removeprefix(f'{PACKAGE}.')}.{name}", seen):
                places.setdefault(pattern, place)
    return {place: pattern for pattern, place in places.items()}


def _patterns_in(value: Any, place: str, seen: set[int]) -> Iterator[tuple[str, re.Pattern[str]]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield place, value
        return
    if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return
    seen.add(id(value))
    inside: Iterator[tuple[Any, Any]] | enumerate[Any] = iter(())
    if isinstance(value, Mapping):
        inside = itertools.chain(value.items(), ((f"key {key!r}", key) for key in value))
    elif isinstance(value, tuple | list | set | frozenset):
        inside = enumerate(value)
    elif isinstance(value, type) and value.__module__.startswith(PACKAGE):
        inside = iter(list(vars(value).items()))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        inside = ((one.name, getattr(value, one.name, None)) for one in dataclasses.fields(value))
    elif isinstance(value, FunctionType) and value.__closure__ and value.__module__.startswith(PACKAGE):
        inside = enumerate(cell.cell_contents for cell in value.__closure__)
    for key, one in inside:
        yield from _patterns_in(one, f"{place}[{key}]", seen)


def digest_of(pattern: re.Pattern[str]) -> str:
    """What stands for a pattern that was tried with the texts that are made here, whatever module holds it."""
    tried = (pattern.pattern, pattern.flags, _BUILDERS)
    return hashlib.blake2b(repr(tried).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def calls_of_re() -> Iterator[tuple[str, str, str]]:
    """Each use of a function of `re`: file and line, the function's name, and the Python function it stands in."""
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for where, node in _with_owner(tree, "module"):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re":
                yield f"{path.relative_to(ROOT)}:{node.lineno}", called.attr, where


def _with_owner(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else owner
        yield inner, child
        yield from _with_owner(child, inner)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class HardText:
    """A text of any length: something that leads in, a run, and an end that lets nothing match."""

    lead: str
    pump: str
    end: str = ""

    def of(self, size: int) -> str:
        """About `size` characters."""
        return self.lead + self.pump * (size // len(self.pump)) + self.end


def hard_texts(pattern: re.Pattern[str]) -> list[HardText]:
    """The texts that are hard for `pattern`: runs of its characters, pairs of them, its own repeats pumped."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    chars = list(dict.fromkeys(_chars(tree)))[:_MOST_CHARS]
    pairs = [one + other for one, other in itertools.permutations(chars[:_PAIRED_CHARS], 2)]
    found = [HardText("", pump, end) for pump in [*chars, *pairs, *_samples(tree)] if pump for end in ("", "\x01")]
    for leads, pumps in _repeats(tree, [""]):
        for pump in filter(None, pumps):
            found += [HardText(lead, pump, end) for lead in leads[:2] for end in ("", "\x01", "!\n", "a")]
            found.append(HardText("", leads[-1] + pump + pump))
    texts = list(dict.fromkeys(found))
    return texts[:_MOST_TEXTS] + texts[_MOST_TEXTS :: max(1, len(texts) // _MOST_TEXTS)]


def _chars(tree: Any) -> Iterator[str]:
    for op, given in tree:
        if op in {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.RANGE, codes.CATEGORY}:
            yield from _of_atom(op, given)
        else:
            for inner in _inner(op, given):
                yield from _chars(inner)


def _of_atom(op: Any, given: Any) -> str:  # noqa: PLR0911 - a line for each kind of node
    """A few characters that an atom takes."""
    if op is codes.LITERAL:
        return chr(given)
    if op is codes.NOT_LITERAL:
        return "".join(char for char in _ANYTHING if ord(char) != given)[:4]
    if op is codes.ANY:
        return "a .-"
    if op is codes.CATEGORY:
        return _CATEGORIES.get(given, "")
    if op is codes.RANGE:
        return chr(given[0])
    if given and given[0][0] is codes.NEGATE:
        barred = re.compile(_spelt(given[1:]))
        return "".join(char for char in _ANYTHING if not barred.match(char))[:4]
    return "".join(dict.fromkeys("".join(_of_atom(*one) for one in given)))[:8]


def _spelt(members: Any) -> str:
    spelt = ""
    for op, given in members:
        if op is codes.LITERAL:
            spelt += re.escape(chr(given))
        elif op is codes.RANGE:
            spelt += f"{re.escape(chr(given[0]))}-{re.escape(chr(given[1]))}"
        else:
            spelt += {"D": r"\d", "S": r"\s", "W": r"\w"}.get(str(given).rpartition("_")[2][0], "")
            if "NOT" in str(given):
                spelt = spelt[:-1] + spelt[-1:].upper()
    return f"[{spelt}]"


def _inner(op: Any, given: Any) -> list[Any]:  # noqa: PLR0911 - a line for each kind of node
    """The sub-patterns of a node."""
    if op is codes.BRANCH:
        return list(given[1])
    if op in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        return [given[2]]
    if op is codes.SUBPATTERN:
        return [given[3]]
    if op in {codes.ASSERT, codes.ASSERT_NOT}:
        return [given[1]]
    if op is codes.ATOMIC_GROUP:
        return [given]
    if op is codes.GROUPREF_EXISTS:
        return [one for one in given[1:] if one is not None]
    return []


def _samples(tree: Any) -> list[str]:
    """A few short texts that `tree` takes, more or less."""
    made = [""]
    for op, given in tree:
        if op in {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.RANGE, codes.CATEGORY}:
            options = list(_of_atom(op, given)[:3])
        elif op in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            options = [one * max(1, given[0]) for one in _samples(given[2])]
        elif op is codes.BRANCH:
            options = [one for branch in given[1] for one in _samples(branch)[:2]]
        elif op in {codes.SUBPATTERN, codes.ATOMIC_GROUP}:
            options = _samples(_inner(op, given)[0])
        else:
            continue
        made = [lead + option for option, lead in itertools.product(options[:_MOST_SAMPLES] or [""], made)]
        made = made[:_MOST_SAMPLES]
    return made


def _repeats(tree: Any, lead: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """What stands before each repeat without a small bound, and what the repeat takes."""
    before = lead
    for place, (op, given) in enumerate(tree):
        if op in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            yield before, _pumps(given[2])
        for inner in _inner(op, given):
            yield from _repeats(inner, before)
        before = [one + more for more in _samples(tree[: place + 1]) for one in lead][:_MOST_SAMPLES] or [""]


def _pumps(tree: Any) -> list[str]:
    return list(dict.fromkeys([*_samples(tree), *(list(_chars(tree))[:6])]))
