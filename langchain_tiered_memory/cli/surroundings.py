"""`tiered-memory status` and `setup`, and the lines that say what works with less than it could."""

from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from langchain_tiered_memory.cli.opening import open_memory
from langchain_tiered_memory.cli.options import EXIT_DECLINED, AsJson
from langchain_tiered_memory.cli.screen import err, out, print_json, say
from langchain_tiered_memory.reports import MemoryStatus


def status(
    db: Annotated[
        str | None,
        typer.Argument(metavar="DB", help="Database to look at. Without it, this machine alone.", show_default=False),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what embeds, counts and stores here, how many vectors there are, versions, and what is missing."""
    with open_memory(db, must_exist=True) as memory:
        found = memory.status()
    if as_json:
        print_json(found)
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _rows(found, of_database=db is not None):
        table.add_row(name, value)
    out().print(table)
    for gap in found.gaps:
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


def setup(*, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Fetch what search by meaning and exact token counts need: the MiniLM embedding model and tiktoken's encodings.

    What is there already is left alone; what comes is checked against its known SHA-256 before it is used.
    """
    from langchain_tiered_memory.models.downloads import fetch  # noqa: PLC0415 - slow to import, as are the next
    from langchain_tiered_memory.models.embeddings import find_minilm, minilm_download  # noqa: PLC0415
    from langchain_tiered_memory.models.token_counters import encoding_downloads  # noqa: PLC0415

    missing = [*([] if find_minilm() else [minilm_download()]), *encoding_downloads()]
    if not missing:
        typer.echo("nothing to fetch: the embedding model and the encodings are there")
        return
    lines = [
        f"  {one.name}, {one.about_bytes / 1e6:.0f} MB\n    from {one.url}\n    to {one.target}" for one in missing
    ]
    if not yes and not typer.confirm("\n".join(["To be fetched:", *lines, "Go on?"]), err=True):
        typer.echo("nothing was fetched", err=True)
        raise typer.Exit(EXIT_DECLINED)
    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        for one in missing:
            task = bar.add_task(one.name, total=one.about_bytes)
            fetch(one, lambda done, total, task=task: bar.update(task, completed=done, total=total))  # type: ignore[misc]
            bar.remove_task(task)
            say(f"{one.name}: fetched and checked, in {one.target}", where=out())
