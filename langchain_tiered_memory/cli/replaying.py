"""`tiered-memory replay`: a conversation turn by turn."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langchain_tiered_memory.cli.ask import show_context_of
from langchain_tiered_memory.cli.care import say_gaps
from langchain_tiered_memory.cli.opening import open_memory, priced_settings
from langchain_tiered_memory.cli.options import AsJson, Model, NoEmbeddings
from langchain_tiered_memory.cli.screen import duration, print_json, progress, say, show, tell
from langchain_tiered_memory.display.sheet import plural, table
from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_tiered_memory.evaluation.replay import ReplayReport


def replay(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Conversation: JSON Lines of messages, an OpenAI-style list, or sessions with dated turns. "
            "Default: the sample in the package.",
            show_default=False,
        ),
    ] = None,
    *,
    sample: Annotated[
        bool, typer.Option("--sample", help="Use the sample conversation, which is the default.")
    ] = False,
    db: Annotated[
        str | None,
        typer.Option(
            metavar="DB",
            help="Keep the memory in this database. Without it, the memory is gone at the end.",
            show_default=False,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Id of the new session. Default: the conversation's.", show_default=False),
    ] = None,
    budget: Annotated[int, typer.Option(min=1, metavar="TOKENS", help="Budget of each context, in tokens.")] = 8000,
    model: Model = None,
    price_in: Annotated[
        float | None,
        typer.Option(min=0, metavar="PRICE", help="Price per million input tokens.", show_default=False),
    ] = None,
    price_out: Annotated[
        float | None, typer.Option(min=0, metavar="PRICE", help="Price per million output tokens.", show_default=False)
    ] = None,
    no_embeddings: NoEmbeddings = False,
    no_context: Annotated[
        bool, typer.Option("--no-context", help="Do not print the context of the last turn.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay a conversation turn by turn, and report what a model would have been sent.

    For each model call, the memory assembles the context. The report compares the tokens that these calls sent with
    those of the whole history. It also shows the levels of summaries, what they cost, how long each step took, and the
    context of the last turn.
    """
    from langchain_tiered_memory.conversations import read_conversation, sample_conversation  # noqa: PLC0415 - slow to import
    from langchain_tiered_memory.evaluation.replay import replay as replayed  # noqa: PLC0415 - likewise
    from langchain_tiered_memory.models.token_counters import best_counter  # noqa: PLC0415 - likewise

    if file is not None and sample:
        msg = "give a FILE or --sample, not both"
        raise typer.BadParameter(msg)
    conversation = read_conversation(file) if file else sample_conversation()
    name = session or conversation.id
    settings = priced_settings(model, price_in=price_in, price_out=price_out)
    counter = best_counter(model)  # as `open` chooses it
    with open_memory(db, model=model, no_embeddings=no_embeddings, settings=settings) as memory:
        say_gaps(memory.status())
        if name in memory.sessions():
            msg = f"{db} already has a session {name!r}: name another with --session, or `forget` that one first"
            raise InvalidInputError(msg)
        with progress(f"replaying {conversation.id}", len(conversation.turns)) as step:
            report = replayed(conversation, memory.session(name), max_tokens=budget, counter=counter, on_step=step)
    if as_json:
        print_json(report)
        return
    _show_replay(report, show_context=not no_context, price_in=price_in)
    if db is None:
        say("To keep it and look inside: tiered-memory replay --db memory.db", style="dim")
    else:
        ask = f'tiered-memory ask {shlex.quote(db)} {shlex.quote(report.session)} "..."'
        say(f"To ask it something: {ask}", style="dim")


def _show_replay(report: "ReplayReport", *, show_context: bool, price_in: float | None) -> None:
    of_money = ("money",) if price_in is not None else ()
    sent = (
        (f"contexts of at most {report.budget:,}", report.sent_per_call, report.largest_context, report.sent_tokens),
        ("the whole history", report.full_per_call, report.largest_history, report.full_tokens),
    )
    steps = (("adding a message", report.adding), ("assembling a context", report.assembling))
    times = [(name, *map(duration, (one.p50, one.p95, one.mean * one.count))) for name, one in steps]
    show(report.metrics)
    tell(
        table(
            f"tokens sent in {plural(report.calls, 'model call')}",
            ("", "per call", "largest", "together", *of_money),
            [(*row, *(f"{row[-1] * price / 1e6:,.4f}" for price in [price_in] if price is not None)) for row in sent],
        ),
        table(
            "time",
            ("", "median", "95 %", "together"),
            [*times, ("finishing what waited", None, None, duration(report.finishing_seconds))],
        ),
    )
    if show_context and report.last_context is not None:
        show_context_of(report.last_context, brief=True)
