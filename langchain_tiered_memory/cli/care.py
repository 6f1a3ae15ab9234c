"""`tiered-memory inspect`, `verify`, `reindex`, `doctor`, `status` and `setup`: looking after database and machine."""

from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import EXIT_DECLINED, EXIT_PROBLEMS, AsJson, Database, NoEmbeddings, ReadOnly


def inspect(
    db: Database,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Show this session in detail.", show_default=False)
    ] = None,
    node: Annotated[
        str | None,
        typer.Argument(metavar="SUMMARY", help="Show this summary and what it stands for.", show_default=False),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what is in a database: its sessions; one session's levels and cover; or one summary and its sources."""
    from langchain_tiered_memory.cli.work.care import inspect_database  # noqa: PLC0415 - keeps --help fast

    inspect_database(db, session, node, to_json=as_json)


def verify(
    db: Database, *, no_embeddings: NoEmbeddings = False, read_only: ReadOnly = False, as_json: AsJson = False
) -> None:
    """Check everything that is derived from the messages, and name whatever does not match. No model is called.

    Exit code 0 when all is well, 1 when there are problems; `reindex` mends those of the search indexes.
    """
    from langchain_tiered_memory.cli.work.care import verify_database  # noqa: PLC0415 - keeps --help fast

    if not verify_database(db, no_embeddings=no_embeddings, read_only=read_only, to_json=as_json):
        raise typer.Exit(EXIT_PROBLEMS)


def reindex(db: Database, *, no_embeddings: NoEmbeddings = False, as_json: AsJson = False) -> None:
    """Build the search indexes anew from messages and summaries: after another embedder, a loss or problems."""
    from langchain_tiered_memory.cli.work.care import reindex_database  # noqa: PLC0415 - keeps --help fast

    reindex_database(db, no_embeddings=no_embeddings, to_json=as_json)


def doctor(db: Database, *, no_embeddings: NoEmbeddings = False, as_json: AsJson = False) -> None:
    """Find what is wrong between messages, summaries, text index and Chroma, mend that alone, and say what was done.

    Exit code 0 when nothing is wrong any more, 1 when something is left.
    """
    from langchain_tiered_memory.cli.work.care import doctor_database  # noqa: PLC0415 - keeps --help fast

    if not doctor_database(db, no_embeddings=no_embeddings, to_json=as_json):
        raise typer.Exit(EXIT_PROBLEMS)


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
