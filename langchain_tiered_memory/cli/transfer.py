"""`tiered-memory export`, `import` and `forget`: messages out, in, and away for good."""

from pathlib import Path
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import EXIT_DECLINED, EXIT_PROBLEMS, AsJson, Database, Model, NoEmbeddings


def export(
    db: Database,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Only these sessions. Default: all.", show_default=False),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write to this file instead of to standard output.", show_default=False),
    ] = None,
) -> None:
    """Write messages as JSON Lines: one message a line, with its session, time, track, kind, task and pin.

    `import` gives equal messages back. Summaries and indexes are not written: they are made anew from the messages.
    """
    from langchain_tiered_memory.cli.work.transfer import export_sessions  # noqa: PLC0415 - keeps --help fast

    export_sessions(db, sessions or [], out=out)


def import_(
    db: Database,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="ChatGPT's or Claude's conversations.json, runs exported from LangSmith, LangGraph's checkpoints or "
            "LangChain's histories in SQLite, our export, or messages as JSON or JSON Lines.",
            show_default=False,
        ),
    ],
    *,
    session: Annotated[
        str | None,
        typer.Option(help="Session to add to; FILE must then hold one conversation.", show_default=False),
    ] = None,
    model: Model = None,
    no_embeddings: NoEmbeddings = False,
    as_json: AsJson = False,
) -> None:
    """Add the conversations of a file to a database, which is made if it is not there. What the file is, is recognised.

    Messages that are already there, by id, are not added twice, so an import that was broken off can be repeated.
    Exit code 1 when conversations of it were refused; each is named with the reason.
    """
    from langchain_tiered_memory.cli.work.transfer import import_file  # noqa: PLC0415 - keeps --help fast

    if not import_file(db, file, session_id=session, model=model, no_embeddings=no_embeddings, to_json=as_json):
        raise typer.Exit(EXIT_PROBLEMS)


def forget(
    db: Database,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Forget in this session.", show_default=False)
    ] = None,
    *,
    message: Annotated[
        list[str] | None,
        typer.Option(
            "--message", "-m", help="Only this message; may be given again. Needs SESSION.", show_default=False
        ),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Forget every session of this user.", show_default=False)] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove messages, a session or a user for good, with every summary, vector and index row made from them."""
    from langchain_tiered_memory.cli.work.transfer import Target, forget_target, found_target  # noqa: PLC0415 - keeps --help fast

    if (session is None) == (user is None):
        msg = "name either a SESSION or a --user to forget"
        raise typer.BadParameter(msg)
    if message and session is None:
        msg = "--message needs the SESSION that the message is in"
        raise typer.BadParameter(msg)
    target = found_target(db, Target(session_id=session, user=user, message_ids=tuple(message or ())))
    if not yes and not typer.confirm(f"Forget {target} in {db}? This cannot be undone.", err=True):
        typer.echo("nothing was forgotten", err=True)
        raise typer.Exit(EXIT_DECLINED)
    forget_target(db, target, to_json=as_json)
