"""Reads what a request is: its mode, which chooses the column of the policy (`policy.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.types.policies import Mode, ModeName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.request import Request
    from langchain_tiered_memory.types.records import Entry

REASONS: dict[ModeName, str] = {
    "recall": "the view asked for is `recall`",
    "minimal": "the view asked for is `minimal`",
    "asked": "the caller names what is looked up (`query`)",
    "files": "the agent works on files",
    "loop": "the agent is in a tool loop",
    "question": "the user's last message asks for something older",
    "talk": "the conversation goes on",
}
"""In the order in which the first that holds names the mode."""


def read_mode(request: Request, *, query: str, touched: Sequence[int], last_seq: int, asks: bool) -> Mode:
    """The mode of a request, as far as it is known before its view is.

    Args:
        request: Its view and query.
        query: What is looked up; blank: nothing.
        touched: `seq`s of the latest messages that worked on files, newest first, as many as make an agent busy.
        last_seq: Of the newest message.
        asks: Whether the user's last message asks for something older.
    """
    since = last_seq - NUMBERS.busy_among
    works = len(touched) == NUMBERS.busy_messages and touched[-1] > since
    holds: dict[ModeName, bool] = {
        "recall": request.view == "recall",
        "minimal": request.view == "minimal",
        "asked": request.asks,
        "files": works,
        "question": asks,
        "talk": not (works or request.asks),
    }
    return _of(
        [name for name, is_so in holds.items() if is_so],
        looks_up=bool(query.strip()),
        shows_parts=bool(touched) and touched[0] > since,
    )


def with_loop(mode: Mode, request: Request, newest: Sequence[Entry]) -> Mode:
    """The mode of a request whose view is known: in a tool loop, recall stays as it is until the user speaks again.

    A question of the caller's own is no part of a loop.
    """
    at_work = bool(request.tools) or any(entry.calls or entry.answers for entry in newest)
    if not at_work or request.query is not None:
        return mode
    return _of([*mode.names, "loop"], looks_up=mode.looks_up, shows_parts=mode.shows_parts)


def _of(names: Sequence[ModeName], *, looks_up: bool, shows_parts: bool) -> Mode:
    ordered = tuple(name for name in REASONS if name in names)
    return Mode(names=ordered, reason=REASONS[ordered[0]], looks_up=looks_up, shows_parts=shows_parts)
