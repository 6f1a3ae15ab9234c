"""Does a context show what an agent demonstrably needed next? Real transcripts, without a judge.

Before each of the agent's calls a context is asked for, as in life; where the transcript has a probe, the needle is
looked for in it: the old text of an edit that the agent is about to make (`edit_anchor`), or a file that it is about to
come back to (`file_return`). Four windows over the latest messages are measured beside it, with the same counter.

    python -m benchmarks.transcript_probes FOLDER --budgets 4000,8000,16000,32000,64000
    python -m benchmarks.transcript_probes --quick

`agent_transcripts` says what a folder holds; none comes with this repository. `--quick` makes one up.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.agent_transcripts import read_transcripts
from benchmarks.made_up_run import made_up_run
from benchmarks.reporting import Report, arguments, finish, numbers, show
from benchmarks.transcript_report import Measured, report_of
from benchmarks.transcript_runs import run_transcript
from benchmarks.transcript_windows import METHODS, Windows
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.agent_transcripts import Transcript
    from benchmarks.transcript_runs import Asked, Query

BUDGETS = (4000, 8000, 16_000, 32_000, 64_000)
_QUICK_BUDGETS = (1000, 2000)
_COUNTED_AS = "gpt-4"
"""Counts with cl100k where tiktoken's file is at hand, whichever model the agent had: so figures can be compared."""


def measure(
    transcripts: Sequence[Transcript],
    *,
    budgets: Sequence[int] = BUDGETS,
    query: Query = "none",
    asked: Asked = "calls",
    embed: bool = False,
) -> Report:
    """Play every transcript within every budget."""
    counter = best_counter(_COUNTED_AS)
    embeddings = resolve_embeddings("auto") if embed else None
    measured: list[Measured] = []
    for transcript in transcripts:
        windows = Windows(transcript, counter=counter)
        needed = {
            (probe, method): windows.needed_tokens(probe, method) for probe in transcript.probes for method in METHODS
        }
        places = sorted({probe.at for probe in transcript.probes})
        for budget in budgets:
            run = run_transcript(transcript, budget, counter=counter, embeddings=embeddings, query=query, asked=asked)
            used = {method: [windows.used_tokens(place, method, budget) for place in places] for method in METHODS}
            measured.append(Measured(run=run, needed=needed, used=used))
    settings = {
        "transcripts": len(transcripts),
        "probes": sum(len(one.probes) for one in transcripts),
        "query": query,
        "asked before": "each call" if asked == "calls" else "probes",
        "embeddings": embeddings is not None,
        "counter": counter.fingerprint,
    }
    return report_of(measured, budgets=budgets, settings=settings)


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="of transcripts; without it, `--quick` is meant")
    parser.add_argument("--budgets", type=numbers, default=None, help="in tokens")
    parser.add_argument("--transcripts", default="", help="names, with commas between; all if not given")
    parser.add_argument("--query", choices=("last", "none"), default="none", help="what is looked up")
    parser.add_argument("--asked", choices=("calls", "probes"), default="calls", help="when a context is asked for")
    parser.add_argument("--embed", action="store_true", help="recall by vectors too, where the model is at hand")
    parser.add_argument("--quick", action="store_true", help="one made-up run, small budgets")
    asked = parser.parse_args(arguments_given)
    quick = asked.quick or asked.folder is None
    names = [name for name in asked.transcripts.split(",") if name]
    transcripts = [made_up_run()] if quick else read_transcripts(asked.folder, names=names)
    budgets = asked.budgets or list(_QUICK_BUDGETS if quick else BUDGETS)
    report = measure(transcripts, budgets=budgets, query=asked.query, asked=asked.asked, embed=asked.embed)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
