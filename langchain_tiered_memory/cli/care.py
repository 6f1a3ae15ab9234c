"""Commands that look after a database, and show and install what is missing on this machine.

`tiered-memory inspect`, `verify`, `reindex`, `doctor`, `encrypt`, `rotate-key`, `status` and `setup`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langchain_tiered_memory.cli.opening import cover_of, existing_session, named_node, open_memory
from langchain_tiered_memory.cli.options import (
    EXIT_DECLINED,
    EXIT_PROBLEMS,
    AsJson,
    Database,
    NoEmbeddings,
    ReadOnly,
    given_key,
    reader,
)
from langchain_tiered_memory.cli.screen import (
    far,
    heading,
    out,
    print_json,
    quote,
    say,
    short,
    show,
    tell,
    waiting,
)
from langchain_tiered_memory.display.sheet import Cell, moment, percent, plural, table
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.reports import MemoryStatus, SessionMetrics
from langchain_tiered_memory.types.records import Entry, Summary

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session


def inspect(
    db: Database,
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Show this session in detail.", show_default=False)
    ] = None,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="SUMMARY",
            help="Show this summary and its sources: its id, or the numbers of its messages, such as 1-40. The id of "
            "a message shows that message.",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show the sessions of a database, the levels and summaries of one session, or one summary and its sources."""
    with open_memory(db, must_exist=True, read_only=True) as memory:
        if session is None:
            metrics = [memory.session(known).metrics() for known in memory.sessions()]
            if as_json:
                print_json(metrics)
            else:
                _show_sessions(metrics)
            return
        handle = existing_session(memory, session)
        if node is not None:
            _inspect_node(handle, node, as_json=as_json)
        else:
            _inspect_session(handle, as_json=as_json)


def verify(
    db: Database, *, no_embeddings: NoEmbeddings = False, read_only: ReadOnly = False, as_json: AsJson = False
) -> None:
    """Check summaries and indexes against the messages, and report what does not match. No model is called.

    Exit code 0 if all is well, 1 if there are problems. `doctor` repairs them; `reindex` rebuilds the search indexes.
    """
    with (
        open_memory(db, no_embeddings=no_embeddings, must_exist=True, read_only=read_only) as memory,
        far("verify") as how,
    ):
        report = memory.verify(progress=how)
    show(report, as_json=as_json)
    if not report.healthy:
        raise typer.Exit(EXIT_PROBLEMS)


def reindex(db: Database, *, no_embeddings: NoEmbeddings = False, as_json: AsJson = False) -> None:
    """Rebuild the search indexes from messages and summaries, after a new embedder, a loss or problems."""
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True) as memory, far("reindex") as how:
        report = memory.rebuild_index(progress=how)
    show(report, as_json=as_json)


def doctor(db: Database, *, no_embeddings: NoEmbeddings = False, as_json: AsJson = False) -> None:
    """Find what does not match between messages, summaries, text index and Chroma, repair only that, and report it.

    Exit code 0 if nothing is wrong any more, 1 if problems remain.
    """
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True) as memory, waiting("doctor"):
        report = memory.doctor()
    show(report, as_json=as_json)
    if not report.healthy:
        raise typer.Exit(EXIT_PROBLEMS)


def _show_sessions(metrics: Sequence[SessionMetrics]) -> None:
    columns = ["session", "messages", "tokens", "summaries", "saves"]
    rows: list[tuple[Cell, ...]] = []
    for one in metrics:
        levels = "+".join(str(level.summaries) for level in one.levels) or "0"
        rows.append((one.session_id, one.messages, one.tokens, levels, percent(one.overall_ratio)))
    to_repair = [one.failed + one.degraded + one.stale for one in metrics]
    if any(to_repair):
        columns.append("to repair")
        rows = [(*row, count) for row, count in zip(rows, to_repair, strict=True)]
    tell(table(plural(len(metrics), "session"), columns, rows, most=len(rows)))


def _inspect_session(session: "Session", *, as_json: bool) -> None:
    metrics, cover = session.metrics(), cover_of(session)
    if as_json:
        print_json({"metrics": metrics, "cover": cover})
        return
    show(metrics)
    rows = [
        (short(one.id), one.level, one.entry_count, one.tokens, moment(one.first_at), moment(one.last_at))
        for one in cover
    ]
    columns = ("summary", "level", "messages", "tokens", "from", "to")
    tell(table("what stands for the history", columns, rows, most=len(rows)))


