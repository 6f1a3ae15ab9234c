"""`tiered-memory ask`: the context that a model would get for a question."""

from enum import StrEnum
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson, Database, NoEmbeddings, ReadOnly, SessionId


class View(StrEnum):
    """How the room of a context is shared out."""

    RECALL = "recall"
    DEFAULT = "default"


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
