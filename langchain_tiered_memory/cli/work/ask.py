"""The work of `tiered-memory ask`."""

from __future__ import annotations

from typing import Literal

from langchain_tiered_memory.cli.context_view import account, content
from langchain_tiered_memory.cli.opening import existing_session, open_memory
from langchain_tiered_memory.cli.screen import out, print_json
from langchain_tiered_memory.cli.surroundings import say_gaps


def print_context(
    db: str,
    session_id: str,
    question: str,
    *,
    max_tokens: int,
    view: Literal["recall", "default"],
    brief: bool,
    no_embeddings: bool,
    read_only: bool,
    as_json: bool,
) -> None:
    """Print the context for `question`; no model is called.

    Raises:
        NotFoundError: when there is no such database or session.
        BudgetError: when the budget cannot hold what must be shown.
    """
    with open_memory(db, no_embeddings=no_embeddings, must_exist=True, read_only=read_only) as memory:
        say_gaps(memory.status())
        context = existing_session(memory, session_id).context(question, max_tokens=max_tokens, view=view)
    if as_json:
        print_json(context)
        return
    console = out()
    console.print(account(context))
    for part in content(context, brief=brief):
        console.print(part)
