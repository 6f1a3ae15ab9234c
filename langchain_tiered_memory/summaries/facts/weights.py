"""The weight of a fact: what its wording says it is worth, and above all wording what must last."""

from __future__ import annotations

LASTING = 0.98
"""The weight of what a model says must last: above what any wording alone weighs, below a goal."""


def lasting(weight: float) -> float:
    """The weight of a statement that must last, by its wording's."""
    return LASTING + (1 - LASTING) * weight


def by_wording(weight: float) -> float:
    """The weight that a fact has by its wording, which decides among those that must last as among all others."""
    return (weight - LASTING) / (1 - LASTING) if weight >= LASTING else weight
