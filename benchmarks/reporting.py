"""What every benchmark gives: tables for people, one JSON object for programs, and what was aimed at."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

Cell: TypeAlias = str | int | float | None

_PACKAGES = (
    "langchain-core",
    "langchain",
    "langchain-classic",
    "langmem",
    "chromadb",
    "onnxruntime",
    "sqlalchemy",
    "tiktoken",
)
_P95 = 0.95
_FILE_COLUMNS = 160


def machine() -> dict[str, Any]:
    """Where this ran, and how busy it was: no figure in seconds means much without that."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "packages": {name: version(name) for name in _PACKAGES},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One table: a row per thing measured, the first column its name."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something that was aimed at."""

    aim: str
    measured: str
    met: bool | None
    """`None` where this run cannot tell, such as one that is too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one benchmark found."""

    benchmark: str
    about: str
    settings: dict[str, Any]
    grids: tuple[Grid, ...]
    figures: dict[str, Any]
    """Everything in the tables and more, under plain names, in the units that the names say."""
    targets: tuple[Target, ...] = ()
    remarks: tuple[str, ...] = ()
    machine: dict[str, Any] = field(default_factory=machine)


def screen() -> Console:
    """Standard output; wide where it is no terminal, for a file has no edge."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _FILE_COLUMNS
    return Console(file=sys.stdout, highlight=False, width=wide)


def show(report: Report, *, console: Console | None = None) -> None:
    """Print a report."""
    to = console or screen()
    to.print(Text(f"\n{report.benchmark}", style="bold"), Text(report.about, style="dim"))
    to.print(Text(", ".join(f"{name} {value}" for name, value in report.settings.items()), style="dim"))
    for grid in report.grids:
        table = Table(title=grid.title, title_justify="left", title_style="italic", pad_edge=False)
        for place, column in enumerate(grid.columns):
            table.add_column(column, justify="left" if place == 0 else "right", no_wrap=place == 0)
        for row in grid.rows:
            table.add_row(*(Text(shown(cell)) for cell in row))
        to.print(table)
    for remark in report.remarks:
        to.print(Text(remark, style="dim"))
    for target in report.targets:
        verdict = {True: "met", False: "missed", None: "not judged"}[target.met]
        style = {True: "green", False: "red", None: "yellow"}[target.met]
        to.print(Text(f"{verdict}: {target.aim}; measured: {target.measured}", style=style))
    load = report.machine["load"]
    to.print(Text(f"{report.machine['processors']} processors, load {load} at the end", style="dim"))


def shown(cell: Cell) -> str:
    """A cell as people read it."""
    match cell:
        case None:
            return "-"
        case float():
            return f"{cell:,.1f}" if abs(cell) >= 100 else f"{cell:,.2f}"  # noqa: PLR2004 - three figures tell enough
        case int():
            return f"{cell:,}"
        case _:
            return str(cell)


def as_json(report: Report) -> dict[str, Any]:
    """A report as plain JSON values."""
    return asdict(report)


def arguments(about: str | None) -> argparse.ArgumentParser:
    """A parser with what every benchmark takes."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured there")
    return parser


def finish(reports: Sequence[Report], to: Path | None) -> None:
    """Write one report, or several, to a file if one is named. Printing is done as each is ready."""
    if to is not None:
        found = [as_json(report) for report in reports]
        text = json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False)
        to.write_text(text + "\n", encoding="utf-8")


def numbers(text: str) -> list[int]:
    """Whole numbers written with commas, ascending."""
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} are no numbers: write 1000,10000") from error  # noqa: EM102, TRY003
    if found[0] < 1:
        raise argparse.ArgumentTypeError(f"{found[0]} is too small")  # noqa: EM102, TRY003 - said to a person
    return found


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    """The value that 95 % do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(_P95 * len(ranked)))]
