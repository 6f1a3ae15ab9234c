"""Settings that have a name: how much is paid for how much in view. Measured by `benchmarks/cost_curve.py`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

SettingsName: TypeAlias = Literal["economy", "balanced", "thorough"]

NAMED: dict[SettingsName, dict[str, dict[str, Any]]] = {
    "economy": {"room": {"least_share": 0.25, "least_tokens": 24_000, "extra_share": 0.1, "grows_to": "cheapest"}},
    "balanced": {},
    "thorough": {"room": {"least_share": 0.95, "extra_share": 4.0}},
}
"""By name, what differs from the defaults, group by group."""
