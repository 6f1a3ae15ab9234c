"""Adds up outcomes: shares per method and budget, overall and per category, and who is above whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from benchmarks.asked_conversations import VIEWS
from benchmarks.evidence import FIGURES, Figure, Measured, Outcome, Totals, totals_of, value
from benchmarks.simple_methods import HALF, USER_ONLY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


_Columns: TypeAlias = dict[tuple[str, int], dict[tuple[str, str], Outcome]]
_RESAMPLES = 10_000
_SEED = 20_240_229
_LEVEL = (2.5, 97.5)
_ROWS = 250
"""Resamples drawn at a time, to keep memory low on large sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A view of the memory against one method on the same questions, by `all`."""

    view: str
    method: str
    budget: int
    difference: Estimate
    """Shares of questions: positive where the memory is above."""

    @property
    def verdict(self) -> Literal["above", "equal", "below"]:
        """`equal` where the 95 % interval has zero in it: the difference may be chance."""
        if self.difference.low > 0:
            return "above"
        return "below" if self.difference.high < 0 else "equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One set of questions: shares by method and budget."""

    name: str
    questions: int
    shares: dict[Figure, dict[str, dict[int, Estimate]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Totals):
    """One group of conversations, added up."""

    methods: tuple[str, ...]
    overall: Table | None
    """`None` where no question counts."""
    categories: tuple[Table, ...]
    """Also of categories that are not in the totals."""
    comparisons: tuple[Comparison, ...]

    def strongest(self, budget: int) -> str | None:
        """The best of the methods that a memory should be above, by `all`."""
        if self.overall is None:
            return None
        shares = self.overall.shares["all"]
        rivals = [method for method in self.methods if is_rival(method)]
        return max(rivals, key=lambda method: shares[method][budget].mean, default=None)


def is_rival(method: str) -> bool:
    """Whether a memory is meant to be above `method`: the one that only looks at the user's turns knows too much."""
    return method not in VIEWS.values() and method != USER_ONLY


def summarise(name: str, measured: Sequence[Measured]) -> Summary:
    """Everything about the conversations of one group."""
    outcomes = [outcome for one in measured for outcome in one.outcomes]
    counted = [outcome for outcome in outcomes if not outcome.adversarial]
    ours = [outcome for outcome in outcomes if outcome.method in VIEWS.values()]
    categories = sorted({outcome.category for outcome in outcomes})
    totals = totals_of(name, measured)
    return Summary(
        **{field: getattr(totals, field) for field in Totals.__slots__},
        methods=tuple(dict.fromkeys(outcome.method for outcome in [*ours, *outcomes])),
        overall=_table("overall", counted) if counted else None,
        categories=tuple(_table(name, [o for o in outcomes if o.category == name]) for name in categories),
        comparisons=tuple(_comparisons(counted)),
    )


def _columns(outcomes: Iterable[Outcome]) -> _Columns:
    """Outcomes by method and budget, then by question, all in the same order of questions."""
    columns: _Columns = {}
    for outcome in outcomes:
        rows = columns.setdefault((outcome.method, outcome.budget), {})
        rows[outcome.conversation, outcome.question] = outcome
    return columns


def _table(name: str, outcomes: Sequence[Outcome]) -> Table:
    """Shares over all questions; a method that only some conversations have is averaged over their questions."""
    columns = _columns(outcomes)
    sizes = Counter(len(rows) for rows in columns.values())
    bootstraps = {size: Bootstrap(size) for size in sizes}
    shares: dict[Figure, dict[str, dict[int, Estimate]]] = {figure: {} for figure in FIGURES}
    for size, bootstrap in bootstraps.items():
        keys = [key for key, rows in columns.items() if len(rows) == size]
        for figure in FIGURES:
            values = [[value(outcome, figure) for outcome in columns[key].values()] for key in keys]
            for (method, budget), estimate in zip(keys, bootstrap.estimates(values), strict=True):
                shares[figure].setdefault(method, {})[budget] = estimate
    return Table(name=name, questions=max(sizes), shares=shares)


def _comparisons(outcomes: Sequence[Outcome]) -> Iterable[Comparison]:
    """The recall view against every method, and the default view against the half window, at each budget."""
    columns = _columns(outcomes)
    bootstraps: dict[int, Bootstrap] = {}
    for (method, budget), rows in columns.items():
        if method in VIEWS.values():
            continue
        views = [VIEWS["recall"], *([VIEWS["default"]] if method == HALF else [])]
        for view in views:
            mine = columns.get((view, budget), {})
            shared = [key for key in rows if key in mine]
            if not shared:
                continue
            bootstrap = bootstraps.setdefault(len(shared), Bootstrap(len(shared)))
            difference = bootstrap.difference(
                [value(mine[key], "all") for key in shared], [value(rows[key], "all") for key in shared]
            )
            yield Comparison(view=view, method=method, budget=budget, difference=difference)


def as_json(summary: Summary) -> dict[str, Any]:
    """`summary` as plain values for JSON; shares are 0 to 1."""
    plain = asdict(summary)
    for comparison, made in zip(plain["comparisons"], summary.comparisons, strict=True):
        comparison["verdict"] = made.verdict
    return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with its 95 % interval, in the unit of the values."""

    mean: float
    low: float
    high: float
    at_most_zero: float
    """Share of the resamples whose mean is zero or less: of a difference, a one-sided p-value."""

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2


class Bootstrap:
    """The bootstrap over questions: intervals of means, and of differences between methods on the same questions.

    Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), percentile intervals. The resamples are drawn once
    from a fixed seed, so every method sees the same ones and a run can be repeated to the digit.
    """

    def __init__(self, size: int, *, resamples: int = _RESAMPLES) -> None:
        if size < 1:
            msg = f"a bootstrap needs at least one question, not {size}"
            raise ValueError(msg)
        random = np.random.default_rng(_SEED)
        self._shares = np.empty((resamples, size), dtype=np.float32)
        for start in range(0, resamples, _ROWS):
            rows = min(_ROWS, resamples - start)
            drawn = random.integers(0, size, (rows, size)) + np.arange(rows)[:, None] * size
            counts = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size)
            self._shares[start : start + rows] = counts / size

    def estimate(self, values: Sequence[float]) -> Estimate:
        """The mean of one value per question, in their order."""
        return self.estimates([values])[0]

    def estimates(self, columns: Sequence[Sequence[float]]) -> list[Estimate]:
        """The mean of each column; a column has one value per question."""
        values = np.array(columns, dtype=np.float32).T
        means: NDArray[np.float32] = self._shares @ values
        low, high = np.percentile(means, _LEVEL, axis=0)
        touched = (means <= np.float32(1e-7)).mean(axis=0)
        return [
            Estimate(mean=float(np.mean(column)), low=float(a), high=float(b), at_most_zero=float(share))
            for column, a, b, share in zip(columns, low, high, touched, strict=True)
        ]

    def difference(self, values: Sequence[float], others: Sequence[float]) -> Estimate:
        """How much the first method is above the second, question by question."""
        return self.estimate([value - other for value, other in zip(values, others, strict=True)])
