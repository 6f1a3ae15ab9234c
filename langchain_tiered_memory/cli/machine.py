"""`tiered-memory status` and `setup`: what this machine has for search and counting, and fetching what it lacks."""

from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import EXIT_DECLINED, AsJson


def status(
    db: Annotated[
        str | None,
        typer.Argument(metavar="DB", help="Database to look at. Without it, this machine alone.", show_default=False),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what embeds, counts and stores here, how many vectors there are, versions, and what is missing."""
    from langchain_tiered_memory.cli.surroundings import show_status  # noqa: PLC0415 - keeps --help fast

    show_status(db, to_json=as_json)


def setup(
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Fetch what search by meaning and exact token counts need: the MiniLM embedding model and tiktoken's encodings.

    What is there already is left alone; what comes is checked against its known SHA-256 before it is used.
    """
    from langchain_tiered_memory.cli.surroundings import fetch_all, missing_downloads, question  # noqa: PLC0415 - as above

    missing = missing_downloads()
    if not missing:
        typer.echo("nothing to fetch: the embedding model and the encodings are there")
        return
    if not yes and not typer.confirm(question(missing), err=True):
        typer.echo("nothing was fetched", err=True)
        raise typer.Exit(EXIT_DECLINED)
    fetch_all(missing)
