"""How far our counts are from what a provider bills, learnt from the usage that it reports."""

from __future__ import annotations

import math
from dataclasses import dataclass

LOWEST_RATIO = 0.5
HIGHEST_RATIO = 3.0
"""Beyond these a report measures something else: a cached prompt counted apart, another model, a bug."""

_LEAST_TOKENS = 50  # in shorter requests framing weighs more than text
_LARGEST_STEP = 1.5  # one report moves what was learnt by this factor at most
_LEAST_WEIGHT = 0.15  # of a new report, so that a change of model is learnt in a dozen calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What to multiply raw counts by, for one model.

    A moving average of clipped reports: no single one can spoil it.
    """

    ratio: float = 1.0
    samples: int = 0
    """Reports that went into `ratio`."""

    def observe(self, estimated: int, reported: int) -> Calibration:
        """This calibration after one more report.

        Args:
            estimated: Raw tokens that we counted for the request.
            reported: Input tokens that the provider billed for it, cached ones included.
        """
        if estimated < _LEAST_TOKENS or reported < 1:
            return self
        seen = min(max(reported / estimated, LOWEST_RATIO), HIGHEST_RATIO)
        if self.samples:
            seen = min(max(seen, self.ratio / _LARGEST_STEP), self.ratio * _LARGEST_STEP)
        weight = max(1 / (self.samples + 1), _LEAST_WEIGHT)
        # Averaged as logarithms: twice as much and half as much cancel out.
        ratio = math.exp((1 - weight) * math.log(self.ratio) + weight * math.log(seen))
        return Calibration(ratio=min(max(ratio, LOWEST_RATIO), HIGHEST_RATIO), samples=self.samples + 1)

    def apply(self, tokens: int) -> int:
        """`tokens` as this provider would bill them, rounded up."""
        return math.ceil(tokens * self.ratio - 1e-9)
