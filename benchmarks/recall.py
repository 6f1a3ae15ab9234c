"""Evidence inside the budget, by the memory and by simple methods beside it.

The conversations are named on the command line; without any, the sample that comes with the package is asked. The
methods beside the memory (windows, BM25, sentence vectors, their fusion and more) see the same text, pay the same
prices, and are compared question by question.

    python -m benchmarks.recall conversations/ --budgets 1000,2000,4000,8000
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.asked_conversations import VIEWS, read_groups
from benchmarks.cached_vectors import CachedEmbeddings
from benchmarks.evidence_summary import Summary, as_json, summarise
from benchmarks.evidence_tables import renderables, shares_of
from benchmarks.reporting import Report, Target, arguments, finish, numbers, screen, show
from benchmarks.simple_methods import measured_beside
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.embeddings import Embeddings

BUDGETS = (1000, 2000, 4000, 8000)


def evaluate(
    paths: Sequence[Path] = (),
    *,
    budgets: Sequence[int] = BUDGETS,
    embed: bool = True,
    cache: Path | None = None,
) -> Report:
    """Ask the questions of the conversations under `paths`.

    Raises:
        InvalidInputError: when a named file is no conversation, or none has questions.
    """
    counter = best_counter("gpt-4")
    found = resolve_embeddings("auto") if embed else None
    embeddings: Embeddings | None = CachedEmbeddings(found, path=cache) if found is not None else None
    summaries: list[Summary] = []
    console = screen()
    for name, conversations in read_groups(paths).items():
        measured = [measured_beside(one, budgets, counter=counter, embeddings=embeddings) for one in conversations]
        summaries.append(summarise(name, measured))
        for part in renderables(summaries[-1]):
            console.print(part)
    return Report(
        benchmark="recall",
        about="evidence inside the budget, without a judge",
        settings={"counter": counter.fingerprint, "embeddings": found is not None, "budgets": list(budgets)},
        grids=tuple(map(shares_of, summaries)),
        figures={"groups": [as_json(summary) for summary in summaries]},
        targets=tuple(target for summary in summaries for target in _targets(summary)),
    )


def _targets(summary: Summary) -> list[Target]:
    """The recall view against the strongest other method, at each budget."""
    targets = []
    for budget in summary.budgets:
        rival = summary.strongest(budget)
        compared = [
            one
            for one in summary.comparisons
            if one.view == VIEWS["recall"] and one.method == rival and one.budget == budget
        ]
        for one in compared:
            change = one.difference
            targets.append(
                Target(
                    aim=f"{summary.name}, {budget:,} tokens: the recall view above {rival}",
                    measured=f"{100 * change.mean:+.1f} points [{100 * change.low:+.1f}, {100 * change.high:+.1f}]",
                    met={"above": True, "below": False}.get(one.verdict),
                )
            )
    return targets


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument(
        "paths", type=Path, nargs="*", help="conversations with annotated questions, or folders of them"
    )
    parser.add_argument("--budgets", type=numbers, default=list(BUDGETS))
    parser.add_argument("--no-embeddings", action="store_true", help="words alone")
    parser.add_argument("--cache", type=Path, help="keep vectors in this file")
    asked = parser.parse_args(arguments_given)
    report = evaluate(asked.paths, budgets=asked.budgets, embed=not asked.no_embeddings, cache=asked.cache)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
