"""`tiered-memory encrypt` and `rotate-key`: an encrypted copy of a database, and another key for one."""

from pathlib import Path
from typing import Annotated

import typer

from langchain_tiered_memory.cli.keys import given_key, reader
from langchain_tiered_memory.cli.options import EXIT_PROBLEMS, Database
from langchain_tiered_memory.errors import SettingsError


def encrypt(
    db: Annotated[Path, typer.Argument(metavar="DB", help="A plain SQLite database.", show_default=False)],
    copy: Annotated[
        Path, typer.Argument(metavar="COPY", help="The encrypted copy; made by this command.", show_default=False)
    ],
) -> None:
    """Copy a plain SQLite database into an encrypted one, with the key of `--key-file`. The plain one stays: delete it.

    What is written to the plain one meanwhile is not in the copy.
    """
    from langchain_tiered_memory.sql.encryption import encrypt_copy  # noqa: PLC0415 - keeps --help fast

    key = given_key()
    if key is None:
        msg = "name the file with the key: `tiered-memory --key-file KEY encrypt DB COPY`"
        raise SettingsError(msg)
    encrypt_copy(db.resolve(), copy.resolve(), key)
    typer.echo(f"{copy} is an encrypted copy; {db} is as it was: delete it, with {db}.chroma if there is one", err=True)


def rotate_key(
    db: Database,
    new_key_file: Annotated[
        Path, typer.Argument(metavar="NEW_KEY_FILE", help="File that holds the new key.", show_default=False)
    ],
) -> None:
    """Replace the key of a database, in `--key-file`, with a new one. If this is stopped half-way, the old key holds.

    Exit code 1 when somebody's open read keeps pages under the old key in the log.
    """
    from langchain_tiered_memory.cli.opening import open_memory  # noqa: PLC0415 - keeps --help fast

    with open_memory(db, no_embeddings=True, must_exist=True) as memory:
        is_clean = memory.rotate_key(reader(new_key_file))
    typer.echo(f"{db} opens with the new key alone", err=True)
    if not is_clean:
        typer.echo("its log holds pages under the old key until every process has closed it", err=True)
        raise typer.Exit(EXIT_PROBLEMS)
