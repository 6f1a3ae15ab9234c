"""Writes docs/benchmarks.md from what was recorded, and records runs: no figure there is older than its label says.

    python -m benchmarks.page                        # write the page
    python -m benchmarks.page --run prefix direct    # run these, keep what they measured, write the page
    python -m benchmarks.page --run all              # those that need no conversations of yours

A record is a file NAME.json in `benchmarks/results`, as `--run` keeps it. `page.toml` there lists the sections. Each
record has a digest of the code that was measured; a table whose code differs from today's says so. Comments and
docstrings are no code.
"""

from __future__ import annotations

import argparse
import ast
import datetime as dt
import hashlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.reporting import machine, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
_CONTENTS = tomllib.loads((RESULTS / "page.toml").read_text(encoding="utf-8"))
_KEPT = ("about", "settings", "grids", "remarks", "targets")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One section of the page."""

    name: str
    """Of its record, and for `--run`."""
    title: str
    asks: str
    run: str
    """Module and arguments."""
    prints_text: bool = False
    """Whether it prints a text for people, and knows no `--json FILE`."""
    until: str = ""
    """Line of such a text from which on the rest is left out, such as seconds of a busy machine."""

    @property
    def module(self) -> str:
        """What Python runs."""
        return shlex.split(self.run)[0]

    @property
    def arguments(self) -> list[str]:
        """What it is given."""
        return shlex.split(self.run)[1:]

    @property
    def command(self) -> str:
        """As a person types it."""
        return f"python -m {self.run}"

    @property
    def needs_folder(self) -> bool:
        """Whether it takes conversations or transcripts of yours."""
        return any(part.endswith("/") for part in self.arguments)


ENTRIES = tuple(Entry(**one) for one in _CONTENTS["benchmark"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One run: what was called, when, on which code, and what it printed as Markdown."""

    command: str
    date: str
    commit: str
    code: str
    """Digest of the code."""
    body: str


def code_digest() -> str:
    """A digest of the package's code, which neither a comment nor a docstring changes."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "langchain_tiered_memory").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
        found.update(f"{path.relative_to(ROOT).as_posix()}\n{ast.dump(tree)}\n".encode())
    return found.hexdigest()[:16]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def record(entry: Entry) -> Path:
    """Run a benchmark and keep what it measured.

    Raises:
        SystemExit: when it fails, or a folder that it needs is not there.
    """
    missing = [part for part in entry.arguments if part.endswith("/") and not Path(part).is_dir()]
    if missing:
        raise SystemExit(f"{entry.name} cannot be run here: {', '.join(missing)}")  # noqa: EM102, TRY003
    kept: dict[str, Any] = {"command": entry.command, "date": dt.datetime.now(tz=dt.UTC).date().isoformat()}
    kept |= {"commit": _commit(), "code": code_digest(), "machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "found.json"
        options = [] if entry.prints_text else ["--json", str(to)]
        command = [sys.executable, "-m", entry.module, *entry.arguments, *options]
        done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ours
        if done.returncode:
            raise SystemExit(f"{entry.command} ended with {done.returncode}:\n{done.stdout[-2000:]}")  # noqa: EM102, TRY003
        if entry.prints_text:
            lines = [line.rstrip() for line in done.stdout.strip().splitlines()]
            kept["output"] = lines[: lines.index(entry.until)] if entry.until in lines else lines
        else:
            found = json.loads(to.read_text(encoding="utf-8"))
            kept["reports"] = [
                {part: one[part] for part in _KEPT} for one in (found if isinstance(found, list) else [found])
            ]
    path = RESULTS / f"{entry.name}.json"
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _commit() -> str:
    """The commit that is checked out, with a `+` where the package was changed since."""
    asked = ("rev-parse", "--short=7", "HEAD"), ("status", "--porcelain", "--", "langchain_tiered_memory", "benchmarks")
    head, changed = (
        subprocess.run(["git", *one], cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603, S607
        for one in asked
    )
    return head.strip() + ("+" if "langchain_tiered_memory" in changed else "")


def read(name: str) -> Recorded | None:
    """What is recorded of a benchmark."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    body = "\n".join(["```text", *kept["output"], "```"]) if "output" in kept else "\n\n".join(_tables(kept["reports"]))
    return Recorded(**{key: kept[key] for key in ("command", "date", "commit", "code")}, body=body)


def _tables(reports: Iterable[dict[str, Any]]) -> Iterable[str]:
    for report in reports:
        for grid in report["grids"]:
            rows = [[_cell(one) for one in grid["columns"]], *([_cell(one) for one in row] for row in grid["rows"])]
            rule = ["---", *["--:"] * (len(grid["columns"]) - 1)]
            lines = ["| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:])]
            yield "\n".join([f"*{grid['title']}*", "", *lines])
        if report["remarks"]:
            yield "\n".join(f"- {_cell(remark)}" for remark in report["remarks"])
        verdicts = {True: "Met", False: "**Missed**", None: "Not judged at this size"}
        targets = [f"- {verdicts[one['met']]}: {one['aim']}; measured: {one['measured']}." for one in report["targets"]]
        if targets:
            yield "\n".join(targets)


def _cell(value: Any) -> str:  # noqa: ANN401 - whatever a table holds
    return re.sub(r"([|<*_\[\]])", r"\\\1", shown(value).replace("\n", " "))


def page(code: str) -> str:
    """The page, as code with this digest has it."""
    parts = [_CONTENTS["head"].lstrip()]
    for entry in ENTRIES:
        found = read(entry.name)
        if found is None:
            continue
        label = f"Measured on {found.date}; commit: {found.commit}."
        if found.code != code:
            label += " **Older than the code.**"
        parts.append(
            f"## {entry.title}\n\n{entry.asks}\n\n```console\n{found.command}\n```\n\n{label}\n\n{found.body}\n"
        )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def main(given: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    names = {entry.name: entry for entry in ENTRIES}
    parser.add_argument("--run", nargs="+", default=[], metavar="NAME", help=f"all, or some of {', '.join(names)}")
    asked = parser.parse_args(given)
    free = [name for name, entry in names.items() if not entry.needs_folder]
    for name in free if asked.run == ["all"] else asked.run:
        if name not in names:
            parser.error(f"there is no {shlex.quote(name)}: known are {', '.join(names)}")
        print(f"{names[name].command} ...", flush=True)
        record(names[name])
    PAGE.write_text(page(code_digest()), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
