"""Adds up what `measure` noted, and says how it is shown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.display.sheet import Words, plural, table
from langchain_tiered_memory.evaluation.measure import MEMORY_METHODS, WINDOW, Measured, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_tiered_memory.display.sheet import Block

Figure: TypeAlias = Literal["all", "fraction", "any", "all_touched", "any_touched"]

FIGURES: dict[Figure, str] = {
    "all": "all evidence in the context",
    "fraction": "share of the evidence in the context",
    "any": "any evidence in the context",
    "all_touched": "all evidence in the context, at least by a passage",
    "any_touched": "any evidence in the context, at least by a passage",
}
"""What can be asked of an outcome. A turn counts where it is shown whole, unless the name says otherwise."""
_OVERALL = "overall"
_OF_INTERVAL = 1.96
"""Standard errors on each side of a mean that hold 95 % of a normal distribution."""


def value(outcome: Outcome, figure: Figure) -> float:
    """What `outcome` is worth by `figure`, 0 to 1."""
    match figure:
        case "all":
            return float(outcome.whole == outcome.evidence)
        case "fraction":
            return outcome.whole / outcome.evidence
        case "any":
            return float(outcome.whole > 0)
        case "all_touched":
            return float(outcome.touched == outcome.evidence)
        case "any_touched":
            return float(outcome.touched > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How much was measured in one group of conversations, and whether the memory kept to the budgets."""

    name: str
    conversations: int
    turns: int
    tokens: int
    questions: int
    """In the totals: with resolved evidence, and not adversarial."""
    left_out: dict[str, int]
    """Reason to number of questions that are not in the totals."""
    budgets: tuple[int, ...]
    contexts: int
    """Of the memory."""
    overspent: int
    """Contexts of the memory that are larger than the budget, by its own count."""
    priced_above: int
    """Contexts whose whole turns cost more than the budget by the common prices, even when asked again with less."""
    asked_again: int
    """Contexts that were made again with less, because their whole turns cost more by the common prices."""
    largest_cut: int
    """The most that one of them was given less, in tokens."""
    refused: int
    """Contexts that the memory could not make within the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Totals):
    """One group of conversations, added up: shares of questions are 0 to 1."""

    shares: dict[str, dict[Figure, dict[str, dict[int, float]]]]
    """Overall and by category (also of categories that are not in the totals): by figure, method and budget."""
    above_window: dict[str, dict[int, tuple[float, float]]]
    """By view and budget: how much more questions have all evidence in the context than in the window, and half of the
    95 % interval of that."""


def totals_of(name: str, measured: Sequence[Measured]) -> Totals:
    """The counts of one group."""
    outcomes = [outcome for one in measured for outcome in one.outcomes]
    ours = [outcome for outcome in outcomes if outcome.method in MEMORY_METHODS.values()]
    cuts = [outcome.budget - outcome.asked for outcome in ours if outcome.asked is not None]
    adversarial = {(outcome.conversation, outcome.question) for outcome in outcomes if outcome.adversarial}
    left_out: Counter[str] = Counter()
    for one in measured:
        left_out.update({reason: len(ids) for reason, ids in one.left_out.items()})
    if adversarial:
        left_out["adversarial"] = len(adversarial)
    return Totals(
        name=name,
        conversations=len(measured),
        turns=sum(one.turns for one in measured),
        tokens=sum(one.tokens for one in measured),
        questions=sum(one.questions for one in measured) - len(adversarial),
        left_out=dict(left_out),
        budgets=tuple(sorted({outcome.budget for outcome in outcomes})),
        contexts=len(ours),
        overspent=sum(outcome.overspent for outcome in ours),
        priced_above=sum(outcome.excess > 0 for outcome in ours),
        asked_again=sum(cut > 0 for cut in cuts),
        largest_cut=max(cuts, default=0),
        refused=sum(outcome.note is not None for outcome in ours),
    )


def added_up(name: str, measured: Sequence[Measured]) -> Evidence:
    """Everything about the conversations of one group."""
    totals = totals_of(name, measured)
    by_set: dict[str, list[Outcome]] = {_OVERALL: []}
    for one in (outcome for found in measured for outcome in found.outcomes):
        by_set[_OVERALL] += [] if one.adversarial else [one]
        by_set.setdefault(one.category, []).append(one)
    columns = {of: _columns(outcomes) for of, outcomes in by_set.items()}
    overall = columns[_OVERALL]
    above: dict[str, dict[int, tuple[float, float]]] = {}
    for (method, budget), outcomes in overall.items():
        if method != WINDOW:
            beside = zip(outcomes, overall[WINDOW, budget], strict=True)
            changes = [value(mine, "all") - value(other, "all") for mine, other in beside]
            error = stdev(changes) / len(changes) ** 0.5 if len(changes) > 1 else 0.0
            above.setdefault(method, {})[budget] = fmean(changes), _OF_INTERVAL * error
    return Evidence(
        **{field: getattr(totals, field) for field in Totals.__slots__},
        shares={of: {figure: _shares(found, figure) for figure in FIGURES} for of, found in columns.items() if found},
        above_window=above,
    )


def _columns(outcomes: Sequence[Outcome]) -> dict[tuple[str, int], list[Outcome]]:
    """By method and budget, the same questions in the same order."""
    found: dict[tuple[str, int], list[Outcome]] = {}
    for one in outcomes:
        found.setdefault((one.method, one.budget), []).append(one)
    return found


def _shares(columns: Mapping[tuple[str, int], Sequence[Outcome]], figure: Figure) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for (method, budget), outcomes in columns.items():
        found.setdefault(method, {})[budget] = fmean(value(one, figure) for one in outcomes)
    return found


def blocks_of(evidence: Evidence) -> Iterator[Block]:
    """What to tell of one group of conversations, from top to bottom."""
    yield Words(text=heading(evidence))
    if not evidence.questions:
        yield Words(text="No question has evidence that can be looked for.")
        return
    for figure, title in FIGURES.items():
        yield _table(evidence, f"{title}, %", _percent(evidence.shares[_OVERALL][figure]))
    above = {
        view: {budget: f"{100 * mean:+.1f} ±{100 * half:.1f}" for budget, (mean, half) in by_budget.items()}
        for view, by_budget in evidence.above_window.items()
    }
    yield _table(evidence, "points of all evidence above the window", above)
    recall = MEMORY_METHODS["recall"]
    by_category = {of: found["all"][recall] for of, found in evidence.shares.items() if of != _OVERALL}
    if len(by_category) > 1:
        yield _table(evidence, f"{FIGURES['all']}, {recall}, %", _percent(by_category))
    yield Words(text=honesty(evidence))


def _percent(shares: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, str]]:
    return {name: {budget: f"{100 * share:.1f}" for budget, share in row.items()} for name, row in shares.items()}


def _table(evidence: Evidence, title: str, rows: Mapping[str, Mapping[int, str]]) -> Block:
    named = [(name, *(row[budget] for budget in evidence.budgets)) for name, row in rows.items()]
    return table(title, ("", *(f"{budget:,}" for budget in evidence.budgets)), named)


def heading(totals: Totals) -> str:
    """What was measured."""
    counts = ((totals.conversations, "conversation"), (totals.turns, "turn"), (totals.tokens, "token"))
    parts = [plural(count, noun) for count, noun in (*counts, (totals.questions, "question"))]
    out = ", ".join(f"{count} {reason}" for reason, count in totals.left_out.items())
    return f"{totals.name}: {', '.join(parts)}{f' (not in the totals: {out})' if out else ''}"


def honesty(totals: Totals) -> str:
    """Whether the memory kept to the budget: by its own count of the request, and by the common prices."""
    above, refused = totals.overspent + totals.priced_above, totals.refused
    if above or refused:
        return f"Of {totals.contexts} contexts of the memory, {above} were over budget and {refused} could not be made."
    said = f"All {totals.contexts} contexts of the memory kept within their budgets."
    if totals.asked_again:
        said += (
            f" {totals.asked_again} were made again with less (at most {totals.largest_cut} tokens), because their"
            " whole turns cost more by the prices that the other methods pay."
        )
    return said
