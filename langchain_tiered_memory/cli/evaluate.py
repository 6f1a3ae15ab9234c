"""`tiered-memory eval` and `replay`: evidence inside the budget, beside simple methods; a conversation as it went."""

from pathlib import Path
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson, Model, NoEmbeddings


def evaluate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Conversations with annotated questions, or folders of them. Files of one folder are one group. "
            "Without any, the sample that comes with the package.",
            show_default=False,
        ),
    ] = None,
    *,
    budgets: Annotated[str, typer.Option(help="Budgets in tokens, separated by commas.")] = "1000,2000,4000,8000",
    cache: Annotated[
        Path | None, typer.Option(help="Keep vectors in this file, for the next run.", show_default=False)
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(help="Write every single outcome there, as JSON Lines.", show_default=False),
    ] = None,
    no_embeddings: NoEmbeddings = False,
    as_json: AsJson = False,
) -> None:
    """Measure how much of the annotated evidence a context shows within a budget.

    The memory (recall and default view) and simple methods (a window, BM25, sentence vectors, their fusion and more)
    answer the same questions, pay the same prices per turn and date line, and are compared question by question.
    Questions without evidence, with evidence that the file does not have, or about things that were never said are
    listed and left out of the totals.
    """
    from langchain_tiered_memory.cli.work.evaluate import evaluate_paths  # noqa: PLC0415 - keeps --help fast

    evaluate_paths(
        paths or [],
        budgets=_numbers(budgets),
        cache=cache,
        rows=rows,
        no_embeddings=no_embeddings,
        to_json=as_json,
    )


def _numbers(text: str) -> list[int]:
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or numbers[0] < 1:
        msg = f"{text!r} are no budgets: write numbers with commas, such as 1000,2000,4000"
        raise typer.BadParameter(msg)
    return numbers


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