def _inspect_node(session: "Session", node: str, *, as_json: bool) -> None:
    summary, sources = named_node(session, node)
    if as_json:
        print_json({"summary": summary, "sources": sources})
        return
    for item in (*([summary] if summary is not None else []), *sources):
        heading(_title(item))
        quote(item.text)


def _title(item: Summary | Entry) -> str:
    if isinstance(item, Entry):
        return f"{item.id}  {item.name or item.role}  {moment(item.at)}"
    span = f"{moment(item.first_at)} to {moment(item.last_at)}"
    return f"{short(item.id)}  level {item.level}, {item.strategy}, {plural(item.entry_count, 'message')}, {span}"


def encrypt(
    db: Annotated[Path, typer.Argument(metavar="DB", help="A plain SQLite database.", show_default=False)],
    copy: Annotated[
        Path, typer.Argument(metavar="COPY", help="The encrypted copy that this command makes.", show_default=False)
    ],
) -> None:
    """Copy a plain SQLite database into an encrypted one, with the key in `--key-file`. Delete the plain one yourself.

    The copy lacks what other programs write to the plain one meanwhile.
    """
    from langchain_tiered_memory.sql.encryption import encrypt_copy  # noqa: PLC0415 - keeps --help fast

    key = given_key()
    if key is None:
        msg = "name the file with the key: `tiered-memory --key-file KEY encrypt DB COPY`"
        raise SettingsError(msg)
    encrypt_copy(db.resolve(), copy.resolve(), key)
    typer.echo(f"{copy} is an encrypted copy; {db} is unchanged: delete it, and {db}.chroma if there is one", err=True)


def rotate_key(
    db: Database,
    new_key_file: Annotated[
        Path, typer.Argument(metavar="NEW_KEY_FILE", help="File that holds the new key.", show_default=False)
    ],
) -> None:
    """Replace the key in `--key-file` with a new one. If this is stopped half-way, the old key still works.

    Exit code 1 if another process that reads the database still holds pages under the old key in its log.
    """
    with open_memory(db, no_embeddings=True, must_exist=True) as memory:
        is_clean = memory.rotate_key(reader(new_key_file))
    typer.echo(f"{db} now opens only with the new key", err=True)
    if not is_clean:
        typer.echo("its log holds pages under the old key until every process has closed it", err=True)
        raise typer.Exit(EXIT_PROBLEMS)


def status(
    db: Annotated[
        str | None,
        typer.Argument(metavar="DB", help="Database to look at. Without it, only this machine.", show_default=False),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what embeds, counts and stores here, how many vectors there are, versions, and what is missing."""
    with open_memory(db, must_exist=True) as memory:
        found = memory.status()
    show(found if as_json else replace(found, gaps=tuple(map(_for_a_shell, found.gaps))), as_json=as_json)


def say_gaps(status: MemoryStatus) -> None:
    """One line on standard error for each part that lacks something."""
    for gap in status.gaps:
        say(_for_a_shell(gap), style="yellow")


def _for_a_shell(gap: str) -> str:
    """What is missing, without remedies that only a program can use."""
    told, *remedies = gap.split("; ")
    return "! " + "; ".join([told, *(one for one in remedies if "=" not in one)])


def setup(*, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Download what search by meaning and exact token counts need: the MiniLM embedding model and tiktoken's encodings.

    It skips what is already there, and checks each download against its known SHA-256 before using it.
    """
    from langchain_tiered_memory.models.downloads import fetch  # noqa: PLC0415 - slow to import, as are the next
    from langchain_tiered_memory.models.embeddings import find_minilm, minilm_download  # noqa: PLC0415
    from langchain_tiered_memory.models.token_counters import encoding_downloads  # noqa: PLC0415

    missing = [*([] if find_minilm() else [minilm_download()]), *encoding_downloads()]
    if not missing:
        typer.echo("nothing to download: the embedding model and the encodings are there")
        return
    lines = [
        f"  {one.name}, {one.about_bytes / 1e6:.0f} MB\n    from {one.url}\n    to {one.target}" for one in missing
    ]
    if not yes and not typer.confirm("\n".join(["To download:", *lines, "Download now?"]), err=True):
        typer.echo("nothing was downloaded", err=True)
        raise typer.Exit(EXIT_DECLINED)
    for one in missing:
        with waiting(f"downloading {one.name}"):
            fetch(one)
        say(f"{one.name}: downloaded and checked, in {one.target}", where=out())
