"""The work of `tiered-memory replay`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from langchain_tiered_memory.cli.context_view import show_replay
from langchain_tiered_memory.cli.opening import open_memory, priced_settings
from langchain_tiered_memory.cli.screen import print_json, progress, say
from langchain_tiered_memory.cli.surroundings import say_gaps
from langchain_tiered_memory.conversations import read_conversation, sample_conversation
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.evaluation.replay import ReplayReport, replay
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from pathlib import Path


def replay_file(
    file: Path | None,
    *,
    db: str | None,
    session_id: str | None,
    max_tokens: int,
    model: str | None,
    price_in: float | None,
    price_out: float | None,
    no_embeddings: bool,
    show_context: bool,
    as_json: bool,
) -> None:
    """Replay `file`, or the sample, and print the report.

    Raises:
        InvalidInputError: when the file is no conversation, or the database already has the session.
    """
    conversation = read_conversation(file) if file else sample_conversation()
    name = session_id or conversation.id
    settings = priced_settings(model, price_in=price_in, price_out=price_out)
    counter = best_counter(model)  # as `open` chooses it
    with open_memory(db, model=model, no_embeddings=no_embeddings, settings=settings) as memory:
        say_gaps(memory.status())
        if name in memory.sessions():
            msg = f"{db} already has a session {name!r}: name another with --session, or `forget` that one first"
            raise InvalidInputError(msg)
        with progress(f"replaying {conversation.id}", len(conversation.turns)) as step:
            report = replay(conversation, memory.session(name), max_tokens=max_tokens, counter=counter, on_step=step)
    if as_json:
        print_json(report)
        return
    show_replay(report, show_context=show_context, price_in=price_in)
    say(_next_step(report, db), style="dim")


def _next_step(report: ReplayReport, db: str | None) -> str:
    if db is None:
        return "To keep it and look inside: tiered-memory replay --db memory.db"
    return f'To ask it something: tiered-memory ask {shlex.quote(db)} {shlex.quote(report.session)} "..."'
