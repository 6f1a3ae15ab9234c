"""`tiered-memory ask`, `facts`, `correct`, `rate`: what a model gets, what a session states, what a person says."""

from enum import StrEnum
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson, Database, NoEmbeddings, ReadOnly, SessionId


class View(StrEnum):
    """How the room of a context is shared out."""

    RECALL = "recall"
    DEFAULT = "default"


class Called(StrEnum):
    """What a person may call a summary."""

    GOOD = "good"
    WRONG = "wrong"
    INCOMPLETE = "incomplete"


def ask(
    db: Database,
    session: SessionId,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="What to ask about the session.", show_default=False)
    ],
    *,
    budget: Annotated[int, typer.Option(min=1, help="Budget of the context, in tokens.")] = 4000,
    view: Annotated[
        View, typer.Option(help="recall: nearly all room for what answers the question; default: as in a running chat.")
    ] = View.RECALL,
    brief: Annotated[bool, typer.Option("--brief", help="Only the first lines of each message.")] = False,
    no_embeddings: NoEmbeddings = False,
    read_only: ReadOnly = False,
    as_json: AsJson = False,
) -> None:
    """Print the context that a model would get for QUESTION, section by section. No model is called."""
    from langchain_tiered_memory.cli.work.ask import print_context  # noqa: PLC0415 - keeps --help fast

    print_context(
        db,
        session,
        question,
        max_tokens=budget,
        view=view.value,
        brief=brief,
        no_embeddings=no_embeddings,
        read_only=read_only,
        as_json=as_json,
    )


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
    """Show what a session states: a short clause each, with its id, who said it, when, and in which messages."""
    from langchain_tiered_memory.cli.work.ask import print_facts  # noqa: PLC0415 - keeps --help fast

    print_facts(db, session, question, k=most, superseded=superseded, to_json=as_json)


def correct(
    db: Database,
    session: SessionId,
    fact: Annotated[
        str, typer.Argument(metavar="FACT", help="Id of the fact, as `facts` shows it.", show_default=False)
    ],
    statement: Annotated[
        str,
        typer.Argument(
            metavar="STATEMENT",
            help="What is true, as a sentence that stands alone, with some words of what it corrects.",
            show_default=False,
        ),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Put a statement of yours in the place of a fact. It becomes a message; forgetting that undoes it."""
    from langchain_tiered_memory.cli.work.ask import correct_fact  # noqa: PLC0415 - keeps --help fast

    correct_fact(db, session, fact, statement, to_json=as_json)


def rate(
    db: Database,
    session: SessionId,
    summary: Annotated[
        str, typer.Argument(metavar="SUMMARY", help="Its id, or the numbers of its messages.", show_default=False)
    ],
    verdict: Annotated[Called, typer.Argument(help="What you call it.", show_default=False)],
    *,
    note: Annotated[
        str | None, typer.Option(help="What is right or missing: the next text says so.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what you think of a summary. One that is wrong or incomplete is made again, by whoever wrote it."""
    from langchain_tiered_memory.cli.work.ask import rate_summary  # noqa: PLC0415 - keeps --help fast

    rate_summary(db, session, summary, verdict.value, note=note, to_json=as_json)
