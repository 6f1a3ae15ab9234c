"""Which agents' runs a benchmark plays: the first long ones of a folder of transcripts, or one that is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.integration_replay import read_folder
from benchmarks.made_up_run import made_up_run

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.messages import BaseMessage

_TURNS_A_MESSAGE = 0.5


def choose_runs(folder: Path | None, *, messages: int, most: int) -> dict[str, list[BaseMessage]]:
    """The first few transcripts of a folder that are long enough, cut to `messages`; else a made-up run."""
    if folder is None:
        held = made_up_run(turns=round(messages * _TURNS_A_MESSAGE) + 1)
        return {held.name: list(held.messages[:messages])}
    found = read_folder(folder)
    long_enough = [name for name, run in found.items() if len(run) >= messages]
    chosen = long_enough[:most] or [max(found, key=lambda name: len(found[name]))]
    return {name: found[name][:messages] for name in chosen}
