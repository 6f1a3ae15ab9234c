"""`tiered-memory facts`: what a session states."""

from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson, Database, SessionId


def facts(
    db: Database,
    session: SessionId,
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="Show those that match this best, best first.", show_default=False),
    ] = None,
    *,
    most: Annotated[int, typer.Option("-k", min=1, help="The most to show.")] = 50,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Show those too that a correction took the place of.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a session states: a short clause each, with who said it, when, and in which messages."""
    from langchain_tiered_memory.cli.work.facts import print_facts  # noqa: PLC0415 - keeps --help fast

    print_facts(db, session, question, k=most, superseded=superseded, to_json=as_json)
