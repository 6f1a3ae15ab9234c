"""What the source of a checkout tells without running it: folders, classes, flows, private uses, names in documents."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.hops_flows import Flows, count_flows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PACKAGE = "langchain_tiered_memory"
_PRIVATE = re.compile(r"#\s*noqa:[^#]*\bSLF001\b")
_IMPORT_ORDER_TEST = "tests/architecture/test_import_order.py"
_MODULE_OF_TEST = re.compile(r"\[(?:\w+-)*([\w./]+\.py)\]")
_COLLECT_SECONDS = 120
_USERS = ("tests", "benchmarks", "graphs", "notebooks", "docs")
_LARGEST = 3
_NO_DOCUMENTS = {"prompts", "node_modules"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One checkout's source in figures."""

    modules: int
    lines: int
    largest_folders: tuple[int, ...]
    """Modules in each of the largest few, most first; `__init__` is not counted."""
    classes: int
    """Distinct names of classes."""
    flows: Flows
    private_uses: int
    """Lines that use a private name of another module: the linter is clean, so each carries a `noqa`."""
    ordered_modules: int | None
    """Modules that the import-order test names in its cases; `None` where pytest cannot collect it."""


def read_source(root: Path) -> Source:
    """Measure the checkout in `root`."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / PACKAGE).rglob("*.py"))}
    trees = [ast.parse(text) for text in texts.values()]
    folders = Counter(path.parent for path in texts if path.name != "__init__.py")
    return Source(
        modules=len(texts),
        lines=sum(text.count("\n") for text in texts.values()),
        largest_folders=tuple(count for _, count in folders.most_common(_LARGEST)),
        classes=len({node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}),
        flows=count_flows(trees),
        private_uses=sum(len(_PRIVATE.findall(text)) for text in texts.values()),
        ordered_modules=_ordered_modules(root),
    )


def named_in_documents(root: Path, names: Iterable[str]) -> set[str]:
    """Those of `names` that stand in a document or a notebook of the checkout as a word of their own."""
    words: set[str] = set()
    for path in _documents(root):
        words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return set(names) & words


def settings_set(root: Path, fields: Iterable[str]) -> set[str]:
    """Those of `fields` (`Class.field`) that a test, a benchmark or a document sets by name.

    A field counts as set where its class is called with it, where it is a key of a mapping in code (`model_copy` and
    JSON), and where a document writes `field=` or names it in code marks.
    """
    called, keys = set[str](), set[str]()
    for path in _python_files(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=keywords):
                    called |= {f"{name}.{keyword.arg}" for keyword in keywords}
                case ast.Dict(keys=given):
                    keys |= {key.value for key in given if isinstance(key, ast.Constant) and isinstance(key.value, str)}
                case _:
                    continue
    texts = "\n".join(path.read_text(encoding="utf-8") for path in _documents(root))
    written = set(re.findall(r"\b(\w+)\s?=", texts)) | set(re.findall(r"`(?:[\w.]+\.)?(\w+)`", texts))
    return {field for field in fields if field in called or field.rpartition(".")[2] in keys | written}


def _documents(root: Path) -> Iterator[Path]:
    for pattern in ("*.md", "*.ipynb"):
        for path in sorted(root.rglob(pattern)):
            parts = path.relative_to(root).parts
            if not any(part.startswith(".") or part in _NO_DOCUMENTS for part in parts):
                yield path


def _python_files(root: Path) -> Iterator[Path]:
    for folder in _USERS:
        yield from sorted((root / folder).rglob("*.py"))


def _ordered_modules(root: Path) -> int | None:
    """Distinct modules among the cases of the import-order test, as pytest collects them."""
    if not (root / _IMPORT_ORDER_TEST).exists():
        return None
    alone = ["-c", os.devnull, "--rootdir", str(root), "--noconftest", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *alone, _IMPORT_ORDER_TEST]
    environment = os.environ | {"PYTHONPATH": str(root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(  # noqa: S603 - the test of a checkout that the caller named
        command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=_COLLECT_SECONDS
    )
    found = set(_MODULE_OF_TEST.findall(done.stdout))
    return len(found) or None
