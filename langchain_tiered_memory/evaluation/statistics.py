"""The bootstrap over questions: intervals of means, and of differences between methods on the same questions.

Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), percentile intervals. The resamples are drawn once
per set of questions from a fixed seed, so every method sees the same ones and a run can be repeated to the digit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 20_240_229
_LEVEL = (2.5, 97.5)
_ROWS = 250
"""Resamples drawn at a time, to keep memory low on large sets."""


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
    """Resamples of a set of questions.

    Args:
        size: How many questions, at least 1.
        resamples: How many times they are drawn.
        seed: Of the drawing.
    """

    def __init__(self, size: int, *, resamples: int = RESAMPLES, seed: int = SEED) -> None:
        if size < 1:
            msg = f"a bootstrap needs at least one question, not {size}"
            raise ValueError(msg)
        random = np.random.default_rng(seed)
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
