"""`tiered-memory eval`: evidence inside the budget, for the memory and simple methods beside it."""

from pathlib import Path
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson, NoEmbeddings


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
