"""`tiered-memory replay`: feeds a conversation to a memory and shows what it did with it."""

from pathlib import Path
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson, Model, NoEmbeddings


def replay(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Conversation: JSON Lines of messages, an OpenAI-style list, or sessions with dated turns. "
            "Without it, the sample that comes with the package.",
            show_default=False,
        ),
    ] = None,
    *,
    sample: Annotated[bool, typer.Option("--sample", help="Use the sample conversation, as without FILE.")] = False,
    db: Annotated[
        str | None,
        typer.Option(help="Keep the memory in this database. Without it, it is gone at the end.", show_default=False),
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="Id of the new session. Default: the conversation's.", show_default=False)
    ] = None,
    budget: Annotated[int, typer.Option(min=1, help="Budget of each context, in tokens.")] = 8000,
    model: Model = None,
    price_in: Annotated[
        float | None, typer.Option(min=0, help="Price of a million input tokens, for the cost.", show_default=False)
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0, help="Price of a million output tokens.", show_default=False)
    ] = None,
    no_embeddings: NoEmbeddings = False,
    show_context: Annotated[
        bool, typer.Option("--context/--no-context", help="Show the context of the last turn, section by section.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Feed a conversation to a memory, turn by turn, and report what came of it.

    Wherever a model would be called, the context for that call is put together. The report compares what these calls
    sent with what the whole history would have taken, and shows the levels of summaries, what they cost, how long
    each step took, and the context of the last turn.
    """
    from langchain_tiered_memory.cli.work.replay import replay_file  # noqa: PLC0415 - keeps --help fast

    if file is not None and sample:
        msg = "give a FILE or --sample, not both"
        raise typer.BadParameter(msg)
    replay_file(
        file,
        db=db,
        session_id=session,
        max_tokens=budget,
        model=model,
        price_in=price_in,
        price_out=price_out,
        no_embeddings=no_embeddings,
        show_context=show_context,
        as_json=as_json,
    )
