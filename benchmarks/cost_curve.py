"""What is in view, for what a whole run costs: this memory at its named settings, and every peer.

An agent's transcript is played request by request; before a call, the text of its next edit and the file that it comes
back to are looked for in what would be sent. A chat is played with facts planted in it, and asked questions afterwards:
their evidence, and the facts without a question, are looked for. Everything is billed: what is sent (a byte-identical
prefix at what cached input costs), what is answered, and what condensing reads and writes, by one stand-in for all.

    python -m benchmarks.cost_curve --transcripts FOLDER --chats FOLDER --picture curve.png
    python -m benchmarks.cost_curve --quick

`agent_transcripts` says what the folder of transcripts holds; the chats are files that `tiered-memory eval` reads.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agent_transcripts import read_transcripts
from benchmarks.curve_entries import Entry, Place, entries
from benchmarks.curve_picture import draw
from benchmarks.curve_play import Played, play, read_record, write_record
from benchmarks.curve_report import points_of, report_of
from benchmarks.curve_runs import Run, made_up_chat, run_of_conversation, run_of_transcript
from benchmarks.curve_writers import WRITES, Writes, writer_for
from benchmarks.made_up_run import made_up_run
from benchmarks.parties import Counting
from benchmarks.reporting import Report, arguments, finish, numbers, show
from langchain_tiered_memory.conversations import read_conversations
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

WINDOWS = (8000, 32_000, 128_000)
_QUICK_WINDOWS = (1500,)
_QUICK_TURNS = 12
_QUICK_MESSAGES = 80
_QUESTIONS = 20
_COUNTED_AS = "gpt-4"
"""Counts with cl100k where tiktoken's file is at hand, as the other benchmarks of transcripts do."""


def measure(
    runs: Sequence[Run],
    entered: Sequence[Entry],
    *,
    windows: Sequence[int] = WINDOWS,
    writes: Writes = "quotes",
    embed: bool = False,
    hermes: Path | None = None,
    record: Path | None = None,
) -> list[Played]:
    """Play every run with every entry within every window, one after the other.

    Args:
        runs: What is played.
        entered: By whom.
        windows: In tokens.
        writes: What the stand-in for a condensing model does.
        embed: Whether this memory recalls by vectors too, where the model is at hand.
        hermes: The checked-out source of hermes-lcm.
        record: What is measured is written there as it is done; what stands there already is not measured again.
    """
    counter = best_counter(_COUNTED_AS)
    counting = Counting(counter)
    embeddings: Embeddings | None = resolve_embeddings("auto") if embed else None
    done = {(one.entry, one.run, one.window): one for one in read_record(record)} if record else {}
    played: list[Played] = []
    for window in windows:
        for run in runs:
            for entry in entered:
                if run.kind not in entry.kinds:
                    continue
                if known := done.get((entry.name, run.name, window)):
                    played.append(known)
                    continue
                place = Place(
                    kind=run.kind,
                    window=window,
                    counter=counter,
                    counting=counting,
                    writer=writer_for(run, window, counter=counter, writes=writes) if entry.written else None,
                    embeddings=embeddings,
                    hermes=hermes,
                )
                print(f"{run.name}, {window:,}: {entry.name}", file=sys.stderr, flush=True)
                played.append(play(run, entry, place))
                if record:
                    write_record(record, played[-1])
    return played


def runs_of(
    transcripts: Path | None, chats: Sequence[Path], *, names: Sequence[str] = (), questions: int = _QUESTIONS
) -> list[Run]:
    """The transcripts of a folder and the chats in files or folders; with `names` only those.

    Raises:
        InvalidInputError: when a file cannot be read, or a folder has nothing of the kind.
    """
    found = [run_of_transcript(one) for one in read_transcripts(transcripts)] if transcripts else []
    # Files in capitals are lists of what a folder holds.
    files = [
        path
        for place in chats
        for path in (sorted(place.rglob("*.json")) if place.is_dir() else [place])
        if path.stem.upper() != path.stem
    ]
    found += [run_of_conversation(one, questions=questions) for path in files for one in read_conversations(path)]
    return [run for run in found if not names or run.name in names]


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--transcripts", type=Path, help="folder of agents' transcripts with probes")
    parser.add_argument("--chats", type=Path, nargs="+", default=[], help="conversations with questions, or folders")
    parser.add_argument("--names", default="", help="transcripts and chats, with commas between; all if not given")
    parser.add_argument("--windows", type=numbers, default=None, help="of the model, in tokens")
    parser.add_argument("--parties", default="", help="parts of names of those to measure, with semicolons between")
    parser.add_argument("--questions", type=int, default=_QUESTIONS, help="asked at the end of a chat, at most")
    parser.add_argument("--writes", choices=WRITES, default="quotes", help="what the stand-in for a model does")
    parser.add_argument("--embed", action="store_true", help="recall by vectors too, where the model is at hand")
    parser.add_argument("--hermes", type=Path, help="the checked-out source of hermes-lcm")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curve there")
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="write what is measured as it is done, and leave out what stands there: of the same code and options",
    )
    parser.add_argument("--quick", action="store_true", help="a made-up run and a made-up chat, one small window")
    asked = parser.parse_args(arguments_given)
    quick = asked.quick or not (asked.transcripts or asked.chats)
    if quick:
        runs = [run_of_transcript(made_up_run(turns=_QUICK_TURNS)), made_up_chat(_QUICK_MESSAGES)]
    else:
        names = [name for name in asked.names.split(",") if name]
        runs = runs_of(asked.transcripts, asked.chats, names=names, questions=asked.questions)
    wanted = [part.casefold() for part in asked.parties.split(";") if part]
    entered, left_out = entries(hermes=asked.hermes)
    entered = [one for one in entered if not wanted or any(part in one.name.casefold() for part in wanted)]
    if not runs or not entered:
        parser.error("nobody to measure, or nothing to play: see --names and --parties")
    windows = asked.windows or (_QUICK_WINDOWS if quick else WINDOWS)
    played = measure(
        runs, entered, windows=windows, writes=asked.writes, embed=asked.embed, hermes=asked.hermes, record=asked.record
    )
    settings = {
        "runs": ", ".join(run.name for run in runs),
        "stand-in": asked.writes,
        "embeddings": asked.embed,
        "counter": best_counter(_COUNTED_AS).fingerprint,
    }
    report = report_of(played, entered, settings=settings)
    show(report)
    for line in left_out:
        print(line)
    if asked.picture and (why := draw(points_of(played, entered), asked.picture)):
        print(why)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
