"""`tiered-memory policy`: how much room each section of a context has, in each mode."""

from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson
from langchain_tiered_memory.settings import SettingsName


def policy(
    *,
    max_tokens: Annotated[int, typer.Option(min=1, help="Budget of the context, in tokens.")] = 8000,
    fixed: Annotated[int, typer.Option(min=0, help="Tokens of it for system prompt and tool schemas.")] = 0,
    settings: Annotated[SettingsName, typer.Option(help="The named settings that it is shown for.")] = "balanced",
    numbers: Annotated[bool, typer.Option("--numbers", help="Show the numbers that no setting turns, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how much room each section of a context has, in each mode, and what gives way where not all fits."""
    from langchain_tiered_memory.cli.work.policy import show_policy  # noqa: PLC0415 - keeps --help fast

    show_policy(max_tokens, fixed=fixed, name=settings, with_numbers=numbers, to_json=as_json)
