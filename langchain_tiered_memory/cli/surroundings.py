"""The work of `tiered-memory status` and `setup`, and the lines that say what works with less than it could."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from langchain_tiered_memory.cli.opening import open_memory
from langchain_tiered_memory.cli.screen import err, out, print_json, say
from langchain_tiered_memory.models.downloads import fetch
from langchain_tiered_memory.models.embeddings import find_minilm, minilm_download
from langchain_tiered_memory.models.token_counters import encoding_downloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.models.downloads import Download
    from langchain_tiered_memory.reports import MemoryStatus


def show_status(db: str | None, *, to_json: bool) -> None:
    """Print what this machine has, and what stands in a database.

    Raises:
        NotFoundError: when there is no such database.
    """
    with open_memory(db, must_exist=True) as memory:
        status = memory.status()
    if to_json:
        print_json(status)
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(status, of_database=db is not None):
        table.add_row(name, value)
    out().print(table)
    for gap in status.gaps:
        say(_for_a_shell(gap), style="yellow", where=out())


def _rows(status: MemoryStatus, *, of_database: bool) -> list[tuple[str, str]]:
    rows = [
        ("search", f"by words and by meaning ({status.embedder})" if status.embedder else "by words alone"),
        ("token counts", f"{'estimated' if status.counts_are_estimates else 'exact for OpenAI'} ({status.counter})"),
    ]
    if of_database:
        rows += [
            ("database", status.database),
            ("sessions", f"{status.sessions:,}"),
            ("vectors", f"{status.vectors:,} of {status.passages:,} passages"),
            ("Chroma", status.chroma or "not used"),
        ]
    return [*rows, ("versions", ", ".join(f"{name} {version}" for name, version in status.versions.items()))]


def say_gaps(status: MemoryStatus) -> None:
    """One line on standard error for each thing that works with less than it could."""
    for gap in status.gaps:
        say(_for_a_shell(gap), style="yellow")


def _for_a_shell(gap: str) -> str:
    """What works with less than it could, without the remedies that only a program can take."""
    told, *remedies = gap.split("; ")
    return "! " + "; ".join([told, *(one for one in remedies if "=" not in one)])


def missing_downloads() -> list[Download]:
    """What `setup` would fetch."""
    return [*([] if find_minilm() else [minilm_download()]), *encoding_downloads()]


def question(missing: Sequence[Download]) -> str:
    """What to ask before it is fetched: what, how much, from where, to where."""
    lines = [f"  {one.name}, {one.about_bytes / 1e6:.0f} MB, from {one.url} to {one.target}" for one in missing]
    return "\n".join(["To be fetched:", *lines, "Go on?"])


def fetch_all(missing: Sequence[Download]) -> None:
    """Fetch each with a bar, and say what came.

    Raises:
        SettingsError: when one cannot be had, or is not what it should be; what came before it stays.
    """
    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for one in missing:
            task = bar.add_task(one.name, total=one.about_bytes)
            fetch(one, lambda done, total, task=task: bar.update(task, completed=done, total=total))  # type: ignore[misc]
            bar.remove_task(task)
            say(f"{one.name}: fetched and checked, in {one.target}", where=out())
