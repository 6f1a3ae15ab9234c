"""What `fact_depth` found, in tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, Final, get_args

from benchmarks.conversations import FactKind
from benchmarks.reporting import Grid, Report, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLACES = ("early", "middle", "late")
"""Thirds of a conversation."""
QUOTES, REWORDS, LOSES, RULES = "quotes", "rewords", "loses a fifth", "no model"
"""Who writes the summaries."""
_KINDS: Final = get_args(FactKind)
_JUDGED_FROM = 1000  # turns: fewer make no depth


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One conversation held with one party."""

    party: str
    writer: str
    """Which stand-in wrote the summaries."""
    seed: int
    facts: int
    stated: dict[str, float]
    """Share of facts that the context states without a question: `all`, by kind, and by place (0 to 1)."""
    asked: float | None
    """Share stated when each is asked for; `None` for who cannot look anything up."""
    wrong: float
    """Share of corrected facts of which only an old value is shown."""
    tokens: int
    """Of the context."""
    asked_tokens: int | None
    """Of the largest context with a question."""
    calls: int
    read_tokens: int
    written_tokens: int
    levels: int
    """Levels of summaries at the end."""
    seconds: float


def report_of(
    found: Sequence[Held], *, settings: dict[str, Any], turns: int, budget: int, left_out: Sequence[str] = ()
) -> Report:
    """The report."""
    parties: dict[tuple[str, str], list[Held]] = {}
    for one in found:
        parties.setdefault((one.writer, one.party), []).append(one)
    kinds = [kind for kind in _KINDS if any(kind in one.stated for one in found)]
    groups = ("all", *kinds, *PLACES)
    rows = [_row(several, groups) for several in parties.values()]
    titles = ("", *groups, "asked", "wrong")
    costs = ("", "tokens", "calls", "read", "written", "levels", "seconds")
    enough = turns >= _JUDGED_FROM
    return Report(
        benchmark="fact depth",
        about="planted facts that one context states at the end of a long conversation",
        settings=settings | {"facts": round(mean(one.facts for one in found))},
        grids=(
            Grid(
                title="facts stated without a question, %: by kind, by place; each asked for; corrections shown wrong",
                columns=titles,
                rows=tuple(row for row, _ in rows),
            ),
            Grid(title="what it took, on average over the seeds", columns=costs, rows=tuple(row for _, row in rows)),
        ),
        figures={"held": [asdict(one) for one in found]},
        targets=tuple(_targets(parties, budget=budget, enough=enough)),
        remarks=(
            "Means over the seeds, with their standard deviation.",
            "'quotes', 'rewords' and 'loses' are stand-ins for a model, the same for all; 'no model': rules alone.",
            *left_out,
        ),
    )


def _row(several: Sequence[Held], groups: Sequence[str]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    name = f"{several[0].party}, {several[0].writer}"
    shares = [_spread([one.stated[group] for one in several if group in one.stated]) for group in groups]
    asked = [one.asked for one in several if one.asked is not None]
    largest = max(one.tokens for one in several)
    return (
        (name, *shares, _spread(asked) if asked else None, _spread([one.wrong for one in several])),
        (
            name,
            f"{round(mean(one.tokens for one in several)):,}, at most {largest:,}",
            round(mean(one.calls for one in several)),
            round(mean(one.read_tokens for one in several)),
            round(mean(one.written_tokens for one in several)),
            max(one.levels for one in several) or None,
            mean(one.seconds for one in several),
        ),
    )


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    around = f" ±{100 * stdev(values):.0f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.0f}{around}"


def _targets(parties: dict[tuple[str, str], list[Held]], *, budget: int, enough: bool) -> Iterator[Target]:
    """The memory against its strongest peer beside the same stand-in."""
    for writer in (REWORDS, QUOTES, LOSES, RULES):
        share = {
            name: mean(one.stated["all"] for one in several)
            for (written_by, name), several in parties.items()
            if written_by == writer
        }
        if len(share) < 2:  # noqa: PLR2004 - this memory and somebody else
            continue
        mine = share.pop("this memory")
        rival = max(share, key=lambda name: share[name])
        yield Target(
            aim=f"{writer}: states more than {rival}, the best beside it",
            measured=f"{100 * mine:.1f} %, {100 * share[rival]:.1f} %",
            met=mine > share[rival] if enough else None,
        )
    ours = [one for (_, name), several in parties.items() if name == "this memory" for one in several]
    largest = max(max(one.tokens, one.asked_tokens or 0) for one in ours)
    yield Target(aim="never over budget", measured=f"{largest:,} of {budget:,}", met=largest <= budget)
