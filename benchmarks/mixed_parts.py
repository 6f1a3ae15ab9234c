"""How often a summary is noticed that stands under the number of another part of the same conversation.

A model that writes several summaries may mix them up, the more so where it has the whole conversation before it, as in
a call behind an agent's last request. Each stretch of a conversation is summed up by a stand-in that quotes; then each
summary is held against the stretch before its own, by the usual checks alone, and by what such a call is judged by.

    python -m benchmarks.mixed_parts --transcripts transcripts/ --chats conversations/ --names one,two
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.cost_curve import runs_of
from benchmarks.curve_runs import made_up_chat
from benchmarks.curve_writers import QuotingWriter
from benchmarks.reporting import Grid, Report, arguments, finish, show
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.summaries.checks.soundness import shares, soundness, unsound
from langchain_tiered_memory.summaries.writers.batches import CLEARLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.curve_runs import Run
    from benchmarks.reporting import Cell
    from langchain_tiered_memory.protocols import TokenCounter

_STRETCH_TOKENS, _ASKED_TOKENS = 900, 250
_MOST_STRETCHES = 60
_MADE_UP_MESSAGES = 200
_IN_VIEW = 20
"""Stretches to each side that the model has before it, too."""


def stretches_of(run: Run, counter: TokenCounter) -> list[list[str]]:
    """The texts of a run, in stretches of about a chunk."""
    found: list[list[str]] = [[]]
    tokens = 0
    for turn in run.talk.turns:
        if tokens > _STRETCH_TOKENS:
            found.append([])
            tokens = 0
        found[-1].append(text_of(turn.message))
        tokens += counter.count_message(turn.message)
    return found[:_MOST_STRETCHES]


def noticed(text: str, stretches: Sequence[Sequence[str]], at: int) -> tuple[bool, bool]:
    """Whether a summary is refused as that of the stretch `at`: by the usual checks, and by these or the comparison."""
    sources = stretches[at]
    found = soundness(text, sources, target_tokens=_ASKED_TOKENS, are_messages=True)
    usual = unsound(found) is not None
    others = [one for place, one in enumerate(stretches) if place != at and abs(place - at) <= _IN_VIEW]
    held = shares(text, [sources, *others])
    return usual, usual or (held is not None and max(held) > held[0] + CLEARLY)


def measure(runs: Sequence[Run]) -> Grid:
    """A row for each run."""
    counter = best_counter("gpt-4o")
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        print(run.name, file=sys.stderr, flush=True)
        stretches = stretches_of(run, counter)
        writer = QuotingWriter(run.talk.messages, counter=counter, most_tokens=_ASKED_TOKENS)
        prompts = ["\n".join([*one, f"Aim at {_ASKED_TOKENS} tokens"]) for one in stretches]
        texts = [str(writer.model.invoke(prompt).text) for prompt in prompts]
        own = [noticed(text, stretches, at) for at, text in enumerate(texts)]
        mixed = [noticed(text, stretches, at) for at, text in enumerate(texts[1:])]
        rows.append((
            run.name,
            len(own), sum(one for one, _ in own), sum(one for _, one in own),
            len(mixed), sum(one for one, _ in mixed), sum(one for _, one in mixed),
        ))  # fmt: skip
    heads = ("run", "own", "own refused", "own refused by both", "mixed", "mixed refused", "mixed refused by both")
    return Grid(title="summaries held against their own stretch and that of another", columns=heads, rows=tuple(rows))


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--transcripts", type=Path, help="folder of agents' transcripts with probes")
    parser.add_argument("--chats", type=Path, nargs="+", default=[], help="conversations with questions, or folders")
    parser.add_argument("--names", default="", help="with commas between; all if not given")
    asked = parser.parse_args(arguments_given)
    names = [name for name in asked.names.split(",") if name]
    is_given = asked.transcripts or asked.chats
    runs = runs_of(asked.transcripts, asked.chats, names=names) if is_given else [made_up_chat(_MADE_UP_MESSAGES)]
    grid = measure(runs)
    report = Report(
        benchmark="mixed_parts",
        about="Summaries under the number of another part, noticed or not.",
        settings={"runs": ", ".join(run.name for run in runs)},
        grids=(grid,),
        figures={str(row[0]): dict(zip(grid.columns[1:], row[1:], strict=True)) for row in grid.rows},
    )
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
