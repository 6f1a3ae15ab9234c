"""`tiered-memory export`, `import` and `forget`: messages out, in, and removed for good."""

from pathlib import Path
from typing import Annotated

import typer

from langchain_tiered_memory.cli.care import say_gaps
from langchain_tiered_memory.cli.opening import entries_of, existing_session, has_vectors, message_ids_of, open_memory
from langchain_tiered_memory.cli.options import (
    EXIT_DECLINED,
    EXIT_PROBLEMS,
    AsJson,
    Database,
    Model,
    NoEmbeddings,
    ToFile,
)
from langchain_tiered_memory.cli.screen import err, far, out, print_json, progress, say, show, written
from langchain_tiered_memory.display.sheet import plural
from langchain_tiered_memory.errors import NotFoundError


def export(
    db: Database,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Only these sessions. Default: all.", show_default=False),
    ] = None,
    *,
    to: ToFile = None,
) -> None:
    """Write messages as JSON Lines: one message per line, with its session, user, time, track, kind, task and pin.

    `tiered-memory import` reads them back. Summaries and indexes are not written: they are rebuilt from the messages.
    """
    from langchain_tiered_memory.conversations.importing import export_line  # noqa: PLC0415 - slow to import

    with open_memory(db, no_embeddings=True, must_exist=True, read_only=True) as memory:
        wanted = [existing_session(memory, name) for name in sessions or memory.sessions()]
        count = 0
        with written(to) as file, progress("exporting", len(wanted), is_drawn=not file.isatty()) as step:
            for session in wanted:
                _, ref = session.core.found()
                for entry in entries_of(session):
                    file.write(export_line(session.session_id, entry, user=ref.user if ref else None) + "\n")
                    count += 1
                step()
    err().print(f"{plural(count, 'message')} of {plural(len(wanted), 'session')} written", style="dim")


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
        typer.Option(
            metavar="ID", help="Add to this session. FILE must then hold one conversation.", show_default=False
        ),
    ] = None,
    model: Model = None,
    no_embeddings: NoEmbeddings = False,
    as_json: AsJson = False,
) -> None:
    """Add a file's conversations to a database, and create the database if needed. The command recognises the format.

    It skips messages whose id is already there, so you can repeat an interrupted import. Exit code 1 if it refused any
    conversations; it names each with the reason.
    """
    from langchain_tiered_memory.conversations.importing import import_conversations  # noqa: PLC0415 - slow to import
    from langchain_tiered_memory.conversations.reading import open_conversations  # noqa: PLC0415 - likewise

    _ = open_conversations(file)  # before a database is made for it
    with open_memory(db, model=model, no_embeddings=no_embeddings) as memory:
        say_gaps(memory.status())
        with far("import") as how:
            report = import_conversations(memory, file, session_id=session, progress=how)
        with progress("summarising", len(report.added)) as step:
            for name in report.added:
                memory.session(name).flush()
                step()
    for one in report.refused:
        say(f"refused: {one.name}: {one.reason}", style="yellow")
    if as_json:
        print_json(report)
    else:
        for name, count in report.added.items():
            say(f"{name}: {plural(count, 'message')} added", where=out())
    if report.refused:
        raise typer.Exit(EXIT_PROBLEMS)


def forget(
    db: Database,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Forget this session.", show_default=False)
    ] = None,
    *,
    message: Annotated[
        list[str] | None,
        typer.Option(
            "--message",
            "-m",
            metavar="ID",
            help="Forget only this message of SESSION. Repeat the option for more.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option(metavar="USER", help="Forget every session of this user.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove messages, a session or a user for good, with every summary, vector and index row made from them."""
    if (session is None) == (user is None):
        msg = "name either a SESSION or a --user to forget"
        raise typer.BadParameter(msg)
    if message and session is None:
        msg = "--message needs the SESSION that the message is in"
        raise typer.BadParameter(msg)
    message_ids: tuple[str, ...] = ()
    with open_memory(db, no_embeddings=True, must_exist=True) as memory:  # whole names, before anybody is asked
        is_searched = has_vectors(memory)
        if session is not None:
            handle = existing_session(memory, session)
            session, message_ids = handle.session_id, message_ids_of(handle, message or ())
        elif not memory.sessions(user=user):
            msg = f"there is no session of the user {user!r} in this database"
            raise NotFoundError(msg)
    target = f"the session {session!r}" if session is not None else f"everything of the user {user!r}"
    if message_ids:
        target = f"{plural(len(message_ids), 'message')} of {target}"
    if not yes and not typer.confirm(f"Forget {target} in {db}? This cannot be undone.", err=True):
        typer.echo("nothing was forgotten", err=True)
        raise typer.Exit(EXIT_DECLINED)
    with open_memory(db, no_embeddings=not is_searched, must_exist=True) as memory:
        if session is not None and message_ids:
            receipt = memory.session(session).forget(message_ids=list(message_ids))
        else:
            receipt = memory.forget(session_id=session, user=user)
    show(receipt, as_json=as_json)
